"""Taints, tolerations, node selectors, required node affinity, readiness."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.objects import nodes


def node(name: str = "node-1", labels: dict[str, str] | None = None, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, **rest}


def taint(key: str, effect: str = "NoSchedule", value: str | None = None) -> dict[str, str]:
    return {"key": key, "effect": effect} | ({"value": value} if value is not None else {})


TAINT = taint("dedicated", value="db")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "dedicated", "value": "db"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "value": "web"}, False),
        ({"key": "dedicated"}, False),
        ({"key": "dedicated", "operator": "Gt", "value": "1"}, False),
    ],
    ids=str,
)
def test_toleration_covers_taint_of_same_key_value_and_effect(
    toleration: dict[str, str], covers: bool
) -> None:
    assert nodes.tolerates(toleration, TAINT) is covers


def test_toleration_without_value_covers_taint_without_value() -> None:
    assert nodes.tolerates({"key": "a"}, taint("a"))


def test_find_untolerated_taint_returns_first_of_given_effects() -> None:
    taints = [taint("soft", "PreferNoSchedule"), taint("a"), taint("b"), taint("c", "NoExecute")]
    tolerations = [{"key": "a", "operator": "Exists"}]
    assert nodes.find_untolerated_taint(taints, tolerations, ("NoSchedule", "NoExecute")) == taint(
        "b"
    )
    assert nodes.find_untolerated_taint(taints, tolerations, ("NoExecute",)) == taint(
        "c", "NoExecute"
    )
    assert nodes.find_untolerated_taint(taints, [{"operator": "Exists"}], ("NoSchedule",)) is None
    assert nodes.find_untolerated_taint([taint("a")], None, ("NoSchedule",)) == taint("a")


LABELS = {"zone": "b", "cores": "16", "odd": "1_0"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "fits"),
    [
        ("zone", "In", ["a", "b"], True),
        ("zone", "In", ["a"], False),
        ("absent", "In", ["a"], False),
        ("zone", "NotIn", ["a"], True),
        ("zone", "NotIn", ["b"], False),
        ("absent", "NotIn", ["a"], True),
        ("zone", "Exists", [], True),
        ("absent", "Exists", [], False),
        ("absent", "DoesNotExist", [], True),
        ("zone", "DoesNotExist", [], False),
        ("cores", "Gt", ["8"], True),
        ("cores", "Gt", ["16"], False),
        ("cores", "Lt", ["17"], True),
        ("cores", "Lt", ["16"], False),
        ("zone", "Gt", ["1"], False),
        ("odd", "Gt", ["1"], False),
        ("absent", "Lt", ["1"], False),
        ("zone", "Near", ["b"], False),
    ],
)
def test_match_expressions_compare_labels(
    key: str, operator: str, values: list[str], fits: bool
) -> None:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    assert nodes.node_selector_term_matches(term, node(labels=LABELS)) is fits


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ["node-1"], True),
        ("In", ["node-2"], False),
        ("NotIn", ["node-2"], True),
        ("NotIn", ["node-1"], False),
        ("In", ["node-1", "node-2"], False),
        ("Exists", [], False),
    ],
)
def test_match_fields_compare_name_with_exactly_one_value(
    operator: str, values: list[str], fits: bool
) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": operator, "values": values}]}
    assert nodes.node_selector_term_matches(term, node("node-1")) is fits


def test_node_selector_ors_terms_and_ands_requirements() -> None:
    in_b = {"key": "zone", "operator": "In", "values": ["b"]}
    big = {"key": "cores", "operator": "Gt", "values": ["32"]}
    here = node(labels=LABELS)
    either = {"nodeSelectorTerms": [{"matchExpressions": [big]}, {"matchExpressions": [in_b]}]}
    assert nodes.node_selector_matches(either, here)
    assert not nodes.node_selector_matches(
        {"nodeSelectorTerms": [{"matchExpressions": [in_b, big]}]}, here
    )
    assert not nodes.node_selector_matches({"nodeSelectorTerms": [{}]}, here)
    assert not nodes.node_selector_matches({"nodeSelectorTerms": []}, here)


def test_required_node_affinity_needs_node_selector_and_required_terms() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    pod = {"spec": {"nodeSelector": {"zone": "b"}, "affinity": affinity}}
    assert nodes.required_node_affinity_matches(pod, node("node-1", LABELS))
    assert not nodes.required_node_affinity_matches(pod, node("node-1"))
    assert not nodes.required_node_affinity_matches(pod, node("node-2", LABELS))
    assert nodes.required_node_affinity_matches({"spec": {}}, node("node-2"))


def test_node_with_true_ready_condition_is_ready() -> None:
    def with_ready(status: str) -> dict[str, Any]:
        return node(status={"conditions": [{"type": "Ready", "status": status}]})

    assert nodes.is_node_ready(with_ready("True"))
    assert not nodes.is_node_ready(with_ready("False"))
    assert not nodes.is_node_ready(with_ready("Unknown"))
    assert not nodes.is_node_ready(node())
