"""The handlers of objects: get, list, create, update, patch, delete and deletecollection.

A handler takes a Call and returns its Response; it raises the Status of a request that fails.
Upstream: ``apiserver/pkg/endpoints/handlers``, ``pkg/endpoints/installer.go``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple, cast

from kubepy.api import errors
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.scheme import Resource
from kubepy.api.values.names import path_segment
from kubepy.apiserver.request import APPLY_PATCH, CreateOptions, Options, Request
from kubepy.quoting import quote
from kubepy.server import lists, negotiation, parameters, requestbody, tables
from kubepy.server.messages import Call, Handler, Response
from kubepy.server.negotiation import MediaType, Restrictions
from kubepy.server.requestinfo import find_resource
from kubepy.server.tables import ListResult

# Resources whose deletion answers with what was deleted, as others do with a Status.
_RETURNED = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourcequotas",
        "resourceslices.resource.k8s.io",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    }
)
# The methods of a collection, of an object, and of a subresource, by verb.
_COLLECTION = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
_COLLECTION_VERBS = (
    "list",
    "watch",
    "deletecollection",
)  # they may have a name, from a field selector
_OBJECT = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


class ServedRequest(NamedTuple):
    """A request whose resource is served, with the representation of the answer."""

    call: Call
    resource: Resource
    media: MediaType

    @classmethod
    def of(cls, call: Call) -> ServedRequest:
        """Find out what a request asks for.

        Raises NotFound, MethodNotAllowed, UnsupportedMediaType (of a patch), NotAcceptable.
        """
        resource = find_resource(call.cluster.scheme, call.info)
        _require_verb(call, resource)
        if complaints := path_segment(call.info.name):
            raise errors.BadRequest(
                f"Name parameter invalid: {quote(call.info.name)}: {';'.join(complaints)}"
            )

        if call.info.verb == "patch":
            requestbody.require_patch_type(call.request, resource)
        if not resource.custom:
            streamed = negotiation.STREAMED if call.info.verb in ("list", "watch") else ()
            negotiation.require_acceptable(call.request, negotiation.SUPPORTED + streamed)
        media = negotiation.negotiate(
            call.request, Restrictions(transforms=True, protobuf=not resource.custom)
        )
        return cls(call, resource, media)

    def do(self, body: Any = None, options: Options | None = None) -> Object:
        """Carry out the request. Raises Status."""
        info = self.call.info
        request = Request(
            info.verb,
            self.resource.gvr,
            info.namespace if self.resource.namespaced else "",
            info.name,
            info.subresource,
            options,
        )
        try:
            return cast(Object, self.call.client.do(request, body))
        except RecursionError:
            raise errors.BadRequest("json: exceeded max depth") from None
        except errors.Status as error:
            key, stored_as = self.resource.key, self.resource.storage_key
            if (
                error.resource == stored_as != key
            ):  # events of events.k8s.io are not called by the name of core's
                error.message = error.message.replace(f"{stored_as} ", f"{key} ", 1)
                error.resource = key
            raise

    def respond(self, obj: Object | ListResult, status: int = 200) -> Response:
        """Answer with an object, a Status or a list."""
        target = self.media.target
        if isinstance(obj, dict) and obj.get("kind") == "Status" and obj.get("apiVersion") == "v1":
            encoded = obj
        elif target is not None:
            encoded = tables.transform(self.call, self.resource, obj, target)
        elif isinstance(obj, ListResult):
            encoded = self._list(obj)
        else:
            encoded = negotiation.shown(self.call.client, obj)
        return Response(status, negotiation.encode(self.media, encoded), self.media.media_type)

    def _list(self, result: ListResult) -> Object:
        """Return the list object: of built-in kinds the items do not repeat what they are."""
        items = [negotiation.shown(self.call.client, obj) for obj in result.items]
        kind, api_version, meta = (
            f"{self.resource.kind}List",
            self.resource.api_version,
            tables.list_meta(result),
        )
        if self.resource.custom:
            kind = self.resource.list_kind or kind
            meta = {"continue": "", **dict(sorted(meta.items()))}
            return {"apiVersion": api_version, "items": items, "kind": kind, "metadata": meta}
        for item in items:
            item.pop("kind", None)
            item.pop("apiVersion", None)
        return {"kind": kind, "apiVersion": api_version, "metadata": meta, "items": items}


def _require_verb(call: Call, resource: Resource) -> None:
    """Refuse a verb that the path does not have. Raises MethodNotAllowed."""
    info = call.info
    subresource = resource.subresource(info.subresource)
    if subresource:
        verbs = subresource.verbs
        methods = {**_OBJECT, "create": "POST"}
    elif resource.custom and info.verb in ("update", "patch") and not info.name:
        raise errors.BadRequest("name must be provided")
    elif (
        info.name
        and info.verb not in _COLLECTION_VERBS
        and not (resource.custom and info.verb == "create")
    ):
        verbs, methods = resource.verbs, _OBJECT
    else:
        verbs, methods = resource.verbs, _COLLECTION
        if resource.namespaced and not info.namespace:
            methods = {"list": "GET"}

    allowed = tuple(method for verb, method in methods.items() if verb in verbs)
    if info.verb == "watch":
        if "watch" not in verbs:
            raise errors.method_not_supported(resource.key, "watch")
    elif info.verb not in methods or info.verb not in verbs or call.request.method == "HEAD":
        raise (
            errors.method_not_supported(resource.key, info.verb)
            if resource.custom
            else (errors.method_not_allowed(allowed))
        )


# --- reads ----------------------------------------------------------------------------------------


def get(call: Call) -> Response:
    served = ServedRequest.of(call)
    lists.require_present(
        lists.parse_revision(call.request.parameter("resourceVersion")), call.client.revision()
    )
    return served.respond(served.do())


def list_(call: Call) -> Response:
    served = ServedRequest.of(call)
    chosen = parameters.list_parameters(call.request, call.info)
    page = lists.read_page(call, served.resource, served.media, chosen)
    body = page.body(call)
    if body is not None:
        return Response(200, body, served.media.media_type)
    return served.respond(page.result(call))


# --- writes ---------------------------------------------------------------------------------------


def create(call: Call) -> Response:
    served = ServedRequest.of(call)
    options = parameters.create_options(call.request)
    body = requestbody.read_object(call.request, _body_kind(served))
    _refuse_resource_version(served, body.object, options)
    return served.respond(served.do(body.object, options._replace(strict=body.strict)), 201)


def _refuse_resource_version(served: ServedRequest, obj: Object, options: CreateOptions) -> None:
    """Refuse a resource version of a new object, which storage does last of all; a dry run does not
    come there.

    Raises Status, and what else is wrong with the request.
    """
    metadata = obj.get("metadata")
    version = str(metadata.get("resourceVersion") or "0") if isinstance(metadata, dict) else "0"
    if options.dry_run or not version.isdigit() or not int(version[:20]):
        return
    with suppress(errors.AlreadyExists):
        served.do(obj, options._replace(dry_run=True))
    raise errors.Status("resourceVersion should not be set on objects to be created")


def update(call: Call) -> Response:
    served = ServedRequest.of(call)
    options = parameters.update_options(call.request)
    body = requestbody.read_object(call.request, _body_kind(served))
    return _respond_to_change(served, body.object, options._replace(strict=body.strict))


def patch(call: Call) -> Response:
    served = ServedRequest.of(call)
    options = parameters.patch_options(
        call.request, requestbody.require_patch_type(call.request, served.resource)
    )
    body = requestbody.read_patch(call.request, served.resource)
    if (
        body.object.type == APPLY_PATCH
        and body.strict.repeated
        and options.field_validation == "Strict"
    ):
        raise errors.BadRequest(
            "error strict decoding YAML: error converting YAML to JSON: "
            + ", ".join(body.strict.texts())
        )

    return _respond_to_change(served, body.object, options._replace(strict=body.strict))


def _body_kind(served: ServedRequest) -> Resource:
    """Return the kind of the body: of some subresources it is another one than the resource's, as a
    Scale."""
    resource = served.resource
    subresource = resource.subresource(served.call.info.subresource)
    if subresource is None or subresource.kind == resource.kind:
        return resource
    return Resource(resource.plural, subresource.kind, subresource.group, subresource.version)


def _respond_to_change(served: ServedRequest, body: Any, options: Options) -> Response:
    """Update or patch an object: 201 if that created it."""
    call, resource = served.call, served.resource
    is_new = False
    if not call.info.subresource:
        try:
            call.client.get(resource.gvr, call.info.name, namespace=call.info.namespace)
        except errors.NotFound:
            is_new = True
    return served.respond(served.do(body, options), 201 if is_new else 200)


# --- deletions ------------------------------------------------------------------------------------


def delete(call: Call) -> Response:
    served, info = ServedRequest.of(call), call.info
    deletion = _read_deletion(call)
    left = served.do(None, deletion.options)
    metadata = left["metadata"]
    finalizers = metadata.get("finalizers")
    if left["kind"] == "Namespace":
        finalizers = finalizers or (left.get("spec") or {}).get("finalizers")
    remains = bool(finalizers) or (metadata.get("deletionGracePeriodSeconds") or 0) > 0
    status = 202 if remains and deletion.orphan_dependents is False else 200
    if remains or served.resource.key in _RETURNED:
        return served.respond(left, status)
    details = {
        "name": info.name,
        "group": info.api_group,
        "kind": info.resource,
        "uid": metadata["uid"],
    }
    return served.respond(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {name: value for name, value in details.items() if value},
        },
        status,
    )


def delete_collection(call: Call) -> Response:
    served = ServedRequest.of(call)
    chosen = parameters.list_parameters(call.request, call.info)
    if chosen.resource_version not in ("", "0") and not chosen.resource_version_match:
        chosen = chosen._replace(
            resource_version_match="Exact"
        )  # it is listed in chunks, and so exactly

    deletion = _read_deletion(call).options
    page = lists.read_page(call, served.resource, served.media, chosen).result(call)
    with call.client.joined():
        for obj in page.items:
            with suppress(errors.NotFound):
                call.client.delete(
                    served.resource.gvr, name_of(obj), namespace=namespace_of(obj), options=deletion
                )

    return served.respond(page)


def _read_deletion(call: Call) -> parameters.DeleteParameters:
    """Read the options of a deletion: from its body, or without one from the query."""
    if call.request.body:
        return parameters.read_deletion(requestbody.read_delete_options(call.request))
    return parameters.read_deletion(parameters.deletion_of_query(call.request))


BY_VERB: dict[str, Handler] = {
    "get": get,
    "list": list_,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
