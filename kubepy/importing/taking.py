"""The objects of a source that a cluster can take, as v1.36 has them, and those that it cannot,
each with its reason."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.client import COMPONENT_STATUSES, CRDS
from kubepy.apiserver.settings import API_SERVICES
from kubepy.controlplane.open import ImportedObject, cluster_of_objects
from kubepy.importing.conversion import converted
from kubepy.importing.documents import SourceObject
from kubepy.importing.errors import SourceError
from kubepy.importing.words import full_name, one_line
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage import Key

with lazy_imports():
    from kubepy.storage import yaml

if TYPE_CHECKING:
    from kubepy.api.scheme import Resource
    from kubepy.apiserver.cluster import LocalCluster

EVENTS = "events"
SYSTEM = Key("namespaces", "", "kube-system")
LARGEST_OBJECT = 3 * 1024 * 1024  # bytes in YAML: the largest file that a state folder takes
LARGE = LARGEST_OBJECT // 4  # characters in JSON: what is smaller there is not larger in YAML
_KEY = re.compile(r"\[[^\]]*\]")


class RefusedObject(NamedTuple):
    """An object that is not taken, by its kind and name, and the reason."""

    kind: str
    name: str
    reason: str


class TakenObjects(NamedTuple):
    """The objects that were taken of a source.

    :ivar objects: those that a server has made, by key.
    :ivar manifests: those that no server has made: without a uid.
    :ivar unknown_fields: by kind and field, how many objects have it; the field is left out.
    :ivar converted: by kind and older version, how many objects were converted.
    """

    objects: dict[Key, Object]
    manifests: dict[Key, Object]
    refused: list[RefusedObject]
    unknown_fields: Counter[tuple[str, str]]
    converted: Counter[tuple[str, str]]


class NotTakenError(Exception):
    """The reason why an object is not taken."""


class Taker:
    """Takes the objects of a source, definitions of custom resources first."""

    def __init__(self) -> None:
        self._taken = TakenObjects(
            {},
            {},
            [],
            Counter(),
            Counter(),
        )
        self._cluster = cluster_of_objects((), {}, {})
        self._uid_of_system = ""
        self._shown_of_system = ""  # the file with the first namespace kube-system

    def take(self, objects: Iterable[SourceObject], show: Callable[[int], None]) -> TakenObjects:
        """Take what can be taken. Raises SourceError for objects of two clusters.

        :param show: is called with the number of objects so far.
        """
        by_turn: dict[bool, list[SourceObject]] = defaultdict(list)
        for source in objects:
            by_turn[source.object.get("kind") == "CustomResourceDefinition"].append(source)
        for source in by_turn[True]:
            self._take_one(source)
        self._cluster = self._cluster_of_definitions()
        for number, source in enumerate(by_turn[False], 1):
            show(number)
            self._take_one(source)
        self._refuse_second_holders_of_uids()
        return self._taken

    def _refuse_second_holders_of_uids(self) -> None:
        """Take only one of the objects that have one uid: the newest."""
        keys_by_uid: dict[str, Key] = {}
        objects = self._taken.objects
        for key in sorted(objects):
            uid = objects[key]["metadata"]["uid"]
            other = keys_by_uid.get(uid)
            if other is None:
                keys_by_uid[uid] = key
                continue
            newer, older = other, key
            if _is_newer(objects[key], objects[other]):
                newer, older = key, other
            keys_by_uid[uid] = newer
            refused = objects.pop(older)
            reason = f"it has the uid of {_title(objects[newer])}, which is taken"
            self._taken.refused.append(
                RefusedObject(_kind_text(refused), _name_text(refused), reason)
            )

    def _cluster_of_definitions(self) -> LocalCluster:
        """Return a cluster that knows the custom resources of the source."""
        held = {**self._taken.manifests, **self._taken.objects}
        known = [
            ImportedObject(key, number, obj)
            for number, (key, obj) in enumerate(held.items(), 1)
            if key.resource == CRDS
        ]
        return cluster_of_objects(known, {}, {})

    def _take_one(self, source: SourceObject) -> None:
        obj = source.object
        try:
            key = self._keep(obj)
            if key == SYSTEM:
                self._check_same_cluster(source)
        except NotTakenError as refusal:
            self._taken.refused.append(
                RefusedObject(_kind_text(obj), _name_text(obj), str(refusal))
            )

    def _check_same_cluster(self, source: SourceObject) -> None:
        """Raise SourceError where the namespace kube-system shows that a file is of another cluster
        than those before it."""
        kept = self._taken.objects.get(SYSTEM)
        uid = source.object["metadata"].get("uid")
        if kept is None or not uid:
            return
        self._uid_of_system = self._uid_of_system or uid
        self._shown_of_system = self._shown_of_system or source.shown
        if uid != self._uid_of_system:
            raise SourceError(
                f"{source.shown}: is of another cluster than {self._shown_of_system}: its "
                "namespace kube-system has another uid"
            )

    def _keep(self, obj: Object) -> Key:
        """Keep an object under its key, and return this. Raises NotTakenError."""
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            raise NotTakenError("it has no metadata")
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            raise NotTakenError("it has no name")
        obj, resource = self._in_known_version(obj)
        namespace = self._namespace_of(metadata, resource)
        problems = self._cluster.name_problems(resource, name)
        if problems and resource.key != API_SERVICES:  # v1. is the core group's
            raise NotTakenError(f"its name is invalid: {problems[0]}")
        decoded = self._decoded(obj, resource)
        decoded["metadata"] = _placed(decoded["metadata"], namespace)
        missing = self._cluster.missing_fields(resource, decoded)
        if missing:
            raise NotTakenError(missing[0])
        if _is_too_large(decoded):
            raise NotTakenError(f"it is larger than {LARGEST_OBJECT >> 20} MiB in YAML")
        key = Key(resource.storage_key, namespace, name)
        is_manifest = not decoded["metadata"].get("uid")
        kept = self._taken.manifests if is_manifest else self._taken.objects
        before = kept.get(key)
        if before is None or _is_newer(decoded, before):
            kept[key] = decoded
        return key

    def _in_known_version(self, obj: Object) -> tuple[Object, Resource]:
        """Return an object in a version that is served, and its resource. Raises NotTakenError."""
        api_version, kind = obj["apiVersion"], obj["kind"]
        scheme = self._cluster.scheme
        resource = scheme.for_kind(api_version, kind)
        is_older = resource is not None and resource.api_version != api_version
        if resource is None or (is_older and not resource.custom):
            after = self._converted(obj)
            if after is not None:
                self._taken.converted[kind, api_version] += 1
                obj = after
                resource = scheme.for_kind(obj["apiVersion"], kind)
        if resource is None:
            raise NotTakenError(self._reason_of_unknown_kind(obj))
        if resource.storage_key == EVENTS:
            return obj, scheme.by_key(EVENTS)
        if not resource.is_stored or resource.key == COMPONENT_STATUSES:
            raise NotTakenError("a server computes it, and does not keep it")
        if resource.custom:
            return self._in_storage_version(obj, resource)
        return obj, resource

    def _converted(self, obj: Object) -> Object | None:
        try:
            return converted(obj)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise NotTakenError(f"its fields are not those of {obj['apiVersion']}") from None

    def _reason_of_unknown_kind(self, obj: Object) -> str:
        group, _, version = obj["apiVersion"].rpartition("/")
        scheme = self._cluster.scheme
        has_kind = any(
            resource.kind == obj["kind"] and resource.group == group for resource in scheme
        )
        if has_kind:
            return f"version {version} is not served by v1.36, and there is no conversion"
        if "." in group and not group.endswith(".k8s.io"):
            return "the source holds no definition of this kind"
        return "v1.36 does not have this kind, and the source holds no definition of it"

    def _in_storage_version(self, obj: Object, resource: Resource) -> tuple[Object, Resource]:
        """Return a custom resource in the version in which it is kept. Raises NotTakenError."""
        stored = resource.at(resource.storage_version or resource.version)
        if obj["apiVersion"] == stored.api_version:
            return obj, stored
        definition = self._cluster.client.get(CRDS, resource.key)
        conversion = definition["spec"].get("conversion") or {}
        if conversion.get("strategy", "None") != "None":
            raise NotTakenError(
                f"it is in {obj['apiVersion']}, and only a webhook can convert it to "
                f"{stored.version}, in which it is kept"
            )
        return {**obj, "apiVersion": stored.api_version}, stored

    def _namespace_of(self, metadata: Object, resource: Resource) -> str:
        """Return the namespace of an object, "" for none. Raises NotTakenError."""
        namespace = metadata.get("namespace") or ""
        if not isinstance(namespace, str):
            raise NotTakenError("its namespace is no text")
        if not resource.namespaced:
            return ""
        namespace = namespace or "default"
        problems = self._cluster.name_problems(self._cluster.scheme.by_key("namespaces"), namespace)
        if problems:
            raise NotTakenError(f"the name of its namespace is invalid: {problems[0]}")
        return namespace

    def _decoded(self, obj: Object, resource: Resource) -> Object:
        """Return an object with the fields that its kind has. Raises NotTakenError."""
        unknown: list[str] = []
        try:
            decoded = self._cluster.decoded(resource, obj, unknown)
        except errors.Status as status:
            raise NotTakenError(one_line(status.message)) from None
        kind = _kind_text(obj)
        for field in {_KEY.sub("[]", field) for field in unknown}:
            self._taken.unknown_fields[kind, field] += 1
        return decoded


def _is_too_large(obj: Object) -> bool:
    """Tell whether no state folder takes an object. Its managers are in a file of their own."""
    if len(json.dumps(obj)) < LARGE:
        return False
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return len(yaml.dump({**obj, "metadata": metadata}).encode()) > LARGEST_OBJECT


def _placed(metadata: Object, namespace: str) -> Object:
    """Return metadata in a namespace, or in none."""
    rest = {name: value for name, value in metadata.items() if name != "namespace"}
    if namespace:
        rest["namespace"] = namespace
    return rest


def revision_of(obj: Object) -> int:
    """Return the resourceVersion of an object, 0 where it has none that is a number."""
    text = obj["metadata"].get("resourceVersion") or ""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit():
        return 0
    number = int(text)
    return number if number < 1 << 62 else 0


def _is_newer(obj: Object, other: Object) -> bool:
    """Tell whether a state of an object is later than another one from the same source."""
    return revision_of(obj) > revision_of(other)


def _kind_text(obj: Object) -> str:
    """Return the kind of an object with its group: ``Deployment.apps``."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    group = api_version.rpartition("/")[0] if isinstance(api_version, str) else ""
    return printable(f"{kind}.{group}" if group else f"{kind}")


def _title(obj: Object) -> str:
    return f"{_kind_text(obj)} {_name_text(obj)}"


def _name_text(obj: Object) -> str:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return printable(full_name(namespace or "", f"{name}"))


def counted(refused: Iterable[RefusedObject]) -> Mapping[tuple[str, str], list[str]]:
    """Return the names of refused objects by kind and reason, in order."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for entry in sorted(refused):
        by_reason.setdefault((entry.kind, entry.reason), []).append(entry.name)
    return by_reason
