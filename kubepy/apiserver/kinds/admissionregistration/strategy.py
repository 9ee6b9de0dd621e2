"""Webhook configurations and admission policies (:mod:`kubepy.apiserver.admission`).

Upstream: ``pkg/registry/admissionregistration``.
"""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list, spec_of
from kubepy.apiserver.strategy import Strategy
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.admissionregistration import validation


class _CountedStrategy(Strategy):
    """Generation rises with the spec or the webhooks; only policies have a status of their own."""

    has_generation = True
    allow_unconditional_update = False
    counted = "spec"

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return not semantically_equal(obj.get(self.counted), old.get(self.counted))


class _WebhookStrategy(_CountedStrategy):
    counted = "webhooks"

    def default(self, obj: Object) -> None:
        for webhook in nested_list(obj, "webhooks"):
            _default_matching(webhook)
            for rule in nested_list(webhook, "rules"):
                rule.setdefault("scope", "*")
            webhook.setdefault("failurePolicy", "Fail")
            webhook.setdefault("timeoutSeconds", 10)
            service = (webhook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", 443)

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_webhooks(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_webhooks(obj, old)


class ValidatingWebhookConfigurationStrategy(_WebhookStrategy):
    pass


class MutatingWebhookConfigurationStrategy(_WebhookStrategy):
    def default(self, obj: Object) -> None:
        super().default(obj)
        for webhook in nested_list(obj, "webhooks"):
            webhook.setdefault("reinvocationPolicy", "Never")


class _PolicyStrategy(_CountedStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        constraints = spec.get("matchConstraints")
        if constraints is not None:
            _default_resources(constraints)


class ValidatingAdmissionPolicyStrategy(_PolicyStrategy):
    has_status = True

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_policy(obj)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        obj["spec"] = old["spec"]


class MutatingAdmissionPolicyStrategy(_PolicyStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_mutating_policy(obj)


class _BindingStrategy(_CountedStrategy):
    def default(self, obj: Object) -> None:
        resources = spec_of(obj).get("matchResources")
        if resources is not None:
            _default_resources(resources)


class ValidatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_binding(obj)


class MutatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_mutating_binding(obj)


def _default_resources(resources: Object) -> None:
    _default_matching(resources)
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in nested_list(resources, field):
            rule.setdefault("scope", "*")


def _default_matching(matcher: Object) -> None:
    matcher.setdefault("matchPolicy", "Equivalent")
    for selector in ("namespaceSelector", "objectSelector"):
        matcher.setdefault(selector, {})
