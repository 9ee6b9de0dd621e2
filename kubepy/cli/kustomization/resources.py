"""Objects on their way through a kustomization: what they were called, and how they are found.

Upstream: ``kustomize/api/resource/resource.go``, ``resmap/reswrangler.go``, ``kyaml/resid``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kubepy.api.meta import Object, annotations_of, labels_of
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.cli.errors import CliError


class Id(NamedTuple):
    """What an object is called at one time."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str

    @property
    def is_cluster_scoped(self) -> bool:
        return is_cluster_scoped(self.group, self.kind)

    @property
    def place(self) -> str:
        """The namespace that counts: none and ``default`` are one."""
        return "" if self.is_cluster_scoped else self.namespace or "default"

    def is_same(self, other: Id) -> bool:
        return self._replace(namespace=self.place) == other._replace(namespace=other.place)

    def __str__(self) -> str:
        """``Deployment.v1.apps/web.default``."""
        kind = f"{self.kind or '[noKind]'}.{self.version or '[noVer]'}.{self.group or '[noGrp]'}"
        return f"{kind}/{self.name or '[noName]'}.{self.namespace or '[noNs]'}"


@cache
def _cluster_scoped() -> frozenset[tuple[str, str]]:
    from kubepy.api.scheme import BUILT_IN

    return frozenset((one.group, one.kind) for one in BUILT_IN if not one.namespaced)


def is_cluster_scoped(group: str, kind: str) -> bool:
    """Whether a kind is known to have no namespace."""
    return (group, kind) in _cluster_scoped()


class Resource:
    """One object, its earlier ids (the oldest first), what was put around its name (the innermost first), and the
    variables that are read from it."""

    def __init__(self, obj: Object, *, behavior: str = "", needs_hash: bool = False) -> None:
        self.object = obj
        self.previous: list[Id] = []
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.behavior = behavior
        self.needs_hash = needs_hash
        self.variables: list[str] = []

    @property
    def id(self) -> Id:
        group, _, version = str(self.object.get("apiVersion", "")).rpartition("/")
        meta = self.object.get("metadata") or {}
        return Id(group, version, self.object.get("kind", ""), meta.get("name", ""), meta.get("namespace", ""))

    @property
    def original(self) -> Id:
        return self.previous[0] if self.previous else self.id

    @property
    def ids(self) -> list[Id]:
        return [*self.previous, self.id]

    def remember(self) -> None:
        """Before the name, namespace or kind changes: keep what they were."""
        if self.id not in self.previous:
            self.previous.append(self.id)

    def rename(self, name: str) -> None:
        self.object["metadata"]["name"] = name


def is_selected(found: Id, group: str = "", version: str = "", kind: str = "") -> bool:
    """Whether an id is of a type; what is "" counts for all."""
    return all(wanted in ("", is_) for wanted, is_ in ((group, found.group), (version, found.version),
                                                        (kind, found.kind)))


class Variable(NamedTuple):
    """One of ``vars``: the field ``path`` of the object ``target``, under a name."""

    name: str
    target: Id
    path: str

    def __str__(self) -> str:
        kind = str(self.target).partition("/")[0]
        return f"{{{self.name} {kind} {{{self.path}}}}}"


class Resources:
    """The objects of a kustomization, in order, and its variables by name."""

    def __init__(self) -> None:
        self.all: list[Resource] = []
        self.variables: dict[str, Variable] = {}

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.all)

    def append(self, resource: Resource) -> None:
        """Raises CliError for one that is there already."""
        if any(one.id.is_same(resource.id) for one in self.all):
            raise CliError(f"may not add resource with an already registered id: {resource.id}")
        self.all.append(resource)

    def declare(self, variable: Variable) -> None:
        """Raises CliError for a name that is taken."""
        if variable.name in self.variables:
            raise CliError(f"var '{variable.name}' already encountered")
        self.variables[variable.name] = variable

    def take_in(self, others: Resources) -> None:
        """All of another kustomization. Raises CliError for what is there already."""
        for resource in others:
            self.append(resource)
        for variable in others.variables.values():
            self.declare(variable)

    def named(self, wanted: Id) -> Resource:
        """The one resource that is or was called so. Raises CliError."""
        found = [one for one in self.all if any(one_id.is_same(wanted) for one_id in one.ids)]
        if len(found) != 1:
            problem = "multiple matches" if found else "no matches"
            raise CliError(f"{problem} for Id {wanted}; failed to find unique target for patch {wanted}")
        return found[0]

    def absorb(self, made: Resource) -> None:
        """Take in a generated object: a new one, or data for one that is there. Raises CliError."""
        found = [one for one in self.all if any(one_id.is_same(made.id) for one_id in one.ids)]
        if not found:
            if made.behavior in ("merge", "replace"):
                raise CliError(f"id {made.id} does not exist; cannot merge or replace")
            self.append(made)
        elif len(found) > 1:
            raise CliError(f"found multiple objects {made.id} that could accept merge")
        elif made.behavior not in ("merge", "replace"):
            raise CliError(f"id {made.id} exists; behavior must be merge or replace")
        else:
            _merge_data(found[0], made)

    def select(self, target: dict[str, str]) -> list[Resource]:
        """The resources that a patch's target means. Raises CliError for what is no expression."""
        return [one for one in self.all if is_target(one, target)]


def _merge_data(old: Resource, made: Resource) -> None:
    """Generated data in the place of the old one's, or over it; its metadata stays and is added to."""
    meta, new = old.object["metadata"], made.object
    for name in ("labels", "annotations"):
        if merged := {**(meta.get(name) or {}), **(new["metadata"].get(name) or {})}:
            new["metadata"][name] = merged
    new["metadata"] = {**meta, **new["metadata"], "name": meta["name"]}
    if made.behavior == "merge":
        for name in ("data", "binaryData"):
            if merged := {**(old.object.get(name) or {}), **(new.get(name) or {})}:
                new[name] = merged
    old.object = new
    old.needs_hash = old.needs_hash and made.needs_hash


# --- targets ------------------------------------------------------------------------------------------------------


def is_target(resource: Resource, target: dict[str, str]) -> bool:
    """Whether a selector means a resource: its parts are anchored regular expressions, its labels a label selector."""
    return (_matches_id(resource, target)
            and _matches_labels(target.get("labelSelector", ""), labels_of(resource.object))
            and _matches_labels(target.get("annotationSelector", ""), annotations_of(resource.object)))


def _matches_id(resource: Resource, target: dict[str, str]) -> bool:
    ids = resource.ids
    return (any(_matches(target.get("namespace", ""), one.place) for one in ids)
            and any(_matches(target.get("name", ""), one.name) for one in ids)
            and all(_matches(target.get(part, ""), getattr(resource.id, part))
                    for part in ("group", "version", "kind")))


def _matches(pattern: str, text: str) -> bool:
    if not pattern:
        return True
    try:
        return compile_go(f"^(?:{pattern})$").search(text)
    except GoRegexError as error:
        raise CliError(str(error)) from None


def _matches_labels(selector: str, labels: dict[str, str]) -> bool:
    from kubepy.api.selectors import SelectorError, parse_labels

    try:
        return not selector or parse_labels(selector).matches(labels)
    except SelectorError as error:
        raise CliError(f"unable to parse selector {selector}: {error}") from None
