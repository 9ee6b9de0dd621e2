"""The report of a test's cluster: its timeline, and what changed, as git shows it: a diff of the
objects' YAML.

Left out are fields that say nothing about what a test did: managedFields, resourceVersion, uid,
creationTimestamp. Objects that controllers made or deleted are a table, as ``get`` prints it.
"""

from __future__ import annotations

import difflib
from datetime import datetime
from io import StringIO
from itertools import groupby, takewhile
from typing import NamedTuple

from kubepy.api.meta import Object, controller_of, name_of, namespace_of
from kubepy.apiserver.cluster import LocalCluster
from kubepy.cli.runtime.objects import LAST_APPLIED, without_defaults
from kubepy.cli.runtime.tables import Style, format_lines, lines
from kubepy.cli.timeline_text import TimelineText
from kubepy.insight.timeline import read_timeline
from kubepy.storage import yaml
from kubepy.storage.manifests import path_of
from kubepy.storage.model import Key

NOISE = ("managedFields", "resourceVersion", "uid", "creationTimestamp")
UNSHOWN = (
    "events",
    "leases.coordination.k8s.io",
)  # many, and mostly about what the other objects show
MAX_TIMELINE_ROWS = 16
MAX_OBJECT_LINES = 40
MAX_LINES = 400


class ObjectPair(NamedTuple):
    """An object before and after; None where there is none."""

    key: Key
    path: str
    old: Object | None
    new: Object | None

    def is_of_controllers(self) -> bool:
        """Return whether a controller has made the object, or deleted what it had made."""
        if self.old and self.new:
            return False
        obj = self.old or self.new
        return obj is not None and controller_of(obj) is not None

    def is_changed(self) -> bool:
        """Return whether the object before and after differ in what is shown."""
        if self.old is None or self.new is None:
            return True
        return _text(self.old) != _text(self.new)


def describe_changes(before: LocalCluster, after: LocalCluster) -> str:
    """Return the number of changes in a line and, below it, the diff; long ones are cut, which is
    said."""
    pairs = changed_objects(before, after)
    created = sum(pair.old is None for pair in pairs)
    deleted = sum(pair.new is None for pair in pairs)
    changed = len(pairs) - created - deleted
    text = [
        f"changes since the test began: {created} created, {changed} changed, {deleted} deleted"
    ]
    by_hand = [pair for pair in pairs if not pair.is_of_controllers()]
    for number, pair in enumerate(by_hand):
        if len(text) >= MAX_LINES:
            text += [f"… and {other.path}" for other in by_hand[number:]]
            break
        text += diff_lines(after, pair)

    of_controllers = [pair for pair in pairs if pair.is_of_controllers()]
    made = [(pair.key, pair.new) for pair in of_controllers if pair.new]
    if made:
        text.append("created by controllers:")
        text += _table(after, made)
    gone = [(pair.key, pair.old) for pair in of_controllers if pair.old]
    if gone:
        text.append("deleted by controllers:")
        text += _table(before, gone)

    return "\n".join(text)


def describe_timeline(cluster: LocalCluster, began: datetime, revision: int) -> str:
    """Return what pods, nodes and workloads did since a moment, as ``timeline`` prints it, with an
    empty line behind it; "" where they did nothing. Many pods share a row, and long ones are cut.

    :param revision: only what was written after it.
    """
    timeline = read_timeline(cluster, began, after_revision=revision)
    if not timeline.steps:
        return ""
    timeline_text = TimelineText(StringIO(), timeline, MAX_TIMELINE_ROWS)
    rows = timeline_text.lines()[2:]  # the time is in the report already
    shown = _cut(rows, MAX_OBJECT_LINES)
    return "\n".join(["timeline:", *shown, "", ""])


def _cut(text: list[str], most: int) -> list[str]:
    """Return the first lines of a text, and how many more there are."""
    rest = len(text) - most
    if rest <= 0:
        return text
    return [*text[:most], f"… {rest} more lines"]


def _table(cluster: LocalCluster, objects: list[tuple[Key, Object]]) -> list[str]:
    """Return the rows of objects as ``get`` prints them, each kind below its header, at most
    MAX_LINES."""
    text: list[str] = []
    in_order = sorted(objects, key=lambda entry: entry[0])
    for resource, group in groupby(in_order, key=lambda entry: entry[0].resource):
        served = cluster.scheme.get(resource)
        if served is None:
            continue
        style = Style(with_namespace=served.namespaced, with_kind=True)
        of_kind = [obj for _, obj in group]
        rows = lines(served, of_kind, style, cluster.clock.now())
        table = format_lines(rows)
        text += [f"  {line}" for line in table.splitlines()]
    return _cut(text, MAX_LINES)


def changed_objects(before: LocalCluster, after: LocalCluster) -> list[ObjectPair]:
    """Return the objects that differ, in the order of their paths in a state folder."""
    old = _objects(before)
    new = _objects(after)
    pairs = []
    for key in old.keys() | new.keys():
        path = path_of(key)
        pair = ObjectPair(key, path, old.get(key), new.get(key))
        if pair.is_changed():
            pairs.append(pair)
    pairs.sort(key=lambda pair: (pair.path, pair.key))
    return pairs


def diff_lines(cluster: LocalCluster, pair: ObjectPair) -> list[str]:
    """Return the diff of an object as git prints it: at most MAX_OBJECT_LINES before the status,
    and as many of that.

    A new object is shown without defaults.
    """
    resource = cluster.scheme.get(pair.key.resource)
    if pair.new and not pair.old and resource is not None and not resource.custom:
        pair = pair._replace(new=without_defaults(cluster, resource, pair.new))
    text = [f"diff --git a/{pair.path} b/{pair.path}"]
    old_name = f"a/{pair.path}"
    new_name = f"b/{pair.path}"
    if not pair.old:
        text.append("new file mode 100644")
        old_name = "/dev/null"
    elif not pair.new:
        text.append("deleted file mode 100644")
        new_name = "/dev/null"
    old = _text(pair.old) if pair.old else ""
    new = _text(pair.new) if pair.new else ""
    diff = list(
        difflib.unified_diff(
            old.splitlines(),
            new.splitlines(),
            old_name,
            new_name,
            lineterm="",
        )
    )
    before_status = list(takewhile(lambda line: line[1:] != "status:", diff))
    status = diff[len(before_status) :]
    text += _cut(before_status, MAX_OBJECT_LINES)
    text += _cut(status, MAX_OBJECT_LINES)
    return text


def _objects(cluster: LocalCluster) -> dict[Key, Object]:
    objects: dict[Key, Object] = {}
    for resource in cluster.resources():
        if resource in UNSHOWN:
            continue
        for obj in cluster.store.list(resource).objects:
            objects[Key(resource, namespace_of(obj), name_of(obj))] = obj
    return objects


def _text(obj: Object) -> str:
    metadata = dict(obj["metadata"])
    for field in NOISE:
        metadata.pop(field, None)
    annotations = metadata.get("annotations") or {}
    if LAST_APPLIED in annotations:  # the manifest once more
        others = dict(annotations)
        del others[LAST_APPLIED]
        metadata["annotations"] = others
    shown = {**obj, "metadata": metadata}
    return yaml.dump(shown)
