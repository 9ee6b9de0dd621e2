"""Objects that an editor, git or another program wrote into the state folder: made complete, or refused.

A pure function of (key, object, file mtime), so that every reader of the folder sees the same object. The file itself
stays as it was written until the object next changes.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kubepy.cluster import errors
from kubepy.cluster.clock import format_time
from kubepy.cluster.meta import Object
from kubepy.cluster.requests.decoding import decode_request
from kubepy.cluster.scheme import Resource
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.cluster.requests.server import Server

# The uid of an object whose file has none is made from its key within this space: the same on every machine.
_UIDS = uuid.UUID("6f0f2f6c-5f1d-5f59-9b1c-6b1f0e2f7a01")


def complete(server: Server, key: Key, obj: Object, modified: float) -> Object:
    """The object of a file. ``modified``: the file's mtime in seconds. Raises ValueError if the file cannot hold it."""
    resource = server.scheme.built_in(key.resource)
    if resource is None:  # a custom resource, or of a kind whose definition is gone: kept as it is
        return _with_metadata(key, obj, modified)
    _check_kind(resource, key, obj)
    completed = _decoded(server, resource, _with_metadata(key, obj, modified))
    if not obj.get("status") and not completed["metadata"].get("generation"):
        _begin(server, resource, completed)
    return completed


def _check_kind(resource: Resource, key: Key, obj: Object) -> None:
    kind = obj.get("kind", resource.kind)
    if kind != resource.kind:
        raise ValueError(f"a {kind} is not of the kind of its folder, {resource.qualified_kind}")
    if bool(key.namespace) != resource.namespaced:
        raise ValueError(f"a {kind} belongs {'into a namespace' if resource.namespaced else 'into no namespace'}")


def _with_metadata(key: Key, obj: Object, modified: float) -> Object:
    metadata = obj.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ValueError("metadata is not a map")
    made: Object = {"name": key.name}
    if key.namespace:
        made["namespace"] = key.namespace
    if not metadata.get("uid"):
        made["uid"] = str(uuid.uuid5(_UIDS, "/".join(key)))
    if not metadata.get("creationTimestamp"):
        made["creationTimestamp"] = format_time(datetime.fromtimestamp(modified, UTC))
    return {**obj, "metadata": {**metadata, **made}}


def _decoded(server: Server, resource: Resource, obj: Object) -> Object:
    try:
        return decode_request(server, resource, obj, "Ignore")
    except errors.Status as status:
        raise ValueError(status.message) from None


def _begin(server: Server, resource: Resource, obj: Object) -> None:
    """Without a generation or a status it was never created through the API: it begins its life as if it now were."""
    strategy = server.strategy(resource)
    strategy.prepare_for_create(obj)
    if strategy.has_generation:
        obj["metadata"]["generation"] = 1
