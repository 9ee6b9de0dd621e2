"""Tables of webhook configurations and admission policies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object, nested_list, spec_of
from kubepy.api.selectors import go_label_selector
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Webhooks", "Age")
def print_webhooks(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], len(nested_list(obj, "webhooks")), age(obj, now)]


@printer("Name", "Validations", "ParamKind", "Age")
def print_validating_policy(obj: Object, now: datetime) -> list[Cell]:
    return _policy(obj, "validations", now)


@printer("Name", "Mutations", "ParamKind", "Age")
def print_mutating_policy(obj: Object, now: datetime) -> list[Cell]:
    return _policy(obj, "mutations", now)


def _policy(obj: Object, rules: str, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    kind = spec.get("paramKind")
    return [
        obj["metadata"]["name"],
        len(nested_list(spec, rules)),
        f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>",
        age(obj, now),
    ]


@printer("Name", "PolicyName", "ParamRef", "Age")
def print_policy_binding(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
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
