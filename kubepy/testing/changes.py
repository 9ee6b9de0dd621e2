"""The report of a test's cluster: its timeline, and what changed, as git shows it: a diff of the
objects' YAML.

Left out are fields that say nothing about what a test did: managedFields, resourceVersion, uid,
creationTimestamp. Objects that controllers made or deleted are a table, as ``get`` prints it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from itertools import groupby
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


def describe_changes(before: LocalCluster, after: LocalCluster) -> str:
    """Return the number of changes in a line and, below it, the diff; long ones are cut, which is
    said."""
    pairs = list(changed_objects(before, after))
    created, deleted = (
        sum(getattr(pair, side) is None for pair in pairs) for side in ("old", "new")
    )
    text = [
        f"changes since the test began: {created} created, {len(pairs) - created - deleted} "
        f"changed, "
        f"{deleted} deleted"
    ]
    by_hand = [
        pair
        for pair in pairs
        if (pair.old and pair.new) or not controller_of(pair.old or pair.new or {})
    ]
    for number, pair in enumerate(by_hand):
        if len(text) >= MAX_LINES:
            text += [f"… and {other.path}" for other in by_hand[number:]]
            break
        text += diff_lines(after, pair)

    for title, cluster, side in (("created", after, "new"), ("deleted", before, "old")):
        others = [pair for pair in pairs if pair not in by_hand and getattr(pair, side)]
        if others:
            text += [
                f"{title} by controllers:",
                *_table(cluster, [(pair.key, getattr(pair, side)) for pair in others]),
            ]

    return "\n".join(text)


def describe_timeline(cluster: LocalCluster, began: datetime, revision: int) -> str:
    """Return what pods, nodes and workloads did since a moment, as ``timeline`` prints it, with an
    empty line behind it; "" where they did nothing. Many pods share a row, and long ones are cut.

    :param revision: only what was written after it.
    """
    timeline = read_timeline(cluster, began, after_revision=revision)
    if not timeline.steps:
        return ""
    text = TimelineText(StringIO(), timeline, MAX_TIMELINE_ROWS).lines()[
        2:
    ]  # the time is in the report already
    if len(text) > MAX_OBJECT_LINES:
        text[MAX_OBJECT_LINES:] = [f"… {len(text) - MAX_OBJECT_LINES} more lines"]
    return "\n".join(["timeline:", *text, "", ""])


def _table(cluster: LocalCluster, objects: list[tuple[Key, Object]]) -> list[str]:
    """Return the rows of objects as ``get`` prints them, each kind below its header, at most
    MAX_LINES."""
    text: list[str] = []
    for resource, group in groupby(
        sorted(objects, key=lambda entry: entry[0]), key=lambda entry: entry[0].resource
    ):
        served = cluster.scheme.get(resource)
        if served is not None:
            style = Style(with_namespace=served.namespaced, with_kind=True)
            rows = lines(served, [obj for _, obj in group], style, cluster.clock.now())
            text += [f"  {line}" for line in format_lines(rows).splitlines()]
    if len(text) > MAX_LINES:
        text[MAX_LINES:] = [f"… {len(text) - MAX_LINES} more lines"]
    return text


def changed_objects(before: LocalCluster, after: LocalCluster) -> Iterator[ObjectPair]:
    """Yield the objects that differ, in the order of their paths in a state folder."""
    old, new = _objects(before), _objects(after)
    for path, key in sorted((path_of(key), key) for key in old.keys() | new.keys()):
        pair = ObjectPair(key, path, old.get(key), new.get(key))
        if pair.old is None or pair.new is None or _text(pair.old) != _text(pair.new):
            yield pair


def diff_lines(cluster: LocalCluster, pair: ObjectPair) -> list[str]:
    """Return the diff of an object as git prints it: at most MAX_OBJECT_LINES before the status,
    and as many of that.

    A new object is shown without defaults.
    """
    resource = cluster.scheme.get(pair.key.resource)
    if pair.new and not pair.old and resource is not None and not resource.custom:
        pair = pair._replace(new=without_defaults(cluster, resource, pair.new))
    old, new = (_text(obj).splitlines() if obj else [] for obj in (pair.old, pair.new))
    names = (
        f"a/{pair.path}" if pair.old else "/dev/null",
        f"b/{pair.path}" if pair.new else "/dev/null",
    )
    mode = [] if pair.old and pair.new else [f"{'deleted' if pair.old else 'new'} file mode 100644"]
    diff = list(difflib.unified_diff(old, new, *names, lineterm=""))
    status = next((index for index, line in enumerate(diff) if line[1:] == "status:"), len(diff))
    text = [f"diff --git a/{pair.path} b/{pair.path}", *mode]
    for part in (diff[:status], diff[status:]):
        rest = len(part) - MAX_OBJECT_LINES
        text += [*part[:MAX_OBJECT_LINES], *([f"… {rest} more lines"] if rest > 0 else [])]
    return text


def _objects(cluster: LocalCluster) -> dict[Key, Object]:
    return {
        Key(resource, namespace_of(obj), name_of(obj)): obj
        for resource in cluster.resources()
        if resource not in UNSHOWN
        for obj in cluster.store.list(resource).objects
    }


def _text(obj: Object) -> str:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in NOISE}
    if LAST_APPLIED in (annotations := metadata.get("annotations") or {}):  # the manifest once more
        metadata["annotations"] = {
            key: value for key, value in annotations.items() if key != LAST_APPLIED
        }
    return yaml.dump({**obj, "metadata": metadata})
