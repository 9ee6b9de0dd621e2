"""Probes: when they are due, what they find, what follows.

Upstream: ``pkg/kubelet/prober``. A worker probes a container every ``periodSeconds``; the result
counts once it has come ``failureThreshold`` or ``successThreshold`` times in a row. A probe that
would find the same again is not made: as long as no file changes and no process does anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.meta import uid_of
from kubepy.apiserver.rule_settings import NEVER
from kubepy.kubelet.behaviours import answer_to
from kubepy.kubelet.modelled.life import WARNING, PodLife
from kubepy.kubelet.modelled.records import ContainerRecord, ProbeRecord
from kubepy.kubelet.reporting import container_id
from kubepy.quoting import quote
from kubepy.shell.machine import StartError
from kubepy.shell.surroundings import NetworkError, NetworkRequest

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Probe

STARTUP, LIVENESS, READINESS = "startup", "liveness", "readiness"
FIELDS = {STARTUP: "startupProbe", LIVENESS: "livenessProbe", READINESS: "readinessProbe"}
TITLES = {STARTUP: "Startup", LIVENESS: "Liveness", READINESS: "Readiness"}
UNAVAILABLE = 503  # what a container answers of which a rule says that it does not get ready
MAX_OUTPUT = 10 * 1024  # bytes of what a probe's command prints


class ProbeResult(NamedTuple):
    """The result of a probe.

    :ivar is_steady: the next probe finds the same while no file changes.
    :ivar error: why the probe could not be made; it has no result then.
    """

    succeeds: bool
    output: str = ""
    is_warning: bool = False
    is_steady: bool = True
    error: str = ""


def probes_of(container: Container) -> Iterator[tuple[str, Probe]]:
    """Yield the probes of a container by their types, the startup probe first."""
    for probe_type, name in FIELDS.items():
        probe = cast("dict[str, Probe]", container).get(name)
        if probe:
            yield probe_type, probe


def begin_probes(life: PodLife, container: Container, record: ContainerRecord) -> None:
    """Let the workers of a container notice a new run."""
    for probe_type, probe in probes_of(container):
        before = record.probes.get(probe_type)
        phase = before.phase if before else life.now
        succeeds = True if probe_type == LIVENESS else None
        started = ProbeRecord(phase=phase, succeeds=succeeds)
        record.probes[probe_type] = started
        started.due = _first_tick(
            life,
            probe_type,
            probe,
            started,
            record,
        )
    settle_readiness(life, container, record)


def _first_tick(
    life: PodLife, probe_type: str, probe: Probe, state: ProbeRecord, record: ContainerRecord
) -> datetime:
    """Return when a container is probed first: at a tick after the initial delay. The status of a
    container that is not ready, or has not started, makes its worker probe at once."""
    started = record.started or life.now
    earliest = started + timedelta(seconds=probe.get("initialDelaySeconds") or 0)
    if probe_type == LIVENESS:
        earliest = max(earliest, started + timedelta(microseconds=1))
    else:
        state.phase = started
    return tick(probe, state, max(earliest, life.now))


def tick(probe: Probe, state: ProbeRecord, earliest: datetime) -> datetime:
    """Return the first tick of a worker at or after a moment."""
    period = timedelta(seconds=probe.get("periodSeconds") or 10)
    behind = (earliest - state.phase) % period
    if behind:
        return earliest + period - behind
    return earliest


def settle_readiness(life: PodLife, container: Container, record: ContainerRecord) -> None:
    """Work out whether a running container has started and is ready, from its probes' results
    (``UpdatePodStatus`` of the prober's manager)."""
    startup = record.probes.get(STARTUP)
    has_started = startup is None or startup.succeeds is True
    if record.hook is not None:
        has_started = False
    if has_started and not record.has_started:
        for probe_type in (LIVENESS, READINESS):
            probe = cast("dict[str, Probe]", container).get(FIELDS[probe_type])
            state = record.probes.get(probe_type)
            if probe and state and startup is not None:
                if probe_type == READINESS:
                    state.phase = life.now
                state.due = _first_tick_after(
                    life,
                    probe,
                    state,
                    record,
                )

    readiness = record.probes.get(READINESS)
    is_ready = has_started
    if record.gets_ready is not None and life.now < record.gets_ready:
        is_ready = False
    if readiness is not None and readiness.succeeds is not True:
        is_ready = False
    if is_never_ready(life, container):
        is_ready = False
    if (has_started, is_ready) != (record.has_started, record.is_ready):
        record.has_started = has_started
        record.is_ready = is_ready
        life.touch()


def is_never_ready(life: PodLife, container: Container) -> bool:
    """Tell whether a rule says that a container does not get ready."""
    return life.host.behaviour(container).ready_after == NEVER


def _first_tick_after(
    life: PodLife, probe: Probe, state: ProbeRecord, record: ContainerRecord
) -> datetime:
    started = record.started or life.now
    earliest = started + timedelta(seconds=probe.get("initialDelaySeconds") or 0)
    return tick(probe, state, max(earliest, life.now))


def is_probed(life: PodLife, probe_type: str, record: ContainerRecord) -> bool:
    """Tell whether a worker probes its container now."""
    state = record.probes[probe_type]
    if state.is_held or record.hook is not None:
        return False
    if probe_type == READINESS:
        return record.has_started
    if life.record.grace or record.stopping is not None:
        return False
    if probe_type == STARTUP:
        return not record.has_started
    return record.has_started


def next_probe(life: PodLife, container: Container, record: ContainerRecord) -> datetime | None:
    """Return when the next probe of a running container is due, or ends that is under way."""
    moments = []
    for probe_type, probe in probes_of(container):
        state = record.probes.get(probe_type)
        if state is None or not is_probed(life, probe_type, record):
            continue
        if state.due is not None:
            moments.append(state.due)
        elif state.version != _version(life, container["name"]):
            state.due = tick(probe, state, life.now + timedelta(microseconds=1))
            moments.append(state.due)
    return min(moments, default=None)


def _version(life: PodLife, name: str) -> int:
    """Return a number that changes when the files of a container do, or its processes."""
    machine = life.machine(name)
    if machine is None:
        return -1
    return machine.files.version


def run_probes(life: PodLife, container: Container, record: ContainerRecord) -> bool:
    """Make the probes of a running container that are due, and act on their results. Return whether
    there was one."""
    was_due = False
    for probe_type, probe in probes_of(container):
        state = record.probes.get(probe_type)
        if state is None or state.due is None or not is_probed(life, probe_type, record):
            continue
        is_ended = state.pid is not None and _has_ended(life, container, state)
        if state.due > life.now and not is_ended:
            continue
        was_due = True
        if probe_type == READINESS and is_never_ready(life, container):
            result: ProbeResult | None = _ruled_failure(life, container, probe)
        else:
            result = _probe(
                life,
                container,
                probe,
                state,
            )
        if result is None:
            continue
        _take_result(
            life,
            container,
            record,
            probe_type,
            result,
        )
        _plan_next(
            life,
            container,
            probe,
            state,
            result,
        )
    return was_due


def _plan_next(
    life: PodLife, container: Container, probe: Probe, state: ProbeRecord, result: ProbeResult
) -> None:
    is_at_rest = result.succeeds and state.succeeds is True
    if is_at_rest and result.is_steady:
        state.due = _next_change(
            life,
            container,
            probe,
            state,
        )
        state.version = _version(life, container["name"])
    else:
        state.due = tick(probe, state, life.now + timedelta(microseconds=1))


def _next_change(
    life: PodLife, container: Container, probe: Probe, state: ProbeRecord
) -> datetime | None:
    """Return the first probe after the container begins to answer something else by itself; None
    where it never does."""
    record = life.record_of(container)
    if probe.get("exec") or record.started is None:
        return None
    change = life.host.answers_change(container, record.started, life.now)
    if change is None:
        return None
    return tick(probe, state, max(change, life.now + timedelta(microseconds=1)))


def _take_result(
    life: PodLife,
    container: Container,
    record: ContainerRecord,
    probe_type: str,
    result: ProbeResult,
) -> None:
    """Count a result, and let it take effect at its threshold."""
    name = container["name"]
    title = TITLES[probe_type]
    if result.error:
        message = f"{title} probe errored and resulted in unknown state: {result.error}"
        life.emit(
            WARNING,
            "Unhealthy",
            message,
            name,
        )
        return
    if not result.succeeds:
        life.emit(WARNING, "Unhealthy", f"{title} probe failed: {result.output}", name)
    elif result.is_warning:
        life.emit(WARNING, "ProbeWarning", f"{title} probe warning: {result.output}", name)

    state = record.probes[probe_type]
    probe = cast("dict[str, Probe]", container)[FIELDS[probe_type]]
    state.count = state.count + 1 if state.last is result.succeeds else 1
    state.last = result.succeeds
    if result.succeeds:
        threshold = probe.get("successThreshold") or 1
    else:
        threshold = probe.get("failureThreshold") or 3
    if state.count < threshold:
        return
    state.succeeds = result.succeeds
    if probe_type == STARTUP or (probe_type == LIVENESS and not result.succeeds):
        state.is_held = True
        state.count = 0
    settle_readiness(life, container, record)


def failed_check(record: ContainerRecord) -> str:
    """Return the type of a probe for which a container is to be stopped; "" for none."""
    for probe_type in (LIVENESS, STARTUP):
        state = record.probes.get(probe_type)
        if state is not None and state.succeeds is False:
            return probe_type
    return ""


# --- the probes themselves


def _probe(
    life: PodLife, container: Container, probe: Probe, state: ProbeRecord
) -> ProbeResult | None:
    """Make a probe, or end the one under way; None: it goes on."""
    if probe.get("exec"):
        return _probe_by_command(
            life,
            container,
            probe,
            state,
        )
    if probe.get("httpGet"):
        return _probe_by_http(life, container, probe)
    if probe.get("tcpSocket"):
        return _probe_by_connection(life, container, probe)
    return _probe_by_grpc(life, container, probe)


def _ruled_failure(life: PodLife, container: Container, probe: Probe) -> ProbeResult:
    """Return the result of a probe that fails because a rule says so: what is there does not
    answer as it should."""
    output = ""
    if probe.get("httpGet"):
        output = f"HTTP probe failed with statuscode: {UNAVAILABLE}"
    elif probe.get("tcpSocket"):
        port = port_number(container, probe["tcpSocket"]["port"])
        output = f"dial tcp {life.address}:{port}: connect: connection refused"
    elif probe.get("grpc"):
        output = 'service unhealthy (responded with "NOT_SERVING")'
    return ProbeResult(succeeds=False, output=output, is_steady=False)


def _has_ended(life: PodLife, container: Container, state: ProbeRecord) -> bool:
    machine = life.machine(container["name"])
    if machine is None or state.pid is None:
        return False
    return machine.exit_of(state.pid) is not None


def _probe_by_command(
    life: PodLife, container: Container, probe: Probe, state: ProbeRecord
) -> ProbeResult | None:
    name = container["name"]
    timeout = probe.get("timeoutSeconds") or 1
    command = probe["exec"].get("command") or []
    answer = answer_to(life.host.behaviour(container), command)
    if answer is not None:
        return ProbeResult(answer.exit_code == 0, answer.stdout + answer.stderr)
    machine = life.machine_for_commands(name)
    if state.pid is None:
        try:
            state.pid = machine.start(command, unknown_ends=0.0)
        except StartError as error:
            return ProbeResult(succeeds=False, error=exec_problem(life, name, error))
        machine.run(life.now)
        state.due = life.after(timeout)

    end = machine.exit_of(state.pid)
    if end is None and state.due is not None and state.due > life.now:
        return None
    output = b"".join(part.data for part in machine.take_output(state.pid))
    text = output[:MAX_OUTPUT].decode("utf-8", "replace")
    if end is None:
        machine.signal(state.pid, 9)
        machine.run(life.now)
        state.pid = None
        message = f"command timed out: {quote(' '.join(command))} timed out after {timeout}s"
        return ProbeResult(succeeds=False, output=message, is_steady=False)
    is_steady = machine.is_steady(state.pid)
    machine.forget(state.pid)
    state.pid = None
    return ProbeResult(end.code == 0, text, is_steady=is_steady)


def exec_problem(life: PodLife, container: str, error: StartError) -> str:
    """Return the words in which a container runtime reports a command that cannot be started."""
    record = life.record_of(container)
    identity = container_id(uid_of(life.pod), f"{container}/exec", record.runs)
    _, _, digest = identity.rpartition("/")
    return (
        f"rpc error: code = Unknown desc = failed to exec in container: failed to start exec "
        f'"{digest}": OCI runtime exec failed: exec failed: unable to start container process: '
        f"{error.message}: unknown"
    )


def port_number(container: Container, port: int | str) -> int | None:
    """Return the number of a container's port that is given by number or name; None for a name that
    the container does not have (``ResolveContainerPort``)."""
    if isinstance(port, int):
        return port
    if port.isdigit():
        return int(port)
    for declared in container.get("ports") or ():
        if declared.get("name") == port:
            return declared["containerPort"]
    return None


def _unknown_port(name: int | str) -> ProbeResult:
    """Return what comes of a probe of a port whose name the container does not have."""
    return ProbeResult(
        succeeds=False, error=f"strconv.Atoi: parsing {quote(str(name))}: invalid syntax"
    )


def _probe_by_http(life: PodLife, container: Container, probe: Probe) -> ProbeResult:
    action = probe["httpGet"]
    port = port_number(container, action["port"])
    if port is None:
        return _unknown_port(action["port"])
    host = action.get("host") or life.address
    scheme = (action.get("scheme") or "HTTP").lower()
    path = action.get("path") or "/"
    if not path.startswith("/"):
        path = f"/{path}"
    url = f"{scheme}://{host}:{port}{path}"
    headers = tuple(
        (header["name"], header.get("value", "")) for header in action.get("httpHeaders") or ()
    )
    request = NetworkRequest("GET", url, headers=headers)
    try:
        answer = life.host.http(life.record, request, life.now)
    except NetworkError as error:
        problem = network_problem(error, host, port)
        return ProbeResult(succeeds=False, output=f"Get {quote(url)}: {problem}", is_steady=False)
    if 200 <= answer.status < 300:
        return ProbeResult(succeeds=True, is_steady=True)
    if 300 <= answer.status < 400:
        body = answer.body.decode("utf-8", "replace")
        message = f"Probe terminated redirects, Response body: {body}"
        return ProbeResult(
            succeeds=True,
            output=message,
            is_warning=True,
            is_steady=False,
        )
    message = f"HTTP probe failed with statuscode: {answer.status}"
    return ProbeResult(succeeds=False, output=message, is_steady=False)


def _probe_by_connection(life: PodLife, container: Container, probe: Probe) -> ProbeResult:
    action = probe["tcpSocket"]
    port = port_number(container, action["port"])
    if port is None:
        return _unknown_port(action["port"])
    host = action.get("host") or life.address
    try:
        life.host.connect(
            life.record,
            host,
            port,
            life.now,
        )
    except NetworkError as error:
        return ProbeResult(
            succeeds=False, output=network_problem(error, host, port), is_steady=False
        )
    return ProbeResult(succeeds=True)


def _probe_by_grpc(life: PodLife, container: Container, probe: Probe) -> ProbeResult:
    port = probe["grpc"]["port"]
    timeout = probe.get("timeoutSeconds") or 1
    try:
        life.host.connect(
            life.record,
            life.address,
            port,
            life.now,
        )
    except NetworkError:
        address = quote(f"{life.address}:{port}")
        message = (
            f"timeout: failed to connect service {address} within {timeout}s: "
            "context deadline exceeded"
        )
        return ProbeResult(succeeds=False, output=message, is_steady=False)
    return ProbeResult(succeeds=True)


def network_problem(error: NetworkError, host: str, port: int) -> str:
    """Return the words in which a kubelet reports a connection that failed."""
    if error.kind == "timeout":
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    if error.kind == "no such host":
        return f"dial tcp: lookup {host}: no such host"
    if error.kind == "unreachable":
        return f"dial tcp {host}:{port}: connect: no route to host"
    if error.kind == "reset":
        return f"read tcp {host}:{port}: read: connection reset by peer"
    return f"dial tcp {host}:{port}: connect: connection refused"
