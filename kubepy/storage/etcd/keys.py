"""Keys of etcd as a kube-apiserver v1.36 writes them.

    /registry/pods/default/web-0                              built-in kinds: without their group
    /registry/services/specs/default/web                      … with exceptions
    /registry/apiregistration.k8s.io/apiservices/v1.apps
    /registry/example.org/crontabs/default/nightly            custom resources: with it

What is kubepy's own lies beside them, below ``/kubepy/``. Upstream: the tables of
``pkg/kubeapiserver/default_storage_factory_builder.go``; every kind's key is in its
``test/integration/etcd/data.go``.

etcd's order within a resource is not that of a list: ``a-b/x`` comes before ``a/x`` there.
"""

from __future__ import annotations

from kubepy.storage.etcd.messages import prefix_end
from kubepy.storage.model import Key

_BUILT_IN = {
    "": (
        "configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims"
        " persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets"
        " serviceaccounts services"
    ),
    "admissionregistration.k8s.io": (
        "mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations"
        " validatingadmissionpolicies validatingadmissionpolicybindings"
        " validatingwebhookconfigurations"
    ),
    "apiextensions.k8s.io": "customresourcedefinitions",
    "apiregistration.k8s.io": "apiservices",
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "certificates.k8s.io": "certificatesigningrequests",
    "coordination.k8s.io": "leases",
    "discovery.k8s.io": "endpointslices",
    "flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
    "networking.k8s.io": "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
    "node.k8s.io": "runtimeclasses",
    "policy": "poddisruptionbudgets",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
    "resource.k8s.io": "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
    "scheduling.k8s.io": "priorityclasses",
    "storage.k8s.io": (
        "csidrivers csinodes csistoragecapacities storageclasses volumeattachments"
        " volumeattributesclasses"
    ),
}
_EXCEPTIONS = {
    "customresourcedefinitions.apiextensions.k8s.io": (
        "apiextensions.k8s.io/customresourcedefinitions"
    ),
    "apiservices.apiregistration.k8s.io": "apiregistration.k8s.io/apiservices",
    "endpoints": "services/endpoints",
    "ingresses.networking.k8s.io": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


def _paths() -> dict[str, str]:
    """The path of each built-in resource by its name with group."""
    paths = {}
    for group, plurals in _BUILT_IN.items():
        for plural in plurals.split():
            resource = f"{plural}.{group}" if group else plural
            paths[resource] = _EXCEPTIONS.get(resource, plural)
    return paths


PATHS = _paths()
_RESOURCES = {path: resource for resource, path in PATHS.items()}


class EtcdKeys:
    """The keys of one cluster.

    :ivar registry: what all keys of objects begin with.
    :ivar tick: a key among them that holds no object.
    :ivar own: what the keys of kubepy's own values begin with.
    """

    def __init__(self, prefix: str = "") -> None:
        self.registry = f"{prefix}/registry/".encode()
        self.tick = self.registry + b"kubepy/tick"
        self.own = f"{prefix}/kubepy/".encode()

    def of(self, key: Key) -> bytes:
        """Return the key of an object."""
        start = self._start(key.resource, key.namespace)
        return start + key.name.encode()

    def range_of(self, resource: str, namespace: str | None = None) -> tuple[bytes, bytes]:
        """Return the range of a resource, in one namespace or everywhere: start and end."""
        start = self._start(resource, namespace or "")
        return start, prefix_end(start)

    @property
    def everything(self) -> tuple[bytes, bytes]:
        """The range of all objects: start and end."""
        return self.registry, prefix_end(self.registry)

    def _start(self, resource: str, namespace: str) -> bytes:
        path = PATHS.get(resource)
        if path is None:
            plural, _, group = resource.partition(".")
            path = f"{group}/{plural}" if group else plural
        if namespace:
            path = f"{path}/{namespace}"
        return self.registry + f"{path}/".encode()

    def parse(self, key: bytes) -> Key | None:
        """Return the object that a key of etcd is for. None: no object that kubepy knows (a kind
        that it does not have, the server's own ``masterleases`` and ``ranges``), or no key below
        ``registry`` at all."""
        if not key.startswith(self.registry):
            return None
        try:
            parts = key[len(self.registry) :].decode().split("/")
        except UnicodeDecodeError:
            return None
        resource = _RESOURCES.get(parts[0])
        rest = parts[1:]
        if resource is None and len(parts) > 2:
            path = "/".join(parts[:2])
            custom = f"{parts[1]}.{parts[0]}" if "." in parts[0] else None
            resource = _RESOURCES.get(path, custom)
            rest = parts[2:]
        if resource is None or not 0 < len(rest) < 3 or "" in rest:
            return None
        return Key(resource, rest[0] if len(rest) == 2 else "", rest[-1])
