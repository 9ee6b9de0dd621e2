"""Objects on their way through a kustomization: their earlier ids, and how they are selected.

Upstream: ``kustomize/api/resource/resource.go``, ``resmap/reswrangler.go``, ``kyaml/resid``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, labels_of
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.cli.errors import CliError
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import scheme, selectors


class ResId(NamedTuple):
    """The group, version, kind, name and namespace that an object has at some step of the build."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str

    @property
    def is_cluster_scoped(self) -> bool:
        return (self.group, self.kind) in _cluster_scoped_kinds()

    @property
    def effective_namespace(self) -> str:
        """Return the namespace that counts: none and ``default`` are the same."""
        return "" if self.is_cluster_scoped else self.namespace or "default"

    @property
    def legacy_sort_key(self) -> tuple[str, str, str]:
        """Return the order of objects of the same rank (``legacySortString``)."""
        kind = f"{self.group or '~G'}_{self.version or '~V'}_{self.kind or '~K'}"
        return kind, self.namespace or "~X", self.name or "~N"

    def equals(self, other: ResId) -> bool:
        return (self._replace(namespace=self.effective_namespace)
                == other._replace(namespace=other.effective_namespace))

    def is_selected(self, group: str, version: str, kind: str) -> bool:
        """Return whether the id is of a type; "" selects all."""
        pairs = ((group, self.group), (version, self.version), (kind, self.kind))
        return all(selected in ("", actual) for selected, actual in pairs)

    def __str__(self) -> str:
        """Return ``Deployment.v1.apps/web.default``."""
        kind = f"{self.kind or '[noKind]'}.{self.version or '[noVer]'}.{self.group or '[noGrp]'}"
        return f"{kind}/{self.name or '[noName]'}.{self.namespace or '[noNs]'}"


@cache
def _cluster_scoped_kinds() -> frozenset[tuple[str, str]]:
    """Return the group and kind of all built-in resources without namespaces."""
    return frozenset((resource.group, resource.kind) for resource in scheme.BUILT_IN if not resource.namespaced)


class KustomizedResource:
    """An object in a build.

    ``previous`` are its earlier ids, the oldest first; ``prefixes`` and ``suffixes`` were put around its name, the
    innermost first; ``variables`` are read from it.
    """

    def __init__(self, obj: Object, *, behavior: str = "", needs_hash: bool = False) -> None:
        self.object = obj
        self.previous: list[ResId] = []
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.behavior = behavior
        self.needs_hash = needs_hash
        self.variables: list[str] = []

    @property
    def id(self) -> ResId:
        group, _, version = str(self.object.get("apiVersion", "")).rpartition("/")
        meta = self.object.get("metadata") or {}
        return ResId(group, version, self.object.get("kind", ""), meta.get("name", ""), meta.get("namespace", ""))

    @property
    def original(self) -> ResId:
        return self.previous[0] if self.previous else self.id

    @property
    def ids(self) -> list[ResId]:
        return [*self.previous, self.id]

    def remember(self) -> None:
        """Keep the present id, before the name, namespace or kind changes."""
        if self.id not in self.previous:
            self.previous.append(self.id)

    def rename(self, name: str) -> None:
        self.object["metadata"]["name"] = name


def read_resource(obj: Any) -> KustomizedResource:
    """Return the resource of an object that was read. Raises CliError when it has no kind or name."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        raise CliError("missing Resource metadata")
    if not obj.get("kind"):
        raise CliError("missing kind")
    if not obj["metadata"].get("name") and not obj["metadata"].get("generateName"):
        raise CliError("missing metadata.name in object")
    return KustomizedResource(obj)


class Var(NamedTuple):
    """An entry of ``vars``: the field ``path`` of the object ``target``, under a name."""

    name: str
    target: ResId
    path: str

    def refers_to(self, resource_id: ResId) -> bool:
        """Return whether the target is an object; a target without a namespace is meant in any."""
        if self.target.namespace or self.target.is_cluster_scoped:
            return self.target.equals(resource_id)
        return self.target._replace(namespace="") == resource_id._replace(namespace="")

    def __str__(self) -> str:
        kind = str(self.target).partition("/")[0]
        return f"{{{self.name} {kind} {{{self.path}}}}}"


class ResMap:
    """The objects of a kustomization, in order, and its variables by name."""

    def __init__(self) -> None:
        self.all: list[KustomizedResource] = []
        self.variables: dict[str, Var] = {}

    def __iter__(self) -> Iterator[KustomizedResource]:
        return iter(self.all)

    def append(self, resource: KustomizedResource) -> None:
        """Add a resource. Raises CliError when an object with that id is there already."""
        if any(present.id.equals(resource.id) for present in self.all):
            raise CliError(f"may not add resource with an already registered id: {resource.id}")
        self.all.append(resource)

    def declare(self, variable: Var) -> None:
        """Add a variable. Raises CliError for a name that is taken."""
        if variable.name in self.variables:
            raise CliError(f"var '{variable.name}' already encountered")
        self.variables[variable.name] = variable

    def take_in(self, others: ResMap) -> None:
        """Add everything of another kustomization. Raises CliError for what is there already."""
        for resource in others:
            self.append(resource)
        for variable in others.variables.values():
            self.declare(variable)

    def named(self, resource_id: ResId) -> KustomizedResource:
        """Return the only resource that has or had this id. Raises CliError."""
        matching = self._matching(resource_id)
        if len(matching) != 1:
            problem = "multiple matches" if matching else "no matches"
            raise CliError(f"{problem} for Id {resource_id}; failed to find unique target for patch {resource_id}")
        return matching[0]

    def absorb(self, generated: KustomizedResource) -> None:
        """Add a generated object, or its data to an object that is there. Raises CliError."""
        matching, changes = self._matching(generated.id), generated.behavior in ("merge", "replace")
        if not matching:
            if changes:
                raise CliError(f"id {generated.id} does not exist; cannot merge or replace")
            self.append(generated)
        elif len(matching) > 1:
            raise CliError(f"found multiple objects {generated.id} that could accept merge")
        elif not changes:
            raise CliError(f"id {generated.id} exists; behavior must be merge or replace")
        else:
            _merge_data(matching[0], generated)

    def _matching(self, resource_id: ResId) -> list[KustomizedResource]:
        return [resource for resource in self.all if any(known_id.equals(resource_id) for known_id in resource.ids)]

    def select(self, target: dict[str, str]) -> list[KustomizedResource]:
        """Return the resources that a patch's target selects. Raises CliError for an invalid expression."""
        return [resource for resource in self.all if is_target(resource, target)]


def _merge_data(old: KustomizedResource, generated: KustomizedResource) -> None:
    """Replace an object's data by generated data, or add it; the object keeps its metadata and gets the new one's."""
    meta, new = old.object["metadata"], generated.object
    for name in ("labels", "annotations"):
        if merged := {**(meta.get(name) or {}), **(new["metadata"].get(name) or {})}:
            new["metadata"][name] = merged
    new["metadata"] = {**meta, **new["metadata"], "name": meta["name"]}
    if generated.behavior == "merge":
        for name in ("data", "binaryData"):
            if merged := {**(old.object.get(name) or {}), **(new.get(name) or {})}:
                new[name] = merged
    old.object = new
    old.needs_hash = old.needs_hash and generated.needs_hash


def is_target(resource: KustomizedResource, target: dict[str, str]) -> bool:
    """Return whether a selector selects a resource: its parts are anchored regular expressions or label selectors."""
    ids = resource.ids
    return (any(_matches(target.get("namespace", ""), known_id.effective_namespace) for known_id in ids)
            and any(_matches(target.get("name", ""), known_id.name) for known_id in ids)
            and all(_matches(target.get(part, ""), getattr(resource.id, part)) for part in ("group", "version", "kind"))
            and _matches_labels(target.get("labelSelector", ""), labels_of(resource.object))
            and _matches_labels(target.get("annotationSelector", ""), annotations_of(resource.object)))


def _matches(pattern: str, text: str) -> bool:
    if not pattern:
        return True
    try:
        return compile_go(f"^(?:{pattern})$").search(text)
    except GoRegexError as error:
        raise CliError(str(error)) from None


def _matches_labels(selector: str, labels: dict[str, str]) -> bool:
    try:
        return not selector or selectors.parse_labels(selector).matches(labels)
    except selectors.SelectorError as error:
        raise CliError(f"unable to parse selector {selector}: {error}") from None
