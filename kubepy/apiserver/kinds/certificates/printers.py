"""Tables of CertificateSigningRequests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object, nested_list, spec_of, status_of
from kubepy.apiserver.printers import Cell, age, human_duration, printer


@printer("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition")
def print_certificate_request(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"],
        age(obj, now),
        spec.get("signerName") or "<none>",
        spec.get("username", ""),
        "<none>" if seconds is None else human_duration(seconds),
        request_status(status_of(obj)),
    ]


def request_status(status: dict[str, Any]) -> str:
    """Return ``Approved,Issued`` and the like (``extractCSRStatus``)."""
    kinds = {condition["type"] for condition in nested_list(status, "conditions")}
    states = [next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")]
    states += ["Failed"] if "Failed" in kinds else []
    return ",".join([*states, *(["Issued"] if status.get("certificate") else [])])
