"""Jobs that fail or wait, and CronJobs that do not start them.

A Job is done when it is complete. One that has failed stays so: it has to be made anew, so that
remedies are about Jobs that will fail. A CronJob is done when every start that is due has been
made; the next one is in the future.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, is_being_deleted, name_of, nested_list, nested_map, status_of
from kubepy.api.objects.pods import get_condition, is_pod_ready, is_pod_terminal, phase_of
from kubepy.api.values import cron
from kubepy.controllers.cronjob import (
    MANY_MISSED,
    ScheduleError,
    is_too_late,
    latest_start,
    next_start,
    read_times,
)
from kubepy.controllers.job import is_managed_by_external_controller
from kubepy.controllers.job.backoff import finish_time
from kubepy.controllers.job.decide import active_deadline
from kubepy.controllers.job.state import FAILURE_TARGET, SUCCESS_CRITERIA_MET, is_suspended
from kubepy.insight import Finding, Link
from kubepy.insight.why.deletions import MOST_MERGED, counted, terminating_pods
from kubepy.insight.why.scene import annotated, condition_status, plural, time_of_event

if TYPE_CHECKING:
    from kubepy.api.typed import CronJob, Job, Pod
    from kubepy.insight.why.scene import Diagnosis, Scene, Words

JOBS = "jobs.batch"
CRON_JOBS = "cronjobs.batch"
PODS = "pods"
COMPLETE = "Complete"
FAILED = "Failed"
# The causes of Jobs that have failed, by the reason of their condition.
FAILURES = {
    "BackoffLimitExceeded": "backoff-limit",
    "DeadlineExceeded": "job-deadline",
    "FailedIndexes": "failed-indexes",
    "MaxFailedIndexesExceeded": "failed-indexes",
    "PodFailurePolicy": "pod-failure-policy",
}


def patch(scene: Scene, obj: Object, spec: Object) -> Words:
    """Return the command that changes fields of an object's spec; None removes a field."""
    text = json.dumps({"spec": spec}, separators=(",", ":"))
    return scene.command(obj, "patch", scene.word(obj), "--type=merge", "-p", text)


# --- Jobs -----------------------------------------------------------------------------------------


def failed_job(scene: Scene, job: Object) -> Finding | None:
    """Diagnose a Job that has failed, or will have when its last pods are gone."""
    kind = next(
        (kind for kind in (FAILED, FAILURE_TARGET) if condition_status(job, kind) == "True"), ""
    )
    if not kind:
        return None
    link = scene.condition_link(job, kind, "", "reason")
    cause = FAILURES.get(str(link.value), "backoff-limit")
    spec = job["spec"]
    text = f"the Job has failed: {link.value}"
    remedies = []
    if cause == "backoff-limit":
        limit = spec.get("backoffLimit", 6)
        text = f"its pods have failed more often than backoffLimit {limit} allows"
        remedies = [patch(scene, job, {"backoffLimit": 2 * limit + 10})]
    elif cause == "job-deadline":
        text = f"it takes longer than activeDeadlineSeconds {spec.get('activeDeadlineSeconds')}"
        remedies = [patch(scene, job, {"activeDeadlineSeconds": None})]
    elif cause == "pod-failure-policy":
        text = "a rule of its podFailurePolicy fails the Job"
    elif link.value == "MaxFailedIndexesExceeded":
        text = (
            f"more than maxFailedIndexes {spec.get('maxFailedIndexes')} of its indexes have failed"
        )
        remedies = [patch(scene, job, {"maxFailedIndexes": None})]
    elif cause == "failed-indexes":
        text = f"indexes {(job.get('status') or {}).get('failedIndexes')} have failed for good"

    time = str((get_condition(job, kind) or {}).get("lastTransitionTime", ""))
    is_ahead = time > format_time(
        scene.asked_at
    )  # of the moment of the question: the Job can still be saved
    link = link._replace(
        text=f"at {time} it fails: {text}" if is_ahead else text, says_when=is_ahead
    )
    return scene.finding(
        cause, link, *failure_of_pod(scene, job), remedies=remedies if is_ahead else ()
    )


def failure_of_pod(scene: Scene, job: Object) -> Iterator[Link]:
    """Yield the links about the pod of a Job that failed last, with the annotation behind it."""
    failed = [pod for pod in scene.owned(job, PODS) if phase_of(pod) == FAILED]
    if not failed:
        return
    pod = max(failed, key=lambda pod: (finish_time(cast("Pod", pod)), name_of(pod)))
    statuses = nested_list(pod["status"], "containerStatuses")
    for index, status in enumerate(statuses):
        ended = nested_map(status, "state", "terminated")
        if ended.get("exitCode"):
            yield scene.link(
                pod,
                f"status.containerStatuses[{index}].state.terminated.exitCode",
                f"container {status['name']} ended with exit code {ended['exitCode']}",
            )
            break
    else:
        yield scene.link(
            pod,
            "status.reason" if pod["status"].get("reason") else "status.phase",
            "the pod failed",
        )

    yield from annotated(scene, pod)


def suspended_job(scene: Scene, job: Object) -> Finding | None:
    """Diagnose a Job whose pods are not made, or taken away, until it is resumed."""
    if not is_suspended(cast("Job", job)):
        return None
    remedies = [patch(scene, job, {"suspend": False})]
    cron_job = scene.owner(job)
    if cron_job is not None and cron_job["kind"] == "CronJob" and of_jobs(cron_job).get("suspend"):
        remedies.append(patch(scene, cron_job, {"jobTemplate": {"spec": {"suspend": None}}}))
    return scene.finding(
        "job-suspended",
        scene.link(job, "spec.suspend", "it has no pods until it is resumed"),
        remedies=remedies,
    )


def of_jobs(cron_job: Object) -> Object:
    """Return the spec that the Jobs of a CronJob get."""
    spec: Object = cron_job["spec"]["jobTemplate"]["spec"]
    return spec


def unmanaged_job(scene: Scene, job: Object) -> Finding | None:
    """Diagnose a Job that the Job controller leaves to another one, or that may have no pods."""
    if is_managed_by_external_controller(cast("Job", job)):
        text = "the Job controller leaves it to this controller, which does not run here"
        return scene.finding("job-managed-by", scene.link(job, "spec.managedBy", text))
    if job["spec"].get("parallelism") == 0:
        return scene.finding(
            "job-without-parallelism",
            scene.link(job, "spec.parallelism", "no pod may run"),
            remedies=[patch(scene, job, {"parallelism": 1})],
        )
    return None


def waiting_job(scene: Scene, job: Object) -> Finding | None:
    """Diagnose a Job by its pods: one that does not run, or that does not go; else it is under
    way."""
    pods = scene.owned(job, PODS)
    ends = condition_status(job, SUCCESS_CRITERIA_MET) == "True"
    replaces_late = job["spec"].get("podReplacementPolicy") == FAILED
    active = [pod for pod in pods if not is_being_deleted(pod) and not is_pod_terminal(pod)]
    if (ends or replaces_late or not active) and (
        finding := terminating_pods(scene, job, pods)
    ) is not None:
        return finding
    finding = scene.diagnose_any(pod for pod in active if not is_pod_ready(pod))
    if finding is not None:
        return scene.lead(
            finding, scene.link(job, "status.ready", f"{counted(active, 'pod')} active")
        )
    return None


def running_job(scene: Scene, job: Object) -> Finding | None:
    """Name a Job that is under way."""
    status = status_of(job)
    if condition_status(job, COMPLETE) == "True":
        return scene.finding("job-complete", scene.condition_link(job, COMPLETE, "it is complete"))
    due = active_deadline(cast("Job", job))
    until = f"; it fails at {format_time(due)}, its deadline" if due else ""
    if status.get("active"):
        text = f"{plural(status['active'], 'pod')} at work{until}"
        return scene.finding("job-running", scene.link(job, "status.active", text))
    text = (
        f"its next pod waits for the back-off after "
        f"{plural(status.get('failed') or 0, 'failure')}{until}"
    )
    if status.get("failed"):
        return scene.finding("job-running", scene.link(job, "status.failed", text))
    return None


def goes_on(scene: Scene, job: Object) -> bool:
    """Return whether a Job is under way though nothing is due any more: its pods run, and nobody
    knows for how long."""
    status = status_of(job)
    return (
        bool(status.get("ready"))
        and status.get("ready") == status.get("active")
        and failed_job(scene, job) is None
    )


# --- CronJobs -------------------------------------------------------------------------------------


class CronJobStarts(NamedTuple):
    """The starts of a CronJob.

    :ivar due: the latest start that is due and has not been made; None: there is none.
    :ivar missed: about how many were not made.
    :ivar next: the next one.
    :ivar is_too_late: the one that is due is too late to be made.
    """

    due: datetime | None
    missed: int
    next: datetime
    is_too_late: bool


def starts_of(scene: Scene, cron_job: Object) -> CronJobStarts:
    """Return the starts of a CronJob. Raises CronError, ScheduleError."""
    typed = cast("CronJob", cron_job)
    times = read_times(typed)
    latest = latest_start(typed, times, scene.now, heed_deadline=False)
    is_late = latest.due is not None and is_too_late(typed, latest.due, scene.now)
    missed = latest.missed or int(latest.due is not None)
    upcoming = next_start(typed, times, scene.now)
    return CronJobStarts(latest.due, missed, upcoming, is_late)


def schedule_error(scene: Scene, cron_job: Object) -> str:
    """Return what is wrong with a schedule, or its time zone; "" for nothing."""
    zone = cron_job["spec"].get("timeZone")
    if zone is not None and not cron.is_time_zone(zone):
        return f"there is no time zone {zone}"
    try:
        starts_of(scene, cron_job)
    except (cron.CronError, ScheduleError) as error:
        if isinstance(error, ScheduleError):
            return "it names no time that ever comes"
        return str(error)
    return ""


def unscheduled_cron_job(scene: Scene, cron_job: Object) -> Finding | None:
    """Diagnose a CronJob that is suspended, or whose schedule makes no sense."""
    if cron_job["spec"].get("suspend"):
        return scene.finding(
            "cronjob-suspended",
            scene.link(cron_job, "spec.suspend", "it starts no Jobs until it is resumed"),
            remedies=[patch(scene, cron_job, {"suspend": False})],
        )
    if error := schedule_error(scene, cron_job):
        field = "spec.timeZone" if error.startswith("there is no") else "spec.schedule"
        return scene.finding("cronjob-schedule", scene.link(cron_job, field, error))
    return None


def is_behind(scene: Scene, cron_job: Object) -> bool:
    """Return whether a start that is due waits for another Job, or its Job cannot be created."""
    start = starts_of(scene, cron_job)
    if start.due is None or start.is_too_late:
        return False
    if cron_job["spec"].get("concurrencyPolicy") == "Forbid" and active_jobs(scene, cron_job):
        return True
    made = str(status_of(cron_job).get("lastScheduleTime") or "")  # back-offs may outlast starts
    return any(
        event.get("reason") == "FailedCreate" and time_of_event(event) > made
        for event in scene.events(cron_job)
    )


def has_new_schedule(cron_job: Object, since: datetime) -> bool:
    """Return whether the schedule may have been changed after a moment: then starts before it count
    for nothing."""
    return any(
        entry.get("time", "") > format_time(since)
        and "f:schedule" in nested_map(entry, "fieldsV1", "f:spec")
        for entry in nested_list(cron_job["metadata"], "managedFields")
    )


def missed_link(scene: Scene, cron_job: Object, start: CronJobStarts) -> Link:
    are = "has" if start.missed == 1 else "have"
    if start.missed > MANY_MISSED:
        many = "more than 100 starts have"
    else:
        many = f"{plural(start.missed, 'start')} {are}"
    last = f", the last one at {format_time(start.due)}" if start.due else ""
    return scene.link(cron_job, "status.lastScheduleTime", f"{many} been missed{last}")


def cron_job_behind(scene: Scene, cron_job: Object) -> Finding | None:
    """Diagnose a CronJob that starts no Job as another one runs (concurrencyPolicy Forbid)."""
    if schedule_error(scene, cron_job) or not is_behind(scene, cron_job):
        return None
    if cron_job["spec"].get("concurrencyPolicy") != "Forbid" or not (
        active := active_jobs(scene, cron_job)
    ):
        return None

    text = f"it starts no Job while another one runs: {', '.join(map(name_of, active))}"
    finding = scene.diagnose_any(active)
    if finding is not None:
        leaf = finding.chain
    else:
        leaf = (scene.link(active[0], "status.active", "it still runs"),)

    remedies = [
        *(finding.remedies if finding is not None else ()),
        scene.command(cron_job, "delete", *map(scene.word, active)),
        patch(scene, cron_job, {"concurrencyPolicy": "Allow"}),
    ]
    return scene.finding(
        "cronjob-missed",
        missed_link(scene, cron_job, starts_of(scene, cron_job)),
        scene.link(cron_job, "spec.concurrencyPolicy", text),
        *leaf,
        remedies=remedies,
    )


def note_missed_start(scene: Scene, cron_job: Object) -> Finding | None:
    """Say about a CronJob that its last start was missed, and is too late to be made up for."""
    start = starts_of(scene, cron_job)
    if (
        start.due is None
        or not start.is_too_late
        or has_new_schedule(scene.client.with_managed_fields(cron_job), start.due)
    ):
        return None

    text = f"that start is too late to be made up for; the next one is at {format_time(start.next)}"
    remedy = scene.command(
        cron_job, "create", "job", f"{name_of(cron_job)}-missed", f"--from={scene.word(cron_job)}"
    )
    return scene.finding(
        "cronjob-missed",
        missed_link(scene, cron_job, start),
        scene.link(cron_job, "spec.startingDeadlineSeconds", text),
        remedies=[remedy],
    )


def has_ended(job: Object) -> bool:
    return "True" in (condition_status(job, COMPLETE), condition_status(job, FAILED))


def active_jobs(scene: Scene, cron_job: Object) -> list[Object]:
    """Return the Jobs of a CronJob that have not ended."""
    return [job for job in scene.owned(cron_job, JOBS) if not has_ended(job)]


def cron_job_with_stuck_job(scene: Scene, cron_job: Object) -> Finding | None:
    """Diagnose a CronJob by a Job of it that cannot go on."""
    stuck = [job for job in active_jobs(scene, cron_job) if not goes_on(scene, job)]
    finding = scene.diagnose_any(stuck)
    if finding is None:
        return None
    anew = scene.command(cron_job, "delete", *map(scene.word, stuck[:MOST_MERGED]))
    return scene.lead(
        finding,
        scene.link(cron_job, "status.active", f"{counted(stuck, 'Job')} not complete"),
        fallbacks=[anew],
    )


def note_cron_job(scene: Scene, cron_job: Object) -> Finding | None:
    """Say about a CronJob that is done how its last Job ended, and when the next one starts."""
    ended = [job for job in scene.owned(cron_job, JOBS) if has_ended(job)]
    last = max(
        ended,
        key=lambda job: (status_of(job).get("startTime") or "", name_of(job)),
        default=None,
    )
    text = f"the next start is at {format_time(starts_of(scene, cron_job).next)}"
    link = scene.link(cron_job, "spec.schedule", text)
    if last is not None and (finding := failed_job(scene, last)) is not None:
        return scene.lead(finding, link._replace(text=f"its last Job failed; {text}"))
    if active := active_jobs(scene, cron_job):
        link = scene.link(cron_job, "status.active", f"{counted(active, 'Job')} running; {text}")
    return scene.finding("cronjob-waiting", link)


def cron_job_is_done(scene: Scene, cron_job: Object) -> bool:
    """Return whether no start waits to be made, and its Jobs run. A start that is too late is
    over."""
    if (
        cron_job["spec"].get("suspend")
        or schedule_error(scene, cron_job)
        or is_behind(scene, cron_job)
    ):
        return False
    return all(goes_on(scene, job) for job in active_jobs(scene, cron_job))


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    JOBS: (failed_job, suspended_job, unmanaged_job, waiting_job),
    CRON_JOBS: (unscheduled_cron_job, cron_job_behind, cron_job_with_stuck_job),
}
LAST_DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {JOBS: (running_job,)}
NOTES: dict[str, tuple[Diagnosis, ...]] = {
    JOBS: (running_job,),
    CRON_JOBS: (note_missed_start, note_cron_job),
}
