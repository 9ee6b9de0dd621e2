"""Defaults of PersistentVolumeClaims (``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.defaults import round_up_all


def default_claim(claim: Object) -> None:
    default_claim_spec(claim.setdefault("spec", {}))
    status = claim.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    round_up_all(status.get("capacity"))


def default_claim_spec(spec: Object) -> None:
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.setdefault("resources", {})
    round_up_all(resources.get("limits"))
    round_up_all(resources.get("requests"))
