"""Starting containers: the image, the configuration, the first process, the hook postStart.

Upstream: ``startContainer`` in ``pkg/kubelet/kuberuntime``, ``pkg/kubelet/images``.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kubepy.api.objects.outcomes import READY_AFTER, RUNS_FOR
from kubepy.api.values.goformat import format_duration
from kubepy.apiserver.rule_settings import pull_problem
from kubepy.kubelet.modelled.life import NORMAL, WARNING, PodLife
from kubepy.kubelet.modelled.nonroot import root_problem
from kubepy.kubelet.modelled.probing import begin_probes, settle_readiness
from kubepy.kubelet.modelled.records import ContainerRecord, LifecycleHook, RunEnd
from kubepy.kubelet.modelled.restarting import next_pull
from kubepy.kubelet.modelled.statuses import START_ERROR
from kubepy.kubelet.modelled.stopping import (
    ERROR,
    KILL,
    OOM_KILLED,
    SIGNALLED,
    begin_hook,
    end_run,
    hook_problem,
    stop_container,
)
from kubepy.kubelet.obstacles import (
    CONFIG_ERROR,
    ERR_IMAGE_PULL,
    IMAGE_PULL_BACKOFF,
    INVALID_IMAGE_NAME,
)
from kubepy.kubelet.reporting import reported_image
from kubepy.kubelet.restarts import PULL_ERROR_SECONDS
from kubepy.quoting import quote
from kubepy.shell.machine import StartError

if TYPE_CHECKING:
    from kubepy.api.typed import Container
    from kubepy.kubelet.behaviours import Behaviour

RUN_ERROR = "RunContainerError"
CODE_OF_START_ERROR = 128  # of a container that its runtime cannot start
# Reasons of the kubelet's image manager beside those of pulls: it does not get to the container.
WITHOUT_IMAGE = ("ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable")
SMALLEST_IMAGE, LARGEST_IMAGE = 2_000_000, 200_000_000  # bytes


def start_container(life: PodLife, container: Container) -> bool:
    """Take a container as far towards its next run as it gets now. Return whether it runs."""
    record = life.record_of(container)
    if life.is_behind and record.reason == CONFIG_ERROR:
        return False
    if _is_held_by_rule(life, container, record, before_image=True):
        return False
    if not _has_image(life, container, record):
        return False
    if _is_held_by_rule(life, container, record, before_image=False):
        return False
    problem = _configuration_problem(life, container)
    if problem:
        _wait(
            life,
            record,
            CONFIG_ERROR,
            problem,
            container,
        )
        return False
    _begin_run(life, container, record)
    return record.is_running


def _configuration_problem(life: PodLife, container: Container) -> str:
    """Return why a container cannot be created; "" where it can."""
    problem = root_problem(life.pod, container, life.host.behaviour(container))
    if problem:
        return problem
    obstacle = life.host.obstacles(container).of(container["name"])
    if obstacle is not None and obstacle.reason == CONFIG_ERROR:
        return obstacle.message
    return life.host.sub_path_problem(life.record, container, life.now)


def _is_held_by_rule(
    life: PodLife, container: Container, record: ContainerRecord, *, before_image: bool
) -> bool:
    """Tell whether a rule says that a container is not started; let it wait then. One that waits
    for that reason already keeps its own message."""
    problem = life.host.behaviour(container).start
    if problem is None or problem.reason == START_ERROR:
        return False
    if before_image is not (problem.reason in WITHOUT_IMAGE):
        return False
    if record.reason != problem.reason:
        _wait(life, record, problem.reason, problem.message, container)
    return True


def _wait(
    life: PodLife, record: ContainerRecord, reason: str, message: str, container: Container
) -> None:
    """Let a container wait, and say so once."""
    if (record.reason, record.message) == (reason, message):
        return
    _set_waiting(record, reason, message)
    if reason == INVALID_IMAGE_NAME:
        life.emit(
            WARNING,
            "InspectFailed",
            message,
            container["name"],
        )
        life.emit(WARNING, "Failed", f"Error: {reason}", container["name"])
    else:
        life.emit(WARNING, "Failed", f"Error: {message}", container["name"])
    life.touch()


def _set_waiting(record: ContainerRecord, reason: str, message: str = "") -> None:
    if record.ending is not None:
        record.last = record.ending
        record.ending = None
    record.reason = reason
    record.message = message
    record.due = None


# --- images


def _has_image(life: PodLife, container: Container, record: ContainerRecord) -> bool:
    """Tell whether the image of a container is there for its next run; if not, go on pulling."""
    if record.is_pulled:
        return True
    obstacle = life.host.obstacles(container).of(container["name"])
    if obstacle is not None and obstacle.reason == INVALID_IMAGE_NAME:
        _wait(
            life,
            record,
            INVALID_IMAGE_NAME,
            obstacle.message,
            container,
        )
        return False
    if record.due is not None and record.due > life.now:
        return False
    behaviour = life.host.behaviour(container)
    image = container["image"]
    name = container["name"]
    if record.is_pulling:
        seconds = (life.now - (record.pulled_first or life.now)).total_seconds()
        _note_pulled(
            life,
            container,
            record,
            seconds,
        )
        return True
    if record.reason == ERR_IMAGE_PULL:
        return _back_off_pull(life, container, record)
    problem = pull_problem(behaviour.pull)
    if problem is not None:
        _fail_pull(life, container, record, problem)
        return False

    if note_present_image(life, container):
        record.is_pulled = True
        record.due = None
        return True

    life.emit(NORMAL, "Pulling", f"Pulling image {quote(image)}", name)
    seconds = _pull_seconds(life, behaviour)
    if seconds <= 0:
        _note_pulled(
            life,
            container,
            record,
            0.0,
        )
        return True
    record.is_pulling = True
    record.pulled_first = life.now
    if record.reason in (ERR_IMAGE_PULL, IMAGE_PULL_BACKOFF):
        _set_waiting(record, "")
    record.due = life.after(seconds)
    life.touch()
    return False


def note_present_image(life: PodLife, container: Container) -> bool:
    """Note that the image of a container is there and need not be pulled. Return whether it is."""
    note_missing_pull_secrets(life, container)
    is_there = life.host.takes_image(container)
    if not is_there or container.get("imagePullPolicy") == "Always":
        return False
    message = (
        f"Container image {quote(container['image'])} already present on machine "
        "and can be accessed by the pod"
    )
    life.emit(
        NORMAL,
        "Pulled",
        message,
        container["name"],
    )
    return True


def note_image(life: PodLife, container: Container) -> None:
    """Note that the image of a container is there, pulled at once where it has to be."""
    if note_present_image(life, container):
        return
    life.emit(NORMAL, "Pulling", f"Pulling image {quote(container['image'])}", container["name"])
    _note_pulled(
        life,
        container,
        life.record_of(container),
        0.0,
    )


def note_missing_pull_secrets(life: PodLife, container: Container) -> None:
    """Say once for the pod which Secrets for registries are not there, whether or not an image must
    be pulled (``getPullSecretsForPod``)."""
    first = [*life.init_containers, *life.containers][0]
    if container["name"] != first["name"]:
        return
    names = life.host.missing_pull_secrets()
    if names:
        life.emit(
            WARNING,
            "FailedToRetrieveImagePullSecret",
            f"Unable to retrieve some image pull secrets ({', '.join(names)}); "
            "attempting to pull the image may not succeed.",
        )


def note_start(life: PodLife, container: Container) -> None:
    """Note that a container was created and started."""
    life.emit(
        NORMAL,
        "Created",
        "Container created",
        container["name"],
    )
    life.emit(
        NORMAL,
        "Started",
        "Container started",
        container["name"],
    )


def _pull_seconds(life: PodLife, behaviour: Behaviour) -> float:
    if behaviour.pull is None or isinstance(behaviour.pull, str):
        return 0.0
    low, high = behaviour.pull
    return life.host.draw("pull", low, high)


def _note_pulled(
    life: PodLife, container: Container, record: ContainerRecord, seconds: float
) -> None:
    image = container["image"]
    length = format_duration(timedelta(seconds=seconds).total_seconds())
    message = (
        f"Successfully pulled image {quote(image)} in {length} ({length} including waiting). "
        f"Image size: {image_size(image)} bytes."
    )
    life.emit(
        NORMAL,
        "Pulled",
        message,
        container["name"],
    )
    record.is_pulling = False
    record.is_pulled = True
    record.failed_pulls = 0
    record.pulled_first = None
    record.due = None


def image_size(image: str) -> int:
    """Return a size for an image: nothing is known of it, so its name decides."""
    number = 0
    for character in image:
        number = (number * 131 + ord(character)) % 1_000_000_007
    return SMALLEST_IMAGE + number % (LARGEST_IMAGE - SMALLEST_IMAGE)


def _fail_pull(life: PodLife, container: Container, record: ContainerRecord, problem: str) -> None:
    """Let a pull fail: the error is reported for a moment, then that the kubelet waits.

    :param problem: what the runtime says, "" for that there is no such image.
    """
    image = container["image"]
    name = container["name"]
    reference = reported_image(image)
    if not problem:
        problem = (
            "rpc error: code = NotFound desc = failed to pull and unpack image "
            f"{quote(reference)}: failed to resolve reference {quote(reference)}: {reference}: "
            "not found"
        )
    note_missing_pull_secrets(life, container)
    life.emit(NORMAL, "Pulling", f"Pulling image {quote(image)}", name)
    life.emit(WARNING, "Failed", f"Failed to pull image {quote(image)}: {problem}", name)
    life.emit(WARNING, "Failed", f"Error: {ERR_IMAGE_PULL}", name)
    if record.pulled_first is None:
        record.pulled_first = life.now
    is_first = record.failed_pulls == 0
    record.failed_pulls += 1
    _set_waiting(record, ERR_IMAGE_PULL, problem)
    if is_first:
        _back_off_pull(life, container, record)
    else:
        record.due = min(life.after(PULL_ERROR_SECONDS), next_pull(record, life.now))
    life.touch()


def _back_off_pull(life: PodLife, container: Container, record: ContainerRecord) -> bool:
    """Report that the next pull is waited for."""
    image = container["image"]
    name = container["name"]
    message = f"Back-off pulling image {quote(image)}"
    life.emit(NORMAL, "BackOff", message, name)
    life.emit(WARNING, "Failed", f"Error: {IMAGE_PULL_BACKOFF}", name)
    problem = f"{ERR_IMAGE_PULL}: {record.message}"
    _set_waiting(record, IMAGE_PULL_BACKOFF, f"{message}: {problem}")
    record.due = next_pull(record, life.now)
    life.touch()
    return False


# --- the run


def _begin_run(life: PodLife, container: Container, record: ContainerRecord) -> None:
    """Create a container and start it; the hook postStart is part of the start."""
    name = container["name"]
    if record.ending is not None:
        record.last = record.ending
    record.ending = None
    record.reason = ""
    record.message = ""
    record.due = None
    record.image = container["image"]
    record.is_pulled = False
    record.is_replaced = False
    record.runs += 1
    life.touch()
    life.emit(
        NORMAL,
        "Created",
        "Container created",
        name,
    )
    record.started = life.now
    behaviour = life.host.behaviour(container)
    if behaviour.start is not None and behaviour.start.reason == START_ERROR:
        code = behaviour.exit_code or CODE_OF_START_ERROR
        _fail_start(life, container, record, code, behaviour.start.message)
        return
    try:
        process = life.host.start(life.record, container, life.now)
    except StartError as error:
        message = (
            "failed to create containerd task: failed to create shim task: OCI runtime create "
            "failed: runc create failed: unable to start container process: "
            f"{error.message}: unknown"
        )
        _fail_start(life, container, record, error.code, message)
        return
    life.emit(
        NORMAL,
        "Started",
        "Container started",
        name,
    )
    life.set_machine(name, process.machine)
    if process.machine is not None:
        life.share_processes()
        process.machine.run(life.now)
    life.host.begin_log(container, record.runs)
    text = behaviour.log
    if text:
        output = text if text.endswith("\n") else f"{text}\n"
        life.host.log(container, record.runs, [(life.now, "stdout", output.encode())])
    set_times(life, container, record, life.now)
    begin_probes(life, container, record)
    handler = (container.get("lifecycle") or {}).get("postStart")
    if handler:
        hook = begin_hook(life, container, handler)
        if isinstance(hook, LifecycleHook):
            record.hook = hook
        else:
            _end_hook(
                life,
                container,
                record,
                hook,
            )
    settle_readiness(life, container, record)


def _fail_start(
    life: PodLife, container: Container, record: ContainerRecord, code: int, message: str
) -> None:
    """End a container whose process cannot be started, as a container runtime reports it."""
    life.emit(WARNING, "Failed", f"Error: {message}", container["name"])
    record.started = None
    record.ending = RunEnd(
        exit_code=code,
        reason=START_ERROR,
        finished=life.now,
        message=message,
        run=record.runs,
    )


def set_times(
    life: PodLife, container: Container, record: ContainerRecord, started: datetime
) -> None:
    """Set what rules say of a run that has started then: when it ends and when it is ready,
    whatever its program does."""
    set_ruled_times(life, container, record, started)
    behaviour = life.host.behaviour(container)
    is_opaque = life.machine(container["name"]) is None
    if is_opaque and behaviour.listens is None and life.host.ends_by_itself(container):
        record.ends = record.ends or started
    limit = life.host.memory_limit(container)
    if limit is not None and behaviour.memory is not None and behaviour.memory > limit:
        record.ends = started
        record.exit_code = SIGNALLED + KILL
        record.end_reason = OOM_KILLED


def set_ruled_times(
    life: PodLife, container: Container, record: ContainerRecord, started: datetime
) -> None:
    """Set when a run ends and when it is ready, as far as rules give a time for it."""
    behaviour = life.host.behaviour(container)
    if behaviour.exit_code is not None:
        record.exit_code = behaviour.exit_code
    if behaviour.exit_reason is not None:
        record.end_reason = behaviour.exit_reason
    if behaviour.runs_for is not None:
        low, high = behaviour.runs_for
        record.ends = started + timedelta(seconds=life.host.draw(RUNS_FOR, low, high))
        code = record.exit_code or 0
        record.exit_code = code
    if behaviour.ready_after is not None and not isinstance(behaviour.ready_after, str):
        low, high = behaviour.ready_after
        record.gets_ready = started + timedelta(seconds=life.host.draw(READY_AFTER, low, high))


def go_on_starting(life: PodLife, container: Container, record: ContainerRecord) -> bool:
    """End the hook postStart of a container if it is over. Return whether it is."""
    if record.hook is None:
        return False
    problem = hook_problem(life, container, record.hook)
    if problem is None:
        return False
    record.hook = None
    _end_hook(
        life,
        container,
        record,
        problem,
    )
    settle_readiness(life, container, record)
    life.touch()
    return True


def _end_hook(life: PodLife, container: Container, record: ContainerRecord, problem: str) -> None:
    """Stop a container whose hook has failed."""
    if not problem:
        return
    life.emit(
        WARNING,
        "FailedPostStartHook",
        "PostStartHook failed",
        container["name"],
    )
    stop_container(life, container, "FailedPostStartHook")


def end_by_rule(life: PodLife, container: Container, record: ContainerRecord) -> bool:
    """End a run whose time is over by a rule. Return whether it is."""
    if record.ends is None or record.ends > life.now:
        return False
    code = record.exit_code or 0
    reason = record.end_reason
    if not reason and code:
        reason = ERROR
    end_run(
        life,
        container,
        code,
        record.ends,
        reason,
    )
    message = life.host.behaviour(container).exit_message
    if message and record.ending is not None:
        record.ending.message = message
    return True
