"""Aggregated ClusterRoles: the rules of all roles that their selectors choose."""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object
from tests.controllers.conftest import Lab

ROLES = "clusterroles.rbac.authorization.k8s.io"


def rule(resource: str) -> Object:
    return {"apiGroups": [""], "resources": [resource], "verbs": ["get"]}


def role(
    lab: Lab, name: str, *resources: str, labels: dict[str, str] | None = None, **more: Any
) -> None:
    lab.create(
        ROLES,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels or {}},
            "rules": [rule(one) for one in resources],
            **more,
        },
    )


def aggregate(
    lab: Lab, name: str, *selectors: dict[str, str], labels: dict[str, str] | None = None
) -> None:
    role(
        lab,
        name,
        labels=labels,
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": one} for one in selectors]},
    )


def resources(lab: Lab, name: str) -> list[str]:
    lab.settle()
    return [one["resources"][0] for one in lab.client.get(ROLES, name).get("rules") or []]


def test_rules_come_by_selector_and_name_and_only_once(lab: Lab) -> None:
    aggregate(lab, "all", {"part": "b"}, {"part": "a"})
    role(lab, "z", "pods", "services", "services", labels={"part": "b"})
    role(lab, "y", "secrets", "pods", labels={"part": "b"})
    role(lab, "x", "nodes", "secrets", labels={"part": "a"})
    role(lab, "w", "events", labels={"part": "c"})
    assert resources(lab, "all") == ["secrets", "pods", "services", "nodes"]


def test_rules_follow_roles_that_they_are_of(lab: Lab) -> None:
    aggregate(lab, "all", {"part": "a"})
    role(lab, "x", "pods", labels={"part": "a"})
    assert resources(lab, "all") == ["pods"]
    lab.change(ROLES, "x", lambda one: one["rules"].append(rule("nodes")))
    assert resources(lab, "all") == ["pods", "nodes"]
    lab.client.delete(ROLES, "x")
    assert resources(lab, "all") == []


def test_rules_written_by_hand_are_replaced_and_one_aggregate_can_be_part_of_another(
    lab: Lab,
) -> None:
    aggregate(lab, "all", {"part": "a"}, labels={"part": "a"})
    aggregate(lab, "more", {"part": "a"})
    role(lab, "x", "pods", labels={"part": "a"})
    assert resources(lab, "more") == ["pods"]
    lab.change(ROLES, "all", lambda one: one.update(rules=[rule("secrets")]))
    assert (resources(lab, "all"), resources(lab, "more")) == (["pods"], ["pods"])


def test_unchanged_rules_are_not_written_and_field_manager_is_named(lab: Lab) -> None:
    aggregate(lab, "all", {"part": "a"})
    role(lab, "x", "pods", labels={"part": "a"})
    lab.settle()
    revision = lab.client.revision()
    role(lab, "w", "events")
    lab.settle()
    assert lab.client.revision() == revision + 1
    managers = lab.client.with_managed_fields(lab.client.get(ROLES, "all"))["metadata"][
        "managedFields"
    ]
    assert ("clusterrole-aggregation-controller", "Apply") in [
        (one["manager"], one["operation"]) for one in managers
    ]
