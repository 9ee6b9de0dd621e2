"""Deployments: sizes, revisions, conditions and events, step by step."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, annotations_of, labels_of, name_of, owner_references, uid_of
from kubepy.api.objects.deployments import (
    DESIRED_REPLICAS,
    HASH_LABEL,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    revision_of,
)
from kubepy.controllers.deployment import sizes
from kubepy.controllers.deployment.rolling import scale_down_old
from kubepy.controllers.deployment.status import is_timed_out
from kubepy.controlplane import build_manager
from tests.controllers.deployment_objects import (
    DEPLOYMENTS,
    REPLICA_SETS,
    DeploymentLab,
    deployment,
)
from tests.stores import disagreements


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    made = DeploymentLab(tmp_path / "state")
    yield made
    assert disagreements(made.cluster.store) == []
    made.cluster.close()


def sizes_by_revision(lab: DeploymentLab) -> dict[int, int]:
    return {
        revision_of(one): one["spec"]["replicas"] for one in sorted(lab.sets(), key=revision_of)
    }


def condition(lab: DeploymentLab, kind: str) -> Object:
    found: Object = next(
        one for one in lab.deployment()["status"]["conditions"] if one["type"] == kind
    )
    return found


def noted(one: Object, key: str) -> str:
    return annotations_of(one).get(key, "")


def make(lab: DeploymentLab, **spec: Any) -> None:
    lab.make(deployment(**spec))
    lab.run()


# --- limits of scaling down in a rolling update (pure)


def sets(*counted: tuple[int, int]) -> list[Object]:
    """Return ReplicaSets of (size, available pods), oldest first."""
    return [
        {
            "metadata": {
                "name": f"web-{number}",
                "uid": f"uid-{number}",
                "creationTimestamp": f"2026-11-20T10:00:0{number}Z",
            },
            "spec": {"replicas": size},
            "status": {"availableReplicas": available},
        }
        for number, (size, available) in enumerate(counted)
    ]


def shrunk(wanted: Object, new: tuple[int, int], *old: tuple[int, int]) -> list[tuple[str, int]]:
    *others, newest = sets(*old, new)
    return [(name_of(one), size) for one, size in scale_down_old(wanted, newest, others)]


TEN = deployment(replicas=10, surge=3, unavailable=2)


@pytest.mark.parametrize(
    ("new", "old", "steps"),
    [
        pytest.param((3, 0), [(10, 10)], [("web-0", 8)], id="as far as availability allows"),
        pytest.param((5, 0), [(8, 8)], [], id="no further while the new ones are not available"),
        pytest.param((5, 5), [(8, 8)], [("web-0", 3)], id="further when they are"),
        pytest.param(
            (5, 0), [(8, 7)], [], id="what is unavailable among the new counts against the old"
        ),
        pytest.param(
            (0, 0), [(13, 8)], [("web-0", 8)], id="what is unavailable among the old goes first"
        ),
        pytest.param(
            (0, 0),
            [(5, 2), (8, 8)],
            [("web-0", 2), ("web-0", 0)],
            id="unavailable ones first, then the oldest",
        ),
        pytest.param(
            (10, 10),
            [(2, 0), (1, 1)],
            [("web-0", 0), ("web-1", 0)],
            id="everything once the new is complete",
        ),
        pytest.param((3, 0), [(8, 9)], [], id="nothing where the status is that of a larger size"),
        pytest.param((3, 0), [(3, 1), (8, 9)], [("web-0", 1)], id="nothing more after such a one"),
    ],
)
def test_rolling_update_deletes_within_max_unavailable(
    new: tuple[int, int], old: list[tuple[int, int]], steps: list[tuple[str, int]]
):
    assert shrunk(TEN, new, *old) == steps


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        ("25%", "25%", 10, (3, 2)),
        ("25%", "25%", 1, (1, 0)),
        (0, "25%", 3, (0, 1)),
        ("0%", "0%", 5, (0, 1)),
        (0, 9, 3, (0, 3)),
        ("100%", "100%", 4, (4, 4)),
        (2, 1, 0, (2, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down_but_never_both_to_nothing(
    surge: Any, unavailable: Any, replicas: int, expected: tuple[int, int]
):
    wanted = deployment(replicas=replicas, surge=surge, unavailable=unavailable)
    assert (sizes.max_surge(wanted), sizes.max_unavailable(wanted)) == expected


# --- proportional scaling


@pytest.mark.parametrize(
    ("surge", "before", "replicas", "after"),
    [
        (3, [(5, 13), (8, 13)], 15, [7, 11]),
        (3, [(7, 18), (11, 18)], 6, [4, 5]),
        (3, [(5, 13), (8, 13)], 0, [0, 0]),
        ("25%", [(6, 15), (9, 15)], 20, [10, 15]),
        ("25%", [(10, 25), (15, 25)], 9, [5, 7]),
        (0, [(5, 10), (5, 10)], 11, [5, 6]),  # the rest goes to the newer of two equals …
        (0, [(5, 10), (5, 10)], 9, [4, 5]),  # … and is taken from the older
    ],
)
def test_sizes_are_shared_in_proportion(
    surge: Any, before: list[tuple[int, int]], replicas: int, after: list[int]
):
    """Scale in proportion; ``before`` is (size, max-replicas annotation) of each ReplicaSet, oldest
    first."""
    replica_sets = sets(*((size, size) for size, _ in before))
    for one, (_, most) in zip(replica_sets, before, strict=True):
        one["metadata"]["annotations"] = {MAX_REPLICAS: str(most)}
    wanted = deployment(replicas=replicas, surge=surge, unavailable=1)
    found = {name_of(one): size for one, size in sizes.proportional_sizes(wanted, replica_sets)}
    assert [found[name_of(one)] for one in replica_sets] == after


def test_rollout_that_is_scaled_midway_keeps_its_proportions(lab):
    make(lab, replicas=4, surge=2, unavailable=1)
    lab.update("web:2", outcome="not-ready")
    lab.run()
    assert sizes_by_revision(lab) == {1: 3, 2: 3}
    lab.edit(replicas=8)
    lab.run()
    assert sizes_by_revision(lab) == {1: 5, 2: 5}
    assert [(noted(one, DESIRED_REPLICAS), noted(one, MAX_REPLICAS)) for one in lab.sets()] == [
        ("8", "10")
    ] * 2


# --- revisions


def test_new_template_is_new_revision_and_old_one_comes_back_with_new_number(lab):
    make(lab, replicas=1)
    first = uid_of(lab.newest())
    lab.update("web:2")
    lab.run()
    assert sizes_by_revision(lab) == {1: 0, 2: 1}
    lab.undo()
    lab.run()
    assert sizes_by_revision(lab) == {2: 0, 3: 1}
    assert (uid_of(lab.newest()), noted(lab.newest(), REVISION_HISTORY)) == (first, "1")
    assert noted(lab.deployment(), REVISION) == "3"
    lab.update("web:2")
    lab.run()
    lab.undo()
    lab.run()
    assert noted(lab.newest(), REVISION_HISTORY) == "1,3"


def test_its_annotations_go_to_newest_only_and_stay_there(lab):
    obj = deployment(replicas=1)
    obj["metadata"]["annotations"] = {
        "why": "one",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    lab.make(obj)
    lab.run()
    lab.update("web:2")
    lab.change(
        DEPLOYMENTS, "web", lambda one: one["metadata"]["annotations"].update(why="two"), "default"
    )
    lab.run()
    lab.change(DEPLOYMENTS, "web", lambda one: one["metadata"]["annotations"].pop("why"), "default")
    lab.run()
    assert [noted(one, "why") for one in sorted(lab.sets(), key=revision_of)] == ["one", "two"]
    assert all(
        "kubectl.kubernetes.io/last-applied-configuration" not in annotations_of(one)
        for one in lab.sets()
    )


@pytest.mark.parametrize(
    ("asked", "image", "said"),
    [
        ("1", "web:1", 'DeploymentRollback: Rolled back deployment "web" to revision 1'),
        ("0", "web:2", 'DeploymentRollback: Rolled back deployment "web" to revision 2'),
        (
            "3",
            "web:3",
            "DeploymentRollbackTemplateUnchanged: The rollback revision contains the same "
            "template as current "
            'deployment "web"',
        ),
        (
            "9",
            "web:3",
            "DeploymentRollbackRevisionNotFound: Unable to find the revision to rollback to.",
        ),
    ],
)
def test_annotation_of_old_asks_for_revision(lab, asked: str, image: str, said: str):
    make(lab, replicas=1)
    for number in (2, 3):
        lab.update(f"web:{number}")
        lab.run()
    lab.change(
        DEPLOYMENTS,
        "web",
        lambda one: one["metadata"]["annotations"].update(
            {"deprecated.deployment.rollback.to": asked}
        ),
        "default",
    )
    lab.run()
    assert lab.newest()["spec"]["template"]["spec"]["containers"][0]["image"] == image
    assert lab.newest()["spec"]["replicas"] == 1
    assert "deprecated.deployment.rollback.to" not in annotations_of(lab.deployment())
    assert [one for one in lab.messages("web") if "Rollback" in one] == [said]


def test_revision_history_is_limited_after_a_complete_rollout(lab):
    make(lab, replicas=1, revisionHistoryLimit=1)
    for number in (2, 3):
        lab.update(f"web:{number}")
        lab.run()
    assert sorted(map(revision_of, lab.sets())) == [2, 3]
    lab.update("web:4", outcome="not-ready")
    lab.run()
    assert sorted(map(revision_of, lab.sets())) == [2, 3, 4]


def test_revision_that_is_no_number_does_no_harm(lab):
    make(lab, replicas=1, revisionHistoryLimit=0)
    lab.change(
        REPLICA_SETS,
        name_of(lab.newest()),
        lambda one: one["metadata"]["annotations"].update({REVISION: "first"}),
        "default",
    )
    lab.update("web:2")
    lab.run()
    assert [noted(one, REVISION) for one in lab.sets()] == ["1"]


def test_clash_of_hashes_is_counted_and_another_name_found(lab):
    make(lab, replicas=1)
    lab.update("web:2")
    lab.run()
    taken = lab.newest()
    lab.change(
        REPLICA_SETS,
        name_of(taken),
        lambda one: one["metadata"].update(labels={"app": "other"}),
        "default",
    )
    lab.run()
    lab.wait(1)
    lab.run()
    assert lab.deployment()["status"]["collisionCount"] == 1
    assert name_of(lab.newest()) != name_of(taken)
    assert owner_references(lab.client.get(REPLICA_SETS, name_of(taken), namespace="default")) == []


def test_min_ready_seconds_reach_newest_only(lab):
    make(lab, replicas=1)
    lab.update("web:2")
    lab.run()
    lab.edit(minReadySeconds=5)
    lab.run()
    assert [
        one["spec"].get("minReadySeconds", 0) for one in sorted(lab.sets(), key=revision_of)
    ] == [0, 5]


# --- conditions


def test_progress_is_made_and_then_over(lab):
    make(lab, replicas=2)
    assert lab.conditions() == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert condition(lab, "Progressing")["message"] == (
        f'ReplicaSet "{name_of(lab.newest())}" has successfully progressed.'
    )
    assert list(lab.conditions()) == ["Available", "Progressing"]


def test_condition_that_stays_true_keeps_time_since_when_it_has_been(lab):
    make(lab, replicas=1)
    begun = condition(lab, "Progressing")["lastTransitionTime"]
    lab.wait(100)
    lab.update("web:2")
    lab.run()
    found = condition(lab, "Progressing")
    assert found["lastTransitionTime"] == begun
    assert parse_time(found["lastUpdateTime"]) - parse_time(begun) == timedelta(seconds=100)


def test_rollout_that_makes_no_progress_is_stuck_when_its_deadline_is_over(lab):
    make(lab, replicas=2, progressDeadlineSeconds=60)
    lab.update("web:2", outcome="not-ready")
    lab.run()
    assert lab.conditions()["Progressing"] == ("True", "ReplicaSetUpdated")
    lab.wait(60)
    lab.run()
    assert lab.conditions()["Progressing"] == ("True", "ReplicaSetUpdated")
    lab.wait(1)
    lab.run()
    assert lab.conditions()["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert condition(lab, "Progressing")["message"] == (
        f'ReplicaSet "{name_of(lab.newest())}" has timed out progressing.'
    )


LATE = {
    "Available": ("False", "MinimumReplicasUnavailable"),
    "Progressing": ("False", "ProgressDeadlineExceeded"),
}
STUCK = {
    "Available": ("False", "MinimumReplicasUnavailable"),
    "Progressing": ("True", "ReplicaSetUpdated"),
}


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
@pytest.mark.parametrize("outcome", ["crash-loop", "image-pull-backoff", "not-ready", "pending"])
def test_first_rollout_that_never_becomes_available_is_stuck_when_its_deadline_is_over(
    lab: DeploymentLab, outcome: str, strategy: str
) -> None:
    make(lab, replicas=2, progressDeadlineSeconds=5, outcome=outcome, strategy=strategy)
    assert lab.conditions() == STUCK
    lab.wait(5)
    lab.run()
    assert lab.conditions() == STUCK
    lab.wait(1)
    lab.run()
    assert lab.conditions() == LATE


def test_running_manager_finds_first_rollout_stuck_by_itself(lab: DeploymentLab) -> None:
    manager = build_manager(lab.cluster)
    lab.make(deployment(replicas=2, progressDeadlineSeconds=5, outcome="not-ready"))
    [due] = manager.run_until_settled().due
    assert ((due.time - lab.now).total_seconds(), lab.conditions()) == (6, STUCK)
    lab.wait(6)
    assert manager.run_until_settled().due == []
    assert lab.conditions() == LATE


def test_first_rollout_whose_pods_find_no_node_is_stuck_when_its_deadline_is_over(
    lab: DeploymentLab,
) -> None:
    obj = deployment(replicas=2, progressDeadlineSeconds=5)
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    lab.make(obj)
    lab.run()
    lab.wait(6)
    lab.run()
    assert lab.conditions() == LATE


def test_first_rollout_whose_pods_are_refused_is_stuck_when_its_deadline_is_over(
    lab: DeploymentLab,
) -> None:
    lab.create(
        "resourcequotas",
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none"},
            "spec": {"hard": {"pods": "0"}},
        },
        "default",
    )
    make(lab, replicas=2, progressDeadlineSeconds=5)
    lab.wait(6)
    lab.run()
    assert lab.conditions() == {**LATE, "ReplicaFailure": ("True", "FailedCreate")}


def test_partial_progress_begins_deadline_anew(lab: DeploymentLab) -> None:
    make(lab, replicas=3, progressDeadlineSeconds=5, outcome="not-ready")
    lab.wait(4)
    pod = name_of(lab.pods()[0])
    lab.change(
        "pods",
        pod,
        lambda obj: obj["metadata"]["annotations"].update({"kubepy.dev/outcome": "ready"}),
        "default",
    )
    lab.run()
    lab.wait(4)
    lab.run()
    assert lab.conditions() == STUCK
    lab.wait(2)
    lab.run()
    assert lab.conditions() == LATE


def test_deadline_that_is_cut_short_counts_from_last_progress(lab: DeploymentLab) -> None:
    make(lab, replicas=1, outcome="crash-loop")
    lab.wait(30)
    lab.run()
    assert lab.conditions() == STUCK
    lab.edit(progressDeadlineSeconds=20)
    lab.run()
    assert lab.conditions() == LATE


def test_deadline_is_looked_at_second_after_it_however_little_time_is_left(
    lab: DeploymentLab,
) -> None:
    make(lab, replicas=1, progressDeadlineSeconds=5, outcome="crash-loop")
    lab.wait(4.5)
    lab.change(
        "deployments.apps", "web", lambda obj: obj["metadata"].update(labels={"a": "b"}), "default"
    )
    lab.run()
    lab.wait(1.5)
    lab.run()
    assert lab.conditions() == LATE


def test_progressing_condition_without_time_is_late(lab: DeploymentLab) -> None:
    make(lab, replicas=1, outcome="crash-loop")

    def strip(obj: Object) -> None:
        for one in obj["status"]["conditions"]:
            one.pop("lastUpdateTime")

    lab.change("deployments.apps", "web", strip, "default", "status")
    lab.run()
    assert lab.conditions() == LATE


def test_rollout_that_was_late_heals_with_good_template(lab: DeploymentLab) -> None:
    make(lab, replicas=2, progressDeadlineSeconds=5, outcome="crash-loop")
    lab.wait(6)
    lab.run()
    assert lab.conditions() == LATE
    lab.update("web:2")
    lab.run()
    assert lab.conditions() == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }


def test_rollout_that_was_late_heals_when_it_is_undone(lab: DeploymentLab) -> None:
    make(lab, replicas=2, progressDeadlineSeconds=5)
    lab.update("web:2", outcome="crash-loop")
    lab.run()
    lab.wait(6)
    lab.run()
    assert lab.conditions()["Progressing"] == ("False", "ProgressDeadlineExceeded")
    lab.undo()
    lab.run()
    assert lab.conditions()["Progressing"] == ("True", "NewReplicaSetAvailable")
    lab.wait(6)
    lab.run()
    assert lab.conditions()["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_first_rollout_that_is_paused_is_late_only_after_it_was_resumed(lab: DeploymentLab) -> None:
    make(lab, replicas=2, progressDeadlineSeconds=5, outcome="crash-loop")
    lab.edit(paused=True)
    lab.run()
    lab.wait(60)
    lab.run()
    assert lab.conditions()["Progressing"] == ("Unknown", "DeploymentPaused")
    lab.edit(paused=False)
    lab.run()
    lab.wait(6)
    lab.run()
    assert lab.conditions() == LATE


def test_pods_that_end_and_are_replaced_count_as_progress(lab: DeploymentLab) -> None:
    """Replace pods that end: upstream's Deployment sees its ReplicaSet shrink and grow again each
    time."""
    make(lab, replicas=1, progressDeadlineSeconds=5, outcome="not-ready")
    lab.wait(4)
    pod = name_of(lab.pods()[0])
    lab.change(
        "pods",
        pod,
        lambda obj: obj["metadata"]["annotations"].update({"kubepy.dev/outcome": "failed"}),
        "default",
    )
    lab.run()
    lab.wait(4)
    lab.run()
    assert lab.conditions() == STUCK
    lab.wait(2)
    lab.run()
    assert lab.conditions() == LATE


def test_rollout_is_not_late_at_its_deadline_but_after_it():
    begun = parse_time("2026-11-20T10:00:00Z")
    progressing = {
        "type": "Progressing",
        "status": "True",
        "reason": "ReplicaSetUpdated",
        "lastUpdateTime": "2026-11-20T10:00:00Z",
    }
    wanted = deployment(progressDeadlineSeconds=60)
    late = [
        is_timed_out(wanted, {"conditions": [progressing]}, begun + timedelta(seconds=seconds))
        for seconds in (60, 60.001)
    ]
    assert late == [False, True]


def test_pause_does_not_count_against_deadline(lab):
    make(lab, replicas=2, progressDeadlineSeconds=60)
    lab.update("web:2", outcome="not-ready")
    lab.run()
    lab.edit(paused=True)
    lab.run()
    assert lab.conditions()["Progressing"] == ("Unknown", "DeploymentPaused")
    lab.wait(1000)
    lab.edit(paused=False)
    lab.run()
    assert lab.conditions()["Progressing"] == ("Unknown", "DeploymentResumed")
    lab.wait(61)
    lab.run()
    assert lab.conditions()["Progressing"] == ("False", "ProgressDeadlineExceeded")


def test_deployment_without_deadline_has_no_progressing_condition(lab):
    make(lab, replicas=1, progressDeadlineSeconds=2**31 - 1)
    assert list(lab.conditions()) == ["Available"]


def test_paused_deployment_scales_and_keeps_its_template(lab):
    make(lab, replicas=2)
    lab.edit(paused=True, replicas=3)
    lab.update("web:2")
    lab.run()
    assert sizes_by_revision(lab) == {1: 3}
    assert lab.deployment()["status"].get("updatedReplicas", 0) == 0


def test_too_few_available_are_told(lab):
    make(lab, replicas=4, outcome="not-ready")
    assert lab.conditions()["Available"] == ("False", "MinimumReplicasUnavailable")
    assert {
        key: value for key, value in lab.deployment()["status"].items() if key != "conditions"
    } == {
        "observedGeneration": 1,
        "replicas": 4,
        "updatedReplicas": 4,
        "unavailableReplicas": 4,
        "terminatingReplicas": 0,
    }


# --- Recreate


def test_recreate_takes_everything_down_first(lab):
    make(lab, replicas=2, strategy="Recreate")
    [slow, _] = lab.pods()
    lab.change(
        "pods",
        name_of(slow),
        lambda one: one["metadata"]["annotations"].update({"kubepy.dev/termination": "stuck"}),
        "default",
    )
    lab.update("web:2")
    lab.run()
    assert sizes_by_revision(lab) == {1: 0}
    assert len(lab.pods()) == 1
    from kubepy.apiserver.request import DeleteOptions

    lab.client.delete(
        "pods", name_of(slow), namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    lab.run()
    assert sizes_by_revision(lab) == {1: 0, 2: 2}
    assert noted(lab.newest(), MAX_REPLICAS) == "2"


# --- adoption


def test_replica_set_that_fits_is_adopted_and_one_that_no_longer_does_is_released(lab):
    make(lab, replicas=1)
    newest = lab.newest()
    lab.client.delete(DEPLOYMENTS, "web", namespace="default", options=_orphaning())
    lab.run()
    assert owner_references(lab.sets()[0]) == []
    make(lab, replicas=1)
    [adopted] = lab.sets()
    assert (uid_of(adopted), owner_references(adopted)[0]["uid"]) == (
        uid_of(newest),
        uid_of(lab.deployment()),
    )
    lab.change(
        REPLICA_SETS,
        name_of(adopted),
        lambda one: one["metadata"].update(labels={"app": "other"}),
        "default",
    )
    lab.run()
    assert (
        owner_references(lab.client.get(REPLICA_SETS, name_of(adopted), namespace="default")) == []
    )


def _orphaning() -> Any:
    from kubepy.apiserver.request import DeleteOptions

    return DeleteOptions(propagation_policy="Orphan")


# --- events


def test_deployment_scaling_writes_an_event(lab):
    make(lab, replicas=2, surge=1, unavailable=0)
    old = name_of(lab.newest())
    lab.update("web:2")
    lab.run()
    new = name_of(lab.newest())
    assert lab.messages("web") == [
        f"ScalingReplicaSet: Scaled {text}"
        for text in (
            f"up replica set {old} from 0 to 2",
            f"up replica set {new} from 0 to 1",
            f"down replica set {old} from 2 to 1",
            f"up replica set {new} from 1 to 2",
            f"down replica set {old} from 1 to 0",
        )
    ]
    assert labels_of(lab.newest())[HASH_LABEL] == new.removeprefix("web-")
