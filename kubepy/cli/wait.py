"""``kubepy wait``. Upstream: ``kubectl/pkg/cmd/wait``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kubepy.api.meta import Object, uid_of
from kubepy.cli.errors import CliError, raise_all, unless_missing
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import duration_flag as duration
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flagsets import (
    all_namespaces_flag,
    field_selector_flag,
    filename_flags,
    local_flag,
    output_flags,
    selector_flag,
)
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, changed_flag, find, verb
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors

FLAGS = [
    string_array("for", help="The condition to wait on: [create|delete|condition=NAME[=VALUE]|jsonpath='{PATH}'"
                 "[=VALUE]]. The default value of a condition is true. Several are waited for one after another."),
    duration("timeout", default=30.0, help="The length of time to wait before giving up. Zero means check once and "
             "don't wait, negative means wait for a week."),
    boolean("all", help="Select all resources in the namespace of the specified resource types."),
    all_namespaces_flag(),
    selector_flag(),
    field_selector_flag(),
    local_flag("wait"),
    *(changed_flag(flag, default=True) if flag.long == "recursive" else flag
      for flag in filename_flags("identifying the resource.") if flag.long != "kustomize"),
    *output_flags(),
]
WEEK = 7 * 24 * 3600.0
TIMED_OUT = "timed out waiting for the condition"

# Whether an object (None: it is gone, which upstream goes on waiting after) is what was waited for; raises CliError
# when it can't be said.
Check = Callable[[Object | None], bool]


@verb("wait", "wait ([-f FILENAME] | TYPE/NAME | TYPE [(-l label | --all)]) --for=CONDITION", flags=FLAGS, examples="""
# Until a deployment is available
kubepy wait deploy/web --for=condition=Available

# Until all pods of a DaemonSet are ready
kubepy wait ds/nginx-ds --for=jsonpath='{.status.numberReady}'=3 --timeout=10s

# Until a pod is gone
kubepy wait pod/box --for=delete
""")
def wait(factory: Factory, given: Invocation) -> None:
    """Wait for a specific condition on one or many resources.

    The controllers run meanwhile."""
    printer = printer_for(factory, given, "condition met")
    words: list[str] = given.flag("for")
    checks = [None if word.lower() == "delete" else check_of(word) for word in words]
    if not checks:
        raise CliError("unrecognized condition: []")
    asked = {word.lower() for word in words}
    deadline = _Deadline(factory, given.timeout if given.timeout >= 0 else WEEK)
    if "create" in asked:
        _wait_for_creation(factory, given, deadline)
    result = _found(factory, given)
    if "delete" in asked:
        result.ignore_not_found()
    seen = 0

    def wait_for_one(info: Info) -> None:
        nonlocal seen
        seen += 1
        for check in checks:
            printer(wait_for(factory, info, check, deadline) if check else wait_for_deletion(factory, info, deadline))

    raise_all(result.errors_of(wait_for_one))
    if not seen and "delete" not in asked:
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
        """Whether there is no time left, so that what is met already counts for nothing (as upstream has it)."""
        return not self.only_once and not self.left()


def _found(factory: Factory, given: Invocation) -> Result:
    return find(factory, given, bare_types=given.all, latest=True, local=given.local)


def _wait_for_creation(factory: Factory, given: Invocation, deadline: _Deadline) -> None:
    has_files = bool(given.filename)

    def is_there() -> bool:
        infos, errors = _found(factory, given).infos()
        # Upstream goes on waiting for a single object that was named, and gives up where others are missing.
        if len(errors) == 1 and isinstance(errors[0], api_errors.NotFound) and not has_files:
            return False
        raise_all(errors)
        return bool(infos)

    if not is_there() and not factory.driver.wait_until(is_there, deadline.left(), "for creation"):
        raise CliError(TIMED_OUT)


def wait_for(factory: Factory, info: Info, check: Check, deadline: _Deadline) -> Object:
    """Wait until the check holds; returns the object as it is then. Raises CliError when the time is over."""
    latest = info.content

    def is_met() -> bool:
        nonlocal latest
        found = _read(factory, info)
        latest = found or latest
        return check(found)

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
    """Wait until the object is gone, whatever has its name now; returns its last state. Raises as ``wait_for``."""
    if deadline.is_over():
        raise CliError("client rate limiter Wait returned an error: context deadline exceeded")
    uid = uid_of(info.content)
    return wait_for(factory, info, lambda obj: obj is None or uid_of(obj) != uid, deadline)


def _read(factory: Factory, info: Info) -> Object | None:
    return unless_missing(factory.client.get, info.resource.gvr, info.name, namespace=info.namespace)


# --- conditions ---------------------------------------------------------------------------------------------------


def check_of(word: str) -> Check:
    """What ``--for`` means, ``delete`` apart. Raises CliError."""
    if word.lower() == "create":
        return lambda obj: obj is not None
    kind, given, rest = word.partition("=")
    if kind == "condition" and given:
        name, equals, value = rest.partition("=")
        return partial(_has_condition, name, value if equals else "true")
    if kind == "jsonpath" and given:
        return _jsonpath_check(rest)
    raise CliError(f"unrecognized condition: {quote(word)}")


def _has_condition(name: str, wanted: str, obj: Object | None) -> bool:
    """Whether the first condition of a type has a status, as of the object's generation. Raises CliError."""
    for condition in _conditions(obj or {}):
        if _is_named(condition, name) and isinstance(condition.get("status"), str):
            return not _is_outdated(obj or {}, condition) and condition["status"].casefold() == wanted.casefold()
    return False


def _conditions(obj: Object) -> list[Any]:
    status = obj.get("status", {})
    if not isinstance(status, dict):
        raise _wrong_type(status, "map[string]interface{}")
    conditions = status.get("conditions", [])
    if not isinstance(conditions, list):
        raise _wrong_type(conditions, "[]interface{}")
    return conditions


def _wrong_type(value: object, wanted: str) -> CliError:
    from kubepy.api.values.goformat import format_value, type_name

    return CliError(f".status.conditions accessor error: {format_value(value)} is of the type {type_name(value)}, "
                    f"expected {wanted}")


def _is_named(condition: Any, name: str) -> bool:
    kind = condition.get("type") if isinstance(condition, dict) else None
    return isinstance(kind, str) and kind.casefold() == name.casefold()


def _is_outdated(obj: Object, condition: Object) -> bool:
    """Whether the condition, or else the status, tells of an older generation."""
    generation = obj["metadata"].get("generation")
    observed = condition.get("observedGeneration", obj["status"].get("observedGeneration"))
    return isinstance(generation, int) and isinstance(observed, int) and observed < generation


def _jsonpath_check(text: str) -> Check:
    from kubepy.api.jsonpath import JSONPathError, parse, relaxed

    parts = split_single_equals(text)
    if len(parts) > 2:
        raise CliError("jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or "
                       "--for=jsonpath='{.status.readyReplicas}'")
    wanted = parts[1].strip("'\"") if len(parts) == 2 else None
    if wanted == "":
        raise CliError("jsonpath wait has to have a value after equal sign, like "
                       "--for=jsonpath='{.status.readyReplicas}'=3")
    if not parts[0]:
        raise CliError("jsonpath expression cannot be empty")
    try:
        path = parse(relaxed(parts[0]), True)
    except JSONPathError as error:
        raise CliError(str(error)) from None

    def check(obj: Object | None) -> bool:
        try:
            return obj is not None and _holds(path.find(obj), wanted)
        except JSONPathError as error:
            raise CliError(str(error)) from None

    return check


def split_single_equals(text: str) -> list[str]:
    """Split at ``=``, but not at ``==``."""
    return [part.replace("\0", "==") for part in text.replace("==", "\0").split("=")]


def _holds(found: list[list[object]], wanted: str | None) -> bool:
    from kubepy.api.values.goformat import format_value

    if not found or not found[0]:
        return False
    if len(found) > 1:
        raise CliError("given jsonpath expression matches more than one list")
    if len(found[0]) > 1:
        raise CliError("given jsonpath expression matches more than one value")
    if wanted is None:
        return True
    value = found[0][0]
    if isinstance(value, (dict, list)):
        raise CliError("jsonpath leads to a nested object or list which is not supported")
    return format_value(value).strip() == wanted.strip()
