"""``kubepy get --raw``: the answer of an API server to a GET of a path.

Objects, lists, discovery, version and health are answered, from the cluster in this process; there is no server behind
it. Requests that write are in ``raw_writes``. Upstream: ``kubectl/pkg/rawhttp``, ``apiserver/pkg/endpoints``.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from kubepy.api.errors import no_such_resource
from kubepy.api.meta import Object
from kubepy.api.scheme import CREATE_ONLY, Resource, Subresource
from kubepy.api.values.goformat import quote, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.get_flags import GetOptions
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.output import in_go_order, in_sorted_order
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import types as go_types
    from kubepy.cli import version

HEALTH = ("healthz", "livez", "readyz")


class RequestTarget(NamedTuple):
    """The target of a path below a version. ``namespace`` None: all namespaces; ``name`` "": a list."""

    resource: Resource
    namespace: str | None
    name: str
    subresource: str


def validate_get(options: GetOptions) -> None:
    """Raise CliError for flags that exclude --raw, or a path that is none."""
    if options.args:
        raise CliError("arguments may not be passed when --raw is specified")
    if options.watch or options.watch_only or options.selector:
        raise CliError("--raw may not be specified with other flags that filter the server request or alter the output")
    check_path(options.raw, options.output)


def check_path(path: str, output: str) -> None:
    """Raise CliError for a --raw that no command takes."""
    if output:
        raise CliError("--raw and --output are mutually exclusive")
    if not path.startswith("/"):
        raise CliError(f"--raw must be a valid URL path: parse {quote(path)}: invalid URI for request")


def answer(factory: Factory, path: str) -> str:
    """Return the body of the answer. Raises NotFound, and errors of reading."""
    url = urlsplit(path)
    match parts_of(url):
        case ["version"]:
            return to_json(version.version_info(factory.program, of_server=True), indent=2, sort_keys=False)
        case [health] if health in HEALTH:
            return "ok"
        case ["api"]:
            return body_of({"kind": "APIVersions", "versions": ["v1"]})
        case ["apis"]:
            names = dict.fromkeys(resource.group for resource in factory.scheme if resource.group)
            groups = [_group(factory, name) for name in names]
            return body_of({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case ["apis", group]:
            return body_of({"kind": "APIGroup", "apiVersion": "v1", **_group(factory, group)})
        case ["api", name]:
            return _discovery(factory, "", name)
        case ["apis", group, name]:
            return _discovery(factory, group, name)
    return _read(factory, target_of(factory, url), url)


def parts_of(url: SplitResult) -> list[str]:
    return [unquote(part) for part in url.path.strip("/").split("/")]


def target_of(factory: Factory, url: SplitResult) -> RequestTarget:
    """Return the target of a path. Raises NotFound."""
    match parts_of(url):
        case ["api", name, *rest] if rest:
            return _target(factory, "", name, rest)
        case ["apis", group, name, *rest] if rest:
            return _target(factory, group, name, rest)
    raise no_such_resource()


def body_of(answer: Object) -> str:
    return to_json(answer, sort_keys=False) + "\n"


# --- discovery ----------------------------------------------------------------------------------------------------


def _group(factory: Factory, group: str) -> Object:
    names = dict.fromkeys(name for resource in factory.scheme if resource.group == group
                          for name in (resource.version, *resource.other_versions))
    versions = [{"groupVersion": f"{group}/{name}", "version": name} for name in names]
    if not versions or not group:
        raise no_such_resource()
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _discovery(factory: Factory, group: str, version: str) -> str:
    resources = [entry for resource in factory.scheme if _serves(resource, group, version)
                 for entry in _api_resources(resource)]
    if not resources:
        raise no_such_resource()
    return body_of({"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {}),
                    "groupVersion": f"{group}/{version}".lstrip("/"), "resources": resources})


def _serves(resource: Resource, group: str, version: str) -> bool:
    return resource.group == group and version in (resource.version, *resource.other_versions)


def _api_resources(resource: Resource) -> list[Object]:
    """Return the entries of discovery for a resource and its subresources."""
    own: Object = {"name": resource.plural, "singularName": "" if resource.computed_from else resource.singular_name,
                   "namespaced": resource.namespaced, "kind": resource.kind, "verbs": list(resource.verbs)}
    names = (("shortNames", resource.short_names), ("categories", resource.categories))
    own |= {key: list(values) for key, values in names if values}
    if resource.verbs != CREATE_ONLY and "create" in resource.verbs:  # resources that are not stored have no hash
        group = "" if resource.kind == "Event" else resource.group  # events of both groups are stored as those of core
        stored = f"{group}/{resource.version}/{resource.kind}"
        digest = hashlib.sha256(stored.encode()).digest()[:8]  # as discovery.StorageVersionHash
        own["storageVersionHash"] = base64.b64encode(digest).decode()
    return [own, *(_subresource(resource, subresource) for name in resource.subresources
                   if (subresource := resource.subresource(name)))]


def _subresource(resource: Resource, subresource: Subresource) -> Object:
    group_version = {"group": subresource.group, "version": subresource.version} if subresource.group else {}
    return {"name": f"{resource.plural}/{subresource.name}", "singularName": "", "namespaced": resource.namespaced,
            **group_version, "kind": subresource.kind, "verbs": list(subresource.verbs)}


# --- objects ------------------------------------------------------------------------------------------------------


def _target(factory: Factory, group: str, version: str, rest: list[str]) -> RequestTarget:
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        _, namespace, *rest = rest
    plural, name, subresource = (*rest, "", "")[:3]
    resource = next((resource for resource in factory.scheme
                     if resource.plural == plural and _serves(resource, group, version)), None)
    if resource is None or len(rest) > 3 or (resource.namespaced != (namespace is not None) and (name or namespace)):
        raise no_such_resource()
    return RequestTarget(resource.at(version), namespace, name, subresource)


def _read(factory: Factory, target: RequestTarget, url: SplitResult) -> str:
    factory.catch_up()
    if not target.name:
        return _list(factory, target, parse_qs(url.query))
    if target.subresource == "scale":
        return body_of(shown(factory, factory.client.get(target.resource.gvr, target.name,
                                                         namespace=target.namespace or "", subresource="scale")))
    if target.subresource and target.subresource not in target.resource.subresources:
        raise no_such_resource()
    return body_of(shown(factory, factory.client.get(target.resource.gvr, target.name,
                                                     namespace=target.namespace or "")))


def _list(factory: Factory, target: RequestTarget, query: dict[str, list[str]]) -> str:
    resource = target.resource
    objects = factory.client.list(resource.gvr, namespace=target.namespace,
                                  label_selector=query.get("labelSelector", [""])[-1],
                                  field_selector=query.get("fieldSelector", [""])[-1])
    items = [shown(factory, obj) for obj in objects.items]
    if not resource.custom:
        items = [{key: value for key, value in obj.items() if key not in ("kind", "apiVersion")} for obj in items]
    kinds = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
    meta = {"metadata": {"resourceVersion": objects.resource_version}}
    if resource.custom:
        return body_of({"apiVersion": kinds["apiVersion"], "items": items, "kind": kinds["kind"], **meta})
    return body_of({**kinds, **meta, "items": items})


def shown(factory: Factory, obj: Object) -> Any:
    whole = factory.client.with_managed_fields(obj)
    return in_go_order(whole) if go_types.type_of(whole) else in_sorted_order(whole)
