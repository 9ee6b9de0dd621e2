"""Equal results of all ways to run the controllers: a process for each command, one from start to
end, or many that are interrupted. Their results differ in UIDs and random names only."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubepy.api.clock import format_time, parse_time
from kubepy.cli.main import main
from kubepy.controlplane import build_manager, manager
from kubepy.controlplane.open import open_cluster
from kubepy.storage.yaml import dump
from tests.stores import disagreements

START = parse_time("2026-11-20T10:00:00Z")
STEP = 30.0  # seconds from one command to the next
NODES = 3
CHANCE = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"10\.\d+\.\d+\.\d+"), "ADDRESS"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-CHANCE"),
    (re.compile(r"(containerID|imageID): .*"), r"\1"),
    # A new process finds pods on tainted nodes and evicts them again if necessary.
    (
        re.compile(r'observedGeneration("?): ?\d+(,?\s*"?reason"?: ?"?DeletionByTaintManager)'),
        r"observedGeneration\1: SOME\2",
    ),
]
# Not failed: which of several failed pods is replaced first depends on their random names.
OUTCOMES = [
    "",
    "",
    "",
    "outcome: not-ready",
    "outcome: crash-loop",
    "outcome: image-pull-backoff",
    "outcome: pending",
    "termination: stuck",
]
WORKLOADS = ("daemonsets.apps", "statefulsets.apps", "deployments.apps", "replicasets.apps")
COUNTS = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "currentReplicas",
    "numberReady",
    "numberAvailable",
    "desiredNumberScheduled",
    "updatedNumberScheduled",
    "numberMisscheduled",
)
Command = tuple[list[str], str]


# --- the commands ---


def daemon_set(chance: Random) -> str:
    strategy = chance.choice(
        [
            "{type: OnDelete}",
            "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}",
            "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}",
            "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
            "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 50%}}",
        ]
    )
    return f"updateStrategy: {strategy}"


def stateful_set(chance: Random) -> str:
    strategy = chance.choice(
        [
            "{type: OnDelete}",
            "{type: RollingUpdate}",
            "{type: RollingUpdate, rollingUpdate: {partition: 1}}",
        ]
    )
    policy = chance.choice(["OrderedReady", "Parallel"])
    return (
        f"replicas: {chance.randint(1, 4)}, podManagementPolicy: {policy}, updateStrategy: "
        f"{strategy}"
    )


def deployment(chance: Random) -> str:
    strategy = chance.choice(
        [
            "{type: Recreate}",
            "{type: RollingUpdate}",
            "{type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 1}}",
        ]
    )
    return f"replicas: {chance.randint(1, 5)}, progressDeadlineSeconds: 45, strategy: {strategy}"


KINDS: dict[str, tuple[str, Callable[[Random], str]]] = {
    "ds": ("DaemonSet", daemon_set),
    "sts": ("StatefulSet", stateful_set),
    "deploy": ("Deployment", deployment),
}


def manifest(kind: str, chance: Random, image: str) -> str:
    name, spec = KINDS[kind]
    outcome = chance.choice(OUTCOMES)
    annotations = f"kubepy.dev/{outcome}" if outcome else ""
    seconds = chance.choice([0, 0, 0, 10])
    return (
        f"{{apiVersion: apps/v1, kind: {name}, metadata: {{name: app}}, spec: {{{spec(chance)}, "
        f"minReadySeconds: "
        f"{seconds}, selector: {{matchLabels: {{app: a}}}}, template: {{metadata: {{labels: "
        f"{{app: a}}, "
        f"annotations: {{{annotations}}}}}, spec: {{containers: [{{name: c, image: "
        f"'{image}'}}]}}}}}}}}"
    )


def commands(kind: str, chance: Random, steps: int) -> Iterator[Command]:
    """Yield random commands of a user; ``POD`` stands for a pod of the cluster."""
    this = f"{kind}/app"
    yield ["apply", "-f", "-"], manifest(kind, chance, "i:0")
    for number in range(1, steps):
        node = f"node-{chance.randint(1, NODES)}"
        choices: list[Command] = [
            (["apply", "-f", "-"], manifest(kind, chance, f"i:{number}")),
            (["set", "image", this, f"c=i:{number}"], ""),
            (["rollout", "undo", this], ""),
            (["scale", this, f"--replicas={chance.randint(0, 5)}"], ""),
            (["delete", "pod", "POD", "--wait=false", *chance.choice([[], ["--force"]])], ""),
            (["label", "pod", "POD", "app=b", "--overwrite"], ""),
            ([chance.choice(["cordon", "uncordon"]), node], ""),
            (
                [
                    "taint",
                    "node",
                    node,
                    chance.choice(["k=v:NoSchedule", "k=v:NoExecute", "k-"]),
                    "--overwrite",
                ],
                "",
            ),
            (
                [
                    "annotate",
                    "node",
                    node,
                    "--overwrite",
                    "kubepy.dev/"
                    + chance.choice(
                        ["outcome=not-ready", "outcome-", "pod-outcome=not-ready", "pod-outcome-"]
                    ),
                ],
                "",
            ),
            (
                [
                    "delete",
                    this,
                    "--wait=false",
                    "--cascade=" + chance.choice(["orphan", "foreground", "background"]),
                ],
                "",
            ),
            (["rollout", chance.choice(["pause", "resume"]), this], ""),
        ]
        yield chance.choice(choices)


# --- ways to run the controllers ---


class Play:
    """A cluster of its own, and a way to run its controllers."""

    def __init__(self, folder: Path, faults: dict[str, Any] | None = None) -> None:
        self.folder, self.faults = folder, faults
        folder.mkdir()
        self.now = START
        self.set_clock()
        self.command(["init", f"--nodes={NODES}"])
        self.cluster = open_cluster(folder)
        self.manager = build_manager(self.cluster)

    def set_clock(self) -> None:
        settings = {
            "formatVersion": 1,
            "clock": format_time(self.now),
            "seed": 1,
            **({"faults": self.faults} if self.faults else {}),
        }
        (self.folder / "kubepy.yaml").write_text(dump(settings))

    def command(self, words: list[str], stdin: str = "") -> tuple[int, str]:
        out, err = io.StringIO(), io.StringIO()
        status = main(
            ["--state", str(self.folder), *words], stdin=io.StringIO(stdin), stdout=out, stderr=err
        )
        assert "internal error" not in err.getvalue(), err.getvalue()
        return status, out.getvalue()

    def do(self, words: list[str], stdin: str, pick: float) -> None:
        """Run a command; ``pick`` chooses its POD, among pods that can be told apart without their
        random names."""
        if "POD" in words:
            shown = "{.spec.nodeName}{.metadata.creationTimestamp}{.metadata.labels}{.status}"
            listed = self.command(
                [
                    "get",
                    "pods",
                    "-o",
                    f"jsonpath={{range .items[*]}}{shown}/{{.metadata.name}}{{'\\n'}}{{end}}",
                ]
            )[1].splitlines()
            known = [without_chance(line) for line in listed]
            told_apart = sorted(line for line in listed if known.count(without_chance(line)) == 1)
            if not told_apart:
                return
            pod = min(
                told_apart, key=lambda line: Random(f"{pick}{without_chance(line)}").random()
            ).rpartition("/")[2]
            words = [pod if word == "POD" else word for word in words]
        self.command(words, stdin)

    def pass_time(self) -> None:
        self.now += timedelta(seconds=STEP)
        self.set_clock()
        self.cluster.clock.own = self.now

    def settle(self) -> None:
        raise NotImplementedError

    def state(self) -> list[str]:
        """Return all objects, with random names masked."""
        found = []
        for path in self.folder.glob("*/**/*.yaml"):
            if ".kubepy" not in path.parts and path.parent.name != ".managed":
                found.append(without_chance(f"{path.relative_to(self.folder)}\n{path.read_text()}"))
        return sorted(found)

    def outline(self) -> list[str]:
        """Return what a user sees: the number of pods of each template, and the counts in the
        workloads' status."""
        objects = [
            obj
            for resource in ("pods", *WORKLOADS)
            for obj in self.cluster.client.list(resource).items
        ]
        return sorted(without_chance(str(_outline(obj))) for obj in objects)


def _outline(obj: dict[str, Any]) -> object:
    status = {key: value for key, value in obj["status"].items() if key in COUNTS or key == "phase"}
    images = [one["image"] for one in obj["spec"].get("containers", ())]
    return (
        obj["kind"],
        obj["metadata"].get("labels"),
        images,
        "deletionTimestamp" in obj["metadata"],
        status,
    )


class Once(Play):
    """Run ``controller --once`` after each command."""

    def settle(self) -> None:
        build_manager(self.cluster).run_until_settled(skip_waits=True)


class Watching(Play):
    """Run ``controller --watch``: one manager from start to end."""

    def settle(self) -> None:
        self.manager.run_until_settled(skip_waits=True)


class Hurried(Play):
    """Run every sync in a transaction of its own, and every dozen of them in a new process."""

    def settle(self) -> None:
        left = 0

        def is_tired() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(manager, "BATCH_SECONDS", 0.0)
            patch.setattr(manager, "MAX_BATCH_SECONDS", 0.0)
            while left <= 0:
                left = 12
                build_manager(self.cluster).run_until_settled(done=is_tired, skip_waits=True)


def without_chance(text: str) -> str:
    for pattern, word in CHANCE:
        text = pattern.sub(word, text)
    return text


def play(
    tmp_path: Path,
    kind: str,
    seed: int,
    other: type[Play],
    look: Callable[[Play], list[str]],
    faults: dict[str, Any] | None = None,
) -> None:
    """Run the same commands in both ways; compare after each, once at once and once 30 seconds
    later."""
    plays = [Once(tmp_path / "once", faults), other(tmp_path / "other", faults)]
    history = []
    for words, stdin in commands(kind, Random(f"{kind} {seed}"), steps=8):
        history.append((words, stdin))
        for one in plays:
            one.do(words, stdin, Random(f"{seed} {len(history)}").random())
            one.settle()
            one.pass_time()
            one.settle()
        first, second = map(look, plays)
        assert first == second, history
    for one in plays:
        assert disagreements(one.cluster.store) == []
        one.cluster.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_watch_leaves_what_run_after_each_command_leaves(
    tmp_path: Path, kind: str, seed: int
) -> None:
    play(tmp_path, kind, seed, Watching, Play.state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "faults",
    [
        {"conflicts": {"rate": 0.2}},
        {"lateEvents": {"rate": 0.3, "delay": "0s..40s"}},
        {"restarts": {"rate": 0.1}},
        {
            "nodes": [{"after": "0s..100s", "downFor": "70s"}],
            "pods": [{"rate": 0.3, "outcome": "crash-loop*2, ready"}],
        },
    ],
    ids=lambda faults: next(iter(faults)),
)
def test_faults_are_overcome_in_one_process_and_in_many(
    tmp_path: Path, kind: str, faults: dict[str, Any]
) -> None:
    """The names of pods differ, and with them the faults; what the workload comes to does not."""
    plays = [Once(tmp_path / "once", faults), Watching(tmp_path / "other", faults)]
    for one in plays:
        replicas = "" if kind == "ds" else "replicas: 3, "
        text = (
            f"{{apiVersion: apps/v1, kind: {KINDS[kind][0]}, metadata: {{name: app}}, spec: "
            f"{{{replicas}selector: "
            "{matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: "
            "[{name: c, image: 'i:1'}]}}}}"
        )
        for words, stdin in (
            (["apply", "-f", "-"], text),
            (["set", "image", f"{kind}/app", "c=i:2"], ""),
            (["scale", f"{kind}/app", "--replicas=4"], ""),
            (["set", "image", f"{kind}/app", "c=i:3"], ""),
        ):
            one.command(words, stdin)
            for _ in range(3):
                one.settle()
                one.pass_time()
        for _ in range(30):
            one.settle()
            one.pass_time()
    first, second = (one.outline() for one in plays)
    assert first == second
    assert any("i:3" in line for line in first)
    for one in plays:
        assert disagreements(one.cluster.store) == []
        one.cluster.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_runs_that_are_cut_short_get_there_too(tmp_path: Path, kind: str, seed: int) -> None:
    """Compare counts only: the order of syncs differs, so pods may be on other nodes."""
    play(tmp_path, kind, seed, Hurried, Play.outline)
