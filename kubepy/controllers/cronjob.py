"""The CronJob controller: Jobs that are made when a schedule says so (``pkg/controller/cronjob``).

A sync observes a :class:`CronJobState` and takes the steps of :data:`STEPS`; each is a pure
function that turns the state, as the steps before have left it, into actions, which the controller
does. After them it writes the status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.clock import format_time, later, parse_time
from kubepy.api.errors import AlreadyExists, NotFound, Status
from kubepy.api.meta import (
    controller_of,
    is_being_deleted,
    is_controlled_by,
    name_of,
    namespace_of,
    new_controller_ref,
    object_reference,
    uid_of,
)
from kubepy.api.values import cron
from kubepy.apiserver.request import DeleteOptions
from kubepy.controllers.conditions import conditions_of
from kubepy.controllers.ownership import Ownership
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import CRON_JOBS, JOBS, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, UnfinishedSync, WatchEvent, raise_all

if TYPE_CHECKING:
    from kubepy.api.typed import CronJob, CronJobStatus, Job, ObjectReference

SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
COMPLETE, FAILED = "Complete", "Failed"
DOCUMENTED_AT = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
MANY_MISSED = 100


class CouldNotReplaceError(UnfinishedSync):
    """A Job that still runs could not be deleted for its successor."""


class ScheduleError(ValueError):
    """A schedule that can be read but makes no sense."""


class CronJobState(NamedTuple):
    """The state that the steps of one sync go by. ``status`` is as the actions so far have left
    it."""

    key: Key
    cron_job: CronJob
    status: CronJobStatus
    jobs: Sequence[Job]  # that the CronJob controls
    missing_jobs: frozenset[str]  # uids of active Jobs that are gone
    now: datetime

    @property
    def active(self) -> list[ObjectReference]:
        return self.status.get("active") or []

    def is_active(self, job: Job) -> bool:
        return is_active(self.with_status(), job)

    def without_active(self, uid: str) -> CronJobState:
        left = [reference for reference in self.active if reference.get("uid") != uid]
        rest = {name: value for name, value in self.status.items() if name != "active"}
        return self._replace(
            status=cast("CronJobStatus", {**rest, "active": left} if left else rest)
        )

    def with_status(self) -> CronJob:
        """Return the CronJob with the status as it is by now."""
        return {**self.cron_job, "status": self.status}


def active_jobs(cron_job: CronJob) -> list[ObjectReference]:
    """Return the Jobs that the status of a CronJob names as active."""
    return (cron_job.get("status") or {}).get("active") or []


def is_active(cron_job: CronJob, job: Job) -> bool:
    uid = uid_of(job)
    return any(reference.get("uid") == uid for reference in active_jobs(cron_job))


# --- actions and steps ----------------------------------------------------------------------------


class DeleteJob(NamedTuple):
    job: Job


class ReplaceJob(NamedTuple):
    """Delete a Job that still runs, to make room for the one that is due."""

    reference: ObjectReference


class CreateJob(NamedTuple):
    job: Job
    due: datetime


class RecordEvent(NamedTuple):
    event_type: str
    reason: str
    message: str


class UpdateCronJobStatus(NamedTuple):
    """Go on with this status; it is written when the sync ends."""

    status: CronJobStatus


class RequeueAtNextStart(NamedTuple):
    times: Times


CronJobAction = (
    DeleteJob | ReplaceJob | CreateJob | RecordEvent | UpdateCronJobStatus | RequeueAtNextStart
)


def cleanup_finished_jobs(state: CronJobState) -> Sequence[CronJobAction]:
    surplus = jobs_beyond_limits(state.cron_job, state.jobs)
    return [DeleteJob(job) for job in surplus]


def reconcile_active_jobs(state: CronJobState) -> Sequence[CronJobAction]:
    """Bring the list of active Jobs and the time of the last success up to date."""
    actions: list[CronJobAction] = []
    for job in state.jobs:
        finished = finished_type(job)
        if not finished and not state.is_active(job):
            message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
            actions.append(RecordEvent("Warning", "UnexpectedJob", message))
        elif finished and state.is_active(job):
            state = state.without_active(uid_of(job))
            message = f"Saw completed job: {name_of(job)}, condition: {finished}"
            actions.append(RecordEvent("Normal", "SawCompletedJob", message))
        elif finished == COMPLETE:
            completed = job["status"].get("completionTime")
            last = state.status.get("lastSuccessfulTime")
            if completed and (last is None or parse_time(completed) > parse_time(last)):
                state = state._replace(status={**state.status, "lastSuccessfulTime": completed})

    for reference in state.active:
        uid = reference.get("uid", "")
        if uid in state.missing_jobs:
            state = state.without_active(uid)
            actions.append(
                RecordEvent("Normal", "MissingJob", f"Active job went missing: {reference['name']}")
            )

    return [*actions, UpdateCronJobStatus(state.status)]


def start_due_job(state: CronJobState) -> Sequence[CronJobAction]:
    """Start the Job that is due, if one is, and look again at the next start."""
    spec = state.cron_job["spec"]
    zone = spec.get("timeZone")
    schedule = spec["schedule"]
    if is_being_deleted(state.cron_job):
        return ()
    if zone is not None and not cron.is_time_zone(zone):
        return (
            RecordEvent(
                "Warning",
                "UnknownTimeZone",
                f'invalid timeZone: "{zone}": unknown time zone {zone}',
            ),
        )

    if spec.get("suspend"):
        return ()
    actions: list[CronJobAction] = []
    if "TZ" in schedule:
        message = (
            f'CRON_TZ or TZ used in schedule "{schedule}" is not officially supported, see '
            f"{DOCUMENTED_AT} for "
            "more details"
        )
        actions.append(RecordEvent("Warning", "UnsupportedSchedule", message))

    try:
        times = read_times(state.cron_job)
        latest = latest_start(state.with_status(), times, state.now, heed_deadline=True)
    except cron.CronError as error:
        message = f'unparseable schedule: "{schedule}" : {error}'
        return [*actions, RecordEvent("Warning", "UnparseableSchedule", message)]
    except ScheduleError as error:
        return [
            *actions,
            RecordEvent("Warning", "InvalidSchedule", f"invalid schedule: {schedule} : {error}"),
        ]

    if latest.due is not None:
        if latest.missed > MANY_MISSED:
            message = (
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds "
                "or check clock skew"
            )
            actions.append(RecordEvent("Warning", "TooManyMissedTimes", message))
        actions += start_job(state, latest.due)

    return [*actions, RequeueAtNextStart(times)]


def start_job(state: CronJobState, due: datetime) -> Sequence[CronJobAction]:
    """Start a Job that is due, unless it is too late, was started already, or another one runs that
    may go on."""
    policy = state.cron_job["spec"].get("concurrencyPolicy")
    if is_too_late(state.cron_job, due, state.now):
        time = due.strftime("%a, %d %b %Y %H:%M:%S +0000")
        return (
            RecordEvent("Warning", "MissSchedule", f"Missed scheduled time to start a job: {time}"),
        )

    if any(reference["name"] == job_name(state.cron_job, due) for reference in state.active):
        return ()
    if policy == "Forbid" and state.active:
        message = (
            "Not starting job because prior execution is running and concurrency policy is Forbid"
        )
        return (RecordEvent("Normal", "JobAlreadyActive", message),)

    replaced = [ReplaceJob(reference) for reference in state.active] if policy == "Replace" else []
    return [*replaced, CreateJob(new_job(state.cron_job, due), due)]


STEPS: Sequence[Callable[[CronJobState], Sequence[CronJobAction]]] = (
    cleanup_finished_jobs,
    reconcile_active_jobs,
    start_due_job,
)


# --- the controller -------------------------------------------------------------------------------


class CronJobController:
    name = "cronjob-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._cron_jobs = context.informers.lister(CRON_JOBS)
        self._jobs = context.informers.lister(JOBS)
        self._cron_job_writer = ResourceClient(context.client, CRON_JOBS)
        self._job_writer = ResourceClient(context.client, JOBS)
        self._recorder = Recorder(context.client, self.name)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, CRON_JOBS, "CronJob", self.queue)
        self._schedules: dict[
            str, list[str | None]
        ] = {}  # uid → schedule and time zone as they were seen last

    def remember(self) -> Any:
        return dict(sorted(self._schedules.items()))

    def recall(self, memory: Any) -> None:
        self._schedules = {**memory, **self._schedules}

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {CRON_JOBS: self._cron_job_changed, JOBS: self._job_changed}

    def _cron_job_changed(self, event: WatchEvent) -> None:
        """Put off a CronJob whose schedule changed to its next start; look at any other change
        now."""
        if event.new is None:
            self._schedules.pop(uid_of(event.old or {"metadata": {}}), None)
            self.queue.cancel(event.key)
            return

        cron_job = cast("CronJob", event.new)
        before = self._schedules.get(uid_of(cron_job))
        schedule = cron_job["spec"]["schedule"]
        zone = cron_job["spec"].get("timeZone")
        self._schedules[uid_of(cron_job)] = [schedule, zone]
        if before is None or before == [schedule, zone]:
            self.queue.add(event.key)
            return
        try:
            times = read_times(cron_job)
        except cron.CronError:
            self._recorder.event(
                cron_job,
                "Warning",
                "UnParseableCronJobSchedule",
                f"unparseable schedule for cronjob: {schedule}",
            )
        else:
            self.queue.cancel(event.key)
            self.queue.add_at(
                event.key, next_start(cron_job, times, self._clock.now()), repeating=True
            )

    def _job_changed(self, event: WatchEvent) -> None:
        """Wake the CronJob that controls a Job; one without a controller is nobody's."""
        old = event.old
        new = event.new
        if old is not None and (new is None or controller_of(old) != controller_of(new)):
            self._owners.wake(self._owners.owner_of(old))
        self._owners.wake(self._owners.owner_of(new))

    # --- sync

    def sync(self, key: Key) -> None:
        """Take the steps until one fails, and write the status in any case."""
        cron_job = self._cron_jobs.get(key.namespace, key.name)
        if cron_job is None:
            return
        state = self.observe(key, cron_job)
        errors: list[Exception] = []
        try:
            for step in STEPS:
                for action in step(state):
                    state = self.act(state, action)
        except (Status, CouldNotReplaceError) as error:
            errors.append(error)

        try:
            if state.status != (state.cron_job.get("status") or {}):
                self._cron_job_writer.update_status(state.cron_job, state.status)
        except Status as error:
            errors.append(error)

        raise_all(errors)

    def observe(self, key: Key, cron_job: CronJob) -> CronJobState:
        """Gather the state of a CronJob, as it is stored where the one in the cache is older than
        one of its Jobs. Raises Status."""
        jobs = list(self._jobs.controlled_by(cron_job))
        cron_job = self._current(cron_job, jobs)
        status = cron_job.get("status") or {}
        uids = {uid_of(job) for job in jobs}
        missing = [
            reference.get("uid", "")
            for reference in active_jobs(cron_job)
            if reference.get("uid") not in uids and self._find(cron_job, reference["name"]) is None
        ]
        return CronJobState(key, cron_job, status, jobs, frozenset(missing), self._clock.now())

    def _current(self, cron_job: CronJob, jobs: Sequence[Job]) -> CronJob:
        """Return a CronJob, as it is stored if that has a Job active which it does not know
        (``syncCronJob``). Raises Status."""
        unknown = [
            uid_of(job) for job in jobs if not finished_type(job) and not is_active(cron_job, job)
        ]
        if not unknown:
            return cron_job
        stored = self._cron_job_writer.get(namespace_of(cron_job), name_of(cron_job))
        known = {reference.get("uid") for reference in active_jobs(stored)}
        return stored if known.intersection(unknown) else cron_job

    def _find(self, cron_job: CronJob, name: str) -> Job | None:
        """Return a Job of the CronJob's namespace as it is stored. Raises Status."""
        try:
            return self._job_writer.get(namespace_of(cron_job), name)
        except NotFound:
            return None

    # --- acting

    def act(self, state: CronJobState, action: CronJobAction) -> CronJobState:
        """Do one thing; return the state after it. Raises Status, CouldNotReplaceError."""
        match action:
            case DeleteJob(job):
                state, _ = self._delete(state, job)
            case ReplaceJob(reference):
                return self._replace(state, reference)
            case CreateJob():
                return self._create(state, action)
            case RecordEvent(event_type, reason, message):
                self._recorder.event(state.cron_job, event_type, reason, message)
            case UpdateCronJobStatus(status):
                return state._replace(status=status)
            case RequeueAtNextStart(times):
                self.queue.add_at(
                    state.key, next_start(state.with_status(), times, state.now), repeating=True
                )

        return state

    def _delete(self, state: CronJobState, job: Job) -> tuple[CronJobState, bool]:
        """Delete a Job with its pods; a failure is an event, and the second of what is returned
        says so."""
        try:
            self._client.delete(
                JOBS,
                name_of(job),
                namespace=namespace_of(job),
                options=DeleteOptions(propagation_policy="Background"),
            )
        except Status as error:
            self._recorder.event(state.cron_job, "Warning", "FailedDelete", f"Deleted job: {error}")
            return state, False
        self._recorder.event(
            state.cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}"
        )
        return state.without_active(uid_of(job)), True

    def _replace(self, state: CronJobState, reference: ObjectReference) -> CronJobState:
        try:
            job = self._job_writer.get(namespace_of(state.cron_job), reference["name"])
        except Status as error:
            self._recorder.event(state.cron_job, "Warning", "FailedGet", f"Get job: {error}")
            raise
        state, is_deleted = self._delete(state, job)
        if not is_deleted:
            raise CouldNotReplaceError(f"could not replace job {namespace_of(job)}/{name_of(job)}")
        return state

    def _create(self, state: CronJobState, action: CreateJob) -> CronJobState:
        """Create a Job, or take the one that has the name already if it is the CronJob's. Raises
        Status."""
        cron_job = state.cron_job
        try:
            job = self._job_writer.create(action.job, namespace_of(cron_job))
        except Status as error:
            if isinstance(error, AlreadyExists):
                existing = self._find(cron_job, name_of(action.job))
            else:
                existing = None
            if existing is None:
                if not is_namespace_terminating(error):
                    self._recorder.event(
                        cron_job, "Warning", "FailedCreate", f"Error creating job: {error}"
                    )
                raise
            if not is_controlled_by(existing, cron_job) or state.is_active(existing):
                return state
            job = existing
        else:
            self._recorder.event(
                cron_job, "Normal", "SuccessfulCreate", f"Created job {name_of(job)}"
            )

        return state._replace(
            status=cast(
                "CronJobStatus",
                {
                    **state.status,
                    "active": [*state.active, object_reference(job)],
                    "lastScheduleTime": format_time(action.due),
                },
            )
        )


# --- Jobs -----------------------------------------------------------------------------------------


def finished_type(job: Job) -> str:
    """Return Complete, Failed, or "" while the Job has not ended."""
    for condition in conditions_of(job):
        if condition["type"] in (COMPLETE, FAILED) and condition["status"] == "True":
            return str(condition["type"])
    return ""


def job_name(cron_job: CronJob, due: datetime) -> str:
    """Return a name by the minute, so that no start is made twice (``getJobName``)."""
    return f"{name_of(cron_job)}-{int(due.timestamp()) // 60}"


def new_job(cron_job: CronJob, due: datetime) -> Job:
    """Return the Job of the start that is due (``getJobFromTemplate2``)."""
    template = cron_job["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    local = due.astimezone(zone_of(cron_job)).replace(microsecond=0)
    annotations = {
        **(metadata.get("annotations") or {}),
        SCHEDULED_TIMESTAMP: local.isoformat() if local.utcoffset() else format_time(due),
    }
    labels = {"labels": metadata["labels"]} if metadata.get("labels") else {}
    return cast(
        "Job",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": job_name(cron_job, due),
                **labels,
                "annotations": annotations,
                "ownerReferences": [new_controller_ref(cron_job)],
            },
            "spec": template["spec"],
        },
    )


def jobs_beyond_limits(cron_job: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """Return the Jobs that have ended and need not be kept, those that succeeded first, each the
    oldest first.

    Jobs that never started are the youngest; those of one time go by name (``byJobStartTime``).
    """

    def start_order(job: Job) -> tuple[bool, str, str]:
        status = job.get("status") or {}
        started = status.get("startTime") or ""
        return not started, started, name_of(job)

    spec = cron_job["spec"]
    by_start = sorted(jobs, key=start_order)
    surplus: list[Job] = []
    for finished, limit in (
        (COMPLETE, spec.get("successfulJobsHistoryLimit")),
        (FAILED, spec.get("failedJobsHistoryLimit")),
    ):
        ended = [job for job in by_start if finished_type(job) == finished]
        if limit is not None:
            surplus += ended[: max(len(ended) - limit, 0)]

    return surplus


# --- the schedule (``cronjob/utils.go``) ----------------------------------------------------------


class Times(NamedTuple):
    """A schedule and the time zone of its clock."""

    schedule: cron.Schedule
    zone: tzinfo

    def after(self, moment: datetime) -> datetime | None:
        return self.schedule.next_after(moment, self.zone)


class Latest(NamedTuple):
    """The latest start that is not in the future (``due``), of those from ``since`` on.

    ``missed``: about how many there were, 0 if there was at most one.
    """

    since: datetime
    due: datetime | None = None
    missed: int = 0


def read_times(cron_job: CronJob) -> Times:
    """Return the parsed schedule and its time zone. Raises CronError."""
    return Times(cron.parse(cron_job["spec"]["schedule"]), zone_of(cron_job))


def zone_of(cron_job: CronJob) -> tzinfo:
    """Return the zone of ``spec.timeZone``, else UTC."""
    from zoneinfo import ZoneInfo

    name = cron_job["spec"].get("timeZone")
    if name and name != "Local" and cron.is_time_zone(name):
        return ZoneInfo(name)
    return UTC


def latest_start(cron_job: CronJob, times: Times, now: datetime, *, heed_deadline: bool) -> Latest:
    """Return the latest start that is due (``mostRecentScheduleTime``). Raises ScheduleError."""
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    since = parse_time(last or cron_job["metadata"]["creationTimestamp"])
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if heed_deadline and deadline is not None:
        since = max(since, later(now, -deadline))
    first = times.after(since)
    second = times.after(first) if first is not None else None
    if first is None or second is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < first:
        return Latest(since)
    if now < second:
        return Latest(since, first)
    interval = round((second - first).total_seconds())
    missed = int((now - first).total_seconds()) // interval + 1
    due = None
    upcoming = times.after(later(first, (missed - 2) * interval))
    while upcoming is not None and upcoming <= now:
        due = upcoming
        upcoming = times.after(upcoming)
    return Latest(since, due, missed)


def next_start(cron_job: CronJob, times: Times, now: datetime) -> datetime:
    """Return the time of the next start (``nextScheduleTimeDuration``, which adds 100 ms for clocks
    that differ)."""
    try:
        latest = latest_start(cron_job, times, now, heed_deadline=False)
    except ScheduleError:
        latest = Latest(now, now)
    upcoming = times.after(latest.due or (now if latest.missed else latest.since))
    return upcoming or later(now, 366 * 24 * 3600)


def is_too_late(cron_job: CronJob, due: datetime, now: datetime) -> bool:
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    return deadline is not None and later(due, deadline) < now
