"""The rules by which containers do what cannot be known from their manifests, as
``kubelet.rules`` in ``kubepy.yaml``, or a file that it names, has them (docs/rules.md).

Only what a rule is and how it is read; ``kubepy.kubelet.behaviours`` applies them.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import AnyObject
from kubepy.api.objects import outcomes
from kubepy.api.objects.usage import AnnotationError
from kubepy.api.selectors import LabelSelector, SelectorError, parse_labels
from kubepy.api.values.goformat import parse_duration
from kubepy.api.values.quantity import Quantity, QuantityError, parse_quantity
from kubepy.apiserver.strict_fields import (
    Parser,
    field_error,
    join_path,
    parse_fields,
    parse_text,
    shown,
)
from kubepy.lazy import lazy_imports
from kubepy.storage import FolderError, StorageError

with lazy_imports():
    from kubepy.api.cel import checker, interpreter
    from kubepy.api.cel import types as cel_types
    from kubepy.api.cel import values as cel_values
    from kubepy.storage import yaml

if TYPE_CHECKING:
    from kubepy.api.cel.checker import Compiled

SETTING = "kubepy.yaml: kubelet.rules"
FAILS = "fails"  # a value of ``pull``, alone or followed by ": " and what the kubelet says of it
NEVER = "never"  # a value of ``readyAfter`` and ``stopsAfter``
UNKNOWN = "unknown"  # the value of ``program``
OK = 200
MAX_PORT = 65535
MAX_FILE = 4 * 2**20  # bytes of a file of rules
NANOS = Decimal(10**9)


class Length(NamedTuple):
    """A length of time in seconds, or a range of which each case draws its own."""

    low: float
    high: float

    def __str__(self) -> str:
        low = _seconds(self.low)
        high = _seconds(self.high)
        if low == high:
            return low
        return f"{low}..{high}"


class StartProblem(NamedTuple):
    """The reason why a container is not started, as its status has it, with the message beside
    it."""

    reason: str
    message: str = ""

    def __str__(self) -> str:
        if not self.message:
            return self.reason
        return f"{self.reason}: {self.message}"


class HttpReply(NamedTuple):
    """The answer of a container to a request. ``body``: None for the line that names the pod."""

    status: int = OK
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Phase(NamedTuple):
    """An answer, and for how many seconds it is given; None: from then on."""

    reply: HttpReply
    seconds: float | None = None


class HttpSchedule(NamedTuple):
    """The answers to requests of one path, one after the other, from a container's start."""

    phases: tuple[Phase, ...]

    def at(self, seconds: float) -> HttpReply:
        """Return the answer so many seconds after the container's start."""
        end = 0.0
        for phase in self.phases:
            end += phase.seconds or 0.0
            if phase.seconds is None or seconds < end:
                return phase.reply
        return self.phases[-1].reply

    def next_change(self, seconds: float) -> float | None:
        """Return when, after so many seconds, another answer begins; None: never."""
        end = 0.0
        for phase in self.phases[:-1]:
            end += phase.seconds or 0.0
            if seconds < end:
                return end
        return None


class ExecAnswer(NamedTuple):
    """The output of a command that is run in a container, and its exit code."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


class Glob:
    """A pattern with ``*``, ``?`` and ``[…]``, in which ``*`` stands for slashes too."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._expression = re.compile(fnmatch.translate(text))

    def matches(self, text: str) -> bool:
        return self._expression.match(text) is not None

    def __repr__(self) -> str:
        return f"Glob({self.text!r})"


class CelCondition:
    """A CEL expression over ``pod`` and ``container``."""

    def __init__(self, text: str, compiled: Compiled) -> None:
        self.text = text
        self._compiled = compiled

    def holds(self, pod: AnyObject, container: AnyObject) -> bool:
        """Return whether the expression is true. One that cannot be evaluated, as where a field is
        missing, does not hold: a rule speaks of the pods that have the field."""
        try:
            value = interpreter.evaluate(self._compiled.node, {"pod": pod, "container": container})
        except cel_values.CelError:
            return False
        return value is True


class Match(NamedTuple):
    """The containers of which a rule speaks: those for which every condition holds that is
    given."""

    image: Glob | None = None
    namespace: Glob | None = None
    name: Glob | None = None
    selector: LabelSelector | None = None
    label_keys: tuple[str, ...] = ()
    container: Glob | None = None
    owner: Glob | None = None
    node: Glob | None = None
    args: Glob | None = None
    cel: CelCondition | None = None


class BehaviourRule(NamedTuple):
    """One rule. ``values``: what it sets, by the fields' names in Python; ``place``: where it
    stands."""

    match: Match
    values: Mapping[str, Any]
    place: str


class RuleSettings(NamedTuple):
    """All rules, in their order.

    :param source: what tells one version of them from another.
    :param file: the name of the file in which they stand, "" for ``kubepy.yaml``.
    :param text: what that file has.
    """

    rules: tuple[BehaviourRule, ...] = ()
    source: str = ""
    file: str = ""
    text: str = ""

    def __repr__(self) -> str:
        return f"RuleSettings({self.file!r}, {self.source!r})"


NO_RULES = RuleSettings()
ABSENT = object()  # no version was seen yet


# --- files ----------------------------------------------------------------------------------------


class RuleFile:
    """The rules of a cluster that is open, where they stand: in its settings, or in a file of the
    state folder. Anybody may edit them meanwhile.

    :param folder: the state folder.
    :param settings: the rules as they were when the cluster was opened.
    :param setting: returns the value of ``kubelet.rules`` as it is now; it may raise StorageError.
    :ivar problem: why the newest version does not count, "" where it does.
    """

    def __init__(
        self, folder: str, settings: RuleSettings, setting: Callable[[], Any] = lambda: None
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._setting = setting
        self._seen: object = ABSENT
        self.problem = ""

    def settings(self) -> RuleSettings:
        """Return the rules as they are now; as they last were, where they cannot be read: what runs
        goes on, and :attr:`problem` says why."""
        try:
            value = self._setting()
            version = (value, self._stamp(value))
            if version == self._seen:
                return self._settings
            self._seen = version
            self._settings = parse_rules(value, self._folder)
            self.problem = ""
        except StorageError as error:
            self.problem = str(error)
        return self._settings

    def _stamp(self, value: Any) -> tuple[int, ...]:
        """Return what tells one version of the file that the setting names from another."""
        if isinstance(value, str):
            return file_stamp(self._folder, value)
        return ()


def file_stamp(folder: str, name: str) -> tuple[int, ...]:
    """Return what tells one version of a file of rules from another."""
    if not name:
        return ()
    try:
        status = os.stat(os.path.join(folder, name))
    except OSError:
        return ()
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def read_rules(folder: str, name: str) -> RuleSettings:
    """Read a file of rules. Raises FolderError, which names the file, the rule and the field."""
    text = _read_inside(folder, name)
    try:
        documents = yaml.load_all(text, unique_keys=True)
    except yaml.YamlError as error:
        raise field_error(
            name,
            str(error),
        ) from None
    if len(documents) != 1:
        raise field_error(
            name,
            f"must be one document with rules, not {len(documents)}",
        )
    value = documents[0].object
    path = name
    if isinstance(value, dict) and list(value) == ["rules"]:
        value = value["rules"]
        path = f"{name}: rules"
    settings = _rule_settings(path, value)
    return settings._replace(
        file=name,
        text=text,
    )


def _read_inside(folder: str, name: str) -> str:
    """Read a file that must be inside of a folder. Raises FolderError."""
    if not folder:
        raise field_error(
            SETTING,
            "a file can be named in a state folder only: must be a list",
        )
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, name))
    if os.path.isabs(name) or os.path.commonpath([root, path]) != root:
        raise field_error(
            SETTING,
            f"{shown(name)} is not inside of the state folder",
        )
    try:
        if not os.path.isfile(path):
            raise field_error(
                SETTING,
                f"there is no file {shown(name)} in the state folder",
            )
        if os.path.getsize(path) > MAX_FILE:
            raise field_error(
                SETTING,
                f"{shown(name)} has more than {MAX_FILE} bytes",
            )
        with open(path, "rb") as file:
            return file.read().decode()
    except UnicodeDecodeError:
        raise field_error(
            name,
            "is not UTF-8",
        ) from None
    except OSError as error:
        raise field_error(
            SETTING,
            f"{shown(name)}: {error.strerror}",
        ) from None


# --- parsing --------------------------------------------------------------------------------------


def parse_rules(value: Any, folder: str = "") -> RuleSettings:
    """Read the value of ``kubelet.rules``: a list, or the name of a file inside of the state
    folder. Raises FolderError, which names the file, the rule and the field."""
    if isinstance(value, str) and value:
        return read_rules(folder, value)
    if isinstance(value, str):
        raise field_error(
            SETTING,
            "must be a list of rules, or the name of a file",
        )
    return _rule_settings(SETTING, value)


def _rule_settings(path: str, value: Any) -> RuleSettings:
    if value is None:
        value = []
    if not isinstance(value, list):
        raise field_error(
            path,
            "must be a list of rules",
        )
    rules: list[BehaviourRule] = []
    for index, entry in enumerate(value):
        rule = parse_rule(f"{path}[{index}]", entry)
        rules.append(rule)
    source = json.dumps(value, sort_keys=True, default=str)
    return RuleSettings(
        tuple(rules),
        source,
    )


def parse_rule(path: str, value: Any) -> BehaviourRule:
    """Read one rule."""
    values = parse_fields(path, value, RULE, ("match",))
    match = values.pop("match")
    if not values:
        fields = ", ".join(FIELDS)
        raise field_error(
            path,
            f"sets nothing: must have at least one of {fields}",
        )
    return BehaviourRule(match, MappingProxyType(values), path)


def value_or_none(field: str, value: Any) -> Any:
    """Read the value of one field of a rule; None where it is none."""
    try:
        return FIELDS[field](field, value)
    except FolderError:
        return None


def parse_match(path: str, value: Any) -> Match:
    """Read the conditions of a rule."""
    conditions = parse_fields(path, value, MATCH)
    if not conditions:
        raise field_error(
            path,
            f"must have at least one of {', '.join(MATCH)}",
        )
    selector = conditions.get("selector")
    if selector is not None:
        keys = [requirement.key for requirement in selector.requirements]
        conditions["label_keys"] = tuple(keys)
    return Match(**conditions)


def parse_glob(path: str, value: Any) -> Glob:
    text = parse_text(path, value)
    if re.search(r"\[(?![!^]?\]?[^\]]+\])", text):
        raise field_error(
            path,
            f"{shown(text)} is not a pattern: a [ is not closed",
        )
    return Glob(text)


def parse_owner(path: str, value: Any) -> Glob:
    pattern = parse_glob(path, value)
    kind, slash, name = pattern.text.partition("/")
    if not slash or not kind or not name:
        raise field_error(
            path,
            f"{shown(value)} is not an owner such as Job/* or Deployment/web",
        )
    return pattern


def parse_selector(path: str, value: Any) -> LabelSelector:
    """Read a label selector as the command line has it: ``app=web,tier!=db``."""
    try:
        return parse_labels(parse_text(path, value))
    except SelectorError as error:
        raise field_error(
            path,
            str(error),
        ) from None


def parse_cel(path: str, value: Any) -> CelCondition:
    """Compile a CEL expression over ``pod`` and ``container``."""
    text = parse_text(path, value)
    variables = {"pod": cel_types.DYN, "container": cel_types.DYN}
    try:
        compiled = checker.compile_expression(
            text,
            variables,
        )
    except checker.CompileError as error:
        raise field_error(
            path,
            f"does not compile: {str(error).splitlines()[0]}",
        ) from None
    if compiled.type not in (cel_types.BOOL, cel_types.DYN):
        raise field_error(
            path,
            "must be an expression that is true or false",
        )
    return CelCondition(text, compiled)


def parse_length(path: str, value: Any) -> Length:
    """Read a duration or a range, as the annotation ``kubepy.dev/ready-after`` has it."""
    text = "0" if value == 0 and not isinstance(value, bool) else value
    try:
        if not isinstance(text, str):
            raise ValueError
        return Length(*outcomes.parse_length(path, text))
    except ValueError:  # AnnotationError is one
        raise field_error(
            path,
            f"{shown(value)} is not a duration such as 5s, or a range such as 2s..8s",
        ) from None


def parse_length_or_never(path: str, value: Any) -> Length | str:
    """Read a duration or a range, or that something never happens."""
    if value == NEVER:
        return NEVER
    return parse_length(path, value)


def parse_program(path: str, value: Any) -> str:
    """Read that the program of a container is not known."""
    if value == UNKNOWN:
        return UNKNOWN
    raise field_error(
        path,
        f"{shown(value)} is not {UNKNOWN}, which is all that can be said of a program",
    )


def parse_start(path: str, value: Any) -> StartProblem:
    """Read why a container is not started."""
    return StartProblem(**parse_fields(path, value, START, ("reason",)))


def pull_problem(pull: Length | str | None) -> str | None:
    """Return what a kubelet says of a pull that fails, "" where nothing is known of that; None for
    one that does not fail."""
    if not isinstance(pull, str):
        return None
    return pull.removeprefix(FAILS).removeprefix(": ")


def parse_pull(path: str, value: Any) -> Length | str:
    """Read how long a pull takes, or that it fails."""
    if isinstance(value, str) and (value == FAILS or value.startswith(f"{FAILS}: ")):
        return value
    try:
        return parse_length(path, value)
    except FolderError:
        raise field_error(
            path,
            f"{shown(value)} is neither {FAILS} nor a duration such as 5s or 3s..20s",
        ) from None


def parse_exit_code(path: str, value: Any) -> int:
    return _parse_number(path, value, 0, 255)


def parse_port(path: str, value: Any) -> int:
    return _parse_number(path, value, 1, MAX_PORT)


def _parse_number(path: str, value: Any, least: int, most: int) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and least <= value <= most:
        return int(value)
    raise field_error(
        path,
        f"{shown(value)} is not a number from {least} to {most}",
    )


def parse_ports(path: str, value: Any) -> tuple[int, ...]:
    """Read a list of ports; an empty one says that nothing is listened on."""
    if not isinstance(value, list):
        raise field_error(
            path,
            "must be a list of ports",
        )
    ports: list[int] = []
    for index, entry in enumerate(value):
        port = parse_port(f"{path}[{index}]", entry)
        ports.append(port)
    return tuple(ports)


def _parse_amount(path: str, value: Any) -> Quantity:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        if not isinstance(value, str):
            raise ValueError
        amount = parse_quantity(value)
    except (QuantityError, ValueError):
        raise field_error(
            path,
            f"{shown(value)} is not a quantity such as 250Mi",
        ) from None
    if amount.nanos < 0:
        raise field_error(
            path,
            f"{shown(value)} is less than 0",
        )
    return amount


def parse_memory(path: str, value: Any) -> int:
    """Read an amount of memory in bytes."""
    amount = _parse_amount(path, value)
    return amount.value()


def parse_cpu(path: str, value: Any) -> Decimal:
    """Read an amount of cpu in cores."""
    amount = _parse_amount(path, value)
    return Decimal(amount.nanos) / NANOS


def parse_string(path: str, value: Any) -> str:
    """Read a string, which may be empty."""
    if not isinstance(value, str):
        raise field_error(
            path,
            "must be a string",
        )
    return value


def parse_outcome(path: str, value: Any) -> str:
    """Read an outcome, or a sequence of them: ``crash-loop*3, ready`` (docs/kubelet.md)."""
    text = parse_text(path, value)
    try:
        outcomes.parse_outcomes(path, text)
    except AnnotationError as error:
        raise field_error(
            path,
            str(error).removeprefix(f"{path}: "),
        ) from None
    except outcomes.UnknownOutcomeError as error:
        raise field_error(
            path,
            str(error),
        ) from None
    return text


def _parse_map(path: str, value: Any, parse: Parser) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise field_error(
            path,
            "must be a map",
        )
    parsed: dict[str, Any] = {}
    for key, entry in value.items():
        if not isinstance(key, str) or not key:
            raise field_error(
                join_path(path, key),
                "the key must be a string",
            )
        parsed[key] = parse(f"{path}[{key}]", entry)
    return parsed


def parse_files(path: str, value: Any) -> Mapping[str, str]:
    """Read the files that an image has, by their absolute paths."""
    files = _parse_map(path, value, parse_string)
    for name in files:
        if not name.startswith("/") or name.endswith("/"):
            raise field_error(
                f"{path}[{name}]",
                "must be the absolute path of a file",
            )
    return MappingProxyType(files)


def parse_env(path: str, value: Any) -> Mapping[str, str]:
    """Read the environment variables that an image sets."""
    variables = _parse_map(path, value, parse_string)
    for name in variables:
        if "=" in name:
            raise field_error(
                f"{path}[{name}]",
                "the name of a variable has no =",
            )
    return MappingProxyType(variables)


def parse_http(path: str, value: Any) -> tuple[tuple[str, HttpSchedule], ...]:
    """Read the answers to HTTP requests, by their paths, which may be patterns."""
    schedules = _parse_map(path, value, parse_schedule)
    for name in schedules:
        if not name.startswith(("/", "*")):
            raise field_error(
                f"{path}[{name}]",
                "must be a path that begins with /",
            )
        parse_glob(f"{path}[{name}]", name)
    return tuple(schedules.items())


def parse_schedule(path: str, value: Any) -> HttpSchedule:
    """Read an answer, or several one after the other: ``200 for 10s, then 500``."""
    if isinstance(value, dict):
        fields = parse_fields(path, value, REPLY)
        reply = HttpReply(**fields)
        return HttpSchedule((Phase(reply),))
    if not isinstance(value, str):
        reply = HttpReply(parse_status(path, value))
        return HttpSchedule((Phase(reply),))
    phases: list[Phase] = []
    parts = re.split(r"\s*,\s*then\s+", value.strip())
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        words = re.fullmatch(r"(?P<status>[0-9]{3})(?:\s+for\s+(?P<time>\S+))?", part)
        if words is None or (words["time"] is None) != is_last:
            raise field_error(
                path,
                f"{shown(value)} is neither a status such as 200 nor '200 for 10s, then 500'",
            )
        status = parse_status(path, int(words["status"]))
        seconds = None
        if not is_last:
            seconds = _phase_seconds(path, words["time"])
        phases.append(Phase(HttpReply(status), seconds))
    return HttpSchedule(tuple(phases))


def _phase_seconds(path: str, text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise field_error(
            path,
            f"{shown(text)} is not a duration such as 10s",
        )
    return seconds


def parse_status(path: str, value: Any) -> int:
    return _parse_number(path, value, 100, 599)


def parse_headers(path: str, value: Any) -> tuple[tuple[str, str], ...]:
    headers = _parse_map(path, value, parse_string)
    return tuple(headers.items())


def parse_exec(path: str, value: Any) -> tuple[tuple[Glob, ExecAnswer], ...]:
    """Read the answers to commands, by patterns of their command lines."""
    answers = _parse_map(path, value, parse_answer)
    parsed: list[tuple[Glob, ExecAnswer]] = []
    for text, answer in answers.items():
        pattern = parse_glob(f"{path}[{text}]", text)
        parsed.append((pattern, answer))
    return tuple(parsed)


def parse_answer(path: str, value: Any) -> ExecAnswer:
    """Read what a command prints: a string, or stdout, stderr and exitCode."""
    if isinstance(value, str):
        return ExecAnswer(value)
    return ExecAnswer(**parse_fields(path, value, ANSWER))


def _seconds(seconds: float) -> str:
    return f"{seconds:g}s"


MATCH: Mapping[str, Parser] = {
    "image": parse_glob,
    "namespace": parse_glob,
    "name": parse_glob,
    "selector": parse_selector,
    "container": parse_glob,
    "owner": parse_owner,
    "node": parse_glob,
    "args": parse_glob,
    "cel": parse_cel,
}
START: Mapping[str, Parser] = {
    "reason": parse_text,
    "message": parse_string,
}
REPLY: Mapping[str, Parser] = {
    "status": parse_status,
    "body": parse_string,
    "headers": parse_headers,
}
ANSWER: Mapping[str, Parser] = {
    "stdout": parse_string,
    "stderr": parse_string,
    "exitCode": parse_exit_code,
}
FIELDS: Mapping[str, Parser] = {
    "pull": parse_pull,
    "start": parse_start,
    "program": parse_program,
    "readyAfter": parse_length_or_never,
    "stopsAfter": parse_length_or_never,
    "runsFor": parse_length,
    "exitCode": parse_exit_code,
    "exitReason": parse_text,
    "exitMessage": parse_text,
    "memory": parse_memory,
    "cpu": parse_cpu,
    "listens": parse_ports,
    "http": parse_http,
    "log": parse_string,
    "files": parse_files,
    "env": parse_env,
    "exec": parse_exec,
    "outcome": parse_outcome,
}
RULE: Mapping[str, Parser] = {"match": parse_match, **FIELDS}
