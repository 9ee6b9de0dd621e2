"""Stopping containers: the preStop hook, TERM, the grace period, KILL; and the hook postStart.

Upstream: ``killContainer`` in ``pkg/kubelet/kuberuntime``, ``pkg/kubelet/lifecycle/handlers.go``.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kubepy.api.objects.outcomes import STOPS_AFTER
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.apiserver.rule_settings import NEVER
from kubepy.kubelet.behaviours import answer_to
from kubepy.kubelet.modelled.life import NORMAL, WARNING, PodLife
from kubepy.kubelet.modelled.probing import exec_problem, network_problem, port_number
from kubepy.kubelet.modelled.records import ContainerRecord, LifecycleHook, RunEnd, Stopping
from kubepy.shell.machine import StartError
from kubepy.shell.surroundings import NetworkError, NetworkRequest

if TYPE_CHECKING:
    from kubepy.api.typed import Container, LifecycleHandler

TERM, KILL = 15, 9
SIGNALLED = 128  # the exit code of a process that a signal has ended: this and the signal's number
SHORTEST_GRACE = 2  # seconds that a container gets at least after TERM
DEFAULT_GRACE = 30
LONGEST_MESSAGE = 4096  # bytes of a termination message
COMPLETED, ERROR, OOM_KILLED = "Completed", "Error", "OOMKilled"


def grace_period(life: PodLife) -> int:
    """Return the seconds that containers of the pod get to end."""
    if life.record.grace:
        return life.record.grace
    seconds = life.pod["spec"].get("terminationGracePeriodSeconds")
    if seconds is None:
        return DEFAULT_GRACE
    return seconds


def stop_container(
    life: PodLife, container: Container, message: str, grace: int | None = None
) -> None:
    """Begin to stop a container that runs.

    :param grace: the seconds until KILL; None: the pod's grace period.
    """
    record = life.record_of(container)
    if record.stopping is not None:
        return
    seconds = grace_period(life) if grace is None else grace
    name = container["name"]
    life.emit(
        NORMAL,
        "Killing",
        message,
        name,
    )
    record.stopping = Stopping(
        asked=life.now,
        deadline=life.after(seconds),
        grace=seconds,
    )
    handler = (container.get("lifecycle") or {}).get("preStop")
    if handler and seconds > 0:
        hook = begin_hook(life, container, handler)
        if isinstance(hook, LifecycleHook):
            record.stopping.hook = hook
        elif hook:
            life.emit(
                WARNING,
                "FailedPreStopHook",
                "PreStopHook failed",
                name,
            )
    life.touch()


def stop_for_good(life: PodLife, container: Container) -> bool:
    """Stop a container because its pod ends. Return whether there is something new to do.

    A container that is being stopped already gets less time where the grace period has become
    shorter (``calculateEffectiveGracePeriod``), and the pod's where a probe had stopped it.
    """
    record = life.record_of(container)
    seconds = max(grace_period(life), 1)
    stopping = record.stopping
    message = f"Stopping container {container['name']}"
    if stopping is None:
        stop_container(
            life,
            container,
            message,
            seconds,
        )
    elif not stopping.ends_pod or seconds < stopping.grace:
        life.emit(
            NORMAL,
            "Killing",
            message,
            container["name"],
        )
        stopping.grace = seconds
        stopping.deadline = life.after(_time_to_end(stopping, seconds))
    else:
        return False
    if record.stopping is not None:
        record.stopping.ends_pod = True
    return True


def _time_to_end(stopping: Stopping, seconds: int) -> int:
    """Return the seconds until KILL: after TERM a container has two at least."""
    if stopping.is_signalled:
        return max(seconds, SHORTEST_GRACE)
    return seconds


def go_on_stopping(life: PodLife, container: Container, record: ContainerRecord) -> bool:
    """Take the next step of a container that is being stopped, if it is due. Return whether there
    was one."""
    stopping = record.stopping
    if stopping is None:
        return False
    if stopping.hook is not None:
        problem = hook_problem(life, container, stopping.hook)
        if problem is None and life.now < stopping.deadline:
            return False
        if problem:
            life.emit(
                WARNING,
                "FailedPreStopHook",
                "PreStopHook failed",
                container["name"],
            )
        stopping.hook = None
        return True
    if not stopping.is_signalled:
        if _waits_for_turn(life, container) and life.now < stopping.deadline:
            return False
        stopping.is_signalled = True
        stopping.deadline = max(stopping.deadline, life.after(SHORTEST_GRACE))
        _signal(
            life,
            container,
            record,
            stopping,
        )
        return True
    if stopping.stops is not None and life.now >= stopping.stops:
        code = 0 if record.exit_code is None else record.exit_code
        end_run(
            life,
            container,
            code,
            stopping.stops,
        )
        return True
    if life.now >= stopping.deadline and not stops_never(life, container):
        end_run(
            life,
            container,
            SIGNALLED + KILL,
            stopping.deadline,
        )
        return True
    return False


def _waits_for_turn(life: PodLife, container: Container) -> bool:
    """Tell whether a sidecar waits until the containers have ended, and the sidecars after it
    (``terminationOrdering``)."""
    if not life.is_ending or not is_restartable_init_container(container):
        return False
    names = [each["name"] for each in life.sidecars]
    if container["name"] not in names:
        return False
    later = names[names.index(container["name"]) + 1 :]
    main = [each["name"] for each in life.containers]
    return any(life.record_of(name).is_running for name in (*main, *later))


def _signal(
    life: PodLife, container: Container, record: ContainerRecord, stopping: Stopping
) -> None:
    """Send TERM to the main process."""
    machine = life.machine(container["name"])
    ruled = ruled_stop(life, container, life.now)
    if ruled is not None:
        stopping.stops = min(ruled, stopping.deadline)
    elif stops_never(life, container):
        stopping.stops = None
    elif machine is None or not machine.has_main:
        stopping.stops = life.now
    else:
        machine.run(life.now)  # it sees what others have written by now
        machine.signal(1, TERM)
        machine.run(life.now)


def next_of_stopping(
    life: PodLife, container: Container, record: ContainerRecord
) -> datetime | None:
    """Return when something happens next to a container that is being stopped, beside what its
    processes do."""
    stopping = record.stopping
    if stopping is None:
        return None
    moments: list[datetime] = []
    if not (stopping.is_signalled and stops_never(life, container)):
        moments.append(stopping.deadline)
    if stopping.hook is not None and stopping.hook.due is not None:
        moments.append(stopping.hook.due)
    if stopping.stops is not None:
        moments.append(stopping.stops)
    return min(moments, default=None)


def ruled_stop(life: PodLife, container: Container, asked: datetime) -> datetime | None:
    """Return when a container that is asked to stop has stopped by the rules; None where they give
    no time."""
    stops_after = life.host.behaviour(container).stops_after
    if stops_after is None or isinstance(stops_after, str):
        return None
    low, high = stops_after
    return asked + timedelta(seconds=life.host.draw(STOPS_AFTER, low, high))


def stops_never(life: PodLife, container: Container) -> bool:
    """Tell whether a rule says that a container does not stop, not even at KILL: its node cannot
    end it."""
    return life.host.behaviour(container).stops_after == NEVER


# --- the end of a run


def end_run(
    life: PodLife, container: Container, code: int, finished: datetime, reason: str = ""
) -> None:
    """End the run of a container: what it said about itself stays, its processes and files go."""
    record = life.record_of(container)
    name = container["name"]
    machine = life.machine(name)
    if not reason:
        reason = COMPLETED if code == 0 else ERROR
    message = ""
    if machine is not None:
        collect_output(life, container)
        message = _termination_message(
            life,
            container,
            record,
            code,
        )
        record.unknowns = list(machine.unknowns)
        life.host.release(life.record, container, machine)
    record.ending = RunEnd(
        exit_code=code,
        reason=reason,
        finished=finished,
        started=record.started,
        message=message,
        run=record.runs,
    )
    record.started = None
    record.is_ended = False
    record.has_started = False
    record.is_ready = False
    record.stopping = None
    record.hook = None
    record.ends = None
    record.exit_code = None
    record.end_reason = ""
    record.gets_ready = None
    record.reason = ""
    record.message = ""
    record.due = None
    life.set_machine(name, None)
    life.touch()


def collect_output(life: PodLife, container: Container) -> None:
    """Put what the main process has printed into the log of its run."""
    machine = life.machine(container["name"])
    if machine is None or not machine.has_main:
        return
    output = [(part.time, part.stream, part.data) for part in machine.take_output(1)]
    if output:
        life.host.log(container, life.record_of(container).runs, output)


def _termination_message(
    life: PodLife, container: Container, record: ContainerRecord, code: int
) -> str:
    """Return what a container has written about its end (``getTerminationMessage``)."""
    machine = life.machine(container["name"])
    path = container.get("terminationMessagePath") or "/dev/termination-log"
    text = ""
    if machine is not None and machine.files.is_file(path):
        data = machine.files.read(path)
        text = data[-LONGEST_MESSAGE:].decode("utf-8", "replace")
    policy = container.get("terminationMessagePolicy")
    if not text and code != 0 and policy == "FallbackToLogsOnError":
        text = life.host.last_lines(container, record.runs)
    return text


# --- hooks


def begin_hook(
    life: PodLife, container: Container, handler: LifecycleHandler
) -> LifecycleHook | str:
    """Begin a hook. Return it while it is under way, else the problem that it ended with, "" for
    none."""
    if handler.get("sleep"):
        return LifecycleHook(due=life.after(handler["sleep"].get("seconds") or 0))
    if handler.get("httpGet"):
        return _call(life, container, handler)
    if handler.get("exec"):
        command = handler["exec"].get("command") or []
        answer = answer_to(life.host.behaviour(container), command)
        if answer is not None:
            return f"command exited with {answer.exit_code}" if answer.exit_code else ""
        machine = life.machine_for_commands(container["name"])
        try:
            hook = LifecycleHook(pid=machine.start(command, unknown_ends=0.0))
        except StartError as error:
            return exec_problem(life, container["name"], error)
        machine.run(life.now)
        problem = hook_problem(life, container, hook)
        return hook if problem is None else problem
    return ""


def hook_problem(life: PodLife, container: Container, hook: LifecycleHook) -> str | None:
    """Return the problem that a hook has ended with, "" for none; None: it is under way."""
    if hook.pid is None:
        if hook.due is not None and hook.due > life.now:
            return None
        return ""
    machine = life.machine(container["name"])
    if machine is None:
        return ""
    end = machine.exit_of(hook.pid)
    if end is None:
        return None
    machine.take_output(hook.pid)
    machine.forget(hook.pid)
    if end.code == 0:
        return ""
    return f"command exited with {end.code}"


def _call(life: PodLife, container: Container, handler: LifecycleHandler) -> str:
    """Call the URL of a hook. Any answer is well."""
    action = handler["httpGet"]
    port = port_number(container, action["port"])
    if port is None:
        return f"couldn't find port: {action['port']}"
    host = action.get("host") or life.address
    path = action.get("path") or "/"
    url = f"http://{host}:{port}/{path.lstrip('/')}"
    try:
        life.host.http(life.record, NetworkRequest("GET", url), life.now)
    except NetworkError as error:
        return network_problem(error, host, port)
    return ""


def hook_ends(hook: LifecycleHook | None) -> datetime | None:
    """Return when a hook ends by itself that is no process."""
    if hook is None:
        return None
    return hook.due


def liveness_grace(life: PodLife, container: Container, probe_field: str) -> int:
    """Return the grace period of a container that a failed probe stops
    (``setTerminationGracePeriod``)."""
    probe = container.get(probe_field) or {}
    if isinstance(probe, dict):
        seconds = probe.get("terminationGracePeriodSeconds")
        if isinstance(seconds, int):
            return seconds
    return grace_period(life)
