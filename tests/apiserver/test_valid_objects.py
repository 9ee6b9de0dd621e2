"""Valid objects: accepted, read back unchanged, and written again without a change.

``VALID_OBJECTS=2000 pytest tests/apiserver/test_valid_objects.py`` tries more objects.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import UpdateOptions
from kubepy.storage.yaml import dump, load_all
from tests.apiserver import rules
from tests.apiserver.test_stored_objects import manifests, stored

Object = dict[str, Any]
SOME = settings(
    max_examples=int(os.environ.get("VALID_OBJECTS", "60")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
KEYS = st.builds(
    lambda prefix, name: prefix + name,
    st.sampled_from(("", "example.com/", "a.b-c.io/")),
    st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?", fullmatch=True),
)
VALUES = st.just("") | st.from_regex(
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?", fullmatch=True
)
LABELS = st.dictionaries(KEYS, VALUES, max_size=2)
PORTS = st.integers(1, 65535)
AMOUNTS = st.sampled_from(("0", "1", "100m", "1500m", "1Gi", "1.5Gi", "2e3", "12E"))


def optional(**fields: SearchStrategy[Any]) -> SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional=fields)


EXPRESSIONS = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        KEYS,
        st.sampled_from(("In", "NotIn")),
        st.lists(VALUES, min_size=1, max_size=2),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        KEYS,
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
SELECTORS = optional(matchLabels=LABELS, matchExpressions=st.lists(EXPRESSIONS, max_size=2))
HANDLERS = st.one_of(
    st.builds(
        lambda command: {"exec": {"command": command}},
        st.lists(st.text(max_size=5), min_size=1, max_size=2),
    ),
    st.builds(
        lambda port, scheme: {"httpGet": {"port": port, "scheme": scheme}},
        PORTS | st.just("web"),
        st.sampled_from(("HTTP", "HTTPS")),
    ),
    st.builds(lambda port: {"tcpSocket": {"port": port}}, PORTS),
)
PROBES = st.builds(
    lambda handler, numbers: {**handler, **numbers},
    HANDLERS,
    optional(periodSeconds=st.integers(1, 60), failureThreshold=st.integers(1, 9)),
)
RESOURCES = st.builds(
    lambda names, amount: {
        "requests": dict.fromkeys(names, amount),
        "limits": dict.fromkeys(names, amount),
    },
    st.lists(
        st.sampled_from(("cpu", "memory", "ephemeral-storage", "example.com/gpu")), unique=True
    ),
    AMOUNTS,
).filter(lambda one: one["limits"].get("example.com/gpu") not in ("100m", "1500m"))
TOLERATIONS = st.one_of(
    st.builds(
        lambda key, value: {"key": key, "value": value, "effect": "NoSchedule"}, KEYS, VALUES
    ),
    st.builds(
        lambda seconds: {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds},
        st.integers(-1, 99),
    ),
)
SPREADS = st.builds(
    lambda key, skew, selector: {
        "topologyKey": key,
        "maxSkew": skew,
        "labelSelector": selector,
        "whenUnsatisfiable": "ScheduleAnyway",
    },
    KEYS,
    st.integers(1, 5),
    SELECTORS,
)
TERMS = st.builds(
    lambda expressions: {"matchExpressions": expressions}, st.lists(EXPRESSIONS, max_size=2)
)


@st.composite
def containers(draw: st.DrawFn, name: str, volumes: list[Object]) -> Object:
    mounts = [
        {"name": one["name"], "mountPath": f"/m/{index}"}
        for index, one in enumerate(volumes)
        if draw(st.booleans())
    ]
    return {
        "name": name,
        "image": draw(st.sampled_from(("web", "web:1", "r.io:5000/a/b@sha256:" + "0" * 64))),
        "volumeMounts": mounts,
        **draw(
            optional(
                command=st.lists(st.text(max_size=3), max_size=2),
                resources=RESOURCES,
                livenessProbe=PROBES,
                readinessProbe=PROBES,
                stdin=st.booleans(),
                ports=st.lists(PORTS.map(lambda port: {"containerPort": port}), max_size=3),
                env=st.lists(
                    st.builds(
                        lambda key, value: {"name": key, "value": value}, NAMES, st.text(max_size=9)
                    ),
                    max_size=2,
                ),
            )
        ),
    }


@st.composite
def pods(draw: st.DrawFn) -> Object:
    sources = st.sampled_from(
        (
            {"emptyDir": {}},
            {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"configMap": {"name": "a", "items": [{"key": "k", "path": "a/b"}]}},
            {"secret": {"secretName": "s", "defaultMode": 0o400}},
            {"hostPath": {"path": "/v", "type": "Directory"}},
            {"persistentVolumeClaim": {"claimName": "c"}},
        )
    )
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    volumes = [{"name": name, **draw(sources)} for name in names]
    spec = draw(
        optional(
            nodeSelector=LABELS,
            tolerations=st.lists(TOLERATIONS, max_size=2),
            hostname=NAMES,
            subdomain=NAMES,
            restartPolicy=st.sampled_from(("Always", "OnFailure", "Never")),
            activeDeadlineSeconds=st.integers(1, 99),
            topologySpreadConstraints=st.lists(
                SPREADS, max_size=2, unique_by=lambda one: one["topologyKey"]
            ),
            affinity=st.builds(
                lambda terms: {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": terms
                        }
                    }
                },
                st.lists(TERMS, min_size=1, max_size=2),
            ),
        )
    )
    made = [
        draw(containers(name, volumes))
        for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    ]
    metadata = {"name": "p", "namespace": "default", "labels": draw(LABELS)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, "containers": made, "volumes": volumes},
    }


@SOME
@given(pod=pods())
def test_pod_valid_is_accepted_unchanged(pod: Object) -> None:
    made = rules.created("pods", pod)
    assert rules.refusals("pods", pod) == []
    assert rules.defaulted("pods", made) == made
    assert rules.strategy("pods").validate_update(made, made) == []
    assert [one.object for one in load_all(dump(made))] == [made]


@SOME
@given(pod=pods(), kind=st.sampled_from(("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")))
def test_workload_with_valid_template_is_accepted(pod: Object, kind: str) -> None:
    spec = {**pod["spec"], "restartPolicy": "Always", "activeDeadlineSeconds": None}
    labels = {"app": "web"}
    obj = rules.workload(kind, template={"metadata": {"labels": labels}, "spec": spec})
    key = f"{kind.lower()}s.apps"
    assert rules.refusals(key, obj) == []
    made = rules.created(key, obj)
    assert rules.defaulted(key, made) == made
    assert rules.strategy(key).validate_update(made, made) == []


@pytest.mark.parametrize("index", range(len(manifests())))
def test_update_with_stored_object_changes_nothing(cluster: LocalCluster, index: int) -> None:
    manifest = manifests()[index]
    resource = cluster.scheme.for_kind(manifest["apiVersion"], manifest["kind"])
    assert resource is not None
    stored(cluster, manifest)
    before = cluster.client.get(resource.key, manifest["metadata"]["name"], namespace="default")
    assert (
        cluster.client.update(
            resource.key,
            before,
            namespace="default",
            options=UpdateOptions(field_validation="Strict"),
        )
        == before
    )
