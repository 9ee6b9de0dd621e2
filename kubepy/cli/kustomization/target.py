"""One kustomization after the other: read, accumulated, changed, in kustomize's order.

Upstream: ``kustomize/api/internal/target/kusttarget.go``, ``api/internal/builtins/SortOrderTransformer.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy import KUSTOMIZE_VERSION
from kubepy.api.meta import Object, annotations_of
from kubepy.api.values.goformat import quote
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import transformers
from kubepy.cli.kustomization.fieldspecs import COMMON_ANNOTATIONS, METADATA_LABELS
from kubepy.cli.kustomization.files import Folder, open_folder, settings_file
from kubepy.cli.kustomization.generators import generated
from kubepy.cli.kustomization.patches import apply_patches, general_patches, json_patches, strategic_patches
from kubepy.cli.kustomization.references import fix_references
from kubepy.cli.kustomization.replacements import replace_all
from kubepy.cli.kustomization.resources import Id, Resource, Resources
from kubepy.cli.kustomization.settings import read_settings
from kubepy.cli.kustomization.variables import declare, resolve, variables_of
from kubepy.cli.runtime.objects import content_hash

Warn = Callable[[str], None]

ORDER_FIRST = (
    "Namespace", "ResourceQuota", "StorageClass", "CustomResourceDefinition", "ServiceAccount", "PodSecurityPolicy",
    "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ConfigMap", "Secret", "Endpoints", "Service",
    "LimitRange", "PriorityClass", "PersistentVolume", "PersistentVolumeClaim", "Deployment", "StatefulSet", "CronJob",
    "PodDisruptionBudget",
)  # fmt: skip
ORDER_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
LOCAL = "config.kubernetes.io/local-config"
MANAGED_BY = "app.kubernetes.io/managed-by"


def build(path: str, warn: Warn, *, restricted: bool = True) -> list[Object]:
    """The objects of a kustomization folder, in the order of their printing. Raises CliError."""
    folder = open_folder(path, restricted=restricted)
    settings = read_settings(settings_file(folder), folder.root, warn)
    resources = Resources()
    _accumulate(folder, settings, resources, warn)
    for resource in resources:
        if resource.needs_hash:
            resource.remember()
            resource.rename(f"{resource.id.name}-{_hash(resource.object)}")
    fix_references(resources)
    resolve(resources, warn)
    kept = [one for one in resources if annotations_of(one.object).get(LOCAL) != "true"]
    for resource in kept:
        _write_annotations_as_text(resource.object)
    if "managedByLabel" in (settings.get("buildMetadata") or ()):
        transformers.add_pairs(resources, METADATA_LABELS, {MANAGED_BY: f"kustomize-{KUSTOMIZE_VERSION}"})
    return [one.object for one in in_order(kept, settings.get("sortOptions"))]


def _write_annotations_as_text(obj: Object) -> None:
    """Upstream writes all annotations anew when it takes its own out; what is no text becomes one."""
    annotations = obj["metadata"].get("annotations")
    for key, value in (annotations or {}).items():
        if isinstance(value, bool | int | float):
            annotations[key] = str(value).lower() if isinstance(value, bool) else str(value)


def _accumulate(folder: Folder, settings: Object, resources: Resources, warn: Warn) -> None:
    """Put the resources of a kustomization into ``resources``, and change all of those."""
    for path in settings["resources"]:
        try:
            _add(folder, path, resources, warn)
        except CliError as error:
            raise CliError(f"accumulating resources: {error}") from None
    for made in generated(folder, settings):
        try:
            resources.absorb(made)
        except CliError as error:
            raise CliError(f"merging from generator: {error}") from None
    for path in settings.get("components") or ():
        _add_component(folder, path, resources, warn)
    _transform(folder, settings, resources)
    declare(resources, variables_of(settings))


def _add(folder: Folder, path: str, resources: Resources, warn: Warn) -> None:
    """A file with objects, or another kustomization."""
    doing = "accumulating"
    try:
        found = [Resource(_checked(obj)) for obj in folder.documents(path)]
        doing = "merging"
        for resource in found:
            resources.append(resource)
    except CliError as error:
        as_file = f"{doing} resources from '{path}': {error}"
        if str(error).startswith("MalformedYAMLError"):
            raise CliError(as_file) from None
        _add_folder(folder, path, resources, warn, as_file)


def _add_folder(folder: Folder, path: str, resources: Resources, warn: Warn, as_file: str) -> None:
    """``as_file`` is why it cannot be a file."""
    inner = Resources()
    try:
        base = folder.folder(path)
        settings = _settings_of(base, warn)
        if settings["kind"] == "Component":
            raise CliError(f"expected kind != 'Component' for path '{base.root}'")
        _accumulate_folder(base, settings, inner, warn)
        try:
            resources.take_in(inner)
        except CliError as error:
            raise CliError(f"recursed merging from path '{base.root}': {error}") from None
    except CliError as error:
        if "not supported" in str(error):
            raise
        raise CliError(f"accumulation err='{as_file}': {error}") from None


def _accumulate_folder(folder: Folder, settings: Object, resources: Resources, warn: Warn) -> None:
    try:
        _accumulate(folder, settings, resources, warn)
    except CliError as error:
        if "not supported" in str(error):
            raise
        raise CliError(f"recursed accumulation of path '{folder.root}': {error}") from None


def _settings_of(folder: Folder, warn: Warn) -> Object:
    try:
        return read_settings(settings_file(folder), folder.root, warn)
    except CliError as error:
        if "not supported" in str(error):
            raise
        raise CliError(f"couldn't make target for path '{folder.root}': {error}") from None


def _add_component(folder: Folder, path: str, resources: Resources, warn: Warn) -> None:
    """A component works on what is there already."""
    try:
        component = folder.folder(path)
        settings = _settings_of(component, warn)
        if settings["kind"] != "Component":
            raise CliError(f"expected kind 'Component' for path '{component.root}' but got '{settings['kind']}'")
        _accumulate_folder(component, settings, resources, warn)
    except CliError as error:
        raise CliError(f"accumulating components: accumulateDirectory: {quote(str(error))}") from None


def _checked(obj: Any) -> Object:
    """Raises CliError for what is no object with a name."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        raise CliError("missing Resource metadata")
    if not obj.get("kind"):
        raise CliError("missing kind")
    if not obj["metadata"].get("name") and not obj["metadata"].get("generateName"):
        raise CliError("missing metadata.name in object")
    return obj


def _transform(folder: Folder, settings: Object, resources: Resources) -> None:
    apply_patches(resources, strategic_patches(folder, settings))
    apply_patches(resources, general_patches(folder, settings.get("patches") or []))
    if namespace := settings.get("namespace"):
        transformers.set_namespace(resources, namespace)
    if prefix := settings.get("namePrefix"):
        transformers.add_affix(resources, prefix, is_prefix=True)
    if suffix := settings.get("nameSuffix"):
        transformers.add_affix(resources, suffix, is_prefix=False)
    transformers.add_labels(resources, settings)
    if annotations := settings.get("commonAnnotations"):
        transformers.add_pairs(resources, COMMON_ANNOTATIONS, annotations)
    apply_patches(resources, json_patches(folder, settings.get("patchesJson6902") or []))
    for replica in settings.get("replicas") or ():
        transformers.set_replicas(resources, replica)
    for image in settings["images"]:
        transformers.set_image(resources, image)
    replace_all(resources, folder, settings.get("replacements") or [])


def _hash(obj: Object) -> str:
    """Ten characters that change with the data of a generated object; its name is left empty (``hasher.go``)."""
    content = {"kind": obj["kind"], "name": "", "data": obj.get("data", "")}
    if obj["kind"] == "Secret":
        content["type"] = obj.get("type", "")
    for name in ("binaryData", "stringData"):
        if obj.get(name):
            content[name] = obj[name]
    return content_hash(content)


# --- order --------------------------------------------------------------------------------------------------------


def in_order(resources: list[Resource], options: Object | None) -> list[Resource]:
    """By kind, what others need first; or as ``sortOptions`` says. Raises CliError."""
    order, legacy = ("legacy", None) if options is None else (options.get("order"), options.get("legacySortOptions"))
    if order not in ("fifo", "legacy"):
        raise CliError("the field 'sortOptions.order' must be one of [fifo, legacy]")
    if order == "fifo" and legacy is not None:
        raise CliError("the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', "
                       "not 'legacy'")
    if order == "fifo":
        return resources
    legacy = legacy or {}
    first, last = legacy.get("orderFirst", ORDER_FIRST), legacy.get("orderLast", ORDER_LAST)
    ranks = {kind: index - len(first) for index, kind in enumerate(first)}
    ranks |= {kind: index + 1 for index, kind in enumerate(last)}
    return sorted(resources, key=lambda one: _rank(one.id, ranks))


def _rank(found: Id, ranks: dict[str, int]) -> tuple[Any, ...]:
    kind = f"{found.group or '~G'}_{found.version or '~V'}_{found.kind or '~K'}"
    return ranks.get(found.kind, 0), kind, found.namespace or "~X", found.name or "~N"
