"""The cheap look at workloads: it never calls one stuck that gets there by itself, and `controller`
prints it."""

from __future__ import annotations

import io

import pytest

from kubepy import Cluster
from kubepy.api.meta import controller_of, name_of
from kubepy.cli.main import main
from kubepy.insight.why import STUCK
from kubepy.insight.why.overview import WORKLOADS, stuck_workloads
from kubepy.insight.why.verdict import Question, explain
from kubepy.storage import Key
from tests.insight import rollouts

BAD = '{"spec":{"template":{"metadata":{"annotations":{"kubepy.dev/outcome":"%s"}}}}}'
WEB = "create deployment web --image=web:1 --replicas=2"


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def cluster_after(*commands: list[str] | str, ready_after: str = "") -> Cluster:
    cluster = Cluster.temporary(
        nodes=2, settings={"kubelet": {"readyAfter": ready_after}} if ready_after else None
    )
    for command in commands:
        cluster.run(command, check=True)
        cluster.settle(0)
    return cluster


def stuck_names(cluster: Cluster) -> list[str]:
    with cluster._open() as local:
        return [name_of(obj) for obj in stuck_workloads(local)]


def patched(outcome: str) -> list[str]:
    return ["patch", "deploy", "web", "-p", BAD % outcome]


@pytest.mark.parametrize(
    "commands",
    [
        (WEB, patched("image-pull-backoff")),
        (WEB, patched("crash-loop")),
        (WEB, patched("not-ready")),
        (WEB, patched("pending")),
        (WEB, "set resources deploy/web --requests=cpu=100"),
        ("create quota none --hard=pods=0", WEB),
        (WEB, "rollout pause deploy/web", "set image deploy/web web=web:2"),
    ],
)
def test_stuck_workloads_that_nothing_due_can_help(commands: tuple[list[str] | str, ...]) -> None:
    assert stuck_names(cluster_after(*commands)) == ["web"]


@pytest.mark.parametrize(
    ("commands", "ready_after"),
    [
        ((WEB,), ""),
        ((WEB,), "30s"),
        ((WEB, patched("crash-loop*3, ready")), ""),
        ((WEB, patched("image-pull-backoff*2, ready")), ""),
        (
            (
                WEB,
                ["patch", "deploy", "web", "-p", '{"spec":{"minReadySeconds":30}}'],
                "set image deploy/web web=web:2",
            ),
            "",
        ),
        (("create job once --image=job",), ""),
        (("create cronjob daily --image=job --schedule=@daily",), ""),
    ],
)
def test_stuck_workloads_leave_out_what_is_on_its_way(
    commands: tuple[list[str] | str, ...], ready_after: str
) -> None:
    assert stuck_names(cluster_after(*commands, ready_after=ready_after)) == []


def test_stuck_workloads_waiting_for_room_that_others_leave() -> None:
    cluster = cluster_after(
        "annotate nodes --all kubepy.dev/stops-after=20s",
        "create deployment old --image=a",
        "set resources deploy/old --requests=cpu=3 --limits=cpu=3",
        ["patch", "deploy", "old", "-p", '{"spec":{"replicas":2}}'],
        WEB,
        "set resources deploy/web --requests=cpu=3",
    )
    cluster.settle()
    assert stuck_names(cluster) == ["web"]
    cluster.run("delete deploy old", check=True)
    cluster.settle(0)
    assert stuck_names(cluster) == []


@pytest.mark.parametrize("number", [1, 3, 8, 17, 25, 40])
@pytest.mark.parametrize("seconds", [0, 30])
def test_stuck_workloads_of_generated_clusters_are_stuck_for_why(number: int, seconds: int) -> None:
    scenario = rollouts.scenario(number)
    cluster = scenario.cluster()
    if scenario.command:
        cluster.run(scenario.command, stdin=scenario.stdin)
    cluster.advance(seconds)
    with cluster._open() as local:
        for obj in stuck_workloads(local):
            key = next(
                Key(resource, "default", name_of(obj))
                for resource in WORKLOADS
                if local.scheme.by_key(resource).kind == obj["kind"]
            )
            assert controller_of(obj) is None
            assert explain(Question(local, key)).state == STUCK


# --- the note


def notes(cluster: Cluster, *words: str, stream: io.StringIO | None = None) -> list[str]:
    stderr = stream or Terminal()
    with cluster._open() as local:
        main(["controller", *words], stdout=io.StringIO(), stderr=stderr, open_cluster=local)
    return [line for line in stderr.getvalue().splitlines() if "stuck" in line]


@pytest.mark.parametrize(
    "words", [("--once",), ("--for=1m",), ("--until-settled",), ("--once", "-q")]
)
def test_controller_on_terminal_names_what_is_stuck(words: tuple[str, ...]) -> None:
    cluster = cluster_after(WEB, "create ns shop")
    cluster.run(patched("crash-loop"), check=True)
    assert notes(cluster, *words) == [
        'note: deployment/web in default is stuck: "kubepy why deployment/web" tells more'
    ]
    assert notes(cluster, *words, "-n", "shop") == [
        'note: deployment/web in default is stuck: "kubepy why deployment/web -n default" tells '
        "more"
    ]
    assert notes(cluster, *words, stream=io.StringIO()) == []
    assert cluster.run("why deployment/web").status == 2


def test_controller_names_few_of_many_that_are_stuck() -> None:
    cluster = cluster_after("create quota none --hard=pods=0")
    for number in range(7):
        cluster.run(f"create deployment web-{number} --image=web", check=True)
    lines = notes(cluster, "--once")
    assert len(lines) == 6
    assert lines[-1] == "note: 2 more workloads are stuck"
