"""Requests about objects in plain Python: what ``cluster.client`` and the client of a controller
that is a Python function have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kubepy.api.meta import Object, clone, name_of, namespace_of, without_managers
from kubepy.arguments import checked, is_unicode
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.scheme import Resource, Scheme
    from kubepy.apiserver.client import Client
    from kubepy.apiserver.request import ListOptions

with lazy_imports():
    from kubepy.api import clock as clocks
    from kubepy.api import errors
    from kubepy.apiserver import request as requests

# An alias, because the method ``ObjectRequests.list`` hides the builtin inside its class.
Objects = list[Object]

DEFAULT_NAMESPACE = "default"
SCALE = ("autoscaling/v1", "Scale")


class OpenedCluster(Protocol):
    """A cluster while it is open, to which requests are made."""

    @property
    def client(self) -> Client: ...

    @property
    def scheme(self) -> Scheme: ...


class ObjectRequests:
    """Requests about objects, which are plain dicts, shaped as the JSON of the API, without
    managedFields; each is the caller's own.

    A kind is named as on the command line: ``deployments``, ``deploy``, ``Deployment``,
    ``deployments.apps``; an object by its kind and name, or as ``deploy/web``. The API's errors are
    raised: NotFound, AlreadyExists, Conflict, Invalid …
    """

    _field_manager = ""  # of the fields that are written

    def _open(self) -> AbstractContextManager[OpenedCluster]:
        """Open the cluster for the length of a request."""
        raise NotImplementedError

    @checked
    def get(
        self,
        kind: str,
        name: str = "",
        *,
        namespace: str = DEFAULT_NAMESPACE,
        subresource: str = "",
    ) -> Object:
        """Return an object: ``get("deploy/web")``, ``get("deployments", "web")``. Raises
        NotFound."""
        with self._request(kind, name) as (client, resource, name):
            return own_copy(self._read(client, resource, name, namespace, subresource))

    @checked
    def list(
        self,
        kind: str,
        *,
        namespace: str | None = DEFAULT_NAMESPACE,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
    ) -> Objects:
        """Return the objects of a kind, ordered by namespace and name.

        :param namespace: None: those of all namespaces.
        :param labels: a selector: ``{"app": "web"}`` or ``"app=web,tier!=cache"``.
        :param fields: likewise by fields: ``"spec.nodeName=node-1"``.
        """
        with self._open() as local:
            resource = resource_of(local.scheme, kind)
            if not resource.namespaced:
                namespace = None
            options = requests.ListOptions(selector_of(labels), selector_of(fields))
            return [
                own_copy(obj) for obj in self._read_all(local.client, resource, namespace, options)
            ]

    def _read(
        self, client: Client, resource: Resource, name: str, namespace: str, subresource: str
    ) -> Object:
        """Return an object as it is stored. Raises NotFound."""
        return client.get(resource.gvr, name, namespace=namespace, subresource=subresource)

    def _read_all(
        self, client: Client, resource: Resource, namespace: str | None, options: ListOptions
    ) -> Sequence[Object]:
        """Return the objects that selectors choose as they are stored, ordered by namespace and
        name."""
        listed = client.list(
            resource.gvr,
            namespace=namespace,
            label_selector=options.label_selector,
            field_selector=options.field_selector,
        )
        return listed.items

    @checked
    def create(self, obj: Mapping[str, Any], *, namespace: str = "") -> Object:
        """Create an object from its manifest, and return it. Raises AlreadyExists, Invalid,
        NotFound (no namespace)."""
        with self._manifest(obj, namespace) as (client, resource, content):
            options = requests.CreateOptions(field_manager=self._field_manager)
            obj = client.create(
                resource.gvr, content, namespace=namespace_of(content), options=options
            )
            return own_copy(obj)

    @checked
    def update(
        self, obj: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Object:
        """Replace an object, its ``status`` or its ``scale``, and return it.

        With ``metadata.resourceVersion`` only that version. Raises NotFound, Conflict, Invalid.
        """
        with self._manifest(obj, namespace) as (client, resource, content):
            options = requests.UpdateOptions(field_manager=self._field_manager)
            obj = client.update(
                resource.gvr,
                content,
                namespace=namespace_of(content),
                subresource=subresource,
                options=options,
            )
            return own_copy(obj)

    @checked
    def apply(
        self,
        obj: Mapping[str, Any],
        *,
        namespace: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Create or change an object by server-side apply, and return it.

        :param field_manager: "": that of this client.
        :param force: take fields over from other managers. Raises Conflict without it, Invalid.
        """
        with self._manifest(obj, namespace) as (client, resource, content):
            options = requests.PatchOptions(
                field_manager=field_manager or self._field_manager, force=force
            )
            obj = client.patch(
                resource.gvr,
                name_of(content),
                requests.Patch(requests.APPLY_PATCH, content),
                namespace=namespace_of(content),
                options=options,
            )
            return own_copy(obj)

    @checked
    def patch(
        self,
        target: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: Literal["strategic", "merge", "json"] = "strategic",
        namespace: str = DEFAULT_NAMESPACE,
        subresource: str = "",
    ) -> Object:
        """Change an object by a patch, and return it:
        ``patch("deploy/web", {"spec": {"replicas": 5}})``.

        Raises NotFound, Conflict, Invalid, BadRequest; UnsupportedMediaType for a strategic patch
        of a custom resource.
        """
        patch_types = {
            "strategic": requests.STRATEGIC_MERGE_PATCH,
            "merge": requests.MERGE_PATCH,
            "json": requests.JSON_PATCH,
        }
        if type not in patch_types:
            raise ValueError(f"type {type!r} is none of {', '.join(patch_types)}")
        with self._change(target, "") as (client, resource, name):
            options = requests.PatchOptions(field_manager=self._field_manager)
            change = requests.Patch(patch_types[type], plain(patch))
            obj = client.patch(
                resource.gvr,
                name,
                change,
                namespace=namespace,
                subresource=subresource,
                options=options,
            )
            return own_copy(obj)

    @checked
    def delete(
        self,
        kind: str,
        name: str = "",
        *,
        namespace: str = DEFAULT_NAMESPACE,
        grace_period: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] | None = None,
    ) -> None:
        """Delete an object; one with a grace period or finalizers only begins to go. Raises
        NotFound.

        :param grace_period: seconds, in place of the object's own; 0 deletes a pod at once.
        """
        with self._change(kind, name) as (client, resource, name):
            options = requests.DeleteOptions(grace_period, propagation)
            client.delete(resource.gvr, name, namespace=namespace, options=options)

    def _change(self, kind: str, name: str) -> AbstractContextManager[tuple[Client, Resource, str]]:
        """Open the cluster for a request that changes an object, as :meth:`_request` does."""
        return self._request(kind, name)

    @contextmanager
    def _request(self, kind: str, name: str) -> Iterator[tuple[Client, Resource, str]]:
        """Open the cluster for a request about an object. Raises ValueError for an unknown kind or
        without a name."""
        with self._open() as local:
            kind, slash, named = kind.partition("/")
            if slash and name:
                raise ValueError(
                    f"{kind}/{named} names an object already: a second name, {quote(name)}, is "
                    f"too much"
                )
            name = name or named
            if not name:
                raise ValueError(f"name an object: {kind}/NAME")
            yield local.client, resource_of(local.scheme, kind), name

    @contextmanager
    def _manifest(
        self, obj: Mapping[str, Any], namespace: str
    ) -> Iterator[tuple[Client, Resource, Object]]:
        """Open the cluster for a request with an object, which becomes a copy in its namespace."""
        content = plain(obj)
        api_version, kind, metadata = (
            content.get(key) for key in ("apiVersion", "kind", "metadata")
        )
        if (
            not isinstance(api_version, str)
            or not isinstance(kind, str)
            or not isinstance(metadata, dict)
        ):
            raise ValueError("an object needs apiVersion, kind and metadata")
        with self._open() as local:
            resource = local.scheme.for_kind(api_version, kind)
            if (api_version, kind) == SCALE:
                resource = _scaled_resource(local, metadata, namespace or DEFAULT_NAMESPACE)
                api_version = resource.version if resource else ""
            if resource is None:
                raise ValueError(
                    f"no matches for kind {quote(kind)} in version {quote(api_version)}"
                )
            resource = resource.at(api_version.rpartition("/")[2])
            if resource.namespaced:
                own = metadata["namespace"] = (
                    metadata.get("namespace") or namespace or DEFAULT_NAMESPACE
                )
                if not isinstance(own, str) or (namespace and own != namespace):
                    raise ValueError(
                        f"the object's namespace {quote(str(own))} is not {quote(namespace)}"
                    )
            yield local.client, resource, content


def plain(value: Any) -> Any:
    """Return a copy of a value as plain JSON data. Raises TypeError, ValueError for what JSON does
    not have."""
    try:
        text = json.dumps(value, allow_nan=False, default=_as_json, ensure_ascii=False)
        if not is_unicode(text):
            raise ValueError("an object cannot hold a character that UTF-8 cannot encode")
        return json.loads(text)
    except RecursionError:
        raise ValueError("the object is nested too deeply") from None


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime):
        return clocks.format_time(value)
    raise TypeError(f"an object cannot hold {value!r}: it must be what JSON has")


def own_copy(obj: Object) -> Object:
    copy: Object = clone(without_managers(obj))
    return copy


def selector_of(selector: str | Mapping[str, str]) -> str:
    if isinstance(selector, str):
        return selector
    return ",".join(f"{key}={value}" for key, value in selector.items())


def _scaled_resource(local: OpenedCluster, metadata: Object, namespace: str) -> Resource | None:
    """Return the resource of the object that a Scale is of: the one with its uid, or the only one
    with its name."""
    name = str(metadata.get("name"))
    namespace = str(metadata.get("namespace") or namespace)
    resources = {}  # by the uids of the objects with that name
    for resource in local.scheme:
        if "scale" not in resource.subresources:
            continue
        with suppress(errors.NotFound):
            obj = local.client.get(resource.gvr, name, namespace=namespace)
            uid = obj["metadata"]["uid"]
            if metadata.get("uid") in (None, uid):
                resources[uid] = resource
    if len(resources) != 1:
        return None
    [scaled] = resources.values()
    return scaled


def resource_of(scheme: Scheme, kind: str) -> Resource:
    """Return the resource that a word names. Raises ValueError."""
    resource = scheme.find(kind)
    if resource is None:
        raise ValueError(f"the server doesn't have a resource type {quote(kind)}")
    return resource
