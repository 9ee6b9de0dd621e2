"""Annotations that say where objects come from and what changed them (``buildMetadata``).

Upstream: ``kustomize/api/resource/origin.go``.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kubepy.api.meta import annotations_of, nested_map
from kubepy.cli.kustomization.files import contents_of
from kubepy.cli.kustomization.repositories import parse_repository
from kubepy.cli.kustomization.resources import KustomizedResource, ResMap
from kubepy.storage.yaml import dump

ORIGIN = "config.kubernetes.io/origin"
TRANSFORMATIONS = "alpha.config.kubernetes.io/transformations"
# The annotations, and the options of ``buildMetadata`` that keep them.
OPTIONS = {ORIGIN: "originAnnotations", TRANSFORMATIONS: "transformerAnnotations"}


class Origin(NamedTuple):
    """A file, from the folder of the build or from the root of a repository; or what configured a
    plugin."""

    path: str = ""
    repo: str = ""
    ref: str = ""
    configured_in: str = ""
    configured_by: tuple[tuple[str, str], ...] = ()

    def append(self, path: str) -> Origin:
        """Return the origin of a file or kustomization that is named here."""
        if spec := parse_repository(path):
            inner = (
                os.path.normpath(spec.path) if spec.path else "notCloned"
            )  # as upstream, which means no folder
            return self._replace(repo=spec.clone_spec, ref=spec.ref, path=inner)
        return self._replace(path=os.path.normpath(os.path.join(self.path, path)))

    def plugin(self, kind: str, file: str) -> Origin:
        """Return the origin of a plugin that a field of the kustomization file here makes."""
        return Origin(
            "",
            self.repo,
            self.ref,
            os.path.normpath(os.path.join(self.path, file)),
            (("apiVersion", "builtin"), ("kind", kind)),
        )

    @property
    def text(self) -> str:
        fields = (
            ("path", self.path),
            ("repo", self.repo),
            ("ref", self.ref),
            ("configuredIn", self.configured_in),
        )
        text = "".join(dump({name: value}) for name, value in fields if value)
        inner = "".join(f"  {dump({name: value})}" for name, value in self.configured_by if value)
        return text + (f"configuredBy:\n{inner}" if inner else "")


def annotate(resource: KustomizedResource, name: str, text: str) -> None:
    """Set an annotation."""
    meta = resource.object["metadata"]
    meta["annotations"] = {**nested_map(meta, "annotations"), name: text}


def origin_of_plugin(resource: KustomizedResource) -> Origin | None:
    """Return the origin of a plugin that a resource configures; None where no origins are kept."""
    text = annotations_of(resource.object).get(ORIGIN)
    if text is None:
        return None
    contents = contents_of(text)
    named = resource.id
    written = contents[0] if contents and isinstance(contents[0], dict) else {}
    path, repo, ref = (str(written.get(name) or "") for name in ("path", "repo", "ref"))
    fields = (
        ("apiVersion", named.api_version),
        ("kind", named.kind),
        ("name", named.name),
        ("namespace", named.namespace),
    )
    return Origin("", repo, ref, path, fields)


def record_generator(generated: list[KustomizedResource], origin: Origin | None) -> None:
    """Say in generated objects which generator made them."""
    for resource in generated if origin else ():
        if origin and ORIGIN not in annotations_of(resource.object):
            annotate(resource, ORIGIN, origin.text)


def record_transformer(resources: ResMap, origin: Origin | None) -> None:
    """Say in all objects that a transformer was there; one without an origin was made by it."""
    if origin is None:
        return
    for resource in resources:
        if not resource.object:
            continue
        annotations = annotations_of(resource.object)
        if ORIGIN in annotations:
            item = "- " + origin.text.rstrip("\n").replace("\n", "\n  ") + "\n"
            annotate(resource, TRANSFORMATIONS, annotations.get(TRANSFORMATIONS, "") + item)
        else:
            annotate(resource, ORIGIN, origin.text)


def remove_records(resources: ResMap, options: list[str]) -> None:
    """Remove the annotations that ``buildMetadata`` does not ask for."""
    for resource in resources:
        for name, option in OPTIONS.items():
            if option not in options:
                annotations_of(resource.object).pop(name, None)
