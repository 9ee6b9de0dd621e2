"""The knowledge of a kubelet and its container runtime about a pod: the records of its containers.

A record is plain data with an exact JSON form, so that the next process goes on where this one
ends. Times are moments of the cluster in UTC.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar, Self

from kubepy.api.clock import format_micro_time, parse_time

RECORD = "pod/"  # the small value of a pod's record: this and the pod's uid
FORMAT = 1


@dataclass(slots=True)
class Plain:
    """Data with a JSON form that leaves out what has its default."""

    times: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[dict[str, type[Plain]]] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        values: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None or value == each.default:
                continue
            if isinstance(value, dict | list) and not value:
                continue
            values[each.name] = _to_json(value)
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` has returned. Raises TypeError, ValueError, KeyError."""
        arguments = dict(values)
        for name in cls.times:
            if arguments.get(name) is not None:
                arguments[name] = parse_time(arguments[name])
        for name, part in cls.parts.items():
            if arguments.get(name) is not None:
                arguments[name] = part.from_json(arguments[name])
        return cls(**arguments)


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_micro_time(value)
    if isinstance(value, Plain):
        return value.to_json()
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    return value


@dataclass(slots=True)
class RunEnd(Plain):
    """The end of a run of a container (``ContainerStateTerminated``)."""

    times: ClassVar[tuple[str, ...]] = ("started", "finished")

    exit_code: int
    reason: str
    finished: datetime
    started: datetime | None = None
    message: str = ""
    run: int = 0


@dataclass(slots=True)
class ProbeRecord(Plain):
    """The state of one probe of a container (``pkg/kubelet/prober/worker.go``).

    :ivar succeeds: the result that counts; None: none yet.
    :ivar last: the result of the last probe, and ``count``: of how many in a row.
    :ivar is_held: no more probes of this run.
    :ivar due: the next probe, or the end of the one under way; None: none is needed as long as
        ``version`` of the files is the same.
    :ivar pid: the process of a probe that is under way.
    """

    times: ClassVar[tuple[str, ...]] = ("due", "phase")

    phase: datetime
    succeeds: bool | None = None
    last: bool | None = None
    count: int = 0
    is_held: bool = False
    due: datetime | None = None
    version: int | None = None
    pid: int | None = None


@dataclass(slots=True)
class LifecycleHook(Plain):
    """A lifecycle hook that is under way: a process, or a sleep until ``due``."""

    times: ClassVar[tuple[str, ...]] = ("due",)

    pid: int | None = None
    due: datetime | None = None


@dataclass(slots=True)
class Stopping(Plain):
    """A container that is being stopped: it ends by itself after TERM, or at its deadline.

    :ivar grace: the seconds that it was given.
    :ivar ends_pod: it is stopped because its pod ends.
    :ivar hook: the preStop hook that is under way; TERM comes after it.
    :ivar stops: when a process that nothing is known of has ended after TERM.
    """

    times: ClassVar[tuple[str, ...]] = ("asked", "deadline", "stops")
    parts: ClassVar[dict[str, type[Plain]]] = {"hook": LifecycleHook}

    asked: datetime
    deadline: datetime
    grace: int = 0
    ends_pod: bool = False
    hook: LifecycleHook | None = None
    is_signalled: bool = False
    stops: datetime | None = None


@dataclass(slots=True)
class ContainerRecord(Plain):
    """One container.

    :ivar image: the image of the last run.
    :ivar reason: why it waits, with ``message``; "" for a container that does not wait.
    :ivar started: the begin of the run under way; None where none is.
    :ivar has_started: its startup probe has succeeded (``started`` of the status).
    :ivar ending: the end of the last run, of a container that neither runs nor waits.
    :ivar last: the end of the run before (``lastState``).
    :ivar runs: how many runs have begun.
    :ivar backoff: the present back-off of restarts in seconds, 0 before the first restart;
        ``backoff_set``: when it was set.
    :ivar due: the next try to pull the image or to start again.
    :ivar failed_pulls: how many pulls have failed in a row, the first at ``pulled_first``.
    :ivar ends: when the run ends whatever the program does; ``exit_code`` and ``end_reason`` go
        with it.
    :ivar gets_ready: when the container is ready whatever its probes say.
    :ivar is_replaced: it is stopped for another image or other resources, and starts again
        whatever its restart policy says.
    :ivar resized: the generation of the pod for whose resources it was stopped last.
    :ivar is_ended: a command inside of it has ended its main process, and its kubelet has not
        looked since.
    :ivar image_size: the bytes of its layer that its image has brought.
    :ivar machine: the JSON of its processes and files; None where it runs a program of which
        nothing is known.
    :ivar variables: what such a program was started with, where some of it comes from objects.
    """

    times: ClassVar[tuple[str, ...]] = (
        "started",
        "backoff_set",
        "due",
        "pulled_first",
        "ends",
        "gets_ready",
    )
    parts: ClassVar[dict[str, type[Plain]]] = {
        "ending": RunEnd,
        "last": RunEnd,
        "hook": LifecycleHook,
        "stopping": Stopping,
    }

    name: str
    image: str = ""
    reason: str = ""
    message: str = ""
    started: datetime | None = None
    has_started: bool = False
    is_ready: bool = False
    ending: RunEnd | None = None
    last: RunEnd | None = None
    runs: int = 0
    backoff: int = 0
    backoff_set: datetime | None = None
    due: datetime | None = None
    failed_pulls: int = 0
    pulled_first: datetime | None = None
    is_pulling: bool = False
    is_pulled: bool = False
    hook: LifecycleHook | None = None
    stopping: Stopping | None = None
    ends: datetime | None = None
    exit_code: int | None = None
    end_reason: str = ""
    gets_ready: datetime | None = None
    is_replaced: bool = False
    resized: int = 0
    is_ended: bool = False
    image_size: int = 0
    probes: dict[str, ProbeRecord] = field(default_factory=dict)
    machine: dict[str, Any] | None = None
    unknowns: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Tell whether a run is under way."""
        return self.started is not None

    @property
    def restarts(self) -> int:
        """Count the restarts."""
        return max(self.runs - 1, 0)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` has returned."""
        probes = {
            name: ProbeRecord.from_json(probe) for name, probe in values.get("probes", {}).items()
        }
        record = super(ContainerRecord, cls).from_json(
            {name: value for name, value in values.items() if name != "probes"}
        )
        record.probes = probes
        return record


@dataclass(slots=True)
class PodRecord(Plain):
    """A pod on its node.

    :ivar at: the moment up to which the pod has lived.
    :ivar containers: by name, init and ephemeral containers among them.
    :ivar volumes: the JSON of the trees of volumes that live as long as the pod, by name.
    :ivar end: the reason for which the whole pod ends, with ``end_message``: "" while it lives,
        ``Completed`` where its containers have ended by themselves.
    :ivar grace: the seconds that its containers get to end, once it is being deleted or evicted;
        they only become fewer. 0: it is neither.
    :ivar is_over: every container has ended and none starts again.
    :ivar evicts: when the eviction manager looks at it; None: it exceeds no limit.
    :ivar is_adopted: it was made from a status, and its runs go on by what rules say from now on.
    :ivar was_being_deleted: the pod was being deleted already when it was made from the status.
    :ivar refreshes: when changed ConfigMaps and Secrets reach the files.
    """

    times: ClassVar[tuple[str, ...]] = ("at", "refreshes", "evicts")

    at: datetime
    containers: dict[str, ContainerRecord] = field(default_factory=dict)
    volumes: dict[str, Any] = field(default_factory=dict)
    end: str = ""
    end_message: str = ""
    grace: int = 0
    is_over: bool = False
    mounts_fail: bool = False
    is_adopted: bool = False
    was_being_deleted: bool = False
    refreshes: datetime | None = None
    evicts: datetime | None = None
    uses_network: bool = False

    @property
    def has_ended_inside(self) -> bool:
        """Whether a command inside of a container has ended its main process."""
        return any(container.is_ended for container in self.containers.values())

    def dump(self) -> str:
        """Return the record as text, in ASCII: the variables of shells may have bytes that are no
        UTF-8, which lone surrogates stand for."""
        values = self.to_json()
        return json.dumps({"format": FORMAT, **values}, separators=(",", ":"))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` has returned."""
        containers = {
            name: ContainerRecord.from_json(container)
            for name, container in values.get("containers", {}).items()
        }
        record = super(PodRecord, cls).from_json(
            {name: value for name, value in values.items() if name != "containers"}
        )
        record.containers = containers
        return record


def load_record(text: str | None) -> PodRecord | None:
    """Read the text of a record; None where there is none, or one that another version has
    written: the pod's status tells then where it stands."""
    if text is None:
        return None
    try:
        values = json.loads(text)
        if values.pop("format") != FORMAT:
            return None
        return PodRecord.from_json(values)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None
