"""CertificateSigningRequests: stored, approved or denied; nothing here signs them (``pkg/registry/certificates``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError
from kubepy.api.meta import Object
from kubepy.apiserver.strategies.strategy import Strategy, restore

_OF_THE_REQUESTER = ("username", "uid", "groups", "extra")
_APPROVALS = ("Approved", "Denied")


class CertificateSigningRequestStrategy(Strategy):
    has_status = True
    selectable = ("spec.signerName",)

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
        """Whether it is approved is not for the status."""
        restore(obj, old, "spec")
        status = obj.setdefault("status", {})
        status["conditions"] = [*_approvals(old), *(one for one in status.get("conditions") or ()
                                                    if one.get("type") not in _APPROVALS)]

    def prepare_for_subresource_update(self, obj: Object, old: Object, subresource: str) -> None:
        if subresource != "approval":
            super().prepare_for_subresource_update(obj, old, subresource)
            return
        restore(obj, old, "spec")
        conditions = (obj.get("status") or {}).get("conditions") or []
        obj["status"] = {**(old.get("status") or {}), "conditions": conditions}

    def validate(self, obj: Object) -> list[FieldError]:
        from kubepy.apiserver.validation.access import validate_request

        return validate_request(obj)


def _approvals(obj: Object) -> list[Object]:
    return [one for one in (obj.get("status") or {}).get("conditions") or () if one.get("type") in _APPROVALS]
