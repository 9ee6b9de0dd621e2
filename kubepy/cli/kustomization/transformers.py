"""Names, namespaces, labels, annotations, replicas and images. Upstream: ``kustomize/api/internal/builtins``."""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import fieldspecs
from kubepy.cli.kustomization.fieldspecs import FieldSpec, apply, visit
from kubepy.cli.kustomization.resources import Resource, Resources

# What keeps its name whatever the prefix: other objects go by it.
UNRENAMED = (("CustomResourceDefinition", None), ("APIService", "apiregistration.k8s.io"), ("Namespace", None))


def set_namespace(resources: Resources, namespace: str) -> None:
    """Put all objects that can be in a namespace into this one. Raises CliError if two become the same."""
    for resource in resources:
        resource.remember()
        if not resource.id.is_cluster_scoped:
            resource.object["metadata"]["namespace"] = namespace
        _set_subjects(resource, namespace)
        is_core = resource.object.get("apiVersion") == "v1"
        specs = [spec for spec in fieldspecs.NAMESPACES if is_core or spec.path != "metadata/name"]
        apply(resource, specs, lambda holder, name: holder.__setitem__(name, namespace))
        if sum(one.id.is_same(resource.id) for one in resources) > 1:
            raise CliError(f"namespace transformation produces ID conflict: {resource.id}")


def _set_subjects(resource: Resource, namespace: str) -> None:
    """The default service account of a binding is that of the namespace; others are followed by their names."""
    if resource.id.kind in ("RoleBinding", "ClusterRoleBinding"):
        for subject in resource.object.get("subjects") or ():
            if subject.get("name") == "default":
                subject["namespace"] = namespace


def add_affix(resources: Resources, affix: str, *, is_prefix: bool) -> None:
    """Put a prefix before, or a suffix behind, all names."""
    for resource in resources:
        found = resource.id
        if any(found.kind == kind and group in (None, found.group) for kind, group in UNRENAMED):
            continue
        resource.remember()
        (resource.prefixes if is_prefix else resource.suffixes).append(affix)
        resource.rename(affix + found.name if is_prefix else found.name + affix)


def add_pairs(resources: Resources, specs: list[FieldSpec], pairs: dict[str, str]) -> None:
    """Set labels or annotations in all maps that the specs name."""

    def add(holder: dict[str, Any], name: str) -> None:
        old = holder.get(name) or {}
        if not isinstance(old, dict):
            raise CliError(f"wrong node kind: expected MappingNode but got ScalarNode: {name}")
        holder[name] = {**old, **pairs}

    for resource in resources:
        apply(resource, specs, add)


def add_labels(resources: Resources, settings: Object) -> None:
    for label in settings.get("labels") or ():
        add_pairs(resources, _label_specs(label), label.get("pairs") or {})
    if common := settings.get("commonLabels"):
        add_pairs(resources, fieldspecs.COMMON_LABELS, common)


def _label_specs(label: Object) -> list[FieldSpec]:
    own = [FieldSpec(one["path"], one.get("kind", ""), one.get("group", ""), bool(one.get("create")))
           for one in label.get("fields") or ()]
    if label.get("includeSelectors"):
        return [*own, *fieldspecs.COMMON_LABELS]
    templates = fieldspecs.TEMPLATE_LABELS if label.get("includeTemplates") else []
    return [*own, *templates, *fieldspecs.METADATA_LABELS]


def set_replicas(resources: Resources, replica: Object) -> None:
    """Raises CliError if there is nothing of that name that has replicas."""
    name, count = replica.get("name", ""), replica.get("count", 0)
    found = False
    for spec in fieldspecs.REPLICAS:
        for resource in resources:
            if any(one.name == name and spec.is_for(one) for one in resource.ids):
                found = True
                visit(resource.object, spec.path.split("/"), lambda holder, key: holder.__setitem__(key, count),
                      create=True)
    if not found:
        kinds = " ".join(f"{spec.kind}.[noVer].[noGrp]" for spec in fieldspecs.REPLICAS)
        raise CliError(f"resource with name {name} does not match a config with the following GVK [{kinds}]")


# --- images -------------------------------------------------------------------------------------------------------


class ImageName(NamedTuple):
    """``name[:tag][@digest]``; what is not there is ""."""

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


def set_image(resources: Resources, image: Object) -> None:
    """Change an image wherever containers are, at any depth, and then again where they usually are.

    That is twice for most, which only ``tagSuffix`` shows: so does kustomize.
    """

    def change(holder: dict[str, Any], key: str) -> None:
        if isinstance(holder[key], str):
            holder[key] = changed_image(holder[key], image)

    for resource in resources:
        if resource.id.kind != "CustomResourceDefinition":
            _visit_containers(resource.object, change)
        for path in fieldspecs.IMAGES:
            visit(resource.object, path.split("/"), change)


def _visit_containers(node: Any, change: fieldspecs.Change) -> None:
    for value in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
        _visit_containers(value, change)
    if isinstance(node, dict):
        for name in ("containers", "initContainers"):
            for container in node[name] if isinstance(node.get(name), list) else ():
                if isinstance(container, dict) and "image" in container:
                    change(container, "image")


def changed_image(text: str, image: Object) -> str:
    """The image with the new name, tag or digest, if it is the one that is meant."""
    try:
        pattern = f"^{image.get('name', '')}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$"
        is_meant = compile_go(pattern).search(text)
    except GoRegexError:
        is_meant = False
    if not is_meant:
        return text
    found = split_image(text)
    found = found._replace(name=image.get("newName") or found.name)
    if image.get("newTag") or image.get("digest"):
        return str(found._replace(tag=image.get("newTag") or "", digest=image.get("digest") or ""))
    if suffix := image.get("tagSuffix"):
        return str(found._replace(tag=found.tag + suffix, digest=""))
    return str(found)
