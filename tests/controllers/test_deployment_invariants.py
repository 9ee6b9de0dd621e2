"""Invariants of a Deployment at every step, in random scenarios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubepy.api.meta import labels_of, name_of
from kubepy.api.objects.deployments import HASH_LABEL
from kubepy.api.objects.pods import is_pod_active, is_pod_ready
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.deployment_objects import (
    DEPLOYMENTS,
    DeploymentLab,
    check_availability,
    check_step,
    deployment,
    picture,
)
from tests.controllers.watched_lab import FAULTS, if_there
from tests.stores import disagreements

# --- what may happen ------------------------------------------------------------------------------


def update(lab: DeploymentLab, version: int, outcome: str) -> None:
    lab.update(f"web:{version}", outcome)


def undo(lab: DeploymentLab) -> None:
    lab.undo()


def pause(lab: DeploymentLab, paused: bool) -> None:
    lab.edit(paused=paused)


def crash(lab: DeploymentLab, step: int) -> None:
    lab.run(crash_at=step)


def wait(lab: DeploymentLab, seconds: int) -> None:
    lab.wait(seconds)


def scale(lab: DeploymentLab, number: int) -> None:
    lab.edit(replicas=number)


def strategy(lab: DeploymentLab, surge: int | str, unavailable: int | str) -> None:
    if (surge, unavailable) == (0, 0):
        return
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    lab.edit(strategy={"type": "RollingUpdate", "rollingUpdate": rolling})


def recreate(lab: DeploymentLab) -> None:
    lab.edit(strategy={"type": "Recreate"})


def delete_pod(lab: DeploymentLab, number: int, force: bool) -> None:
    if pods := lab.pods():
        options = DeleteOptions(grace_period_seconds=0) if force else DeleteOptions()
        name = name_of(pods[number % len(pods)])
        if_there(lambda: lab.client.delete("pods", name, namespace="default", options=options))


def sicken(lab: DeploymentLab, number: int, outcome: str) -> None:
    """Change a running pod's outcome, which its kubelet reports at its next sync."""
    if pods := lab.pods():

        def change(pod: Any) -> None:
            pod["metadata"].setdefault("annotations", {})["kubepy.dev/outcome"] = outcome

        if_there(lambda: lab.change("pods", name_of(pods[number % len(pods)]), change, "default"))


def lose_node(lab: DeploymentLab, number: int) -> None:
    if_there(lambda: lab.client.delete("nodes", f"node-{number}"))


def add_node(lab: DeploymentLab, number: int) -> None:
    if f"node-{number}" not in lab.names("nodes"):
        lab.node(f"node-{number}")


OUTCOMES = st.sampled_from(
    ["ready", "ready", "not-ready", "crash-loop", "image-pull-backoff", "failed", "pending"]
)
CALM = st.one_of(
    st.tuples(st.just(update), st.integers(1, 4), OUTCOMES),
    st.tuples(st.just(undo)),
    st.tuples(st.just(pause), st.booleans()),
    st.tuples(st.just(crash), st.integers(1, 12)),
    st.tuples(st.just(wait), st.sampled_from([1, 6, 700])),
)
STORMY = st.one_of(
    CALM,
    st.tuples(st.just(scale), st.integers(0, 7)),
    st.tuples(
        st.just(strategy),
        st.sampled_from([0, 1, 3, "25%", "100%"]),
        st.sampled_from([0, 1, 2, "50%"]),
    ),
    st.tuples(st.just(recreate)),
    st.tuples(st.just(delete_pod), st.integers(0, 9), st.booleans()),
    st.tuples(st.just(sicken), st.integers(0, 9), OUTCOMES),
    st.tuples(st.just(lose_node), st.integers(1, 2)),
    st.tuples(st.just(add_node), st.integers(1, 2)),
)
SPECS = st.fixed_dictionaries(
    {
        "replicas": st.integers(1, 6),
        "surge": st.sampled_from([0, 1, 2, "25%", "100%"]),
        "unavailable": st.sampled_from([0, 1, "25%", "50%"]),
        "minReadySeconds": st.sampled_from([0, 0, 5]),
        "revisionHistoryLimit": st.sampled_from([0, 2, 10]),
    }
).filter(lambda spec: (spec["surge"], spec["unavailable"]) != (0, 0))


def scenarios(
    operations: st.SearchStrategy[Any],
) -> st.SearchStrategy[list[tuple[tuple[Any, ...], bool]]]:
    """Return operations, each with a flag: the controllers run after it, or the next operation
    follows at once."""
    return st.lists(st.tuples(operations, st.booleans()), max_size=12)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    return lambda: tmp_path_factory.mktemp("deployment") / "state"


def start(lab: DeploymentLab, spec: dict[str, Any]) -> None:
    lab.make(deployment(**spec))
    lab.run()
    lab.wait(10)
    lab.run()


def play(lab: DeploymentLab, operations: list[tuple[tuple[Any, ...], bool]]) -> None:
    for (act, *arguments), settle in operations:
        act(lab, *arguments)
        if settle:
            lab.run()
            check_rest(lab)


# --- what holds -----------------------------------------------------------------------------------

QUICK = settings(
    max_examples=14, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@QUICK
@given(spec=SPECS, operations=scenarios(CALM), faults=FAULTS)
@example(
    faults=None,
    spec={"replicas": 4, "surge": 1, "unavailable": 0},
    operations=[((update, 2, "crash-loop"), True), ((undo,), False), ((update, 3, "ready"), True)],
)
def test_rolling_deployment_stays_between_its_bounds(
    folders: Callable[[], Any],
    spec: dict[str, Any],
    operations: list[tuple[tuple[Any, ...], bool]],
    faults: Any,
) -> None:
    """Keep at least ``replicas - maxUnavailable`` ready pods and at most ``replicas + maxSurge``
    pods, whatever is rolled out, undone, paused or broken, and wherever the manager crashes."""
    lab = DeploymentLab(folders(), faults)
    start(lab, spec)
    # A node that is down takes pods away, and ReplicaSets whose events are late delete pods after
    # others were made.
    lab.check = (
        check_step if faults and faults.keys() & {"lateEvents", "nodes"} else check_availability
    )
    play(lab, operations)
    mend(lab)
    check_converged(lab)
    assert disagreements(lab.cluster.store) == []
    lab.cluster.close()


@QUICK
@given(spec=SPECS, operations=scenarios(STORMY), faults=FAULTS)
@example(
    faults=None,
    spec={"replicas": 3, "surge": 0, "unavailable": 1},
    operations=[((update, 2, "ready"), False), ((sicken, 0, "not-ready"), True)],
)
def test_rolling_update_step_does_not_worsen_accidents(
    folders: Callable[[], Any],
    spec: dict[str, Any],
    operations: list[tuple[tuple[Any, ...], bool]],
    faults: Any,
) -> None:
    """Delete pods and nodes, change sizes and strategies: no controller deletes pods that are
    needed."""
    lab = DeploymentLab(folders(), faults)
    start(lab, spec)
    play(lab, operations)
    mend(lab)
    check_converged(lab)
    assert disagreements(lab.cluster.store) == []
    lab.cluster.close()


def check_rest(lab: DeploymentLab) -> None:
    """Check that at rest the status is right and every ReplicaSet has its number of pods."""
    seen = picture(lab.client)
    assert seen is not None
    status, newest = (
        seen.deployment["status"],
        [uid for uid, one in seen.sets.items() if labels_of(one)[HASH_LABEL] == _hash(lab)],
    )
    assert {uid: len(pods) for uid, pods in seen.pods.items()} == {
        uid: one["spec"]["replicas"] for uid, one in seen.sets.items()
    }
    assert {
        "observedGeneration": status["observedGeneration"],
        "replicas": status.get("replicas", 0),
        "updatedReplicas": status.get("updatedReplicas", 0),
        "availableReplicas": status.get("availableReplicas", 0),
        "readyReplicas": status.get("readyReplicas", 0),
        "unavailableReplicas": status.get("unavailableReplicas", 0),
    } == {
        "observedGeneration": seen.deployment["metadata"]["generation"],
        "replicas": seen.all_pods(),
        "updatedReplicas": sum(len(seen.pods[uid]) for uid in newest),
        "availableReplicas": seen.all_available(),
        "readyReplicas": sum(is_pod_ready(pod) for pods in seen.pods.values() for pod in pods),
        "unavailableReplicas": seen.total() - seen.all_available(),
    }
    assert (lab.conditions()["Available"][0] == "True") == (seen.all_available() >= seen.fewest)


def _hash(lab: DeploymentLab) -> str:
    try:
        return labels_of(lab.newest())[HASH_LABEL]
    except StopIteration:
        return ""  # a paused Deployment, or one waiting for old pods to disappear


def mend(lab: DeploymentLab) -> None:
    """Restore both nodes, roll out a working template, and delete every pod that is not ready."""
    lab.check = check_step
    for number in (1, 2):
        add_node(lab, number)
    lab.edit(
        paused=False,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
    )
    lab.update("web:9")
    for _ in range(8 if lab.cluster.settings.faults else 3):
        lab.run()
        lab.wait(1000 if lab.cluster.settings.faults else 50)  # also for nodes to come back
        lab.run()
        for pod in lab.pods():
            if is_pod_active(pod) and not is_pod_ready(pod):
                lab.client.delete(
                    "pods",
                    name_of(pod),
                    namespace="default",
                    options=DeleteOptions(grace_period_seconds=0),
                )
    lab.run()
    lab.wait(10)
    lab.run()


def check_converged(lab: DeploymentLab) -> None:
    found = lab.deployment()
    wanted = found["spec"]["replicas"]
    images = [pod["spec"]["containers"][0]["image"] for pod in lab.pods() if is_pod_active(pod)]
    assert images == ["web:9"] * wanted
    assert lab.conditions() == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert len(lab.sets()) - 1 <= found["spec"]["revisionHistoryLimit"]
    check_rest(lab)
    lab.client.delete(DEPLOYMENTS, "web", namespace="default")
    lab.run()
    assert (lab.sets(), lab.pods()) == ([], [])
