from copy import deepcopy
from datetime import timedelta

import pytest

from kubepy.controllers.daemonset.decide import DaemonSetActions, EndedPod, nodes_and_pods_to_sync
from kubepy.controllers.daemonset.placement import HERE, NOWHERE, Placement
from kubepy.controllers.daemonset.pods import for_node, new_pod, target_node_name
from kubepy.controllers.daemonset.state import FailedPodsBackoff
from tests.controllers.daemonset_objects import (
    HASH,
    NOW,
    OLD_HASH,
    daemon_set,
    pod,
    rolling,
    state_of,
)

LEAVES_RUNNING = Placement(should_run=False, should_continue=True)
SURGE = rolling(unavailable=0, surge=1)


def changes(placement, pods, strategy=None):
    actions = nodes_and_pods_to_sync(
        state_of(daemon_set(strategy=strategy), pods, {"n": placement})
    )
    return actions.nodes_needing_daemon_pods, actions.pods_to_delete


@pytest.mark.parametrize(
    ("placement", "pods", "expected"),
    [
        pytest.param(HERE, [], (["n"], []), id="none there: create"),
        pytest.param(HERE, [pod("a", "n")], ([], []), id="one there: nothing"),
        pytest.param(
            HERE,
            [pod("a", "n", deleted=True)],
            ([], []),
            id="one that is going keeps its successor away",
        ),
        pytest.param(
            HERE,
            [pod("b", "n", age=5), pod("a", "n", age=9)],
            ([], ["b"]),
            id="two: the older stays",
        ),
        pytest.param(HERE, [pod("b", "n"), pod("a", "n")], ([], ["b"]), id="as old: by name"),
        pytest.param(
            HERE,
            [pod("a", "n", age=99, bound=False), pod("b", "n", age=1)],
            ([], ["a"]),
            id="scheduled before older",
        ),
        pytest.param(LEAVES_RUNNING, [], ([], []), id="no new pod on a NoSchedule node"),
        pytest.param(LEAVES_RUNNING, [pod("a", "n")], ([], []), id="a running one stays there"),
        pytest.param(
            NOWHERE, [pod("a", "n"), pod("b", "n", deleted=True)], ([], ["a"]), id="nowhere: all go"
        ),
    ],
)
def test_rolling_update_without_surge(placement, pods, expected):
    assert changes(placement, pods) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], (["n"], []), id="none there: create"),
        pytest.param(
            [pod("a", "n", deleted=True)], (["n"], []), id="one that is going is succeeded at once"
        ),
        pytest.param(
            [pod("old", "n", hash_=OLD_HASH), pod("new", "n", ready_for=None)],
            ([], []),
            id="the old one stays until the new one is ready",
        ),
        pytest.param(
            [pod("old", "n", hash_=OLD_HASH), pod("new", "n")],
            ([], ["old"]),
            id="the new one is ready",
        ),
        pytest.param(
            [pod("old", "n", hash_=OLD_HASH, ready_for=None), pod("new", "n", ready_for=None)],
            ([], ["old"]),
            id="neither is ready: the new one stays",
        ),
        pytest.param(
            [
                pod("new", "n", age=9, ready_for=None),
                pod("newer", "n", age=1, ready_for=None),
                pod("old", "n", hash_=OLD_HASH),
            ],
            ([], ["newer"]),
            id="one of each template at most",
        ),
    ],
)
def test_rolling_update_with_surge(pods, expected):
    assert changes(HERE, pods, SURGE) == expected


@pytest.mark.parametrize(
    "pods", [[], [pod("a", "n", deleted=True)], [pod("a", "n", hash_=OLD_HASH)]]
)
def test_surge_node_that_takes_no_more_pods_gets_none(pods):
    assert changes(LEAVES_RUNNING, pods, SURGE) == ([], [])


def test_pods_that_ended_are_set_apart_and_running_one_stays():
    failed, succeeded = pod("f", "n", phase="Failed"), pod("s", "n", phase="Succeeded")
    assert nodes_and_pods_to_sync(
        state_of(daemon_set(), [failed, succeeded, pod("a", "n")], {"n": HERE})
    ) == DaemonSetActions(
        ended_pods=[
            EndedPod(
                "Warning",
                "FailedDaemonPod",
                "Found failed daemon pod default/f on node n, will try to kill it",
                "uid-agent/0/n",
            ),
            EndedPod(
                "Normal",
                "SucceededDaemonPod",
                "Found succeeded daemon pod default/s on node n, will try to delete it",
            ),
        ],
        nodes_needing_daemon_pods=[],
        pods_to_delete=["f", "s"],
    )


def test_unscheduled_pod_goes_when_its_node_is_gone():
    pods = [pod("here", "n", bound=False), pod("waits", "m", bound=False), pod("bound", "m")]
    assert nodes_and_pods_to_sync(state_of(daemon_set(), pods, {"n": HERE})).pods_to_delete == [
        "waits"
    ]


def test_failed_pods_wait_twice_as_long_each_time_up_to_fifteen_minutes():
    backoff, now, waited = FailedPodsBackoff(), NOW, []
    for _ in range(12):
        assert backoff.remaining("k", now) == 0
        backoff.step("k", now)
        waited.append(backoff.remaining("k", now))
        now += timedelta(seconds=waited[-1])
    assert waited == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_failed_pods_are_forgotten_after_half_hour():
    backoff = FailedPodsBackoff()
    for _ in range(5):
        backoff.step("k", NOW)
    backoff.step("k", NOW + timedelta(minutes=30, seconds=1))
    assert backoff.remaining("k", NOW + timedelta(minutes=30, seconds=1)) == 1


def test_back_off_goes_on_in_next_process():
    before, after = FailedPodsBackoff(), FailedPodsBackoff()
    before.step("k", NOW)
    before.step("k", NOW)
    after.recall(before.memory())
    assert after.remaining("k", NOW) == 2


def test_new_pod_is_pinned_to_its_node_and_keeps_preferences():
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]
    }
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": []}]
        }
    }
    spec = {"affinity": {"nodeAffinity": {**preferred, **required}, "podAffinity": {"x": 1}}}
    made = for_node(new_pod(daemon_set(template_spec=spec), HASH), "n-7")
    assert target_node_name(made) == "n-7"
    assert made["spec"]["affinity"]["podAffinity"] == {"x": 1}
    node_affinity = made["spec"]["affinity"]["nodeAffinity"]
    assert node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] == [
        {"weight": 1, "preference": {}}
    ]
    assert (
        len(node_affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"])
        == 1
    )


def test_new_pod_carries_revision_and_its_owner():
    owner = daemon_set(annotations={"deprecated.daemonset.template.generation": "3"})
    made = new_pod(owner, HASH)
    assert made["metadata"] == {
        "generateName": "agent-",
        "labels": {
            "app": "agent",
            "controller-revision-hash": HASH,
            "pod-template-generation": "3",
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "blockOwnerDeletion": True,
                "controller": True,
                "kind": "DaemonSet",
                "name": "agent",
                "uid": "uid-agent",
            }
        ],
    }
    assert owner["spec"]["template"]["metadata"] == {"labels": {"app": "agent"}}


def test_revision_that_pod_still_carries_is_kept_beyond_limit(lab):
    lab.node("node-1")
    lab.daemon_set("agent", updateStrategy={"type": "OnDelete"}, revisionHistoryLimit=0)
    lab.settle()
    for version in (2, 3):
        lab.change(
            "daemonsets.apps",
            "agent",
            lambda one, n=version: one["spec"]["template"]["spec"]["containers"][0].update(
                image=f"agent:{n}"
            ),
            "default",
        )
        lab.settle()
    assert sorted(one["revision"] for one in lab.client.list("controllerrevisions.apps").items) == [
        1,
        3,
    ]
    [old] = lab.client.list("pods").items
    lab.client.delete("pods", old["metadata"]["name"], namespace="default")
    lab.settle()
    assert [one["revision"] for one in lab.client.list("controllerrevisions.apps").items] == [3]


def test_revision_that_old_server_wrote_is_followed_by_another_and_no_pod_restarts(lab):
    """Start with a revision that an old server wrote: upstream compares revisions by their bytes,
    and pods by their template generation."""
    lab.node("node-1")
    lab.daemon_set("agent")
    lab.settle()
    [pod] = lab.client.list("pods").items
    [made] = lab.client.list("controllerrevisions.apps").items
    lab.client.delete("controllerrevisions.apps", made["metadata"]["name"], namespace="default")
    written = deepcopy(made)
    del written["metadata"]["resourceVersion"]
    written["data"]["spec"]["template"]["metadata"]["creationTimestamp"] = None
    lab.create("controllerrevisions.apps", written, "default")
    lab.settle()
    lab.pass_time(1)  # a name collision is a failed sync, which is tried again
    lab.settle()
    assert sorted(one["revision"] for one in lab.client.list("controllerrevisions.apps").items) == [
        1,
        2,
    ]
    daemon_set = lab.client.get("daemonsets.apps", "agent", namespace="default")
    assert daemon_set["status"]["collisionCount"] == 1
    assert daemon_set["status"]["updatedNumberScheduled"] == 1
    assert [one["metadata"]["uid"] for one in lab.client.list("pods").items] == [
        pod["metadata"]["uid"]
    ]


def test_new_revision_with_the_same_template_stays_until_something_else_happens(lab):
    """Make a revision by hand, as a test of Kubernetes does: nothing is reconciled for one that is
    new and has its owner; the next change of a revision removes one of the two."""
    lab.node("node-1")
    lab.daemon_set("agent")
    lab.settle()
    [made] = lab.client.list("controllerrevisions.apps").items
    other = deepcopy(made)
    other["metadata"]["name"] = "agent-by-hand"
    other["revision"] = 2
    del other["metadata"]["resourceVersion"], other["metadata"]["uid"]
    lab.create("controllerrevisions.apps", other, "default")
    lab.settle()
    assert len(lab.client.list("controllerrevisions.apps").items) == 2
    kept = deepcopy(
        lab.client.get("controllerrevisions.apps", "agent-by-hand", namespace="default")
    )
    kept["metadata"]["labels"]["seen"] = "yes"
    lab.client.update("controllerrevisions.apps", kept)
    lab.settle()
    assert [one["revision"] for one in lab.client.list("controllerrevisions.apps").items] == [2]
