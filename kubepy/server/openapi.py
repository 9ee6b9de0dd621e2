"""OpenAPI: a document of version 3 for each group and version with an index, and one of version 2
for all.

A document is made when it is first asked for, and kept while the definitions of custom resources
stay as they are. Its hash comes from what it is made of, so the index makes none. Upstream:
``kube-openapi/pkg/handler`` and ``handler3``, ``apiextensions-apiserver/pkg/controller/openapi``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from kubepy import KUBERNETES_VERSION, __version__
from kubepy.api.meta import Object
from kubepy.api.schema import definitions
from kubepy.api.schema.customresources import resources_of
from kubepy.api.schema.definitions import (
    META,
    reference,
    references_in,
    to_v2,
    v2_schema,
    with_references,
)
from kubepy.api.schema.structural import EMBEDDED, INT_OR_STRING, PRESERVE
from kubepy.api.scheme import AGGREGATED, BUILT_IN, Resource
from kubepy.apiserver.client import CRDS
from kubepy.server import gnostic, negotiation
from kubepy.server.discovery import served_groups
from kubepy.server.messages import (
    JSON,
    TEXT,
    Handler,
    HandlerContext,
    Headers,
    RequestInfo,
    Response,
)
from kubepy.server.operations import information, list_type, paths_of, type_name

V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
KEPT_BYTES = 24 * 1024 * 1024  # of documents in memory
_INFO = {"title": "Kubernetes", "version": KUBERNETES_VERSION.removeprefix("v").rpartition(".")[0]}
_CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_EITHER = [{"type": "integer"}, {"type": "string"}]
_UNSHARED = (
    "name",
    "fieldValidation",
    "dryRun",
)  # kubectl looks for these in the operations themselves


def find_handler(info: RequestInfo) -> Handler | None:
    """Return the handler of a path of OpenAPI."""
    match info.parts:
        case ("openapi", "v2") | ("openapi", "v3") | ("openapi", "v3", *_):
            return serve
    return None


def serve(context: HandlerContext) -> Response:
    """Answer ``/openapi/v2``, ``/openapi/v3`` and the documents below it, whatever the method."""
    specification = Specification(context)
    match context.info.parts:
        case ("openapi", "v2"):
            return _negotiated(context, "v2", specification.tag(""), V2_PROTOBUF, specification.v2)
        case ("openapi", "v3") if not context.info.path.endswith("/"):
            return _index(specification, context.prefix)

    path = "/".join(context.info.parts[2:])
    if path not in specification.paths():
        return Response(404, b"", "")
    tag = specification.tag(path)
    wanted = context.request.parameter("hash")
    if wanted and wanted != tag:
        return Response(
            301,
            b"",
            headers=(
                ("Location", f"{context.prefix}{_url(path, tag)}"),
                ("Vary", "Accept"),
                ("Etag", f'"{tag}"'),
            ),
        )

    response = _negotiated(
        context, path, tag, V3_PROTOBUF, lambda form: specification.v3(path, form)
    )
    if wanted and response.status == 200:
        expires = (datetime.now(UTC) + timedelta(days=365)).strftime("%a, %d %b %Y %H:%M:%S UTC")
        response = response._replace(
            headers=(
                *response.headers,
                ("Cache-Control", "public, immutable"),
                ("Expires", expires),
            )
        )

    return response


def _index(specification: Specification, prefix: str) -> Response:
    """Return the index of version 3.

    :param prefix: of the server's paths, for the URLs.
    """
    paths = {
        path: {"serverRelativeURL": f"{prefix}{_url(path, specification.tag(path))}"}
        for path in specification.paths()
    }
    body = json.dumps({"paths": paths}, separators=(",", ":")).encode()
    return Response(
        200, body, TEXT
    )  # of this type upstream's aggregator is silent, and Go takes it for text


def _url(path: str, tag: str) -> str:
    return f"/openapi/v3/{path}?{urlencode({'hash': tag})}"


def _negotiated(
    context: HandlerContext, name: str, tag: str, protobuf: str, make: Callable[[str], bytes]
) -> Response:
    """Answer with a document as JSON or protobuf, whichever the client prefers."""
    deprecated = protobuf.replace(
        ".v1.0", "@v1.0"
    )  # the name that older clients use, with which none is answered
    for clause in negotiation.parse_accept(context.request.header("accept") or "*/*"):
        for media_type in (JSON, protobuf, deprecated):
            if clause.matches(media_type):
                form = JSON if media_type == JSON else protobuf
                if context.request.header("if-none-match") == f'"{tag}"':
                    return _cached(context, b"", tag, form, (("Vary", "Accept"),))
                body = _documents.get((name, tag, form), partial(make, form))
                return _cached(context, body, tag, form, (("Vary", "Accept"),))
    return Response(406, b"", "", (("Vary", "Accept"),))


def _cached(
    context: HandlerContext, body: bytes, tag: str, media_type: str, headers: Headers
) -> Response:
    """Answer with a body, or with 304 if the client has it."""
    headers = (*headers, ("Etag", f'"{tag}"'))
    if context.request.header("if-none-match") == f'"{tag}"':
        return Response(304, b"", "", headers)
    return Response(200, body, media_type, headers)


def _digest(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest().upper()


class DocumentCache:
    """The documents that were asked for last, up to a number of bytes; one is made at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._documents: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()

    def get(self, key: tuple[str, str, str], make: Callable[[], bytes]) -> bytes:
        """Return a document, by its name, hash and form. Makes it if it is not there."""
        with self._lock:
            if key in self._documents:
                self._documents.move_to_end(key)
            else:
                self._documents[key] = make()
                while (
                    len(self._documents) > 1
                    and sum(map(len, self._documents.values())) > self._limit
                ):
                    self._documents.popitem(last=False)
            return self._documents[key]


_documents = DocumentCache(KEPT_BYTES)


# --- documents ------------------------------------------------------------------------------------


class Specification:
    """The documents of the resources that there are when it is made."""

    def __init__(self, context: HandlerContext) -> None:
        crds = context.client.list(CRDS).items
        custom = sorted(
            (resource for crd in crds for resource in resources_of(crd)),
            key=lambda resource: (resource.group, resource.plural),
        )
        self._groups = served_groups((*BUILT_IN, *custom, *AGGREGATED))
        self._custom = {crd["metadata"]["name"]: crd for crd in crds}

    def paths(self) -> list[str]:
        """Return the paths of the documents of version 3, sorted."""
        groups = [
            f"apis/{group}"
            for group, versions in self._groups.items()
            if group
            and any(
                not resource.custom for resources in versions.values() for resource in resources
            )
        ]
        versions = [
            f"apis/{group}/{version}" if group else f"api/{version}"
            for group, versions in self._groups.items()
            for version in versions
        ]
        return sorted((*_ABOUT, *groups, *versions))

    def tag(self, path: str) -> str:
        """Return the hash of a document by its path; of version 2 for ""."""
        resources = (
            self._resources(path)
            if path
            else [
                resource
                for versions in self._groups.values()
                for listed in versions.values()
                for resource in listed
            ]
        )
        used = sorted(
            {
                (
                    resource.key,
                    self._custom[resource.key]["metadata"].get("uid", ""),
                    self._custom[resource.key]["metadata"].get("resourceVersion", ""),
                )
                for resource in resources
                if resource.custom
            }
        )
        has_descriptions = definitions.schemas_folder() is not None
        return _digest(
            repr((__version__, KUBERNETES_VERSION, path, used, has_descriptions)).encode()
        )

    def _resources(self, path: str) -> list[Resource]:
        """Return the resources of a document, [] for one that is about no group and version."""
        match path.split("/"):
            case ["api", version]:
                return self._groups[""].get(version, [])
            case ["apis", group, version]:
                return self._groups[group].get(version, [])
        return []

    def v3(self, path: str, form: str) -> bytes:
        """Return a document of version 3 in JSON or protobuf."""
        paths, own, api_version = self._parts(path)
        schemas = with_references(references_in(paths), own, () if own else ("v1", api_version))
        components = {"schemas": schemas, **({} if own else {"securitySchemes": _SECURITY})}
        document = {
            "openapi": "3.0.0",
            "info": _CUSTOM_INFO if own else _INFO,
            "paths": paths,
            "components": components,
        }
        return _json(document).encode() if form == JSON else gnostic.encode_v3(document)

    def _parts(self, path: str) -> tuple[dict[str, Object], dict[str, Object], str]:
        """Return the paths of a document, the definitions of its custom kinds, and its group and
        version."""
        if resources := self._resources(path):
            group = resources[0].group
            version = resources[0].version
            own: dict[str, Object] = {}
            for resource in resources:
                if resource.custom:
                    own |= custom_definitions(resource, self._custom[resource.key])
            return paths_of(group, version, resources), own, f"{group}/{version}".lstrip("/")

        if path in _ABOUT:
            verb, subject, text, answer, media_types = _ABOUT[path]
            return (
                {
                    f"/{path}/": {
                        "get": information(f"/{path}/", verb, subject, text, answer, *media_types)
                    }
                },
                {},
                "",
            )

        return (
            {
                f"/{path}/": {
                    "get": information(
                        f"/{path}/",
                        "get",
                        "APIGroup",
                        "get information of a group",
                        f"{META}.APIGroup",
                    )
                }
            },
            {},
            "",
        )

    def v2(self, form: str) -> bytes:
        """Return the document of version 2 in JSON or protobuf, a path and a type at a time."""
        shared: dict[str, Object] = {}
        names: set[str] = set()
        own: dict[str, Object] = {}

        def paths() -> Iterator[tuple[str, Object]]:
            for document in self.paths():
                items, custom, _ = self._parts(document)
                own.update(custom)
                names.update(references_in(items))
                yield from ((path, _v2_path(item, shared)) for path, item in items.items())

        def schemas() -> Iterator[tuple[str, Object]]:
            for name, schema in with_references(names, own, ()).items():
                yield name, _v2_custom(schema) if name in own else to_v2(name, schema)

        if form != JSON:
            return gnostic.encode_v2(_INFO, paths(), schemas(), sorted_items(shared), _SECURITY)
        members = (
            ("paths", paths()),
            ("definitions", schemas()),
            ("parameters", sorted_items(shared)),
        )
        parts = [f'"{name}":{{{",".join(_members(items))}}}' for name, items in members]
        head = (
            f'"swagger":"2.0","info":{_json(_INFO)}',
            *parts,
            f'"securityDefinitions":{_json(_SECURITY)}',
            '"security":[{"BearerToken":[]}]',
        )
        return f"{{{','.join(head)}}}".encode()


# The documents about no group: verb, subject, description, type of the answer, media types.
_ABOUT: dict[str, tuple[str, str, str, str, tuple[Any, ...]]] = {
    ".well-known/openid-configuration": (
        "get",
        "ServiceAccountIssuerOpenIDConfiguration",
        "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
        "",
        ((JSON,),),
    ),
    "api": ("get", "APIVersions", "get available API versions", f"{META}.APIVersions", ()),
    "apis": ("get", "APIVersions", "get available API versions", f"{META}.APIGroupList", ()),
    "openid/v1/jwks": (
        "get",
        "ServiceAccountIssuerOpenIDKeyset",
        "get service account issuer OpenID JSON Web Key Set "
        "(contains public token verification keys)",
        "",
        (("application/jwk-set+json",),),
    ),
    "version": (
        "get",
        "CodeVersion",
        "get the version information for this server",
        "io.k8s.apimachinery.pkg.version.Info",
        ((JSON,),),
    ),
}


def sorted_items(values: dict[str, Object]) -> Iterator[tuple[str, Object]]:
    """Yield the entries by name, as they are when the first is asked for."""
    yield from sorted(values.items())


def _members(items: Iterable[tuple[str, Object]]) -> Iterator[str]:
    return (f"{_json(name)}:{_json(value)}" for name, value in items)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- custom resources -----------------------------------------------------------------------------


def custom_definitions(resource: Resource, crd: Object) -> dict[str, Object]:
    """Return the types of a custom kind and of its list, in the version of the resource
    (``buildKubeNative``)."""
    version = next(entry for entry in crd["spec"]["versions"] if entry["name"] == resource.version)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    own: Object = {"type": "object"}
    if schema is not None:
        own = _unfold(schema)
        own["properties"] = {
            **(own.get("properties") or {}),
            **definitions.type_meta(),
            "metadata": definitions.object_meta(),
        }

    extra: Object = {}
    if fields := version.get("selectableFields"):
        extra["x-kubernetes-selectable-fields"] = [
            {"fieldPath": field["jsonPath"].removeprefix(".")} for field in fields
        ]

    own |= {
        "x-kubernetes-group-version-kind": [_group_version_kind(resource, resource.kind)],
        **extra,
    }
    items = {
        "type": "array",
        "description": f"List of {resource.plural}. More info: {_CONVENTIONS}",
        "items": reference(type_name(resource)),
    }
    list_kind = list_type(resource).rpartition(".")[2]
    listed = {
        "description": f"{list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **definitions.type_meta(),
            "items": items,
            "metadata": definitions.list_meta(),
        },
        "x-kubernetes-group-version-kind": [_group_version_kind(resource, list_kind)],
        **extra,
    }
    return {type_name(resource): own, list_type(resource): listed}


def _group_version_kind(resource: Resource, kind: str) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": kind}


def _unfold(node: Object) -> Object:
    """Return a schema in which embedded resources have apiVersion, kind and metadata
    (``addEmbeddedProperties``), and what takes a number or a string says so (``Unfold``)."""
    schema = dict(node)
    if schema.get("properties"):
        schema["properties"] = {
            name: _unfold(field) for name, field in schema["properties"].items()
        }

    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            schema[inner] = _unfold(schema[inner])
    if schema.get(INT_OR_STRING) and _EITHER not in (
        schema.get("anyOf"),
        *(part.get("anyOf") for part in schema.get("allOf") or ()),
    ):
        if "anyOf" in schema:
            schema["allOf"] = [{"anyOf": _EITHER}, *(schema.get("allOf") or ())]
        else:
            schema["anyOf"] = _EITHER

    if schema.get(EMBEDDED):
        schema["properties"] = {
            **(schema.get("properties") or {}),
            **definitions.type_meta(),
            "metadata": definitions.object_meta(),
        }
        schema["required"] = list(
            dict.fromkeys((*(schema.get("required") or ()), "kind", "apiVersion"))
        )

    return schema


def _v2_custom(schema: Object) -> Object:
    """Return the type of a custom kind as v2 can say it (``ToStructuralOpenAPIV2``)."""
    if schema.get(PRESERVE):
        return {
            "type": "object",
            "x-kubernetes-group-version-kind": schema["x-kubernetes-group-version-kind"],
        }
    simplified: Object = v2_schema(_without_nullable(schema))
    return simplified


def _without_nullable(node: Object) -> Object:
    """Return a schema whose nullable or free parts are of any type: kubectl would refuse values of
    theirs."""
    schema = dict(node)
    is_free = bool(schema.get(PRESERVE))
    if schema.get("nullable") or is_free:
        schema = {
            key: value
            for key, value in schema.items()
            if key not in ("items", "properties", "nullable")
        }
        if not is_free or node.get("type") in ("object", "array"):
            schema.pop("type", None)
        if is_free and EMBEDDED in schema:  # kubectl would refuse what else such an object has
            schema.pop("required", None)

    fields = schema.get("properties")
    if fields:
        required = [
            name
            for name in schema.get("required") or ()
            if not (fields.get(name) or {}).get("nullable")
        ]
        schema = {
            **schema,
            "properties": {name: _without_nullable(field) for name, field in fields.items()},
        }
        schema.pop("required", None)
        if required:
            schema["required"] = required

    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            schema[inner] = _without_nullable(schema[inner])
    if schema.get("type") == "array" and "items" not in schema:
        del schema["type"]
    return schema


# --- OpenAPI v2 -----------------------------------------------------------------------------------


def _v2_path(item: Object, shared: dict[str, Object]) -> Object:
    """Return a path as v2 has it; parameters that others have as well go to ``shared``."""
    path: Object = {
        method: _v2_operation(item[method], shared) for method in _METHODS if method in item
    }
    if "parameters" in item:
        path["parameters"] = [_v2_parameter(parameter, shared) for parameter in item["parameters"]]
    return path


def _v2_operation(operation: Object, shared: dict[str, Object]) -> Object:
    body = operation.get("requestBody")
    responses = operation["responses"]
    produces = list(responses["200"]["content"])
    parameters = [_v2_parameter(parameter, shared) for parameter in operation.get("parameters", ())]
    if body:
        schema = v2_schema(next(iter(body["content"].values()))["schema"])
        whole = {
            "in": "body",
            "name": "body",
            **({"required": True} if body.get("required") else {}),
            "schema": schema,
        }
        parameters.insert(
            0,
            _share(whole, shared)
            if f".{META.rpartition('.')[0]}" in f".{schema['$ref']}"
            else whole,
        )

    consumes = produces
    if body:
        consumes = list(body["content"])
    elif "x-kubernetes-action" in operation:
        consumes = ["*/*"]

    return {
        "tags": operation["tags"],
        "description": operation["description"],
        "operationId": operation["operationId"],
        "schemes": ["https"],
        "consumes": consumes,
        "produces": produces,
        **({"parameters": parameters} if parameters else {}),
        "responses": {code: _v2_response(response) for code, response in responses.items()},
        **{key: value for key, value in operation.items() if key.startswith("x-")},
    }


def _v2_response(response: Object) -> Object:
    content = next(iter(response.get("content", {}).values()), None)
    schema = {"schema": v2_schema(content["schema"])} if content else {}
    return {"description": response["description"], **schema}


def _v2_parameter(parameter: Object, shared: dict[str, Object]) -> Object:
    flat = {
        **{key: value for key, value in parameter.items() if key != "schema"},
        **parameter["schema"],
    }
    return flat if parameter["name"] in _UNSHARED else _share(flat, shared)


def _share(parameter: Object, shared: dict[str, Object]) -> Object:
    digest = hashlib.sha256(_json(parameter).encode()).digest()[:6]
    name = f"{parameter['name']}-{base64.urlsafe_b64encode(digest).decode()}"
    shared[name] = parameter
    return {"$ref": f"#/parameters/{name}"}
