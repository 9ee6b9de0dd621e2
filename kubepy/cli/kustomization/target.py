"""Read kustomizations one inside the other, and apply their steps in kustomize's order.

Upstream: ``kustomize/api/internal/target/kusttarget.go``, ``api/internal/builtins/SortOrderTransformer.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubepy import KUSTOMIZE_VERSION
from kubepy.api.meta import Object, annotations_of
from kubepy.api.values.goformat import quote
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import transformers
from kubepy.cli.kustomization.fieldspecs import COMMON_ANNOTATIONS, METADATA_LABELS
from kubepy.cli.kustomization.files import FileLoader, open_folder, settings_file
from kubepy.cli.kustomization.generators import content_hash, generate
from kubepy.cli.kustomization.patches import general_patches, json_patches, strategic_patches
from kubepy.cli.kustomization.references import fix_references
from kubepy.cli.kustomization.replacements import replace_all
from kubepy.cli.kustomization.resources import KustomizedResource, ResMap, read_resource
from kubepy.cli.kustomization.settings import read_settings
from kubepy.cli.kustomization.variables import declare, resolve, variables_of

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
    """Return the objects of a kustomization folder in the order in which they are printed.

    :param warn: takes warnings about deprecated fields and unused variables.
    :param restricted: files must lie in the folder of their kustomization.
    :raises CliError: for a kustomization that kustomize refuses, or that uses what is not supported here.
    """
    loader = open_folder(path, restricted=restricted)
    settings = read_settings(settings_file(loader), loader.root, warn)
    resources = ResMap()
    _accumulate(loader, settings, resources, warn)
    for resource in resources:
        if resource.needs_hash:
            resource.remember()
            resource.rename(f"{resource.id.name}-{_hash(resource.object)}")
    fix_references(resources)
    resolve(resources, warn)
    kept = [resource for resource in resources if annotations_of(resource.object).get(LOCAL) != "true"]
    for resource in kept:
        # Upstream rewrites all annotations when it removes its own; values that are not strings become strings.
        annotations = resource.object["metadata"].get("annotations") or {}
        for key, value in annotations.items():
            if isinstance(value, bool | int | float):
                annotations[key] = str(value).lower() if isinstance(value, bool) else str(value)
    if "managedByLabel" in (settings.get("buildMetadata") or ()):
        transformers.add_pairs(resources, METADATA_LABELS, {MANAGED_BY: f"kustomize-{KUSTOMIZE_VERSION}"})
    return [resource.object for resource in in_order(kept, settings.get("sortOptions"))]


@contextmanager
def _prefixed(prefix: str) -> Iterator[None]:
    """Put ``prefix`` before the text of a CliError, except where it says that something is not supported."""
    try:
        yield
    except CliError as error:
        if "not supported" in str(error):
            raise
        raise CliError(f"{prefix}: {error}") from None


def _accumulate(loader: FileLoader, settings: Object, resources: ResMap, warn: Warn) -> None:
    """Add the resources of a kustomization to ``resources``, then transform everything in there."""
    for path in settings["resources"]:
        try:
            _accumulate_resources(loader, path, resources, warn)
        except CliError as error:
            raise CliError(f"accumulating resources: {error}") from None
    for generated in generate(loader, settings):
        try:
            resources.absorb(generated)
        except CliError as error:
            raise CliError(f"merging from generator: {error}") from None
    for path in settings.get("components") or ():
        try:  # a component transforms what is there already
            _accumulate_directory(loader.enter(path), resources, warn, component=True)
        except CliError as error:
            raise CliError(f"accumulating components: accumulateDirectory: {quote(str(error))}") from None
    _run_transformers(loader, settings, resources)
    declare(resources, variables_of(settings))


def _accumulate_resources(loader: FileLoader, path: str, resources: ResMap, warn: Warn) -> None:
    """Add the objects of a file; when it cannot be read as one, those of the kustomization in that folder."""
    step = "accumulating"
    try:
        documents = [read_resource(obj) for obj in loader.documents(path)]
        step = "merging"
        for resource in documents:
            resources.append(resource)
        return
    except CliError as error:
        file_problem = f"{step} resources from '{path}': {error}"
        if str(error).startswith("MalformedYAMLError"):
            raise CliError(file_problem) from None
    inner = ResMap()
    with _prefixed(f"accumulation err='{file_problem}'"):
        base = loader.enter(path)
        _accumulate_directory(base, inner, warn, component=False)
        with _prefixed(f"recursed merging from path '{base.root}'"):
            resources.take_in(inner)


def _accumulate_directory(loader: FileLoader, resources: ResMap, warn: Warn, *, component: bool) -> None:
    """Accumulate another kustomization, which must be a Component or must not be one."""
    with _prefixed(f"couldn't make target for path '{loader.root}'"):
        settings = read_settings(settings_file(loader), loader.root, warn)
    if component and settings["kind"] != "Component":
        raise CliError(f"expected kind 'Component' for path '{loader.root}' but got '{settings['kind']}'")
    if not component and settings["kind"] == "Component":
        raise CliError(f"expected kind != 'Component' for path '{loader.root}'")
    with _prefixed(f"recursed accumulation of path '{loader.root}'"):
        _accumulate(loader, settings, resources, warn)


def _run_transformers(loader: FileLoader, settings: Object, resources: ResMap) -> None:
    for patch in strategic_patches(loader, settings):
        patch.transform(resources)
    for patch in general_patches(loader, settings.get("patches") or []):
        patch.transform(resources)
    if namespace := settings.get("namespace"):
        transformers.set_namespace(resources, namespace)
    if prefix := settings.get("namePrefix"):
        transformers.add_affix(resources, prefix, is_prefix=True)
    if suffix := settings.get("nameSuffix"):
        transformers.add_affix(resources, suffix, is_prefix=False)
    transformers.add_labels(resources, settings)
    if annotations := settings.get("commonAnnotations"):
        transformers.add_pairs(resources, COMMON_ANNOTATIONS, annotations)
    for patch in json_patches(loader, settings.get("patchesJson6902") or []):
        patch.transform(resources)
    for replica in settings.get("replicas") or ():
        transformers.set_replicas(resources, replica)
    for image in settings["images"]:
        transformers.set_image(resources, image)
    replace_all(resources, loader, settings.get("replacements") or [])


def _hash(obj: Object) -> str:
    """Return ten characters that depend on the data of a generated object but not on its name (``hasher.go``)."""
    content = {"kind": obj["kind"], "name": "", "data": obj.get("data", "")}
    if obj["kind"] == "Secret":
        content["type"] = obj.get("type", "")
    for name in ("binaryData", "stringData"):
        if obj.get(name):
            content[name] = obj[name]
    return content_hash(content)


def in_order(resources: list[KustomizedResource], options: Object | None) -> list[KustomizedResource]:
    """Sort by kind, what others depend on first, or as ``sortOptions`` says. Raises CliError."""
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
    return sorted(resources, key=lambda resource: (ranks.get(resource.id.kind, 0), resource.id.legacy_sort_key))
