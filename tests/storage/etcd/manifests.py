"""The objects of the files of all recorded conformance cases, and of the bundles of manifests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.storage.errors import YamlError
from kubepy.storage.yaml import load_all
from tests import bundles
from tests.conformance.test_conformance import CASES, RUNNER

Object = dict[str, Any]
BUNDLES = sorted(Path(bundles.__file__).parent.glob("*.yaml"))
# These call servers that are not there.
MAX_NODES = 4  # each gets a pod of each DaemonSet
CALLING = ("APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


class Manifest(NamedTuple):
    """An object to create, and the namespace for one that is in a namespace."""

    object: Object
    namespace: str


def namespace_manifest(name: str) -> Manifest:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Manifest(namespace, "")


def recorded_manifests(step: int = 1) -> Iterator[Manifest]:
    """Give the objects of the files of the cases, those of each case in a namespace of its own, and
    of those that differ in nothing but names the first.

    Many of them are there to be refused; files that are no YAML are left out.

    :param step: take every so many case.
    """
    contents: set[str] = set()
    nodes = 0
    for case in CASES[::step]:
        _, _, files = RUNNER.parse(case.read_text())
        objects = {_content(obj): obj for text in files.values() for obj in _objects(text)}
        new = [obj for content, obj in objects.items() if content not in contents]
        contents.update(objects)
        namespace = f"{case.parent.name}-{case.stem}"[:60]
        if new:
            yield namespace_manifest(namespace)
        for obj in new:
            nodes += obj["kind"] == "Node"
            if obj["kind"] != "Node" or nodes <= MAX_NODES:
                metadata = {**obj["metadata"], "namespace": ""}
                yield Manifest({**obj, "metadata": metadata}, namespace)


def _content(obj: Object) -> str:
    """Return what an object has besides the names of objects and images."""
    text = json.dumps(obj, sort_keys=True)
    for name in {obj["metadata"]["name"], *re.findall('"app": "([^"]+)"', text)}:
        text = text.replace(f'"{name}"', '"name"')
    return re.sub('"image": "[^"]+"', '"image": ""', text)


def bundled_manifests() -> Iterator[Manifest]:
    """Give the objects of the bundles of one file, in their own namespaces, but for those that
    call other servers. Namespaces and definitions come first."""
    objects = [obj for file in BUNDLES for obj in _objects(file.read_text())]
    first = ("Namespace", "CustomResourceDefinition")
    objects.sort(key=lambda obj: obj["kind"] not in first)
    for obj in objects:
        if obj["kind"] not in CALLING:
            yield Manifest(obj, obj["metadata"].get("namespace") or "default")


def _objects(text: str) -> Iterator[Object]:
    """Give the objects of a file that have a kind and a name."""
    try:
        documents = load_all(text)
    except YamlError:
        return
    for document in documents:
        obj = document.object
        items = obj.get("items") if isinstance(obj, dict) else None
        for item in items or [obj]:
            if _has_name(item):
                yield item


def _has_name(obj: Any) -> bool:
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        return False
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
