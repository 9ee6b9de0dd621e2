"""The objects that a planned command writes, before it and after it, as ``diff`` compares them.

Left out is what the server writes by itself: status, managers, and the fields of metadata that say
when and how often an object was written.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object, annotations_of, is_being_deleted
from kubepy.apiserver.cluster import LocalCluster
from kubepy.cli.diff import masked
from kubepy.cli.errors import unless_missing
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.quoting import printable
from kubepy.storage import Key, yaml

CREATED = "created"
CHANGED = "changed"
DELETED = "deleted"
SYMBOLS = {CREATED: "+", CHANGED: "~", DELETED: "-"}
# Fields of metadata that the server writes.
SERVERS_OWN = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
CONTEXT = 3  # lines around a difference, as diff -u has them
MOST_OBJECTS = 12  # in text
MOST_LINES = 8  # of one object in text


class AppliedChange(NamedTuple):
    """A change that a command makes to one object.

    :ivar kind: that of the object: ``Deployment``.
    :ivar action: ``created``, ``changed`` or ``deleted``.
    :ivar before: its fields as lines of YAML; none for one that is created.
    :ivar after: likewise; none for one that is deleted.
    """

    key: Key
    kind: str
    action: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def diff(self, context: int = CONTEXT) -> list[str]:
        """Return the differences as lines of a unified diff, without its two head lines."""
        return list(difflib.unified_diff(self.before, self.after, n=context, lineterm=""))[2:]

    def document(self) -> Object:
        """Return the change as JSON data."""
        return {
            "object": self.key._asdict(),
            "action": self.action,
            "diff": "".join(f"{line}\n" for line in self.diff()),
        }


def changes_of(
    before: LocalCluster, after: LocalCluster, keys: Iterable[Key]
) -> Iterator[AppliedChange]:
    """Yield what has become of some objects, but for those that are as they were."""
    for key in keys:
        old = object_of(before, key)
        new = object_of(after, key)
        if old is None and new is None:
            continue
        resource = (new or old or {}).get("kind", "")
        is_deleted = new is None or (is_being_deleted(new) and not is_being_deleted(old or {}))
        old, new = own_fields(old), None if is_deleted else own_fields(new)
        if resource == "Secret":
            old, new = masked(old, new)
        if old != new:
            yield AppliedChange(key, resource, action_of(old, new), lines_of(old), lines_of(new))


def action_of(old: Object | None, new: Object | None) -> str:
    """Return what happens to an object that is different, or there alone before or after."""
    if old is None:
        return CREATED
    return DELETED if new is None else CHANGED


def object_of(cluster: LocalCluster, key: Key) -> Object | None:
    """Return an object of a cluster; None where it, or its resource, is not there."""
    return unless_missing(cluster.client.get, key.resource, key.name, namespace=key.namespace)


def own_fields(obj: Object | None) -> Object | None:
    """Return an object without what the server writes by itself, and without the copy of the
    manifest that ``apply`` keeps in it: that would show the values of a Secret."""
    if obj is None:
        return None
    metadata = {name: value for name, value in obj["metadata"].items() if name not in SERVERS_OWN}
    annotations = {
        name: value for name, value in annotations_of(obj).items() if name != LAST_APPLIED
    }
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return {
        name: metadata if name == "metadata" else value
        for name, value in obj.items()
        if name != "status"
    }


def lines_of(obj: Object | None) -> tuple[str, ...]:
    """Return an object as lines of YAML; none for None."""
    if obj is None:
        return ()
    return tuple(printable(line) for line in yaml.dump(obj).split("\n")[:-1])


# --- text -----------------------------------------------------------------------------------------


def names_of(changes: Sequence[AppliedChange]) -> dict[Key, str]:
    """Return the objects as a plan names them: with the namespace where there are several."""
    namespaces = {change.key.namespace for change in changes if change.key.namespace}
    names = {}
    for change in changes:
        key = change.key
        name = f"{key.namespace}/{key.name}" if key.namespace and len(namespaces) > 1 else key.name
        names[key] = printable(f"{change.kind.lower()} {name}")
    return names


def text_lines(changes: Sequence[AppliedChange]) -> Iterator[str]:
    """Yield a short form of changes: for each object that is changed the lines that differ, and how
    many others are created and deleted. The command's own output names those."""
    names = names_of(changes)
    changed = [change for change in changes if change.action == CHANGED]
    for change in changed[:MOST_OBJECTS]:
        yield f"{SYMBOLS[CHANGED]} {names[change.key]} {CHANGED}"
        yield from changed_lines(change)
    if len(changed) > MOST_OBJECTS:
        yield f"... and {more_of(len(changed) - MOST_OBJECTS, 'object')} changed"
    for action in (CREATED, DELETED):
        others = [names[change.key] for change in changes if change.action == action]
        if others:
            text = others[0] if len(others) == 1 else f"{len(others)} objects"
            yield f"{SYMBOLS[action]} {text} {action}"


def more_of(count: int, noun: str) -> str:
    """Return how many there are besides: ``1 more line``, ``3 more lines``."""
    return f"{count} more {noun}" if count == 1 else f"{count} more {noun}s"


def changed_lines(change: AppliedChange) -> Iterator[str]:
    """Yield the first lines that differ, and how many more there are."""
    lines = [line for line in change.diff(context=0) if not line.startswith("@@")]
    for line in lines[:MOST_LINES]:
        yield f"    {line[0]} {line[1:].strip()}"
    more = len(lines) - MOST_LINES
    if more > 0:
        yield f"    ... and {more_of(more, 'line')}"
