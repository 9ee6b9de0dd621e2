"""`rollout` status, history and undo as functions, without a cluster."""

import pytest

from kubepy.api.meta import Object
from kubepy.api.scheme import Scheme
from kubepy.apiserver.request import JSON_PATCH, STRATEGIC_MERGE_PATCH
from kubepy.cli.errors import CliError
from kubepy.cli.rollout.revisions import Revision, require_revisions
from kubepy.cli.rollout.status import RolloutStatus as Progress
from kubepy.cli.rollout.status import daemon_set, deployment, stateful_set, viewer_for
from kubepy.cli.rollout.undo import find_revision, plan_rollback, require_not_paused

SCHEME = Scheme()


def workload(kind: str, status: Object, generation: int = 1, **spec: object) -> Object:
    return {
        "kind": kind,
        "metadata": {"name": "x", "generation": generation},
        "spec": spec,
        "status": {"observedGeneration": 1, **status},
    }


ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


@pytest.mark.parametrize(
    ("status", "progress"),
    [
        (
            {"desiredNumberScheduled": 3, "updatedNumberScheduled": 1},
            Progress(
                'Waiting for daemon set "x" rollout to finish: 1 out of 3 new pods have been '
                "updated...",
                False,
            ),
        ),
        (
            {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 2},
            Progress(
                'Waiting for daemon set "x" rollout to finish: 2 of 3 updated pods are '
                "available...",
                False,
            ),
        ),
        (
            {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3},
            Progress('daemon set "x" successfully rolled out', True),
        ),
        ({}, Progress('daemon set "x" successfully rolled out', True)),
    ],
)
def test_daemon_set_is_done_when_all_pods_are_updated_and_available(
    status: Object, progress: Progress
) -> None:
    assert daemon_set(workload("DaemonSet", status, updateStrategy=ROLLING), 0) == progress


def test_spec_that_was_not_observed_is_waited_for() -> None:
    newer = workload("DaemonSet", {}, generation=2, updateStrategy=ROLLING)
    assert daemon_set(newer, 0) == Progress(
        "Waiting for daemon set spec update to be observed...", False
    )


@pytest.mark.parametrize("view", [daemon_set, stateful_set])
def test_rollout_status_of_on_delete_is_an_error(view) -> None:
    with pytest.raises(CliError, match="only available for RollingUpdate strategy type"):
        view(workload("DaemonSet", {}, updateStrategy={"type": "OnDelete"}), 0)


@pytest.mark.parametrize(
    ("status", "message", "done"),
    [
        ({"updatedReplicas": 1}, "1 out of 2 new replicas have been updated...", False),
        ({"updatedReplicas": 2, "replicas": 3}, "1 old replicas are pending termination...", False),
        (
            {"updatedReplicas": 2, "replicas": 2, "availableReplicas": 1},
            "1 of 2 updated replicas are available...",
            False,
        ),
        (
            {"updatedReplicas": 2, "replicas": 2, "availableReplicas": 2},
            "successfully rolled out",
            True,
        ),
    ],
)
def test_deployment_goes_through_its_states(status: Object, message: str, done: bool) -> None:
    progress = deployment(workload("Deployment", status, replicas=2), 0)
    assert progress.message.endswith(message)
    assert progress.done == done


def test_deployment_past_its_deadline_is_error() -> None:
    stuck = {
        "conditions": [
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
        ]
    }
    with pytest.raises(CliError, match='deployment "x" exceeded its progress deadline'):
        deployment(workload("Deployment", stuck, replicas=1), 0)


def test_deployment_at_another_revision_is_error() -> None:
    with pytest.raises(
        CliError, match=r"desired revision \(3\) is different from the running revision \(0\)"
    ):
        deployment(workload("Deployment", {}, replicas=1), 3)


@pytest.mark.parametrize(
    ("partition", "updated", "message", "done"),
    [
        (
            0,
            1,
            "Waiting for partitioned roll out to finish: 1 out of 3 new pods have been updated...",
            False,
        ),
        (2, 1, "partitioned roll out complete: 1 new pods have been updated...", True),
        (7, 0, "partitioned roll out complete: 0 new pods have been updated...", True),
    ],
)
def test_stateful_set_counts_from_its_partition(
    partition: int, updated: int, message: str, done: bool
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    found = workload(
        "StatefulSet",
        {"readyReplicas": 3, "updatedReplicas": updated},
        replicas=3,
        updateStrategy=strategy,
    )
    assert stateful_set(found, 0) == Progress(message, done)


def test_stateful_set_without_block_goes_by_its_revisions() -> None:
    found = workload(
        "StatefulSet",
        {
            "readyReplicas": 1,
            "currentReplicas": 1,
            "currentRevision": "x-1",
            "updateRevision": "x-1",
        },
        replicas=1,
        updateStrategy={"type": "RollingUpdate"},
    )
    assert stateful_set(found, 0) == Progress(
        "statefulset rolling update complete 1 pods at revision x-1...", True
    )
    found["status"]["updateRevision"] = "x-2"
    assert stateful_set(found, 0) == Progress(
        "waiting for statefulset rolling update to complete 0 pods at revision x-2...", False
    )


def test_kinds_without_rollouts_are_named() -> None:
    with pytest.raises(CliError, match="no status viewer has been implemented for Node"):
        viewer_for(SCHEME.by_key("nodes"))
    with pytest.raises(
        CliError,
        match=r'error retrieving history for "Node", no visitor method exists for \{ Node\}',
    ):
        require_revisions(SCHEME.by_key("nodes"), "history", "history viewer")
    with pytest.raises(
        CliError, match=r'no history viewer has been implemented for "ReplicaSet\.apps"'
    ):
        require_revisions(SCHEME.by_key("replicasets.apps"), "history", "history viewer")


# --- going back -----------------------------------------------------------------------------------


def template(image: str, **labels: str) -> Object:
    """Return a template as the API server stores it."""
    return {
        "metadata": {"labels": {"app": "x", **labels}},
        "spec": {"containers": [{"name": "c", "image": image, "resources": {}}]},
    }


def kept(number: int, image: str) -> Revision:
    data = {"spec": {"template": {**template(image), "$patch": "replace"}}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "x"},
        "spec": {"template": template("c:3")},
    }
    return Revision(
        number,
        {"kind": "ControllerRevision", "metadata": {"name": f"x-{number}"}, "data": data},
        workload,
    )


def test_going_back_without_number_takes_one_before_newest() -> None:
    obj = {"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {"template": template("c:3")}}
    plan = plan_rollback(obj, [kept(1, "c:1"), kept(2, "c:2"), kept(3, "c:3")], 0)
    assert plan.target.template == template("c:2")
    assert (plan.patch, plan.patch_type) == (kept(2, "c:2").source["data"], STRATEGIC_MERGE_PATCH)


def test_going_back_to_what_is_there_needs_no_patch() -> None:
    obj = {"kind": "StatefulSet", "metadata": {"name": "x"}, "spec": {"template": template("c:1")}}
    assert plan_rollback(obj, [kept(1, "c:1"), kept(2, "c:2")], 1).patch is None


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "no last revision to roll back to"),
        (7, "unable to find specified revision 7 in history"),
        (-1, "unable to find specified revision -1 in history"),
    ],
)
def test_revisions_that_are_not_there(number: int, message: str) -> None:
    obj = {"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {"template": template("c:1")}}
    with pytest.raises(CliError, match=message):
        plan_rollback(obj, [kept(1, "c:1")], number)


def replica_set(number: int, image: str, **annotations: str) -> Revision:
    source = {
        "kind": "ReplicaSet",
        "metadata": {"name": f"x-{number}", "annotations": annotations},
        "spec": {"template": template(image, **{"pod-template-hash": "abc"})},
    }
    return Revision(number, source, {"kind": "Deployment", "metadata": {"name": "x"}})


def test_deployment_takes_annotations_of_its_old_replica_set_and_keeps_its_own_bookkeeping() -> (
    None
):
    own = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "new"}
    obj = {
        "kind": "Deployment",
        "metadata": {"name": "x", "annotations": own},
        "spec": {"template": template("c:2")},
    }
    old = replica_set(1, "c:1", note="old", **{"deployment.kubernetes.io/revision": "1"})
    plan = plan_rollback(obj, [old, replica_set(2, "c:2")], 1)
    assert plan.patch_type == JSON_PATCH
    assert plan.patch == [
        {"op": "replace", "path": "/spec/template", "value": template("c:1")},
        {
            "op": "replace",
            "path": "/metadata/annotations",
            "value": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "old"},
        },
    ]


def test_paused_deployment_is_not_rolled_back() -> None:
    with pytest.raises(CliError, match="you cannot rollback a paused deployment"):
        require_not_paused({"kind": "Deployment", "spec": {"paused": True}})
    require_not_paused({"kind": "DaemonSet", "spec": {}})


def test_find_revision_by_number() -> None:
    assert find_revision([kept(1, "c:1"), kept(4, "c:2")], 4).number == 4
