"""MutatingAdmissionPolicies: expressions in CEL that change objects before they are validated
(``apiserver/pkg/admission/plugin/policy/mutating``).

A mutation makes an apply configuration, which is merged into the object, or the operations of a
JSON patch. The policies run before the mutating webhooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.cel.checker import JSON_PATCHES, OBJECT, PATCH_TEXTS
from kubepy.api.cel.cost import BudgetExceeded, CostBudget
from kubepy.api.cel.operators import to_string
from kubepy.api.cel.values import CelError, StructValue, kind_of
from kubepy.api.errors import Cause
from kubepy.api.meta import Object, clone
from kubepy.api.patches.json_patch import OperationError, TestFailedError
from kubepy.api.schema.openapi import Schema
from kubepy.api.types import DecodeError
from kubepy.apiserver.admission.mutation import Reinvocation, patched_document, take_over
from kubepy.apiserver.admission.policyparts import (
    GROUP,
    ConfigurationError,
    Evaluation,
    all_conditions_hold,
    bound,
    params_of,
    scope_of,
)
from kubepy.apiserver.managedfields.merging import merge
from kubepy.apiserver.managedfields.typed import TypedError, child, is_atomic
from kubepy.apiserver.managedfields.validating import problems, text_of
from kubepy.apiserver.server import Attributes
from kubepy.quoting import quote

POLICIES = f"mutatingadmissionpolicies.{GROUP}"
BINDINGS = f"mutatingadmissionpolicybindings.{GROUP}"


class MutationError(Exception):
    """A mutation that cannot be made, in upstream's words: the failurePolicy decides what
    follows."""


class PolicyInvocation(NamedTuple):
    """A policy that a binding applies to a request, with one of its parameters."""

    policy: Object
    binding: Object
    param: Object | None

    @property
    def key(self) -> tuple[str, ...]:
        """The identity of the invocation, in all passes."""
        metadata = (self.param or {}).get("metadata") or {}
        return (
            self.policy["metadata"]["name"],
            self.binding["metadata"]["name"],
            metadata.get("namespace", ""),
            metadata.get("name", ""),
        )


class MutatingPolicies:
    """The mutating policies of one request."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self.reinvocation = Reinvocation()
        self._failures: list[str] = []

    def admit(self) -> None:
        """Apply all policies that are about the request. Raises Status."""
        self._run(is_again=False)
        self.reinvocation.end_pass(self._attributes.obj)

    def admit_again(self) -> None:
        """Apply those that have asked for it, after which something has changed. Raises Status."""
        self.reinvocation.begin_again(self._attributes.obj)
        self._run(is_again=True)

    def _run(self, *, is_again: bool) -> None:
        if self._attributes.is_deletion:
            return
        self._failures = []
        is_mutated = False
        for invocation in list(self._invocations()):
            is_mutated = self._invoke(invocation, is_again=is_again) or is_mutated
        if is_mutated:
            self.reinvocation.note_change()
        if self._failures:
            raise self._refusal()

    def _invocations(self) -> Iterator[PolicyInvocation]:
        """Yield what is to be applied, in the order of the names of policies and bindings."""
        attributes = self._attributes
        for policy, binding in bound(attributes, POLICIES, BINDINGS):
            kind, reference = policy["spec"].get("paramKind"), binding["spec"].get("paramRef")
            try:
                params = params_of(kind, reference, attributes)
            except ConfigurationError as error:
                self._fail(
                    PolicyInvocation(policy, binding, None),
                    f"failed to configure binding: {error}",
                )
                continue
            for param in params:
                yield PolicyInvocation(policy, binding, param)

    def _invoke(self, invocation: PolicyInvocation, *, is_again: bool) -> bool:
        """Apply one policy; tell whether a mutation was made, even of nothing."""
        spec = invocation.policy["spec"]
        scope = scope_of(invocation.param, self._attributes)
        try:
            if not all_conditions_hold(spec, scope):
                return False
        except (CelError, BudgetExceeded) as error:
            self._fail(invocation, str(error))
            return False
        if is_again and invocation.key not in self.reinvocation.due:
            return False

        is_mutated = False
        for mutation in spec.get("mutations") or ():
            try:
                _mutate(spec, mutation, scope, self._attributes)
                is_mutated = True
            except (CelError, BudgetExceeded, MutationError) as error:
                self._fail(invocation, str(error))
        if spec.get("reinvocationPolicy") == "IfNeeded":
            self.reinvocation.add(invocation.key)
        return is_mutated

    def _fail(self, invocation: PolicyInvocation, message: str) -> None:
        if invocation.policy["spec"].get("failurePolicy") == "Ignore":
            return
        policy = invocation.policy["metadata"]["name"]
        binding = invocation.binding["metadata"]["name"]
        self._failures.append(
            f"policy '{policy}' with binding '{binding}' denied request: {message}"
        )

    def _refusal(self) -> errors.Status:
        """Make the error of the first failure, which names all of them."""
        causes = [Cause("", message) for message in self._failures]
        refusal = self._attributes.forbidden("", causes)
        refusal.message = self._failures[0]
        refusal.reason = errors.Invalid.reason  # its code stays 403
        return refusal


def _mutate(spec: Object, mutation: Object, scope: dict[str, Any], attributes: Attributes) -> None:
    """Make one mutation. Raises CelError, BudgetExceeded, MutationError, and InternalError for a
    JSON patch whose result is no object of the kind."""
    evaluation = Evaluation(spec, scope, CostBudget())
    if mutation.get("patchType") == "JSONPatch":
        expression = mutation["jsonPatch"]["expression"]
        operations = [_operation(item) for item in evaluation.mutation(expression, JSON_PATCHES)]
        try:
            changed = patched_document(attributes.obj, operations)
        except TestFailedError:
            return
        except OperationError as error:
            raise MutationError(f"JSON Patch: {error}") from None
        try:
            take_over(changed, attributes, attributes.resource)
        except DecodeError as error:
            raise errors.internal_error(str(error)) from None
        return

    expression = mutation["applyConfiguration"]["expression"]
    configuration = evaluation.mutation(expression, OBJECT)
    _check_type_names(configuration, configuration.type_name)
    try:
        take_over(_merged(_plain(configuration), attributes), attributes, attributes.resource)
    except DecodeError as error:
        raise MutationError(str(error)) from None


# --- apply configurations -------------------------------------------------------------------------


def _merged(configuration: Object, attributes: Attributes) -> Object:
    """Merge a configuration, which belongs to this call, into the object of a request. Raises
    MutationError."""
    obj = attributes.obj
    for field in ("apiVersion", "kind"):
        if field in obj:
            configuration[field] = obj[field]
    schema = attributes.server.strategy(attributes.body or attributes.resource).field_schema()
    if field_problems := problems(configuration, schema):
        raise MutationError(
            "error applying patch: failed to convert patch object to typed object: "
            f"{text_of(field_problems)}"
        )
    if atomics := list(_atomics(configuration, schema, "")):
        raise MutationError(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
            f"or structs: {', '.join(atomics)}"
        )
    try:
        merged: Object = clone(merge(obj, configuration, schema))
    except TypedError as error:
        raise MutationError(f"error applying patch: failed to merge patch: {error}") from None
    return merged


def _atomics(value: Any, schema: Schema | None, path: str) -> Iterator[str]:
    """Yield the paths of lists and maps that can only be set as a whole: who means to change a part
    would remove the rest."""
    if schema is None or not isinstance(value, dict | list):
        return
    if is_atomic(schema, value):
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _atomics(inner, child(schema, name), f"{path}.{name}")
        return
    for index, item in enumerate(value):
        yield from _atomics(item, schema.items(), f"{path}[{index}]")


def _check_type_names(value: Any, expected: str) -> None:
    """Check that objects have the types of the fields at which they stand. Raises
    MutationError."""
    if mismatches := list(_mismatches(value, expected)):
        raise MutationError("type mismatch: " + "\n".join(mismatches))


def _mismatches(value: Any, expected: str) -> Iterator[str]:
    if isinstance(value, StructValue):
        if value.type_name != expected:
            yield (
                f"unexpected type name {quote(value.type_name)}, expected {quote(expected)}, "
                "which matches field name path from root Object type"
            )
        for field, inner in value.items():
            yield from _mismatches(inner, f"{expected}.{field}")
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _mismatches(inner, expected)
    elif isinstance(value, list):
        for inner in value:
            yield from _mismatches(inner, expected)


# --- JSON patches ---------------------------------------------------------------------------------


def _operation(patch: StructValue) -> dict[str, Any]:
    """Return an operation as a JSON patch has it. Raises MutationError."""
    operation: dict[str, Any] = {
        field: patch[field] for field in PATCH_TEXTS if field in patch and patch[field] != ""
    }
    operation.setdefault("op", "")
    operation.setdefault("path", "")
    if "value" in patch:
        value = patch["value"]
        if isinstance(value, StructValue):
            _check_type_names(value, value.type_name)
        operation["value"] = _plain(value)
    return operation


def _plain(value: Any) -> Any:
    """Return a value of an expression as JSON has it. Raises MutationError."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    try:
        return to_string(value)
    except CelError:
        raise MutationError(
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
            f"{kind_of(value)}"
        ) from None
