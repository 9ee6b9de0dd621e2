"""Objects on their way through a kustomization: their earlier ids, and how they are selected.

Upstream: ``kustomize/api/resource/resource.go``, ``resmap/reswrangler.go``, ``kyaml/resid``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, labels_of, nested_map
from kubepy.api.values.goformat import to_json, type_name
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import schemas
from kubepy.cli.kustomization.files import FileLoader, contents_of
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import selectors


BLANK = "\0blank"
NOT_A_NAMESPACE = "_non_namespaceable_"
ORDER_FIRST = (
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
)
ORDER_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def kind_ranks(
    first: Sequence[str] = ORDER_FIRST, last: Sequence[str] = ORDER_LAST
) -> dict[str, int]:
    """Return the rank of each kind that comes before or after all others, whose rank is 0."""
    return {kind: index - len(first) for index, kind in enumerate(first)} | {
        kind: index + 1 for index, kind in enumerate(last)
    }


def gvk_order(group: str, version: str, kind: str) -> tuple[int, str]:
    """Return the order of types (``Gvk.IsLessThan``)."""
    return kind_ranks().get(kind, 0), f"{group or '~G'}_{version or '~V'}_{kind or '~K'}"


def gvk_text(group: str, version: str, kind: str) -> str:
    """Return ``Deployment.v1.apps``."""
    return f"{kind or '[noKind]'}.{version or '[noVer]'}.{group or '[noGrp]'}"


class ResId(NamedTuple):
    """The group, version, kind, name and namespace that an object has at some step of the build."""

    group: str
    version: str
    kind: str
    name: str
    namespace: str

    @property
    def is_cluster_scoped(self) -> bool:
        return schemas.active.is_cluster_scoped(self.api_version, self.kind)

    @property
    def api_version(self) -> str:
        if self.group:
            return f"{self.group}/{self.version}"
        return self.version

    @property
    def effective_namespace(self) -> str:
        """Return the namespace that counts: none and ``default`` are the same."""
        if self.is_cluster_scoped:
            return NOT_A_NAMESPACE
        return self.namespace or "default"

    @property
    def legacy_sort_key(self) -> tuple[str, str, str]:
        """Return the order of objects of the same rank (``legacySortString``)."""
        return (
            gvk_order(self.group, self.version, self.kind)[1],
            self.namespace or "~X",
            self.name or "~N",
        )

    def equals(self, other: ResId) -> bool:
        return self._replace(namespace=self.effective_namespace) == other._replace(
            namespace=other.effective_namespace
        )

    def is_selected(self, group: str, version: str, kind: str) -> bool:
        """Return whether the id is of a type; "" selects all."""
        pairs = ((group, self.group), (version, self.version), (kind, self.kind))
        return all(selected in ("", actual) for selected, actual in pairs)

    @property
    def go_syntax(self) -> str:
        """Return the id as Go prints a struct with its fields."""
        scoped = str(self.is_cluster_scoped).lower()
        return (
            f"resid.ResId{{Gvk:resid.Gvk{{Group:{quote(self.group)}, "
            f"Version:{quote(self.version)}, "
            f"Kind:{quote(self.kind)}, isClusterScoped:{scoped}}}, Name:{quote(self.name)}, "
            f"Namespace:{quote(self.namespace)}}}"
        )

    def __str__(self) -> str:
        """Return ``Deployment.v1.apps/web.default``."""
        kind = gvk_text(self.group, self.version, self.kind)
        return f"{kind}/{self.name or '[noName]'}.{self.namespace or '[noNs]'}"


def take_blanks(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Put nulls in the places of BLANK, and yield their paths."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        if value == BLANK:
            node[key] = None
            yield *path, key
        elif isinstance(value, dict | list):
            yield from take_blanks(value, (*path, key))


class KustomizedResource:
    """An object in a build.

    ``previous`` are its earlier ids, the oldest first; ``prefixes`` and ``suffixes`` were put
    around its name, the innermost first; ``variables`` are read from it. ``blanks`` are the paths
    to nulls that were not written out: the first strategic merge patch removes them, while others
    stay.
    """

    def __init__(self, obj: Object, *, behavior: str = "", needs_hash: bool = False) -> None:
        self.object = obj
        self.blanks = list(take_blanks(obj))
        self.previous: list[ResId] = []
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.behavior = behavior
        self.needs_hash = needs_hash
        self.variables: list[str] = []
        self._shared: list[tuple[str, list[Object]]] = []

    @property
    def id(self) -> ResId:
        group, _, version = str(self.object.get("apiVersion") or "").rpartition("/")
        meta = nested_map(self.object, "metadata")
        name = meta.get("name") or ""
        namespace = meta.get("namespace") or ""
        return ResId(group, version, str(self.object.get("kind") or ""), str(name), str(namespace))

    @property
    def original(self) -> ResId:
        if self.previous:
            return self.previous[0]
        return self.id

    @property
    def ids(self) -> list[ResId]:
        return [*self.previous, self.id]

    def text_at(self, path: tuple[Any, ...], value: Any) -> Any:
        """Return a label or annotation as a text, as upstream writes it."""
        if isinstance(value, str | dict | list):
            return value
        if value is None:
            if path in self.blanks:
                return ""
            return "null"
        if isinstance(value, bool):
            return str(value).lower()
        return str(value)

    def share(self, name: str, holders: list[Object]) -> None:
        """Note maps to which a transformer has added a key: upstream puts one node there, which
        changes as one."""
        if len(holders) > 1:
            self._shared.append((name, [*holders, {name: holders[0][name]}]))

    def check(self) -> None:
        """Raise CliError for metadata of other types than Kubernetes knows."""
        meta = self.object.get("metadata")
        fields = meta if isinstance(meta, dict) else {"metadata": meta}
        for field, value in fields.items():
            is_map = field in ("metadata", "labels", "annotations")
            if (is_map and not isinstance(value, dict | None)) or (
                field in ("name", "namespace") and isinstance(value, dict | list)
            ):
                expected = "MappingNode" if is_map else "ScalarNode"
                raise CliError(
                    f"wrong node kind: expected {expected} in the field {field} of "
                    f"{to_json(self.object)}"
                )
        if meta is None:
            self.object["metadata"] = {}

    def synchronize(self) -> None:
        """Change the values that are one node upstream wherever one of them has changed."""
        for name, holders in self._shared:
            before = holders[-1][name]
            holders[:] = [holder for holder in holders if name in holder]
            changed = next((holder[name] for holder in holders if holder[name] != before), before)
            for holder in holders:
                holder[name] = changed

    def drop_blanks(self) -> None:
        """Remove the fields whose nulls were not written out."""
        for path in self.blanks:
            holder: Any = self.object
            for key in path[:-1]:
                if isinstance(holder, dict):
                    is_there = key in holder
                else:
                    is_there = isinstance(holder, list) and key < len(holder)
                holder = holder[key] if is_there else None
            if isinstance(holder, dict) and path[-1] in holder and holder[path[-1]] is None:
                del holder[path[-1]]
        self.blanks = []

    def remember(self) -> None:
        """Keep the present id, before the name, namespace or kind changes."""
        self.previous.append(self.id)

    @property
    def json(self) -> str:
        """Return the object in one line, for messages."""
        return to_json(self.object)


def read_resources(text: str) -> list[KustomizedResource]:
    """Return the resources of a text, those of Lists one by one. Raises CliError when one has no
    kind or name."""
    try:
        contents = [content for content in contents_of(text, blank=BLANK) if content is not None]
    except CliError as error:
        raise CliError(f"MalformedYAMLError: {error}") from None

    if (
        len(contents) == 1
        and isinstance(contents[0], dict)
        and contents[0].get("kind") in ("List", "ResourceList")
        and "items" in contents[0]
    ):
        contents = list(contents[0]["items"]) if isinstance(contents[0]["items"], list) else []

    queue = [content for content in contents if content != {}]
    resources = []
    for content in queue:
        _check_metadata(content)
    while queue:
        obj = queue.pop(0)
        if not obj["kind"].endswith("List") or "items" not in obj:
            resources.append(KustomizedResource(obj))
            resources[-1].check()
            continue
        items = obj["items"]
        if not isinstance(items, list | None):
            raise CliError(f"expected array in {obj['kind']}/items, but found {type_name(items)}")
        for item in items or ():
            _check_metadata(item)
            queue.append(item)

    return resources


def load_resources(loader: FileLoader, path: str) -> list[KustomizedResource]:
    """Return the resources of a file. Raises CliError."""
    text = loader.text(path)
    try:
        return read_resources(text)
    except CliError as error:
        if str(error).startswith("MalformedYAMLError"):
            raise CliError(f"{error} in File: {path}") from None
        raise


def _check_metadata(obj: Any) -> None:
    """Raise CliError for an object without metadata, kind or name (``GetValidatedMetadata``)."""
    for name in ("apiVersion", "kind", "metadata") if isinstance(obj, dict) else ():
        if obj.get(name) == BLANK:
            obj[name] = None
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if (
        not isinstance(obj, dict)
        or not isinstance(meta, dict | None)
        or (not meta and not obj.get("kind") and not obj.get("apiVersion"))
    ):
        raise CliError("missing Resource metadata")

    meta = meta or {}
    pairs = [
        f"map["
        f"{' '.join(f'{key}:{value}' for key, value in sorted((meta.get(name) or {}).items()))}]"
        for name in ("labels", "annotations")
        if isinstance(meta.get(name) or {}, dict)
    ]
    shown = (
        f"{{{{{obj.get('apiVersion') or ''} {obj.get('kind') or ''}}} "
        f"{{{{{meta.get('name') or ''} {meta.get('namespace') or ''}}} {' '.join(pairs)}}}}}"
    )
    if not obj.get("kind"):
        raise CliError(f"missing kind in object {shown}")
    if not isinstance(obj["kind"], str):
        raise CliError("missing Resource metadata")
    if not meta.get("name") and not obj["kind"].endswith("List"):
        raise CliError(f"missing metadata.name in object {shown}")
    obj["metadata"] = meta


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

    def __init__(self, resources: Iterable[KustomizedResource] = ()) -> None:
        self.all: list[KustomizedResource] = []
        self.variables: dict[str, Var] = {}
        for resource in resources:
            self.append(resource)

    def __iter__(self) -> Iterator[KustomizedResource]:
        return iter(self.all)

    def append(self, resource: KustomizedResource) -> None:
        """Add a resource. Raises CliError when an object with that id is there already."""
        if self.with_id(resource.id):
            raise CliError(f"may not add resource with an already registered id: {resource.id}")
        self.all.append(resource)

    def with_id(self, resource_id: ResId) -> list[KustomizedResource]:
        """Return the resources that have an id now."""
        return [
            resource
            for resource in self.all
            if str(nested_map(resource.object, "metadata").get("name", "")) == resource_id.name
            and resource.id.equals(resource_id)
        ]

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
            raise CliError(
                f"{problem} for Id {resource_id}; failed to find unique target for patch "
                f"{resource_id}"
            )
        return matching[0]

    def absorb(self, generated: KustomizedResource) -> None:
        """Add a generated object, or its data to an object that is there. Raises CliError."""
        matching = self._matching(generated.id)
        changes = generated.behavior in ("merge", "replace")
        shown = generated.id.go_syntax
        if not matching:
            if changes:
                raise CliError(f"id {shown} does not exist; cannot merge or replace")
            self.append(generated)
        elif len(matching) > 1:
            listed = " ".join(resource.json for resource in matching)
            raise CliError(
                f"found multiple objects [{listed}] that could accept merge of {generated.id}"
            )
        elif not changes:
            behavior = generated.behavior if generated.behavior == "create" else "unspecified"
            raise CliError(
                f"id {shown} exists; can not use behavior: '{behavior}', behavior must be merge "
                f"or replace"
            )
        else:
            _merge_data(matching[0], generated)

    def _matching(self, resource_id: ResId) -> list[KustomizedResource]:
        return [
            resource
            for resource in self.all
            if any(known_id.equals(resource_id) for known_id in resource.ids)
        ]

    def select(self, target: dict[str, str]) -> list[KustomizedResource]:
        """Return the resources that a patch's target selects by their first or present id. Raises
        CliError."""
        return [
            resource
            for resource in self.all
            if all(
                any(_matches(target.get(part, ""), text) for text in texts)
                for part, texts in (
                    (
                        "namespace",
                        (resource.original.effective_namespace, resource.id.effective_namespace),
                    ),
                    ("name", (resource.original.name, resource.id.name)),
                )
            )
            and all(
                _matches(target.get(part, ""), getattr(resource.id, part))
                for part in ("group", "version", "kind")
            )
            and has_selected_metadata(resource, target)
        ]

    def drop_deleted(self) -> None:
        """Remove the resources that a patch has deleted."""
        self.all = [resource for resource in self.all if resource.object]


def _merge_data(old: KustomizedResource, generated: KustomizedResource) -> None:
    """Replace an object's data by generated data, or add it; the object keeps its metadata and gets
    the new one's."""
    meta = old.object["metadata"]
    new = generated.object
    for name in ("labels", "annotations"):
        if merged := {**(meta.get(name) or {}), **(new["metadata"].get(name) or {})}:
            new["metadata"][name] = merged
    new["metadata"] = {**meta, **new["metadata"], "name": meta["name"]}
    if generated.behavior == "merge":
        if origin := annotations_of(old.object).get("config.kubernetes.io/origin"):
            new["metadata"]["annotations"]["config.kubernetes.io/origin"] = origin
        for name in ("data", "binaryData"):
            if merged := {**(old.object.get(name) or {}), **(new.get(name) or {})}:
                new[name] = merged
    old.object = new
    old.needs_hash = old.needs_hash and generated.needs_hash


def is_selected(resource_id: ResId, selector: dict[str, str]) -> bool:
    """Return whether the parts of an id match those of a selector, which are anchored regular
    expressions."""
    return all(
        _matches(selector.get(part, ""), text) for part, text in resource_id._asdict().items()
    )


def has_selected_metadata(resource: KustomizedResource, selector: dict[str, str]) -> bool:
    """Return whether the labels and annotations of a resource are those that a selector wants.
    Raises CliError."""
    return _matches_labels(
        selector.get("labelSelector", ""), labels_of(resource.object)
    ) and _matches_labels(selector.get("annotationSelector", ""), annotations_of(resource.object))


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
