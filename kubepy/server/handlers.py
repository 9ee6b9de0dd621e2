"""The handlers of objects: get, list, create, update, patch, delete and deletecollection.

A handler takes a HandlerContext and returns its Response; it raises the Status of a request that
fails.
Upstream: ``apiserver/pkg/endpoints/handlers``, ``pkg/endpoints/installer.go``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple, cast

from kubepy.api import errors
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.scheme import CREATE_ONLY, Resource
from kubepy.api.values.names import path_segment
from kubepy.apiserver.request import APPLY_PATCH, CreateOptions, Options, Request, WriteOptions
from kubepy.quoting import quote
from kubepy.server import encodings, lists, negotiation, parameters, requestbody, tables
from kubepy.server.messages import Handler, HandlerContext, Response
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

    context: HandlerContext
    resource: Resource
    media: MediaType

    @classmethod
    def of(cls, context: HandlerContext) -> ServedRequest:
        """Find out what a request asks for.

        Raises NotFound, MethodNotAllowed, UnsupportedMediaType (of a patch), NotAcceptable.
        """
        resource = find_resource(context.cluster.scheme, context.info)
        _require_verb(context, resource)
        if complaints := path_segment(context.info.name):
            raise errors.BadRequest(
                f"Name parameter invalid: {quote(context.info.name)}: {';'.join(complaints)}"
            )

        if context.info.verb == "patch":
            requestbody.require_patch_type(context.request, resource)
        if not resource.custom:
            streamed = negotiation.STREAMED if context.info.verb in ("list", "watch") else ()
            negotiation.require_acceptable(context.request, negotiation.SUPPORTED + streamed)
        restrictions = Restrictions(
            transforms=True,
            tables=_has_tables(resource, context.info.subresource),
            protobuf=not resource.custom,
        )
        media = negotiation.negotiate(context.request, restrictions)
        return cls(context, resource, media)

    def do(self, body: Any = None, options: Options | None = None) -> Object:
        """Carry out the request. Raises Status."""
        info = self.context.info
        request = Request(
            info.verb,
            self.resource.gvr,
            info.namespace if self.resource.namespaced else "",
            info.name,
            info.subresource,
            options,
        )
        try:
            return cast(Object, self.context.client.do(request, body))
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
            encoded = tables.transform(self.context, self.resource, obj, target)
        elif isinstance(obj, ListResult):
            encoded = self._list(obj)
        else:
            encoded = negotiation.shown(self.context.client, obj)
        return Response(status, negotiation.encode(self.media, encoded), self.media.media_type)

    def respond_to_write(self, obj: Object, status: int, *, is_dry_run: bool) -> Response:
        """Answer with an object as it was written, and let watches have its encoding."""
        response = self.respond(obj, status)
        if not is_dry_run and obj.get("kind") == self.resource.kind:
            encodings.keep_answer(self.context, self.resource, self.media, obj, response.body)
        return response

    def _list(self, result: ListResult) -> Object:
        """Return the list object: of built-in kinds the items do not repeat what they are."""
        items = [negotiation.shown(self.context.client, obj) for obj in result.items]
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


def _has_tables(resource: Resource, subresource: str) -> bool:
    """Tell whether a backend converts its objects to tables (``rest.TableConvertor``): reviews and
    the actions of objects, such as ``binding`` and ``eviction``, do not."""
    if subresource:
        return subresource in ("status", "scale")
    return resource.verbs != CREATE_ONLY


def _require_verb(context: HandlerContext, resource: Resource) -> None:
    """Refuse a verb that the path does not have. Raises MethodNotAllowed."""
    info = context.info
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
    elif info.verb not in methods or info.verb not in verbs or context.request.method == "HEAD":
        raise (
            errors.method_not_supported(resource.key, info.verb)
            if resource.custom
            else (errors.method_not_allowed(allowed))
        )


# --- reads ----------------------------------------------------------------------------------------


def get(context: HandlerContext) -> Response:
    served = ServedRequest.of(context)
    lists.require_present(
        lists.parse_revision(context.request.parameter("resourceVersion")),
        context.client.revision(),
    )
    return served.respond(served.do())


def list_(context: HandlerContext) -> Response:
    served = ServedRequest.of(context)
    chosen = parameters.list_parameters(context.request, context.info)
    page = lists.read_page(context, served.resource, served.media, chosen)
    body = page.body(context)
    if body is not None:
        return Response(200, body, served.media.media_type)
    return served.respond(page.result(context))


# --- writes ---------------------------------------------------------------------------------------


def create(context: HandlerContext) -> Response:
    served = ServedRequest.of(context)
    options = parameters.create_options(context.request)
    body = requestbody.read_object(context.request, _body_kind(served))
    _refuse_resource_version(served, body.object, options)
    created = served.do(body.object, options._replace(strict=body.strict))
    return served.respond_to_write(created, 201, is_dry_run=options.dry_run)


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


def update(context: HandlerContext) -> Response:
    served = ServedRequest.of(context)
    options = parameters.update_options(context.request)
    body = requestbody.read_object(context.request, _body_kind(served))
    options = options._replace(strict=body.strict)
    return _respond_to_change(served, body.object, options, may_create=True)


def patch(context: HandlerContext) -> Response:
    served = ServedRequest.of(context)
    options = parameters.patch_options(
        context.request, requestbody.require_patch_type(context.request, served.resource)
    )
    body = requestbody.read_patch(context.request, served.resource)
    is_applied = body.object.type == APPLY_PATCH
    if is_applied and body.strict.repeated and options.field_validation == "Strict":
        raise errors.BadRequest(
            "error strict decoding YAML: error converting YAML to JSON: "
            + ", ".join(body.strict.texts())
        )

    options = options._replace(strict=body.strict)
    return _respond_to_change(served, body.object, options, may_create=is_applied)


def _body_kind(served: ServedRequest) -> Resource:
    """Return the kind of the body: of some subresources it is another one than the resource's, as a
    Scale."""
    resource = served.resource
    subresource = resource.subresource(served.context.info.subresource)
    if subresource is None or subresource.kind == resource.kind:
        return resource
    return Resource(resource.plural, subresource.kind, subresource.group, subresource.version)


def _respond_to_change(
    served: ServedRequest, body: Any, options: WriteOptions, *, may_create: bool
) -> Response:
    """Update or patch an object: 201 if that created it."""
    context, resource = served.context, served.resource
    is_new = False
    if may_create and not context.info.subresource:
        try:
            context.client.get(resource.gvr, context.info.name, namespace=context.info.namespace)
        except errors.NotFound:
            is_new = True
    written = served.do(body, options)
    status = 201 if is_new else 200
    return served.respond_to_write(written, status, is_dry_run=options.dry_run)


# --- deletions ------------------------------------------------------------------------------------


def delete(context: HandlerContext) -> Response:
    served, info = ServedRequest.of(context), context.info
    deletion = _read_deletion(context)
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


def delete_collection(context: HandlerContext) -> Response:
    served = ServedRequest.of(context)
    chosen = parameters.list_parameters(context.request, context.info)
    if chosen.resource_version not in ("", "0") and not chosen.resource_version_match:
        chosen = chosen._replace(
            resource_version_match="Exact"
        )  # it is listed in chunks, and so exactly

    deletion = _read_deletion(context).options
    page = lists.read_page(context, served.resource, served.media, chosen).result(context)
    with context.client.joined():
        for obj in page.items:
            with suppress(errors.NotFound):
                context.client.delete(
                    served.resource.gvr, name_of(obj), namespace=namespace_of(obj), options=deletion
                )

    return served.respond(page)


def _read_deletion(context: HandlerContext) -> parameters.DeleteParameters:
    """Read the options of a deletion: from its body, or without one from the query."""
    if context.request.body:
        return parameters.read_deletion(requestbody.read_delete_options(context.request))
    return parameters.read_deletion(parameters.deletion_of_query(context.request))


BY_VERB: dict[str, Handler] = {
    "get": get,
    "list": list_,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
