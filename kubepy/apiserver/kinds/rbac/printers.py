"""Tables of role bindings."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Role", "Age", "+Users", "+Groups", "+ServiceAccounts")
def print_role_binding(obj: Object, now: datetime) -> list[Cell]:
    role = obj.get("roleRef") or {}
    subjects = nested_list(obj, "subjects")
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
