"""CertificateSigningRequests (``pkg/registry/certificates``). They are signed by a server alone
(``kubepy.server.signing``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, nested_list, status_of
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.certificates import validation


_OF_THE_REQUESTER = ("username", "uid", "groups", "extra")
_APPROVALS = ("Approved", "Denied")


class CertificateSigningRequestStrategy(Strategy):
    has_status = True
    selectable = ("spec.signerName",)

    def validate_name(self, name: str) -> list[str]:
        """Take any path segment (``ValidateCertificateRequestName``)."""
        return []

    def take_requester(self, obj: Object, requester: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field in _OF_THE_REQUESTER:
            spec.pop(field, None)
        spec |= requester

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        restore(obj, old, "spec")

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Keep the approval, which has a subresource of its own."""
        restore(obj, old, "spec")
        status = obj.setdefault("status", {})
        approvals = [
            condition
            for condition in nested_list(old, "status", "conditions")
            if condition.get("type") in _APPROVALS
        ]
        others = [
            condition
            for condition in nested_list(status, "conditions")
            if condition.get("type") not in _APPROVALS
        ]
        status["conditions"] = [*approvals, *others]

    def prepare_for_subresource_update(self, obj: Object, old: Object, subresource: str) -> None:
        if subresource != "approval":
            super().prepare_for_subresource_update(obj, old, subresource)
            return
        restore(obj, old, "spec")
        conditions = nested_list(obj, "status", "conditions")
        obj["status"] = {**(status_of(old)), "conditions": conditions}

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate_request(obj)
