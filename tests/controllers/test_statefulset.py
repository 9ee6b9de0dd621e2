"""StatefulSets: identity, order, updates, adoption, history, claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.api.meta import Object, is_being_deleted, labels_of, name_of, uid_of
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
from tests.stores import disagreements


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[StatefulLab]:
    made = StatefulLab(tmp_path / "state")
    yield made
    assert disagreements(made.cluster.store) == []
    made.cluster.close()


def delete(lab: StatefulLab, name: str) -> None:
    lab.client.delete("pods", name, namespace="default")


def label(lab: StatefulLab, name: str, **labels: str | None) -> None:
    def change(pod: Object) -> None:
        changed = {**pod["metadata"]["labels"], **labels}
        pod["metadata"]["labels"] = {
            key: value for key, value in changed.items() if value is not None
        }

    lab.change("pods", name, change, "default")


def ready(lab: StatefulLab) -> dict[int, bool]:
    return {
        ordinal(pod): any(
            one["type"] == "Ready" and one["status"] == "True"
            for one in pod["status"].get("conditions", [])
        )
        for pod in lab.pods()
    }


# --- identity -------------------------------------------------------------------------------------


def test_member_is_named_labelled_and_addressed_by_its_ordinal(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1, ordinals={"start": 7}))
    lab.run()
    [pod] = lab.pods()
    assert name_of(pod) == "db-7"
    assert labels_of(pod) == {
        "app": "db",
        "apps.kubernetes.io/pod-index": "7",
        "statefulset.kubernetes.io/pod-name": "db-7",
        "controller-revision-hash": lab.set()["status"]["updateRevision"],
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-7", "db")
    assert pod["metadata"]["generateName"] == "db-"


def test_pod_name_label_is_given_back_and_brings_index_with_it(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=1))
    lab.run()
    whole = labels_of(lab.pods()[0])
    label(lab, "db-0", **{"apps.kubernetes.io/pod-index": None})
    lab.run()
    assert "apps.kubernetes.io/pod-index" not in labels_of(
        lab.pods()[0]
    )  # upstream compares the name only
    label(lab, "db-0", **{"statefulset.kubernetes.io/pod-name": None})
    lab.run()
    assert labels_of(lab.pods()[0]) == whole


def test_pod_without_its_revision_is_replaced(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=2))
    lab.run()
    before = [uid_of(pod) for pod in lab.pods()]
    label(lab, "db-0", **{"controller-revision-hash": None})
    lab.run()
    assert [uid_of(pod) == uid for pod, uid in zip(lab.pods(), before, strict=True)] == [
        False,
        True,
    ]


# --- order ----------------------------------------------------------------------------------------


def test_next_pod_waits_until_one_before_is_ready(lab: StatefulLab) -> None:
    lab.make(stateful_set(outcome="not-ready"))
    lab.run()
    assert ready(lab) == {0: False}


def test_parallel_set_makes_all_at_once(lab: StatefulLab) -> None:
    lab.make(stateful_set(outcome="not-ready", podManagementPolicy="Parallel"))
    lab.run()
    assert ready(lab) == {0: False, 1: False, 2: False}


def test_min_ready_seconds_pass_between_one_pod_and_next(lab: StatefulLab) -> None:
    lab.make(stateful_set(minReadySeconds=10))
    seen = []
    for seconds in (0, 9, 10, 20, 30):
        lab.pass_time(seconds)
        lab.run()
        seen.append((len(lab.pods()), lab.set()["status"]["availableReplicas"]))
    assert seen == [(1, 0), (1, 0), (2, 1), (3, 2), (3, 3)]


def test_stuck_member_holds_up_scaling_down(lab: StatefulLab) -> None:
    lab.make(stateful_set())
    lab.run()
    set_ready(lab, "db-0", "False")
    lab.edit(replicas=1)
    lab.run()
    assert ready(lab) == {0: False, 1: True, 2: True}
    set_ready(lab, "db-0", "True")
    lab.run()
    assert ready(lab) == {0: True}


def test_stuck_highest_pod_is_scaled_away(lab: StatefulLab) -> None:
    lab.make(stateful_set())
    lab.run()
    set_ready(lab, "db-2", "False")
    lab.edit(replicas=2)
    lab.run()
    assert ready(lab) == {0: True, 1: True}


def test_two_broken_pods_beyond_replicas_block_each_other(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=4))
    lab.run()
    for name in ("db-2", "db-3"):
        set_ready(lab, name, "False")
    lab.edit(replicas=1)
    lab.run()
    assert ready(lab) == {0: True, 1: True, 2: False, 3: False}
    set_ready(lab, "db-2", "True")
    lab.run()
    assert ready(lab) == {0: True}


def test_pod_that_hangs_holds_up_those_below_it(lab: StatefulLab) -> None:
    obj = stateful_set()
    obj["spec"]["template"]["metadata"]["annotations"] = {"kubepy.dev/termination": "stuck"}
    lab.make(obj)
    lab.run()
    lab.edit(replicas=1)
    lab.run()
    assert {name_of(pod): is_being_deleted(pod) for pod in lab.pods()} == {
        "db-0": False,
        "db-1": False,
        "db-2": True,
    }


def test_parallel_set_stops_at_batch_that_fails(lab: StatefulLab) -> None:
    lab.create(
        "pods",
        {**bare_pod("db-1"), "metadata": {"name": "db-1", "labels": {"app": "other"}}},
        "default",
    )
    lab.make(stateful_set(replicas=6, podManagementPolicy="Parallel"))
    lab.run()
    assert [name_of(pod) for pod in lab.pods()] == [
        "db-0",
        "db-2",
    ]  # of batches of one, two and three


def test_pod_that_says_it_is_ready_but_does_not_run_is_not_counted_as_ready(
    lab: StatefulLab,
) -> None:
    lab.make(stateful_set(podManagementPolicy="Parallel"))
    lab.run()
    lab.change(
        "pods", "db-1", lambda pod: pod["status"].update(phase="Unknown"), "default", "status"
    )
    lab.run()
    status = lab.set()["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 2, 2)


def set_ready(lab: StatefulLab, name: str, status: str) -> None:
    def change(pod: Object) -> None:
        for condition in pod["status"]["conditions"]:
            if condition["type"] == "Ready":
                condition["status"] = status

    lab.change("pods", name, change, "default", "status")


def test_failed_member_is_made_again(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=2))
    lab.run()
    before = {name_of(pod): uid_of(pod) for pod in lab.pods()}
    lab.change(
        "pods", "db-0", lambda pod: pod["status"].update(phase="Failed"), "default", "status"
    )
    lab.run()
    after = {name_of(pod): uid_of(pod) for pod in lab.pods()}
    assert (after["db-0"] != before["db-0"], after["db-1"] == before["db-1"]) == (True, True)


# --- updates --------------------------------------------------------------------------------------


def test_canary_stays_above_partition_until_that_falls(lab: StatefulLab) -> None:
    lab.make(stateful_set(replicas=4, updateStrategy={"rollingUpdate": {"partition": 3}}))
    lab.run()
    lab.retemplate("db:2")
    lab.run()
    old, new = lab.set()["status"]["currentRevision"], lab.set()["status"]["updateRevision"]
    assert lab.images() == {0: "db:1", 1: "db:1", 2: "db:1", 3: "db:2"}
    delete(lab, "db-1")
    delete(lab, "db-3")
    lab.run()
    assert [revision(pod) for pod in lab.pods()] == [old, old, old, new]
    lab.edit(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}})
    lab.run()
    assert [revision(pod) for pod in lab.pods()] == [old, new, new, new]
    lab.edit(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    lab.run()
    assert {revision(pod) for pod in lab.pods()} == {new}
    assert lab.set()["status"]["currentRevision"] == new


def test_partition_counts_from_first_ordinal(lab: StatefulLab) -> None:
    lab.make(
        stateful_set(
            replicas=3, ordinals={"start": 5}, updateStrategy={"rollingUpdate": {"partition": 2}}
        )
    )
    lab.run()
    lab.retemplate("db:2")
    lab.run()
    assert lab.images() == {5: "db:1", 6: "db:1", 7: "db:2"}


def test_low_pod_mid_update_without_rolling_update_block_comes_back_old(lab: StatefulLab) -> None:
    lab.make(stateful_set(updateStrategy={"type": "RollingUpdate"}))
    lab.run()
    lab.retemplate("db:2", "not-ready")
    lab.run()
    assert lab.images() == {0: "db:1", 1: "db:1", 2: "db:2"}
    delete(lab, "db-0")
    lab.run()
    assert lab.images() == {0: "db:1", 1: "db:1", 2: "db:2"}


def test_broken_update_of_ordered_set_is_mended_by_hand(lab: StatefulLab) -> None:
    lab.make(stateful_set())
    lab.run()
    lab.retemplate("db:2", "crash-loop")
    lab.run()
    lab.retemplate("db:3")
    lab.run()
    assert lab.images() == {0: "db:1", 1: "db:1", 2: "db:2"}
    delete(lab, "db-2")
    lab.run()
    assert lab.images() == {0: "db:3", 1: "db:3", 2: "db:3"}


def test_parallel_set_mends_itself(lab: StatefulLab) -> None:
    lab.make(stateful_set(podManagementPolicy="Parallel"))
    lab.run()
    lab.retemplate("db:2", "crash-loop")
    lab.run()
    assert lab.images() == {0: "db:1", 1: "db:1", 2: "db:2"}
    lab.retemplate("db:3")
    lab.run()
    assert lab.images() == {0: "db:3", 1: "db:3", 2: "db:3"}
    assert lab.set()["status"] | {"collisionCount": 0} == lab.set()["status"]


def test_update_is_not_complete_while_pod_beyond_range_hangs(lab: StatefulLab) -> None:
    lab.make(stateful_set(podManagementPolicy="Parallel"))
    lab.run()
    set_ready(lab, "db-2", "False")
    lab.change(
        "pods",
        "db-2",
        lambda pod: pod["metadata"].update(annotations={"kubepy.dev/termination": "stuck"}),
        "default",
    )
    lab.edit(replicas=2)
    lab.retemplate("db:2")
    lab.run()
    status = lab.set()["status"]
    assert lab.images() == {0: "db:2", 1: "db:2", 2: "db:1"}
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 2, 2)
    assert status["currentRevision"] != status["updateRevision"]


def test_on_delete_waits_and_keeps_its_current_revision(lab: StatefulLab) -> None:
    lab.make(stateful_set(updateStrategy={"type": "OnDelete"}))
    lab.run()
    lab.retemplate("db:2")
    lab.run()
    assert set(lab.images().values()) == {"db:1"}
    for name in ("db-1", "db-0", "db-2"):
        delete(lab, name)
    lab.edit(replicas=4)
    lab.run()
    assert set(lab.images().values()) == {"db:2"}
    status = lab.set()["status"]
    assert (status["currentRevision"] != status["updateRevision"], status["updatedReplicas"]) == (
        True,
        4,
    )


def test_set_that_is_being_deleted_makes_no_pods_but_counts_them(lab: StatefulLab) -> None:
    lab.make(stateful_set())
    lab.run()
    lab.change(SETS, "db", lambda one: one["metadata"].update(finalizers=["test/held"]), "default")
    lab.client.delete(SETS, "db", namespace="default")
    delete(lab, "db-0")
    lab.run()
    assert ([name_of(pod) for pod in lab.pods()], lab.set()["status"]["replicas"]) == (
        ["db-1", "db-2"],
        2,
    )


def test_pod_that_is_going_counts_as_ready_but_at_no_revision(lab: StatefulLab) -> None:
    obj = stateful_set()
    obj["spec"]["template"]["metadata"]["annotations"] = {"kubepy.dev/termination": "stuck"}
    lab.make(obj)
    lab.run()
    delete(lab, "db-1")
    lab.run()
    status = lab.set()["status"]
    assert {
        name: status[name] for name in status if name.endswith("Replicas") or name == "replicas"
    } == {
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "currentReplicas": 2,
        "updatedReplicas": 2,
    }


# --- ownership ------------------------------------------------------------------------------------


def test_orphaning_deletion_leaves_pods_revisions_and_claims_to_next_set(lab: StatefulLab) -> None:
    lab.create("storageclasses.storage.k8s.io", storage_class())
    lab.make(stateful_set(claims=True))
    lab.run()
    before = {name_of(pod): uid_of(pod) for pod in lab.pods()}
    revisions, claims = lab.names(REVISIONS, "default"), lab.names(CLAIMS)
    lab.client.delete(
        SETS, "db", namespace="default", options=DeleteOptions(propagation_policy="Orphan")
    )
    lab.run()
    assert lab.names("pods") == sorted(before)
    lab.make(stateful_set(claims=True))
    lab.run()
    assert {name_of(pod): uid_of(pod) for pod in lab.pods()} == before
    assert (lab.names(REVISIONS, "default"), lab.names(CLAIMS)) == (revisions, claims)
    assert lab.set()["status"]["readyReplicas"] == 3


def test_orphaned_revisions_are_adopted_by_set_of_any_name(lab: StatefulLab) -> None:
    lab.make(stateful_set("blue", replicas=1))
    lab.run()
    [name] = lab.names(REVISIONS, "default")
    lab.client.delete(
        SETS, "blue", namespace="default", options=DeleteOptions(propagation_policy="Orphan")
    )
    lab.run()
    green = stateful_set("green", replicas=1, selector={"matchLabels": {"app": "blue"}})
    green["spec"]["template"]["metadata"]["labels"] = {"app": "blue"}
    lab.make(green)
    lab.run()
    assert lab.set("green")["status"]["currentRevision"] == name
    assert [name_of(pod) for pod in lab.pods("green")] == ["green-0"]


def test_released_pod_keeps_its_place_until_it_is_taken_back(lab: StatefulLab) -> None:
    lab.make(stateful_set())
    lab.run()
    [uid] = [uid_of(pod) for pod in lab.pods() if name_of(pod) == "db-1"]
    label(lab, "db-1", app="gone")
    lab.run()
    assert ([name_of(pod) for pod in lab.pods()], lab.set()["status"]["replicas"]) == (
        ["db-0", "db-2"],
        2,
    )
    label(lab, "db-1", app="db")
    lab.run()
    assert [uid_of(pod) for pod in lab.pods() if name_of(pod) == "db-1"] == [uid]


def bare_pod(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "db"}},
        "spec": {"containers": [{"name": "c", "image": "x"}], "nodeName": "node-1"},
    }


def test_pod_with_labels_and_name_of_member_is_adopted_and_replaced(lab: StatefulLab) -> None:
    made = {
        name: uid_of(lab.create("pods", bare_pod(name), "default"))
        for name in ("db-0", "db-9", "other")
    }
    lab.make(stateful_set(replicas=1))
    lab.run()
    assert [name_of(pod) for pod in lab.pods()] == ["db-0"]
    assert uid_of(lab.pods()[0]) != made["db-0"]
    assert lab.names("pods") == ["db-0", "other"]  # db-9 was adopted as well, and is out of range


def test_pod_of_name_that_does_not_fit_is_in_way_and_nothing_is_told(lab: StatefulLab) -> None:
    lab.create(
        "pods",
        {**bare_pod("db-0"), "metadata": {"name": "db-0", "labels": {"app": "other"}}},
        "default",
    )
    lab.make(stateful_set())
    lab.run()
    assert (lab.pods(), lab.messages("StatefulSet", "db")) == ([], [])


def test_pod_whose_number_has_leading_zeros_takes_place_that_it_cannot_fill(
    lab: StatefulLab,
) -> None:
    lab.create("pods", bare_pod("db-01"), "default")
    lab.make(stateful_set())
    lab.run()
    assert [name_of(pod) for pod in lab.pods()] == ["db-0", "db-01"]
    assert lab.messages("StatefulSet", "db") == [
        "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful",
        'FailedUpdate: Update Pod db-1 in StatefulSet db failed error: pods "db-1" not found',
    ]


def test_pod_whose_number_is_too_large_is_owned_and_left_alone(lab: StatefulLab) -> None:
    lab.create("pods", bare_pod("db-4294967296"), "default")
    lab.make(stateful_set(replicas=1))
    lab.run()
    assert ([name_of(pod) for pod in lab.pods()], lab.set()["status"]["replicas"]) == (
        ["db-0", "db-4294967296"],
        1,
    )
