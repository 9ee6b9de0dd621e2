"""The objects that others name and that the source does not hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import AnyObject, Object, nested_list, nested_map, owner_references
from kubepy.api.objects.references import ROOT_CA_CONFIG_MAP, references_of
from kubepy.api.objects.volumes import uses_of
from kubepy.apiserver.absence import AbsentObject
from kubepy.importing.contents import absent_contents
from kubepy.importing.revisions import absent_revisions
from kubepy.importing.words import full_name
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.api.scheme import Scheme

PODS = "pods"
# Every cluster has these, or makes them by itself.
_ALWAYS_THERE = frozenset(
    (
        Key("priorityclasses.scheduling.k8s.io", "", "system-cluster-critical"),
        Key("priorityclasses.scheduling.k8s.io", "", "system-node-critical"),
    )
)
_RBAC = "rbac.authorization.k8s.io"
_ROLES = {"ClusterRole": f"clusterroles.{_RBAC}", "Role": f"roles.{_RBAC}"}


class NamedObject(NamedTuple):
    """An object that another one names.

    :ivar keeps_waiting: a pod waits for it, unless it is known to be there.
    """

    key: Key
    keeps_waiting: bool = False


class AbsentFindings(NamedTuple):
    """The objects that a source names and does not hold.

    :ivar owners: they count as there.
    :ivar remaining: the namespaces that are being deleted and kept by what is absent.
    :ivar needed: what pods that have started must have had; it counts as there.
    :ivar named: all of it by kind: names with their namespaces.
    """

    owners: list[AbsentObject]
    needed: list[AbsentObject]
    named: dict[str, list[str]]
    remaining: list[AbsentObject]

    def without_nodes(self, names: Collection[str]) -> AbsentFindings:
        """Return the findings without the owners that are these nodes: they are made."""
        owners = [owner for owner in self.owners if owner.kind != "Node" or owner.name not in names]
        return self._replace(owners=owners)


def find_absent(objects: Mapping[Key, Object], scheme: Scheme) -> AbsentFindings:
    """Look for what objects name and a source does not hold."""
    uids = {obj["metadata"].get("uid") for obj in objects.values()}
    owners: dict[str, AbsentObject] = {}
    named: dict[Key, None] = {}
    needed: dict[Key, None] = {}
    for key, obj in objects.items():
        for owner in _absent_owners(
            key,
            obj,
            objects,
            uids,
            scheme,
        ):
            owners.setdefault(owner.uid, owner)
        for other in _names_of(key, obj):
            if other.key in objects or other.key in _ALWAYS_THERE:
                continue
            named[other.key] = None
            if other.keeps_waiting:
                needed[other.key] = None

    for key in absent_revisions(objects):
        named[key] = None
        needed[key] = None

    by_kind: dict[str, set[str]] = {}
    for owner in owners.values():
        group = owner.api_version.rpartition("/")[0]
        kind = f"{owner.kind}.{group}" if group else owner.kind
        by_kind.setdefault(kind, set()).add(full_name(owner.namespace, owner.name))
    for key in named:
        by_kind.setdefault(_kind_of(key, scheme), set()).add(full_name(key.namespace, key.name))
    listed = {kind: sorted(by_kind[kind]) for kind in sorted(by_kind)}
    absent = [_absent_object(key, scheme) for key in sorted(needed)]
    in_order = sorted(owners.values(), key=lambda owner: (owner.namespace, owner.kind, owner.name))
    return AbsentFindings(
        in_order,
        absent,
        listed,
        list(absent_contents(objects)),
    )


def _kind_of(key: Key, scheme: Scheme) -> str:
    resource = scheme.by_key(key.resource)
    return resource.qualified_kind


def _absent_object(key: Key, scheme: Scheme) -> AbsentObject:
    resource = scheme.by_key(key.resource)
    return AbsentObject(
        resource.api_version,
        resource.kind,
        key.name,
        key.namespace,
    )


def _absent_owners(
    key: Key,
    obj: Object,
    objects: Mapping[Key, Object],
    uids: Collection[str | None],
    scheme: Scheme,
) -> Iterator[AbsentObject]:
    """Yield the owners of an object that the source does not hold. One in whose place the source
    has another object is gone, and not absent."""
    for reference in owner_references(obj):
        if reference["uid"] in uids:
            continue
        api_version, kind = reference["apiVersion"], reference["kind"]
        resource = scheme.for_kind(api_version, kind)
        namespace = key.namespace
        if resource is not None and not resource.namespaced:
            namespace = ""
        name = reference["name"]
        if resource is not None and Key(resource.key, namespace, name) in objects:
            continue
        yield AbsentObject(
            api_version,
            kind,
            name,
            namespace,
            reference["uid"],
        )


def _names_of(key: Key, obj: Object) -> Iterator[NamedObject]:
    """Yield what an object names by name. What a Pod names that has started was there."""
    spec = nested_map(obj, "spec")
    namespace = key.namespace
    if key.resource == PODS:
        yield from _names_of_pod(spec, namespace, obj)
    elif nested_map(spec, "template", "spec"):
        yield from _names_of_template(nested_map(spec, "template", "spec"), namespace)
    elif key.resource == "cronjobs.batch":
        template = nested_map(
            spec,
            "jobTemplate",
            "spec",
            "template",
            "spec",
        )
        yield from _names_of_template(template, namespace)
    elif key.resource == "persistentvolumeclaims":
        if spec.get("volumeName"):
            yield NamedObject(Key("persistentvolumes", "", spec["volumeName"]))
        if spec.get("storageClassName"):
            yield NamedObject(Key("storageclasses.storage.k8s.io", "", spec["storageClassName"]))
    elif key.resource in (f"rolebindings.{_RBAC}", f"clusterrolebindings.{_RBAC}"):
        yield from _names_of_binding(obj, namespace)
    elif key.resource == "ingresses.networking.k8s.io":
        yield from _names_of_ingress(spec, namespace)


def _names_of_template(spec: AnyObject, namespace: str) -> Iterator[NamedObject]:
    account = spec.get("serviceAccountName")
    if account and account != "default":
        yield NamedObject(Key("serviceaccounts", namespace, account))
    if spec.get("priorityClassName"):
        yield NamedObject(Key("priorityclasses.scheduling.k8s.io", "", spec["priorityClassName"]))
    if spec.get("runtimeClassName"):
        yield NamedObject(Key("runtimeclasses.node.k8s.io", "", spec["runtimeClassName"]))
    for secret in nested_list(spec, "imagePullSecrets"):
        if secret.get("name"):
            yield NamedObject(Key("secrets", namespace, secret["name"]))


def _names_of_pod(spec: AnyObject, namespace: str, pod: Object) -> Iterator[NamedObject]:
    yield from _names_of_template(spec, namespace)
    if spec.get("nodeName"):
        yield NamedObject(Key("nodes", "", spec["nodeName"]))
    started = _started_containers(pod)
    has_started = bool(started)
    for use in uses_of(pod):
        claim = Key("persistentvolumeclaims", namespace, use.claim)
        yield NamedObject(claim, keeps_waiting=has_started)
    for reference in references_of(spec):
        if reference.optional or reference.name == ROOT_CA_CONFIG_MAP:
            continue
        is_started = has_started
        if reference.container:
            is_started = reference.container in started
        yield NamedObject(
            Key(reference.resource, namespace, reference.name), keeps_waiting=is_started
        )


def _started_containers(pod: Object) -> set[str]:
    """Return the containers of a pod that have run, so that all that they need was there."""
    status = nested_map(pod, "status")
    started: set[str] = set()
    for field in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(field) or ():
            state, last = entry.get("state") or {}, entry.get("lastState") or {}
            if "running" in state or "terminated" in state or "terminated" in last:
                started.add(entry["name"])
    return started


def _names_of_binding(obj: Object, namespace: str) -> Iterator[NamedObject]:
    role = nested_map(obj, "roleRef")
    resource = _ROLES.get(role.get("kind", ""))
    if resource is not None and role.get("name"):
        yield NamedObject(Key(resource, namespace if role["kind"] == "Role" else "", role["name"]))


def _names_of_ingress(spec: AnyObject, namespace: str) -> Iterator[NamedObject]:
    backends = [spec.get("defaultBackend") or {}]
    for rule in nested_list(spec, "rules"):
        backends += [path.get("backend") or {} for path in nested_list(rule, "http", "paths")]
    for backend in backends:
        service = nested_map(backend, "service").get("name")
        if service:
            yield NamedObject(Key("services", namespace, service))
    for entry in nested_list(spec, "tls"):
        if entry.get("secretName"):
            yield NamedObject(Key("secrets", namespace, entry["secretName"]))
    if spec.get("ingressClassName"):
        yield NamedObject(Key("ingressclasses.networking.k8s.io", "", spec["ingressClassName"]))


def namespaces_of(keys: Iterable[Key]) -> list[str]:
    """Return the namespaces in which there are objects, sorted."""
    return sorted({key.namespace for key in keys if key.namespace})
