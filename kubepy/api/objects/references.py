"""The ConfigMaps and Secrets that a pod reads: in the environment of its containers, and in its
volumes.

A kubelet starts a container only when they are there, with the keys that are asked for, unless the
reference is optional. Upstream: ``makeEnvironmentVariables`` in ``pkg/kubelet/kubelet_pods.go``,
``pkg/volume/{configmap,secret, projected}``. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kubepy.api.meta import AnyObject, Object, nested_list, nested_map
from kubepy.api.objects.pods import CONTAINER_LISTS

CONFIG_MAPS = "configmaps"
SECRETS = "secrets"
KINDS = {CONFIG_MAPS: "ConfigMap", SECRETS: "Secret"}
ROOT_CA_CONFIG_MAP = (
    "kube-root-ca.crt"  # a controller of every real cluster keeps it in each namespace
)
Find = Callable[[str, str, str], "AnyObject | None"]  # resource, namespace, name → the object


class Reference(NamedTuple):
    """A place where a pod names a ConfigMap or a Secret.

    :ivar resource: ``configmaps`` or ``secrets``.
    :ivar key: the key that must be in it; "" for all that there are.
    :ivar field: the path of the field (``spec.containers[0].env[1].valueFrom.configMapKeyRef``).
    :ivar container: the container whose environment it is; "" for a volume.
    :ivar volume: the name of the volume; "" for an environment.
    """

    resource: str
    name: str
    key: str
    optional: bool
    field: str
    container: str = ""
    volume: str = ""

    @property
    def kind(self) -> str:
        return KINDS[self.resource]


class MissingReference(NamedTuple):
    """A reference to an object, or to a key, that there is not.

    :ivar is_key: the object is there, the key is not.
    :ivar message: the words of a kubelet.
    """

    reference: Reference
    is_key: bool
    message: str


def references_of(spec: AnyObject) -> Iterator[Reference]:
    """Yield the references of a pod's spec in the order in which a kubelet follows them: volumes,
    then containers."""
    for index, volume in enumerate(nested_list(spec, "volumes")):
        yield from _of_volume(volume, f"spec.volumes[{index}]")
    for field in CONTAINER_LISTS[:2]:
        for index, container in enumerate(spec.get(field) or ()):
            yield from _of_environment(container, f"spec.{field}[{index}]")


def missing_references(spec: AnyObject, namespace: str, find: Find) -> Iterator[MissingReference]:
    """Yield the references of a pod's spec that a kubelet cannot follow."""
    for reference in references_of(spec):
        if (reference.resource, reference.name) == (CONFIG_MAPS, ROOT_CA_CONFIG_MAP):
            continue
        obj = find(reference.resource, namespace, reference.name)
        if not reference.optional and (message := reference_problem(reference, obj, namespace)):
            yield MissingReference(reference, obj is not None, message)


def _of_volume(volume: Object, field: str) -> Iterator[Reference]:
    for source, resource, name in (
        ("configMap", CONFIG_MAPS, "name"),
        ("secret", SECRETS, "secretName"),
    ):
        if volume.get(source) is not None:
            yield from _of_items(
                volume[source], resource, name, f"{field}.{source}", volume["name"]
            )
    for index, projection in enumerate(nested_list(volume, "projected", "sources")):
        for source, resource in (("configMap", CONFIG_MAPS), ("secret", SECRETS)):
            if projection.get(source) is not None:
                path = f"{field}.projected.sources[{index}].{source}"
                yield from _of_items(projection[source], resource, "name", path, volume["name"])


def _of_items(
    source: Object, resource: str, name_field: str, field: str, volume: str
) -> Iterator[Reference]:
    """Yield a reference to each key that a volume takes, or to the whole object."""
    name = source.get(name_field) or ""
    optional = bool(source.get("optional"))
    items = nested_list(source, "items")
    if not items:
        yield Reference(resource, name, "", optional, f"{field}.{name_field}", volume=volume)
    for index, item in enumerate(items):
        yield Reference(
            resource,
            name,
            item.get("key", ""),
            optional,
            f"{field}.items[{index}].key",
            volume=volume,
        )


def _of_environment(container: Object, path: str) -> Iterator[Reference]:
    for index, source in enumerate(nested_list(container, "envFrom")):
        for field, resource in (("configMapRef", CONFIG_MAPS), ("secretRef", SECRETS)):
            if (reference := source.get(field)) is not None:
                yield Reference(
                    resource,
                    reference.get("name") or "",
                    "",
                    bool(reference.get("optional")),
                    f"{path}.envFrom[{index}].{field}.name",
                    container["name"],
                )

    for index, variable in enumerate(nested_list(container, "env")):
        for field, resource in (("configMapKeyRef", CONFIG_MAPS), ("secretKeyRef", SECRETS)):
            if (reference := nested_map(variable, "valueFrom").get(field)) is not None:
                yield Reference(
                    resource,
                    reference.get("name") or "",
                    reference.get("key") or "",
                    bool(reference.get("optional")),
                    f"{path}.env[{index}].valueFrom.{field}",
                    container["name"],
                )


def reference_problem(reference: Reference, obj: AnyObject | None, namespace: str) -> str:
    """Return what a kubelet says of a reference that it cannot follow; "" where it can."""
    if obj is None:
        return f'{reference.kind.lower()} "{reference.name}" not found'
    binary = (
        {} if reference.container else nested_map(obj, "binaryData")
    )  # an environment has text only
    if not reference.key or reference.key in nested_map(obj, "data") or reference.key in binary:
        return ""
    if reference.container:
        return f"couldn't find key {reference.key} in {reference.kind} {namespace}/{reference.name}"
    if reference.resource == SECRETS:
        return f"references non-existent secret key: {reference.key}"
    return f"configmap references non-existent config key: {reference.key}"
