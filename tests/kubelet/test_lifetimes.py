"""Pods that end by themselves: those of Jobs, those with a length of their run; the code, the end,
and restarts."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kubepy.api.clock import Ids, format_time
from kubepy.kubelet.lifetimes import Lifetime, Rules, lifetime_of
from kubepy.kubelet.outcomes import COMPLETED, OUTCOMES, RUNNING
from kubepy.kubelet.stages import Expire, Refuse, Start, Step, next_due, next_step, starts_plainly
from kubepy.kubelet.statuses import pod_status
from tests.kubelet.objects import NOW, Object, new_node, new_pod


def middle(pod: Object, purpose: str, low: float, high: float) -> float:
    return (low + high) / 2


RULES = Rules(middle)


def pod_with(
    restart: str = "Never", owner: str = "", spec: Object | None = None, **annotations: str
) -> Object:
    """Return a pod; ``runs_for="5s"`` is its annotation ``kubepy.dev/runs-for``."""
    pod = new_pod(restartPolicy=restart, **(spec or {}))
    pod["metadata"]["annotations"] = {
        f"kubepy.dev/{key.replace('_', '-')}": text for key, text in annotations.items()
    }
    if owner:
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": owner, "name": "owner", "uid": "1", "controller": True}
        ]
    return pod


def due(pod: Object, seconds: float = 0, node: Object | None = None) -> Step | None:
    return next_step(pod, node or new_node(), NOW + timedelta(seconds=seconds), rules=RULES)


def due_at(pod: Object, seconds: float = 0) -> datetime | None:
    step = next_due(pod, new_node(), NOW + timedelta(seconds=seconds), RULES)
    return step.at if step else None


def played(pod: Object, seconds: float = 0) -> Object:
    """Return the pod after everything that is due by then, each step at that time."""
    while isinstance(step := due(pod, seconds), Start):
        now = NOW + timedelta(seconds=seconds)
        pod = {
            **pod,
            "status": pod_status(
                pod, step.outcome, "192.168.0.1", "10.244.0.1", now, step.obstacles
            ),
        }
    assert step is None
    return pod


def failed(code: int) -> object:
    return OUTCOMES["failed"]._replace(exit_code=code)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pod_with(owner="Job"), Lifetime("ready", 0.0)),
        (pod_with(owner="Job", outcome="ready"), Lifetime("ready")),
        (pod_with(owner="Job", outcome="not-ready", runs_for="5s"), Lifetime("not-ready", 5.0)),
        (pod_with(owner="Job", outcome="pending", runs_for="5s"), Lifetime("pending")),
        (pod_with(owner="Job", outcome="crash-loop"), Lifetime("crash-loop")),
        (pod_with(owner="Job", outcome="failed"), Lifetime("ready", 0.0, failed(1))),
        (
            pod_with(owner="Job", outcome="failed", exit_code="42"),
            Lifetime("ready", 0.0, failed(42)),
        ),
        (
            pod_with(owner="Job", outcome="failed", runs_for="2m"),
            Lifetime("ready", 120.0, failed(1)),
        ),
        (pod_with(owner="Job", exit_code="3"), Lifetime("ready", 0.0, failed(3))),
        (
            pod_with("OnFailure", "Job", exit_code="3"),
            Lifetime("ready", 0.0, failed(3), restarts=True),
        ),
        (pod_with("OnFailure", "Job"), Lifetime("ready", 0.0)),
        (pod_with(owner="Job", runs_for="2s..8s"), Lifetime("ready", 5.0)),
        (pod_with(), Lifetime("ready")),
        (pod_with(exit_code="1"), Lifetime("ready", None, failed(1))),
        (pod_with(runs_for="5s"), Lifetime("ready", 5.0)),
        (pod_with("Always", "ReplicaSet", runs_for="5s"), Lifetime("ready", 5.0, restarts=True)),
        (pod_with("Always", "ReplicaSet"), Lifetime("ready")),
    ],
    ids=lambda value: str(value["metadata"].get("annotations")) if isinstance(value, dict) else "",
)
def test_lifetime_follows_owner_and_annotations(pod: Object, expected: Lifetime) -> None:
    assert lifetime_of(pod, new_node(), RULES)[:4] == expected[:4]


def test_node_annotation_counts_for_pods_of_jobs_only() -> None:
    node = new_node(**{"kubepy.dev/runs-for": "9s"})
    assert lifetime_of(pod_with(owner="Job"), node, RULES).runs_for == 9.0
    assert lifetime_of(pod_with(owner="Job", runs_for="1s"), node, RULES).runs_for == 1.0
    assert lifetime_of(pod_with(), node, RULES).runs_for is None
    node = new_node(**{"kubepy.dev/pod-outcome": "ready"})
    assert lifetime_of(pod_with(owner="Job"), node, RULES).runs_for is None


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (
            {"runs_for": "soon"},
            'kubepy.dev/runs-for: "soon": it must be a duration such as 5s, or a range such as '
            "2s..8s",
        ),
        ({"runs_for": "8s..2s"}, 'kubepy.dev/runs-for: "8s..2s": it must be a duration'),
        ({"runs_for": "-1s"}, 'kubepy.dev/runs-for: "-1s": it must be a duration'),
        ({"runs_for": "5"}, 'kubepy.dev/runs-for: "5": it must be a duration'),
        ({"exit_code": "x"}, 'kubepy.dev/exit-code: "x": it must be a number from 0 to 255'),
        ({"exit_code": "256"}, 'kubepy.dev/exit-code: "256": it must be a number from 0 to 255'),
        (
            {"cpu": "much"},
            'kubepy.dev/cpu: "much": it must be a quantity such as 250m, or a series',
        ),
        (
            {"memory": "1Mi@5s,2Mi@5s"},
            'kubepy.dev/memory: "1Mi@5s,2Mi@5s": the times of a series must rise',
        ),
        ({"cpu": "-1"}, 'kubepy.dev/cpu: "-1": amounts and times must not be negative'),
        ({"cpu.x": "1"}, 'kubepy.dev/cpu.x: "1": the pod has no container "x"'),
    ],
)
def test_wrong_annotation_is_refused(annotations: dict[str, str], message: str) -> None:
    step = due(pod_with(owner="Job", **annotations))
    assert isinstance(step, Refuse)
    assert step.reason == "InvalidAnnotation"
    assert step.message.startswith(message)


def test_pod_of_job_succeeds_at_once() -> None:
    pod = pod_with(owner="Job")
    assert due(pod) == Start(COMPLETED)
    assert played(pod)["status"]["phase"] == "Succeeded"


def test_pod_runs_for_its_time_and_ends_with_its_code() -> None:
    pod = played(pod_with(owner="Job", runs_for="5s", exit_code="42"))
    assert pod["status"]["phase"] == "Running"
    assert due_at(pod) == NOW + timedelta(seconds=5)
    assert due(pod, 4) is None
    pod = played(pod, 7)
    assert pod["status"]["phase"] == "Failed"
    assert pod["status"]["containerStatuses"][0]["state"] == {
        "terminated": {
            "exitCode": 42,
            "reason": "Error",
            "startedAt": format_time(NOW),
            "finishedAt": format_time(NOW + timedelta(seconds=7)),
        }
    }
    assert due_at(pod) is None


def test_deadline_before_end_of_run_kills_pod() -> None:
    pod = played(pod_with(owner="Job", runs_for="10s", spec={"activeDeadlineSeconds": 3}))
    assert due_at(pod) == NOW + timedelta(seconds=3)
    assert due(pod, 3) == Expire()


def test_containers_start_again_with_growing_delays() -> None:
    pod, seen, seconds = played(pod_with("OnFailure", "Job", exit_code="1")), [], 0.0
    for _ in range(7):
        container = pod["status"]["containerStatuses"][0]
        seen.append(
            (
                seconds,
                container["restartCount"],
                container["state"]["waiting"]["message"].split()[1],
            )
        )
        at = due_at(pod)
        assert at is not None
        seconds = (at - NOW).total_seconds()
        assert due(pod, seconds - 1) is None
        pod = played(pod, seconds)
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert seen == [
        (0, 1, "10s"),
        (10, 2, "20s"),
        (30, 3, "40s"),
        (70, 4, "1m20s"),
        (150, 5, "2m40s"),
        (310, 6, "5m0s"),
        (610, 7, "5m0s"),
    ]


def test_long_run_starts_again_without_delay() -> None:
    pod = played(pod_with("Always", runs_for="11m"))
    for number in range(1, 4):
        pod = played(pod, 660 * number)
        container = pod["status"]["containerStatuses"][0]
        assert (container["restartCount"], "running" in container["state"]) == (number, True)


def test_outcome_that_changes_in_back_off_takes_effect() -> None:
    pod = played(pod_with("OnFailure", "Job", exit_code="1"))
    pod["metadata"]["annotations"] = {"kubepy.dev/outcome": "succeeded"}
    assert due(pod) == Start(COMPLETED._replace(restarts=2))


def test_draw_depends_on_seed_and_subject_alone() -> None:
    first, again, other = Ids(7), Ids(7), Ids(8)
    assert first.fraction("Pod", "a", unseeded="u") == again.fraction("Pod", "a", unseeded="v")
    assert first.fraction("Pod", "a", unseeded="u") != other.fraction("Pod", "a", unseeded="u")
    assert (
        Ids().fraction("a", unseeded="u")
        == Ids().fraction("a", unseeded="u")
        != Ids().fraction("a", unseeded="v")
    )


def test_pod_that_waits_for_a_client_ends_where_it_is_not_restarted() -> None:
    containers = [{"name": "c", "image": "c", "stdin": True, "stdinOnce": True}]
    assert played(pod_with(spec={"containers": containers}))["status"]["phase"] == "Succeeded"
    assert (
        played(pod_with("Always", spec={"containers": containers}))["status"]["phase"] == "Running"
    )
    assert (
        played(pod_with(spec={"containers": containers}, outcome="ready"))["status"]["phase"]
        == "Running"
    )


@pytest.mark.parametrize(
    ("pod", "is_plain"),
    [
        (pod_with("Always"), True),
        (pod_with("Never"), True),
        (pod_with("Always", owner="DaemonSet"), True),
        (pod_with(owner="Job"), False),
        (pod_with("Always", outcome="failed"), False),
        (pod_with("Always", spec={"activeDeadlineSeconds": 5}), False),
        (
            pod_with("Always", spec={"containers": [{"name": "main", "image": "Not An Image"}]}),
            False,
        ),
        (pod_with("Always", spec={"initContainers": [{"name": "first", "image": "image"}]}), False),
    ],
)
def test_plain_pods_just_run(pod: Object, is_plain: bool) -> None:
    """Expect the step of a plain pod to be the one that the stages give, and nothing after it."""
    assert starts_plainly(pod, new_node(), RULES) is is_plain
    assert (due(pod) == Start(RUNNING) and due_at(played(pod)) is None) or not is_plain
    assert not starts_plainly(pod, new_node(**{"kubepy.dev/pod-outcome": "failed"}), RULES)
    assert not starts_plainly(played(pod_with("Always")), new_node(), RULES)
