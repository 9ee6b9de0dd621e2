"""Discovery: which groups, versions and resources there are, in its legacy form and aggregated into
one document.

Upstream: ``apiserver/pkg/endpoints/discovery``, ``kube-aggregator/pkg/apiserver/handler_apis.go``,
and ``apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go`` for custom
resources.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import lru_cache

from kubepy.api.errors import NotAcceptable, method_not_allowed, no_such_resource
from kubepy.api.meta import Object
from kubepy.api.schema.customresources import version_rank
from kubepy.api.scheme import AGGREGATED, BUILT_IN, CREATE_ONLY, Resource, Subresource
from kubepy.api.values.goformat import to_json
from kubepy.server import negotiation
from kubepy.server.messages import PROTOBUF, Handler, HandlerContext, RequestInfo, Response
from kubepy.server.requestinfo import path_not_found

Resources = Iterable[Resource]
Groups = dict[str, dict[str, list[Resource]]]

GROUP = "apidiscovery.k8s.io"
KIND = "APIGroupDiscoveryList"
VERSIONS = ("v2", "v2beta1")
PLAIN_JSON = negotiation.MediaType()


def served_groups(resources: Resources) -> Groups:
    """Sort resources by their groups and versions: groups as discovery orders them, the preferred
    version first."""
    groups: Groups = {}
    for resource in resources:
        for version in (resource.version, *resource.other_versions):
            groups.setdefault(resource.group, {}).setdefault(version, []).append(
                resource.at(version)
            )
    for group, versions in groups.items():
        if len(versions) > 1 and any(
            resource.custom for listed in versions.values() for resource in listed
        ):
            ranked = sorted(versions, key=version_rank, reverse=True)
            groups[group] = {version: versions[version] for version in ranked}
    return groups


# --- legacy documents -----------------------------------------------------------------------------


def api_versions(address: str) -> Object:
    """Return the answer to ``/api``. ``address``: host and port of the server, "" for none."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}] if address else []
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(resources: Resources) -> Object:
    """Return the answer to ``/apis``."""
    groups = served_groups(resources)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in groups.items() if name],
    }


def api_group(resources: Resources, group: str) -> Object:
    """Return the answer to ``/apis/GROUP``. Raises NotFound."""
    versions = served_groups(resources).get(group)
    if not versions:
        raise path_not_found()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def _group(name: str, versions: Iterable[str]) -> Object:
    named = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": named, "preferredVersion": named[0]}


def resource_list(resources: Resources, group: str, version: str) -> Object:
    """Return the answer to ``/api/v1`` and ``/apis/GROUP/VERSION``. Raises NotFound."""
    listed = served_groups(resources).get(group, {}).get(version)
    if not listed:
        raise no_such_resource() if group in _BUILT_IN_GROUPS else path_not_found()
    return {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": f"{group}/{version}".lstrip("/"),
        "resources": [entry for resource in listed for entry in _legacy_entries(resource)],
    }


def _legacy_entries(resource: Resource) -> list[Object]:
    """Return the entries of a resource and of its subresources (``metav1.APIResource``)."""
    own: Object = {
        "name": resource.plural,
        "singularName": singular_name(resource),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.listed_verbs),
        **_names(resource),
    }
    if digest := _storage_version_hash(resource):
        own["storageVersionHash"] = digest
    return [
        own,
        *(_legacy_subresource(resource, subresource) for subresource in _subresources(resource)),
    ]


def _legacy_subresource(resource: Resource, subresource: Subresource) -> Object:
    group_version = (
        {"group": subresource.group, "version": subresource.version} if subresource.group else {}
    )
    return {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        **group_version,
        "kind": subresource.kind,
        "verbs": list(subresource.verbs),
    }


def singular_name(resource: Resource) -> str:
    """Return the singular name that discovery gives; metrics-server's resources have none."""
    return "" if resource.computed_from else resource.singular_name


def _names(resource: Resource) -> Object:
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {key: values for key, values in names.items() if values}


def _subresources(resource: Resource) -> list[Subresource]:
    """Return the subresources in the order of discovery: by name; of a custom resource ``status``
    goes first."""
    names = sorted(resource.subresources, reverse=resource.custom)
    return [
        subresource for name in names if (subresource := resource.subresource(name)) is not None
    ]


def _storage_version_hash(resource: Resource) -> str:
    """Return the hash of the kind in the version in which it is stored (``StorageVersionHash``), ""
    for others."""
    if resource.verbs == CREATE_ONLY or "create" not in resource.verbs:
        return ""
    group = (
        "" if resource.kind == "Event" and not resource.custom else resource.group
    )  # both groups share a storage
    stored = (
        resource.storage_version
        or _STORED.get(resource.key)
        or _PREFERRED.get(resource.key, resource.version)
    )
    if resource.custom and stored not in (resource.version, *resource.other_versions):
        return ""
    digest = hashlib.sha256(f"{group}/{stored}/{resource.kind}".encode()).digest()[:8]
    return base64.b64encode(digest).decode()


_PREFERRED = {resource.key: resource.version for resource in BUILT_IN}
_STORED = dict.fromkeys(
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    ),
    "v1beta1",
)
_BUILT_IN_GROUPS = {resource.group for resource in BUILT_IN}


# --- aggregated documents -------------------------------------------------------------------------


def aggregated_list(groups: Groups, version: str) -> Object:
    """Return an APIGroupDiscoveryList of groups, in version v2 or v2beta1."""
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": served,
                    "resources": [_entry(resource) for resource in listed],
                    "freshness": "Current",
                }
                for served, listed in versions.items()
            ],
        }
        for name, versions in groups.items()
    ]
    return {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "metadata": {}, "items": items}


def _entry(resource: Resource) -> Object:
    """Return an ``APIResourceDiscovery``. Built-in kinds leave group and version to the document
    around them."""
    own = (resource.group, resource.version) if resource.custom else ("", "")
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource.kind, *own),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": singular_name(resource),
        "verbs": list(resource.listed_verbs),
        **_names(resource),
    }
    subresources = [
        {
            "subresource": subresource.name,
            "responseKind": _kind(
                subresource.kind, subresource.group or own[0], subresource.version or own[1]
            ),
            "verbs": list(subresource.verbs),
        }
        for subresource in _subresources(resource)
    ]
    return {**entry, "subresources": subresources} if subresources else entry


def _kind(kind: str, group: str, version: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


@lru_cache(maxsize=8)
def _aggregated_json(
    custom: tuple[Resource, ...], version: str, *, is_core: bool
) -> tuple[Object, bytes, str]:
    """Return an aggregated document of the built-in resources and custom ones, its JSON and its
    ETag."""
    groups = served_groups((*BUILT_IN, *custom, *AGGREGATED))
    chosen = {name: versions for name, versions in groups.items() if (name == "") == is_core}
    document = aggregated_list(chosen, version)
    encoded = to_json(document, sort_keys=False).encode() + b"\n"
    return document, encoded, f'"{hashlib.sha512(encoded).hexdigest().upper()}"'


# --- answers --------------------------------------------------------------------------------------


class DiscoveryRestrictions(negotiation.Restrictions):
    """Only the aggregated documents are asked for: they go before others, whatever their
    quality."""

    def allow(self, media_type: str, target: negotiation.GroupVersionKind | None) -> bool:
        return (
            target is not None
            and media_type != PROTOBUF
            and target.version in VERSIONS
            and (target.group, target.kind) == (GROUP, KIND)
        )


def find_handler(info: RequestInfo) -> Handler:
    """Return the handler of a path of discovery."""
    return serve


def serve(context: HandlerContext) -> Response:
    """Answer ``/api``, ``/apis`` and the paths of groups and versions below them.

    Those of built-in versions are routes of go-restful, which are particular about methods and
    media types; the others are not. Raises NotFound, MethodNotAllowed, NotAcceptable.
    """
    scheme = context.cluster.scheme
    scheme.forget_custom()
    parts = context.info.parts
    is_route = parts[0] == "api" or (len(parts) == 3 and parts[1] in _BUILT_IN_GROUPS)
    if (
        context.info.path in ("/api", "/api/", "/apis")
        and (context.info.verb == "get" or not is_route)
        and (aggregated := _aggregated(context))
    ):
        return aggregated

    match parts:
        case ("api",):
            document = api_versions(context.request.header("host"))
        case ("apis",):
            document = group_list(scheme)
        case ("apis", group):
            document = api_group(scheme, group)
        case ("api", version):
            document = resource_list(scheme, "", version)
        case ("apis", group, version):
            document = resource_list(scheme, group, version)
        case _:
            raise path_not_found()

    if is_route and context.info.verb != "get":
        raise method_not_allowed()
    if is_route and len(parts) > 1:
        negotiation.require_acceptable(context.request, negotiation.SUPPORTED)
    return negotiation.answer(context.request, document)


def _aggregated(context: HandlerContext) -> Response | None:
    """Return the aggregated document if the client accepts it."""
    try:
        media = negotiation.negotiate(context.request, DiscoveryRestrictions())
    except NotAcceptable:
        return None

    if media.target is None:
        return None
    custom = tuple(resource for resource in context.cluster.scheme if resource.custom)
    document, encoded, tag = _aggregated_json(
        custom, media.target.version, is_core=context.info.parts == ("api",)
    )
    headers = (("ETag", tag), ("Vary", "Accept"), ("Cache-Control", "public"))
    if context.request.header("if-none-match") == tag:
        return Response(304, b"", "", headers)
    body = (
        encoded
        if media._replace(target=None) == PLAIN_JSON
        else negotiation.encode(media, document)
    )
    return Response(
        200, body, f"{media.media_type};g={GROUP};v={media.target.version};as={KIND}", headers
    )
