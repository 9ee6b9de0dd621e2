"""A cluster as a reader sees it, to be compared with another view of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

from kubepy.controlplane import open as openings
from kubepy.storage import NoClusterError
from kubepy.storage.folder.store import FolderStore
from tests.stores import resources

Object = dict[str, Any]
Objects = dict[str, Object]
Opener = Callable[[Path], FolderStore]
Likeness = Callable[[Objects], Objects]  # the part of each object that is compared
NOW = 1_790_000_000.0  # all clusters here have a fixed clock
VOLATILE = "events"
SHOWN = 4  # differences that are printed


class View(NamedTuple):
    """A store's contents: objects by ``resource/namespace/name``, revision, problems."""

    revision: int
    objects: Objects
    problems: tuple[str, ...]


def open_store(folder: Path) -> FolderStore:
    """Open the store by itself, which knows nothing of kinds."""
    return FolderStore(folder, volatile={VOLATILE: 3600.0}, now=lambda: NOW)


def open_cluster(folder: Path) -> FolderStore:
    """Open the store as commands do: objects from outside are completed as their kind demands."""
    return cast(FolderStore, openings.open_cluster(folder).store)


def look(opener: Opener, folder: Path) -> View | None:
    """Return the view of a folder, None if it has no cluster."""
    try:
        store = opener(folder)
    except NoClusterError:
        return None
    try:
        return view_of(store)
    except NoClusterError:
        return None
    finally:
        store.close()


def view_of(store: FolderStore) -> View:
    objects: Objects = {}
    for resource in resources(store):
        for obj in store.list(resource).objects:
            metadata = obj["metadata"]
            objects[f"{resource}/{metadata.get('namespace', '')}/{metadata['name']}"] = obj
    return View(store.revision, objects, tuple(map(str, store.problems())))


def exactly(objects: Objects) -> Objects:
    return objects


def names_only(objects: Objects) -> Objects:
    return {key: {} for key in objects if not key.startswith(f"{VOLATILE}/")}


def without_revisions(objects: Objects) -> Objects:
    return {
        key: {**obj, "metadata": _without(obj["metadata"], ("resourceVersion",))}
        for key, obj in objects.items()
    }


def in_files(objects: Objects) -> Objects:
    """Return the part of objects that files hold: no events, and managers only after server-side
    apply."""
    return {
        key: {**obj, "metadata": _without(obj["metadata"], _not_in_files(obj))}
        for key, obj in objects.items()
        if not key.startswith(f"{VOLATILE}/")
    }


def contents_only(objects: Objects) -> Objects:
    """Return the part of objects that files hold, without managers, which a bad file of managers
    may cost."""
    return {
        key: {**obj, "metadata": _without(obj["metadata"], ("managedFields",))}
        for key, obj in in_files(objects).items()
    }


def _not_in_files(obj: Object) -> tuple[str, ...]:
    managers = obj["metadata"].get("managedFields") or []
    is_applied = any(manager.get("operation") == "Apply" for manager in managers)
    return ("resourceVersion",) if is_applied else ("resourceVersion", "managedFields")


def _without(metadata: Object, fields: Iterable[str]) -> Object:
    return {name: value for name, value in metadata.items() if name not in fields}


def difference(expected: Objects, actual: Objects) -> str:
    """Return the differences of two sets of objects in a line; "" when there are none."""
    if expected == actual:
        return ""
    lines = [f"lacks {key}" for key in expected.keys() - actual.keys()]
    lines += [f"has {key}" for key in actual.keys() - expected.keys()]
    for key in expected.keys() & actual.keys():
        if expected[key] != actual[key]:
            lines.append(f"{key}{_first_difference(expected[key], actual[key])}")
    lines.sort()
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "; ".join(lines[:SHOWN]) + more


def _first_difference(expected: Any, actual: Any) -> str:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in sorted(expected.keys() | actual.keys()):
            if expected.get(name) != actual.get(name):
                return f".{name}{_first_difference(expected.get(name), actual.get(name))}"
    return f": {_short(expected)} became {_short(actual)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def paths_below(folder: Path) -> list[str]:
    """Return all files and folders below a folder, relative to it; folders end with a slash."""
    found: list[str] = []
    for directory, folders, files in os.walk(folder):
        place = os.path.relpath(directory, folder)
        prefix = "" if place == "." else f"{place}/"
        found += [f"{prefix}{name}/" for name in folders]
        found += [f"{prefix}{name}" for name in files]
    return sorted(found)
