"""The policy of a plan: which harm, and which numbers of workloads, make it fail.

``parse_policy`` reads what ``kubepy-plan.yaml`` has, ``parse_condition`` an expression of
``--fail-if``. A condition is CEL over one workload of the plan; docs/plan.md lists its variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kubepy.api.cel import checker
from kubepy.api.cel import types as cel_types
from kubepy.api.cel.interpreter import evaluate
from kubepy.api.cel.values import CelError, Duration
from kubepy.api.meta import Object
from kubepy.apiserver.strict_fields import field_error, parse_fields, parse_text, shown
from kubepy.insight.availability import JOBS
from kubepy.insight.harm import KINDS, NEVER_FINISHES, Harm
from kubepy.insight.plans import Plan, PlannedWorkload
from kubepy.quoting import printable
from kubepy.storage import FolderError, Key

VARIABLES = {
    "available": cel_types.DOUBLE,
    "desired": cel_types.INT,
    "finished": cel_types.BOOL,
    "finishedAfter": cel_types.DURATION,
    "kind": cel_types.STRING,
    "name": cel_types.STRING,
    "namespace": cel_types.STRING,
}
NEVER = Duration(2**63 - 1)  # nanoseconds; the longest duration that CEL has
DOES_NOT_FINISH = 2  # exit statuses
HURTS = 3


class FailCondition(NamedTuple):
    """An expression over a workload that must not be true of any."""

    text: str
    compiled: checker.Compiled


class PlanPolicy(NamedTuple):
    """What makes a plan fail.

    :ivar fail_on: the kinds of harm.
    :ivar fail_if: conditions that must not hold.
    """

    fail_on: tuple[str, ...] = KINDS
    fail_if: tuple[FailCondition, ...] = ()


class HeldCondition(NamedTuple):
    """A condition that holds for a workload."""

    condition: str
    key: Key


def parse_policy(path: str, value: Any) -> PlanPolicy:
    """Read a policy: a map with ``failOn`` and ``failIf``. Raises FolderError, which names the
    field.

    :param path: stands before the field's name in errors.
    """
    parsers = {"failOn": parse_kinds, "failIf": parse_conditions}
    fields = parse_fields(path, {} if value is None else value, parsers)
    return PlanPolicy(**fields)


def parse_kinds(path: str, value: Any) -> tuple[str, ...]:
    """Read a list of kinds of harm; none: no harm counts."""
    if not isinstance(value, list):
        raise field_error(path, "must be a list")
    for index, kind in enumerate(value):
        if kind not in KINDS:
            raise field_error(
                f"{path}[{index}]", f"{shown(kind)} is none of {', '.join(sorted(KINDS))}"
            )
    return tuple(value)


def parse_conditions(path: str, value: Any) -> tuple[FailCondition, ...]:
    """Read a list of expressions."""
    if not isinstance(value, list):
        raise field_error(path, "must be a list")
    return tuple(parse_condition(f"{path}[{index}]", text) for index, text in enumerate(value))


def parse_condition(path: str, value: Any) -> FailCondition:
    """Compile an expression over a workload. Raises FolderError."""
    text = parse_text(path, value)
    try:
        compiled = checker.compile_expression(text, VARIABLES)
    except checker.CompileError as error:
        raise field_error(path, f"does not compile: {str(error).splitlines()[0]}") from None
    if compiled.type not in (cel_types.BOOL, cel_types.DYN):
        raise field_error(path, "must be an expression that is true or false")
    return FailCondition(text, compiled)


def violations_of(policy: PlanPolicy, plan: Plan) -> list[HeldCondition]:
    """Return the conditions that hold, by workload. Raises FolderError for one that cannot be
    evaluated."""
    return list(_violations(policy, plan))


def _violations(policy: PlanPolicy, plan: Plan) -> Iterator[HeldCondition]:
    for workload in plan.workloads if policy.fail_if else ():
        if workload.goes_on:
            continue
        known = plan.prediction.cluster.scheme.get(workload.key.resource)
        scope = variables_of(workload, known.kind if known is not None else workload.key.resource)
        for condition in policy.fail_if:
            if _holds(condition, scope):
                yield HeldCondition(condition.text, workload.key)


def _holds(condition: FailCondition, scope: Object) -> bool:
    try:
        value = evaluate(condition.compiled.node, scope)
    except CelError as error:
        subject = f"{scope['kind']} {scope['name']}"
        raise FolderError(printable(f"fail-if {condition.text}: of {subject}: {error}")) from None
    if not isinstance(value, bool):
        raise FolderError(printable(f"fail-if {condition.text}: is neither true nor false"))
    return value


def variables_of(workload: PlannedWorkload, kind: str) -> Object:
    """Return the values of the variables for a workload."""
    after = workload.finished_after
    return {
        "available": available_share(workload),
        "desired": workload.course.numbers[-1][1].desired,
        "finished": after is not None,
        "finishedAfter": NEVER if after is None else Duration(round(after * 1e9)),
        "kind": kind,
        "name": workload.key.name,
        "namespace": workload.key.namespace,
    }


def available_share(workload: PlannedWorkload) -> float:
    """Return the lowest share of its pods that a workload has available, from 0 to 1; 1 where it
    asks for none, and for Jobs, of which none are required."""
    numbers = workload.lowest.numbers
    if workload.key.resource in JOBS or numbers.desired <= 0:
        return 1.0
    return min(numbers.available / numbers.desired, 1.0)


def status_of_plan(policy: PlanPolicy, plan: Plan, violations: Sequence[HeldCondition]) -> int:
    """Return the exit status of a plan: 0, DOES_NOT_FINISH or HURTS."""
    if NEVER_FINISHES in policy.fail_on and not plan.finishes:
        return DOES_NOT_FINISH
    if violations or counting_harm(policy, plan):
        return HURTS
    return 0


def counting_harm(policy: PlanPolicy, plan: Plan) -> list[Harm]:
    """Return the harm that makes a plan fail that finishes."""
    kinds = set(policy.fail_on) - {NEVER_FINISHES}
    return [harm for harm in plan.harm if harm.kind in kinds]


def violation_document(violation: HeldCondition) -> Object:
    """Return a condition that holds as JSON data."""
    return {"expression": violation.condition, "object": violation.key._asdict()}
