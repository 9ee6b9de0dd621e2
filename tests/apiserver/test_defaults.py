"""Defaults that the server fills in, compared as whole objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rules import created, daemon_set, defaulted, pod, workload

CONTAINER = {
    "name": "c",
    "image": "web:1",
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
POD_SPEC = {
    "containers": [CONTAINER],
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
TEMPLATE_SPEC = {key: value for key, value in POD_SPEC.items() if key != "enableServiceLinks"}


def container_of(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = defaulted(
        "pods", pod(containers=[{"name": "c", "image": "web:1", **container}], **spec)
    )
    return {
        key: value
        for key, value in found["spec"]["containers"][0].items()
        if CONTAINER.get(key) != value
    }


def test_pod_says_all_that_it_left_open() -> None:
    assert defaulted("pods", pod())["spec"] == POD_SPEC


def test_object_with_its_defaults_stays_unchanged() -> None:
    once = defaulted(
        "pods", pod(hostNetwork=True, volumes=[{"name": "v", "secret": {"secretName": "s"}}])
    )
    assert defaulted("pods", once) == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("web:1", "IfNotPresent"),
        ("registry:5000/web", "Always"),
        ("registry:5000/web:2", "IfNotPresent"),
        ("web@sha256:" + "0" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_image_pull_policy_is_always_for_latest_only(image: str, policy: str) -> None:
    assert (
        defaulted("pods", pod(containers=[{"name": "c", "image": image}]))["spec"]["containers"][0][
            "imagePullPolicy"
        ]
        == policy
    )


def test_requests_come_from_limits_and_amounts_are_canonical() -> None:
    asked = {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "100m"}}
    assert container_of({"resources": asked}) == {
        "resources": {
            "limits": {"cpu": "500m", "memory": "1Gi"},
            "requests": {"cpu": "100m", "memory": "1Gi"},
        }
    }


def test_probes_say_how_often_and_how_long() -> None:
    often = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
    probes = {
        "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"grpc": {"port": 5}},
        "startupProbe": {"tcpSocket": {"port": "web"}, "periodSeconds": 3},
    }
    assert container_of(probes) == {
        "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, **often},
        "readinessProbe": {"grpc": {"port": 5, "service": ""}, **often},
        "startupProbe": {"tcpSocket": {"port": "web"}, **often, "periodSeconds": 3},
    }


def test_hooks_over_http_have_path_and_scheme() -> None:
    hook = {"lifecycle": {"preStop": {"httpGet": {"port": 8080}}}}
    assert container_of(hook) == {
        "lifecycle": {"preStop": {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}}}
    }


def test_ports_are_tcp_and_those_of_hosts_network_are_hosts() -> None:
    ports = {"ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}
    assert container_of(ports) == {
        "ports": [
            {"containerPort": 80, "protocol": "TCP"},
            {"containerPort": 53, "protocol": "UDP"},
        ]
    }
    assert container_of(ports, hostNetwork=True) == {
        "ports": [
            {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
            {"containerPort": 53, "hostPort": 53, "protocol": "UDP"},
        ]
    }


def test_pod_field_reference_gets_api_version() -> None:
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    assert container_of({"env": env}) == {
        "env": [
            {
                "name": "IP",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
            }
        ]
    }


@pytest.mark.parametrize(
    ("volume", "filled"),
    [
        ({}, {"emptyDir": {}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"defaultMode": 420, "secretName": "s"}}),
        ({"configMap": {"name": "m"}}, {"configMap": {"defaultMode": 420, "name": "m"}}),
        ({"hostPath": {"path": "/v"}}, {"hostPath": {"path": "/v", "type": ""}}),
        (
            {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {
                "downwardAPI": {
                    "defaultMode": 420,
                    "items": [
                        {
                            "path": "n",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"},
                        }
                    ],
                }
            },
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "defaultMode": 420,
                    "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                }
            },
        ),
        (
            {"iscsi": {"targetPortal": "p", "iqn": "iqn.2024-01.a:b", "lun": 0}},
            {
                "iscsi": {
                    "iscsiInterface": "default",
                    "iqn": "iqn.2024-01.a:b",
                    "lun": 0,
                    "targetPortal": "p",
                }
            },
        ),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "u"}},
            {
                "azureDisk": {
                    "cachingMode": "ReadWrite",
                    "diskName": "d",
                    "diskURI": "u",
                    "fsType": "ext4",
                    "kind": "Shared",
                    "readOnly": False,
                }
            },
        ),
    ],
    ids=lambda value: next(iter(value), "none"),
)
def test_volumes_say_what_they_left_open(volume: dict[str, Any], filled: dict[str, Any]) -> None:
    found = defaulted("pods", pod(volumes=[{"name": "v", **volume}]))
    assert found["spec"]["volumes"] == [{"name": "v", **filled}]


def test_daemon_set_updates_one_pod_after_other_and_keeps_ten_revisions() -> None:
    assert created("daemonsets.apps", daemon_set()) == {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "annotations": {"deprecated.daemonset.template.generation": "1"},
            "name": "ds",
            "namespace": "default",
        },
        "spec": {
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": TEMPLATE_SPEC},
            "updateStrategy": {
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                "type": "RollingUpdate",
            },
        },
        "status": {
            "currentNumberScheduled": 0,
            "desiredNumberScheduled": 0,
            "numberMisscheduled": 0,
            "numberReady": 0,
        },
    }


def test_daemon_set_that_updates_on_deletion_has_no_rolling_update() -> None:
    spec = created("daemonsets.apps", daemon_set(updateStrategy={"type": "OnDelete"}))["spec"]
    assert spec["updateStrategy"] == {"type": "OnDelete"}


def without_template(key: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {
        field: value
        for field, value in created(key, obj)["spec"].items()
        if field not in ("template", "selector")
    }


def test_deployment_replaces_quarter_at_time() -> None:
    assert without_template("deployments.apps", workload("Deployment")) == {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "strategy": {
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            "type": "RollingUpdate",
        },
    }


def test_replica_set_has_one_replica() -> None:
    assert without_template("replicasets.apps", workload("ReplicaSet")) == {"replicas": 1}


def test_stateful_set_keeps_its_claims() -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1024Mi"}},
        },
    }
    assert without_template(
        "statefulsets.apps", workload("StatefulSet", volumeClaimTemplates=[claim])
    ) == {
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "serviceName": "",
        "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
        "volumeClaimTemplates": [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            }
        ],
    }


def job(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "web:1"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "u-1"},
        "spec": {"template": template, **spec},
    }


def test_job_selects_its_pods_by_its_uid() -> None:
    made = created("jobs.batch", job())
    template = made["spec"].pop("template")
    assert made["spec"] == {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}},
        "suspend": False,
    }
    assert template["metadata"] == {
        "labels": {
            "batch.kubernetes.io/controller-uid": "u-1",
            "batch.kubernetes.io/job-name": "j",
            "controller-uid": "u-1",
            "job-name": "j",
        }
    }


def test_cron_job_keeps_three_good_jobs_and_bad_one() -> None:
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "j"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": job()["spec"]}},
    }
    spec = defaulted("cronjobs.batch", cron)["spec"]
    del spec["jobTemplate"]
    assert spec == {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "schedule": "0 * * * *",
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    }


def test_service_has_one_cluster_ip_of_one_family() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]},
    }
    assert defaulted("services", service)["spec"] == {
        "internalTrafficPolicy": "Cluster",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


def test_node_can_allocate_what_it_has() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "4", "memory": "8192Mi"}},
    }
    assert defaulted("nodes", node)["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}


def test_namespace_is_labelled_with_its_name_and_finalized_by_kubernetes() -> None:
    made = created(
        "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    )
    assert made == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"labels": {"kubernetes.io/metadata.name": "team"}, "name": "team"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def test_strings_of_secret_become_data() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"a": "YQ=="},
        "stringData": {"a": "b", "c": "d"},
    }
    assert defaulted("secrets", secret) == {
        "apiVersion": "v1",
        "data": {"a": "Yg==", "c": "ZA=="},
        "kind": "Secret",
        "metadata": {"name": "s"},
        "type": "Opaque",
    }


def test_limits_of_containers_fill_in_what_they_can() -> None:
    item = {
        "type": "Container",
        "max": {"cpu": "2"},
        "min": {"cpu": "0.1", "memory": "1Mi"},
        "default": {"memory": "4Mi"},
    }
    found = defaulted(
        "limitranges",
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "l"},
            "spec": {"limits": [item]},
        },
    )
    assert found["spec"]["limits"] == [
        {
            "type": "Container",
            "max": {"cpu": "2"},
            "min": {"cpu": "100m", "memory": "1Mi"},
            "default": {"cpu": "2", "memory": "4Mi"},
            "defaultRequest": {"cpu": "2", "memory": "4Mi"},
        }
    ]


@pytest.mark.parametrize(
    ("key", "obj", "spec"),
    [
        (
            "persistentvolumeclaims",
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}},
            {"resources": {}, "volumeMode": "Filesystem"},
        ),
        (
            "persistentvolumes",
            {"apiVersion": "v1", "kind": "PersistentVolume", "spec": {"hostPath": {"path": "/v"}}},
            {
                "hostPath": {"path": "/v", "type": ""},
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
            },
        ),
        (
            "networkpolicies.networking.k8s.io",
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]},
            },
            {
                "podSelector": {},
                "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
                "policyTypes": ["Ingress", "Egress"],
            },
        ),
        (
            "customresourcedefinitions.apiextensions.k8s.io",
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "spec": {
                    "group": "a.b",
                    "names": {"plural": "boats", "kind": "Boat"},
                    "scope": "Cluster",
                },
            },
            {
                "conversion": {"strategy": "None"},
                "group": "a.b",
                "scope": "Cluster",
                "versions": None,
                "names": {
                    "plural": "boats",
                    "kind": "Boat",
                    "listKind": "BoatList",
                    "singular": "boat",
                },
            },
        ),
    ],
    ids=["claim", "volume", "network policy", "definition"],
)
def test_defaults_of_other_kinds_are_filled_in(
    key: str, obj: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert defaulted(key, {**obj, "metadata": {"name": "x"}})["spec"] == spec
