"""The Job controller's handlers, and the pods that no Job counts any more."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import Object, controller_of, namespace_of, uid_of
from kubepy.controllers.job.backoff import Failures
from kubepy.controllers.job.ending import is_finished
from kubepy.controllers.job.pods import FINALIZER, is_tracked, without_finalizer
from kubepy.controllers.job.sync import JobSync
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import PodControl
from kubepy.controllers.ref_manager import RefManager, candidates
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

RESOURCE = "jobs.batch"
PODS = "pods"
THIS_CONTROLLER = "kubernetes.io/job-controller"


class JobController:
    """A key is a Job, or a pod that bears the tracking finalizer and has no Job that would take it off.

    Upstream waits a second after a pod's change before it looks at the Job, to see several at once; here a turn of the
    manager does that.
    """

    name = "job-controller"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client
        self._informers = context.informers
        self._recorder = Recorder(context.client, self.name)
        self._pod_control = PodControl(context.client, self._recorder)
        self._backoffs: dict[str, Failures] = {}  # by the Job's uid
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, RESOURCE, "Job", self.queue)

    def remember(self) -> Any:
        return {uid: [one.number, format_micro_time(one.last)] for uid, one in sorted(self._backoffs.items())
                if one.last is not None}

    def recall(self, memory: Any) -> None:
        for uid, (number, last) in memory.items():
            self._backoffs.setdefault(uid, Failures(number, parse_time(last)))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {RESOURCE: self._job_changed, PODS: self._pod_changed}

    def _job_changed(self, event: WatchEvent) -> None:
        self.queue.add(event.key)
        job = event.new or event.old
        if job is not None and (event.new is None or is_finished(job)):
            self._backoffs.pop(uid_of(job), None)
            for key in self._informers.dependents(uid_of(job)):
                if key.resource == PODS:
                    self.queue.add(key)
        if event.new is None and event.old is not None:
            self._owners.forget(event.old)

    def _pod_changed(self, event: WatchEvent) -> None:
        self._owners.changed(event, _nothing, _nothing)
        if event.new is not None and is_tracked(event.new) and not self._is_counted(event.new):
            self.queue.add(event.key)

    def _is_counted(self, pod: Object) -> bool:
        """Whether a Job, or something that is none of this controller's business, looks after the pod's finalizer."""
        reference = controller_of(pod)
        if reference is None:
            return False
        if (reference["apiVersion"], reference["kind"]) != ("batch/v1", "Job"):
            return True
        job = self._owners.owner_of(pod)
        return job is not None and (is_managed_elsewhere(job) or not is_finished(job))

    # --- sync

    def sync(self, key: Key) -> None:
        self.queue.cancel(key)  # a deadline or delay, which this sync sets anew if it still matters
        found = self._informers.get(*key)
        if found is None:
            return
        if key.resource == PODS:
            self._release_orphan(found)
        elif not is_managed_elsewhere(found) and not is_finished(found):
            self._sync_job(key, found)

    def _sync_job(self, key: Key, job: Object) -> None:
        selector = self._owners.selector_of(job)
        if selector is None:
            return
        manager = RefManager(self._client, PODS, RESOURCE, job, finalizers=(FINALIZER,))
        pods, errors = manager.claim(candidates(self._informers, PODS, job), selector)
        if errors:
            raise errors[0]
        sync = JobSync(self._context, self._pod_control, job, pods, self._backoffs.get(uid_of(job), Failures()),
                       lambda seconds: self.queue.add_after(key, seconds),
                       lambda kind, reason, message: self._recorder.event(job, kind, reason, message))
        try:
            sync.run()
        finally:
            self._backoffs[uid_of(job)] = sync.backoff

    def _release_orphan(self, pod: Object) -> None:
        """``handleSingleOrphanPod``"""
        if not is_tracked(pod) or self._is_counted(pod):
            return
        with suppress(NotFound):
            self._client.update(PODS, without_finalizer(pod), namespace=namespace_of(pod))


def is_managed_elsewhere(job: Object) -> bool:
    """Whether the Job is for another controller (``managedByExternalController``)."""
    return bool(job["spec"].get("managedBy", THIS_CONTROLLER) != THIS_CONTROLLER)


def _nothing(key: Key, pod: Object) -> None:
    """No expectations are kept: whatever a sync has written is observed before the next one begins."""
