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
from kubepy.importing.unread import UnreadResources
from kubepy.importing.words import one_line
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import YamlError

with lazy_imports():
    from kubepy.storage import yaml

ANSWERS = ("Error from server", "error: ", "Unable to connect", "No resources found")
HTML = ("<!doctype html", "<html")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # how its files begin: what PowerShell writes
READABLE = (".yaml", ".yml", ".json")
LOG_MARK = "==== START logs for container "
LONGEST_WORDS = 200  # characters that a message shows of a text
LARGEST_LOG = 256 * 1024  # characters of a log that are kept: its end


class SourceObject(NamedTuple):
    """An object of a source, and the file that it is from, as messages name it."""

    object: Object
    shown: str


class SourceContent(NamedTuple):
    """All that was read from sources.

    :ivar unread: the files that cannot be read, each with its reason.
    :ivar without_objects: the files that hold something else than objects, each with what it is.
    :ivar unread_resources: the resources of which these may have held objects.
    """

    objects: list[SourceObject]
    logs: list[PodLog]
    unread: list[str]
    without_objects: list[str]
    unread_resources: UnreadResources

    @classmethod
    def empty(cls) -> SourceContent:
        return cls([], [], [], [], UnreadResources())


class NoObjectsError(ValueError):
    """The reason why a file holds no objects: it is an answer of a server, or no data."""


def read_files(
    files: Iterable[SourceFile], content: SourceContent, show: Callable[[int], None]
) -> None:
    """Read the objects and logs of files into a content.

    A file that the user has named must hold objects, others may hold anything. Raises SourceError.

    :param show: is called with the number of objects so far.
    """
    for file in files:
        if file.problem:
            _note_unread(file, file.problem, content)
            continue
        if not file.is_named and not file.path.endswith(READABLE) and not may_hold_logs(file.path):
            continue
        try:
            text = _decoded(file.read())
        except SourceError as error:
            if file.is_named:
                raise
            _note_unread(file, str(error), content)
            continue
        log = log_of_path(file.path, text)
        if log is not None:
            content.logs.append(_shortened(log))
            continue
        if LOG_MARK in text:
            text, logs = split_marked_logs(text)
            content.logs.extend(map(_shortened, logs))
        if may_hold_logs(file.path):
            continue
        _read_objects(file, text, content)
        show(len(content.objects))


def _read_objects(file: SourceFile, text: str, content: SourceContent) -> None:
    """Read the objects of a file. Of one that cannot be read to its end nothing is taken. Raises
    SourceError for a file that the user has named."""
    if not text.strip():
        _note_without_objects(file, f"{file.shown}: is empty", content)
        return
    try:
        _require_no_answer(text)
        objects = list(_objects_in(text, file.path))
    except (YamlError, ValueError, RecursionError) as error:
        reason = f"{file.shown}: {_reason(error)}"
        if file.is_named:
            raise SourceError(reason) from None
        if isinstance(error, NoObjectsError):
            _note_without_objects(file, reason, content)
        else:
            _note_unread(file, reason, content)
        return
    content.objects.extend(SourceObject(obj, file.shown) for obj in objects)
    if file.resource:
        content.unread_resources.read.add(file.resource)


def _note_unread(file: SourceFile, reason: str, content: SourceContent) -> None:
    """Put down a file that cannot be read, or a resource of a running cluster."""
    content.unread.append(printable(reason))
    if file.resource:
        content.unread_resources.names.add(file.resource)
    else:
        content.unread_resources.are_others_unread = True


def _note_without_objects(file: SourceFile, reason: str, content: SourceContent) -> None:
    """Put down a file that holds something else. A running cluster that gives such a thing has not
    given its objects."""
    content.without_objects.append(printable(reason))
    if file.resource:
        content.unread_resources.names.add(file.resource)


def _decoded(data: bytes) -> str:
    if data.startswith(UTF_16):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _require_no_answer(text: str) -> None:
    """Raise NoObjectsError for the words that somebody has got in the place of objects."""
    begin = text.lstrip()
    if begin[:20].lower().startswith(HTML):
        raise NoObjectsError("is an HTML page")
    first = begin.partition("\n")[0].strip()
    if first.startswith(ANSWERS):
        raise NoObjectsError(f"holds no objects: {first}")


def _shortened(log: PodLog) -> PodLog:
    if len(log.text) <= LARGEST_LOG:
        return log
    end = log.text[-LARGEST_LOG:]
    return log._replace(text=end.partition("\n")[2] or end)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return one_line(error)


def _objects_in(text: str, path: str) -> Iterator[Object]:
    """Yield the objects of a text. Raises YamlError, ValueError for one that is neither YAML nor
    JSON."""
    begin = text.lstrip()[:1]
    if begin == "[":
        values = json.loads(text)
        _require_no_errors(values)
        yield from _expanded(values, path)
        return
    for document in yaml.load_each(text):
        value = document.object
        if isinstance(value, str):
            raise NoObjectsError(f"holds words, and no objects: {one_line(value)[:LONGEST_WORDS]}")
        if isinstance(value, dict):
            _require_no_status(value)
            if begin != "{":  # JSON that is cut cannot be read at all
                _require_whole(value)
        yield from _expanded(value, path)


def _require_no_errors(values: Any) -> None:
    """Raise NoObjectsError for an array of messages: a support bundle has one where a kind could
    not be listed."""
    if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
        raise NoObjectsError(f"holds an error: {one_line(values[0])}")


def _require_no_status(document: Object) -> None:
    """Raise NoObjectsError for the answer of a server that has refused a request."""
    if document.get("kind") == "Status" and document.get("apiVersion") == "v1":
        message = document.get("message") or document.get("reason") or "a Status without a message"
        raise NoObjectsError(f"holds an error: {one_line(message)}")


def _require_whole(document: Object) -> None:
    """Raise ValueError for a document in YAML that ends too early.

    kubectl prints fields in the order of their names, so that the kind follows the items of a
    List, and the metadata follow the kind.
    """
    if "apiVersion" not in document:
        return
    names = [name for name in document if isinstance(name, str)]
    if not document.get("kind") and max(names) <= "kind":
        raise ValueError("is cut: it ends before the kind of its last document")
    is_last = names[-1] == "kind"
    if is_last and "metadata" not in document and not _is_list(document):
        raise ValueError("is cut: it ends before the metadata of its last document")


def _expanded(value: Any, path: str) -> Iterator[Object]:
    """Yield the objects of a document: itself, the items of a List, those of an array."""
    if isinstance(value, list):
        for item in value:
            yield from _of_item(item, path)
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
    yield from _of_item(value, path)


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


def _of_item(item: Any, path: str, api_version: str = "", kind: str = "") -> Iterator[Object]:
    """Yield an object with its kind: its own, else that of its list, else that of its folder.

    :param api_version: that of the items of its list; "" where there is no list that tells it.
    :param kind: that of the items of its list, too.
    """
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
