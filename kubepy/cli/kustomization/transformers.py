"""Transform names, namespaces, labels, annotations, replicas and images.

Upstream: ``kustomize/api/internal/builtins``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import fieldspecs
from kubepy.cli.kustomization.fieldspecs import FieldSpec, apply, visit
from kubepy.cli.kustomization.resources import ResMap

# Kinds that get neither prefix nor suffix, because other objects refer to their names.
UNRENAMED = (("CustomResourceDefinition", None), ("APIService", "apiregistration.k8s.io"), ("Namespace", None))


def set_namespace(resources: ResMap, namespace: str) -> None:
    """Put all objects that can be in a namespace into this one. Raises CliError if two become the same."""
    for resource in resources:
        resource.remember()
        if not resource.id.is_cluster_scoped:
            resource.object["metadata"]["namespace"] = namespace
        if resource.id.kind in ("RoleBinding", "ClusterRoleBinding"):
            for subject in resource.object.get("subjects") or ():
                # Other service accounts follow their objects, see `references`; this one has no object.
                if subject.get("name") == "default":
                    subject["namespace"] = namespace
        is_core = resource.object.get("apiVersion") == "v1"
        specs = [spec for spec in fieldspecs.NAMESPACES if is_core or spec.path != "metadata/name"]
        apply(resource, specs, lambda holder, name: holder.__setitem__(name, namespace))
        if sum(other.id.equals(resource.id) for other in resources) > 1:
            raise CliError(f"namespace transformation produces ID conflict: {resource.id}")


def add_affix(resources: ResMap, affix: str, *, is_prefix: bool) -> None:
    """Put a prefix before all names, or a suffix behind them."""
    for resource in resources:
        old_id = resource.id
        if any(old_id.kind == kind and group in (None, old_id.group) for kind, group in UNRENAMED):
            continue
        resource.remember()
        (resource.prefixes if is_prefix else resource.suffixes).append(affix)
        resource.rename(affix + old_id.name if is_prefix else old_id.name + affix)


def add_pairs(resources: ResMap, specs: list[FieldSpec], pairs: dict[str, str]) -> None:
    """Set labels or annotations in all maps that the specs name."""

    def add(holder: dict[str, Any], name: str) -> None:
        old = holder.get(name) or {}
        if not isinstance(old, dict):
            raise CliError(f"wrong node kind: expected MappingNode but got ScalarNode: {name}")
        holder[name] = {**old, **pairs}

    for resource in resources:
        apply(resource, specs, add)


def add_labels(resources: ResMap, settings: Object) -> None:
    """Apply ``labels`` and ``commonLabels``."""
    for label in settings.get("labels") or ():
        specs = [FieldSpec(field["path"], field.get("kind", ""), field.get("group", ""), bool(field.get("create")))
                 for field in label.get("fields") or ()]
        if label.get("includeSelectors"):
            specs += fieldspecs.COMMON_LABELS
        else:
            specs += fieldspecs.TEMPLATE_LABELS if label.get("includeTemplates") else []
            specs += fieldspecs.METADATA_LABELS
        add_pairs(resources, specs, label.get("pairs") or {})
    if common := settings.get("commonLabels"):
        add_pairs(resources, fieldspecs.COMMON_LABELS, common)


def set_replicas(resources: ResMap, replica: Object) -> None:
    """Set the replicas of all objects of a name. Raises CliError if no such object has replicas."""
    name, count = replica.get("name", ""), replica.get("count", 0)
    has_replicas = False
    for spec in fieldspecs.REPLICAS:
        for resource in resources:
            if any(known_id.name == name and spec.is_for(known_id) for known_id in resource.ids):
                has_replicas = True
                visit(resource.object, spec.path.split("/"), lambda holder, key: holder.__setitem__(key, count),
                      create=True)
    if not has_replicas:
        kinds = " ".join(f"{spec.kind}.[noVer].[noGrp]" for spec in fieldspecs.REPLICAS)
        raise CliError(f"resource with name {name} does not match a config with the following GVK [{kinds}]")


# --- images -------------------------------------------------------------------------------------------------------


class ImageName(NamedTuple):
    """The parts of ``name[:tag][@digest]``; a part that is missing is ""."""

    name: str
    tag: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name}{f':{self.tag}' if self.tag else ''}{f'@{self.digest}' if self.digest else ''}"


def split_image(text: str) -> ImageName:
    rest, _, digest = text.partition("@")
    head, slash, tail = rest.rpartition("/")
    name, _, tag = tail.partition(":")
    return ImageName(f"{head}{slash}{name}", tag, digest)


def set_image(resources: ResMap, image: Object) -> None:
    """Change an image in all containers, at any depth, and then again at the usual paths.

    The second time matters only for ``tagSuffix``, which is then added twice, as kustomize does.
    """

    def change(holder: dict[str, Any], key: str) -> None:
        if isinstance(holder[key], str):
            holder[key] = changed_image(holder[key], image)

    for resource in resources:
        if resource.id.kind != "CustomResourceDefinition":
            _visit_containers(resource.object, change)
        for path in fieldspecs.IMAGES:
            visit(resource.object, path.split("/"), change)


def _visit_containers(node: Any, change: fieldspecs.FieldFunction) -> None:
    for value in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
        _visit_containers(value, change)
    if isinstance(node, dict):
        for name in ("containers", "initContainers"):
            for container in node[name] if isinstance(node.get(name), list) else ():
                if isinstance(container, dict) and "image" in container:
                    change(container, "image")


def changed_image(text: str, image: Object) -> str:
    """Return an image with the new name, tag or digest, if the entry of ``images`` is for it."""
    try:
        pattern = f"^{image.get('name', '')}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$"
        matches = compile_go(pattern).search(text)
    except GoRegexError:
        matches = False
    if not matches:
        return text
    parts = split_image(text)
    parts = parts._replace(name=image.get("newName") or parts.name)
    if image.get("newTag") or image.get("digest"):
        return str(parts._replace(tag=image.get("newTag") or "", digest=image.get("digest") or ""))
    if suffix := image.get("tagSuffix"):
        return str(parts._replace(tag=parts.tag + suffix, digest=""))
    return str(parts)
