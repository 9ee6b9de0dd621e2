"""``get``, ``create``, ``replace`` and ``delete --raw``: a request to a path, and the body of the answer as it comes.

There is no server behind it: its handlers answer in this process. Upstream: ``kubectl/pkg/rawhttp``.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from kubepy import KUBERNETES_VERSION
from kubepy.api.errors import no_such_resource
from kubepy.api.meta import Object
from kubepy.api.scheme import CREATE_ONLY, Resource, Subresource
from kubepy.api.values.goformat import quote, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.get_flags import GetOptions
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.manifests import read_text
from kubepy.cli.runtime.options import RawOptions
from kubepy.lazy import lazy_imports
from kubepy.server import requestinfo, routes
from kubepy.server.messages import JSON, Call, HttpRequest, Response

with lazy_imports():
    from kubepy.cli import version

HEALTH = ("healthz", "livez", "readyz")
HEADERS = {"accept": f"{JSON}, */*", "content-type": JSON, "user-agent": f"kubectl/{KUBERNETES_VERSION}"}


# --- commands -----------------------------------------------------------------------------------------------------


def get(factory: Factory, options: GetOptions) -> None:
    """Print the answer to a GET. Raises CliError for flags that exclude --raw, and what the request raises."""
    if options.args:
        raise CliError("arguments may not be passed when --raw is specified")
    if options.watch or options.watch_only or options.selector:
        raise CliError("--raw may not be specified with other flags that filter the server request or alter the output")
    check_path(options.raw, options.output)
    factory.print(answer(factory, options.raw), end="")


def post(factory: Factory, options: RawOptions, output: str) -> None:
    """Create: print the answer to a POST. Raises CliError, and what the request raises."""
    check_path(options.raw, output)
    _send_file(factory, options, "POST")


def put(factory: Factory, options: RawOptions, output: str) -> None:
    """Replace: print the answer to a PUT. Raises as ``post``."""
    check_file(options)
    check_path(options.raw, output)
    _send_file(factory, options, "PUT")


def delete(factory: Factory, options: RawOptions, output: str) -> None:
    """Delete: print the answer to a DELETE, without a body if there is no file. Raises as ``post``."""
    if options.filename or options.recursive:
        check_file(options)
    check_path(options.raw, output)
    _send_file(factory, options, "DELETE")


def check_path(path: str, output: str) -> None:
    """Raise CliError for a --raw that no command takes."""
    if output:
        raise CliError("--raw and --output are mutually exclusive")
    if not path.startswith("/"):
        raise CliError(f"--raw must be a valid URL path: parse {quote(path)}: invalid URI for request")


def check_file(options: RawOptions) -> None:
    """Raise CliError unless the flags name one file."""
    if len(options.filename) > 1 or not (options.filename or options.recursive):
        raise CliError("--raw can only use a single local file or stdin")
    if any(path.startswith(("http://", "https://")) for path in options.filename):
        raise CliError("--raw cannot read from a url")
    if options.recursive:
        raise CliError("--raw and --recursive are mutually exclusive")


# --- requests -----------------------------------------------------------------------------------------------------


def _send_file(factory: Factory, options: RawOptions, method: str) -> None:
    text = read_text(factory, options.filename[0]) if options.filename else ""
    factory.print(send(factory, method, options.raw, text.encode()), end="")


def send(factory: Factory, method: str, path: str, body: bytes = b"") -> str:
    """Return the body of the answer to a request. Raises Status."""
    url = urlsplit(path)
    query = parse_qs(url.query, keep_blank_values=True)
    request = HttpRequest(method, url.path, query, HEADERS, body)
    info = requestinfo.parse_request_info(request)
    if method == "GET" and info.is_resource_request:
        factory.catch_up()
    call = Call(request, info, factory.client.requester, factory.cluster, cast(Any, None))
    response = routes.find_handler(info)(call)
    assert isinstance(response, Response)  # without an application nothing is streamed
    return response.body.decode()


def answer(factory: Factory, path: str) -> str:
    """Return the body of the answer to a GET. Raises Status."""
    match [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]:
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
    return send(factory, "GET", path)


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
