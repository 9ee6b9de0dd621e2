"""``kubepy wait``. Upstream: ``kubectl/pkg/cmd/wait``."""

from __future__ import annotations

from collections.abc import Callable

from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.errors import CliError, is_status, raise_all
from kubepy.cli.runtime.flags import boolean, duration, string_array
from kubepy.cli.runtime.flagsets import (
    all_namespaces_flag,
    field_selector_flag,
    filename_flags,
    local_flag,
    output_flags,
    selector_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.resources import Info, Result, find
from kubepy.cli.runtime.session import Session
from kubepy.cluster.objects.meta import Object

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
    *filename_flags("identifying the resource."),
    *output_flags(),
]
WEEK = 7 * 24 * 3600.0
TIMED_OUT = "timed out waiting for the condition"

# Whether an object (None: it is gone) is what was waited for; raises CliError when it can't be said.
Check = Callable[[Object | None], bool]


@verb("wait", "wait ([-f FILENAME] | TYPE/NAME | TYPE [(-l label | --all)]) --for=CONDITION", flags=FLAGS, examples="""
# Until a deployment is available
kubepy wait deploy/web --for=condition=Available

# Until all pods of a DaemonSet are ready
kubepy wait ds/nginx-ds --for=jsonpath='{.status.numberReady}'=3 --timeout=10s

# Until a pod is gone
kubepy wait pod/box --for=delete
""")
def wait(session: Session, given: Invocation) -> None:
    """Wait for a specific condition on one or many resources.

    The controllers run meanwhile."""
    printer = printer_for(session, given, "condition met")
    words: list[str] = given.flag("for")
    checks = [check_of(word) for word in words]
    if not checks:
        raise CliError("unrecognized condition: []")
    asked = {word.lower() for word in words}
    deadline = _Deadline(session, given.timeout if given.timeout >= 0 else WEEK)
    if "create" in asked:
        _wait_for_creation(session, given, deadline)
    result = _found(session, given)
    if "delete" in asked:
        result.ignore("NotFound")
    seen = 0

    def wait_for_one(info: Info) -> None:
        nonlocal seen
        seen += 1
        for word, check in zip(words, checks, strict=True):
            printer(wait_for(session, info, check, deadline, is_deletion=word.lower() == "delete"))

    raise_all(result.errors_of(wait_for_one))
    if not seen and "delete" not in asked:
        raise CliError("no matching resources found")


class _Deadline:
    """One time limit for everything that a command waits for."""

    def __init__(self, session: Session, timeout: float) -> None:
        self._clock = session.cluster.clock
        self._end = self._clock.monotonic() + timeout
        self.only_once = timeout == 0

    def left(self) -> float:
        return max(self._end - self._clock.monotonic(), 0.0)


def _found(session: Session, given: Invocation) -> Result:
    return find(session, given, bare_types=given.all, latest=True, local=given.local)


def _wait_for_creation(session: Session, given: Invocation, deadline: _Deadline) -> None:
    def is_there() -> bool:
        infos, errors = _found(session, given).infos()
        raise_all(error for error in errors if not is_status(error, "NotFound"))
        return bool(infos) and not errors

    if not is_there() and not session.driver.wait_until(is_there, deadline.left()):
        raise CliError(TIMED_OUT)


def wait_for(session: Session, info: Info, check: Check, deadline: _Deadline, *, is_deletion: bool) -> Object:
    """Wait until the check holds; returns the object as it is then. Raises CliError when the time is over."""
    latest: Object | None = info.object

    def is_met() -> bool:
        nonlocal latest
        try:
            latest = session.client.get(info.resource.key, info.name, namespace=info.namespace)
        except Exception as error:
            if not is_status(error, "NotFound") or not is_deletion:
                raise
            return True
        return check(latest)

    if is_met():
        return latest or info.content
    if deadline.only_once:
        raise CliError(f"condition not met for {info.object_name}")
    if not session.driver.wait_until(is_met, deadline.left()):
        raise CliError(f"{TIMED_OUT} on {info.object_name}")
    return latest or info.content


# --- conditions ---------------------------------------------------------------------------------------------------


def check_of(word: str) -> Check:
    """What ``--for`` means. Raises CliError."""
    if word.lower() == "delete":
        return lambda obj: obj is None
    if word.lower() == "create":
        return lambda obj: obj is not None
    kind, _, rest = word.partition("=")
    if kind == "condition":
        name, equals, value = rest.partition("=")
        return _condition_check(name, value if equals else "true")
    if kind == "jsonpath" and "=" in word:
        return _jsonpath_check(rest)
    raise CliError(f'unrecognized condition: "{word}"')


def _condition_check(name: str, wanted: str) -> Check:
    def check(obj: Object | None) -> bool:
        status = (obj or {}).get("status") or {}
        for condition in status.get("conditions") or []:
            if condition.get("type", "").casefold() == name.casefold():
                observed = condition.get("observedGeneration", status.get("observedGeneration"))
                generation = (obj or {})["metadata"].get("generation")
                if generation is not None and observed is not None and observed < generation:
                    return False
                return bool(condition.get("status", "").casefold() == wanted.casefold())
        return False

    return check


def _jsonpath_check(text: str) -> Check:
    from kubepy.cluster.jsonpath.evaluator import JSONPathError, parse, relaxed

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
    return lambda obj: obj is not None and _holds(path.find(obj), wanted)


def split_single_equals(text: str) -> list[str]:
    """Split at ``=``, but not at ``==``."""
    return [part.replace("\0", "==") for part in text.replace("==", "\0").split("=")]


def _holds(found: list[list[object]], wanted: str | None) -> bool:
    from kubepy.cluster.values.goformat import format_value

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
