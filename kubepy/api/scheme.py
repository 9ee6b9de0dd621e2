"""The resources of the API: names, groups, versions, scope, short names, categories, subresources.

Built in are the resources that a v1.36 API server serves and kubectl knows;
CustomResourceDefinitions add more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class GroupVersionResource(NamedTuple):
    """A resource as a request names it.

    Without a version it is the one that discovery prefers; a custom resource is then seen as it is
    stored.
    """

    group: str
    version: str
    resource: str

    @classmethod
    def parse(cls, group_resource: str) -> GroupVersionResource:
        """Return what ``daemonsets.apps`` or ``pods`` names, without a version."""
        resource, _, group = group_resource.partition(".")
        return cls(group, "", resource)

    @property
    def group_resource(self) -> str:
        """``daemonsets.apps``, ``pods``: the key of the resource in storage and in the Scheme."""
        if self.group:
            return f"{self.resource}.{self.group}"
        return self.resource


class PrinterColumn(NamedTuple):
    """A column that a CustomResourceDefinition asks for. ``type``: string, integer, number, boolean
    or date."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    format: str = ""
    description: str = ""


class Subresource(NamedTuple):
    """A subresource of a kind, as discovery lists it.

    :ivar group: of its bodies, with ``version``; both "" where they are those of the resource.
    """

    name: str
    kind: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str = ""
    version: str = ""

    @property
    def is_view(self) -> bool:
        """Tell whether it is a part of its object, or a Scale, that can be updated: ``status``,
        ``approval`` …"""
        return "update" in self.verbs and self.name != "proxy"


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
    # The paths of replicas, status replicas and selector in a custom resource that has a scale.
    scale_paths: tuple[tuple[str, ...], ...] = ()
    printer_columns: tuple[PrinterColumn, ...] = ()
    deprecation: str = ""  # the warning that every request for it gets
    computed_from: str = (
        ""  # the resource of whose objects these are made at each request: they are not stored
    )
    is_older: bool = False  # ``version`` is not the one that discovery prefers
    storage_version: str = ""  # of a custom resource: the version in which its objects are stored
    list_kind: str = ""  # of a custom resource
    variants: tuple[
        Any, ...
    ] = ()  # of a custom resource: itself in each of its versions, served or not

    is_terminating: bool = False  # of a custom resource: its definition is being deleted

    @property
    def key(self) -> str:
        if self.group:
            return f"{self.plural}.{self.group}"
        return self.plural

    @property
    def storage_key(self) -> str:
        """The key under which the objects are stored: events of both groups are the same
        objects."""
        if self.key == "events.events.k8s.io":
            return "events"
        return self.key

    @property
    def is_stored(self) -> bool:
        """Whether its objects are kept, and under its own name."""
        return "list" in self.verbs and not self.computed_from and self.storage_key == self.key

    @property
    def listed_verbs(self) -> tuple[str, ...]:
        """The verbs as discovery lists them; while the definition is being deleted, writes are not
        among them."""
        return tuple(
            verb
            for verb in self.verbs
            if not self.is_terminating or verb not in ("create", "patch", "update")
        )

    @property
    def gvr(self) -> GroupVersionResource:
        """The GroupVersionResource by which a request names it, in this version."""
        return GroupVersionResource(self.group, self.version, self.plural)

    @property
    def full_name(self) -> str:
        """The unambiguous word for it on a command line: ``crons.v1beta1.example.org``,
        ``daemonsets.apps``."""
        if self.is_older:
            return f"{self.plural}.{self.version}.{self.group}"
        return self.key

    def subresource(self, name: str) -> Subresource | None:
        """Return one of its subresources, None for a name that is none."""
        if name not in self.subresources:
            return None
        kind, *others = _SUBRESOURCES.get(name, (self.kind,))
        return Subresource(name, kind.format(kind=self.kind), *others)

    def at(self, version: str) -> Resource:
        """Return the same resource in one of its versions."""
        if version == self.version:
            return self
        others = tuple(other for other in (self.version, *self.other_versions) if other != version)
        variant: Resource = next(
            (variant for variant in self.variants if variant.version == version), self
        )
        return variant._replace(
            version=version,
            other_versions=others,
            is_older=True,
            deprecation="",
            variants=self.variants,
        )

    @property
    def api_version(self) -> str:
        if self.group:
            return f"{self.group}/{self.version}"
        return self.version

    @property
    def is_core_api(self) -> bool:
        """Tell whether kube-apiserver itself serves it, not one of the extension servers within
        it."""
        return not self.custom and self.group not in (
            "apiextensions.k8s.io",
            "apiregistration.k8s.io",
        )

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    @property
    def printed_name(self) -> str:
        """The resource in kubectl's messages about one object: ``daemonset.apps``, ``pod``."""
        if self.group:
            return f"{self.singular_name}.{self.group}"
        return self.singular_name

    @property
    def qualified_kind(self) -> str:
        """``DaemonSet.apps``, ``Pod``: the kind in the API's error messages
        (``schema.GroupKind.String``)."""
        if self.group:
            return f"{self.kind}.{self.group}"
        return self.kind


CREATE_ONLY = ("create",)
READ_ONLY = ("get", "list")
_STREAM = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
# The subresources whose bodies or verbs are not those of ``status``: kind, verbs, group and version
# of the kind.
_SUBRESOURCES: Mapping[str, tuple[Any, ...]] = {
    "attach": ("PodAttachOptions", _STREAM),
    "binding": ("Binding", CREATE_ONLY),
    "eviction": ("Eviction", CREATE_ONLY, "policy", "v1"),
    "exec": ("PodExecOptions", _STREAM),
    "finalize": ("{kind}", ("update",)),
    "log": ("{kind}", ("get",)),
    "portforward": ("PodPortForwardOptions", _STREAM),
    "proxy": ("{kind}ProxyOptions", _PROXY),
    "scale": ("Scale", ("get", "patch", "update"), "autoscaling", "v1"),
    "token": ("TokenRequest", CREATE_ONLY, "authentication.k8s.io", "v1"),
}

# What a v1.36 API server serves. Groups are in the order of discovery: by the priorities of their
# APIServices (`apiVersionPriorities` of kube-apiserver), then by name. What it does with each kind:
# `kubepy.apiserver.kinds`.
BUILT_IN: tuple[Resource, ...] = (
    Resource("bindings", "Binding", verbs=CREATE_ONLY),
    Resource(
        "componentstatuses",
        "ComponentStatus",
        namespaced=False,
        short_names=("cs",),
        verbs=("get", "list"),
        deprecation="v1 ComponentStatus is deprecated in v1.19+",
    ),
    Resource("configmaps", "ConfigMap", short_names=("cm",)),
    Resource(
        "endpoints",
        "Endpoints",
        short_names=("ep",),
        deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    Resource("events", "Event", short_names=("ev",)),
    Resource("limitranges", "LimitRange", short_names=("limits",)),
    Resource(
        "namespaces",
        "Namespace",
        namespaced=False,
        short_names=("ns",),
        subresources=("finalize", "status"),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    Resource(
        "nodes", "Node", namespaced=False, short_names=("no",), subresources=("proxy", "status")
    ),
    Resource(
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=("status",),
    ),
    Resource(
        "persistentvolumes",
        "PersistentVolume",
        namespaced=False,
        short_names=("pv",),
        subresources=("status",),
    ),
    Resource(
        "pods",
        "Pod",
        short_names=("po",),
        categories=("all",),
        subresources=(
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status",
        ),
    ),
    Resource("podtemplates", "PodTemplate"),
    Resource(
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        categories=("all",),
        subresources=("scale", "status"),
    ),
    Resource("resourcequotas", "ResourceQuota", short_names=("quota",), subresources=("status",)),
    Resource("secrets", "Secret"),
    Resource("serviceaccounts", "ServiceAccount", short_names=("sa",), subresources=("token",)),
    Resource(
        "services",
        "Service",
        short_names=("svc",),
        categories=("all",),
        subresources=("proxy", "status"),
    ),
    Resource(
        "apiservices",
        "APIService",
        "apiregistration.k8s.io",
        namespaced=False,
        categories=("api-extensions",),
        subresources=("status",),
    ),
    Resource("controllerrevisions", "ControllerRevision", "apps"),
    Resource(
        "daemonsets",
        "DaemonSet",
        "apps",
        short_names=("ds",),
        categories=("all",),
        subresources=("status",),
    ),
    Resource(
        "deployments",
        "Deployment",
        "apps",
        short_names=("deploy",),
        categories=("all",),
        subresources=("scale", "status"),
    ),
    Resource(
        "replicasets",
        "ReplicaSet",
        "apps",
        short_names=("rs",),
        categories=("all",),
        subresources=("scale", "status"),
    ),
    Resource(
        "statefulsets",
        "StatefulSet",
        "apps",
        short_names=("sts",),
        categories=("all",),
        subresources=("scale", "status"),
    ),
    Resource("events", "Event", "events.k8s.io", short_names=("ev",)),
    Resource(
        "selfsubjectreviews",
        "SelfSubjectReview",
        "authentication.k8s.io",
        namespaced=False,
        verbs=CREATE_ONLY,
    ),
    Resource(
        "tokenreviews", "TokenReview", "authentication.k8s.io", namespaced=False, verbs=CREATE_ONLY
    ),
    Resource(
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        "authorization.k8s.io",
        verbs=CREATE_ONLY,
    ),
    Resource(
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        "authorization.k8s.io",
        namespaced=False,
        verbs=CREATE_ONLY,
    ),
    Resource(
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        "authorization.k8s.io",
        namespaced=False,
        verbs=CREATE_ONLY,
    ),
    Resource(
        "subjectaccessreviews",
        "SubjectAccessReview",
        "authorization.k8s.io",
        namespaced=False,
        verbs=CREATE_ONLY,
    ),
    Resource(
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "autoscaling",
        "v2",
        short_names=("hpa",),
        categories=("all",),
        subresources=("status",),
        other_versions=("v1",),
    ),
    Resource(
        "cronjobs",
        "CronJob",
        "batch",
        short_names=("cj",),
        categories=("all",),
        subresources=("status",),
    ),
    Resource("jobs", "Job", "batch", categories=("all",), subresources=("status",)),
    Resource(
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "certificates.k8s.io",
        namespaced=False,
        short_names=("csr",),
        subresources=("approval", "status"),
    ),
    Resource("ingressclasses", "IngressClass", "networking.k8s.io", namespaced=False),
    Resource(
        "ingresses", "Ingress", "networking.k8s.io", short_names=("ing",), subresources=("status",)
    ),
    Resource(
        "ipaddresses", "IPAddress", "networking.k8s.io", namespaced=False, short_names=("ip",)
    ),
    Resource("networkpolicies", "NetworkPolicy", "networking.k8s.io", short_names=("netpol",)),
    Resource(
        "servicecidrs",
        "ServiceCIDR",
        "networking.k8s.io",
        namespaced=False,
        subresources=("status",),
    ),
    Resource(
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "policy",
        short_names=("pdb",),
        subresources=("status",),
    ),
    Resource(
        "clusterrolebindings", "ClusterRoleBinding", "rbac.authorization.k8s.io", namespaced=False
    ),
    Resource("clusterroles", "ClusterRole", "rbac.authorization.k8s.io", namespaced=False),
    Resource("rolebindings", "RoleBinding", "rbac.authorization.k8s.io"),
    Resource("roles", "Role", "rbac.authorization.k8s.io"),
    Resource("csidrivers", "CSIDriver", "storage.k8s.io", namespaced=False),
    Resource("csinodes", "CSINode", "storage.k8s.io", namespaced=False),
    Resource("csistoragecapacities", "CSIStorageCapacity", "storage.k8s.io"),
    Resource(
        "storageclasses", "StorageClass", "storage.k8s.io", namespaced=False, short_names=("sc",)
    ),
    Resource(
        "volumeattachments",
        "VolumeAttachment",
        "storage.k8s.io",
        namespaced=False,
        subresources=("status",),
    ),
    Resource(
        "volumeattributesclasses",
        "VolumeAttributesClass",
        "storage.k8s.io",
        namespaced=False,
        short_names=("vac",),
    ),
    Resource(
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        "admissionregistration.k8s.io",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io",
        namespaced=False,
        categories=("api-extensions",),
        subresources=("status",),
    ),
    Resource(
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        "admissionregistration.k8s.io",
        namespaced=False,
        categories=("api-extensions",),
    ),
    Resource(
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=("status",),
    ),
    Resource(
        "priorityclasses",
        "PriorityClass",
        "scheduling.k8s.io",
        namespaced=False,
        short_names=("pc",),
    ),
    Resource("leases", "Lease", "coordination.k8s.io"),
    Resource("runtimeclasses", "RuntimeClass", "node.k8s.io", namespaced=False),
    Resource("endpointslices", "EndpointSlice", "discovery.k8s.io"),
    Resource("deviceclasses", "DeviceClass", "resource.k8s.io", namespaced=False),
    Resource("resourceclaims", "ResourceClaim", "resource.k8s.io", subresources=("status",)),
    Resource("resourceclaimtemplates", "ResourceClaimTemplate", "resource.k8s.io"),
    Resource("resourceslices", "ResourceSlice", "resource.k8s.io", namespaced=False),
    Resource(
        "flowschemas",
        "FlowSchema",
        "flowcontrol.apiserver.k8s.io",
        namespaced=False,
        subresources=("status",),
    ),
    Resource(
        "prioritylevelconfigurations",
        "PriorityLevelConfiguration",
        "flowcontrol.apiserver.k8s.io",
        namespaced=False,
        subresources=("status",),
    ),
)


def by_kind(resources: Iterable[Resource]) -> dict[str, tuple[Resource, ...]]:
    """Return resources by their kinds, those of one kind in their order."""
    kinds: dict[str, tuple[Resource, ...]] = {}
    for resource in resources:
        kinds[resource.kind] = (*kinds.get(resource.kind, ()), resource)
    return kinds


# The API of metrics-server, which comes last in discovery.
AGGREGATED = (
    Resource(
        "nodes",
        "NodeMetrics",
        "metrics.k8s.io",
        "v1beta1",
        namespaced=False,
        verbs=READ_ONLY,
        computed_from="nodes",
    ),
    Resource(
        "pods", "PodMetrics", "metrics.k8s.io", "v1beta1", verbs=READ_ONLY, computed_from="pods"
    ),
)

_BY_KEY = {resource.key: resource for resource in (*BUILT_IN, *AGGREGATED)}
_BY_KIND = by_kind(BUILT_IN)
_WHOLE_NAMES = {name for resource in BUILT_IN for name in (resource.plural, resource.singular_name)}


class CustomResources(NamedTuple):
    """The custom resources as they were read, in the order of discovery."""

    all: tuple[Resource, ...]
    by_key: Mapping[str, Resource]
    by_kind: Mapping[str, tuple[Resource, ...]]


class Scheme:
    """The resources of one cluster: the built-in ones and those of its CustomResourceDefinitions.

    :param custom: reads the latter. It is called when a name is not built in or all resources are
        needed, and its answer is kept until :meth:`forget_custom`, or until a name is looked up
        that is not among them.
    """

    def __init__(self, custom: Callable[[], Iterable[Resource]] = tuple) -> None:
        self._read_custom = custom
        # None, or the custom resources. It is another list after each change, so that a thread
        # which began to read before the change leaves nothing behind.
        self._custom: list[CustomResources | None] = [None]

    def __iter__(self) -> Iterator[Resource]:
        return iter((*BUILT_IN, *self._custom_resources(), *AGGREGATED))

    def forget_custom(self) -> None:
        """Read the custom resources again when they are next needed: a CustomResourceDefinition has
        changed."""
        self._custom = [None]

    def _custom_resources(self) -> tuple[Resource, ...]:
        """Return the custom resources in the order of discovery: all have one priority, so their
        names order them."""
        kept = self._custom
        resources = kept[0]
        if resources is None:
            read = sorted(
                self._read_custom(), key=lambda resource: (resource.group, resource.plural)
            )
            by_key = {resource.key: resource for resource in read}
            resources = kept[0] = CustomResources(tuple(read), by_key, by_kind(read))
        return resources.all

    def _first(self, choose: Callable[[Iterable[Resource]], Resource | None]) -> Resource | None:
        """Choose a built-in resource, or else a custom one, which may have been defined since they
        were read."""
        chosen = choose(BUILT_IN)
        known = self._custom[0]
        if chosen is None and known is not None:
            chosen = choose(known.all)
        if chosen is None:
            self.forget_custom()
            chosen = choose(self._custom_resources())
        if chosen is None:
            return choose(AGGREGATED)
        return chosen

    def built_in(self, key: str) -> Resource | None:
        return _BY_KEY.get(key)

    def get(self, key: str) -> Resource | None:
        """Return the resource of a key such as ``daemonsets.apps``; None if it is not served (any
        more)."""
        if (resource := _BY_KEY.get(key)) is not None:
            return resource
        known = self._custom[0]
        if known is not None and key in known.by_key:
            return known.by_key[key]
        return self._first(
            lambda resources: next(
                (resource for resource in resources if resource.key == key), None
            )
        )

    def by_key(self, key: str) -> Resource:
        """Return the resource of a key that is known to be served. Raises KeyError."""
        resource = self.get(key)
        if resource is None:
            raise KeyError(key)
        return resource

    def is_served(self, key: str) -> bool:
        return self.get(key) is not None

    def for_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a manifest's ``apiVersion``, in any of its served versions, and
        ``kind``."""
        group, _, version = api_version.rpartition("/")
        known = self._custom[0]
        for resource in (
            *_BY_KIND.get(kind, ()),
            *(known.by_kind.get(kind, ()) if known is not None else ()),
        ):
            if _is_served_in(resource, group, version):
                return resource
        return self._first(
            lambda resources: next(
                (
                    resource
                    for resource in resources
                    if resource.kind == kind and _is_served_in(resource, group, version)
                ),
                None,
            )
        )

    def for_lowercase_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource that a manifest means which writes ``configmap`` for its kind."""
        return next(
            (
                resource
                for resource in self
                if resource.kind.lower() == kind and resource.api_version == api_version
            ),
            None,
        )

    def serves(self, api_version: str) -> bool:
        """Tell whether there is any resource in a group and version."""
        group, _, version = api_version.rpartition("/")
        return any(_is_served_in(resource, group, version) for resource in self)

    def find(self, word: str) -> Resource | None:
        """Return what a user means by ``ds``, ``DaemonSet``, ``daemonsets.apps`` or
        ``daemonsets.v1.apps``.

        A whole name, of a custom resource too, goes before a short name
        (``expandResourceShortcut``).
        """
        name, _, group = word.partition(".")
        if name.lower() not in _WHOLE_NAMES:
            for resource in self._custom_resources():
                if name in (resource.plural, resource.singular_name) and group in (
                    "",
                    resource.group,
                ):
                    return resource

        return self._first(lambda resources: _find(resources, name, group)) or self._first(
            lambda resources: next(
                (
                    resource
                    for resource in _matching(resources, name)
                    if resource.group.startswith(group)
                ),
                None,
            )
        )

    def also_short_named(self, word: str) -> list[Resource]:
        """Return the resources that share a short name with the one that it means; [] for a whole
        name."""
        name, _, group = word.partition(".")
        resources = [resource for resource in self if group in ("", resource.group)]
        if name in _WHOLE_NAMES or any(
            name in (resource.plural, resource.singular_name) for resource in resources
        ):
            return []
        return [resource for resource in resources if name in resource.short_names][1:]

    def in_category(self, category: str) -> list[Resource]:
        """Return the resources of a category (``all``), in discovery order."""
        return [resource for resource in self if category in resource.categories]


def _is_served_in(resource: Resource, group: str, version: str) -> bool:
    return resource.group == group and version in (resource.version, *resource.other_versions)


def _matching(resources: Iterable[Resource], name: str) -> Iterator[Resource]:
    """Yield the resources of a plural, singular or short name, then those whose kind it is.

    Short names must match as they are written, plural and singular in any case.
    """
    resources = tuple(resources)
    for resource in resources:
        if (
            name.lower() in (resource.plural, resource.singular_name)
            or name in resource.short_names
        ):
            yield resource
    yield from (
        resource for resource in resources if name in (resource.kind, resource.kind.lower())
    )


def _find(resources: Iterable[Resource], name: str, group: str) -> Resource | None:
    """Find a resource by its name, and by its group, or its version and group, where one is
    given."""
    for resource in _matching(resources, name):
        if group in ("", resource.group):
            return resource
        for version in (resource.version, *resource.other_versions):
            if group == f"{version}.{resource.group}":
                return resource.at(version)
    return None
