"""Objects that a cluster has without a file: it would have them in any case, and nobody has changed
them.

In every cluster these are the APIServices of the APIs that the server itself has, and of those that
CustomResourceDefinitions serve. With ``bootstrap: minimal`` (the default) there are also the
ServiceAccount ``default`` of each active namespace, the Service ``kubernetes`` with its endpoints,
and the bootstrap roles and bindings. Requests see them like all others; the first change makes a
file, which stands for the object from then on. Their uid and creationTimestamp follow from those of
their namespace (``default`` for objects without one) or definition, so that every clone of a folder
shows the same.

A deleted object comes back at once where a controller of a real cluster would make it again, as
another object; a deleted role, binding or APIService of the server stays away until the control
plane starts again (:meth:`ImpliedObjects.restart`). The store remembers deletions beside the
objects, as values of this machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kubepy.api.clock import Clock
from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.objects import rbac
from kubepy.apiserver import bootstrap
from kubepy.apiserver.settings import API_SERVICES, ClusterSettings
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.storage.store import Store

NAMESPACES = "namespaces"
DELETIONS = "implied.deletions"
RESOURCE_VERSION = "1"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
ListStored = Callable[[str, str | None], list[Object]]


class ImpliedObjects:
    """The implied objects of one cluster.

    :param store: keeps the memory of deletions.
    """

    def __init__(self, settings: ClusterSettings, store: Store, clock: Clock) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock

    def get(self, key: Key, list_stored: ListStored) -> Object | None:
        """Return an implied object whose file is not there, or None.

        :param list_stored: returns the objects with files: of a resource, in one namespace or
            (None) in all.
        """
        candidates = self.missing(key.resource, key.namespace or None, (), list_stored)
        return next((obj for obj in candidates if name_of(obj) == key.name), None)

    def missing(
        self,
        resource: str,
        namespace: str | None,
        stored: Iterable[Object],
        list_stored: ListStored,
    ) -> list[Object]:
        """Return the implied objects of a resource (in one namespace, or None: in all) that are not
        ``stored``."""
        if resource not in self._settings.implied_resources:
            return []
        namespaces = {name_of(obj): obj for obj in list_stored(NAMESPACES, None) if is_active(obj)}
        if bootstrap.DEFAULT not in namespaces:
            return []  # no cluster yet
        present = {(namespace_of(obj), name_of(obj)) for obj in stored}
        deletions = self._deletions()
        objects = []
        for obj in self._candidates(resource, namespaces):
            key = Key(resource, namespace_of(obj), name_of(obj))
            deletion = deletions.get("/".join(key))
            is_wanted = namespace in (None, key.namespace) and key[1:] not in present
            if not is_wanted or (deletion is not None and is_made_at_start(key)):
                continue
            home = namespaces.get(key.namespace or bootstrap.DEFAULT)
            if home is not None:
                objects.append(identified(key, obj, home, deletion))

        if resource == API_SERVICES:
            objects += self._custom_api_services(present, list_stored)
            return [with_time(api_service) for api_service in objects]
        if resource == rbac.CLUSTER_ROLES:
            objects = aggregated(objects, list_stored(resource, None))
        return objects

    def _candidates(self, resource: str, namespaces: Iterable[str]) -> list[Object]:
        match resource:
            case bootstrap.SERVICE_ACCOUNTS:
                return [bootstrap.default_account(name) for name in namespaces]
            case bootstrap.SERVICES:
                return [bootstrap.kubernetes_service(self._settings.networking.service_subnet)]
            case bootstrap.ENDPOINTS:
                return [bootstrap.kubernetes_endpoints()]
            case bootstrap.ENDPOINT_SLICES:
                return [bootstrap.kubernetes_endpoint_slice()]
        if resource == API_SERVICES:
            return bootstrap.local_api_services()
        return bootstrap.rbac_objects(resource)

    def _custom_api_services(
        self, present: set[tuple[str, str]], list_stored: ListStored
    ) -> list[Object]:
        """Return the APIServices of the versions that CustomResourceDefinitions serve; a deleted
        one comes back at once."""
        deletions = self._deletions()
        api_services: dict[str, Object] = {}
        for definition in list_stored(DEFINITIONS, None):
            group = definition["spec"]["group"]
            for version in definition["spec"]["versions"]:
                if not version["served"]:
                    continue
                api_service = bootstrap.custom_api_service(group, version["name"])
                key = Key(API_SERVICES, "", name_of(api_service))
                if key.name in api_services or key[1:] in present:
                    continue
                deletion = deletions.get("/".join(key))
                api_services[key.name] = identified(key, api_service, definition, deletion)
        return list(api_services.values())

    def _deletions(self) -> dict[str, tuple[int, str]]:
        """Return how often each object was deleted, and when it was last."""
        text = self._store.meta(DELETIONS)
        return json.loads(text) if text else {}

    def note_deletion(self, key: Key, list_stored: ListStored) -> None:
        """Remember in the transaction under way that an object was deleted, if it would be implied
        now."""
        if self.get(key, list_stored) is None:
            return
        deletions = self._deletions()
        count, _ = deletions.get("/".join(key), (0, ""))
        deletions["/".join(key)] = (count + 1, self._clock.timestamp())
        self._store.set_values({DELETIONS: json.dumps(deletions)})

    def restart(self) -> None:
        """Bring deleted roles, bindings and APIServices back, as an API server does when it
        starts."""
        deletions = self._deletions()
        kept = {
            key: deletion
            for key, deletion in deletions.items()
            if not is_made_at_start(Key(*key.split("/")))
        }
        if kept != deletions:
            self._store.set_values({DELETIONS: json.dumps(kept)})


def is_made_at_start(key: Key) -> bool:
    """Tell whether a server makes an object again only when it starts."""
    if key.resource == API_SERVICES:
        return key.name in bootstrap.LOCAL_API_SERVICES
    return key.resource in bootstrap.RBAC_KINDS


def with_time(api_service: Object) -> Object:
    """Return an APIService that has been available since its creation."""
    [condition] = api_service["status"]["conditions"]
    since = api_service["metadata"]["creationTimestamp"]
    conditions = [{"lastTransitionTime": since, **condition}]
    return {**api_service, "status": {"conditions": conditions}}


def is_active(namespace: Object) -> bool:
    return bool(namespace.get("status", {}).get("phase") == "Active")


def identified(key: Key, obj: Object, home: Object, deletion: tuple[int, str] | None) -> Object:
    """Return an object with the metadata that a server adds; it is another object after each
    deletion."""
    from hashlib import sha256  # loads OpenSSL, for what few commands ask for

    count, deleted_at = deletion or (0, "")
    uid = str(home["metadata"].get("uid", ""))
    digest = sha256(f"{uid}/{'/'.join(key)}/{count}".encode()).hexdigest()
    metadata = {
        **obj["metadata"],
        "creationTimestamp": deleted_at or home["metadata"].get("creationTimestamp"),
        "resourceVersion": RESOURCE_VERSION,
        "uid": f"{uid[:13]:0<13}-7{digest[:3]}-8{digest[3:6]}-{digest[6:18]}",
    }
    return {**obj, "metadata": metadata}


def aggregated(implied: list[Object], stored: list[Object]) -> list[Object]:
    """Return ClusterRoles with the rules that the implied ones among them aggregate."""
    roles = {name_of(role): role for role in implied}
    aggregating = [role for role in implied if "aggregationRule" in role]
    for (
        _
    ) in aggregating:  # one may aggregate another: admin has what edit has, which has what view has
        for role in aggregating:
            rules = rbac.aggregated_rules(role, [*roles.values(), *stored])
            roles[name_of(role)] = {**role, "rules": rules}
    return list(roles.values())
