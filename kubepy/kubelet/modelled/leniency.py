"""Pods whose references are ignored (``kubepy.dev/references: ignored``): what is missing does not
hold them up. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.meta import annotations_of, namespace_of
from kubepy.api.objects.outcomes import IGNORED, REFERENCES
from kubepy.api.objects.pods import CONTAINER_LISTS
from kubepy.kubelet.lastingvolumes import claim_name, volume_of_claim
from kubepy.kubelet.payloads import MountError

if TYPE_CHECKING:
    from kubepy.api.meta import AnyObject, Object
    from kubepy.api.objects.references import Find
    from kubepy.api.typed import Node, Pod
    from kubepy.apiserver.absence import AbsentObjects

IsOptional = Callable[[str, str], bool]  # of a kind and a name
CLAIM = "PersistentVolumeClaim"
KEY_SOURCES = ("configMapKeyRef", "secretKeyRef")
ALL_KEYS_SOURCES = ("configMapRef", "secretRef")
VOLUME_SOURCES = ("configMap", "secret")


def ignores_references(pod: Pod, node: Node, defaults: Mapping[str, str]) -> bool:
    """Tell whether a pod starts without the objects that it names."""
    own = annotations_of(pod).get(REFERENCES) or annotations_of(node).get(REFERENCES)
    return (own or defaults.get(REFERENCES)) == IGNORED


def with_optional_references(pod: Pod, find: Find) -> Pod:
    """Return a pod all of whose references are optional; a claim that cannot be mounted is an
    emptyDir."""
    return _lenient(pod, find, lambda kind, name: True)


def without_absent_references(pod: Pod, find: Find, absent: AbsentObjects) -> Pod:
    """Return a pod whose references to absent objects are optional; an absent claim is an
    emptyDir."""
    namespace = namespace_of(pod)
    return _lenient(pod, find, lambda kind, name: absent.has(kind, namespace, name))


def _lenient(pod: Pod, find: Find, is_optional: IsOptional) -> Pod:
    spec: Object = {**pod["spec"]}
    for field in CONTAINER_LISTS:
        if spec.get(field):
            spec[field] = [_optional_container(container, is_optional) for container in spec[field]]
    if spec.get("volumes"):
        spec["volumes"] = [
            _optional_volume(pod, volume, find, is_optional) for volume in spec["volumes"]
        ]
    return cast("Pod", {**pod, "spec": spec})


def _optional_container(container: AnyObject, is_optional: IsOptional) -> Object:
    optional: Object = {**container}
    if container.get("env"):
        optional["env"] = [
            _optional_variable(variable, is_optional) for variable in container["env"]
        ]
    if container.get("envFrom"):
        optional["envFrom"] = [
            _with_optional(source, ALL_KEYS_SOURCES, is_optional) for source in container["envFrom"]
        ]
    return optional


def _optional_variable(variable: AnyObject, is_optional: IsOptional) -> Object:
    source = variable.get("valueFrom")
    if source is None:
        return dict(variable)
    return {**variable, "valueFrom": _with_optional(source, KEY_SOURCES, is_optional)}


def _optional_volume(pod: Pod, volume: AnyObject, find: Find, is_optional: IsOptional) -> Object:
    claim = claim_name(pod, volume)
    if claim and is_optional(CLAIM, claim):
        try:
            volume_of_claim(pod, volume, find)
        except MountError:
            return {"name": volume["name"], "emptyDir": {}}
        return dict(volume)
    optional = _with_optional(volume, VOLUME_SOURCES, is_optional)
    projected: Any = volume.get("projected")
    if projected is not None:
        sources = projected.get("sources") or ()
        optional["projected"] = {
            **projected,
            "sources": [_with_optional(source, VOLUME_SOURCES, is_optional) for source in sources],
        }
    return optional


def _with_optional(holder: AnyObject, fields: tuple[str, ...], is_optional: IsOptional) -> Object:
    optional: Object = {**holder}
    for field in fields:
        source = holder.get(field)
        if source is None:
            continue
        kind = "ConfigMap" if field.startswith("configMap") else "Secret"
        if is_optional(kind, source.get("name") or source.get("secretName") or ""):
            optional[field] = {**holder[field], "optional": True}
    return optional
