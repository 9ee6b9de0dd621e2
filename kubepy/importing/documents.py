"""The objects in the files of a source: documents and Lists in YAML and JSON, and arrays whose kind
only their folder tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.importing.errors import SourceError
from kubepy.importing.files import SourceFile
from kubepy.importing.layouts import (
    PodLog,
    log_of_path,
    may_hold_logs,
    namespace_of_path,
    resource_of_path,
    split_marked_logs,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import YamlError

with lazy_imports():
    from kubepy.storage import yaml

READABLE = (".yaml", ".yml", ".json")
LOG_MARK = "==== START logs for container "
LARGEST_LOG = 256 * 1024  # characters of a log that are kept: its end


class SourceObject(NamedTuple):
    """An object of a source, and the file that it is from, as messages name it."""

    object: Object
    shown: str


class SourceContent(NamedTuple):
    """All that was read from sources.

    :ivar unread: the files that cannot be read, each with its reason.
    """

    objects: list[SourceObject]
    logs: list[PodLog]
    unread: list[str]

    @classmethod
    def empty(cls) -> SourceContent:
        return cls([], [], [])


def read_files(
    files: Iterable[SourceFile], content: SourceContent, show: Callable[[int], None]
) -> None:
    """Read the objects and logs of files into a content.

    A file that the user has named must hold objects, others may hold anything. Raises SourceError.

    :param show: is called with the number of objects so far.
    """
    for file in files:
        if not file.is_named and not file.path.endswith(READABLE) and not may_hold_logs(file.path):
            continue
        text = file.read().decode("utf-8-sig", "replace")
        log = log_of_path(file.path, text)
        if log is not None:
            content.logs.append(_shortened(log))
            continue
        if LOG_MARK in text:
            text, logs = split_marked_logs(text)
            content.logs.extend(map(_shortened, logs))
        if may_hold_logs(file.path):
            continue
        try:
            for obj in _objects_in(text, file.path):
                content.objects.append(SourceObject(obj, file.shown))
        except (YamlError, ValueError, RecursionError) as error:
            reason = f"{file.shown}: {_one_line(error)}"
            if file.is_named:
                raise SourceError(reason) from None
            content.unread.append(printable(reason))
        show(len(content.objects))


def _shortened(log: PodLog) -> PodLog:
    if len(log.text) <= LARGEST_LOG:
        return log
    end = log.text[-LARGEST_LOG:]
    return log._replace(text=end.partition("\n")[2] or end)


def _one_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return " ".join(str(error).split())


def _objects_in(text: str, path: str) -> Iterator[Object]:
    """Yield the objects of a text. Raises YamlError, ValueError for one that is neither YAML nor
    JSON."""
    begin = text.lstrip()[:1]
    if begin == "[":
        yield from _expanded(json.loads(text), path)
        return
    for document in yaml.load_each(text):
        yield from _expanded(document.object, path)


def _expanded(value: Any, path: str) -> Iterator[Object]:
    """Yield the objects of a document: itself, the items of a List, those of an array."""
    if isinstance(value, list):
        for item in value:
            yield from _of_item(
                item,
                path,
                "",
                "",
            )
        return
    if not isinstance(value, dict):
        return
    if _is_list(value):
        kind = (value.get("kind") or "").removesuffix("List")
        for item in value["items"] or ():
            yield from _of_item(
                item,
                path,
                value.get("apiVersion") or "",
                kind,
            )
        return
    yield from _of_item(
        value,
        path,
        "",
        "",
    )


def _is_list(value: Object) -> bool:
    """Tell whether a document is a List of objects; an empty one may have null for items."""
    if "items" not in value or not isinstance(value["items"], list | None):
        return False
    kind = value.get("kind")
    if not kind:
        return True
    metadata = value.get("metadata")
    is_named = isinstance(metadata, dict) and metadata.get("name")
    return isinstance(kind, str) and kind.endswith("List") and not is_named


def _of_item(item: Any, path: str, api_version: str, kind: str) -> Iterator[Object]:
    """Yield an object with its kind: its own, else that of its list, else that of its folder."""
    if not isinstance(item, dict):
        return
    if _is_list(item):
        yield from _expanded(item, path)
        return
    if isinstance(item.get("apiVersion"), str) and isinstance(item.get("kind"), str):
        yield item
        return
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return
    if kind and api_version:
        yield {"apiVersion": api_version, "kind": kind, **item}
        return
    resource = resource_of_path(path)
    if resource is None:
        return
    if resource.namespaced and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": namespace_of_path(path)}
    yield {
        **item,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
    }
