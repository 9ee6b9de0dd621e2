"""The admission of requests: the plugins of each kind run, and those that are about every kind.

A kind's plugins stand in its entry in :mod:`kubepy.apiserver.kinds`. Upstream:
``apiserver/pkg/admission/chain.go``, ``pkg/kubeapiserver/options/plugins.go``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.kinds import kind_of
from kubepy.apiserver.kinds.served import AdmissionPlugin
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.apiserver.transaction import PODS
from kubepy.lazy import lazy_imports
from kubepy.storage import Key

with lazy_imports():
    from kubepy.apiserver.admission import mutatingpolicies, policies, quota, webhooks

IMMORTAL_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))
QUOTAS = "resourcequotas"
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM_PRIORITY_CLASSES = ("system-node-critical", "system-cluster-critical")
MUTATING_POLICY_BINDINGS = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"
POLICY_BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
MUTATING_WEBHOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING_WEBHOOKS = "validatingwebhookconfigurations.admissionregistration.k8s.io"


def admit(attributes: Attributes) -> None:
    """Complete or refuse an object before its kind's rules see it.

    Raises NotFound (no such namespace), Forbidden, and what webhooks answer.
    """
    if attributes.scope.is_internal:
        return
    if attributes.operation == "CREATE" and attributes.resource.namespaced:
        check_namespace(attributes)
    plugins = kind_of(attributes.resource).mutating
    _run(plugins, attributes)
    mutate(attributes, plugins)


def validate(attributes: Attributes) -> None:
    """Refuse an object that its kind's rules let through. Raises Forbidden, Invalid, and what
    webhooks answer."""
    if attributes.scope.is_internal:
        return
    _run(kind_of(attributes.resource).validating, attributes)
    check_policies(attributes)
    call_validating_webhooks(attributes)


def admit_body(attributes: Attributes) -> None:
    """Let policies and webhooks see the Scale, Eviction or Binding that a client sends. Raises
    Status."""
    mutate(attributes, ())
    check_policies(attributes)
    call_validating_webhooks(attributes)


def mutate(attributes: Attributes, plugins: tuple[AdmissionPlugin, ...]) -> None:
    """Let mutating policies, then mutating webhooks change an object.

    If one of them has changed it, the server's own plugins run once more, and then the policies and
    webhooks that have asked for it (``reinvocationPolicy``). Both are only loaded for clusters that
    have some.
    """
    mutators: list[mutatingpolicies.MutatingPolicies | webhooks.MutatingWebhooks] = []
    if attributes.transaction.list(MUTATING_POLICY_BINDINGS):
        mutators.append(mutatingpolicies.MutatingPolicies(attributes))
    if attributes.transaction.list(MUTATING_WEBHOOKS):
        mutators.append(webhooks.MutatingWebhooks(attributes))

    for mutator in mutators:
        mutator.admit()
    if any(mutator.reinvocation.has_changed for mutator in mutators):
        _run(plugins, attributes)
        for mutator in mutators:
            mutator.admit_again()


def check_policies(attributes: Attributes) -> None:
    """Refuse what ValidatingAdmissionPolicies deny; their language is only loaded for clusters that
    have some."""
    if attributes.transaction.list(POLICY_BINDINGS):
        policies.check_policies(attributes)


def call_validating_webhooks(attributes: Attributes) -> None:
    if attributes.transaction.list(VALIDATING_WEBHOOKS):
        webhooks.validate(attributes)


def _run(plugins: tuple[AdmissionPlugin, ...], attributes: Attributes) -> None:
    operation = attributes.operation.lower()
    if attributes.subresource:
        operation += f"/{attributes.subresource}"
    disabled = attributes.server.settings.admission.disable_plugins
    for plugin in plugins:
        if operation in plugin.operations and plugin.name not in disabled:
            plugin.admit(attributes)


def charge_quotas(attributes: Attributes) -> Sequence[tuple[Object, Object]]:
    """Return the namespace's ResourceQuotas before and after the request, to be written with it.
    Raises Forbidden."""
    if not attributes.namespace or not attributes.transaction.list(QUOTAS, attributes.namespace):
        return []
    return quota.charge(attributes)


def check_limits(scope: RequestScope, name: str) -> None:
    """Refuse another object of a kind of which the cluster has as many as ``limits`` in
    ``kubepy.yaml`` allows, as a quota would. Raises Forbidden."""
    if scope.resource.key != PODS:
        return
    limit, used = scope.server.settings.limits.pods, scope.transaction.count_pods()
    if used >= limit:
        raise errors.forbidden(
            PODS,
            name,
            f"exceeded limit: limits.pods of kubepy.yaml, requested: pods=1, used: "
            f"pods={used}, limited: pods={limit}",
        )


def check_namespace(attributes: Attributes) -> None:
    """Refuse a new object in a namespace that is absent or terminating. Raises NotFound,
    Forbidden."""
    name = attributes.namespace
    namespace = attributes.transaction.get(Key("namespaces", "", name))
    if namespace is None:
        raise errors.not_found("namespaces", name)
    if namespace.get("status", {}).get("phase") != "Terminating":
        return
    cause = errors.Cause(
        "NamespaceTerminating", f"namespace {name} is being terminated", "metadata.namespace"
    )
    raise attributes.forbidden(
        f"unable to create new content in namespace {name} because it is being terminated", [cause]
    )


def check_deletion(scope: RequestScope) -> None:
    """Refuse to delete what every cluster needs, whether or not it is there. Raises Forbidden.

    Upstream refuses system classes in ``registry/scheduling/priorityclass/storage``.
    """
    if scope.resource.key == "namespaces" and scope.name in IMMORTAL_NAMESPACES:
        raise errors.forbidden("namespaces", scope.name, "this namespace may not be deleted")
    if scope.resource.key == PRIORITY_CLASSES and scope.name in SYSTEM_PRIORITY_CLASSES:
        raise errors.forbidden(
            PRIORITY_CLASSES, scope.name, "this is a system priority class and cannot be deleted"
        )
