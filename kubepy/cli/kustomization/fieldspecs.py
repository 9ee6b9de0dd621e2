"""Fields that the transformers of kustomize change, kind by kind, unless ``configurations`` add
others.

Upstream: ``kustomize/api/internal/konfig/builtinpluginconsts``, ``api/filters/fieldspec``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.resources import KustomizedResource, ResId, gvk_order, gvk_text

# Takes the map or list that holds a field, and the field's name or index.
FieldFunction = Callable[[Any, Any], None]


class FieldSpec(NamedTuple):
    """A path (``spec/template/spec/containers[]/image``) in objects of a kind; ``create``: add
    missing fields."""

    path: str
    kind: str = ""
    group: str = ""
    create: bool = False
    version: str = ""

    def is_for(self, resource_id: ResId) -> bool:
        return resource_id.is_selected(self.group, self.version, self.kind)

    @property
    def order(self) -> tuple[int, str]:
        return gvk_order(self.group, self.version, self.kind)

    @property
    def gvk_text(self) -> str:
        """Return ``Deployment.v1.apps``."""
        return gvk_text(self.group, self.version, self.kind)


def merge_specs(present: list[FieldSpec], more: list[FieldSpec]) -> list[FieldSpec]:
    """Add field specs; those that are there, or selected by a wider one, stay. Raises CliError for
    a conflict."""
    merged = list(present)
    for spec in more:
        same = next(
            (
                old
                for old in merged
                if old.path == spec.path
                and all(
                    getattr(spec, part) in ("", getattr(old, part))
                    for part in ("group", "version", "kind")
                )
            ),
            None,
        )
        if same is None:
            merged.append(spec)
        elif same.create != spec.create:
            raise CliError("conflicting fieldspecs")

    return merged


def spec_of(entry: Object) -> FieldSpec:
    """Return a field spec that was read."""
    return FieldSpec(
        entry.get("path", ""),
        entry.get("kind", ""),
        entry.get("group", ""),
        entry.get("create", False),
        entry.get("version", ""),
    )


# The paths of pod specs, by kind.
POD_SPECS = {
    "Pod": "spec",
    "PodTemplate": "template/spec",
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"), "spec/template/spec"
    ),
    "CronJob": "spec/jobTemplate/spec/template/spec",
}
CONTROLLERS = {
    **{kind: path for kind, path in POD_SPECS.items() if kind not in ("PodTemplate", "ReplicaSet")},
    "ReplicationController": "spec/template/spec",
}


def _in_pods(*paths: str, specs: dict[str, str] = POD_SPECS) -> list[FieldSpec]:
    return [FieldSpec(f"{prefix}/{path}", kind) for kind, prefix in specs.items() for path in paths]


# --- labels and annotations -----------------------------------------------------------------------

_IGNORED = "DuringSchedulingIgnoredDuringExecution"
_AFFINITIES = [
    f"spec/template/spec/affinity/{kind}/{term}/labelSelector/matchLabels"
    for kind in ("podAffinity", "podAntiAffinity")
    for term in (f"preferred{_IGNORED}/podAffinityTerm", f"required{_IGNORED}")
]

METADATA_LABELS = [FieldSpec("metadata/labels", create=True)]
TEMPLATE_LABELS = [
    *METADATA_LABELS,
    FieldSpec("spec/template/metadata/labels", "ReplicationController", create=True, version="v1"),
    *(
        FieldSpec("spec/template/metadata/labels", kind, create=True)
        for kind in ("Deployment", "ReplicaSet", "DaemonSet")
    ),
    FieldSpec("spec/template/metadata/labels", "StatefulSet", "apps", create=True),
    FieldSpec("spec/template/metadata/labels", "Job", "batch", create=True),
    FieldSpec("spec/jobTemplate/metadata/labels", "CronJob", "batch", create=True),
    FieldSpec("spec/jobTemplate/spec/template/metadata/labels", "CronJob", "batch", create=True),
    FieldSpec("spec/volumeClaimTemplates[]/metadata/labels", "StatefulSet", "apps", create=True),
]
SELECTOR_LABELS = [
    FieldSpec("spec/selector", "Service", create=True),
    FieldSpec("spec/selector", "ReplicationController", create=True),
    *(
        FieldSpec("spec/selector/matchLabels", kind, create=True)
        for kind in ("Deployment", "ReplicaSet", "DaemonSet")
    ),
    FieldSpec("spec/selector/matchLabels", "StatefulSet", "apps", create=True),
    *(
        FieldSpec(path, kind, "apps")
        for kind in ("Deployment", "StatefulSet")
        for path in (
            *_AFFINITIES,
            "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels",
        )
    ),
    FieldSpec("spec/selector/matchLabels", "Job", "batch"),
    FieldSpec("spec/jobTemplate/spec/selector/matchLabels", "CronJob", "batch"),
    FieldSpec("spec/selector/matchLabels", "PodDisruptionBudget", "policy"),
    *(
        FieldSpec(path, "NetworkPolicy", "networking.k8s.io")
        for path in (
            "spec/podSelector/matchLabels",
            "spec/ingress/from/podSelector/matchLabels",
            "spec/egress/to/podSelector/matchLabels",
        )
    ),
]
COMMON_LABELS = [*TEMPLATE_LABELS, *SELECTOR_LABELS]
COMMON_ANNOTATIONS = [
    spec._replace(
        path=spec.path.replace("/labels", "/annotations"),
        group="" if spec.kind == "StatefulSet" else spec.group,
    )
    for spec in TEMPLATE_LABELS
    if "Claim" not in spec.path
]

# --- others ---------------------------------------------------------------------------------------

NAMESPACES = [
    FieldSpec("metadata/name", "Namespace", create=True),
    FieldSpec("spec/service/namespace", "APIService", "apiregistration.k8s.io", create=True),
    FieldSpec(
        "spec/conversion/webhook/clientConfig/service/namespace",
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
    ),
]
REPLICAS = [
    FieldSpec("spec/replicas", kind, create=True)
    for kind in ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
]
NAMES = [FieldSpec("metadata/name")]
IMAGES = [
    FieldSpec(f"{spec}/{path}", create=True)
    for spec in ("spec", "spec/template/spec")
    for path in ("containers[]/image", "initContainers[]/image", "volumes[]/image/reference")
]


_TEXTS_OF_CONTAINERS = [
    f"{containers}/{path}"
    for containers in ("containers", "initContainers")
    for path in ("args", "command", "env/value", "volumeMounts/mountPath")
]
_WITH_VARIABLES = {kind: path for kind, path in POD_SPECS.items() if kind != "PodTemplate"}
_WITH_SERVERS = {
    kind: path for kind, path in _WITH_VARIABLES.items() if kind not in ("CronJob", "StatefulSet")
}
# The fields in which ``$(NAME)`` stands for a variable.
VARIABLES = [
    *_in_pods(*_TEXTS_OF_CONTAINERS, specs=_WITH_VARIABLES),
    *_in_pods("volumes/nfs/server", specs=_WITH_SERVERS),
    FieldSpec("spec/jobTemplate/spec/template/volumes/nfs/server", "CronJob"),
    FieldSpec("spec/volumeClaimTemplates/spec/nfs/server", "StatefulSet"),
    FieldSpec("spec/nfs/server", "PersistentVolume"),
    FieldSpec("spec/template/metadata/annotations", "Deployment"),
    *(
        FieldSpec(f"spec/{path}", "Ingress")
        for path in ("rules/host", "tls/hosts", "tls/secretName")
    ),
    *(FieldSpec(f"spec/ports/{path}", "Service") for path in ("port", "targetPort")),
    FieldSpec("metadata/labels"),
    FieldSpec("metadata/annotations"),
]


class NameReference(NamedTuple):
    """The fields that hold the name of a kind of object."""

    kind: str
    group: str
    fields: list[FieldSpec]
    version: str = ""

    @property
    def order(self) -> tuple[int, str]:
        return gvk_order(self.group, self.version, self.kind)


_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"


def _values(key: str, source: str) -> list[str]:
    return [
        f"{containers}/{path}"
        for containers in ("containers", "initContainers")
        for path in (f"env/valueFrom/{key}/name", f"envFrom/{source}/name")
    ]


def _annotations(*names: str) -> list[FieldSpec]:
    return [
        FieldSpec("metadata/annotations/" + name.replace("/", "\\/"), "Ingress") for name in names
    ]


NAME_REFERENCES = [
    *(
        NameReference(kind, "", [FieldSpec("spec/scaleTargetRef/name", "HorizontalPodAutoscaler")])
        for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")
    ),
    NameReference(
        "ConfigMap",
        "",
        [
            *_in_pods(
                "volumes/configMap/name",
                "volumes/projected/sources/configMap/name",
                *_values("configMapKeyRef", "configMapRef"),
            ),
            FieldSpec("spec/configSource/configMap", "Node"),
            FieldSpec("rules/resourceNames", "Role"),
            FieldSpec("rules/resourceNames", "ClusterRole"),
            *_annotations("nginx.ingress.kubernetes.io/fastcgi-params-configmap"),
        ],
    ),
    NameReference(
        "Secret",
        "",
        [
            *_in_pods(
                "volumes/secret/secretName",
                "imagePullSecrets/name",
                "volumes/projected/sources/secret/name",
                *_values("secretKeyRef", "secretRef"),
            ),
            FieldSpec("spec/tls/secretName", "Ingress"),
            *_annotations(
                "ingress.kubernetes.io/auth-secret",
                "nginx.ingress.kubernetes.io/auth-secret",
                "nginx.ingress.kubernetes.io/auth-tls-secret",
            ),
            FieldSpec("imagePullSecrets/name", "ServiceAccount"),
            *(
                FieldSpec(f"parameters/{name}", "StorageClass")
                for name in ("secretName", "adminSecretName", "userSecretName", "secretRef")
            ),
            FieldSpec("rules/resourceNames", "Role"),
            FieldSpec("rules/resourceNames", "ClusterRole"),
            FieldSpec("spec/azureFile/secretName", "PersistentVolume"),
        ],
    ),
    NameReference(
        "Service",
        "",
        [
            FieldSpec("spec/serviceName", "StatefulSet", "apps"),
            *(
                FieldSpec(path, "Ingress")
                for path in (
                    "spec/rules/http/paths/backend/serviceName",
                    "spec/backend/serviceName",
                    "spec/rules/http/paths/backend/service/name",
                    "spec/defaultBackend/service/name",
                )
            ),
            FieldSpec("spec/service/name", "APIService", "apiregistration.k8s.io"),
            FieldSpec(
                "webhooks/clientConfig/service", "ValidatingWebhookConfiguration", _ADMISSION
            ),
            FieldSpec("webhooks/clientConfig/service", "MutatingWebhookConfiguration", _ADMISSION),
        ],
    ),
    NameReference("Role", _RBAC, [FieldSpec("roleRef/name", "RoleBinding", _RBAC)]),
    NameReference(
        "ClusterRole",
        _RBAC,
        [
            FieldSpec("roleRef/name", "RoleBinding", _RBAC),
            FieldSpec("roleRef/name", "ClusterRoleBinding", _RBAC),
        ],
    ),
    NameReference(
        "ServiceAccount",
        "",
        [
            FieldSpec("subjects", "RoleBinding", _RBAC),
            FieldSpec("subjects", "ClusterRoleBinding", _RBAC),
            *_in_pods("serviceAccountName", specs=CONTROLLERS),
        ],
    ),
    NameReference(
        "PersistentVolumeClaim",
        "",
        _in_pods("volumes/persistentVolumeClaim/claimName", specs=CONTROLLERS),
    ),
    NameReference(
        "PersistentVolume",
        "",
        [
            FieldSpec("spec/volumeName", "PersistentVolumeClaim"),
            FieldSpec("rules/resourceNames", "ClusterRole"),
        ],
    ),
    NameReference(
        "StorageClass",
        "storage.k8s.io",
        [
            FieldSpec("spec/storageClassName", "PersistentVolume"),
            FieldSpec("spec/storageClassName", "PersistentVolumeClaim"),
            FieldSpec("spec/volumeClaimTemplates/spec/storageClassName", "StatefulSet"),
        ],
    ),
    NameReference(
        "PriorityClass", "scheduling.k8s.io", _in_pods("priorityClassName", specs=CONTROLLERS)
    ),
    NameReference(
        "IngressClass", "networking.k8s.io", [FieldSpec("spec/ingressClassName", "Ingress")]
    ),
    NameReference(
        "ValidatingAdmissionPolicy",
        _ADMISSION,
        [FieldSpec("spec/policyName", "ValidatingAdmissionPolicyBinding", _ADMISSION)],
    ),
]


# --- visiting -------------------------------------------------------------------------------------


def apply(
    resource: KustomizedResource,
    specs: list[FieldSpec],
    change: FieldFunction,
    *,
    new: type | None = None,
) -> None:
    """Change the fields of a resource that the specs name.

    :param new: the type of fields that ``create`` adds, or puts in the place of null; None: nothing
        is added.
    :raises CliError: for a path that leads through text or numbers.
    """
    for spec in specs:
        if not spec.is_for(resource.id):
            continue
        before = resource.id
        try:
            _visit(
                [resource.object], 0, split_path(spec.path), change, new if spec.create else None
            )
        except CliError as error:
            raise CliError(f"considering field '{spec.path}' of object {before}: {error}") from None


def split_path(path: str) -> list[str]:
    """Split a path at its slashes, but not at ``\\/``; one in front does not count."""
    text = path[1:] if path.startswith("/") else path
    return [part.replace("\0", "/") for part in text.replace("\\/", "\0").split("/")]


def _visit(
    holder: Any, key: Any, parts: list[str], change: FieldFunction, new: type | None
) -> None:
    """Follow a path through all items of lists on the way."""
    node = holder[key]
    if not parts:
        change(holder, key)
    elif isinstance(node, list):
        for index in range(len(node)):
            try:
                _visit(node, index, parts, change, new)
            except CliError as error:
                raise CliError(f"visit traversal on path: [{' '.join(parts)}]: {error}") from None
    elif isinstance(node, dict):
        name = parts[0].removesuffix("[]")
        is_list = name != parts[0]
        if not name:
            raise CliError("cannot set or create an empty field name")
        if new is not None and not is_list and node.get(name) is None:
            node[name] = {} if parts[1:] else new()
        elif is_list and name in node and node[name] is None:
            node[name] = []
        if name in node:
            _visit(node, name, parts[1:], change, new)
    elif node is not None:
        raise CliError("expected sequence or mapping node")
