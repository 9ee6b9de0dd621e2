"""Admission of objects: LimitRanges, ResourceQuotas, default classes, growth of claims."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import MERGE_PATCH, CreateOptions, Patch

Object = dict[str, Any]


def pod(
    name: str = "p",
    *,
    init: Object | None = None,
    labels: Object | None = None,
    **resources: Object,
) -> Object:
    spec: Object = {"containers": [{"name": "c", "image": "web:1", "resources": resources}]}
    if init is not None:
        spec["initContainers"] = [{"name": "i", "image": "web:1", "resources": init}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
    }


def limit_range(name: str, *items: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name},
        "spec": {"limits": list(items)},
    }


def quota(hard: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": hard, **spec},
    }


def refusal(client: Client, resource: str, obj: Object) -> str:
    with pytest.raises(Status) as error:
        client.create(resource, obj, namespace="default")
    return error.value.message


def create(client: Client, resource: str, obj: Object) -> Object:
    return client.create(resource, obj, namespace="default")


def used(client: Client) -> Object:
    status: Object = client.get("resourcequotas", "q", namespace="default").get("status", {})
    return status.get("used", {})


# --- LimitRanges ----------------------------------------------------------------------------------


def test_containers_without_amounts_get_those_of_limit_range(client: Client) -> None:
    create(
        client,
        "limitranges",
        limit_range(
            "l",
            {
                "type": "Container",
                "default": {"cpu": "500m", "memory": "1Gi"},
                "defaultRequest": {"cpu": "250m"},
            },
        ),
    )
    made = create(client, "pods", pod(init={}, requests={"cpu": "100m"}))
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "1Gi"},
        "limits": {"cpu": "500m", "memory": "1Gi"},
    }
    assert made["spec"]["initContainers"][0]["resources"] == {
        "requests": {"cpu": "250m", "memory": "1Gi"},
        "limits": {"cpu": "500m", "memory": "1Gi"},
    }
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: memory request for container c; cpu, memory limit for "
            "container c; "
            "cpu, memory request for init container i; cpu, memory limit for init container i"
        )
    }
    assert made["status"]["qosClass"] == "Burstable"


def test_amounts_beyond_limits_of_containers_are_refused(client: Client) -> None:
    create(
        client,
        "limitranges",
        limit_range(
            "l",
            {
                "type": "Container",
                "min": {"cpu": "200m"},
                "max": {"memory": "1Gi"},
                "maxLimitRequestRatio": {"cpu": "2"},
            },
        ),
    )
    assert refusal(
        client, "pods", pod(requests={"cpu": "100m"}, limits={"cpu": "350m", "memory": "1536Mi"})
    ) == (
        'pods "p" is forbidden: [minimum cpu usage per Container is 200m, but request is 100m, '
        "maximum memory usage per Container is 1Gi, but limit is 1536Mi, "
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.500000]"
    )


def test_limits_of_pods_are_about_all_containers_together(client: Client) -> None:
    create(client, "limitranges", limit_range("l", {"type": "Pod", "max": {"cpu": "1"}}))
    two = pod(limits={"cpu": "600m"})
    two["spec"]["containers"].append({**two["spec"]["containers"][0], "name": "d"})
    assert refusal(client, "pods", two) == (
        'pods "p" is forbidden: maximum cpu usage per Pod is 1, but limit is 1200m'
    )
    assert refusal(client, "pods", pod()) == (
        'pods "p" is forbidden: maximum cpu usage per Pod is 1.  No limit is specified'
    )


def claim(size: str, **more: Any) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": spec,
    }


def test_claims_have_limits_too(client: Client) -> None:
    create(
        client,
        "limitranges",
        limit_range(
            "l",
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
        ),
    )
    assert refusal(client, "persistentvolumeclaims", claim("500Mi")) == (
        'persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim '
        "is 1Gi, "
        "but request is 500Mi"
    )
    assert refusal(client, "persistentvolumeclaims", claim("3Gi")) == (
        'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim '
        "is 2Gi, "
        "but request is 3Gi"
    )


def test_rules_of_kind_come_before_limits(client: Client) -> None:
    create(client, "limitranges", limit_range("l", {"type": "Pod", "max": {"cpu": "1"}}))
    wrong = pod()
    wrong["spec"]["restartPolicy"] = "Sometimes"
    assert "spec.restartPolicy: Unsupported value" in refusal(client, "pods", wrong)


# --- ResourceQuotas -------------------------------------------------------------------------------


def test_creation_is_charged_to_quota(client: Client) -> None:
    create(
        client, "resourcequotas", quota({"pods": "3", "requests.cpu": "1", "limits.memory": "2Gi"})
    )
    create(client, "pods", pod("a", requests={"cpu": "300m"}, limits={"memory": "1Gi", "cpu": "1"}))
    assert used(client) == {"limits.memory": "1Gi", "pods": "1", "requests.cpu": "300m"}
    assert refusal(
        client, "pods", pod("b", requests={"cpu": "800m"}, limits={"memory": "1536Mi"})
    ) == (
        'pods "b" is forbidden: exceeded quota: q, requested: '
        "limits.memory=1536Mi,requests.cpu=800m, "
        "used: limits.memory=1Gi,requests.cpu=300m, limited: limits.memory=2Gi,requests.cpu=1"
    )
    assert used(client) == {"limits.memory": "1Gi", "pods": "1", "requests.cpu": "300m"}


def test_compute_quota_requires_resources_of_every_container(client: Client) -> None:
    create(client, "resourcequotas", quota({"cpu": "1", "limits.memory": "1Gi", "pods": "9"}))
    assert refusal(client, "pods", pod(init={"requests": {"cpu": "1m"}})) == (
        'pods "p" is forbidden: failed quota: q: must specify cpu for: c; limits.memory for: c,i'
    )


def test_objects_are_counted_by_either_name(client: Client) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    create(client, "resourcequotas", quota({"configmaps": "1", "count/secrets": "0"}))
    create(client, "configmaps", config)
    assert refusal(client, "configmaps", {**config, "metadata": {"name": "b"}}) == (
        'configmaps "b" is forbidden: exceeded quota: q, requested: configmaps=1, used: '
        "configmaps=1, "
        "limited: configmaps=1"
    )
    assert refusal(
        client, "secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    ) == (
        'secrets "s" is forbidden: exceeded quota: q, requested: count/secrets=1, used: '
        "count/secrets=0, "
        "limited: count/secrets=0"
    )


def test_quota_with_scope_is_only_about_pods_in_it(client: Client) -> None:
    create(client, "resourcequotas", quota({"pods": "0"}, scopes=["BestEffort"]))
    create(client, "pods", pod("burstable", requests={"cpu": "1m"}))
    assert refusal(client, "pods", pod("best-effort")) == (
        'pods "best-effort" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, '
        "limited: pods=0"
    )


def test_services_are_charged_for_ports_when_they_change(client: Client) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]},
    }
    create(
        client, "resourcequotas", quota({"services.nodeports": "1", "services.loadbalancers": "0"})
    )
    create(client, "services", service)
    client.patch(
        "services", "s", Patch(MERGE_PATCH, {"spec": {"type": "NodePort"}}), namespace="default"
    )
    assert used(client) == {"services.loadbalancers": "0", "services.nodeports": "1"}
    with pytest.raises(Status) as error:
        client.patch(
            "services",
            "s",
            Patch(MERGE_PATCH, {"spec": {"type": "LoadBalancer"}}),
            namespace="default",
        )
    assert error.value.message == (
        'services "s" is forbidden: exceeded quota: q, requested: services.loadbalancers=1, '
        "used: services.loadbalancers=0, limited: services.loadbalancers=0"
    )


def test_dry_run_uses_nothing(client: Client) -> None:
    create(client, "resourcequotas", quota({"pods": "1"}))
    client.create("pods", pod(), namespace="default", options=CreateOptions(dry_run=True))
    assert used(client) == {}


# --- classes --------------------------------------------------------------------------------------


def test_ingress_without_class_gets_default_one(client: Client) -> None:
    for name, default in (("plain", "false"), ("usual", "true")):
        meta = {
            "name": name,
            "annotations": {"ingressclass.kubernetes.io/is-default-class": default},
        }
        client.create(
            "ingressclasses.networking.k8s.io",
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "IngressClass",
                "metadata": meta,
                "spec": {"controller": "example.com/c"},
            },
        )
    made = create(
        client,
        "ingresses.networking.k8s.io",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "i"},
            "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
        },
    )
    assert made["spec"]["ingressClassName"] == "usual"


def runtime_class(**more: Any) -> Object:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "r"},
        "handler": "h",
        **more,
    }


def test_pod_takes_overhead_and_nodes_from_its_runtime_class(client: Client) -> None:
    client.create(
        "runtimeclasses.node.k8s.io",
        runtime_class(
            overhead={"podFixed": {"cpu": "100m"}},
            scheduling={
                "nodeSelector": {"kind": "vm"},
                "tolerations": [{"key": "vm", "operator": "Exists"}],
            },
        ),
    )
    one = pod()
    one["spec"] |= {"runtimeClassName": "r", "nodeSelector": {"disk": "ssd"}}
    spec = create(client, "pods", one)["spec"]
    assert spec["overhead"] == {"cpu": "100m"}
    assert spec["nodeSelector"] == {"disk": "ssd", "kind": "vm"}
    assert [toleration["key"] for toleration in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "vm",
    ]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "absent"}, 'pod rejected: RuntimeClass "absent" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "r", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "r", "nodeSelector": {"kind": "metal"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kind] = vm; "
            "pod.spec.nodeSelector[kind] = metal",
        ),
    ],
)
def test_pod_that_contradicts_its_runtime_class_is_refused(
    client: Client, spec: Object, why: str
) -> None:
    client.create(
        "runtimeclasses.node.k8s.io",
        runtime_class(
            overhead={"podFixed": {"cpu": "100m"}}, scheduling={"nodeSelector": {"kind": "vm"}}
        ),
    )
    one = pod()
    one["spec"] |= spec
    assert refusal(client, "pods", one) == f'pods "p" is forbidden: {why}'


def storage_class(**more: Any) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "s"},
        "provisioner": "example.com/p",
        **more,
    }


def grow(client: Client, *, phase: str) -> str:
    made = create(
        client, "persistentvolumeclaims", claim("1Gi", storageClassName="s", volumeName="v")
    )
    bound = {
        **made,
        "status": {
            "phase": phase,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
        },
    }
    client.update("persistentvolumeclaims", bound, namespace="default", subresource="status")
    patch = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    try:
        grown = client.patch(
            "persistentvolumeclaims", "c", Patch(MERGE_PATCH, patch), namespace="default"
        )
    except Status as error:
        return error.message.removeprefix('persistentvolumeclaims "c" is forbidden: ')
    return str(grown["spec"]["resources"]["requests"]["storage"])


def test_bound_claim_grows_if_its_class_allows_it(client: Client) -> None:
    client.create("storageclasses.storage.k8s.io", storage_class(allowVolumeExpansion=True))
    assert grow(client, phase="Bound") == "2Gi"


def test_claim_of_class_that_does_not_allow_it_stays(client: Client) -> None:
    client.create("storageclasses.storage.k8s.io", storage_class())
    assert grow(client, phase="Bound") == (
        "only dynamically provisioned pvc can be resized and the storageclass that "
        "provisions the pvc must support resize"
    )


def test_update_that_leaves_out_what_admission_completed_changes_nothing(client: Client) -> None:
    own = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    written = pod()
    written["spec"]["tolerations"] = [own]
    made = create(client, "pods", written)
    as_written = {"spec": {"tolerations": [own], "priority": None, "preemptionPolicy": None}}
    assert client.patch("pods", "p", Patch(MERGE_PATCH, as_written), namespace="default") == made


def test_priority_class_default_is_unique(client: Client) -> None:
    def priority_class(name: str) -> Object:
        return {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 1,
            "globalDefault": True,
        }

    client.create("priorityclasses.scheduling.k8s.io", priority_class("a"))
    assert refusal(client, "priorityclasses.scheduling.k8s.io", priority_class("b")) == (
        'priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as '
        "default. "
        "Only one default can exist"
    )
