"""``kubepy get --raw``: what an API server would answer a GET of a path with.

Objects, lists, discovery, version and health are answered, from the cluster in this process; there is no server behind
it. Requests that write are in ``raw_writes``. Upstream: ``kubectl/pkg/rawhttp``, ``apiserver/pkg/endpoints``.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from kubepy.api.errors import no_such_resource
from kubepy.api.meta import Object
from kubepy.api.scheme import CREATE_ONLY, Resource
from kubepy.api.values.goformat import quote, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.get_flags import GetOptions
from kubepy.cli.runtime.factory import Factory

HEALTH = ("healthz", "livez", "readyz")


class Target(NamedTuple):
    """What a path below a version names. ``namespace`` None: objects of all; ``name`` "": a list."""

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
    """The body of the answer. Raises NotFound and what reading raises."""
    url = urlsplit(path)
    match parts_of(url):
        case ["version"]:
            return _version()
        case [health] if health in HEALTH:
            return "ok"
        case ["api"]:
            return body_of({"kind": "APIVersions", "versions": ["v1"]})
        case ["apis"]:
            return body_of({"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(factory)})
        case ["apis", group]:
            return body_of({"kind": "APIGroup", "apiVersion": "v1", **_group(factory, group)})
        case ["api", version]:
            return _discovery(factory, "", version)
        case ["apis", group, version]:
            return _discovery(factory, group, version)
    return _read(factory, target_of(factory, url), url)


def parts_of(url: SplitResult) -> list[str]:
    return [unquote(part) for part in url.path.strip("/").split("/")]


def target_of(factory: Factory, url: SplitResult) -> Target:
    """What a path names. Raises NotFound."""
    match parts_of(url):
        case ["api", version, *rest] if rest:
            return _target(factory, "", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _target(factory, group, version, rest)
    raise no_such_resource()


def _version() -> str:
    from kubepy.cli.version import version_info

    return to_json(version_info(), indent=2, sort_keys=False)


def body_of(answer: Object) -> str:
    return to_json(answer, sort_keys=False) + "\n"


# --- discovery ----------------------------------------------------------------------------------------------------


def _groups(factory: Factory) -> list[Object]:
    return [_group(factory, name) for name in dict.fromkeys(one.group for one in factory.scheme if one.group)]


def _group(factory: Factory, group: str) -> Object:
    names = dict.fromkeys(version for one in factory.scheme if one.group == group
                          for version in (one.version, *one.other_versions))
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in names]
    if not versions or not group:
        raise no_such_resource()
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _discovery(factory: Factory, group: str, version: str) -> str:
    resources = [entry for one in factory.scheme if _serves(one, group, version) for entry in _entries(one)]
    if not resources:
        raise no_such_resource()
    return body_of({"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {}),
                  "groupVersion": f"{group}/{version}".lstrip("/"), "resources": resources})


def _serves(one: Resource, group: str, version: str) -> bool:
    return one.group == group and version in (one.version, *one.other_versions)


def _entries(one: Resource) -> list[Object]:
    """A resource and its subresources as discovery tells them."""
    own: Object = {"name": one.plural, "singularName": one.singular_name, "namespaced": one.namespaced,
                   "kind": one.kind, "verbs": list(one.verbs)}
    own |= {key: list(values) for key, values in (("shortNames", one.short_names), ("categories", one.categories))
            if values}
    if one.verbs != CREATE_ONLY and "create" in one.verbs:  # what is not stored has none
        own["storageVersionHash"] = _storage_version_hash(one)
    return [own, *(_subresource(one, name) for name in one.subresources)]


def _storage_version_hash(one: Resource) -> str:
    """What changes with the version in which objects are stored (``discovery.StorageVersionHash``)."""
    from base64 import b64encode
    from hashlib import sha256

    group = "" if one.kind == "Event" else one.group  # events of both groups are kept as those of core
    return b64encode(sha256(f"{group}/{one.version}/{one.kind}".encode()).digest()[:8]).decode()


def _subresource(one: Resource, name: str) -> Object:
    group, version, kind, *verbs = {
        "scale": ("autoscaling", "v1", "Scale", "get", "patch", "update"),
        "eviction": ("policy", "v1", "Eviction", "create"),
        "binding": ("", "", "Binding", "create"),
        "token": ("authentication.k8s.io", "v1", "TokenRequest", "create"),
    }.get(name, ("", "", one.kind, "get", "patch", "update"))
    where = {"group": group, "version": version} if group else {}
    return {"name": f"{one.plural}/{name}", "singularName": "", "namespaced": one.namespaced, **where, "kind": kind,
            "verbs": verbs}


# --- objects ------------------------------------------------------------------------------------------------------


def _target(factory: Factory, group: str, version: str, rest: list[str]) -> Target:
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        _, namespace, *rest = rest
    plural, name, subresource = (*rest, "", "")[:3]
    found = next((one for one in factory.scheme if one.plural == plural and _serves(one, group, version)), None)
    if found is None or len(rest) > 3 or (found.namespaced != (namespace is not None) and (name or namespace)):
        raise no_such_resource()
    return Target(found.at(version), namespace, name, subresource)


def _read(factory: Factory, target: Target, url: SplitResult) -> str:
    if not target.name:
        return _list(factory, target, parse_qs(url.query))
    if target.subresource == "scale":
        return body_of(shown(factory, factory.client.get(target.resource.key, target.name,
                                                         namespace=target.namespace or "", subresource="scale")))
    if target.subresource and target.subresource not in target.resource.subresources:
        raise no_such_resource()
    return body_of(shown(factory, factory.client.get(target.resource.gvr, target.name,
                                                    namespace=target.namespace or "")))


def _list(factory: Factory, target: Target, query: dict[str, list[str]]) -> str:
    resource = target.resource
    found = factory.client.list(resource.gvr, namespace=target.namespace,
                                label_selector=query.get("labelSelector", [""])[-1],
                                field_selector=query.get("fieldSelector", [""])[-1])
    items = [shown(factory, obj) for obj in found.items]
    if not resource.custom:
        items = [{key: value for key, value in obj.items() if key not in ("kind", "apiVersion")} for obj in items]
    kinds = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
    meta = {"metadata": {"resourceVersion": found.resource_version}}
    if resource.custom:
        return body_of({"apiVersion": kinds["apiVersion"], "items": items, "kind": kinds["kind"], **meta})
    return body_of({**kinds, **meta, "items": items})


def shown(factory: Factory, obj: Object) -> Any:
    from kubepy.api.types import type_of
    from kubepy.cli.runtime.output import in_go_order, in_sorted_order

    whole = factory.client.with_managed_fields(obj)
    return in_go_order(whole) if type_of(whole) else in_sorted_order(whole)
