"""What kind of deed a remedy is: one that an operator can do, one that only changes the simulation,
one that destroys.

real         an operator of such a cluster can do it, and nothing is lost by it
simulated    it changes what kubepy simulates (annotations that kubelets follow), or says of a disk or a machine
             what only another disk or machine makes true
destructive  data, the state of something outside, or a safeguard is lost: finalizers, webhooks, objects that nobody
             makes again, pods that are ended by force
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubepy.api.meta import Object, annotations_of, controller_of, is_being_deleted, nested_map
from kubepy.api.objects.usage import PREFIX
from kubepy.api.objects.volumes import is_bound
from kubepy.controllers.podgc import TAINT_OUT_OF_SERVICE
from kubepy.insight import stdin_of
from kubepy.insight.why import DESTRUCTIVE, REAL, SIMULATED
from kubepy.scheduler.plugins.volumes import ZONE_LABELS

if TYPE_CHECKING:
    from kubepy.insight.why.scene import Scene, Words

RANKS = {REAL: 0, SIMULATED: 1, DESTRUCTIVE: 2}
FORCE = "--force"
# What a patch says of a volume that only another disk, or its loss, makes true.
OF_DISKS = {"capacity": SIMULATED, "accessModes": SIMULATED, "claimRef": DESTRUCTIVE}
WEBHOOKS = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")


def kind_of(scene: Scene, words: Words) -> str:
    """Return the kind of a remedy, by what its command line does to objects of the scene."""
    if words[0] == "replace":
        return _kind_of_replacement(scene, json.loads(stdin_of(words)))
    if any(PREFIX in word for word in (*words, stdin_of(words))) or _makes_handler(words):
        return SIMULATED
    if words[0] == "delete":
        if _destroys(scene, words):
            return DESTRUCTIVE
        return REAL

    if words[0] == "patch":
        return _kind_of_patch(words)
    if words[0] == "label" and any(word.partition("=")[0] in ZONE_LABELS for word in words):
        return SIMULATED
    is_forced = any(word.startswith(TAINT_OUT_OF_SERVICE) for word in words)
    if is_forced:
        return DESTRUCTIVE
    return REAL


def _makes_handler(words: Words) -> bool:
    """Return whether a command says of all nodes that they have a handler of a RuntimeClass."""
    return words[0] == "create" and '"kind":"RuntimeClass"' in stdin_of(words)


def _kind_of_replacement(scene: Scene, manifest: Object) -> str:
    """Return the kind of a command that makes an object anew: by the volume that it loses, and by
    the annotations for kubelets that it changes."""
    if manifest["kind"] == "List":
        kinds = [_kind_of_replacement(scene, item) for item in manifest["items"]]
        return max(kinds, key=RANKS.__getitem__, default=REAL)
    metadata = manifest["metadata"]
    resource = scene.cluster.scheme.for_kind(manifest["apiVersion"], manifest["kind"])
    present = None
    if resource is not None:
        present = scene.get(resource.key, metadata.get("namespace", "default"), metadata["name"])
    if manifest["kind"] == "PersistentVolumeClaim":
        if present is not None and is_bound(present):
            return DESTRUCTIVE
        return REAL
    is_same = present is None or _for_kubelets(present) == _for_kubelets(manifest)
    if is_same:
        return REAL
    return SIMULATED


def _for_kubelets(obj: Object) -> list[tuple[str, str]]:
    """Return the annotations of an object, and of its template, that the simulation follows."""
    template = nested_map(obj["spec"], "template")
    holders = [obj, template] if "metadata" in template else [obj]
    return [
        item
        for holder in holders
        for item in sorted(annotations_of(holder).items())
        if item[0].startswith(PREFIX)
    ]


def _kind_of_patch(words: Words) -> str:
    """Return the kind of a patch: by the type of its object, and the fields that it changes."""
    resource = words[1].partition("/")[0]
    if resource in WEBHOOKS or any("finalizers" in word for word in words):
        return DESTRUCTIVE
    if resource == "persistentvolume":
        patch = next(word for word in words if word[:1] in "[{")
        kinds = [kind for field, kind in OF_DISKS.items() if field in patch]
        return max(kinds, key=RANKS.__getitem__, default=REAL)
    return REAL


def _destroys(scene: Scene, words: Words) -> bool:
    """Return whether a deletion loses something: an object that no controller makes again, or a pod
    by force."""
    return FORCE in words or not all(
        controller_of(obj) is not None or is_being_deleted(obj)
        for obj in _named_objects(scene, words)
    )


def _named_objects(scene: Scene, words: Words) -> Iterator[Object]:
    """Yield the objects that ``delete TYPE NAME…`` or ``delete TYPE/NAME…`` names; a missing one
    counts as an empty object, which nobody makes again."""
    namespace = words[words.index("-n") + 1] if "-n" in words else scene.namespace
    names = [
        word
        for word in words[1 : words.index("-n") if "-n" in words else None]
        if not word.startswith("-")
    ]
    if "/" in names[0]:
        pairs = [name.split("/", 1) for name in names]
    else:
        pairs = [[names[0], name] for name in names[1:]]

    for kind, name in pairs:
        resource = scene.cluster.scheme.find(kind)
        key = resource.key if resource is not None else kind
        in_namespace = namespace if resource is None or resource.namespaced else ""
        yield scene.get(key, in_namespace, name) or {"metadata": {}}
