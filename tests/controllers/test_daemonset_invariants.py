"""Invariants of a DaemonSet at every step, in random scenarios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubepy.api.meta import Object, name_of
from kubepy.api.objects.pods import is_pod_active
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.daemonset_lab import REVISIONS, SETS, DaemonLab, counts, daemon_set
from tests.controllers.watched_lab import FAULTS, if_there
from tests.stores import disagreements

# --- what may happen ------------------------------------------------------------------------------


def update(lab: DaemonLab, version: int, outcome: str) -> None:
    selector = lab.look().daemon_set["spec"]["template"]["spec"].get("nodeSelector")
    lab.retemplate(f"agent:{version}", outcome, selector)


def select(lab: DaemonLab, parity: str) -> None:
    """Update to a template for other nodes."""
    seen = lab.look()
    lab.retemplate(seen.image, "ready", {"parity": parity} if parity else None)


def strategy(lab: DaemonLab, surge: int | str, unavailable: int | str) -> None:
    if (surge == 0) != (unavailable == 0):
        lab.edit(
            updateStrategy={
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            }
        )


def on_delete(lab: DaemonLab) -> None:
    lab.edit(updateStrategy={"type": "OnDelete"})


def taint(lab: DaemonLab, number: int, effect: str) -> None:
    """Taint the node; without an effect, remove the taint."""
    taints = [{"key": "keep-off", "effect": effect}] if effect else []
    if_there(
        lambda: lab.change(
            "nodes", f"node-{number}", lambda node: node["spec"].update(taints=taints)
        )
    )


def lose_node(lab: DaemonLab, number: int) -> None:
    if_there(lambda: lab.client.delete("nodes", f"node-{number}"))


def find_node(lab: DaemonLab, number: int) -> None:
    if f"node-{number}" not in lab.names("nodes"):
        lab.add_node(number)


def delete_pod(lab: DaemonLab, number: int, force: bool) -> None:
    def delete(pod: Object) -> None:
        options = DeleteOptions(grace_period_seconds=0) if force else DeleteOptions()
        lab.client.delete("pods", name_of(pod), namespace="default", options=options)

    _to_one(lab, number, delete)


def sicken(lab: DaemonLab, number: int, outcome: str) -> None:
    _annotate(lab, number, "kubepy.dev/outcome", outcome)


def hang(lab: DaemonLab, number: int) -> None:
    """Keep the pod Terminating until it is deleted by force."""
    _annotate(lab, number, "kubepy.dev/termination", "stuck")


def crash(lab: DaemonLab, step: int) -> None:
    lab.run(crash_at=step)


def wait(lab: DaemonLab, seconds: int) -> None:
    lab.wait(seconds)


def _annotate(lab: DaemonLab, number: int, key: str, value: str) -> None:
    def change(pod: Object) -> None:
        pod["metadata"].setdefault("annotations", {})[key] = value

    _to_one(lab, number, lambda pod: lab.change("pods", name_of(pod), change, "default"))


def _to_one(lab: DaemonLab, number: int, act: Callable[[Object], object]) -> None:
    if pods := lab.pods():
        if_there(lambda: act(pods[number % len(pods)]))


OUTCOMES = st.sampled_from(["ready", "ready", "not-ready", "crash-loop", "failed", "pending"])
NODES = st.integers(1, 5)
OPERATIONS = st.one_of(
    st.tuples(st.just(update), st.integers(1, 4), OUTCOMES),
    st.tuples(st.just(select), st.sampled_from(["", "odd", "even"])),
    st.tuples(
        st.just(strategy), st.sampled_from([0, 1, 2, "50%"]), st.sampled_from([0, 1, 2, "50%"])
    ),
    st.tuples(st.just(on_delete)),
    st.tuples(st.just(taint), NODES, st.sampled_from(["", "NoSchedule", "NoExecute"])),
    st.tuples(st.just(lose_node), NODES),
    st.tuples(st.just(find_node), NODES),
    st.tuples(st.just(delete_pod), st.integers(0, 9), st.booleans()),
    st.tuples(st.just(sicken), st.integers(0, 9), OUTCOMES),
    st.tuples(st.just(hang), st.integers(0, 9)),
    st.tuples(st.just(crash), st.integers(1, 12)),
    st.tuples(st.just(wait), st.sampled_from([1, 6, 700])),
)
SPECS = st.fixed_dictionaries(
    {
        "surge": st.sampled_from([0, 1, 2, "50%"]),
        "unavailable": st.sampled_from([0, 1, 2, "50%"]),
        "minReadySeconds": st.sampled_from([0, 0, 5]),
        "revisionHistoryLimit": st.sampled_from([0, 2, 10]),
    }
).filter(lambda spec: (spec["surge"] == 0) != (spec["unavailable"] == 0))
SCENARIOS = st.lists(st.tuples(OPERATIONS, st.booleans()), max_size=14)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    return lambda: tmp_path_factory.mktemp("daemonset") / "state"


# --- what holds -----------------------------------------------------------------------------------


@settings(
    max_examples=14, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(spec=SPECS, operations=SCENARIOS, faults=FAULTS)
@example(
    faults=None,
    spec={"surge": 1, "unavailable": 0},
    operations=[
        ((update, 2, "not-ready"), True),
        ((sicken, 0, "ready"), True),
        ((update, 3, "ready"), True),
    ],
)
@example(
    faults=None,
    spec={"surge": 0, "unavailable": 1},
    operations=[
        ((update, 2, "ready"), True),
        ((update, 3, "ready"), True),
        ((update, 2, "ready"), True),
    ],
)
@example(
    faults=None,
    spec={"surge": 0, "unavailable": 1},
    operations=[
        ((hang, 0), False),
        ((update, 2, "ready"), True),
        ((lose_node, 2), True),
        ((find_node, 2), True),
    ],
)
def test_rolling_update_step_stays_within_the_strategy(
    folders: Callable[[], Any],
    spec: dict[str, Any],
    operations: list[tuple[tuple[Any, ...], bool]],
    faults: Any,
) -> None:
    """Check every step, whatever is rolled out, broken, tainted or lost, and wherever the manager
    crashes."""
    lab = DaemonLab(folders(), faults)
    lab.create(SETS, daemon_set(**spec), "default")
    lab.run()
    lab.wait(10)
    lab.run()
    for (act, *arguments), settle in operations:
        act(lab, *arguments)
        if settle:
            lab.run()
            check_rest(lab)
    mend(lab)
    check_converged(lab)
    assert disagreements(lab.cluster.store) == []
    lab.cluster.close()


def check_rest(lab: DaemonLab) -> None:
    """Check that at rest every node that should have a pod has one, or one being deleted, and that
    the status counts them.

    A deleted node, or a new NoSchedule taint, reaches the status only with the next sync, so one is
    caused first, and another if a node went down or came back meanwhile: with faults a run takes
    time.
    """
    for _ in range(5):
        wanting = lab.look().wanting
        lab.looks += 1
        lab.change(
            SETS,
            "agent",
            lambda obj: obj["metadata"]["annotations"].update(look=str(lab.looks)),
            "default",
        )
        lab.run()
        if lab.look().wanting == wanting:
            break
    seen = lab.look()
    failed = {
        pod["spec"].get("nodeName") for pod in lab.pods() if pod["status"]["phase"] == "Failed"
    }
    for node in seen.wanting - failed:
        assert seen.pods.get(node) or seen.going.get(node), f"no pod for {node}: {seen}"
    status, expected = seen.daemon_set["status"], counts(seen, lab.client)
    assert {
        "desired": status["desiredNumberScheduled"],
        "current": status["currentNumberScheduled"],
        "ready": status["numberReady"],
        "available": status.get("numberAvailable", 0),
        "updated": status.get("updatedNumberScheduled", 0),
        "misscheduled": status["numberMisscheduled"],
    } == expected, seen
    assert status.get("numberUnavailable", 0) == expected["desired"] - expected["available"]
    assert status["observedGeneration"] == seen.daemon_set["metadata"]["generation"]
    newest = max(seen.revisions, key=lambda one: one["revision"])
    assert newest["data"]["spec"]["template"] == {
        **seen.daemon_set["spec"]["template"],
        "$patch": "replace",
    }


def mend(lab: DaemonLab) -> None:
    """Restore all nodes, remove their taints, roll out a working template, and delete pods that
    hang."""
    for number in range(1, 6):
        find_node(lab, number)
        taint(lab, number, "")
    lab.edit(
        updateStrategy={
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2},
        }
    )
    lab.retemplate("agent:9", "ready", None)
    for _ in range(3):
        lab.run()
        lab.wait(1000)
        lab.run()
        for pod in lab.pods():
            if not is_pod_active(pod):
                lab.client.delete("pods", name_of(pod), namespace="default",
                                  options=DeleteOptions(grace_period_seconds=0))  # fmt: skip
    lab.run()
    lab.wait(10)
    lab.run()


def check_converged(lab: DaemonLab) -> None:
    seen = lab.look()
    assert {
        node: [pod["spec"]["containers"][0]["image"] for pod in pods]
        for node, pods in seen.pods.items()
    } == {f"node-{number}": ["agent:9"] for number in range(1, 6)}
    assert seen.served() == seen.wanting
    check_rest(lab)
    assert len(seen.revisions) - 1 <= seen.daemon_set["spec"]["revisionHistoryLimit"]
    lab.client.delete(SETS, "agent", namespace="default")
    lab.run()
    assert (lab.pods(), lab.client.list(REVISIONS).items) == ([], [])
