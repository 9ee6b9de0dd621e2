"""Lists: the objects of a resource that a request asks for, at one revision, whole or in chunks.

They come from the watch cache. A list in chunks is one snapshot: its token has the revision of the
first chunk and where the next one begins. Upstream: ``apiserver/pkg/storage`` (``continue.go``,
``cacher/delegator.go``, ``etcd3/store.go``).
"""

from __future__ import annotations

import binascii
import json
import posixpath
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from typing import Any, NamedTuple, cast

from kubepy.api import errors
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.scheme import Resource
from kubepy.apiserver.client import COMPONENT_STATUSES, ObjectList
from kubepy.apiserver.request import ListOptions, Request
from kubepy.quoting import quote
from kubepy.server.encodings import View, encode_records, list_body, select
from kubepy.server.messages import JSON, PROTOBUF, HandlerContext
from kubepy.server.negotiation import MediaType
from kubepy.server.parameters import ListParameters
from kubepy.server.tables import ListResult, TableOptions, list_meta
from kubepy.server.watchcache import Encodings, WatchCache
from kubepy.storage import Key
from kubepy.storage.model import decode, to_json
from kubepy.storage.state import ObjectRecord

TOKEN_VERSION = "meta.k8s.io/v1"
LATEST = -1  # the revision of a token that goes on with what is there now
CATCH_UP_SECONDS = 30.0  # how long a list waits for the cache to have what is stored
CHUNK = 500  # objects that selectors are asked about at once
EXPIRED = "The resourceVersion for the provided list is too old."
INCONSISTENT = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder "
    "of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were "
    "created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(NamedTuple):
    """What a list has: objects as they are stored, and where it goes on."""

    view: View
    records: list[ObjectRecord]
    resource_version: str
    continue_token: str = ""
    remaining_item_count: int | None = None

    def result(self, context: HandlerContext) -> ListResult:
        """Return the list with its objects in the version of the request. Raises Status."""
        objects = context.client.choose(
            self.view.request._replace(options=None),
            [decode(record.json or "", record.revision) for record in self.records],
        )
        return ListResult(
            [obj for obj in objects if obj is not None],
            self.resource_version,
            self.continue_token,
            self.remaining_item_count,
        )

    def body(self, context: HandlerContext) -> bytes | None:
        """Return the list in JSON or protobuf, None where something else is wanted. Raises
        Status."""
        media = self.view.media
        is_plain = (
            media.media_type in (JSON, PROTOBUF) and media.target is None and not media.pretty
        )
        if not is_plain or context.application is None:
            return None
        metadata = list_meta(
            ListResult([], self.resource_version, self.continue_token, self.remaining_item_count)
        )
        items = encode_records(
            context, self.view, context.application.watch_cache.encodings, self.records
        )
        return list_body(self.view, metadata, items)


# --- revisions ------------------------------------------------------------------------------------


def parse_revision(text: str) -> int:
    """Return the revision of a resourceVersion, 0 for "". Raises BadRequest in the words of
    ``strconv.ParseUint``."""
    if not text:
        return 0
    is_number = text.isascii() and text.isdigit()
    if is_number and (len(text) < 20 or (len(text) < 40 and int(text) < 2**64)):
        return int(text)
    problem = "value out of range" if is_number else "invalid syntax"
    raise errors.BadRequest(
        f"resourceVersion: Invalid value: {quote(text)}: strconv.ParseUint: parsing {quote(text)}: "
        f"{problem}"
    )


def require_present(revision: int, current: int) -> None:
    """Check that a revision is not one that is yet to come. Raises Timeout."""
    if revision > current:
        cause = errors.Cause("ResourceVersionTooLarge", "Too large resource version")
        raise errors.Timeout(
            f"Timeout: Too large resource version: {revision}, current: {current}",
            causes=[cause],
            retry_after_seconds=1,
        )


class ListRange(NamedTuple):
    """The part of a list that is asked for.

    :ivar exact: at this revision, None for the present.
    :ivar minimum: not older than this.
    :ivar start: only from here on.
    :ivar limit: 0 for none.
    """

    exact: int | None = None
    minimum: int = 0
    start: str = ""
    limit: int = 0


def parse_range(parameters: ListParameters) -> ListRange:
    """Return the part of a list that parameters ask for. Raises BadRequest."""
    version, limit = parameters.resource_version, max(parameters.limit, 0)
    if version == "0":
        limit = 0
    if parameters.continue_token:
        start, revision = decode_token(parameters.continue_token)
        if version not in ("", "0"):
            raise errors.BadRequest(
                "specifying resource version is not allowed when using continue"
            )
        return ListRange(revision if revision > 0 else None, 0, start, limit)

    try:
        revision = parse_revision(version)
    except errors.BadRequest as error:
        raise errors.BadRequest(f"invalid resource version: {error}") from None

    is_exact = parameters.resource_version_match == "Exact" or (
        not parameters.resource_version_match and limit > 0 and revision > 0
    )
    return ListRange(revision, 0, "", limit) if is_exact else ListRange(None, revision, "", limit)


# --- tokens ---------------------------------------------------------------------------------------


def encode_token(revision: int, start: str) -> str:
    token = json.dumps(
        {"v": TOKEN_VERSION, "rv": revision, "start": start},
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return urlsafe_b64encode(token.encode()).decode().rstrip("=")


def decode_token(text: str) -> tuple[str, int]:
    """Return where a token goes on, and at which revision. Raises BadRequest in upstream's
    words."""
    problem = "continue key is not valid"
    try:
        token = _parse_token(text)
    except ValueError as error:
        raise errors.BadRequest(f"invalid continue token: {problem}: {error}") from None

    start, revision = token.get("start") or "", token.get("rv") or 0
    if token.get("v") != TOKEN_VERSION:
        problem += f": server does not recognize this encoded version {token.get('v') or ''}"
    elif not revision:
        problem += f": incorrect encoded start resourceVersion (version {TOKEN_VERSION})"
    elif not start:
        problem += f": encoded start key empty (version {TOKEN_VERSION})"
    elif posixpath.normpath(key := f"/{start.removeprefix('/')}") != key or key.startswith("//"):
        problem += f": {start}"
    else:
        return start.removeprefix("/"), revision

    raise errors.BadRequest(f"invalid continue token: {problem}")


def _parse_token(text: str) -> dict[str, Any]:
    """Return the content of a continue token. Raises ValueError in the words of Go."""
    for index, character in enumerate(text):
        if not (character.isascii() and (character.isalnum() or character in "-_")):
            raise ValueError(f"illegal base64 data at input byte {index}")
    if len(text) % 4 == 1:
        raise ValueError(f"illegal base64 data at input byte {len(text) - 1}")
    try:
        token = json.loads(
            urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode(errors="replace")
        )
    except (json.JSONDecodeError, binascii.Error, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.pos < len(error.doc):
            raise ValueError(
                f"invalid character '{error.doc[error.pos]}' looking for beginning of value"
            ) from None
        raise ValueError("unexpected end of JSON input") from None

    if not isinstance(token, dict):
        raise ValueError("json: cannot unmarshal into Go value of type storage.continueToken")
    for name, type_ in (("v", str), ("rv", int), ("start", str)):
        if not isinstance(token.get(name, type_()), type_):
            raise ValueError(f"json: cannot unmarshal into Go struct field continueToken.{name}")
    return token


# --- reading --------------------------------------------------------------------------------------


def read_page(
    context: HandlerContext, resource: Resource, media: MediaType, parameters: ListParameters
) -> Page:
    """Return the objects of a list, or the part of them that the parameters ask for.

    Raises BadRequest, Timeout for a revision that is yet to come, Expired for one that is too long
    ago.
    """
    options = ListOptions(parameters.label_selector, parameters.field_selector)
    cache = context.application.watch_cache if context.application is not None else None
    namespace = context.info.namespace if resource.namespaced else ""
    view = View(resource, namespace, "", options, media, TableOptions())
    context.client.choose(view.request, [])  # the selectors, and warnings of the version
    wanted = parse_range(parameters)
    if cache is None or resource.computed_from or resource.key == COMPONENT_STATUSES:
        records, revision = _stored_records(context, view, wanted)
    else:
        records, revision = _cached_records(context, view, cache, wanted)
        if resource.custom:  # as the cache has them by now: it may have waited for a change
            view = view._replace(definitions=cache.definitions_revision)

    if context.info.name and (
        namespace or not resource.namespaced
    ):  # one object, chosen by a field selector
        records = [record for record in records if record.key.name == context.info.name]

    following = _from_start(records, view, wanted.start)
    encodings = cache.encodings if cache is not None else Encodings()
    chosen, has_more = _select(context, view, encodings, following, wanted.limit)
    if not has_more:
        return Page(view, chosen, str(revision))
    last = chosen[-1].key
    start = last.name if namespace or not resource.namespaced else f"{last.namespace}/{last.name}"
    remaining = None if view.has_selectors else len(following) - wanted.limit
    return Page(view, chosen, str(revision), encode_token(revision, f"{start}\0"), remaining)


def _cached_records(
    context: HandlerContext, view: View, cache: WatchCache, wanted: ListRange
) -> tuple[list[ObjectRecord], int]:
    """Return the objects of a view from the cache, at the revision that is wanted."""
    key, namespace = view.resource.storage_key, view.namespace
    # A list that goes on is a snapshot, which its first chunk has looked at the files for.
    goes_on = bool(wanted.start) and wanted.exact is not None
    current, problems = cache.look_in(
        context.cluster, key, namespace, 0.0 if goes_on else time.monotonic()
    )
    current = max(current, context.client.revision()) if goes_on else current
    require_present(max(wanted.exact or 0, wanted.minimum), current)
    if not cache.wait_for(current, CATCH_UP_SECONDS):
        raise errors.ServiceUnavailable("the watch cache is not up to date")
    try:
        records, revision = cache.snapshot(key, namespace, wanted.exact)
    except errors.Expired:
        raise _expired(wanted) from None

    if problems:  # files that cannot be objects: these are left out, with a warning
        listed = context.client.list(view.resource.gvr, namespace=namespace or None).items
        places = {(namespace_of(obj), name_of(obj)) for obj in listed}
        records = [record for record in records if record.key[1:] in places]

    now = context.cluster.clock.now().timestamp()
    alive = [record for record in records if record.expires is None or record.is_alive(now)]
    return alive, max(wanted.exact or 0, revision)


def _stored_records(
    context: HandlerContext, view: View, wanted: ListRange
) -> tuple[list[ObjectRecord], int]:
    """Return the objects of a view without a cache: there is no revision but the newest one."""
    request = Request("list", view.resource.gvr, view.namespace)
    listed = cast(
        ObjectList,
        context.client.do(request._replace(resource=request.resource._replace(version=""))),
    )
    revision = int(listed.resource_version)
    require_present(max(wanted.exact or 0, wanted.minimum), revision)
    if wanted.exact not in (None, revision):
        raise _expired(wanted)
    return [_record(view, obj) for obj in listed.items], revision


def _record(view: View, obj: Object) -> ObjectRecord:
    metadata = obj["metadata"]
    key = Key(view.resource.storage_key, namespace_of(obj), name_of(obj))
    return ObjectRecord(key, int(metadata.get("resourceVersion") or 0), to_json(obj))


def _expired(wanted: ListRange) -> errors.Expired:
    """Make the error of a revision that is too long ago; a list in chunks may go on with what is
    there now."""
    if not wanted.start:
        return errors.Expired(EXPIRED)
    error = errors.Expired(INCONSISTENT)
    error.continue_token = encode_token(LATEST, wanted.start)
    return error


def _from_start(records: list[ObjectRecord], view: View, start: str) -> list[ObjectRecord]:
    """Return the objects, which are in order, from where a token goes on."""
    if not start:
        return records
    namespace, slash, name = start.partition("/")
    if not slash or view.namespace or not view.resource.namespaced:
        namespace, name = view.namespace, start
    find = bisect_right if name.endswith("\0") else bisect_left
    return records[
        find(records, (namespace, name.removesuffix("\0")), key=lambda record: record.key[1:]) :
    ]


def _select(
    context: HandlerContext,
    view: View,
    encodings: Encodings,
    records: list[ObjectRecord],
    limit: int,
) -> tuple[list[ObjectRecord], bool]:
    """Return the objects that the selectors choose, at most so many, and whether there is something
    after them."""
    if not view.has_selectors:
        return records[: limit or None], 0 < limit < len(records)
    chosen: list[ObjectRecord] = []
    for start in range(0, len(records), CHUNK):
        part = records[start : start + CHUNK]
        for index, (record, matches) in enumerate(
            zip(part, select(context, view, encodings, part), strict=True), start
        ):
            if matches:
                chosen.append(record)
                if len(chosen) == limit:
                    return chosen, index < len(records) - 1
    return chosen, False
