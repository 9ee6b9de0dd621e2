"""The Job controller: pods that are run until enough of them have succeeded, or too many have
failed.

A sync observes a :class:`~kubepy.controllers.job.state.JobState`, has :mod:`decide` make JobActions
of it, and acts; then :mod:`status` counts the pods that have ended. Each pod bears a finalizer
until it has been counted, so that none is counted twice or missed. This module alone
writes. :mod:`pods` knows new pods and those to give up; :mod:`indexes`, :mod:`policies`
and :mod:`backoff` have the rules of the fields they are named for. Upstream:
``pkg/controller/job``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.errors import NotFound, Status
from kubepy.api.meta import (
    AnyObject,
    controller_of,
    is_being_deleted,
    name_of,
    namespace_of,
    uid_of,
)
from kubepy.api.objects.pods import is_pod_ready, phase_of
from kubepy.api.selectors import LabelSelector
from kubepy.controllers.job import status
from kubepy.controllers.job.backoff import BackoffRecord
from kubepy.controllers.job.decide import COMPLETED, JobActions, decide, is_complete
from kubepy.controllers.job.pods import (
    FINALIZER,
    has_tracking_finalizer,
    without_tracking_finalizer,
)
from kubepy.controllers.job.state import JobState, is_finished, new_job_state
from kubepy.controllers.job.status import JobEvent, JobOutcome
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import (
    PodControl,
    failures,
    is_namespace_terminating,
    slow_start,
)
from kubepy.controllers.ref_manager import RefManager
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import JOBS, PODS, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent, raise_all

if TYPE_CHECKING:
    from kubepy.api.typed import Job, JobStatus, Pod

THIS_CONTROLLER = "kubernetes.io/job-controller"


class JobController:
    """A key is a Job, or a pod that bears the tracking finalizer and has no Job that would take it
    off.

    Upstream waits a second after a pod's change before it looks at the Job, to see several at once;
    here a turn of the manager does that.
    """

    name = "job-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._informers = context.informers
        self._jobs = context.informers.lister(JOBS)
        self._pods = context.informers.lister(PODS)
        self._job_writer = ResourceClient(context.client, JOBS)
        self._pod_writer = ResourceClient(context.client, PODS)
        self._recorder = Recorder(context.client, self.name)
        self._pod_control = PodControl(context.client, self._recorder)
        self._backoffs: dict[str, BackoffRecord] = {}  # by the Job's uid
        self._pace = context.pacing.pace_of(self.name)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, JOBS, "Job", self.queue)
        self._members = context.informers.add_index(
            PODS, self._index_pod, self._owners.queries_of_group
        )

    def remember(self) -> Any:
        return {
            uid: [record.failures, format_micro_time(record.last_failure)]
            for uid, record in sorted(self._backoffs.items())
            if record.last_failure is not None
        }

    def recall(self, memory: Any) -> None:
        for uid, (failed, last) in memory.items():
            self._backoffs.setdefault(uid, BackoffRecord(failed, parse_time(last)))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {JOBS: self._job_changed, PODS: self._pod_changed}

    def _job_changed(self, event: WatchEvent) -> None:
        self.queue.add(event.key)
        job = cast("Job | None", event.new or event.old)
        if job is not None and (event.new is None or is_finished(job)):
            self._pace.forget(event.key)
            self._backoffs.pop(uid_of(job), None)
            for key in self._informers.dependents(uid_of(job), PODS):
                self.queue.add(key)

    def _pod_changed(self, event: WatchEvent) -> None:
        self._owners.changed(event)
        pod = cast("Pod | None", event.new)
        if pod is not None and has_tracking_finalizer(pod) and not self._has_tracker(pod):
            self.queue.add(event.key)

    def _has_tracker(self, pod: AnyObject) -> bool:
        """Return whether a Job, or something that is none of this controller's business, looks
        after the pod's finalizer."""
        reference = controller_of(pod)
        if reference is None:
            return False
        if (reference["apiVersion"], reference["kind"]) != ("batch/v1", "Job"):
            return True
        job = self._owners.owner_of(pod)
        if job is None:
            absent = self._client.settings.absent
            return absent is not None and absent.owner(reference) is not None
        if is_managed_by_external_controller(job):
            return True
        return not is_finished(job)

    # --- sync

    def sync(self, key: Key) -> None:
        if key.resource == PODS:
            pod = self._pods.get(key.namespace, key.name)
            if pod is not None and has_tracking_finalizer(pod) and not self._has_tracker(pod):
                with suppress(NotFound):  # handleSingleOrphanPod
                    self._pod_writer.update(without_tracking_finalizer(pod))
            return
        job = self._jobs.get(key.namespace, key.name)
        if job is None or is_managed_by_external_controller(job) or is_finished(job):
            return
        selector = self._owners.selector_of(job)
        if selector is not None:
            self._sync_job(self.observe(key, job, selector))

    def observe(self, key: Key, job: Job, selector: LabelSelector) -> JobState:
        """Gather the state of a Job; its pods are claimed. Raises Status, AdoptionError."""
        manager = RefManager(self._client, PODS, JOBS, job, finalizers=(FINALIZER,))
        to_claim = self._owners.to_claim(PODS, job, self._members)
        claimed = manager.claim(self._pods.at(to_claim), selector) if to_claim else []
        pods = sorted([*self._members.group(uid_of(job)).values(), *claimed], key=name_of)
        state = new_job_state(
            key, job, pods, self._backoffs.get(uid_of(job), BackoffRecord()), self._clock.now()
        )
        return state._replace(room=self._room(state))

    def _room(self, state: JobState) -> int:
        """Return how many pods a Job may be given; those that have ended count."""
        spec = state.job["spec"]
        return self._pace.room(
            state.key,
            wanted=max(spec["parallelism"], spec.get("completions") or 0),
            existing=len(state.active_pods) + state.succeeded + state.failed,
        )

    def _index_pod(self, pod: Pod) -> tuple[str, Pod] | None:
        """Group the pods that Jobs control by the Job's uid; those that are to be claimed are
        apart.

        A pod that has succeeded and is counted matters no more: a Job may have any number of them.
        """
        controller = controller_of(pod)
        if controller is None or controller["kind"] != "Job":
            return None
        group = self._owners.index_group(pod, controller["uid"])
        is_done = phase_of(pod) == "Succeeded" and not has_tracking_finalizer(pod)
        if is_done and group == controller["uid"]:
            return None
        return (group, pod)

    def _sync_job(self, state: JobState) -> None:
        """Act, count the pods that have ended, and write the status, whatever failed before. Raises
        Status."""
        actions = decide(state)
        outcome, errors = self.act(state, actions)
        ending = actions.ending if not errors else None
        current = state.job.get("status") or {}
        if actions.ending is None:
            ending = COMPLETED if is_complete(state, outcome.active) else None
            if ending is None and not is_being_deleted(state.job):
                current = status.with_suspension(state)
                self._record(state, status.suspension_event(state))

        tracking = status.track(state, outcome, ending)
        released = set(outcome.released)
        observed = self._flush(state, status.new_status(state, current, outcome, tracking))
        errors += failures(tracking.done, lambda pod: self._release(pod, released))
        if tracking.done:
            self._backoffs[uid_of(state.job)] = state.backoff
        outcome = outcome._replace(released=frozenset(released))
        written = status.new_status(state, current, outcome, tracking)
        if ending is not None and not errors:
            written = status.with_ending(state, written, ending)
        if written != observed.get("status"):
            self._job_writer.update_status(observed, written)
        if ending is not None and not errors and status.is_ended(written):
            self._record(state, *status.ending_events(state.job, written, ending))
        raise_all(errors)

    def _flush(self, state: JobState, written: JobStatus) -> Job:
        """Write down the pods that have ended before their finalizers go: a controller that ends in
        between would forget them (``flushUncountedAndRemoveFinalizers``). Returns the Job as it is
        stored then."""
        before: JobStatus = state.observed.get("status") or {}
        if all(
            (written.get(field) or None) == (before.get(field) or None)
            for field in ("uncountedTerminatedPods", "completedIndexes", "failedIndexes")
        ):
            return state.observed
        return self._job_writer.update_status(state.observed, written)

    # --- acting

    def act(self, state: JobState, actions: JobActions) -> tuple[JobOutcome, list[Status]]:
        """Create or delete pods; return the numbers afterwards, and the first error, which upstream
        alone returns."""
        if actions.requeue_after is not None:
            self.queue.add_after(state.key, actions.requeue_after)
        if actions.create:
            outcome, errors = self._create(state, actions)
        else:
            outcome, errors = self._delete(state, actions)
        return outcome, errors[:1]

    def _create(self, state: JobState, actions: JobActions) -> tuple[JobOutcome, list[Status]]:
        created = 0

        def create(pod: Pod) -> None:
            nonlocal created
            try:
                self._pod_control.create(state.job, pod)
            except Status as error:
                if not is_namespace_terminating(
                    error
                ):  # else all further creations would fail alike: no error
                    raise
            else:
                created += 1

        errors, _ = slow_start(actions.create, create)
        outcome = status.first_outcome(state)
        return outcome._replace(active=outcome.active + created), errors

    def _delete(self, state: JobState, actions: JobActions) -> tuple[JobOutcome, list[Status]]:
        active, ready, terminating, _ = status.first_outcome(state)
        released: set[str] = set()

        def delete(pod: Pod) -> None:
            nonlocal active, ready, terminating
            if actions.release:
                self._release(pod, released)
            with suppress(NotFound):
                self._pod_control.delete(state.job, name_of(pod))
                terminating += 1
            active -= 1
            ready -= is_pod_ready(pod)

        errors = failures(actions.delete, delete)
        return JobOutcome(active, ready, terminating, frozenset(released)), errors

    def _release(self, pod: Pod, released: set[str]) -> None:
        """Take the finalizer off a pod as it is stored, if it is there, and note its uid. Raises
        Status."""
        with suppress(NotFound):
            fresh = self._pod_writer.get(namespace_of(pod), name_of(pod))
            if uid_of(fresh) == uid_of(pod) and has_tracking_finalizer(fresh):
                self._pod_writer.update(without_tracking_finalizer(fresh))
        released.add(uid_of(pod))

    def _record(self, state: JobState, *events: JobEvent | None) -> None:
        for event in events:
            if event is not None:
                self._recorder.event(state.job, event.event_type, event.reason, event.message)


def is_managed_by_external_controller(job: Job) -> bool:
    return job["spec"].get("managedBy", THIS_CONTROLLER) != THIS_CONTROLLER
