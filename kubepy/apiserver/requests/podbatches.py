"""Pods in a batch of requests: most are made from one template, and get their node and status soon
after.

A creation is a pure function of the body, the requester and what admission reads: all objects but
pods and events. So the second pod of a template is the first one with a name, a uid and a time of
its own, as long as nothing else has been written in the batch. A DaemonSet's pods differ in the
node that their affinity names, too; nothing but the validation of that name looks at it. The parts
that pods have in common are the same Python objects: stored objects never change.

A status that comes with the metadata and the spec of a pod as the batch has stored it (the same
Python objects) leaves them as they are. So they need neither decoding nor validation again.

Whatever is not that simple goes the long way, in :mod:`creation` and :mod:`updating`: requests with
field managers, in clusters that enforce roles or have webhooks, policies, quotas, tokens for pods.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any

from kubepy.api import errors, types
from kubepy.api.meta import Object, owner_references
from kubepy.api.values.names import dns1123_subdomain
from kubepy.apiserver.requests import admission
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.apiserver.settings import FULL
from kubepy.apiserver.transaction import PODS, BatchMemory
from kubepy.storage import Key

HELD = frozenset(
    ("apiVersion", "kind", "metadata", "spec")
)  # all that a body has that a controller makes
METADATA = frozenset(("annotations", "finalizers", "generateName", "labels", "ownerReferences"))
NEVER_SIMPLE = (
    admission.MUTATING_WEBHOOKS,
    admission.VALIDATING_WEBHOOKS,
    admission.POLICY_BINDINGS,
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
A_NODE = "node"
STATUS = "core/v1.PodStatus"

Generate = Callable[[RequestScope, str], tuple[str, int]]


def memory_of(scope: RequestScope) -> BatchMemory | None:
    """Return the memory of the batch, if a request about a pod in it may go the short way."""
    memory, server = scope.transaction.memory, scope.server
    if memory is None or scope.resource.key != PODS or scope.is_internal or server.enforces_roles:
        return None
    options = scope.request.write_options
    if (
        options.field_manager
        or options.field_validation != "Ignore"
        or server.settings.bootstrap == FULL
    ):
        return None

    if memory.is_simple.get(scope.namespace) != memory.version:
        home = scope.transaction.get(Key("namespaces", "", scope.namespace))
        if home is None or home.get("status", {}).get("phase") == "Terminating":
            return None
        has_others = any(scope.transaction.list(resource) for resource in NEVER_SIMPLE)
        if has_others or scope.transaction.list(admission.QUOTAS, scope.namespace):
            return None
        memory.is_simple[scope.namespace] = memory.version

    return memory


# --- creation -------------------------------------------------------------------------------------


def mark_of(scope: RequestScope, body: Object) -> bytes | None:
    """Return what the creation of a pod depends on, less its node; None for one that goes the long
    way."""
    metadata, spec = body.get("metadata"), body.get("spec")
    if (
        body.keys() != HELD
        or type(metadata) is not dict
        or type(spec) is not dict
        or metadata.keys() - METADATA
    ):
        return None

    if not metadata.get("generateName") or spec.get("schedulingGates"):
        return None
    try:
        outline = spec if node_of(spec) is None else with_node(spec, A_NODE)
        return marshal.dumps(
            (
                scope.namespace,
                scope.context.user,
                body["apiVersion"],
                body["kind"],
                metadata,
                outline,
            ),
            2,
        )
    except ValueError:  # it holds something that is no JSON
        return None


def node_of(spec: Any) -> str | None:
    """Return the one node that the required affinity of a pod names, as that of a DaemonSet's pods
    does."""
    try:
        [term] = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        [requirement] = term["matchFields"]
        [node] = requirement["values"]
    except (KeyError, TypeError, ValueError):
        return None
    is_usual = (
        len(term) == 1
        and requirement.get("key") == "metadata.name"
        and requirement.get("operator") == "In"
    )
    return node if is_usual and type(node) is str and node and not dns1123_subdomain(node) else None


def with_node(spec: Object, node: str) -> Object:
    """Return the spec with another node in its required affinity."""
    affinity = spec["affinity"]
    required = affinity["nodeAffinity"][REQUIRED]
    [term] = required["nodeSelectorTerms"]
    terms = [{"matchFields": [{**term["matchFields"][0], "values": [node]}]}]
    node_affinity = {**affinity["nodeAffinity"], REQUIRED: {**required, "nodeSelectorTerms": terms}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}


def create_alike(
    scope: RequestScope, memory: BatchMemory, mark: bytes, body: Object, generate: Generate
) -> Object | None:
    """Create a pod like one that this batch has made before; None if there was none that still
    counts.

    Raises AlreadyExists.
    """
    version, example = memory.made.get(mark, (-1, body))
    if version != memory.version:
        return None
    prefix, node = body["metadata"]["generateName"], node_of(body["spec"])
    name, names_given = generate(scope, prefix)
    scope, transaction = scope.with_name(name), scope.transaction
    admission.check_limits(scope, name)
    metadata = {
        **example["metadata"],
        "name": name,
        "creationTimestamp": scope.context.clock.timestamp(),
        "uid": transaction.generated_uid(scope.context.ids, scope.key, prefix, names_given),
    }
    del metadata["resourceVersion"]
    spec = example["spec"] if node is None else with_node(example["spec"], node)
    transaction.count_object(scope.key, prefix, names_given)
    return scope.create({**example, "metadata": metadata, "spec": spec})


def remember(
    scope: RequestScope, memory: BatchMemory, mark: bytes, body: Object, stored: Object
) -> None:
    """Remember a pod that was made, as an example for others, unless there were warnings, which
    would be repeated."""
    warns = len(owner_references(stored)) != len(
        owner_references(body)
    ) or scope.strategy.warnings_on_create(stored)
    if not warns and node_of(body["spec"]) == node_of(stored["spec"]):
        memory.made[mark] = memory.version, stored


# --- status ---------------------------------------------------------------------------------------


def update_status(scope: RequestScope, memory: BatchMemory, obj: Object) -> Object | None:
    """Replace the status of a pod that the batch has stored; None where it is not that simple.

    Raises Invalid, as the long way does.
    """
    old = memory.accepted.get(key := scope.key)
    if old is None or old is not scope.transaction.get(key) or obj.keys() != old.keys():
        return None
    if (
        any(obj[field] is not old[field] for field in HELD)
        or "deletionTimestamp" in old["metadata"]
    ):
        return None

    if (decoded := _decoded_status(memory, obj["status"])) is None:
        return None
    strategy = scope.strategy
    new = {**old, "metadata": {**old["metadata"]}, "status": decoded}
    attributes = Attributes(scope, new, old)
    admission.admit(attributes)
    strategy.prepare_for_subresource_update(new, old, "status")
    if problems := strategy.validate_subresource_update(new, old, "status"):
        raise errors.invalid(strategy.resource.qualified_kind, scope.name, problems)
    admission.validate(attributes)
    return scope.update(new, old)


def _decoded_status(memory: BatchMemory, status: Any) -> Object | None:
    """Return a status decoded; None where it cannot be. Lists that several pods have, as their
    conditions of one second, are decoded once, and are the same Python objects."""
    if type(status) is not dict:
        return None
    lists: list[tuple[str, Any]] = []
    others: Object = {}
    for field, value in status.items():
        if type(value) is list:
            lists.append((field, value))
        else:
            others[field] = value

    try:
        part = types.decode_as(STATUS, others)
        if part.unknown_fields:
            return None
        decoded: Object = part.object
        for field, value in lists:
            if (known := memory.parts.get(mark := marshal.dumps((field, value), 2))) is not None:
                part = known
            else:
                part = memory.parts[mark] = types.decode_as(STATUS, {field: value})
            if part.unknown_fields:
                return None
            decoded |= part.object
    except (types.DecodeError, ValueError):
        return None

    return decoded


# --- binding --------------------------------------------------------------------------------------


def is_simple_binding(scope: RequestScope, body: Any) -> bool:
    """Tell whether a Binding says no more than the node of the pod, so that it is neither decoded
    nor admitted."""
    if memory_of(scope) is None or type(body) is not dict or body.keys() != {"metadata", "target"}:
        return False
    target = body["target"]
    return (
        type(target) is dict
        and body["metadata"] == {"name": scope.name}
        and target.keys() == {"kind", "name"}
        and target["kind"] == "Node"
        and type(target["name"]) is str
        and bool(target["name"])
    )
