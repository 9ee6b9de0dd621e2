"""One look at one Job (``syncJob`` of ``pkg/controller/job/job_controller.go``).

Upstream writes the pods that it is about to count into ``status.uncountedTerminatedPods`` first, because a crash
between taking off their finalizers and counting them would lose them. Here both happen in one transaction, so that only
pods whose finalizer could not be taken off wait there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from kubepy.api.clock import format_time
from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import Object, is_being_deleted, name_of, namespace_of, uid_of
from kubepy.api.objects.pods import is_pod_active, is_pod_ready, is_pod_terminating, phase_of
from kubepy.controllers.job import ending as endings
from kubepy.controllers.job.backoff import Failures, finish_time, remaining_delay, with_finished
from kubepy.controllers.job.ending import FINAL, SUCCESS, Ending, Facts, condition, is_suspended, with_job_condition
from kubepy.controllers.job.indexes import (
    Indexes,
    all_failures_of_index,
    completion_index,
    failures_of_index,
    first_pending,
    format_indexes,
    indexes_of,
    parse_indexes,
)
from kubepy.controllers.job.pods import (
    for_index,
    has_limit_per_index,
    is_indexed,
    is_tracked,
    new_pod,
    pods_to_remove,
    without_finalizer,
)
from kubepy.controllers.job.policies import is_failed, judge_failure, only_replaces_failed
from kubepy.controllers.pod_control import PodControl, failures, is_namespace_terminating, slow_start
from kubepy.runtime.reconcile import Context

MAX_PODS_PER_SYNC = 500  # that are created or deleted
SHORTEST_DELAY = 1.0  # seconds
RecordEvent = Callable[[str, str, str], None]


class JobSync:
    """``backoff``: the pods that failed lately; what it is afterwards must be kept. ``look_again``: after seconds."""

    def __init__(self, context: Context, pod_control: PodControl, job: Object, pods: list[Object],
                 backoff: Failures, look_again: Callable[[float], None], say: RecordEvent) -> None:
        self.client = context.client
        self.pod_control = pod_control
        self.look_again = look_again
        self.say = say
        self.now = context.clock.now()
        self.job = job
        self.pods = pods
        self.backoff = backoff
        self.status: Object = dict(job.get("status") or {})
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        self.uncounted: dict[str, list[str]] = {
            outcome: list(uncounted.get(outcome) or ()) for outcome in ("succeeded", "failed")}
        self.released: set[str] = set()  # uids of pods that bore the finalizer when this sync began

        self.active_pods = [pod for pod in pods if is_pod_active(pod)]
        self.active = len(self.active_pods)
        self.ready = sum(map(is_pod_ready, self.active_pods))
        self.terminating = sum(map(is_pod_terminating, pods))
        self.indexed = is_indexed(job)
        self.completed: Indexes = set()
        self.failed_indexes: Indexes = set()

    # --- the whole

    def run(self) -> None:
        """Raises Status: what went wrong with a pod, after the status has been written."""
        self.look_at_pods()
        self.start()
        ending = endings.find_ending(
            Facts(self.stamped(), self.pods, self.failed, self.completed, self.failed_indexes, self.now))
        error: Status | None = None
        if ending is not None:
            error = self.delete(self.active_pods)
            ending = ending if error is None else None
        else:
            self.look_at_deadline()
            if not is_being_deleted(self.job):
                error = self.manage()
            ending = endings.COMPLETED if self.is_complete() else None
            if ending is None and not is_being_deleted(self.job):
                self.note_suspension()
        errors = [*([error] if error else []), *self.count(ending)]
        finished = self.conclude(ending) if ending is not None and not errors else False
        self.write()
        if finished and ending is not None:
            self.say_finished(ending)
        if errors:
            raise errors[0]

    def look_at_pods(self) -> None:
        """What has ended since the last look, and how much of the Job is done with it."""
        fresh = [pod for pod in self.pods if is_tracked(pod) and self.has_place(pod)]
        self.new_succeeded = [pod for pod in fresh if phase_of(pod) == "Succeeded"
                              and uid_of(pod) not in self.uncounted["succeeded"]]
        self.new_failed = [pod for pod in fresh if is_failed(pod, self.job)
                           and uid_of(pod) not in self.uncounted["failed"]]
        self.failures_now = with_finished(self.backoff, self.new_succeeded, self.new_failed)
        counted = sum(judge_failure(self.job, pod).counts for pod in self.new_failed)
        self.failed = self.status.get("failed", 0) + counted + len(self.uncounted["failed"])
        self.succeeded = (self.status.get("succeeded", 0) + len(self.new_succeeded)
                          + len(self.uncounted["succeeded"]))
        if self.indexed:
            self.look_at_indexes()

    def look_at_indexes(self) -> None:
        completions = self.job["spec"]["completions"]
        self.completed = parse_indexes(self.status.get("completedIndexes", ""), completions)
        self.completed |= indexes_of(self.new_succeeded)
        self.succeeded = len(self.completed)
        if has_limit_per_index(self.job):
            self.failed_indexes = parse_indexes(self.status.get("failedIndexes") or "", completions)
            self.failed_indexes |= indexes_of(pod for pod in self.new_failed if self.fails_index(pod))

    def has_place(self, pod: Object) -> bool:
        """Whether the pod is for one of the Job's indexes, if that has any."""
        index = completion_index(pod)
        return not self.indexed or (index is not None and index < self.job["spec"]["completions"])

    def fails_index(self, pod: Object) -> bool:
        """Whether no pod is made any more in place of this failed one (``isIndexFailed``)."""
        judgement = judge_failure(self.job, pod)
        if judgement.action == "FailIndex":
            return True
        return judgement.counts and failures_of_index(pod) >= self.job["spec"]["backoffLimitPerIndex"]

    def stamped(self) -> Object:
        """The Job with the status as it is known by now."""
        return {**self.job, "status": self.status}

    def start(self) -> None:
        if not self.status.get("startTime") and not is_suspended(self.job):
            self.status["startTime"] = format_time(self.now)

    def look_at_deadline(self) -> None:
        if (due := endings.deadline(self.stamped())) is not None:
            self.look_again((due - self.now).total_seconds())

    def is_complete(self) -> bool:
        completions = self.job["spec"].get("completions")
        if completions is None:
            return self.succeeded > 0 and self.active == 0
        return bool(self.succeeded >= completions and self.active == 0)

    def note_suspension(self) -> None:
        """A Job's time begins anew when it is resumed."""
        before = self.status.get("conditions") or []
        if is_suspended(self.job):
            said = condition("Suspended", "True", "JobSuspended", "Job suspended", self.now)
        else:
            said = condition("Suspended", "False", "JobResumed", "Job resumed", self.now)
        conditions = with_job_condition(before, said)
        if conditions == before:
            return
        self.status["conditions"] = conditions
        if is_suspended(self.job):
            self.say("Normal", "Suspended", "Job suspended")
            self.status.pop("startTime", None)
        else:
            self.say("Normal", "Resumed", "Job resumed")
            self.status["startTime"] = format_time(self.now)

    # --- pods

    def manage(self) -> Status | None:
        """Make or remove pods, never both in one sync (``manageJob``); the first error."""
        if is_suspended(self.job):
            return self.delete(self.active_pods, release=True)
        wanted = self.wanted_active()
        surplus = pods_to_remove(self.job, self.active_pods, max(self.active - wanted, 0))
        if surplus:
            return self.delete(surplus[:MAX_PODS_PER_SYNC], release=True)
        missing = wanted - self.active - (self.terminating if only_replaces_failed(self.job) else 0)
        return self.create(min(missing, MAX_PODS_PER_SYNC)) if missing > 0 else None

    def wanted_active(self) -> int:
        spec = self.job["spec"]
        parallelism, completions = int(spec["parallelism"]), spec.get("completions")
        if completions is None:
            return self.active if self.succeeded > 0 else parallelism
        left: int = completions - self.succeeded
        return max(min(left, parallelism), 0)

    def create(self, count: int) -> Status | None:
        if not has_limit_per_index(self.job) and (delay := remaining_delay(self.failures_now, self.now)):
            self.look_again(max(delay, SHORTEST_DELAY))
            return None
        errors, skipped = slow_start(pods := self.new_pods(count), self.create_one)
        self.active += len(pods) - skipped - len(errors)
        return errors[0] if errors else None

    def create_one(self, pod: Object) -> None:
        try:
            self.pod_control.create(self.job, pod)
        except Status as error:
            if not is_namespace_terminating(error):
                raise
            self.active -= 1  # all further creations would fail alike: no error

    def new_pods(self, count: int) -> Sequence[Object]:
        pod = new_pod(self.job)
        if not self.indexed:
            return [pod] * count
        taken = self.completed | self.failed_indexes | indexes_of(self.active_pods)
        if only_replaces_failed(self.job):
            taken |= indexes_of(filter(is_pod_terminating, self.pods))
        pending = first_pending(taken, count, self.job["spec"]["completions"])
        replaced = self.awaiting_replacement()
        return [for_index(self.job, pod, index, replaced.get(index)) for index in self.due(pending, replaced)]

    def due(self, indexes: list[int], replaced: dict[int, Object]) -> list[int]:
        """The indexes whose failures are long enough ago for another try."""
        delays = {index: self.delay_of(replaced.get(index)) for index in indexes}
        found = [index for index in indexes if not delays[index]]
        if indexes and not found:
            self.look_again(max(min(delays.values()), SHORTEST_DELAY))
        return found

    def delay_of(self, replaced: Object | None) -> float:
        if replaced is None:
            return 0.0
        return remaining_delay(Failures(all_failures_of_index(replaced) + 1, finish_time(replaced)), self.now)

    def awaiting_replacement(self) -> dict[int, Object]:
        """The last failed pod of each index that is to have another one: that takes over its count of failures."""
        if not has_limit_per_index(self.job):
            return {}
        settled = self.completed | self.failed_indexes | indexes_of(self.active_pods)
        last: dict[int, Object] = {}
        failed = [pod for pod in self.pods if is_tracked(pod) and self.has_place(pod) and is_failed(pod, self.job)]
        for pod in sorted(failed, key=lambda one: (all_failures_of_index(one), finish_time(one))):
            index = completion_index(pod)
            if index is not None and index not in settled:
                last[index] = pod
        return last

    def delete(self, pods: Iterable[Object], *, release: bool = False) -> Status | None:
        """Delete active pods; with ``release`` they are not to be counted as failed. The first error."""
        def delete_one(pod: Object) -> None:
            try:
                if release:
                    self.release(pod)
                self.pod_control.delete(self.job, name_of(pod))
            except NotFound:
                pass
            else:
                self.terminating += 1
            self.active -= 1
            self.ready -= is_pod_ready(pod)

        errors = failures(pods, delete_one)
        return errors[0] if errors else None

    def release(self, pod: Object) -> None:
        """Take the finalizer off. Raises Status."""
        namespace = namespace_of(pod)
        with suppress(NotFound):
            fresh = self.client.get("pods", name_of(pod), namespace=namespace)
            if uid_of(fresh) == uid_of(pod) and is_tracked(fresh):
                self.client.update("pods", without_finalizer(fresh), namespace=namespace)
        self.released.add(uid_of(pod))

    # --- counting

    def count(self, ending: Ending | None) -> list[Status]:
        """Count the pods that have ended, each once, and let go of them (``trackJobStatusAndRemoveFinalizers``)."""
        kept = {uid_of(pod) for pod in self.awaiting_replacement().values()}
        done = [pod for pod in self.pods if is_tracked(pod) and uid_of(pod) not in self.released
                and self.is_done(pod, ending, kept)]
        for pod in done:
            self.note(pod, ending)
        errors = failures(done, self.release)
        tracked = {uid_of(pod) for pod in self.pods if is_tracked(pod)} - self.released
        for outcome, uids in self.uncounted.items():
            left = [uid for uid in uids if uid in tracked]
            self.status[outcome] = self.status.get(outcome, 0) + len(uids) - len(left)
            self.uncounted[outcome] = left
        if done:
            self.backoff = self.failures_now
        if self.indexed:
            self.status["succeeded"] = len(self.completed)
        return errors

    def is_done(self, pod: Object, ending: Ending | None, kept: set[str]) -> bool:
        """Whether the pod need not be looked at again (``canRemoveFinalizer``)."""
        if is_being_deleted(self.job) or ending is not None or phase_of(pod) == "Succeeded":
            return True
        return is_failed(pod, self.job) and uid_of(pod) not in kept

    def note(self, pod: Object, ending: Ending | None) -> None:
        """Put the pod among those that are to be counted. Of a Job that fails every pod counts as failed."""
        uid = uid_of(pod)
        if phase_of(pod) == "Succeeded" and uid not in self.uncounted["failed"]:
            if not self.indexed and uid not in self.uncounted["succeeded"]:
                self.uncounted["succeeded"].append(uid)
            return
        failed = is_failed(pod, self.job) or (ending is not None and ending.kind != SUCCESS)
        if failed and uid not in self.uncounted["failed"] and self.has_place(pod) and judge_failure(
                self.job, pod).counts:
            self.uncounted["failed"].append(uid)

    # --- the status

    def conclude(self, ending: Ending) -> bool:
        """Say how the Job ends, and that it has ended once no pod is left running; whether it has."""
        said = condition(ending.kind, "True", ending.reason, ending.message, self.now)
        conditions = with_job_condition(self.status.get("conditions") or [], said)
        finished = not any(self.uncounted.values()) and self.terminating == 0
        if finished:
            last = condition(FINAL[ending.kind], "True", ending.reason, ending.message, self.now)
            conditions = with_job_condition(conditions, last)
            if ending.kind == SUCCESS:
                self.status["completionTime"] = format_time(self.now)
        self.status["conditions"] = conditions
        return finished

    def write(self) -> None:
        """Raises Status."""
        status = {**self.status, "active": self.active, "ready": self.ready, "terminating": self.terminating,
                  "uncountedTerminatedPods": {key: uids for key, uids in self.uncounted.items() if uids}}
        if self.indexed:
            status["completedIndexes"] = format_indexes(self.completed)
        if has_limit_per_index(self.job):
            status["failedIndexes"] = format_indexes(self.failed_indexes)
        for field in ("active", "succeeded", "failed", "completedIndexes", "conditions"):
            if not status.get(field):
                status.pop(field, None)
        if status != self.job.get("status"):
            self.client.update("jobs.batch", {**self.job, "status": status}, subresource="status",
                               namespace=namespace_of(self.job))

    def say_finished(self, ending: Ending) -> None:
        if ending.kind != SUCCESS:
            self.say("Warning", ending.reason, ending.message)
            return
        completions = self.job["spec"].get("completions")
        if completions is not None and self.status.get("succeeded", 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            self.say("Warning", "TooManySucceededPods", message)
        self.say("Normal", "Completed", "Job completed")


