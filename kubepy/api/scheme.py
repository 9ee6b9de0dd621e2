"""Which resources there are: names, groups, versions, scope, short names, categories, subresources.

Built in are the resources that a v1.36 API server serves and kubectl knows; CustomResourceDefinitions add more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class PrinterColumn(NamedTuple):
    """A column that a CustomResourceDefinition asks for. ``type``: string, integer, number, boolean or date."""

    name: str
    type: str
    json_path: str
    priority: int = 0


class Resource(NamedTuple):
    """One served resource. ``key`` (plural with group) is how storage and the Client name it."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    other_versions: tuple[str, ...] = ()
    custom: bool = False
    # Where a custom resource keeps what its scale shows: replicas, status replicas, selector (as paths).
    scale_paths: tuple[tuple[str, ...], ...] = ()
    printer_columns: tuple[PrinterColumn, ...] = ()
    deprecation: str = ""  # what every request for it is warned of
    is_older: bool = False  # whether ``version`` is another than the one that discovery prefers and storage keeps

    @property
    def key(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def address(self) -> str:
        """How a request names it: by its key, and by the version in which it wants to see objects if that is older."""
        return f"{self.key}/{self.version}" if self.is_older else self.key

    @property
    def full_name(self) -> str:
        """The word that names it and nothing else: ``crons.v1beta1.example.org``, ``daemonsets.apps``."""
        return f"{self.plural}.{self.version}.{self.group}" if self.is_older else self.key

    def at(self, version: str) -> Resource:
        """The same resource in one of its other versions."""
        if version == self.version:
            return self
        others = tuple(one for one in (self.version, *self.other_versions) if one != version)
        return self._replace(version=version, other_versions=others, is_older=True, deprecation="")

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_core_api(self) -> bool:
        """Whether kube-apiserver serves it itself: not custom, nor of the servers for extensions within it."""
        return not self.custom and self.group not in ("apiextensions.k8s.io", "apiregistration.k8s.io")

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    @property
    def printed_name(self) -> str:
        """How kubectl names one in its messages: ``daemonset.apps``, ``pod``."""
        return f"{self.singular_name}.{self.group}" if self.group else self.singular_name

    @property
    def qualified_kind(self) -> str:
        """``DaemonSet.apps``, ``Pod``: the kind in the API's error messages (``schema.GroupKind.String``)."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def _r(plural: str, kind: str, *short: str, group: str = "", version: str = "v1", cluster: bool = False,
       all_category: bool = False, sub: tuple[str, ...] = (), versions: tuple[str, ...] = (),
       categories: tuple[str, ...] = (), verbs: tuple[str, ...] | None = None, deprecation: str = "") -> Resource:
    return Resource(plural, kind, group, version, not cluster, kind.lower(), short,
                    (("all", *categories) if all_category else categories), sub, verbs or ALL_VERBS, versions,
                    deprecation=deprecation)


CREATE_ONLY = ("create",)

BUILT_IN: tuple[Resource, ...] = (
    _r("bindings", "Binding", verbs=CREATE_ONLY),
    _r("componentstatuses", "ComponentStatus", "cs", cluster=True, verbs=("get", "list"),
       deprecation="v1 ComponentStatus is deprecated in v1.19+"),
    _r("configmaps", "ConfigMap", "cm"),
    _r("endpoints", "Endpoints", "ep",
       deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    _r("events", "Event", "ev"),
    _r("limitranges", "LimitRange", "limits"),
    _r("namespaces", "Namespace", "ns", cluster=True, sub=("finalize", "status"),
       verbs=("create", "delete", "get", "list", "patch", "update", "watch")),
    _r("nodes", "Node", "no", cluster=True, sub=("status",)),
    _r("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", sub=("status",)),
    _r("persistentvolumes", "PersistentVolume", "pv", cluster=True, sub=("status",)),
    _r("pods", "Pod", "po", all_category=True,
       sub=("binding", "ephemeralcontainers", "eviction", "resize", "status")),
    _r("podtemplates", "PodTemplate"),
    _r("replicationcontrollers", "ReplicationController", "rc", all_category=True, sub=("scale", "status")),
    _r("resourcequotas", "ResourceQuota", "quota", sub=("status",)),
    _r("secrets", "Secret"),
    _r("serviceaccounts", "ServiceAccount", "sa", sub=("token",)),
    _r("services", "Service", "svc", all_category=True, sub=("status",)),
    _r("mutatingadmissionpolicies", "MutatingAdmissionPolicy", group="admissionregistration.k8s.io", cluster=True,
       categories=("api-extensions",)),
    _r("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", group="admissionregistration.k8s.io",
       cluster=True, categories=("api-extensions",)),
    _r("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", group="admissionregistration.k8s.io",
       cluster=True, categories=("api-extensions",)),
    _r("validatingadmissionpolicies", "ValidatingAdmissionPolicy", group="admissionregistration.k8s.io",
       cluster=True, sub=("status",), categories=("api-extensions",)),
    _r("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", group="admissionregistration.k8s.io",
       cluster=True, categories=("api-extensions",)),
    _r("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", group="admissionregistration.k8s.io",
       cluster=True, categories=("api-extensions",)),
    _r("customresourcedefinitions", "CustomResourceDefinition", "crd", "crds", group="apiextensions.k8s.io",
       cluster=True, sub=("status",), categories=("api-extensions",)),
    _r("apiservices", "APIService", group="apiregistration.k8s.io", cluster=True, sub=("status",),
       categories=("api-extensions",)),
    _r("controllerrevisions", "ControllerRevision", group="apps"),
    _r("daemonsets", "DaemonSet", "ds", group="apps", all_category=True, sub=("status",)),
    _r("deployments", "Deployment", "deploy", group="apps", all_category=True, sub=("scale", "status")),
    _r("replicasets", "ReplicaSet", "rs", group="apps", all_category=True, sub=("scale", "status")),
    _r("statefulsets", "StatefulSet", "sts", group="apps", all_category=True, sub=("scale", "status")),
    _r("selfsubjectreviews", "SelfSubjectReview", group="authentication.k8s.io", cluster=True, verbs=CREATE_ONLY),
    _r("tokenreviews", "TokenReview", group="authentication.k8s.io", cluster=True, verbs=CREATE_ONLY),
    _r("localsubjectaccessreviews", "LocalSubjectAccessReview", group="authorization.k8s.io", verbs=CREATE_ONLY),
    _r("selfsubjectaccessreviews", "SelfSubjectAccessReview", group="authorization.k8s.io", cluster=True,
       verbs=CREATE_ONLY),
    _r("selfsubjectrulesreviews", "SelfSubjectRulesReview", group="authorization.k8s.io", cluster=True,
       verbs=CREATE_ONLY),
    _r("subjectaccessreviews", "SubjectAccessReview", group="authorization.k8s.io", cluster=True, verbs=CREATE_ONLY),
    _r("horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", group="autoscaling", version="v2",
       versions=("v1",), all_category=True, sub=("status",)),
    _r("cronjobs", "CronJob", "cj", group="batch", all_category=True, sub=("status",)),
    _r("jobs", "Job", group="batch", all_category=True, sub=("status",)),
    _r("certificatesigningrequests", "CertificateSigningRequest", "csr", group="certificates.k8s.io", cluster=True,
       sub=("approval", "status")),
    _r("leases", "Lease", group="coordination.k8s.io"),
    _r("endpointslices", "EndpointSlice", group="discovery.k8s.io"),
    _r("events", "Event", "ev", group="events.k8s.io"),
    _r("flowschemas", "FlowSchema", group="flowcontrol.apiserver.k8s.io", cluster=True, sub=("status",)),
    _r("prioritylevelconfigurations", "PriorityLevelConfiguration", group="flowcontrol.apiserver.k8s.io",
       cluster=True, sub=("status",)),
    _r("ingressclasses", "IngressClass", group="networking.k8s.io", cluster=True),
    _r("ingresses", "Ingress", "ing", group="networking.k8s.io", sub=("status",)),
    _r("ipaddresses", "IPAddress", "ip", group="networking.k8s.io", cluster=True),
    _r("networkpolicies", "NetworkPolicy", "netpol", group="networking.k8s.io"),
    _r("servicecidrs", "ServiceCIDR", group="networking.k8s.io", cluster=True, sub=("status",)),
    _r("runtimeclasses", "RuntimeClass", group="node.k8s.io", cluster=True),
    _r("poddisruptionbudgets", "PodDisruptionBudget", "pdb", group="policy", sub=("status",)),
    _r("clusterrolebindings", "ClusterRoleBinding", group="rbac.authorization.k8s.io", cluster=True),
    _r("clusterroles", "ClusterRole", group="rbac.authorization.k8s.io", cluster=True),
    _r("rolebindings", "RoleBinding", group="rbac.authorization.k8s.io"),
    _r("roles", "Role", group="rbac.authorization.k8s.io"),
    _r("deviceclasses", "DeviceClass", group="resource.k8s.io", cluster=True),
    _r("resourceclaims", "ResourceClaim", group="resource.k8s.io", sub=("status",)),
    _r("resourceclaimtemplates", "ResourceClaimTemplate", group="resource.k8s.io"),
    _r("resourceslices", "ResourceSlice", group="resource.k8s.io", cluster=True),
    _r("priorityclasses", "PriorityClass", "pc", group="scheduling.k8s.io", cluster=True),
    _r("csidrivers", "CSIDriver", group="storage.k8s.io", cluster=True),
    _r("csinodes", "CSINode", group="storage.k8s.io", cluster=True),
    _r("csistoragecapacities", "CSIStorageCapacity", group="storage.k8s.io"),
    _r("storageclasses", "StorageClass", "sc", group="storage.k8s.io", cluster=True),
    _r("volumeattachments", "VolumeAttachment", group="storage.k8s.io", cluster=True, sub=("status",)),
    _r("volumeattributesclasses", "VolumeAttributesClass", "vac", group="storage.k8s.io", cluster=True),
)


_BY_KEY = {resource.key: resource for resource in BUILT_IN}
_WHOLE_NAMES = {name for resource in BUILT_IN for name in (resource.plural, resource.singular_name)}


class Scheme:
    """The resources of one cluster: the built-in ones and those of its CustomResourceDefinitions.

    ``custom`` reads the latter. It is asked only when a name is not built in or all resources are wanted, and then
    remembered until ``forget_custom``, or until a name is asked for that was not among them.
    """

    def __init__(self, custom: Callable[[], Iterable[Resource]] = tuple) -> None:
        self._read_custom = custom
        self._custom: tuple[Resource, ...] | None = None

    def __iter__(self) -> Iterator[Resource]:
        return iter((*BUILT_IN, *self._customs()))

    def forget_custom(self) -> None:
        """A CustomResourceDefinition has changed."""
        self._custom = None

    def _customs(self) -> tuple[Resource, ...]:
        if self._custom is None:
            self._custom = tuple(self._read_custom())
        return self._custom

    def _first(self, choose: Callable[[Iterable[Resource]], Resource | None]) -> Resource | None:
        """The built-in resource chosen, or a custom one; one that is not known yet may have been defined since."""
        found = choose(BUILT_IN)
        if found is None and self._custom is not None:
            found = choose(self._custom)
        if found is None:
            self.forget_custom()
            found = choose(self._customs())
        return found

    def built_in(self, key: str) -> Resource | None:
        return _BY_KEY.get(key)

    def get(self, key: str) -> Resource | None:
        """The resource of a storage key's first part; None for one whose CustomResourceDefinition is gone."""
        if (found := _BY_KEY.get(key)) is not None:
            return found
        return self._first(lambda resources: next((one for one in resources if one.key == key), None))

    def by_key(self, key: str) -> Resource:
        """A resource that is known to be there: a built-in one. Raises KeyError for any other that is not served."""
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def is_served(self, key: str) -> bool:
        return self.get(key) is not None

    def for_kind(self, api_version: str, kind: str) -> Resource | None:
        """What a manifest's ``apiVersion`` and ``kind`` name, older served versions included."""
        group, _, version = api_version.rpartition("/")

        def choose(resources: Iterable[Resource]) -> Resource | None:
            named = (one for one in resources if one.group == group and one.kind == kind)
            return next((one for one in named if version in (one.version, *one.other_versions)), None)

        return self._first(choose)

    def for_lowercase_kind(self, api_version: str, kind: str) -> Resource | None:
        """What ``configmap`` in the place of a kind would name."""
        return next((one for one in self if one.kind.lower() == kind and one.api_version == api_version), None)

    def serves(self, api_version: str) -> bool:
        """Whether there is anything in a group and version."""
        group, _, version = api_version.rpartition("/")
        return any(one.group == group and version in (one.version, *one.other_versions) for one in self)

    def find(self, word: str) -> Resource | None:
        """What a user means by ``ds``, ``daemonsets``, ``DaemonSet``, ``daemonsets.apps`` or ``daemonsets.v1.apps``."""
        name, _, group = word.partition(".")
        return self._first(lambda resources: _find(resources, name, group))

    def also_short_named(self, word: str) -> list[Resource]:
        """The resources that have a short name too, behind the one that it means; [] for what is a whole name."""
        if word in _WHOLE_NAMES:
            return []
        return [one for one in self if word in one.short_names][1:]

    def in_category(self, category: str) -> list[Resource]:
        """The resources of a category (``all``), in discovery order."""
        return [one for one in self if category in one.categories]


def _find(resources: Iterable[Resource], name: str, group: str) -> Resource | None:
    """Short names are taken as they are written, other names in any case. A kind stands back behind all of them."""
    resources = tuple(resources)
    matches = [one for one in resources
               if name.lower() in (one.plural, one.singular_name) or name in one.short_names]
    matches += [one for one in resources if name in (one.kind, one.kind.lower()) and one not in matches]
    if not group:
        return matches[0] if matches else None
    for one in matches:
        if group == one.group:
            return one
        for version in (one.version, *one.other_versions):
            if group == f"{version}.{one.group}":
                return one.at(version)
    return next((one for one in matches if one.group.startswith(group)), None)
