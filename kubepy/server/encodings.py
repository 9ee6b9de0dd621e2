"""Objects of the watch cache as clients get them, each encoded once for all watches and lists.

An encoding is kept by object version, version of the API and media type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.selectors import DOUBLE_EQUALS, EQUALS, IN, parse_fields, parse_labels
from kubepy.apiserver.request import ListOptions, Request
from kubepy.lazy import lazy_imports
from kubepy.server import tables
from kubepy.server.messages import PROTOBUF, HandlerContext
from kubepy.server.negotiation import TABLE, GroupVersionKind, MediaType, encode, shown
from kubepy.server.tables import ListResult, TableOptions
from kubepy.server.watchcache import Encodings, ImpliedRecord
from kubepy.storage import Key
from kubepy.storage.model import decode
from kubepy.storage.state import ObjectRecord

with lazy_imports():
    from kubepy.api import protobuf


LABELS = "labels"  # the form of what most selectors need
PLAIN = re.compile(r"[A-Za-z0-9._-]+")  # a value that JSON has as it is


class Form(NamedTuple):
    """The circumstances that an encoding depends on beside the object.

    :ivar definitions: the revision of the CustomResourceDefinitions, for custom resources.
    """

    api_version: str
    media_type: str
    target: GroupVersionKind | None
    definitions: int = 0


class View(NamedTuple):
    """The objects that a watch or a list is about, and the form in which the client gets them.

    :ivar resource: in the version of the request.
    :ivar name: of the only object, "" for all.
    :ivar definitions: the revision of the CustomResourceDefinitions, for custom resources.
    """

    resource: Resource
    namespace: str
    name: str
    options: ListOptions
    media: MediaType
    table: TableOptions
    definitions: int = 0

    @property
    def request(self) -> Request:
        verb = "list" if self.resource.computed_from else "watch"
        return Request(verb, self.resource.gvr, self.namespace, options=self.options)

    @property
    def has_selectors(self) -> bool:
        return bool(self.options.label_selector or self.options.field_selector)

    @property
    def selects_by_content(self) -> bool:
        """Tell whether a selector depends on more of an object than its name and labels."""
        return any(
            term.field not in ("metadata.name", "metadata.namespace")
            for term in parse_fields(self.options.field_selector)
        )

    def required_texts(self) -> list[str]:
        """Return texts that are in the JSON of each object that the selectors choose: others need
        no decoding."""
        if self.resource.custom:  # conversions may change labels
            return []
        values = [
            requirement.values[0]
            for requirement in parse_labels(self.options.label_selector).requirements
            if requirement.operator in (IN, EQUALS, DOUBLE_EQUALS) and len(requirement.values) == 1
        ]
        if self.resource.key == "pods":
            values += [
                term.value
                for term in parse_fields(self.options.field_selector)
                if term.field == "spec.nodeName" and not term.negated
            ]
        return [f'"{value}"' for value in values if PLAIN.fullmatch(value)]

    @property
    def form(self) -> Form:
        """The part of the view that an encoding depends on."""
        media = self.media
        return Form(self.resource.api_version, media.media_type, media.target, self.definitions)

    @property
    def is_table(self) -> bool:
        return self.media.target is not None and self.media.target.kind == TABLE

    def concerns(self, key: Key) -> bool:
        """Tell whether an object may be among those of the view, by its name."""
        return self.namespace in ("", key.namespace) and self.name in ("", key.name)


def select(
    context: HandlerContext, view: View, encodings: Encodings, records: Sequence[ObjectRecord]
) -> list[bool]:
    """Tell of each object whether the selectors choose it. Raises Status."""
    if not view.has_selectors:
        return [True] * len(records)
    request, texts = view.request, view.required_texts()
    places = [
        place
        for place, record in enumerate(records)
        if all(text in (record.json or "") for text in texts)
    ]
    if view.resource.custom or view.selects_by_content:
        objects = [decode(records[place].json or "", records[place].revision) for place in places]
    else:
        request = request._replace(resource=request.resource._replace(version=""))
        objects = [_labeled(encodings, records[place]) for place in places]

    matches = [False] * len(records)
    for place, obj in zip(places, context.client.choose(request, objects), strict=True):
        matches[place] = obj is not None
    return matches


def _labeled(encodings: Encodings, record: ObjectRecord) -> Object:
    """Return an object with no more than its name and labels, which are kept: most selectors need
    nothing else."""
    key = record.key, record.revision, LABELS
    text = encodings.get(key)
    if text is None:
        labels = decode(record.json or "", record.revision)["metadata"].get("labels") or {}
        text = json.dumps(labels, separators=(",", ":")).encode()
        if not isinstance(record, ImpliedRecord):
            encodings.put(key, text)
    return {
        "metadata": {
            "name": record.key.name,
            "namespace": record.key.namespace,
            "labels": json.loads(text),
        }
    }


def encode_records(
    context: HandlerContext, view: View, encodings: Encodings, records: Sequence[ObjectRecord]
) -> list[bytes]:
    """Return objects as a watch event has them. Raises Status for a conversion that fails."""
    encoded: dict[int, bytes] = {}
    missing: list[int] = []
    for index, record in enumerate(records):
        encoding = (
            None if view.is_table else encodings.get((record.key, record.revision, view.form))
        )
        if encoding is None:
            missing.append(index)
        else:
            encoded[index] = encoding

    if missing:
        objects = [decode(records[index].json or "", records[index].revision) for index in missing]
        whole = view.request._replace(options=None)
        for index, obj in zip(missing, context.client.choose(whole, objects), strict=True):
            assert obj is not None
            record = records[index]
            encoding = encoded[index] = encode_object(context, view, obj)
            if not view.is_table and not isinstance(
                record, ImpliedRecord
            ):  # these all have one revision
                encodings.put((record.key, record.revision, view.form), encoding)

    return [encoded[index] for index in range(len(records))]


def keep_answer(
    context: HandlerContext, resource: Resource, media: MediaType, obj: Object, body: bytes
) -> None:
    """Keep the answer to a write for the watches that wait for the same object in the same form:
    its event needs no encoding of its own.

    :param obj: as it was stored, in the version of the request.
    """
    if context.application is None:
        return  # the answer to a command, beside which nobody watches
    cache = context.application.watch_cache
    if media.pretty or media.target is not None or cache.watches is None:
        return
    forms = cache.watches.forms_of(resource.storage_key, resource.api_version, media.media_type)
    if not forms:
        return
    metadata = obj["metadata"]
    key = Key(resource.storage_key, metadata.get("namespace", ""), metadata["name"])
    stored = context.cluster.store.get(key)
    version = metadata.get("resourceVersion", "")
    if stored is None or stored["metadata"]["resourceVersion"] != version:
        return  # it has gone with its last finalizer, or another write has followed
    encoding = body if media.media_type == PROTOBUF else body.rstrip(b"\n")
    for form in forms:
        cache.encodings.put((key, int(version), form), encoding)


def encode_deleted(
    context: HandlerContext, view: View, record: ObjectRecord, revision: int
) -> bytes:
    """Return the last state of an object with the revision at which it went. Raises Status."""
    [obj] = context.client.choose(
        view.request._replace(options=None), [decode(record.json or "", revision)]
    )
    assert obj is not None
    return encode_object(context, view, obj)


def encode_object(context: HandlerContext, view: View, obj: Object) -> bytes:
    """Return one object in the form of a view; a table is without the definitions of its
    columns."""
    target = view.media.target
    if target is None:
        return _bytes(view, shown(context.client, obj))
    if view.is_table:
        options = view.table._replace(headers=False)
        return _bytes(view, tables.table_object(context, view.resource, obj, target, options))
    return _bytes(view, tables.partial_metadata(context, obj, target))


def encode_columns(context: HandlerContext, view: View) -> bytes:
    """Return the definitions of the columns of a table."""
    assert view.media.target is not None
    table = tables.table_object(
        context, view.resource, ListResult([], ""), view.media.target, view.table
    )
    return _bytes(view, table["columnDefinitions"])


def encode_bookmark(view: View, metadata: Object) -> bytes:
    """Return the object of a bookmark: it has nothing but metadata."""
    target, resource = view.media.target, view.resource
    if target is None:
        obj: Object = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": metadata,
        }
        return _bytes(view, obj)

    obj = tables.partial_object({"metadata": metadata}, target)
    obj["kind"] = "PartialObjectMetadata"
    if view.is_table:
        rows: list[Object] = [
            {"cells": [], "object": None if view.table.include_object == "None" else obj}
        ]
        obj = {
            "kind": TABLE,
            "apiVersion": target.api_version,
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "columnDefinitions": None,
            "rows": rows,
        }

    return _bytes(view, obj)


def encode_status(view: View, status: Object) -> bytes:
    return _bytes(view, status)


def _bytes(view: View, obj: Any) -> bytes:
    return encode(view.media._replace(pretty=False), obj).rstrip(
        b"\n" if view.media.media_type != PROTOBUF else b""
    )


def frame(view: View, event_type: str, encoding: bytes) -> bytes:
    """Return one event as it stands in the stream: a line of JSON, or a message with its length
    before it."""
    if view.media.media_type == PROTOBUF:
        return protobuf.encode_watch_event(event_type, encoding)
    return b'{"type":"%s","object":%s}\n' % (event_type.encode(), encoding)


def list_body(view: View, metadata: Object, items: Iterable[bytes]) -> bytes:
    """Return a list, in JSON or protobuf, of its encoded items; those of built-in kinds do not
    repeat what they are."""
    resource = view.resource
    kind = f"{resource.kind}List"
    if view.media.media_type == PROTOBUF:
        return protobuf.encode_list(resource.api_version, kind, metadata, items)
    if resource.custom:
        head: Object = {"apiVersion": resource.api_version, "items": None}
        tail = {
            "kind": getattr(resource, "list_kind", "") or kind,
            "metadata": {"continue": "", **dict(sorted(metadata.items()))},
        }
        return (
            _bytes(view, head)[:-5]
            + b"["
            + b",".join(items)
            + b"],"
            + _bytes(view, tail)[1:]
            + b"\n"
        )

    prefix = _bytes(view, {"kind": resource.kind, "apiVersion": resource.api_version})[:-1] + b","
    bodies = [b"{" + item[len(prefix) :] if item.startswith(prefix) else item for item in items]
    head = {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata, "items": None}
    return _bytes(view, head)[:-5] + b"[" + b",".join(bodies) + b"]}\n"
