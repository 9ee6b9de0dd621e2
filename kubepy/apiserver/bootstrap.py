"""The objects that every cluster has, as the API server and its controllers make them.

A cluster with ``bootstrap: full`` has them as files, which controllers keep; with ``minimal`` they
are implied (``kubepy.apiserver.implied``). Upstream: ``pkg/controlplane/controller``,
``pkg/registry/rbac/rest``, ``plugin/pkg/auth/authorizer/rbac/bootstrappolicy``. The roles are
generated data (``tools/generate_bootstrap.py``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.objects.rbac import (
    AUTOUPDATE,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
)

SERVICE_ACCOUNTS, SERVICES, CONFIG_MAPS = "serviceaccounts", "services", "configmaps"
ENDPOINTS, ENDPOINT_SLICES = "endpoints", "endpointslices.discovery.k8s.io"
SERVICE_CIDRS = "servicecidrs.networking.k8s.io"
DEFAULT, KUBERNETES, KUBE_SYSTEM = "default", "kubernetes", "kube-system"
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
DESCRIPTION = "kubernetes.io/description"
CA_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
    "distributions of Kubernetes "
    "clusters."
)
TOKEN_TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
API_SERVER_ADDRESS, API_SERVER_PORT = (
    "192.168.0.1",
    6443,
)  # the address of a host without one of its own
RBAC_KINDS = {
    CLUSTER_ROLES: "ClusterRole",
    CLUSTER_ROLE_BINDINGS: "ClusterRoleBinding",
    ROLES: "Role",
    ROLE_BINDINGS: "RoleBinding",
}  # in the order in which they are made
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
# The APIs of a v1.36 server with its default settings: group, version, and the priorities of the
# group and the version (``pkg/controlplane/apiserver/aggregator.go``).
LOCAL_APIS = (
    ("", "v1", 18000, 1),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("apps", "v1", 17800, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("networking.k8s.io", "v1", 17200, 15),
    ("node.k8s.io", "v1", 16300, 15),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("storage.k8s.io", "v1", 16800, 15),
)
LOCAL_API_SERVICES = frozenset(f"{version}.{group}" for group, version, _, _ in LOCAL_APIS)
LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_DATA = Path(__file__).parent / "data" / "bootstrap.json"
DNS_ADDRESS = 10  # the number of the name server's address in the range of cluster IPs
_KUBE_DNS = Path(__file__).parent / "data" / "kube_dns.json"


@cache
def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_DATA.read_bytes())
    return facts


def root_ca() -> str:
    """Return the certificate of the cluster's CA, in PEM. It is the same in all clusters: nothing
    here speaks TLS."""
    return str(_facts()["ca"])


def default_account(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": DEFAULT, "namespace": namespace},
    }


def root_ca_config_map(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"ca.crt": root_ca()},
        "metadata": {
            "annotations": {DESCRIPTION: CA_DESCRIPTION},
            "name": ROOT_CA_CONFIG_MAP,
            "namespace": namespace,
        },
    }


def kubernetes_service(subnet: str) -> Object:
    """Return the Service of the API server, complete: its address is the first of the range."""
    from ipaddress import IPv4Network  # most writes have nothing to do with this Service

    address = str(IPv4Network(subnet)[1])
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": API_SERVER_PORT}
    spec = {
        "clusterIP": address,
        "clusterIPs": [address],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [port],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "labels": {"component": "apiserver", "provider": "kubernetes"},
            "name": KUBERNETES,
            "namespace": DEFAULT,
        },
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def kubernetes_endpoints() -> Object:
    port = {"name": "https", "port": API_SERVER_PORT, "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            "name": KUBERNETES,
            "namespace": DEFAULT,
        },
        "subsets": [{"addresses": [{"ip": API_SERVER_ADDRESS}], "ports": [port]}],
    }


def kubernetes_endpoint_slice() -> Object:
    port = {"name": "https", "port": API_SERVER_PORT, "protocol": "TCP"}
    return {
        "addressType": "IPv4",
        "apiVersion": "discovery.k8s.io/v1",
        "endpoints": [{"addresses": [API_SERVER_ADDRESS], "conditions": {"ready": True}}],
        "kind": "EndpointSlice",
        "metadata": {
            "labels": {"kubernetes.io/service-name": KUBERNETES},
            "name": KUBERNETES,
            "namespace": DEFAULT,
        },
        "ports": [port],
    }


def service_cidr(subnet: str) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": KUBERNETES},
        "spec": {"cidrs": [subnet]},
    }


def token_tracking(since: str) -> Object:
    """Return the ConfigMap that says since when the use of tokens in Secrets is tracked."""
    return {
        "apiVersion": "v1",
        "data": {"since": since},
        "kind": "ConfigMap",
        "metadata": {"name": TOKEN_TRACKING, "namespace": KUBE_SYSTEM},
    }


def kube_dns_objects(subnet: str) -> dict[str, Object]:
    """Return what kubeadm adds to a cluster for its names, by resource: CoreDNS with its account
    and rights, and the Service ``kube-dns`` with the tenth address of the range."""
    from ipaddress import IPv4Network

    objects: dict[str, Object] = json.loads(_KUBE_DNS.read_bytes())
    network = IPv4Network(subnet)
    spec = objects[SERVICES]["spec"]
    spec["clusterIP"] = str(network[DNS_ADDRESS])
    return objects


def first_objects(subnet: str, today: str) -> Iterator[tuple[str, Object]]:
    """Yield what the controllers of a new cluster make, each with its resource, and the roles and
    bindings."""
    yield SERVICE_CIDRS, service_cidr(subnet)
    yield SERVICES, kubernetes_service(subnet)
    yield ENDPOINTS, kubernetes_endpoints()
    yield ENDPOINT_SLICES, kubernetes_endpoint_slice()
    yield CONFIG_MAPS, token_tracking(today)
    for namespace in SYSTEM_NAMESPACES:
        yield SERVICE_ACCOUNTS, default_account(namespace)
        yield CONFIG_MAPS, root_ca_config_map(namespace)
    for resource in RBAC_KINDS:
        for obj in rbac_objects(resource):
            yield resource, obj


def local_api_services() -> list[Object]:
    """Return the APIServices of the server's own APIs; their condition has no time yet."""
    return [
        _api_service(group, version, "onstart", group_priority, version_priority)
        for group, version, group_priority, version_priority in LOCAL_APIS
    ]


def custom_api_service(group: str, version: str) -> Object:
    """Return the APIService of a version that a CustomResourceDefinition serves."""
    return _api_service(group, version, "true", 1000, 100)


def _api_service(
    group: str, version: str, automanaged: str, group_priority: int, version_priority: int
) -> Object:
    spec = {
        "group": group,
        "groupPriorityMinimum": group_priority,
        "version": version,
        "versionPriority": version_priority,
    }
    if not group:
        del spec["group"]
    condition = {
        "message": "Local APIServices are always available",
        "reason": "Local",
        "status": "True",
        "type": "Available",
    }
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"labels": {AUTOMANAGED: automanaged}, "name": f"{version}.{group}"},
        "spec": spec,
        "status": {"conditions": [condition]},
    }


def rbac_objects(resource: str) -> list[Object]:
    """Return the bootstrap roles or bindings of a resource, by namespace and name. Rules are
    shared: never change one.

    ClusterRoles that aggregate others have no rules yet.
    """
    objects = []
    for fact in _facts()[resource]:
        own = fact["metadata"]
        metadata = {
            **own,
            "annotations": {AUTOUPDATE: "true"},
            "labels": {**LABELS, **own.get("labels", {})},
        }
        objects.append(
            {
                **fact,
                "apiVersion": f"{GROUP}/v1",
                "kind": RBAC_KINDS[resource],
                "metadata": metadata,
            }
        )

    return objects
