"""The ConfigMaps and Secrets that pods read, and those that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.objects.references import missing_references, references_of

Object = dict[str, Any]
OBJECTS: dict[tuple[str, str], Object] = {
    ("configmaps", "settings"): {"data": {"a": "1"}, "binaryData": {"b": "AA=="}},
    ("secrets", "keys"): {"data": {"tls.crt": ""}},
}


def find(resource: str, namespace: str, name: str) -> Object | None:
    return OBJECTS.get((resource, name)) if namespace == "shop" else None


def with_env(**variable: Any) -> Object:
    return {"containers": [{"name": "c", "env": [{"name": "X", "valueFrom": variable}]}]}


def with_volume(**source: Any) -> Object:
    return {"volumes": [{"name": "v", **source}], "containers": [{"name": "c"}]}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        (with_env(configMapKeyRef={"name": "settings", "key": "a"}), []),
        (
            with_env(configMapKeyRef={"name": "settings", "key": "b"}),
            ["couldn't find key b in ConfigMap shop/settings"],
        ),
        (with_env(configMapKeyRef={"name": "settings", "key": "c", "optional": True}), []),
        (with_env(configMapKeyRef={"name": "none", "key": "a"}), ['configmap "none" not found']),
        (
            with_env(secretKeyRef={"name": "keys", "key": "x"}),
            ["couldn't find key x in Secret shop/keys"],
        ),
        (with_env(secretKeyRef={"name": "none", "key": "x", "optional": True}), []),
        (with_env(fieldRef={"fieldPath": "metadata.name"}), []),
        (with_volume(configMap={"name": "settings", "items": [{"key": "b", "path": "b"}]}), []),
        (
            with_volume(configMap={"name": "settings", "items": [{"key": "c", "path": "c"}]}),
            ["configmap references non-existent config key: c"],
        ),
        (
            with_volume(secret={"secretName": "keys", "items": [{"key": "c", "path": "c"}]}),
            ["references non-existent secret key: c"],
        ),
        (with_volume(secret={"secretName": "none"}), ['secret "none" not found']),
        (with_volume(secret={"secretName": "none", "optional": True}), []),
        (
            with_volume(
                projected={
                    "sources": [
                        {"secret": {"name": "none"}},
                        {"configMap": {"name": "no"}},
                        {"serviceAccountToken": {"path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt"}},
                    ]
                }
            ),
            ['secret "none" not found', 'configmap "no" not found'],
        ),
        (with_volume(emptyDir={}), []),
    ],
    ids=str,
)
def test_reference_is_missing_as_kubelet_says(spec: Object, messages: list[str]) -> None:
    assert [problem.message for problem in missing_references(spec, "shop", find)] == messages


def test_references_stand_in_the_order_of_a_kubelet() -> None:
    spec = {
        "containers": [
            {
                "name": "c",
                "envFrom": [{"secretRef": {"name": "s"}}],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
                ],
            }
        ],
        "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "n"}}]}],
        "volumes": [{"name": "v", "secret": {"secretName": "t"}}],
    }
    assert [
        (reference.name, reference.field, reference.container or reference.volume)
        for reference in references_of(spec)
    ] == [
        ("t", "spec.volumes[0].secret.secretName", "v"),
        ("n", "spec.initContainers[0].envFrom[0].configMapRef.name", "i"),
        ("s", "spec.containers[0].envFrom[0].secretRef.name", "c"),
        ("m", "spec.containers[0].env[1].valueFrom.configMapKeyRef", "c"),
    ]


def test_reference_of_missing_namespace_is_missing() -> None:
    spec = with_volume(configMap={"name": "settings"})
    assert [problem.is_key for problem in missing_references(spec, "other", find)] == [False]
