"""``kubepy wait``. Upstream: ``kubectl/pkg/cmd/wait``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kubepy.api.meta import Object, uid_of
from kubepy.cli.errors import CliError, raise_all, unless_missing
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command, ticking
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, string_array_flag
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.options import (
    AllNamespacesOptions,
    FieldSelectorOptions,
    LocalOptions,
    PrintFlags,
    RecursiveOptions,
    SelectorOptions,
    local_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api import jsonpath
    from kubepy.api.values import goformat


class WaitOptions(
    RecursiveOptions,
    AllNamespacesOptions,
    SelectorOptions,
    FieldSelectorOptions,
    LocalOptions,
    PrintFlags,
):
    """The flags of ``wait``."""

    for_: list[str] = string_array_flag(
        "for",
        help="The condition to wait on: "
        "[create|delete|condition=NAME[=VALUE]|jsonpath='{PATH}'[=VALUE]]. The "
        "default value of a condition is true. Several are waited for one after "
        "another.",
    )
    timeout: float = duration_flag(
        "timeout",
        default=30.0,
        help="The length of time to wait before giving up. Zero "
        "means check once and don't wait, negative means wait for a week.",
    )
    all: bool = bool_flag(
        "all", help="Select all resources in the namespace of the specified resource types."
    )
    local: bool = local_flag("wait")
    recursive: bool = bool_flag(
        "recursive",
        "R",
        default=True,
        help="Process the directory used in -f, --filename recursively.",
    )


WEEK = 7 * 24 * 3600.0
TIMED_OUT = "timed out waiting for the condition"

# Returns whether an object meets the condition (None: it was deleted, which upstream does not take
# for an end). Raises CliError when the object does not allow an answer.
Check = Callable[[Object | None], bool]


@ticking
@command(
    "wait ([-f FILENAME] | TYPE/NAME | TYPE [(-l label | --all)]) --for=CONDITION",
    WaitOptions,
    examples="""
# Until a pod is ready
kubepy wait --for=condition=Ready pod/task

# Until all pods with a label are, for at most a minute
kubepy wait --for=condition=Ready pod -l app=web --timeout=60s

# Until a condition has another status than True
kubepy wait --for=condition=Unschedulable=false pod/task --timeout=5s

# Until a Job has ended
kubepy wait --for=condition=complete job/report --timeout=5m

# Until a field has a value
kubepy wait --for=jsonpath='{.status.readyReplicas}'=2 deploy/web

# Until a field has any value
kubepy wait --for=jsonpath='{.status.podIP}' pod/task

# Until there is an object, and until it is gone
kubepy wait --for=create configmap/settings --timeout=30s
kubepy wait --for=delete pod/old --timeout=30s
""",
)
def wait(factory: Factory, options: WaitOptions) -> None:
    """Wait for a specific condition on one or many resources.

    The controllers run meanwhile."""
    printer = printer_for(factory, options, "condition met")
    checks = [None if word.lower() == "delete" else check_of(word) for word in options.for_]
    if not checks:
        raise CliError("unrecognized condition: []")
    conditions = {word.lower() for word in options.for_}
    factory.passes_time = options.timeout == 0  # otherwise time passes with the wait
    deadline = _Deadline(factory, options.timeout if options.timeout >= 0 else WEEK)
    if "create" in conditions:
        _wait_for_creation(factory, options, deadline)
    result = _result(factory, options)
    if "delete" in conditions:
        result.ignore_not_found()
    count = 0

    def wait_for_one(info: Info) -> None:
        nonlocal count
        count += 1
        for check in checks:
            printer(
                wait_for(factory, info, check, deadline)
                if check
                else wait_for_deletion(factory, info, deadline)
            )

    raise_all(result.errors_of(wait_for_one))
    if not count and "delete" not in conditions:
        raise CliError("no matching resources found")


class _Deadline:
    """One time limit for everything that a command waits for."""

    def __init__(self, factory: Factory, timeout: float) -> None:
        self._clock = factory.cluster.clock
        self._end = self._clock.monotonic() + timeout
        self.only_once = timeout == 0

    def left(self) -> float:
        return max(self._end - self._clock.monotonic(), 0.0)

    def is_over(self) -> bool:
        """Return whether no time is left: conditions that hold already do not count then, as in
        upstream."""
        return not self.only_once and not self.left()


def _result(factory: Factory, options: WaitOptions) -> Result:
    return Builder(
        factory, options, bare_types=options.all, latest=True, local=options.local, related=True
    ).do()


def _wait_for_creation(factory: Factory, options: WaitOptions, deadline: _Deadline) -> None:
    def is_created() -> bool:
        infos, errors = _result(factory, options).infos()
        # Upstream goes on waiting for a single object that was named, and gives up where others are
        # missing.
        if len(errors) == 1 and isinstance(errors[0], api_errors.NotFound) and not options.filename:
            return False
        raise_all(errors)
        return bool(infos)

    if not is_created() and not factory.driver.wait_until(
        is_created, deadline.left(), "for creation"
    ):
        raise CliError(TIMED_OUT)


def wait_for(factory: Factory, info: Info, check: Check, deadline: _Deadline) -> Object:
    """Wait until the condition holds; returns the object as it is then. Raises CliError when the
    time is over."""
    latest = info.content

    def is_met() -> bool:
        nonlocal latest
        obj = unless_missing(
            factory.client.get, info.resource.gvr, info.name, namespace=info.namespace
        )
        latest = obj or latest
        return check(obj)

    if deadline.is_over():
        raise CliError(f"{TIMED_OUT} on {info.object_name}")
    if is_met():
        return latest
    if deadline.only_once:
        raise CliError(f"condition not met for {info.object_name}")
    if not factory.driver.wait_until(is_met, deadline.left(), info.object_name):
        raise CliError(f"{TIMED_OUT} on {info.object_name}")
    return latest


def wait_for_deletion(factory: Factory, info: Info, deadline: _Deadline) -> Object:
    """Wait until the object is deleted; returns its last state. Raises as ``wait_for``."""
    if deadline.is_over():
        raise CliError("client rate limiter Wait returned an error: context deadline exceeded")
    uid = uid_of(info.content)
    return wait_for(factory, info, lambda obj: obj is None or uid_of(obj) != uid, deadline)


# --- conditions -----------------------------------------------------------------------------------


def check_of(word: str) -> Check:
    """Return the check of a ``--for`` other than ``delete``. Raises CliError."""
    if word.lower() == "create":
        return lambda obj: obj is not None
    kind, equals, rest = word.partition("=")
    if kind == "condition" and equals:
        name, has_value, value = rest.partition("=")
        return partial(_has_condition, name, value if has_value else "true")
    if kind == "jsonpath" and equals:
        return _jsonpath_check(rest)
    raise CliError(f"unrecognized condition: {quote(word)}")


def _has_condition(name: str, status: str, obj: Object | None) -> bool:
    """Return whether the first condition of a type has a status, as of the object's generation.
    Raises CliError."""
    obj = obj or {}
    obj_status = obj.get("status", {})
    if not isinstance(obj_status, dict):
        raise _wrong_type(obj_status, "map[string]interface{}")
    conditions = obj_status.get("conditions", [])
    if not isinstance(conditions, list):
        raise _wrong_type(conditions, "[]interface{}")
    for condition in conditions:
        kind = condition.get("type") if isinstance(condition, dict) else None
        if (
            isinstance(kind, str)
            and kind.casefold() == name.casefold()
            and isinstance(condition.get("status"), str)
        ):
            return not _is_outdated(obj, condition) and bool(
                condition["status"].casefold() == status.casefold()
            )

    return False


def _wrong_type(value: object, go_type: str) -> CliError:
    return CliError(
        f".status.conditions accessor error: {goformat.format_value(value)} is of the type "
        f"{goformat.type_name(value)}, expected {go_type}"
    )


def _is_outdated(obj: Object, condition: Object) -> bool:
    """Return whether the condition, or else the status, is of an older generation."""
    generation = obj["metadata"].get("generation")
    observed = condition.get("observedGeneration", obj["status"].get("observedGeneration"))
    return isinstance(generation, int) and isinstance(observed, int) and observed < generation


def _jsonpath_check(text: str) -> Check:
    parts = split_single_equals(text)
    if len(parts) > 2:
        raise CliError(
            "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or "
            "--for=jsonpath='{.status.readyReplicas}'"
        )

    value = parts[1].strip("'\"") if len(parts) == 2 else None
    if value == "":
        raise CliError(
            "jsonpath wait has to have a value after equal sign, like "
            "--for=jsonpath='{.status.readyReplicas}'=3"
        )

    if not parts[0]:
        raise CliError("jsonpath expression cannot be empty")
    try:
        path = jsonpath.parse(jsonpath.relaxed(parts[0]), True)
    except jsonpath.JSONPathError as error:
        raise CliError(str(error)) from None

    def check(obj: Object | None) -> bool:
        try:
            return obj is not None and _holds(path.find(obj), value)
        except jsonpath.JSONPathError as error:
            raise CliError(str(error)) from None

    return check


def split_single_equals(text: str) -> list[str]:
    """Split at ``=``, but not at ``==``."""
    return [part.replace("\0", "==") for part in text.replace("==", "\0").split("=")]


def _holds(values: list[list[object]], expected: str | None) -> bool:
    """Return whether a path has one value, and that is the expected one. Raises CliError for
    several values."""
    if not values or not values[0]:
        return False
    if len(values) > 1:
        raise CliError("given jsonpath expression matches more than one list")
    if len(values[0]) > 1:
        raise CliError("given jsonpath expression matches more than one value")
    if expected is None:
        return True
    value = values[0][0]
    if isinstance(value, (dict, list)):
        raise CliError("jsonpath leads to a nested object or list which is not supported")
    return goformat.format_value(value).strip() == expected.strip()
