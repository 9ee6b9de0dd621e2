"""The form of an answer: the representations that a client accepts, and objects encoded in them.

Upstream: ``apiserver/pkg/endpoints/handlers/negotiation``, ``handlers/responsewriters``,
``apimachinery/pkg/runtime/serializer``, ``munnerz/goautoneg``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.types import as_encoded
from kubepy.api.values.goformat import parse_bool, to_json
from kubepy.lazy import lazy_imports
from kubepy.server.messages import JSON, PROTOBUF, TEXT, YAML, Headers, HttpRequest, Response
from kubepy.server.requestinfo import PathNotFound

if TYPE_CHECKING:
    from kubepy.apiserver.client import Client

with lazy_imports():
    from kubepy.api import protobuf
    from kubepy.storage import yaml

SUPPORTED = (JSON, YAML, PROTOBUF)
STREAMED = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_META_VERSIONS = ("v1", "v1beta1")
_HUMANS = ("curl", "Wget", "Mozilla/5.0")  # the User-Agents of clients whose output people read


class Clause(NamedTuple):
    """A media range of an Accept header with its parameters, less its quality."""

    type: str
    subtype: str
    parameters: dict[str, str]

    def matches(self, media_type: str) -> bool:
        type_, _, subtype = media_type.partition("/")
        return (self.type == type_ and self.subtype in (subtype, "*")) or (
            self.type,
            self.subtype,
        ) == ("*", "*")


class GroupVersionKind(NamedTuple):
    """A kind of ``meta.k8s.io`` that the answer is converted to:
    ``as=Table;g=meta.k8s.io;v=v1``."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


class Restrictions(NamedTuple):
    """The representations that an endpoint has.

    :ivar transforms: it has tables and metadata of its objects.
    :ivar tables: if it transforms at all, it has tables too.
    :ivar protobuf: objects themselves can be protobuf; custom resources cannot.
    """

    transforms: bool = False
    tables: bool = True
    protobuf: bool = True

    def allow(self, media_type: str, target: GroupVersionKind | None) -> bool:
        if target is None:
            return self.protobuf or media_type != PROTOBUF
        if (
            not self.transforms
            or target.group != "meta.k8s.io"
            or target.version not in _META_VERSIONS
        ):
            return False
        return target.kind in (PARTIAL, PARTIAL_LIST) or (
            target.kind == TABLE and self.tables and media_type != PROTOBUF
        )


class MediaType(NamedTuple):
    """The representation that was agreed on."""

    media_type: str = JSON
    pretty: bool = False
    target: GroupVersionKind | None = None
    stream: str = ""


# --- the Accept header ----------------------------------------------------------------------------


def parse_accept(header: str) -> list[Clause]:
    """Return the media ranges that a client accepts, the preferred ones first
    (``goautoneg.ParseAccept``)."""
    clauses: list[tuple[float, Clause]] = []
    for part in header.split(","):
        range_, *parameters = part.strip().split(";")
        type_, _, subtype = range_.strip().partition("/")
        if type_.strip() == "*" and not subtype:
            subtype = "*"
        if not subtype or "/" in subtype:
            continue
        pairs = {
            name.strip(): value.strip()
            for name, equals, value in (text.partition("=") for text in parameters)
            if value and "=" not in value
        }
        clause = (_quality(pairs.pop("q", "1")), Clause(type_.strip(), subtype.strip(), pairs))
        place = len(clauses)
        while place and _goes_before(clause, clauses[place - 1]):
            place -= 1
        clauses.insert(place, clause)

    return [clause for _, clause in clauses]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _goes_before(clause: tuple[float, Clause], other: tuple[float, Clause]) -> bool:
    (quality, own), (other_quality, others) = clause, other
    return (
        quality > other_quality
        or (own.type != "*" and others.type == "*")
        or (own.subtype != "*" and others.subtype == "*")
    )


def negotiate(request: HttpRequest, restrictions: Restrictions) -> MediaType:
    """Return the representation of an answer. Raises NotAcceptable if none is accepted."""
    header, is_pretty = request.header("accept"), _is_pretty(request)
    if not header:
        return MediaType(JSON, is_pretty)
    for clause in parse_accept(header):
        for media_type in SUPPORTED:
            if clause.matches(media_type):
                media = _agree(clause, media_type, restrictions)
                if media is not None:
                    return media._replace(pretty=media.pretty or is_pretty)
    raise errors.NotAcceptable(
        f"only the following media types are accepted: {', '.join(SUPPORTED)}"
    )


def _agree(clause: Clause, media_type: str, restrictions: Restrictions) -> MediaType | None:
    """Return what a media range with its parameters means; None if the endpoint has no such
    representation."""
    parameters = clause.parameters
    target = GroupVersionKind(
        parameters.get("g", ""), parameters.get("v", ""), parameters.get("as", "")
    )
    stream = parameters.get("stream", "")
    if stream and (stream != "watch" or media_type == YAML):
        return None
    if parameters.get("sv", "") not in ("", "v1" if restrictions.transforms else ""):
        return None
    is_transformed = any(name in parameters for name in ("as", "g", "v"))
    if not restrictions.allow(media_type, target if is_transformed else None):
        return None
    return MediaType(
        media_type, parameters.get("pretty") == "1", target if is_transformed else None, stream
    )


def require_acceptable(request: HttpRequest, available: tuple[str, ...]) -> None:
    """Check that a client accepts one of the media types of a route, before anything else
    (``emicklei/go-restful``).

    Raises NotAcceptable.
    """
    header = request.header("accept") or "*/*"
    if any(range_.partition(";")[0].strip() in ("*/*", *available) for range_ in header.split(",")):
        return
    error = errors.NotAcceptable(
        f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}"
    )
    error.has_details = True
    raise error


def _is_pretty(request: HttpRequest) -> bool:
    if text := request.parameter("pretty"):
        try:
            return parse_bool(text)
        except ValueError:
            return False
    return request.header("user-agent").startswith(_HUMANS)


# --- bodies ---------------------------------------------------------------------------------------


def shown(client: Client, obj: Object) -> Object:
    """Return an object as the API shows it: with its managedFields, and its fields in the order of
    its encoding."""
    return as_encoded(client.with_managed_fields(obj))


def encode(media: MediaType, obj: Object) -> bytes:
    """Return the bytes of an object, whose fields stand in the order in which JSON has them."""
    if media.media_type == PROTOBUF:
        return protobuf.encode(obj)
    if media.media_type == YAML:
        return yaml.dump(obj).encode()
    return to_json(obj, 2 if media.pretty else 0, sort_keys=False).encode() + (
        b"" if media.pretty else b"\n"
    )


def answer(request: HttpRequest, obj: Object, status: int = 200, headers: Headers = ()) -> Response:
    """Make the answer of an endpoint that has no other representations than JSON, YAML and
    protobuf.

    Raises NotAcceptable.
    """
    media = negotiate(request, Restrictions())
    return Response(status, encode(media, obj), media.media_type, headers)


def error_response(request: HttpRequest, error: errors.Status) -> Response:
    """Make the answer to a request that failed: a Status in a form that the client accepts, else in
    JSON."""
    if isinstance(error, PathNotFound):
        return Response(
            404, b"404 page not found\n", TEXT, (("X-Content-Type-Options", "nosniff"),)
        )
    headers: Headers = ()
    if error.retry_after_seconds:
        headers += (("Retry-After", str(error.retry_after_seconds)),)
    if isinstance(error, errors.MethodNotAllowed) and error.allow:
        headers += (("Allow", ", ".join(error.allow)),)
    try:
        return answer(request, error.as_object(), error.code, headers)
    except errors.NotAcceptable:
        body = encode(MediaType(JSON, pretty=True), error.as_object())
        return Response(error.code, body, JSON, headers)
