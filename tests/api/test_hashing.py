"""Hashes recorded from a real cluster (the conformance cases), for the templates they were computed
from."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.meta import Object
from kubepy.api.types.hashing import compute_hash, go_syntax, hash_controller_revision


def container(name: str, image: str, **more: Any) -> Object:
    defaults = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        **defaults,
        **more,
    }


def template(
    labels: Object, *containers: Object, annotations: Object | None = None, **spec: Any
) -> Object:
    defaults = {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    metadata = {"labels": labels, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": {"containers": list(containers), **defaults, **spec}}


LEDGER_PORTS = [{"containerPort": 7000, "protocol": "TCP"}]
API = template(
    {"app": "api"},
    container(
        "server",
        "registry.example.com/api:2.4.0",
        args=["--listen", ":8080"],
        ports=[{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        env=[{"name": "LOG_LEVEL", "value": "info"}],
        resources={"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        readinessProbe={
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        volumeMounts=[{"name": "scratch", "mountPath": "/tmp/scratch"}],
    ),
    annotations={"sidecar": "off"},
    volumes=[{"name": "scratch", "emptyDir": {}}],
)
PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
WEB = template(
    {"app": "web"},
    container(
        "nginx",
        "nginx:1.25",
        args=["-g", "daemon off;"],
        ports=[
            {"containerPort": 80, "name": "http", "protocol": "TCP"},
            {"containerPort": 53, "protocol": "UDP"},
        ],
        env=[
            {"name": "MODE", "value": "fast"},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
            {
                "name": "NODE",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
            },
            {"name": "EMPTY"},
        ],
        envFrom=[{"configMapRef": {"name": "conf"}}],
        resources={"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        livenessProbe={
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "initialDelaySeconds": 3,
            **PROBE,
        },
        readinessProbe={"tcpSocket": {"port": 80}, **PROBE},
        volumeMounts=[
            {"name": "conf", "mountPath": "/etc/conf", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp", "subPath": "a"},
        ],
    ),
    annotations={"prometheus.io/scrape": "true"},
    serviceAccountName="runner",
    serviceAccount="runner",
    priorityClassName="system-node-critical",
    nodeSelector={"kubernetes.io/os-kind": "tiny"},
    tolerations=[{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}],
    initContainers=[container("prepare", "prep:1", command=["sh", "-c", "echo ready"])],
    volumes=[
        {"name": "conf", "configMap": {"name": "conf", "optional": True, "defaultMode": 420}},
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "host", "hostPath": {"path": "/var/log", "type": "Directory"}},
    ],
)


@pytest.mark.parametrize(
    ("pod_template", "hash_"),
    [
        (
            template({"app": "log-agent", "tier": "node"}, container("agent", "fluent-bit:3.0")),
            "6ff7bf77b",
        ),
        (
            template({"app": "ledger"}, container("ledger", "ledger:1", ports=LEDGER_PORTS)),
            "746986886",
        ),
        (
            template(
                {"app": "ledger", "tier": "back"},
                container("ledger", "ledger:1", ports=LEDGER_PORTS),
            ),
            "7b6958c85",
        ),
        (template({"app": "carrier"}, container("carrier", "carrier:1")), "5d8fcbb9d5"),
        (
            template(
                {"app": "web", "tier": "front"},
                container("nginx", "nginx:1.25"),
                container("proxy", "envoy:1.30"),
            ),
            "bcb9ddfd6",
        ),
        (template({"app": "ledger"}, container("ledger", "ledger:1")), "85ff6dc56b"),
        (
            template(
                {"app": "portal"}, container("web", "portal:1"), container("log", "fluent-bit:2")
            ),
            "fd67f4995",
        ),
        (API, "5b89fd875b"),
        (WEB, "5b7f969786"),
    ],
)
def test_compute_hash_equals_real_cluster(pod_template: Object, hash_: str) -> None:
    assert compute_hash(pod_template, None) == hash_


def test_compute_hash_with_collision_count_differs() -> None:
    pod_template = template({"app": "x"}, container("c", "c:1"))
    hashes = [compute_hash(pod_template, count) for count in (None, 0, 1)]
    assert len(set(hashes)) == 3


@pytest.mark.parametrize(
    ("labels", "containers", "hash_"),
    [
        ({"app": "pg"}, [container("postgres", "postgres:16.1")], "6b69f9966"),
        (
            {"app": "db", "color": "red"},
            [container("db", "db:1", ports=[{"containerPort": 5432, "protocol": "TCP"}])],
            "6c75c78967",
        ),
        (
            {"app": "db", "color": "red"},
            [container("db", "db:2", ports=[{"containerPort": 5432, "protocol": "TCP"}])],
            "6fdf7cf5c6",
        ),
    ],
)
def test_hash_controller_revision_equals_real_cluster(
    labels: Object, containers: list[Object], hash_: str
) -> None:
    data = {"spec": {"template": {"$patch": "replace", **template(labels, *containers)}}}
    assert hash_controller_revision(data, 0) == hash_


def test_go_syntax_prints_as_go_spew() -> None:
    assert go_syntax("core/v1.EmptyDirVolumeSource", {"sizeLimit": "100Ti"}) == (
        "(v1.EmptyDirVolumeSource){Medium:(v1.StorageMedium) SizeLimit:(*resource.Quantity){"
        "i:(resource.int64Amount){value:(int64)0 scale:(resource.Scale)0} "
        "d:(resource.infDecAmount){Dec:(*inf.Dec){"
        "unscaled:(big.Int){neg:(bool)false abs:(big.nat)[8568098291072368640 5960]} "
        "scale:(inf.Scale)9}} "
        "s:(string) Format:(resource.Format)BinarySI}}"
    )
    assert go_syntax(
        "core/v1.ResourceRequirements", {"limits": {"cpu": "1", "memory": "128Mi"}}
    ) == (
        "(v1.ResourceRequirements){Limits:(v1.ResourceList)map[cpu:{i:(resource."
        "int64Amount){value:(int64)1 "
        "scale:(resource.Scale)0} d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)1 "
        "Format:(resource.Format)DecimalSI} memory:{i:(resource."
        "int64Amount){value:(int64)134217728 "
        "scale:(resource.Scale)0} d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string) "
        "Format:(resource.Format)BinarySI}] Requests:(v1.ResourceList)<nil> "
        "Claims:([]v1.ResourceClaim)<nil>}"
    )
