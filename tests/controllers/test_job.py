"""Jobs: the number of running pods, completion and failure, status and events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubepy.api.meta import Object, annotations_of, labels_of, name_of
from kubepy.apiserver.request import DeleteOptions
from kubepy.controllers.job.indexes import format_indexes, parse_indexes
from kubepy.controllers.job.pods import FINALIZER
from tests.controllers.conftest import Lab
from tests.stores import disagreements

RESOURCE = "jobs.batch"
INDEX = "batch.kubernetes.io/job-completion-index"


def job(outcome: str = "ready", restart: str = "Never", **spec: Any) -> Object:
    template = {
        "metadata": {"annotations": {"kubepy.dev/outcome": outcome}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "work:1"}]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work"},
        "spec": {"template": template, **spec},
    }


class JobLab:
    """A Job and the clock."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.time = 0.0
        for number in range(3):
            lab.node(f"node-{number}")
        lab.settle()

    def make(self, **spec: Any) -> None:
        self.lab.create(RESOURCE, job(**spec), "default")
        self.lab.settle()

    def edit(self, **spec: Any) -> None:
        self.lab.change(RESOURCE, "work", lambda one: one["spec"].update(spec), "default")
        self.lab.settle()

    def wait(self, seconds: float) -> None:
        self.time += seconds
        self.lab.pass_time(self.time)
        self.lab.settle()

    def pods(self, phase: str = "") -> list[Object]:
        return [
            one
            for one in self.lab.client.list("pods").items
            if phase in ("", one["status"]["phase"])
        ]

    def running(self) -> list[Object]:
        return [one for one in self.pods("Running") if not one["metadata"].get("deletionTimestamp")]

    def become(self, outcome: str, *pods: Object) -> None:
        for pod in pods:
            self.lab.change(
                "pods",
                name_of(pod),
                lambda one: (
                    one["metadata"]
                    .setdefault("annotations", {})
                    .update({"kubepy.dev/outcome": outcome})
                ),
                "default",
            )
        self.lab.settle()

    def of_index(self, index: int) -> Object:
        """Return the latest pod of an index."""
        found = [one for one in self.pods() if annotations_of(one).get(INDEX) == str(index)]
        return max(
            found, key=lambda one: (one["status"]["phase"] == "Running", one["metadata"]["uid"])
        )

    @property
    def status(self) -> Object:
        found: Object = (
            self.lab.client.get(RESOURCE, "work", namespace="default").get("status") or {}
        )
        return found

    def counts(self) -> dict[str, Any]:
        fields = (
            "active",
            "ready",
            "succeeded",
            "failed",
            "terminating",
            "completedIndexes",
            "failedIndexes",
        )
        return {field: self.status[field] for field in fields if field in self.status}

    def conditions(self) -> list[str]:
        return [
            f"{one['type']}={one['status']} {one['reason']}: {one['message']}"
            for one in self.status.get("conditions", [])
        ]

    def said(self) -> list[str]:
        return [
            f"{one['type']} {one['reason']}: {one['message']}"
            for one in self.lab.client.list("events").items
            if one["involvedObject"]["name"] == "work"
            and one["reason"] not in ("SuccessfulCreate", "SuccessfulDelete")
        ]


@pytest.fixture
def jobs(lab: Lab) -> JobLab:
    return JobLab(lab)


COMPLETE = [
    "SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods",
    "Complete=True CompletionsReached: Reached expected number of succeeded pods",
]


def failure(reason: str, message: str) -> list[str]:
    return [f"FailureTarget=True {reason}: {message}", f"Failed=True {reason}: {message}"]


LIMIT = failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")


# --- the number of running pods


def test_job_runs_no_more_pods_than_completions_left(jobs):
    jobs.make(parallelism=2, completions=3)
    seen = []
    while jobs.running():
        seen.append(len(jobs.running()))
        jobs.become("succeeded", jobs.running()[0])
    assert seen == [2, 2, 1]
    assert jobs.counts() == {"ready": 0, "succeeded": 3, "terminating": 0}
    assert jobs.conditions() == COMPLETE
    assert jobs.said() == ["Normal Completed: Job completed"]


def test_job_without_completions_is_complete_after_one_success(jobs):
    jobs.make(parallelism=3)
    first, *others = jobs.running()
    jobs.become("succeeded", first)
    assert (len(jobs.running()), jobs.conditions()) == (2, [])
    jobs.become("failed", others[0])
    assert (len(jobs.running()), jobs.conditions()) == (1, [])
    jobs.become("succeeded", others[1])
    assert jobs.conditions() == COMPLETE
    assert jobs.counts() == {"ready": 0, "succeeded": 2, "failed": 1, "terminating": 0}


def test_less_parallelism_takes_pods_away_without_counting_them(jobs):
    jobs.make(parallelism=3, completions=5)
    jobs.edit(parallelism=1)
    assert jobs.counts() == {"active": 1, "ready": 1, "terminating": 0}
    assert len(jobs.pods()) == 1


def test_job_with_zero_parallelism_runs_nothing(jobs):
    jobs.make(parallelism=0, completions=2)
    assert (jobs.pods(), jobs.conditions()) == ([], [])


def test_pod_bears_finalizer_until_it_has_been_counted(jobs):
    jobs.make()
    [pod] = jobs.pods()
    assert pod["metadata"]["finalizers"] == [FINALIZER]
    jobs.become("succeeded", pod)
    [pod] = jobs.pods()
    assert "finalizers" not in pod["metadata"]
    assert jobs.status["uncountedTerminatedPods"] == {}


def test_pod_that_is_deleted_counts_as_failed_and_is_replaced(jobs):
    jobs.make(completions=1)
    [pod] = jobs.pods()
    jobs.lab.client.delete("pods", name_of(pod), namespace="default")
    jobs.lab.settle()
    assert jobs.counts() == {"ready": 0, "failed": 1, "terminating": 0}  # its successor waits
    jobs.wait(11)
    assert jobs.counts() == {"active": 1, "ready": 1, "failed": 1, "terminating": 0}


# --- failures


def test_job_back_off_doubles_after_each_failure(jobs):
    jobs.make(outcome="failed", backoffLimit=3)
    seen = []
    for seconds in (9, 1.5, 18, 2, 38, 2):
        jobs.wait(seconds)
        seen.append(len(jobs.pods()))
    assert seen == [1, 2, 2, 3, 3, 4]
    assert jobs.conditions() == LIMIT
    assert jobs.said() == [
        "Warning BackoffLimitExceeded: Job has reached the specified backoff limit"
    ]


def test_success_ends_waiting(jobs):
    jobs.make(parallelism=2, completions=4, backoffLimit=9)
    jobs.become("failed", jobs.running()[0])
    assert len(jobs.running()) == 1
    jobs.wait(1)
    jobs.become("succeeded", jobs.running()[0])
    assert len(jobs.running()) == 2


def test_job_that_fails_takes_its_running_pods_with_it_and_counts_them(jobs):
    jobs.make(parallelism=3, completions=3, backoffLimit=0)
    jobs.become("failed", jobs.running()[0])
    assert jobs.counts() == {"ready": 0, "failed": 3, "terminating": 0}
    assert jobs.conditions() == LIMIT
    assert len(jobs.pods()) == 1  # the pod that failed by itself


def test_job_that_fails_has_not_failed_before_its_last_pod_is_gone(jobs):
    jobs.make(parallelism=2, completions=2, backoffLimit=0)
    bad, slow = jobs.running()
    jobs.lab.change(
        "pods",
        name_of(slow),
        lambda one: one["metadata"]["annotations"].update({"kubepy.dev/termination": "stuck"}),
        "default",
    )
    jobs.become("failed", bad)
    assert jobs.conditions() == LIMIT[:1]
    assert jobs.counts() == {"ready": 0, "failed": 2, "terminating": 1}
    jobs.lab.client.delete(
        "pods", name_of(slow), namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    jobs.lab.settle()
    assert jobs.conditions() == LIMIT


def test_restarts_in_place_count_where_pods_restart(jobs):
    jobs.make(outcome="crash-loop", restart="OnFailure", backoffLimit=3)
    assert jobs.conditions() == LIMIT
    assert jobs.pods() == []


def test_deadline_ends_it(jobs):
    jobs.make(activeDeadlineSeconds=60)
    jobs.wait(59)
    assert jobs.conditions() == []
    jobs.wait(1)
    assert jobs.conditions() == failure(
        "DeadlineExceeded", "Job was active longer than specified deadline"
    )
    assert jobs.counts() == {"ready": 0, "failed": 1, "terminating": 0}


# --- indexes


def test_indexed_job_has_one_pod_per_index(jobs):
    jobs.make(completions=3, parallelism=2, completionMode="Indexed")
    pod = jobs.of_index(1)
    assert pod["metadata"]["name"].startswith("work-1-")
    assert (pod["spec"]["hostname"], labels_of(pod)[INDEX]) == ("work-1", "1")
    assert pod["spec"]["containers"][0]["env"] == [
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {
                "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
            },
        }
    ]
    assert sorted(annotations_of(one)[INDEX] for one in jobs.pods()) == ["0", "1"]
    jobs.become("succeeded", pod)
    assert sorted(annotations_of(one)[INDEX] for one in jobs.running()) == ["0", "2"]
    assert jobs.counts() == {
        "active": 2,
        "ready": 2,
        "succeeded": 1,
        "terminating": 0,
        "completedIndexes": "1",
    }
    jobs.become("succeeded", *jobs.running())
    assert jobs.status["completedIndexes"] == "0-2"
    assert jobs.conditions() == COMPLETE


def test_index_that_fails_too_often_fails_alone(jobs):
    jobs.make(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    jobs.become("failed", jobs.of_index(0))
    assert len(jobs.running()) == 1
    jobs.wait(11)
    again = jobs.of_index(0)
    assert annotations_of(again)["batch.kubernetes.io/job-index-failure-count"] == "1"
    jobs.become("failed", again)
    assert jobs.counts() == {
        "active": 1,
        "ready": 1,
        "failed": 2,
        "terminating": 0,
        "failedIndexes": "0",
    }
    jobs.become("succeeded", jobs.of_index(1))
    assert jobs.conditions() == failure("FailedIndexes", "Job has failed indexes")
    assert jobs.status["completedIndexes"] == "1"


def test_indexed_job_fails_beyond_max_failed_indexes(jobs):
    jobs.make(
        completions=3,
        parallelism=3,
        completionMode="Indexed",
        backoffLimitPerIndex=0,
        maxFailedIndexes=0,
    )
    jobs.become("failed", jobs.of_index(2))
    assert jobs.conditions() == failure(
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes",
    )
    assert jobs.status["failedIndexes"] == "2"


def test_success_policy_ends_it_early(jobs):
    jobs.make(
        completions=4,
        parallelism=4,
        completionMode="Indexed",
        successPolicy={
            "rules": [{"succeededIndexes": "3"}, {"succeededIndexes": "0-1", "succeededCount": 1}]
        },
    )
    jobs.become("succeeded", jobs.of_index(2))
    assert jobs.conditions() == []
    jobs.become("succeeded", jobs.of_index(1))
    assert jobs.conditions() == [
        "SuccessCriteriaMet=True SuccessPolicy: Matched rules at index 1",
        "Complete=True SuccessPolicy: Matched rules at index 1",
    ]
    assert jobs.counts() == {
        "ready": 0,
        "succeeded": 2,
        "terminating": 0,
        "completedIndexes": "1,2",
    }


# --- policies


def on_exit(action: str) -> Object:
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [1]}}]}


def test_failure_policy_can_fail_job_at_once(jobs):
    jobs.make(parallelism=2, completions=2, podFailurePolicy=on_exit("FailJob"))
    bad = jobs.running()[0]
    jobs.become("failed", bad)
    assert jobs.conditions() == failure(
        "PodFailurePolicy",
        (
            f"Container c for pod default/{name_of(bad)} failed with exit code 1 matching FailJob "
            f"rule at index 0"
        ),
    )


def test_failure_policy_can_ignore_failure(jobs):
    jobs.make(backoffLimit=0, podFailurePolicy=on_exit("Ignore"))
    jobs.become("failed", jobs.running()[0])
    jobs.wait(11)
    assert (jobs.conditions(), len(jobs.running())) == ([], 1)
    assert "failed" not in jobs.status


def test_failure_policy_can_fail_index(jobs):
    jobs.make(
        completions=2,
        parallelism=2,
        completionMode="Indexed",
        backoffLimitPerIndex=5,
        podFailurePolicy=on_exit("FailIndex"),
    )
    jobs.become("failed", jobs.of_index(0))
    assert jobs.status["failedIndexes"] == "0"


def test_pods_are_replaced_only_when_they_have_ended_where_policy_says_so(jobs):
    jobs.make(podReplacementPolicy="Failed")
    [pod] = jobs.pods()
    jobs.lab.change(
        "pods",
        name_of(pod),
        lambda one: one["metadata"]["annotations"].update({"kubepy.dev/termination": "stuck"}),
        "default",
    )
    jobs.lab.client.delete("pods", name_of(pod), namespace="default")
    jobs.wait(60)
    assert len(jobs.pods()) == 1
    assert jobs.counts() == {"ready": 0, "terminating": 1}


# --- suspension


def test_suspended_job_gives_up_its_pods_and_begins_anew(jobs):
    jobs.make(parallelism=2, completions=2, activeDeadlineSeconds=100)
    jobs.wait(50)
    jobs.edit(suspend=True)
    assert jobs.pods() == []
    assert jobs.conditions() == ["Suspended=True JobSuspended: Job suspended"]
    assert jobs.counts() == {"ready": 0, "terminating": 0}
    jobs.wait(500)
    jobs.edit(suspend=False)
    assert jobs.conditions() == ["Suspended=False JobResumed: Job resumed"]
    assert jobs.status["startTime"] == "2026-11-20T10:09:10Z"
    assert jobs.counts() == {"active": 2, "ready": 2, "terminating": 0}
    assert jobs.said() == ["Normal Suspended: Job suspended", "Normal Resumed: Job resumed"]
    jobs.become("succeeded", *jobs.running())
    assert jobs.conditions() == ["Suspended=False JobResumed: Job resumed", *COMPLETE]


def test_job_that_begins_suspended_has_not_started(jobs):
    jobs.make(suspend=True)
    assert "startTime" not in jobs.status
    assert jobs.conditions() == ["Suspended=True JobSuspended: Job suspended"]


# --- foreign pods, and deletion


def test_job_that_another_controller_manages_is_left_alone(jobs):
    jobs.make(managedBy="example.org/queue")
    assert (jobs.pods(), jobs.status) == ([], {})


def test_job_that_ended_goes_when_its_time_is_over(jobs):
    jobs.make(outcome="succeeded", ttlSecondsAfterFinished=30)
    jobs.wait(29)
    assert jobs.lab.names(RESOURCE) == ["work"]
    jobs.wait(1)
    assert (jobs.lab.names(RESOURCE), jobs.pods()) == ([], [])


def test_job_that_does_not_tell_when_it_ended_stays(jobs):
    jobs.make(outcome="succeeded", ttlSecondsAfterFinished=30)
    jobs.lab.file(RESOURCE, "work", "default").write_text(
        "".join(
            line
            for line in jobs.lab.file(RESOURCE, "work", "default")
            .read_text()
            .splitlines(keepends=True)
            if "lastTransitionTime" not in line
        )
    )
    jobs.wait(31)
    assert jobs.lab.names(RESOURCE) == ["work"]


def test_job_that_is_deleted_lets_its_pods_go_although_they_were_not_counted(jobs):
    jobs.make(parallelism=2, completions=2)
    jobs.lab.client.delete(
        RESOURCE,
        "work",
        namespace="default",
        options=DeleteOptions(propagation_policy="Background"),
    )
    jobs.lab.settle()
    assert jobs.pods() == []


def test_pods_of_job_that_was_deleted_alone_stay_without_finalizer(jobs):
    jobs.make()
    jobs.lab.client.delete(
        RESOURCE, "work", namespace="default", options=DeleteOptions(propagation_policy="Orphan")
    )
    jobs.lab.settle()
    [pod] = jobs.pods()
    assert "finalizers" not in pod["metadata"]
    assert "ownerReferences" not in pod["metadata"]


# --- invariants in random scenarios

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["succeeded", "failed", "delete", "wait", "parallelism", "suspend"]),
        st.integers(0, 5),
    ),
    max_size=10,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    completions=st.integers(1, 4),
    parallelism=st.integers(0, 3),
    indexed=st.booleans(),
    limit=st.integers(0, 3),
    steps=STEPS,
)
def test_job_never_runs_too_many_and_counts_every_pod_once(
    tmp_path_factory,
    completions: int,
    parallelism: int,
    indexed: bool,
    limit: int,
    steps: list[tuple[str, int]],
):
    lab = Lab(tmp_path_factory.mktemp("job") / "state")
    jobs = JobLab(lab)
    jobs.make(
        completions=completions,
        parallelism=parallelism,
        backoffLimit=limit,
        completionMode="Indexed" if indexed else "NonIndexed",
    )
    ended = {"succeeded": 0, "failed": 0}
    for what, number in steps:
        running = jobs.running()
        if what in ("succeeded", "failed", "delete") and running:
            pod = running[number % len(running)]
            ended["succeeded" if what == "succeeded" else "failed"] += 1
            if what == "delete":
                lab.client.delete("pods", name_of(pod), namespace="default")
                lab.settle()
            else:
                jobs.become(what, pod)
        elif what == "wait":
            jobs.wait(120 * number)
        elif what == "parallelism":
            jobs.edit(parallelism=number)
        elif what == "suspend":
            jobs.edit(suspend=number % 2 == 1)
        check(jobs, completions, limit, ended)
    assert disagreements(lab.cluster.store) == []
    lab.cluster.close()


def check(jobs: JobLab, completions: int, limit: int, ended: dict[str, int]) -> None:
    found = jobs.lab.client.get(RESOURCE, "work", namespace="default")
    spec, status, running = found["spec"], jobs.status, jobs.running()
    is_over = any(one["type"] in ("Complete", "Failed") for one in status.get("conditions", []))
    left = completions - status.get("succeeded", 0)
    assert len(running) <= (0 if is_over or spec.get("suspend") else min(spec["parallelism"], left))
    assert status.get("active", 0) == len(running)
    assert status.get("succeeded", 0) == ended["succeeded"] <= completions
    assert status.get("failed", 0) >= ended["failed"]
    assert status["uncountedTerminatedPods"] == {}
    assert all(
        FINALIZER not in pod["metadata"].get("finalizers", [])
        for pod in jobs.pods()
        if pod["status"]["phase"] in ("Succeeded", "Failed")
    )
    assert (jobs.conditions()[-2:] == COMPLETE) == (ended["succeeded"] == completions)
    assert (jobs.conditions()[-2:] == LIMIT) == (
        ended["failed"] > limit and ended["succeeded"] < completions
    )


@given(st.sets(st.integers(0, 60)))
def test_indexes_are_read_as_they_are_written(indexes: set[int]):
    text = format_indexes(indexes)
    assert parse_indexes(text, 61) == indexes
    assert format_indexes({1, 2, 3, 7, 8}) == "1-3,7,8"


# --- pods that end by themselves


def template(**annotations: str) -> Object:
    pod_annotations = {
        f"kubepy.dev/{key.replace('_', '-')}": text for key, text in annotations.items()
    }
    return {
        "metadata": {"annotations": pod_annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "work:1"}]},
    }


def test_unmodified_job_is_complete_once_it_is_settled(jobs):
    jobs.make(template=template(), completions=5, parallelism=2)
    assert jobs.conditions() == COMPLETE
    assert {one["status"]["phase"] for one in jobs.pods()} == {"Succeeded"}


def test_run_ends_when_cluster_time_has_passed(jobs):
    jobs.lab.create(RESOURCE, job() | {"spec": {"template": template(runs_for="5s")}}, "default")
    [due] = jobs.lab.settle().due
    assert (due.reconciler, (due.time - jobs.lab.now).total_seconds()) == ("kubelet", 5.0)
    jobs.wait(4)
    assert (len(jobs.running()), jobs.conditions()) == (1, [])
    jobs.wait(1)
    assert jobs.conditions() == COMPLETE
    assert jobs.lab.settle().due == []


def test_drawn_length_of_run_repeats_with_seed(tmp_path):
    def times(folder: str) -> list[float]:
        lab = Lab(tmp_path / folder)
        lab.node("node-1")
        lab.create(
            RESOURCE,
            job() | {"spec": {"parallelism": 4, "template": template(runs_for="2s..90s")}},
            "default",
        )
        return [(due.time - lab.now).total_seconds() for due in lab.settle().due]

    drawn = times("first")
    assert drawn == times("second")
    assert len(set(drawn)) > 1
    assert all(2 <= one <= 90 and one.is_integer() for one in drawn)


def test_job_with_ttl_of_zero_is_seen_complete_before_it_goes(jobs):
    jobs.lab.create(
        RESOURCE,
        job() | {"spec": {"template": template(), "ttlSecondsAfterFinished": 0}},
        "default",
    )
    jobs.lab.watch()
    assert jobs.conditions() == COMPLETE
    jobs.lab.pass_time(1)
    jobs.lab.watch()
    assert jobs.lab.names(RESOURCE) == []


def test_run_once_does_not_wait_for_job_with_ttl_of_zero(jobs):
    jobs.make(template=template(), ttlSecondsAfterFinished=0)
    assert jobs.lab.names(RESOURCE) == []
