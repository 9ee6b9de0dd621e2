"""The paths of OpenAPI documents: each resource's operations with their parameters, bodies and
answers.

Upstream: ``registerResourceHandlers`` in ``apiserver/pkg/endpoints/installer.go``,
``endpoints/openapi/openapi.go``, and ``apiextensions-apiserver/pkg/controller/openapi/builder`` for
custom resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import schema_for
from kubepy.api.scheme import Resource, Subresource
from kubepy.server.messages import JSON, PROTOBUF, YAML

Parameters = list[Object]

SCHEMAS = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
PROXY_METHODS = ("delete", "get", "head", "options", "patch", "post", "put")
# Resources whose deletion answers with what was deleted, as others do with a Status.
RETURNED = frozenset(
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
_QUERY = {
    "allowWatchBookmarks": ("boolean", "Ask for bookmarks in a watch."),
    "command": ("string", "The command, a parameter for each of its words."),
    "container": ("string", "The container; the only one of a pod by default."),
    "continue": ("string", "The continue token of the page before."),
    "dryRun": ("string", "All: do everything but store the result."),
    "fieldManager": ("string", "The name of the client that makes the change."),
    "fieldSelector": ("string", "Choose objects by their fields."),
    "fieldValidation": (
        "string",
        "Treatment of unknown and duplicate fields: Ignore, Warn or Strict.",
    ),
    "follow": ("boolean", "Follow the log."),
    "force": ("boolean", "Take over the fields of other managers in server-side apply."),
    "gracePeriodSeconds": ("integer", "Seconds until the object is deleted; its own by default."),
    "ignoreStoreReadErrorWithClusterBreakingPotential": (
        "boolean",
        "Delete an object that can't be read.",
    ),
    "insecureSkipTLSVerifyBackend": ("boolean", "Don't check the certificate of the kubelet."),
    "labelSelector": ("string", "Choose objects by their labels."),
    "limit": ("integer", "The most objects of a page."),
    "limitBytes": ("integer", "The most bytes of the log."),
    "orphanDependents": ("boolean", "Deprecated: use propagationPolicy."),
    "path": ("string", "The path of the request that is passed on."),
    "ports": ("integer", "The ports that are forwarded."),
    "pretty": ("string", "If 'true', then the output is pretty printed."),
    "previous": ("boolean", "The log of the container's previous run."),
    "propagationPolicy": ("string", "Treatment of dependents: Orphan, Background or Foreground."),
    "resourceVersion": ("string", "The resource version that the answer is to be of."),
    "resourceVersionMatch": (
        "string",
        "Relation of the answer to resourceVersion: Exact or NotOlderThan.",
    ),
    "sendInitialEvents": ("boolean", "Begin a watch with all objects that there are."),
    "shardSelector": ("string", "Choose objects by a shard; not supported."),
    "sinceSeconds": ("integer", "The log of so many seconds."),
    "stderr": ("boolean", "Take the container's standard error."),
    "stdin": ("boolean", "Give the container its standard input."),
    "stdout": ("boolean", "Take the container's standard output."),
    "stream": ("string", "The stream of the log."),
    "tailLines": ("integer", "The last lines of the log."),
    "timeoutSeconds": ("integer", "Seconds after which a list or watch ends."),
    "timestamps": ("boolean", "Begin each line of the log with its time."),
    "tty": ("boolean", "Give the container a terminal."),
    "watch": ("boolean", "Watch the objects instead of listing them."),
}
_SELECT = (
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
)
_LIST = (*_SELECT, "allowWatchBookmarks", "watch")
_DELETE = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_ATTACH = ("container", "stderr", "stdin", "stdout", "tty")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "attach": _ATTACH,
    "exec": ("command", *_ATTACH),
    "portforward": ("ports",),
    "proxy": ("path",),
    "log": (
        "container",
        "follow",
        "insecureSkipTLSVerifyBackend",
        "limitBytes",
        "previous",
        "sinceSeconds",
        "stream",
        "tailLines",
        "timestamps",
    ),
}


class Operation(NamedTuple):
    """One method of one path.

    :ivar verb: what the operation's id begins with: ``list``, ``read``, ``replace`` …
    :ivar subject: the rest of the id: ``NamespacedPodStatus``.
    :ivar action: of ``x-kubernetes-action``.
    :ivar kind: group, version and kind of ``x-kubernetes-group-version-kind``.
    :ivar answer: the type of the answer, "" for text; ``body`` that of the request, "" for none.
    """

    method: str
    path: str
    verb: str
    subject: str
    action: str
    kind: tuple[str, str, str]
    description: str
    query: tuple[str, ...] = ()
    answer: str = ""
    body: str = ""


def paths_of(group: str, version: str, resources: Iterable[Resource]) -> dict[str, Object]:
    """Return the paths of a group and version, below ``/apis/GROUP/VERSION`` or ``/api/v1``,
    sorted."""
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    items: dict[str, dict[str, Object]] = {}
    for resource in resources:
        if not resource.custom and not items:
            items[f"{root}/"] = {
                "get": information(
                    f"{root}/",
                    "get",
                    "APIResources",
                    "get available resources",
                    f"{META}.APIResourceList",
                )
            }
        for operation in _operations(root, resource):
            items.setdefault(operation.path, {})[operation.method] = _operation(
                root, resource, operation
            )

    return {path: _with_common_parameters(items[path]) for path in sorted(items)}


def information(
    path: str,
    verb: str,
    subject: str,
    description: str,
    answer: str,
    media_types: Iterable[str] = (JSON, YAML, PROTOBUF),
) -> Object:
    """Return the operation of a path that is no resource."""
    prefix, tag = _names_of(path)
    return {
        "tags": [tag],
        "description": description,
        "operationId": f"{verb}{prefix}{subject}",
        "responses": _responses((200,), media_types, answer),
    }


# --- the operations of a resource -----------------------------------------------------------------


def _operations(root: str, resource: Resource) -> Iterator[Operation]:
    """Yield the operations of a resource and its subresources."""
    kind = resource.kind
    place, scope = f"{root}/{resource.plural}", ""
    if resource.namespaced:
        place, scope = f"{root}/namespaces/{{namespace}}/{resource.plural}", "Namespaced"
    make = _Maker((resource.group, resource.version, kind))
    if resource.namespaced and "list" in resource.verbs:
        yield make(
            "get",
            f"{root}/{resource.plural}",
            "list",
            f"{kind}ForAllNamespaces",
            query=_LIST,
            answer=list_type(resource),
            description=_listing(resource),
        )

    yield from _collection_operations(make, place, f"{scope}{kind}", resource)
    yield from _object_operations(make, f"{place}/{{name}}", f"{scope}{kind}", resource)
    if "watch" in resource.verbs and not resource.custom:
        yield from _watch_operations(make, root, f"{scope}{kind}", resource)
    for name in sorted(resource.subresources):
        if (subresource := resource.subresource(name)) is not None:
            suffix = f"{scope}{kind}{name.capitalize()}"
            yield from _subresource_operations(
                f"{place}/{{name}}/{name}", suffix, resource, subresource
            )


class _Maker(NamedTuple):
    """Makes the operations of one kind."""

    kind: tuple[str, str, str]

    def __call__(
        self, method: str, path: str, verb: str, subject: str, **details: Any
    ) -> Operation:
        """Return an operation; its action and description follow from the verb unless they are
        among the details."""
        name = self.kind[2]
        implied = {
            "create": ("post", f"create {with_article(name)}"),
            "read": ("get", f"read the specified {name}"),
            "replace": ("put", f"replace the specified {name}"),
            "delete": ("delete", f"delete {with_article(name)}"),
            "patch": ("patch", f"partially update the specified {name}"),
        }
        action, description = implied.get(verb, (verb, ""))
        return Operation(
            method,
            path,
            verb,
            subject,
            **{"action": action, "kind": self.kind, "description": description, **details},
        )


def _collection_operations(
    make: _Maker, place: str, subject: str, resource: Resource
) -> Iterator[Operation]:
    type_ = type_name(resource)
    if "list" in resource.verbs:
        yield make(
            "get",
            place,
            "list",
            subject,
            query=_LIST,
            answer=list_type(resource),
            description=_listing(resource),
        )

    if "create" in resource.verbs:
        yield make("post", place, "create", subject, query=_WRITE, answer=type_, body=type_)
    if "deletecollection" in resource.verbs and resource.custom:
        yield make(
            "delete",
            place,
            "delete",
            f"Collection{subject}",
            query=_LIST,
            answer=f"{META}.Status",
            action="deletecollection",
            description=f"delete collection of {resource.kind}",
        )
    elif "deletecollection" in resource.verbs:
        yield make(
            "delete",
            place,
            "delete",
            f"Collection{subject}",
            query=(*_SELECT, *_DELETE),
            answer=f"{META}.Status",
            body=f"{META}.DeleteOptions",
            action="deletecollection",
            description=f"delete collection of {resource.kind}",
        )


def _listing(resource: Resource) -> str:
    is_watched = "watch" in resource.verbs and not resource.custom
    return f"list {'or watch ' if is_watched else ''}objects of kind {resource.kind}"


def _object_operations(
    make: _Maker, place: str, subject: str, resource: Resource
) -> Iterator[Operation]:
    type_ = type_name(resource)
    if "get" in resource.verbs:
        yield make(
            "get",
            place,
            "read",
            subject,
            query=("resourceVersion",) if resource.custom else (),
            answer=type_,
        )

    if "update" in resource.verbs:
        yield make("put", place, "replace", subject, query=_WRITE, answer=type_, body=type_)
    if "patch" in resource.verbs:
        yield make(
            "patch",
            place,
            "patch",
            subject,
            query=(*_WRITE, "force"),
            answer=type_,
            body=f"{META}.Patch",
        )

    if "delete" in resource.verbs:
        yield make(
            "delete",
            place,
            "delete",
            subject,
            query=_DELETE,
            answer=type_ if resource.key in RETURNED else f"{META}.Status",
            body=f"{META}.DeleteOptions",
        )


def _watch_operations(
    make: _Maker, root: str, subject: str, resource: Resource
) -> Iterator[Operation]:
    """Yield the deprecated watches of their own paths."""
    kind, answer = resource.kind, f"{META}.WatchEvent"
    place, advice = (
        f"{root}/watch/{resource.plural}",
        "use the 'watch' parameter with a list operation instead",
    )
    whole = {
        "query": _LIST,
        "answer": answer,
        "action": "watchlist",
        "description": f"watch individual changes to a list of {kind}. deprecated: {advice}.",
    }
    if resource.namespaced:
        yield make("get", place, "watch", f"{kind}ListForAllNamespaces", **whole)
        place = f"{root}/watch/namespaces/{{namespace}}/{resource.plural}"
    yield make("get", place, "watch", f"{subject}List", **whole)
    yield make(
        "get",
        f"{place}/{{name}}",
        "watch",
        subject,
        query=_LIST,
        answer=answer,
        description=f"watch changes to an object of kind {kind}. deprecated: {advice}, filtered "
        f"to a single "
        "item with the 'fieldSelector' parameter.",
    )


def _subresource_operations(
    place: str,
    subject: str,
    resource: Resource,
    subresource: Subresource,
) -> Iterator[Operation]:
    name, parent = subresource.name, resource.kind
    group, version = subresource.group or resource.group, subresource.version or resource.version
    make = _Maker(
        (resource.group, resource.version, parent)
        if resource.custom
        else (group, version, subresource.kind)
    )
    if name in _OPTIONS and name != "log":
        yield from _connections(make, place, subject, name, parent)
        return
    own_kind = subresource.kind == resource.kind
    type_ = type_name(resource) if own_kind else kind_name(group, version, subresource.kind)
    if "create" in subresource.verbs:
        yield make(
            "post",
            place,
            "create",
            subject,
            query=_WRITE,
            answer=type_,
            body=type_,
            description=f"create {name} of {with_article(parent)}",
        )

    if "get" in subresource.verbs:
        is_log = name == "log"
        query: tuple[str, ...] = ("resourceVersion",) if resource.custom else ()
        if is_log:
            query = _OPTIONS["log"]
        yield make(
            "get",
            place,
            "read",
            subject,
            query=query,
            answer="" if is_log else type_,
            description=f"read {name} of the specified {parent}",
        )

    if "update" in subresource.verbs:
        yield make(
            "put",
            place,
            "replace",
            subject,
            query=_WRITE,
            answer=type_,
            body=type_,
            description=f"replace {name} of the specified {parent}",
        )

    if "patch" in subresource.verbs:
        yield make(
            "patch",
            place,
            "patch",
            subject,
            query=(*_WRITE, "force"),
            answer=type_,
            body=f"{META}.Patch",
            description=f"partially update {name} of the specified {parent}",
        )


def with_article(noun: str) -> str:
    """Return a noun with its article (``GetArticleForNoun``)."""
    if noun.endswith("s") and not noun.endswith("ss"):
        return noun
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


def _connections(
    make: _Maker, place: str, subject: str, name: str, parent: str
) -> Iterator[Operation]:
    for method in PROXY_METHODS if name == "proxy" else ("get", "post"):
        for path, suffix in ((place, ""), (f"{place}/{{path}}", "WithPath"))[
            : 2 if name == "proxy" else 1
        ]:
            yield make(
                method,
                path,
                "connect",
                f"{method.capitalize()}{subject}{suffix}",
                query=_OPTIONS[name],
                description=f"connect {method.upper()} requests to {name} of {parent}",
            )


# --- their form -----------------------------------------------------------------------------------


def _operation(root: str, resource: Resource, operation: Operation) -> Object:
    """Return an operation as OpenAPI v3 has it."""
    prefix, tag = _names_of(root)
    group, version, kind = operation.kind
    media_types = (JSON, YAML) if resource.custom else (JSON, YAML, PROTOBUF)
    bodies = media_types if resource.custom else ("*/*",)
    node: Object = {
        "tags": [tag],
        "description": operation.description,
        "operationId": f"{operation.verb}{prefix}{operation.subject}",
        "parameters": _parameters(operation, kind),
    }
    if operation.body:
        content = (
            [type_ for type_ in PATCHES if not (resource.custom and "strategic" in type_)]
            if operation.method == "patch"
            else bodies
        )
        node["requestBody"] = {"content": {type_: _content(operation.body) for type_ in content}}
        if operation.body != f"{META}.DeleteOptions":
            node["requestBody"]["required"] = True

    is_streamed = operation.verb in ("list", "watch") and not resource.custom
    codes = {
        "post": (200, 201, 202),
        "put": (200, 201),
        "delete": (200, 202),
        "patch": (200,) if resource.custom else (200, 201),
    }.get(operation.action, (200,))
    if operation.action == "connect":
        node["responses"] = _responses((200,), ("*/*",), "")
    elif not operation.answer:
        node["responses"] = _responses((200,), ("text/plain", *media_types), "")
    else:
        streams = STREAMS if is_streamed else ()
        node["responses"] = _responses(codes, (*media_types, *streams), operation.answer)

    return {
        **node,
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }


def _parameters(operation: Operation, kind: str) -> Parameters:
    """Return the parameters of path and query, sorted."""
    query = operation.query if operation.action == "connect" else (*operation.query, "pretty")
    described = {
        "name": f"name of the {kind}",
        "path": "path to the resource",
        "namespace": "object name and auth scope, such as for teams and projects",
    }
    in_path = [
        {
            "name": name,
            "in": "path",
            "description": text,
            "required": True,
            "schema": {"type": "string", "uniqueItems": True},
        }
        for name, text in described.items()
        if f"{{{name}}}" in operation.path
    ]
    in_query = [
        {
            "name": name,
            "in": "query",
            "description": _QUERY[name][1],
            "schema": {"type": _QUERY[name][0], "uniqueItems": True},
        }
        for name in query
    ]
    return sorted([*in_path, *in_query], key=lambda parameter: (parameter["name"], parameter["in"]))


def _with_common_parameters(item: dict[str, Object]) -> Object:
    """Return a path whose operations leave the parameters that all of them have to it."""
    operations = list(item.values())
    common = [
        parameter
        for parameter in operations[0].get("parameters", ())
        if all(parameter in other.get("parameters", ()) for other in operations[1:])
    ]
    for operation in operations:
        if "parameters" in operation:
            own = [
                parameter for parameter in operation.pop("parameters") if parameter not in common
            ]
            if own:
                operation["parameters"] = own
    return {**item, **({"parameters": common} if common else {})}


def _responses(codes: Iterable[int], media_types: Iterable[str], answer: str) -> Object:
    content = {type_: _content(answer) for type_ in media_types}
    described = {200: "OK", 201: "Created", 202: "Accepted"}
    return {
        **{str(code): {"description": described[code], "content": content} for code in codes},
        "401": {"description": "Unauthorized"},
    }


def _content(type_: str) -> Object:
    return {"schema": {"$ref": f"{SCHEMAS}{type_}"} if type_ else {"type": "string"}}


def _names_of(path: str) -> tuple[str, str]:
    """Return what stands for a path in the ids of its operations and in their tags: AppsV1,
    apps_v1."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        parts = ["apis", "core", *parts[1:]]
    if parts[0] != "apis" or len(parts) < 2:
        return "", _identifier(parts[0])
    group, *version = parts[1].removesuffix(".k8s.io"), *parts[2:3]
    tag = "_".join((_identifier(group), *map(_identifier, version)))
    return "".join(_identifier(part, capital=True) for part in (group, *version)), tag


def _identifier(text: str, *, capital: bool = False) -> str:
    """Return a text in camel case (``ToValidOperationID``)."""
    identifier = ""
    for character in text:
        if character.isalpha() or character == "_" or (identifier and character.isdigit()):
            identifier += character.upper() if capital else character
            capital = False
        else:
            capital = True
    return identifier


def type_name(resource: Resource) -> str:
    """Return the full name of the type of a resource's objects."""
    if resource.custom:
        return model_name(resource.group, resource.version, resource.kind)
    if resource.computed_from:
        return f"io.k8s.metrics.pkg.apis.metrics.{resource.version}.{resource.kind}"
    return kind_name(resource.group, resource.version, resource.kind)


def list_type(resource: Resource) -> str:
    """Return the full name of the type of a list of a resource's objects."""
    return (
        f"{type_name(resource).rpartition('.')[0]}.{resource.list_kind or f'{resource.kind}List'}"
    )


def kind_name(group: str, version: str, kind: str) -> str:
    """Return the full name of the type of a built-in kind: ``io.k8s.api.apps.v1.Deployment``."""
    schema = schema_for(f"{group}/{version}".lstrip("/"), kind)
    return schema.name if schema is not None else model_name(group, version, kind)


def model_name(group: str, version: str, kind: str) -> str:
    """Return the full name of the type of a custom kind: ``org.example.v1.Ship``."""
    return ".".join((*reversed(group.split(".")), version, kind))
