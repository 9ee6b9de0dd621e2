from kubepy.controllers.daemonset.placement import HERE, NOWHERE
from kubepy.controllers.daemonset.status import Counts, new_status
from tests.controllers.daemonset_objects import OLD_HASH, daemon_set, pod, state_of


def counts(pods, placements, **more):
    return state_of(
        daemon_set(**more), [one for there in pods.values() for one in there], placements
    ).nodes.counts()


def test_several_pods_on_a_node_scheduled_then_oldest_counts():
    pods = {"n": [pod("new", "n", age=1), pod("old", "n", age=9, hash_=OLD_HASH)]}
    assert counts(pods, {"n": HERE}) == Counts(
        desired=1, current=1, ready=1, available=1, updated=0
    )


def test_pod_where_none_should_run_is_misscheduled_and_nothing_else():
    assert counts({"n": [pod("a", "n")]}, {"n": NOWHERE, "m": HERE}) == Counts(
        desired=1, misscheduled=1
    )
    two = {"n": [pod("a", "n"), pod("b", "n")]}
    assert counts(two, {"n": NOWHERE}) == Counts(misscheduled=1), "nodes are counted, not pods"


def test_pod_is_up_to_date_by_its_hash_or_by_older_label():
    old = pod("a", "n", hash_=OLD_HASH)
    old["metadata"]["labels"]["pod-template-generation"] = "3"
    generation = {"deprecated.daemonset.template.generation": "3"}
    assert counts({"n": [old]}, {"n": HERE}, annotations=generation).updated == 1
    assert (
        counts(
            {"n": [old]}, {"n": HERE}, annotations={"deprecated.daemonset.template.generation": "4"}
        ).updated
        == 0
    )
    assert counts({"n": [pod("a", "n")]}, {"n": HERE}, annotations=generation).updated == 1


def test_pod_that_is_pending_or_being_deleted_is_current():
    pods = {"n": [pod("a", "n", bound=False, ready_for=None)], "m": [pod("b", "m", deleted=True)]}
    assert counts(pods, {"n": HERE, "m": HERE}) == Counts(
        desired=2, current=2, ready=1, available=1, updated=2
    )


def test_ready_pod_is_available_after_min_ready_seconds():
    pods = {"n": [pod("a", "n", ready_for=29)], "m": [pod("b", "m", ready_for=30)]}
    found = counts(pods, {"n": HERE, "m": HERE}, min_ready_seconds=30)
    assert (found.ready, found.available) == (2, 1)


def test_last_three_counts_are_written_only_when_they_are_not_zero():
    owner = daemon_set(collisionCount=1, numberAvailable=7, observedGeneration=1)
    assert new_status(owner, Counts(), observed=False) == {
        "collisionCount": 1,
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
        "observedGeneration": 1,
    }
    assert new_status(owner, Counts(desired=3, available=1, updated=2), observed=True) == {
        "collisionCount": 1,
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 3,
        "numberAvailable": 1,
        "numberMisscheduled": 0,
        "numberReady": 0,
        "numberUnavailable": 2,
        "observedGeneration": 1,
        "updatedNumberScheduled": 2,
    }


def test_among_pods_of_one_second_one_made_first_counts(lab):
    """Compare the two pods of a surging node by age: their names do not tell which is older."""
    lab.node("node-1")
    lab.daemon_set("agent", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    lab.settle()
    for revision in range(6):
        lab.change(
            "daemonsets.apps",
            "agent",
            lambda one, n=revision: one["spec"]["template"]["metadata"].update(
                annotations={"kubepy.dev/outcome": "not-ready", "n": str(n)}
            ),
            "default",
        )
        lab.settle()
        status = lab.client.get("daemonsets.apps", "agent", namespace="default")["status"]
        assert (status["numberReady"], "updatedNumberScheduled" in status) == (1, False)
