"""The revisions of StatefulSets: numbers, limits, collisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from kubepy.api.meta import Object, labels_of, name_of, uid_of
from tests.controllers.statefulset_objects import REVISIONS, SETS, StatefulLab, stateful_set
from tests.stores import disagreements


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[StatefulLab]:
    made = StatefulLab(tmp_path / "state")
    yield made
    assert disagreements(made.cluster.store) == []
    made.cluster.close()


def numbers(lab: StatefulLab) -> dict[str, int]:
    return {
        one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: one["revision"]
        for one in lab.client.list(REVISIONS, namespace="default").items
    }


def test_going_back_gives_old_revision_newest_number(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1, outcome="ready"))
    lab.run()
    for image in ("db:2", "db:3", "db:1"):
        lab.retemplate(image)
        lab.run()
    assert numbers(lab) == {"db:2": 2, "db:3": 3, "db:1": 4}


def test_history_is_cut_to_its_limit_but_keeps_what_pod_uses(lab: StatefulLab) -> None:
    lab.make(
        stateful_set(
            replicas=2,
            outcome="ready",
            revisionHistoryLimit=1,
            updateStrategy={"rollingUpdate": {"partition": 1}},
        )
    )
    lab.run()
    for image in ("db:2", "db:3", "db:4", "db:5"):
        lab.retemplate(image)
        lab.run()
    assert lab.images() == {0: "db:1", 1: "db:5"}
    assert sorted(numbers(lab)) == ["db:1", "db:4", "db:5"]


def test_revision_that_only_pod_uses_is_kept(lab: StatefulLab) -> None:
    lab.make(
        stateful_set(
            outcome="ready",
            revisionHistoryLimit=0,
            updateStrategy={"rollingUpdate": {"partition": 1}},
        )
    )
    lab.run()
    lab.retemplate("db:2")
    lab.run()
    lab.edit(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    lab.retemplate("db:3")
    lab.run()
    assert lab.images() == {0: "db:1", 1: "db:2", 2: "db:3"}
    assert numbers(lab) == {"db:1": 1, "db:2": 2, "db:3": 3}


def test_limit_below_zero_keeps_all_history(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1, outcome="ready", revisionHistoryLimit=-1))
    for image in ("db:1", "db:2", "db:3"):
        lab.retemplate(image)
        lab.run()
    assert numbers(lab) == {"db:1": 1, "db:2": 2, "db:3": 3}


def test_revision_name_taken_raises_the_collision_count(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1))
    lab.run()
    [taken] = lab.client.list(REVISIONS, namespace="default").items
    lab.client.delete(SETS, "db", namespace="default")
    lab.run()
    metadata = {"name": name_of(taken), "labels": {"app": "other"}}
    lab.create(REVISIONS, {**taken, "metadata": metadata, "data": {"spec": {}}}, "default")
    lab.make(stateful_set(replicas=1))
    lab.run()
    status = lab.set()["status"]
    assert (status["collisionCount"], status["currentRevision"] == name_of(taken)) == (1, False)
    made = lab.client.get(REVISIONS, status["currentRevision"], namespace="default")
    hashed = name_of(taken).removeprefix("db-")  # the label holds the hash before the collision
    assert labels_of(made) == {"app": "db", "controller.kubernetes.io/hash": hashed}


# --- revisions that another server wrote


def rewrite(lab: StatefulLab, revision: Object, change: Callable[[Object], None]) -> Object:
    """Store a revision with other data, which no update may do."""
    lab.client.delete(REVISIONS, name_of(revision), namespace="default")
    written = deepcopy(revision)
    del written["metadata"]["resourceVersion"]
    change(written["data"]["spec"])
    return lab.create(REVISIONS, written, "default")


def write_null_timestamp(spec: Object) -> None:
    """Rewrite a template as servers before v1.34 wrote it."""
    spec["template"]["metadata"]["creationTimestamp"] = None


def leave_out_defaults(spec: Object) -> None:
    """Rewrite a template as a server without those fields wrote it."""
    for name in ("dnsPolicy", "securityContext", "terminationGracePeriodSeconds"):
        del spec["template"]["spec"][name]
    del spec["template"]["spec"]["containers"][0]["imagePullPolicy"]


def merge_instead_of_replace(spec: Object) -> None:
    del spec["template"]["$patch"]


def settled(lab: StatefulLab, **spec: object) -> list[Object]:
    """Make a set with two pods; return its revisions."""
    lab.make(stateful_set(replicas=2, outcome="ready", **spec))
    lab.run()
    return revisions(lab)


def revisions(lab: StatefulLab) -> list[Object]:
    return sorted(
        lab.client.list(REVISIONS, namespace="default").items, key=lambda one: one["revision"]
    )


@pytest.mark.parametrize(
    "change", [write_null_timestamp, leave_out_defaults, merge_instead_of_replace]
)
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_revision_in_other_words_is_used_as_it_is_and_no_pod_restarts(
    lab: StatefulLab, policy: str, change: Callable[[Object], None]
) -> None:
    [made] = settled(lab, podManagementPolicy=policy)
    uids = [uid_of(pod) for pod in lab.pods()]
    written = rewrite(lab, made, change)
    lab.run()
    lab.edit(minReadySeconds=1)  # another sync, at another generation
    lab.run()
    assert [uid_of(pod) for pod in lab.pods()] == uids
    assert revisions(lab) == [written]
    status = lab.set()["status"]
    assert (status["currentRevision"], status["updateRevision"]) == (name_of(made), name_of(made))
    assert (status["collisionCount"], status["updatedReplicas"]) == (0, 2)


def test_scaled_up_pod_is_made_from_revision_in_other_words(lab: StatefulLab) -> None:
    [made] = settled(lab)
    rewrite(lab, made, write_null_timestamp)
    lab.edit(replicas=3)
    lab.run()
    pods = lab.pods()
    assert [labels_of(pod)["controller-revision-hash"] for pod in pods] == [name_of(made)] * 3
    assert [pod["spec"]["containers"] for pod in pods] == [pods[0]["spec"]["containers"]] * 3


def test_new_template_after_revision_in_other_words_gets_revision_of_its_own(
    lab: StatefulLab,
) -> None:
    [made] = settled(lab)
    rewrite(lab, made, write_null_timestamp)
    lab.retemplate("db:2")
    lab.run()
    assert lab.images() == {0: "db:2", 1: "db:2"}
    assert numbers(lab) == {"db:1": 1, "db:2": 2}


def test_older_revision_in_other_words_is_not_used_again(lab: StatefulLab) -> None:
    """Rewrite the older revision: only the newest one is compared by its restored template, as
    upstream does."""
    [made] = settled(lab)
    lab.retemplate("db:2")
    lab.run()
    rewrite(lab, made, write_null_timestamp)
    lab.retemplate("db:1")
    lab.run()
    first, _, third = revisions(lab)
    assert (name_of(first), first["revision"], third["revision"]) == (name_of(made), 1, 3)
    assert {labels_of(pod)["controller-revision-hash"] for pod in lab.pods()} == {name_of(third)}


def test_old_pods_below_partition_come_from_current_revision_in_other_words(
    lab: StatefulLab,
) -> None:
    [made] = settled(
        lab, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    )
    rewrite(lab, made, write_null_timestamp)
    lab.retemplate("db:2")
    lab.run()
    lab.client.delete("pods", "db-0", namespace="default")
    lab.run()
    assert lab.images() == {0: "db:1", 1: "db:2"}
    assert labels_of(lab.pods()[0])["controller-revision-hash"] == name_of(made)


@pytest.mark.parametrize(
    "data", [{"spec": {"template": "none"}}, {"spec": {"template": {"spec": 1}}}, {"spec": None}]
)
def test_newest_revision_that_restores_no_template_is_passed_over(
    lab: StatefulLab, data: Object
) -> None:
    """Add a revision with the set's labels and no template: it is adopted, and does not make the
    sync fail."""
    [made] = settled(lab)
    rewrite(lab, made, write_null_timestamp)
    lab.create(
        REVISIONS,
        {"metadata": {"name": "odd", "labels": {"app": "db"}}, "data": data, "revision": 7},
        "default",
    )
    lab.edit(minReadySeconds=1)
    lab.run()
    assert not lab.failed
    assert [(name_of(one) == "odd", one["revision"]) for one in revisions(lab)] == [
        (False, 1),
        (True, 7),
        (False, 8),
    ]
    assert lab.set()["status"]["updateRevision"] == name_of(revisions(lab)[-1])
