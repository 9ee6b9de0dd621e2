"""The annotation in which ``apply`` keeps the manifest. Upstream: ``kubectl/pkg/util/apply.go``."""

from __future__ import annotations

from kubepy.api.meta import Object, annotations_of

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def serialized(obj: Object) -> str:
    """The JSON of an object as the annotation keeps it: compact, sorted, ended by a newline."""
    from kubepy.api.values.goformat import to_json

    return to_json(obj) + "\n"


def configuration_of(obj: Object) -> str:
    """What a manifest's own last-applied annotation is: itself without it, with an ``annotations`` map in any case."""
    return serialized(without_annotation(obj))


def modified_configuration(obj: Object) -> Object:
    """A manifest as apply sends it: with its own configuration as annotation (``GetModifiedConfiguration``)."""
    return annotated(obj, configuration_of(obj))


def without_annotation(obj: Object) -> Object:
    """A manifest with an ``annotations`` map in any case, and without the last-applied one in it."""
    meta = obj["metadata"]
    kept = {key: value for key, value in (meta.get("annotations") or {}).items() if key != ANNOTATION}
    return {**obj, "metadata": {**meta, "annotations": kept}}


def annotated(obj: Object, configuration: str) -> Object:
    """A copy of an object with another last-applied annotation."""
    meta = obj["metadata"]
    annotations = {**(meta.get("annotations") or {}), ANNOTATION: configuration}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def save_last_applied(obj: Object, *, create: bool) -> None:
    """Put the annotation on an object that is about to be written, if ``create`` (``--save-config``) or if it has one
    already; changes it (``CreateOrUpdateAnnotation``)."""
    if create or ANNOTATION in annotations_of(obj):
        obj["metadata"] = modified_configuration(obj)["metadata"]


def original_configuration(obj: Object) -> str | None:
    """The text of what was applied last, None if nothing ever was."""
    return annotations_of(obj).get(ANNOTATION)
