"""The life of one pod: what happens to its containers, in the order and at the moments of a
kubelet.

:meth:`PodWorker.advance` lives on up to a moment; :meth:`PodWorker.foresee` tells at which moment
something happens next that others can see. Upstream: ``SyncPod`` and ``computePodActions`` in
``pkg/kubelet/kuberuntime``, ``pkg/kubelet/pod_workers.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.api.values.goformat import format_duration
from kubepy.kubelet.modelled import eviction
from kubepy.kubelet.modelled.life import NORMAL, WARNING, Host, PodLife
from kubepy.kubelet.modelled.probing import (
    FIELDS,
    LIVENESS,
    failed_check,
    next_probe,
    run_probes,
    settle_readiness,
)
from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord
from kubepy.kubelet.modelled.restarting import (
    backoff_end,
    restarts_after,
    restarts_when_killed,
    set_next_backoff,
)
from kubepy.kubelet.modelled.resuming import resume
from kubepy.kubelet.modelled.starting import end_by_rule, go_on_starting, start_container
from kubepy.kubelet.modelled.stopping import (
    collect_output,
    end_run,
    go_on_stopping,
    hook_ends,
    liveness_grace,
    next_of_stopping,
    stop_container,
    stop_for_good,
)
from kubepy.kubelet.obstacles import CRASH_LOOP
from kubepy.kubelet.restarts import LONGEST_BACKOFF
from kubepy.kubelet.statuses import DEADLINE_MESSAGE, DEADLINE_REASON

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod

FORESIGHT = timedelta(hours=1)  # how far processes are followed ahead at once
MOST_MOMENTS = 300  # and through how many moments
MOST_STEPS = 10_000  # of a pod at one moment


class Foreseen(NamedTuple):
    """The next moment at which the pod must be looked at.

    :ivar repeats: the like of it happens again and again, for ever.
    """

    at: datetime
    repeats: bool = False


class PodWorker:
    """Lives the life of a pod.

    :ivar life: the pod and what is known of it.
    """

    def __init__(self, pod: Pod, record: PodRecord, host: Host) -> None:
        self.life = PodLife(pod, record, host)
        self._is_limited = eviction.is_limited(pod)

    def advance(self, until: datetime) -> None:
        """Live on up to a moment, and have the record hold what is then."""
        life = self.life
        if life.record.is_adopted:
            life.record.is_adopted = False
            resume(life)
        life.is_behind = until > life.now
        self._advance(until)
        life.is_behind = False
        life.note_deletion()
        life.now = max(until, life.now)
        self._run_machines(life.now)
        self._settle()
        for container, _ in life.running():
            collect_output(life, container)
        life.record.at = life.now
        life.store_machines()

    def restart(self, names: Sequence[str]) -> bool:
        """Begin to stop containers, which start again with other resources. Return whether one was
        running."""
        life = self.life
        was_running = False
        generation = life.pod["metadata"].get("generation", 0)
        for container, record in [*life.running()]:
            if container["name"] not in names or record.resized == generation:
                continue
            record.resized = generation
            if record.stopping is None:
                message = f"Container {container['name']} resize requires restart"
                self._replace(container, message)
                was_running = True
        return was_running

    def _replace(self, container: Container, message: str) -> None:
        """Stop a container that starts again whatever its restart policy says."""
        stop_container(self.life, container, message)
        self.life.record_of(container).is_replaced = True

    def _advance(self, until: datetime, moments: int | None = None) -> bool:
        """Live on through the moments up to one; end early after so many of them, or as soon as
        something can be seen where their number is limited. Return whether the end was reached."""
        life = self.life
        if not life.is_behind:
            self._settle()
        while True:
            moment = self._next_moment()
            if moment is None or moment > until:
                return True
            if moments is not None:
                if life.is_changed or life.events or moments == 0:
                    return False
                moments -= 1
            life.now = max(moment, life.now)
            self._run_machines(life.now)
            self._settle()

    def foresee(self) -> Foreseen | None:
        """Return when something happens next by itself; None: nothing does. Must be asked of a
        worker that has lived up to now."""
        life = self.life
        moment = self._next_moment()
        if moment is None:
            return None
        if not self._hides_moment(moment):
            return Foreseen(moment, self._repeats())
        copy = PodWorker(
            life.pod, PodRecord.from_json(life.record.to_json()), life.host.rehearsing()
        )
        is_at_end = copy._advance(life.now + FORESIGHT, MOST_MOMENTS)
        ahead = copy.life
        if ahead.is_changed:
            return Foreseen(ahead.now, copy._repeats())
        if ahead.events:
            return Foreseen(ahead.now, repeats=True)
        if is_at_end:  # nothing is seen before the end of the foresight
            later_moment = copy._next_moment()
            if later_moment is None:
                return None
            return Foreseen(later_moment, repeats=True)
        return Foreseen(max(ahead.now, life.now + timedelta(seconds=1)), repeats=True)

    def _hides_moment(self, moment: datetime) -> bool:
        """Tell whether nobody may see what happens at the next moment: a process goes on, or a
        probe finds what was found before."""
        return moment not in self._visible_moments()

    def _repeats(self) -> bool:
        """Tell whether the pod is in a crash loop that does not change any more."""
        return any(
            record.backoff >= LONGEST_BACKOFF or record.failed_pulls > 5
            for record in self.life.record.containers.values()
        )

    # --- moments

    def _next_moment(self) -> datetime | None:
        """Return the next moment at which something happens."""
        life = self.life
        if life.record.is_over:
            return None
        moments = self._visible_moments()
        for container, record in life.running():
            probe = next_probe(life, container, record)
            if probe is not None:
                moments.append(probe)
        for machine in life.machines().values():
            moment = machine.next_time()
            if moment is not None:
                moments.append(moment)
        return min(moments, default=None)

    def _visible_moments(self) -> list[datetime]:
        """Return the moments at which something is sure to be seen."""
        life = self.life
        record = life.record
        moments = [self._deadline(), record.refreshes, record.evicts]
        for container_record in record.containers.values():
            moments.append(container_record.due)
        for container, container_record in life.running():
            moments.append(container_record.ends)
            moments.append(hook_ends(container_record.hook))
            moments.append(next_of_stopping(life, container, container_record))
            gets_ready = container_record.gets_ready
            if gets_ready is not None and gets_ready > life.now:
                moments.append(gets_ready)
        return [moment for moment in moments if moment is not None]

    def _deadline(self) -> datetime | None:
        """Return when the pod has run for too long."""
        life = self.life
        seconds = life.pod["spec"].get("activeDeadlineSeconds")
        started = (life.pod.get("status") or {}).get("startTime")
        if seconds is None or started is None or life.record.end:
            return None
        return later(parse_time(started), seconds)

    def _run_machines(self, until: datetime) -> None:
        self.life.share_processes()
        for machine in self.life.machines().values():
            machine.run(until)

    # --- what happens at a moment

    def _settle(self) -> None:
        """Do everything that takes no time."""
        for _ in range(MOST_STEPS):
            if not self._step():
                if self._is_limited:
                    eviction.plan_eviction(self.life)
                return
        raise RuntimeError(f"pod {self.life.full_name} does not come to rest")

    def _step(self) -> bool:
        """Do one thing that is due. Return whether there was one."""
        life = self.life
        if life.record.is_over:
            return False
        for container, record in [*life.running()]:
            if self._reap(container, record):
                return True
            if end_by_rule(life, container, record):
                return True
            if go_on_starting(life, container, record):
                return True
            if go_on_stopping(life, container, record):
                return True
            if run_probes(life, container, record):
                return True
            if self._stop_changed(container, record):
                return True
            if self._stop_unhealthy(container, record):
                return True
            if record.gets_ready is not None and life.now >= record.gets_ready:
                was_ready = record.is_ready
                settle_readiness(life, container, record)
                if record.is_ready != was_ready:
                    return True

        if self._refresh_volumes():
            return True
        if eviction.evict(life):
            return True
        if self._end_pod():
            return True
        if life.is_ending:
            return self._stop_all()
        return self._start_next()

    def _reap(self, container: Container, record: ContainerRecord) -> bool:
        """End the run of a container whose main process has ended."""
        life = self.life
        machine = life.machine(container["name"])
        if machine is None or not machine.has_main:
            return False
        end = machine.exit_of(1)
        if end is None:
            return False
        code = end.code
        if record.exit_code is not None and not record.end_reason:
            code = record.exit_code
        end_run(
            life,
            container,
            code,
            end.time,
        )
        return True

    def _stop_changed(self, container: Container, record: ContainerRecord) -> bool:
        """Stop a container that is to run another image."""
        life = self.life
        if record.stopping is not None or life.is_ending or life.is_behind:
            return False
        if not life.has_other_image(container):
            return False
        name = container["name"]
        self._replace(container, f"Container {name} definition changed, will be restarted")
        return True

    def _stop_unhealthy(self, container: Container, record: ContainerRecord) -> bool:
        """Stop a container that has failed its liveness or startup probe."""
        life = self.life
        probe_type = failed_check(record)
        if not probe_type or record.stopping is not None:
            return False
        name = container["name"]
        if is_restartable_init_container(container) and container in life.init_containers:
            message = f"Init container {name} failed {probe_type} probe"
        else:
            message = f"Container {name} failed {probe_type} probe"
            if restarts_when_killed(container, life.pod["spec"]):
                message += ", will be restarted"
        field = FIELDS[LIVENESS] if probe_type == LIVENESS else FIELDS["startup"]
        stop_container(
            life,
            container,
            message,
            liveness_grace(life, container, field),
        )
        return True

    def _refresh_volumes(self) -> bool:
        """Bring the files that show objects up to date, where that is due."""
        life = self.life
        refreshes = life.record.refreshes
        if refreshes is None or refreshes > life.now:
            return False
        life.record.refreshes = None
        life.host.refresh_volumes(life.record, life.now)
        return True

    # --- the end of the pod

    def _end_pod(self) -> bool:
        """Let the pod end that has run for too long, or whose containers have all ended."""
        life = self.life
        record = life.record
        deadline = self._deadline()
        if deadline is not None and deadline <= life.now:
            life.emit(NORMAL, DEADLINE_REASON, DEADLINE_MESSAGE)
            record.end = DEADLINE_REASON
            record.end_message = DEADLINE_MESSAGE
            life.touch()
            return True
        if life.is_ending:
            if any(True for _ in life.running()):
                return False
            record.is_over = True
            life.touch()
            return True
        if not self._is_finished():
            return False
        still_running = [container for container, _ in life.running()]
        for container in still_running:
            if stop_for_good(life, container):
                return True
        if still_running:
            return False
        record.is_over = True
        life.touch()
        return True

    def _is_finished(self) -> bool:
        """Tell whether the containers have ended for good, or an init container has failed for
        good."""
        life = self.life
        spec = life.pod["spec"]
        for container in life.init_containers:
            ending = life.record_of(container).ending
            if ending is None or not life.is_init(container["name"]) or ending.exit_code == 0:
                continue
            if not restarts_after(container, spec, ending.exit_code):
                return True
        for container in life.containers:
            record = life.record_of(container)
            ending = record.ending
            if ending is None or record.is_replaced:
                return False
            if restarts_after(container, spec, ending.exit_code):
                return False
        return True

    def _stop_all(self) -> bool:
        """Begin to stop every container that runs."""
        life = self.life
        acted = False
        for container, _ in [*life.running()]:
            if stop_for_good(life, container):
                acted = True
        return acted

    # --- the start of containers

    def _start_next(self) -> bool:
        """Start what is to be started now: the next init container, or the containers. Return
        whether something changed."""
        life = self.life
        if self._mounts_fail():
            return False
        for container in self._startable():
            before = life.record_of(container).to_json()
            self._start(container)
            if life.record_of(container).to_json() != before:
                return True
        return False

    def _mounts_fail(self) -> bool:
        """Tell whether a volume cannot be mounted, before anything has run."""
        life = self.life
        if any(record.runs for record in life.record.containers.values()):
            return False
        if life.is_behind:
            return life.record.mounts_fail
        problems = life.host.mount_problems(life.record, life.now)
        if bool(problems) != life.record.mounts_fail:
            life.record.mounts_fail = bool(problems)
            life.touch()
            for problem in filter(None, problems):
                life.emit(WARNING, "FailedMount", problem)
        return bool(problems)

    def _startable(self) -> Iterator[Container]:
        """Yield the containers that are to run and do not, in the order in which they start."""
        life = self.life
        for container in () if life.is_behind else life.ephemeral_containers:
            record = life.record_of(container)
            if not record.is_running and record.ending is None:
                yield container

        has_initialized = any(life.record_of(each).runs for each in life.containers)
        for container in life.init_containers:
            record = life.record_of(container)
            is_sidecar = is_restartable_init_container(container)
            if is_sidecar or not has_initialized:
                is_done = record.ending is not None and record.ending.exit_code == 0
                if not record.is_running and (is_sidecar or not is_done):
                    yield container
            if has_initialized:
                continue
            if is_sidecar and not record.has_started:
                return
            if not is_sidecar and (record.ending is None or record.ending.exit_code != 0):
                return

        for container in life.containers:
            record = life.record_of(container)
            if not record.is_running:
                yield container
            if record.hook is not None:
                return  # the next one starts when the hook of this one is over

    def _start(self, container: Container) -> None:
        """Start a container, unless it has ended for good or is in its back-off."""
        life = self.life
        record = life.record_of(container)
        ending = record.ending
        if record.is_replaced:
            start_container(life, container)
            return
        if ending is not None:
            if not restarts_after(container, life.pod["spec"], ending.exit_code):
                return
            end = backoff_end(record, ending.finished)
            if end is not None and end > life.now:
                self._back_off(container, record, end)
                return
            set_next_backoff(record, ending.finished, life.now)
        elif record.reason == CRASH_LOOP:
            if record.due is not None and record.due > life.now:
                return
            finished = life.now if record.last is None else record.last.finished
            set_next_backoff(record, finished, life.now)
            record.due = None
            record.reason = ""
            record.message = ""
        start_container(life, container)

    def _back_off(self, container: Container, record: ContainerRecord, end: datetime) -> None:
        """Let a container wait for its next start."""
        life = self.life
        name = container["name"]
        record.last = record.ending
        record.ending = None
        record.due = end
        record.reason = CRASH_LOOP
        length = format_duration(record.backoff)
        record.message = (
            f"back-off {length} restarting failed container={name} pod={life.full_name}"
        )
        message = f"Back-off restarting failed container {name} in pod {life.full_name}"
        life.emit(WARNING, "BackOff", message, name)
        life.touch()
