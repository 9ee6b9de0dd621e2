"""Tables of what guards the API: bindings, certificates, admission, flow control, aggregated
APIs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.selectors import go_label_selector
from kubepy.apiserver.printers import Cell, age, human_duration, printer

# --- RBAC, certificates, aggregation --------------------------------------------------------------


@printer("Name", "Role", "Age", "+Users", "+Groups", "+ServiceAccounts")
def print_role_binding(obj: Object, now: datetime) -> list[Cell]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or []
    accounts = [
        f"{subject.get('namespace', '')}/{subject['name']}"
        for subject in subjects
        if subject["kind"] == "ServiceAccount"
    ]
    return [
        obj["metadata"]["name"],
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        ", ".join(subject["name"] for subject in subjects if subject["kind"] == "User"),
        ", ".join(subject["name"] for subject in subjects if subject["kind"] == "Group"),
        ", ".join(accounts),
    ]


@printer("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition")
def print_certificate_request(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"],
        age(obj, now),
        spec.get("signerName") or "<none>",
        spec.get("username", ""),
        "<none>" if seconds is None else human_duration(seconds),
        request_status(obj.get("status") or {}),
    ]


def request_status(status: dict[str, Any]) -> str:
    """Return ``Approved,Issued`` and the like (``extractCSRStatus``)."""
    kinds = {condition["type"] for condition in status.get("conditions") or []}
    states = [next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")]
    states += ["Failed"] if "Failed" in kinds else []
    return ",".join([*states, *(["Issued"] if status.get("certificate") else [])])


@printer("Name", "Service", "Available", "Age")
def print_api_service(obj: Object, now: datetime) -> list[Cell]:
    service = (obj.get("spec") or {}).get("service")
    conditions = (obj.get("status") or {}).get("conditions") or []
    available = next(
        (condition for condition in conditions if condition["type"] == "Available"),
        {"status": "Unknown"},
    )
    status = available["status"]
    if status != "True" and "reason" in available:
        status = f"{status} ({available['reason']})"
    return [
        obj["metadata"]["name"],
        f"{service['namespace']}/{service['name']}" if service else "Local",
        status,
        age(obj, now),
    ]


# --- flow control ---------------------------------------------------------------------------------


@printer("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL")
def print_flow_schema(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    dangling = next(
        (
            condition["status"]
            for condition in (obj.get("status") or {}).get("conditions") or []
            if condition["type"] == "Dangling"
        ),
        "?",
    )
    return [
        obj["metadata"]["name"],
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", "<none>"),
        age(obj, now),
        dangling,
    ]


@printer(
    "Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"
)
def print_priority_level(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    shares = "<none>" if limited is None else limited.get("nominalConcurrencyShares", 0)
    queues = [
        (queuing or {}).get(key, "<none>" if queuing is None else 0)
        for key in ("queues", "handSize", "queueLengthLimit")
    ]
    return [obj["metadata"]["name"], spec.get("type", ""), shares, *queues, age(obj, now)]


# --- admission ------------------------------------------------------------------------------------


@printer("Name", "Webhooks", "Age")
def print_webhooks(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], len(obj.get("webhooks") or []), age(obj, now)]


@printer("Name", "Validations", "ParamKind", "Age")
def print_validating_policy(obj: Object, now: datetime) -> list[Cell]:
    return _policy(obj, "validations", now)


@printer("Name", "Mutations", "ParamKind", "Age")
def print_mutating_policy(obj: Object, now: datetime) -> list[Cell]:
    return _policy(obj, "mutations", now)


def _policy(obj: Object, rules: str, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    kind = spec.get("paramKind")
    return [
        obj["metadata"]["name"],
        len(spec.get(rules) or []),
        f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>",
        age(obj, now),
    ]


@printer("Name", "PolicyName", "ParamRef", "Age")
def print_policy_binding(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("policyName", ""),
        _parameter(spec.get("paramRef") or {}),
        age(obj, now),
    ]


def _parameter(reference: dict[str, Any]) -> str:
    """Return ``namespace/name``, ``*/name`` or the selector of a policy's parameters."""
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    if reference.get("selector") is not None:
        return go_label_selector(reference["selector"])
    return "<unset>"
