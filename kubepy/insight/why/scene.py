"""The scene: one cluster at one moment, as diagnoses read it.

A diagnosis is a function of a :class:`Scene` and an object. It returns
the :class:`~kubepy.insight.Finding` of its cause, or None where its cause does not apply to the
object as it is. That of a workload finds the child to blame, asks :meth:`Scene.diagnose` about it,
and puts its own link in front (:meth:`Scene.lead`). Nothing here writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.errors import Status
from kubepy.api.meta import (
    Object,
    annotations_of,
    controller_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    uid_of,
)
from kubepy.api.objects.outcomes import OUTCOME, POD_OUTCOME
from kubepy.api.objects.pods import get_condition, node_name
from kubepy.insight import Finding, Link, needs_more
from kubepy.insight.prediction import contests_of
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.runtime.contention import Contest

Words = tuple[str, ...]
Objects = list[
    Object
]  # an alias, because the method ``Scene.list`` hides the builtin inside its class
Diagnosis = Callable[["Scene", Object], "Finding | None"]
PART = re.compile(r"""([^.\[\]]+)|\[(\d+)\]|\[['"](.*?)['"]\]|\[\?\(@\.(\w+)==['"](.*?)['"]\)\]""")


class Diagnoses(NamedTuple):
    """The diagnoses by resource, in the order in which they are tried; the first that applies is
    the answer.

    :ivar first: tried for every kind, before those of the kind.
    :ivar others: tried for a kind that has none of its own.
    """

    by_resource: Mapping[str, tuple[Diagnosis, ...]]
    first: tuple[Diagnosis, ...] = ()
    others: tuple[Diagnosis, ...] = ()

    def of(self, resource: str) -> tuple[Diagnosis, ...]:
        return *self.first, *self.by_resource.get(resource, self.others)


Table = Mapping[str, tuple[Diagnosis, ...]]
EVERY_KIND = "*"  # in a table: tried for every kind, before those of the kind itself
OTHER_KINDS = "…"  # in a table: tried for kinds that no table has


def merged(tables: Iterable[Table]) -> Diagnoses:
    """Put tables of diagnoses together in their order."""
    listed = list(tables)
    by_resource = {
        resource: tuple(diagnosis for table in listed for diagnosis in table.get(resource, ()))
        for resource in sorted({resource for table in listed for resource in table})
    }
    return Diagnoses(by_resource, by_resource.pop(EVERY_KIND, ()), by_resource.pop(OTHER_KINDS, ()))


class Scene:
    """One cluster at one moment, read through its Client; what was read once is kept.

    :param reconciles: whether anybody runs the controllers of the cluster that is asked about.
    :param namespace: the namespace that a command line without ``-n`` works in.
    :ivar now: the moment of the scene.
    :ivar asked_at: the moment of the question: before ``now`` where the scene is the end of a
        prediction.
    :ivar is_stuck: a prediction has shown that the object does not get there.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        diagnoses: Diagnoses,
        *,
        reconciles: bool = True,
        namespace: str = "default",
        asked_at: datetime | None = None,
    ) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.now = cluster.clock.now()
        self.asked_at = asked_at or self.now
        self.is_stuck = False
        self.settings = cluster.settings
        self.reconciles = reconciles
        self.namespace = namespace
        self._diagnoses = diagnoses
        self._lists: dict[tuple[str, str | None], Objects] = {}
        self._owned: dict[
            tuple[str, str], dict[str, Objects]
        ] = {}  # by resource and namespace, then by owner's uid
        self._events: dict[
            str, dict[str, Objects]
        ] = {}  # by namespace, then by the uid of what they are about
        self._under_way: set[Key] = (
            set()
        )  # objects that are being diagnosed: a circle of blame ends

    @cached_property
    def contests(self) -> tuple[Contest, ...]:
        """The controllers that undo each other's work."""
        return contests_of(self.cluster)

    # --- objects

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Return an object; None where it, or its kind, is missing."""
        try:
            if name:
                return self.client.get(resource, name, namespace=namespace)
            return None
        except Status:
            return None

    def list(self, resource: str, namespace: str | None = None) -> Objects:
        """Return the objects of a kind, in the order of their keys, of one namespace or of all
        (None)."""
        key = resource, namespace
        if key not in self._lists:
            try:
                self._lists[key] = self.client.list(resource, namespace=namespace or None).items
            except Status:
                self._lists[key] = []
        return self._lists[key]

    def owned(self, obj: Object, resource: str) -> Objects:
        """Return the objects of a kind that an object controls."""
        key = resource, namespace_of(obj)
        if key not in self._owned:
            by_owner: dict[str, Objects] = {}
            for child in self.list(resource, namespace_of(obj) or None):
                if controller := controller_of(child):
                    by_owner.setdefault(controller["uid"], []).append(child)
            self._owned[key] = by_owner
        return self._owned[key].get(uid_of(obj), [])

    def owner(self, obj: Object) -> Object | None:
        """Return the controller of an object; None where it has none, or that is gone."""
        controller = controller_of(obj)
        if controller:
            resource = self.cluster.scheme.for_kind(controller["apiVersion"], controller["kind"])
        else:
            resource = None
        if controller is None or resource is None:
            return None
        owner = self.get(
            resource.key, namespace_of(obj) if resource.namespaced else "", controller["name"]
        )
        if owner is not None and uid_of(owner) == controller["uid"]:
            return owner
        return None

    def events(self, obj: Object) -> Objects:
        """Return the events about an object, oldest first."""
        namespace = namespace_of(obj) or "default"
        if namespace not in self._events:
            by_uid: dict[str, Objects] = {}
            for event in self.list("events", namespace):
                by_uid.setdefault(nested_map(event, "involvedObject").get("uid", ""), []).append(
                    event
                )
            self._events[namespace] = by_uid
        return sorted(self._events[namespace].get(uid_of(obj), ()), key=time_of_event)

    def key(self, obj: Object) -> Key:
        """Return the key of an object: its resource with the group, namespace and name."""
        resource = self.cluster.scheme.for_kind(obj["apiVersion"], obj["kind"])
        return Key(
            resource.key if resource else obj["kind"].lower(), namespace_of(obj), name_of(obj)
        )

    def is_custom(self, obj: Object) -> bool:
        resource = self.cluster.scheme.for_kind(obj["apiVersion"], obj["kind"])
        return resource is not None and resource.custom

    def word(self, obj: Object) -> str:
        """Return ``deployment/web``, ``pod/web-0``: an object on a command line and in a
        sentence."""
        kind = self.key(obj).resource if self.is_custom(obj) else obj["kind"].lower()
        return f"{kind}/{name_of(obj)}"

    # --- findings

    def diagnose(self, obj: Object) -> Finding | None:
        """Return the first diagnosis of the object's kind that applies to it; None where none
        does."""
        key = self.key(obj)
        if key in self._under_way:
            return None
        self._under_way.add(key)
        try:
            findings = (diagnosis(self, obj) for diagnosis in self._diagnoses.of(key.resource))
            return next((finding for finding in findings if finding is not None), None)
        finally:
            self._under_way.discard(key)

    def diagnose_any(self, objects: Iterable[Object]) -> Finding | None:
        """Return the first finding about any of these objects."""
        return next(
            (finding for obj in objects if (finding := self.diagnose(obj)) is not None), None
        )

    def link(self, obj: Object, field: str, text: str) -> Link:
        """Return a link of the chain: an object, a field's path (see :func:`value_at`) with its
        value, a sentence."""
        return Link(self.key(obj), field, value_at(obj, field) if field else None, text)

    def condition_link(
        self, obj: Object, condition_type: str, text: str, field: str = "status"
    ) -> Link:
        """Return a link that shows a field of a condition: its ``status``, ``reason``,
        ``message``."""
        return self.link(obj, f'status.conditions[?(@.type=="{condition_type}")].{field}', text)

    def finding(
        self,
        cause: str,
        *chain: Link,
        remedies: Iterable[Words] = (),
        fallbacks: Iterable[Words] = (),
    ) -> Finding:
        """Return a finding; a remedy that occurs twice counts once, and one that needs another is a
        fallback."""
        unique = dict.fromkeys(remedies)
        alone = tuple(words for words in unique if not needs_more(words))
        others = dict.fromkeys([*(words for words in unique if needs_more(words)), *fallbacks])
        return Finding(cause, chain, alone, tuple(words for words in others if words not in alone))

    def lead(
        self,
        finding: Finding,
        link: Link,
        remedies: Iterable[Words] = (),
        fallbacks: Iterable[Words] = (),
    ) -> Finding:
        """Put the link of an object above in front of a finding, and the object's own remedies
        before its remedies."""
        return self.finding(
            finding.cause,
            link,
            *finding.chain,
            remedies=(*remedies, *finding.remedies),
            fallbacks=(*fallbacks, *finding.fallbacks),
        )

    def command(self, obj: Object, *words: str) -> Words:
        """Return a command line about an object, with ``-n`` where it is in another namespace than
        the usual one."""
        namespace = namespace_of(obj)
        if namespace and {namespace, self.namespace} != {"default"}:
            return (*words, "-n", namespace)
        return words


def value_at(obj: Any, path: str) -> Any:
    """Return the value of a field, None where it is missing.

    :param path: as for kubectl's jsonpath: ``status.containerStatuses[0].state``,
        ``metadata.annotations['a.b/c']``, ``status.conditions[?(@.type=="Ready")].status``.
    """
    for name, index, quoted, field, wanted in PART.findall(path):
        if field:
            obj = next((item for item in obj or () if str(item.get(field)) == wanted), None)
        elif index:
            obj = obj[int(index)] if isinstance(obj, list) and int(index) < len(obj) else None
        else:
            obj = obj.get(quoted or name) if isinstance(obj, dict) else None
        if obj is None:
            return None
    return obj


def time_of_event(event: Object) -> str:
    """Return when an event happened last, as the API writes times; series and old events have other
    fields."""
    series = nested_map(event, "series")
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
        or ""
    )


def condition_status(obj: Object, condition_type: str) -> str:
    """Return the status of a condition: True, False, Unknown; "" where there is none."""
    return str((get_condition(obj, condition_type) or {}).get("status", ""))


def plural(number: int, noun: str) -> str:
    """Return ``1 pod``, ``3 pods``."""
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}s"


# --- pods -----------------------------------------------------------------------------------------


def annotated(
    scene: Scene, pod: Object, annotation: str = OUTCOME, of_node: str = POD_OUTCOME
) -> Iterator[Link]:
    """Yield the link of what the simulated kubelet follows: an annotation of the pod or its node,
    or kubepy.yaml."""
    node = scene.get("nodes", "", node_name(pod))
    for obj, name in ((pod, annotation), (node, of_node)):
        if obj is not None and annotations_of(obj).get(name):
            yield scene.link(
                obj,
                f"metadata.annotations['{name}']",
                "the simulated kubelet follows this annotation",
            )
            return

    faults = scene.settings.faults
    default = scene.settings.kubelet.annotations().get(annotation)
    if annotation == OUTCOME and faults is not None and (outcome := faults.pod_outcome(pod)):
        yield scene.link(
            pod, "", f"the simulated kubelet follows faults.pods in kubepy.yaml: {outcome}"
        )
    elif default and (annotation == OUTCOME or (controller_of(pod) or {}).get("kind") == "Job"):
        field = re.sub("-(.)", lambda match: match[1].upper(), annotation.partition("/")[2])
        yield scene.link(
            pod, "", f"the simulated kubelet follows kubelet.{field} in kubepy.yaml: {default}"
        )


def unready_link(scene: Scene, pod: Object) -> Link:
    """Return the link that shows that a pod is not ready: a container that runs, or the
    condition."""
    for index, status in enumerate(nested_list(pod, "status", "containerStatuses")):
        if not status.get("ready") and "running" in nested_map(status, "state"):
            return scene.link(
                pod,
                f"status.containerStatuses[{index}].ready",
                f"container {status['name']} runs, but is not ready",
            )
    return scene.condition_link(pod, "Ready", "it is not ready")
