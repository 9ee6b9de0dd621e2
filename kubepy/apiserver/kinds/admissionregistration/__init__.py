"""The kinds of the group admissionregistration.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.admissionregistration import printers, strategy

KINDS: dict[str, ServedKind] = {
    "mutatingadmissionpolicies": ServedKind(
        lambda: strategy.MutatingAdmissionPolicyStrategy,
        lambda: printers.print_mutating_policy,
    ),
    "mutatingadmissionpolicybindings": ServedKind(
        lambda: strategy.MutatingAdmissionPolicyBindingStrategy,
        lambda: printers.print_policy_binding,
    ),
    "mutatingwebhookconfigurations": ServedKind(
        lambda: strategy.MutatingWebhookConfigurationStrategy,
        lambda: printers.print_webhooks,
    ),
    "validatingadmissionpolicies": ServedKind(
        lambda: strategy.ValidatingAdmissionPolicyStrategy,
        lambda: printers.print_validating_policy,
    ),
    "validatingadmissionpolicybindings": ServedKind(
        lambda: strategy.ValidatingAdmissionPolicyBindingStrategy,
        lambda: printers.print_policy_binding,
    ),
    "validatingwebhookconfigurations": ServedKind(
        lambda: strategy.ValidatingWebhookConfigurationStrategy,
        lambda: printers.print_webhooks,
    ),
}
