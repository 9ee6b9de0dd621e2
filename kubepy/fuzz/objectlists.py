"""The lists of objects that checks read: they follow the writes of a run, one by one.

A list knows the bodies of macros that are remembered by its objects (``kubepy.fuzz.memo``), and an
abstract of its objects (:meth:`ObjectLists.digest`), by which runs are compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from kubepy.api.errors import MethodNotAllowed, NotFound
from kubepy.api.meta import Object, is_being_deleted, name_of, namespace_of, uid_of
from kubepy.api.scheme import BUILT_IN
from kubepy.apiserver.settings import IMPLIED
from kubepy.fuzz.expressions import resource_of
from kubepy.lazy import blake2b
from kubepy.storage import FolderError, Key

if TYPE_CHECKING:
    from kubepy.api.scheme import Scheme
    from kubepy.apiserver.client import Client

Abstract = Callable[[Object], Any]  # returns a token of an object, or a tuple of them
# Recorders write events, and kubelets renew leases, without a request that is told of.
UNTOLD = frozenset(("events", "leases.coordination.k8s.io"))
NAMESPACES = "namespaces"
_BITS = 2**64 - 1


class CheckError(FolderError):
    """A check cannot be evaluated; names the check and the object."""


class Memory(Protocol):
    """Values of the objects of a list."""

    def replace(self, old: Object, new: Object | None) -> None:
        """Forget the value of an object; another is in its place, or it is gone (None)."""

    def clear(self) -> None:
        """Forget all values."""


class CheckedList:
    """The objects of a resource in all namespaces, sorted by namespace and name.

    :param resource: its key in storage; "" as long as no kind has the plural.
    :param kind: that of its objects.
    :ivar objects: the list that expressions read; it stays the same list.
    :ivar memories: what is remembered of the objects of this list.
    :ivar dependents: memories that read this list, each with the list that it is about.
    :ivar abstracts: the tokens of an object that a digest is made of.
    """

    def __init__(self, resource: str = "", kind: str = "") -> None:
        self.resource = resource
        self.kind = kind
        self.objects: list[Object] = []
        self.memories: list[Memory] = []
        self.dependents: list[tuple[Memory, CheckedList]] = []
        self.abstracts: list[Abstract] = []
        self._keys: list[Key] = []
        self._changed: dict[Key, Object | None] = {}  # since the last digest
        self._digests: dict[Key, int] = {}
        self._sum = 0

    def replace(self, key: Key, obj: Object | None) -> bool:
        """Put an object in the place of the one that has its key; None: it is gone. Returns whether
        that changes anything."""
        index = bisect_left(self._keys, key)
        is_there = index < len(self._keys) and self._keys[index] == key
        old = self.objects[index] if is_there else None
        if old is obj:
            return False
        if obj is None:
            del self._keys[index], self.objects[index]
        elif is_there:
            self.objects[index] = obj
        else:
            self._keys.insert(index, key)
            self.objects.insert(index, obj)
        if old is not None:
            for memory in self.memories:
                memory.replace(old, obj)
        for memory, owner in self.dependents:
            memory.clear()
            owner.change_all()
        self._changed[key] = obj
        return True

    def change_all(self) -> None:
        """Count all objects as changed: what is remembered of them does not hold any more."""
        self._changed.update(zip(self._keys, self.objects, strict=True))

    def put_all(self, objects: Iterable[Object]) -> bool:
        """Make these the objects of the list. Returns whether that changes anything."""
        present: dict[Key, Object] = {}
        for obj in objects:
            key = Key(self.resource, namespace_of(obj), name_of(obj))
            present[key] = obj
        gone = [key for key in self._keys if key not in present]
        has_changed = False
        for key in gone:
            has_changed |= self.replace(key, None)
        for key, obj in present.items():
            has_changed |= self.replace(key, obj)
        return has_changed

    def digest(self) -> int:
        """Return 64 bits of the tokens of all objects, whatever their names and their order."""
        for key, obj in self._changed.items():
            self._sum -= self._digests.pop(key, 0)
            if obj is None:
                continue
            digest = self._digest_of(obj)
            self._digests[key] = digest
            self._sum += digest
        self._changed.clear()
        return self._sum & _BITS

    def _digest_of(self, obj: Object) -> int:
        is_deleted = is_being_deleted(obj)
        tokens = [token_of(abstract(obj), obj) for abstract in self.abstracts]
        return hash_of((self.resource, is_deleted, tuple(tokens)))


class ObjectLists:
    """The lists of all resources that some checks read.

    :param client: reads objects, in the batch that is open.
    :ivar scope: the objects of the lists, by the names of their variables.
    """

    def __init__(self, client: Client, scheme: Scheme) -> None:
        self._client = client
        self._scheme = scheme
        self._by_resource: dict[str, CheckedList] = {}
        self._custom: dict[str, CheckedList] = {}  # by the plural that is all their names say
        self._untold: list[CheckedList] = []
        self.by_variable: dict[str, CheckedList] = {}
        self.scope: dict[str, Any] = {}

    @property
    def resources(self) -> frozenset[str] | None:
        """The resources whose writes change the lists; None: any may, since a kind may yet be
        defined, or a list changes without a write that is told of."""
        if self._custom or self._untold:
            return None
        resources = frozenset(self._by_resource)
        if resources.isdisjoint(IMPLIED):
            return resources
        return resources | {NAMESPACES}

    # --- which lists there are

    def add(self, variable: str) -> CheckedList:
        """Return the list of a variable. Raises CheckError."""
        known = self.by_variable.get(variable)
        if known is not None:
            return known
        added = self._add_word(resource_of(variable))
        self.by_variable[variable] = added
        self.scope[variable] = added.objects
        return added

    def _add_word(self, word: str) -> CheckedList:
        """Return the list of a plural, which may have its group behind it."""
        if "." in word:
            return self.add_resource(word)
        built_in = _built_in(word)
        if built_in:
            return self.add_resource(built_in)
        return self._add_custom(word)

    def add_resource(self, word: str) -> CheckedList:
        """Return the list of a resource."""
        resource = word
        kind = ""
        known = self._scheme.get(word)
        if known is not None:
            resource = known.storage_key
            kind = known.kind
        present = self._by_resource.get(resource)
        if present is not None:
            return present
        added = CheckedList(resource, kind)
        self._by_resource[resource] = added
        self._read_all(added)
        if resource in UNTOLD:
            self._untold.append(added)
        return added

    def _add_custom(self, plural: str) -> CheckedList:
        """Return the list of the custom kind that has a plural, now or once it is defined."""
        added = CheckedList()
        self._custom[plural] = added
        for resource in self._scheme:
            if resource.plural == plural and resource.is_stored:
                self._bind(plural, resource.key)
                self._read_all(added)
        return added

    def _bind(self, plural: str, resource: str) -> CheckedList:
        """Take a resource for what a plural means. Raises CheckError if it means another."""
        bound = self._custom[plural]
        if bound.resource:
            raise CheckError(
                f"{plural} is ambiguous: it is resources['{bound.resource}'] or "
                f"resources['{resource}']"
            )
        known = self._scheme.get(resource)
        bound.resource = resource
        bound.kind = ""
        if known is not None:
            bound.kind = known.kind
        self._by_resource[resource] = bound
        return bound

    def _find(self, resource: str) -> CheckedList | None:
        """Return the list of a resource; None: no check reads it."""
        found = self._by_resource.get(resource)
        if found is not None or not self._custom:
            return found
        plural, _, _ = resource.partition(".")
        if plural not in self._custom:
            return None
        return self._bind(plural, resource)

    # --- following the writes

    def take(self, key: Key, obj: Object | None) -> list[CheckedList]:
        """Take in what a request has written. Returns the lists that have changed.

        :param key: of the request: without a name for a collection, and where one was generated.
        :param obj: what the request has returned: the object, its last state, a Scale, nothing.
        """
        changed = [found for found in self._untold if self._read_all(found)]
        if key.resource == NAMESPACES:
            changed += self._read_implied()
        found = self._find(key.resource)
        if found is None:
            return changed
        has_changed = self._take(found, key, obj)
        if has_changed:
            changed.append(found)
        return changed

    def _take(self, found: CheckedList, key: Key, obj: Object | None) -> bool:
        if not key.name:
            name = "" if obj is None else obj["metadata"].get("name")
            if not name:
                return self._read_all(found)
            key = key._replace(name=name)
        if key.resource != found.resource:
            key = key._replace(resource=found.resource)
        if not self._is_newest(obj, found):
            obj = self._read(key)
        return found.replace(key, obj)

    def _is_newest(self, obj: Object | None, found: CheckedList) -> bool:
        """Return whether an object is what was written last, and no Scale of it, nor a state in
        which it is gone."""
        if obj is None or obj.get("kind") != found.kind:
            return False
        newest = str(self._client.revision())
        version: str | None = obj["metadata"].get("resourceVersion")
        return version == newest

    def _read(self, key: Key) -> Object | None:
        try:
            return self._client.get(key.resource, key.name, namespace=key.namespace)
        except (NotFound, MethodNotAllowed):
            return None

    def _read_all(self, found: CheckedList) -> bool:
        """Read all objects of a list. Returns whether that changes anything."""
        if not found.resource:
            return False
        try:
            objects = self._client.list(found.resource).items
        except (NotFound, MethodNotAllowed):  # no such kind
            objects = []
        return found.put_all(objects)

    def _read_implied(self) -> list[CheckedList]:
        """Read the lists anew in which a namespace has objects that nobody writes."""
        implied = IMPLIED & self._by_resource.keys()
        changed: list[CheckedList] = []
        for resource in sorted(implied):
            implied_list = self._by_resource[resource]
            if self._read_all(implied_list):
                changed.append(implied_list)
        return changed

    def read_all(self) -> None:
        """Read all lists anew."""
        for found in list(self._by_resource.values()):
            self._read_all(found)

    def digest(self) -> int:
        """Return 64 bits of what checks read: see :meth:`CheckedList.digest`."""
        tokens: list[tuple[str, int, int]] = []
        for resource in sorted(self._by_resource):
            found = self._by_resource[resource]
            count = len(found.objects)
            tokens.append((resource, count, found.digest()))
        return hash_of(tuple(tokens))


@cache
def _built_in(plural: str) -> str:
    """Return the built-in resource that has a plural, "" for none."""
    for resource in BUILT_IN:
        if resource.plural == plural and resource.is_stored:
            return resource.key
    return ""


def token_of(value: Any, obj: Object) -> Any:
    """Return what a digest has of a value: of an object with another name it is the same."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        without_uid = value.replace(uid_of(obj), "")
        return without_uid.replace(name_of(obj), "")
    if isinstance(value, tuple):
        tokens = [token_of(item, obj) for item in value]
        return tuple(tokens)
    type_name = type(value).__name__
    if isinstance(value, list | dict):
        return type_name, len(value)
    return type_name


def hash_of(tokens: Any) -> int:
    """Return 64 bits of tokens, the same in every process."""
    return _hash_of_text(repr(tokens))


@lru_cache(100_000)
def _hash_of_text(text: str) -> int:
    encoded = text.encode("utf-8", "surrogatepass")
    digest = blake2b(encoded, 8)
    return int.from_bytes(digest, "big")
