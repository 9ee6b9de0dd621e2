"""``create``, ``replace`` and ``delete --raw``: a POST, PUT or DELETE of a path with the bytes of one file.

The body is sent as it is, and the answer printed as it comes.
Upstream: ``kubectl/pkg/rawhttp``, ``apiserver/pkg/endpoints/handlers``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubepy.api.errors import BadRequest, method_not_allowed
from kubepy.api.meta import Object
from kubepy.apiserver.request import (
    CollectionOptions,
    CreateOptions,
    DeleteOptions,
    ListOptions,
    Request,
    UpdateOptions,
)
from kubepy.cli.errors import CliError
from kubepy.cli.raw import RequestTarget, body_of, check_path, shown, target_of
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.manifests import read_text
from kubepy.cli.runtime.options import RawOptions
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.storage import yaml

MANAGER = "kubectl"  # the client's name where a request names no manager
_SHOWN = 30  # bytes of a body that cannot be read
# Resources whose deletion answers with what was deleted, as others do with a Status.
_RETURNED = frozenset({"csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "deviceclasses.resource.k8s.io",
                       "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates",
                       "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "resourcequotas",
                       "resourceslices.resource.k8s.io", "serviceaccounts", "services",
                       "storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io",
                       "volumeattributesclasses.storage.k8s.io"})

Query = dict[str, str]
Answer = Callable[[Factory, RequestTarget, Any, Query], Object]


def post(factory: Factory, options: RawOptions, output: str) -> None:
    """Create: print the answer to a POST. Raises CliError, and what the request raises."""
    check_path(options.raw, output)
    _send(factory, options, _post)


def put(factory: Factory, options: RawOptions, output: str) -> None:
    """Replace: print the answer to a PUT. Raises as ``post``."""
    check_file(options)
    check_path(options.raw, output)
    _send(factory, options, _put)


def delete(factory: Factory, options: RawOptions, output: str) -> None:
    """Delete: print the answer to a DELETE, without a body if there is no file. Raises as ``post``."""
    if options.filename or options.recursive:
        check_file(options)
    check_path(options.raw, output)
    _send(factory, options, _delete)


def check_file(options: RawOptions) -> None:
    """Raise CliError unless the flags name one file."""
    if len(options.filename) > 1 or not (options.filename or options.recursive):
        raise CliError("--raw can only use a single local file or stdin")
    if any(path.startswith(("http://", "https://")) for path in options.filename):
        raise CliError("--raw cannot read from a url")
    if options.recursive:
        raise CliError("--raw and --recursive are mutually exclusive")


def _send(factory: Factory, options: RawOptions, answer: Answer) -> None:
    url = urlsplit(options.raw)
    text = read_text(factory, options.filename[0]) if options.filename else None
    target = target_of(factory, url)
    query = {key: values[-1] for key, values in parse_qs(url.query).items()}
    factory.print(body_of(answer(factory, target, _read(target, text), query)), end="")


def _read(target: RequestTarget, text: str | None) -> Any:
    """Return the object in a body, None without a body. Raises BadRequest."""
    if text is None:
        return None
    try:
        value = yaml.read_json(text)
    except yaml.YamlError as error:
        raise _unrecognized(target, text, error.message) from None
    if not isinstance(value, dict):
        kind = "array" if isinstance(value, list) else type(value).__name__
        raise _unrecognized(target, text, f"json: cannot unmarshal {kind} into Go value of type struct {{ APIVersion "
                            'string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }')
    return value


def _unrecognized(target: RequestTarget, text: str, reason: str) -> Exception:
    body = text.encode()
    head = body[:_SHOWN]
    summary = head.decode(errors="replace") if body.startswith(b"{") else head.hex()  # as summarizeData
    summary = f"{summary} ..." if len(body) > _SHOWN else summary or "<empty>"
    return BadRequest(f"the object provided is unrecognized (must be of type {target.resource.kind}): couldn't get "
                      f"version/kind; json parse error: {reason} ({summary})")


# --- the requests -------------------------------------------------------------------------------------------------


def _post(factory: Factory, target: RequestTarget, body: Any, query: Query) -> Object:
    if target.subresource:
        return _post_to_subresource(factory, target, body, query)
    if target.name:
        raise method_not_allowed()
    return _shown(factory, factory.client.create(target.resource.gvr, body, namespace=target.namespace or "",
                                                 options=CreateOptions(*_write_options(query))))


def _post_to_subresource(factory: Factory, target: RequestTarget, body: Any, query: Query) -> Object:
    request = Request("create", target.resource.gvr, target.namespace or "", target.name, target.subresource,
                      CreateOptions(*_write_options(query)))
    status = factory.client.do(request, body)
    assert isinstance(status, dict)
    return status


def _put(factory: Factory, target: RequestTarget, body: Any, query: Query) -> Object:
    if not target.name:
        raise method_not_allowed()
    named = {**body, "metadata": {"name": target.name, **(body.get("metadata") or {})}}
    if (name := named["metadata"]["name"]) != target.name:  # the client addresses its request by the object
        raise BadRequest(f"the name of the object ({printable(name)}) does not match the name on the URL "
                         f"({printable(target.name)})")
    return _shown(factory, factory.client.update(target.resource.gvr, named, namespace=target.namespace or "",
                                                 subresource=target.subresource,
                                                 options=UpdateOptions(*_write_options(query))))


def _delete(factory: Factory, target: RequestTarget, body: Any, query: Query) -> Object:
    options, namespace = _delete_options(body, query), target.namespace or ""
    if target.subresource:
        raise method_not_allowed()
    if not target.name:
        return _deleted_all(factory, target, options, query)
    left = factory.client.delete(target.resource.gvr, target.name, namespace=namespace, options=options)
    metadata = left["metadata"]
    finalizers = metadata.get("finalizers")
    if left["kind"] == "Namespace":
        finalizers = finalizers or (left.get("spec") or {}).get("finalizers")
    remains = bool(finalizers) or (metadata.get("deletionGracePeriodSeconds") or 0) > 0
    if remains or target.resource.key in _RETURNED:
        return _shown(factory, left)
    group = {"group": target.resource.group} if target.resource.group else {}
    return _success(details={"name": target.name, **group, "kind": target.resource.plural,
                             "uid": metadata["uid"]})


def _deleted_all(factory: Factory, target: RequestTarget, options: DeleteOptions, query: Query) -> Object:
    if target.resource.namespaced and not target.namespace:
        raise method_not_allowed()
    selectors = ListOptions(query.get("labelSelector", ""), query.get("fieldSelector", ""))
    deleted = factory.client.delete_collection(target.resource.gvr, namespace=target.namespace or "",
                                               options=CollectionOptions(selectors, options))
    items = [_shown(factory, obj) for obj in deleted]
    return {"kind": f"{target.resource.kind}List", "apiVersion": target.resource.api_version,
            "metadata": {"resourceVersion": str(factory.client.revision())}, "items": items}


def _shown(factory: Factory, obj: Object) -> Object:
    answer: Object = shown(factory, obj)
    return answer


def _success(**more: Any) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", **more}


def _write_options(query: Query) -> tuple[bool, str, str]:
    """Return the parameters of a CreateOptions or UpdateOptions."""
    return query.get("dryRun") == "All", query.get("fieldManager", MANAGER), query.get("fieldValidation", "Warn")


def _delete_options(body: Any, query: Query) -> DeleteOptions:
    """Return the ``metav1.DeleteOptions`` of a body, else of the query."""
    fields = body or {**query, "dryRun": [query["dryRun"]] if "dryRun" in query else []}
    preconditions = fields.get("preconditions") or {}
    grace = fields.get("gracePeriodSeconds")
    return DeleteOptions(None if grace is None else int(grace), fields.get("propagationPolicy"),
                         preconditions.get("uid"), preconditions.get("resourceVersion"),
                         dry_run="All" in (fields.get("dryRun") or ()))
