"""Three-way merge of objects, for merging two branches of a repository.

:class:`Merge` merges values by their schema: maps by key, lists by the keys of their items, and
sets by value, as server-side apply and strategic merge patch do. All other values (scalars, atomic
lists and maps) are compared whole: a value that the two sides changed differently is a conflict.

:func:`merge_objects` merges whole objects. The fields that users write, their intent, merge one by
one. The fields that the system writes never conflict, and :func:`intent_of` removes them for a
repository that keeps only intent:

- ``metadata.generation`` comes from the side that has the merged spec. It must have risen with the
  spec since the base, and be above the other side's if that has another spec. If no side's
  generation can be taken, or both sides changed the status of a workload, the generation is raised
  above all versions', so that controllers compute the status again. A DaemonSet's template
  generation follows the same rule, except for the part about status, with the pod template.
- ``status`` comes whole from one side: the one that the generation comes from, else the one that
  changed status, ours if both did.
- Objects and fields that controllers would write again are taken from ours if both sides changed
  them.
- Entries of managedFields are merged by manager (:func:`merge_managers`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, annotations_of, clone, controller_of, labels_of, uid_of
from kubepy.api.objects.volumes import BOUND_BY_CONTROLLER, STORAGE_PROVISIONER
from kubepy.api.patches.elements import same
from kubepy.api.schema.openapi import Schema, schema_for
from kubepy.api.values.goformat import to_json
from kubepy.apiserver.kinds.apps.strategy import TEMPLATE_GENERATION
from kubepy.apiserver.kinds.core.podtemplates.strategy import WorkloadStrategy
from kubepy.apiserver.managedfields.fieldpath import Path, field, keys, path_text
from kubepy.apiserver.managedfields.typed import ABSENT, TypedError, child, elements, is_atomic
from kubepy.apiserver.strategy import Strategy
from kubepy.apiserver.validation.fields import semantically_equal

Side = Literal["base", "ours", "theirs"]
UNSETTLED: Any = object()
# Takes a path and the three values there (ABSENT for none), which all differ; gives the merged
# value, or UNSETTLED.
Settle = Callable[[Path, Any, Any, Any], Any]
# Takes the three values of a conflict and gives the one that stands for it.
Choose = Callable[[Any, Any, Any], Any]

# Types in which only some combinations of fields are valid, and those fields (None: all but the
# name). A merged value must have the same of them as one of the sides.
_FORMS: dict[str, frozenset[str] | None] = {
    "DaemonSetUpdateStrategy": frozenset({"rollingUpdate"}),
    "DeploymentStrategy": frozenset({"rollingUpdate"}),
    "EnvFromSource": frozenset({"configMapRef", "secretRef"}),
    "EnvVar": frozenset({"value", "valueFrom"}),
    "EnvVarSource": None,
    "LifecycleHandler": None,
    "Probe": frozenset({"exec", "grpc", "httpGet", "tcpSocket"}),
    "StatefulSetUpdateStrategy": frozenset({"rollingUpdate"}),
    "Volume": None,
}
# Types of items that the API identifies by these fields, although their list is atomic
# (``Taint.MatchTaint``).
_IDENTITIES = {"Taint": ("key", "effect")}


class Merge:
    """One merge.

    ``conflicts`` are the paths of fields that both sides changed to different values and that
    ``settle`` does not settle; each of them gets the value that ``choose`` returns.
    """

    def __init__(self, settle: Settle, choose: Choose) -> None:
        self.conflicts: list[Path] = []
        self._settle = settle
        self._choose = choose

    def merge(
        self, base: Any, ours: Any, theirs: Any, schema: Schema | None, path: Path = ()
    ) -> Any:
        """Return the merged value. ABSENT stands for a value that is not there, as argument and as
        result."""
        if same(ours, theirs) or same(base, theirs):
            return ours
        if same(base, ours):
            return theirs
        if maps := _as_maps(base, ours, theirs, schema):
            return _or_absent(self._merge_maps(maps, schema, path), ours, theirs)
        lists = _as_lists(base, ours, theirs)
        if lists and (items := _items_by_element(lists, schema, path)):
            return _or_absent(self._merge_lists(items, schema, path), ours, theirs)
        return self._conflict(path, base, ours, theirs)

    def _conflict(self, path: Path, base: Any, ours: Any, theirs: Any) -> Any:
        settled = self._settle(path, base, ours, theirs)
        if settled is not UNSETTLED:
            return settled
        self.conflicts.append(path)
        return self._choose(base, ours, theirs)

    def _merge_maps(self, maps: Sequence[dict[str, Any]], schema: Schema | None, path: Path) -> Any:
        base, ours, theirs = maps
        before = len(self.conflicts)
        merged = {}
        for name in [*ours, *(name for name in theirs if name not in ours)]:
            value = self.merge(
                base.get(name, ABSENT),
                ours.get(name, ABSENT),
                theirs.get(name, ABSENT),
                child(schema, name),
                (*path, field(name)),
            )
            if value is not ABSENT:
                merged[name] = value

        if _is_mixed(schema, merged, ours, theirs):
            del self.conflicts[before:]
            return self._conflict(path, base, ours, theirs)
        return merged

    def _merge_lists(
        self, items: list[dict[str, Any]], schema: Schema | None, path: Path
    ) -> list[Any]:
        base, ours, theirs = items
        merged = []
        for element in _order(list(base), list(ours), list(theirs)):
            value = self.merge(
                base.get(element, ABSENT),
                ours.get(element, ABSENT),
                theirs.get(element, ABSENT),
                schema and schema.items(),
                (*path, element),
            )
            if value is not ABSENT:
                merged.append(value)
        return merged


def _as_maps(
    base: Any, ours: Any, theirs: Any, schema: Schema | None
) -> tuple[Any, Any, Any] | None:
    """Return the three values as maps to be merged by key, None if they are not.

    An absent map with free keys (labels, data) is an empty one; an absent struct was removed.
    """
    if schema is not None and schema.map_type == "atomic":
        return None
    has_free_keys = schema is not None and schema.values() is not None
    if all(
        isinstance(side, dict) or (has_free_keys and _is_nothing(side)) for side in (ours, theirs)
    ):
        base, ours, theirs = (
            side if isinstance(side, dict) else {} for side in (base, ours, theirs)
        )
        return base, ours, theirs
    return None


def _as_lists(base: Any, ours: Any, theirs: Any) -> tuple[list[Any], list[Any], list[Any]] | None:
    """Return the three values as lists, None if they are not; an absent list is an empty one."""
    if all(isinstance(side, list) or _is_nothing(side) for side in (ours, theirs)):
        base, ours, theirs = (
            side if isinstance(side, list) else [] for side in (base, ours, theirs)
        )
        return base, ours, theirs
    return None


def _is_nothing(value: Any) -> bool:
    return value is ABSENT or value is None


def _items_by_element(
    lists: tuple[list[Any], list[Any], list[Any]], schema: Schema | None, path: Path
) -> list[dict[str, Any]] | None:
    """Return each list's items by their keys; None if the list is atomic, or its items cannot be
    told apart."""
    indexed = []
    for values in lists:
        names = _elements(schema, values, path)
        if names is None or len(set(names)) < len(names):
            return None
        indexed.append(dict(zip(names, values, strict=True)))
    return indexed


def _elements(schema: Schema | None, values: list[Any], path: Path) -> list[str] | None:
    if schema is None:
        return None
    items = schema.items()
    identity = None if items is None else _IDENTITIES.get(items.go_name)
    if identity and all(isinstance(value, dict) for value in values):
        return [keys({name: value.get(name, "") for name in identity}) for value in values]
    if is_atomic(schema, values):
        return None
    try:
        return elements(schema, values, path)
    except TypedError:
        return None


def _order(base: list[str], ours: list[str], theirs: list[str]) -> list[str]:
    """Order all elements as on the side that reordered those of the base, ours if both did.

    An element that only the other side has follows the element that precedes it there.
    """
    known = set(base)
    is_ours_moved = [name for name in base if name in set(ours)] != [
        name for name in ours if name in known
    ]
    first, second = (ours, theirs) if is_ours_moved else (theirs, ours)
    merged = list(first)
    for position, name in enumerate(second):
        if name not in first:
            merged.insert(merged.index(second[position - 1]) + 1 if position else 0, name)
    return merged


def _is_mixed(
    schema: Schema | None, merged: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> bool:
    """Detect a merged value in a form that neither side has: a volume of two sources, a probe of
    two kinds."""
    if schema is None or schema.go_name not in _FORMS:
        return False
    members = _FORMS[schema.go_name]
    return _form(merged, members) not in (_form(ours, members), _form(theirs, members))


def _form(value: dict[str, Any], members: frozenset[str] | None) -> tuple[set[str], Any]:
    present = value.keys() - {"name"} if members is None else value.keys() & members
    return present, value.get("type")


def _or_absent(merged: Any, ours: Any, theirs: Any) -> Any:
    """Return ABSENT for a map or list that became empty by the merge, which neither side wrote."""
    if not merged and merged not in (ours, theirs):
        return ABSENT
    return merged


# --- parts that the system writes -----------------------------------------------------------------


METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_ANNOTATIONS = (
    TEMPLATE_GENERATION,
    "control-plane.alpha.kubernetes.io/",
    "deployment.kubernetes.io/",
    "endpoints.kubernetes.io/",
    "node.alpha.kubernetes.io/ttl",
    "pv.kubernetes.io/",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/",
)
_FINALIZERS = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection")
_TAINTS = "node.kubernetes.io/"
_TAINTS_OF_USERS = ("node.kubernetes.io/out-of-service",)
# Fields below spec that controllers and the scheduler set, by kind.
_SPEC: dict[str, frozenset[str]] = {
    "PersistentVolume": frozenset({"claimRef"}),
    "PersistentVolumeClaim": frozenset({"volumeName"}),
    "Pod": frozenset({"nodeName"}),
}
_MADE_BY_CONTROLLERS = {
    "Endpoints": "endpoints.kubernetes.io/managed-by",
    "EndpointSlice": "endpointslice.kubernetes.io/managed-by",
}


def is_made_by_controller(obj: Object) -> bool:
    """Tell whether a controller created an object and would create it again.

    It is the object's owner, or only controllers write such objects (a Lease, endpoints with a
    controller's label).
    """
    if obj.get("kind") == "Lease" or controller_of(obj) is not None:
        return True
    label = _MADE_BY_CONTROLLERS.get(obj.get("kind", ""))
    return label is not None and label in labels_of(obj)


def is_written_annotation(name: str) -> bool:
    return name.startswith(_ANNOTATIONS)


def is_written_field(kind: str, name: str) -> bool:
    """Tell whether the system writes the field of that name below spec."""
    return name in _SPEC.get(kind, ())


def is_written_taint(key: str) -> bool:
    return key.startswith(_TAINTS) and key not in _TAINTS_OF_USERS


def without_written_annotations(obj: Object) -> Object:
    """Return the object without the annotations that the system writes."""
    kept = {
        name: value
        for name, value in annotations_of(obj).items()
        if not is_written_annotation(name)
    }
    metadata = {name: value for name, value in obj["metadata"].items() if name != "annotations"}
    return {**obj, "metadata": {**metadata, "annotations": kept} if kept else metadata}


def intent_of(obj: Object, *, has_status: bool = True) -> Object:
    """Return the object without the fields that the system writes and would write again in a new
    cluster.

    A volume that a user chose for a claim stays, and so does the node of a pod. ``has_status``: the
    system writes status, as in every kind with a status subresource.
    """
    intent = without_written_annotations(clone(obj))
    if has_status:
        intent.pop("status", None)
    metadata = {name: value for name, value in intent["metadata"].items() if name not in METADATA}
    _keep(metadata, "finalizers", lambda finalizer: finalizer not in _FINALIZERS)
    intent["metadata"] = metadata
    if isinstance(spec := intent.get("spec"), dict):
        _strip_spec(obj, spec)
    return intent


def _strip_spec(obj: Object, spec: dict[str, Any]) -> None:
    annotations = annotations_of(obj)
    if obj.get("kind") == "Node":
        _keep(spec, "taints", lambda taint: not is_written_taint(str(taint.get("key", ""))))
    elif obj.get("kind") == "PersistentVolumeClaim" and annotations.keys() & {
        BOUND_BY_CONTROLLER,
        STORAGE_PROVISIONER,
    }:
        spec.pop("volumeName", None)
    elif obj.get("kind") == "PersistentVolume" and isinstance(claim := spec.get("claimRef"), dict):
        if BOUND_BY_CONTROLLER in annotations:
            del spec["claimRef"]
        else:
            spec["claimRef"] = {
                name: value for name, value in claim.items() if name not in METADATA
            }


def _keep(parent: dict[str, Any], name: str, is_kept: Any) -> None:
    """Filter the list in a field, and remove the field if nothing is left."""
    values = parent.get(name)
    if not isinstance(values, list):
        return
    if kept := [value for value in values if is_kept(value)]:
        parent[name] = kept
    else:
        del parent[name]


# --- objects --------------------------------------------------------------------------------------


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
# Takes base, ours, theirs and a side; gives the merged text, in which the side wins where lines
# conflict.
MergeText = Callable[[str, str, str, Side], str]


class Kind(NamedTuple):
    """The kind of the objects to merge.

    ``strategy`` and ``schema`` are None for a custom resource without its definition.
    ``has_status``: the system writes status.
    """

    strategy: Strategy | None
    schema: Schema | None
    has_status: bool = True


class Versions(NamedTuple):
    """The three versions of an object; ``base`` is empty where both sides added it."""

    base: Object
    ours: Object
    theirs: Object


class Merged(NamedTuple):
    """The merged object, once with our and once with their value in every conflict, and the paths
    of the conflicts.

    Without conflicts ``ours`` and ``theirs`` are the same object.
    """

    ours: Object
    theirs: Object
    conflicts: list[str]


def merge_objects(versions: Versions, kind: Kind, merge_text: MergeText) -> Merged:
    """Merge two versions of one object."""
    if recreated := _recreated(versions):
        return Merged(recreated, recreated, [])
    merger = _Merger(versions, kind, merge_text)
    ours, conflicts = merger.run("ours")
    if not conflicts:
        return Merged(ours, ours, [])
    return Merged(
        ours, merger.run("theirs")[0], [path_text(path).removeprefix(".") for path in conflicts]
    )


def merge_into_ancestor(versions: Versions, kind: Kind, merge_text: MergeText) -> Object:
    """Merge two common ancestors into one: where they conflict, their own ancestor's value
    stays."""
    return _recreated(versions) or _Merger(versions, kind, merge_text).run("base")[0]


def _recreated(versions: Versions) -> Object | None:
    """Return the side on which a controller recreated the object (a StatefulSet's pod), ours if
    both; None if none."""
    base, ours, theirs = versions
    if uid_of(ours) == uid_of(theirs) or not (
        is_made_by_controller(ours) and is_made_by_controller(theirs)
    ):
        return None
    if base and uid_of(base) == uid_of(ours):
        return theirs
    return ours


class _Merger:
    def __init__(self, versions: Versions, kind: Kind, merge_text: MergeText) -> None:
        self._base, self._ours, self._theirs = self._versions = _with_one_uid(versions)
        self._kind = kind
        self._merge_text = merge_text
        self._kind_name = str(versions.ours.get("kind", ""))
        self._is_made = is_made_by_controller(versions.ours) or is_made_by_controller(
            versions.theirs
        )

    def run(self, favour: Side) -> tuple[Object, list[Path]]:
        """Return the merged object with that side's value in every conflict, and the conflicts."""
        settler = _Settler(self._kind_name, self._is_made, favour, self._merge_text)
        merge = Merge(settler.settle, settler.choose)
        base, ours, theirs = (self._body(version) for version in self._versions)
        body: Object = merge.merge(base, ours, theirs, self._kind.schema)
        return self._completed(body, has_conflicts=bool(merge.conflicts)), merge.conflicts

    def _body(self, obj: Object) -> Object:
        """Return the object without the fields that do not merge one by one: generation, and status
        of the system."""
        left_out = {"status"} if self._kind.has_status else set()
        body = {name: value for name, value in obj.items() if name not in left_out}
        if "metadata" in body:
            body["metadata"] = {
                name: value for name, value in body["metadata"].items() if name != "generation"
            }
        return body

    def _completed(self, body: Object, *, has_conflicts: bool) -> Object:
        """Add generation, template generation and status to the merged body."""
        # A workload's status counts the pods of its own side only, so neither is right if both
        # sides changed theirs.
        both_changed_status = (
            bool(self._base)
            and isinstance(self._kind.strategy, WorkloadStrategy)
            and not any(
                same(self._base.get("status"), side.get("status"))
                for side in (self._ours, self._theirs)
            )
        )
        generation_side = None
        if not has_conflicts and not both_changed_status:
            generation_side = self._side_of_generation(body, _generation, self._spec_changed)
        generation = self._number(generation_side, _generation)
        merged = {
            **body,
            "metadata": {**body["metadata"], **({"generation": generation} if generation else {})},
        }
        if self._kind_name == "DaemonSet":
            template_side = None
            if not has_conflicts:
                template_side = self._side_of_generation(
                    body, _template_generation, _template_changed
                )
            if template_generation := self._number(template_side, _template_generation):
                annotations = {
                    **annotations_of(merged),
                    TEMPLATE_GENERATION: str(template_generation),
                }
                merged["metadata"] = {**merged["metadata"], "annotations": annotations}

        if self._kind.has_status:
            status_side = generation_side
            if status_side is None or not _generation(status_side):
                status_side = self._side_of_status()
            if (status := status_side.get("status")) is not None:
                merged["status"] = status

        return merged

    # --- counters

    def _side_of_generation(
        self,
        merged: Object,
        number: Callable[[Object], int],
        changed: Callable[[Object, Object], bool],
    ) -> Object | None:
        """Return the side whose generation the merged object takes, None if it needs a new one.

        A side whose spec is not the merged one does not qualify. Neither does a side that changed
        its spec without raising the generation (an edit by hand), nor one whose generation does not
        exceed that of another spec on the other side. ``number`` reads the generation; ``changed``
        tells whether two objects differ in spec.
        """
        sides = []
        for side, other in ((self._ours, self._theirs), (self._theirs, self._ours)):
            is_stale = (
                bool(self._base)
                and changed(side, self._base)
                and number(side) <= number(self._base)
            )
            is_taken = changed(other, merged) and number(side) <= number(other)
            if not (changed(merged, side) or is_stale or is_taken):
                sides.append(side)
        if len(sides) == 2 and number(self._ours) == number(self._theirs):
            return self._side_of_status()
        return max(sides, key=number, default=None)

    def _number(self, side: Object | None, number: Callable[[Object], int]) -> int:
        """Return the generation of the side; for None one above all versions', or 0 if they have
        none."""
        if side is not None:
            return number(side)
        highest = max(number(version) for version in self._versions)
        return highest + 1 if highest else 0

    def _spec_changed(self, new: Object, old: Object) -> bool:
        """Tell whether an update raises generation; annotations of the system do not count."""
        new = without_written_annotations(new)
        old = without_written_annotations(old)
        if self._kind.strategy is not None:
            return self._kind.strategy.has_generation and self._kind.strategy.spec_changed(new, old)
        return not semantically_equal(_content(new), _content(old))

    # --- status

    def _side_of_status(self) -> Object:
        """Return the side that changed status, ours if both or none did."""
        if same(self._base.get("status"), self._ours.get("status")):
            return self._theirs
        return self._ours


def _with_one_uid(versions: Versions) -> Versions:
    """Give all versions the uid of the merged object, also where other fields repeat it (a Job's
    selector).

    It is the uid of the side on which the object was recreated, ours if on both.
    """
    base, ours, theirs = versions
    uid = uid_of(theirs if base and uid_of(base) == uid_of(ours) else ours)
    return Versions(
        *(_with_text(version, uid_of(version), uid) if version else version for version in versions)
    )


def _with_text(value: Any, old: str, new: str) -> Any:
    """Replace every text in a value that equals ``old``."""
    if not old or not new or old == new:
        return value
    if isinstance(value, dict):
        return {name: _with_text(inner, old, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_text(inner, old, new) for inner in value]
    return new if value == old else value


def _generation(obj: Object) -> int:
    number = (obj.get("metadata") or {}).get("generation")
    return number if isinstance(number, int) else 0


def _template_generation(obj: Object) -> int:
    text = str(annotations_of(obj).get(TEMPLATE_GENERATION, "")) if obj else ""
    if text.isascii() and text.isdigit():
        return int(text)
    return 0


def _template_changed(new: Object, old: Object) -> bool:
    new_spec = new.get("spec") or {}
    old_spec = old.get("spec") or {}
    return not semantically_equal(new_spec.get("template"), old_spec.get("template"))


def _content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


class _Settler:
    """Settles fields that both sides changed differently but that are no conflict."""

    def __init__(self, kind: str, is_made: bool, favour: Side, merge_text: MergeText) -> None:
        self._kind = kind
        self._is_made = is_made
        self._favour = favour
        self._merge_text = merge_text

    def settle(self, path: Path, base: Any, ours: Any, theirs: Any) -> Any:
        names = [element[2:] for element in path]
        if names[-2:] == ["annotations", LAST_APPLIED]:
            return _merge_applied(base, ours, theirs)
        if names[-2:] == ["annotations", RESTARTED_AT]:
            try:
                return max(ours, theirs, key=parse_time)
            except (TypeError, ValueError):  # one of them is not a time
                return ours

        if self._kind == "ControllerRevision" and names == ["revision"]:
            return max(
                (number for number in (ours, theirs) if isinstance(number, int)), default=ours
            )

        if self._is_written(names, base, ours, theirs):
            return ours
        if _are_texts(base, ours, theirs):
            merged = self._merge_text(base, ours, theirs, "ours")
            if merged == self._merge_text(base, ours, theirs, "theirs"):
                return merged
            return UNSETTLED

        return UNSETTLED

    def choose(self, base: Any, ours: Any, theirs: Any) -> Any:
        """Return the favoured side's value; of a text of several lines only the lines that
        conflict."""
        if _are_texts(base, ours, theirs):
            return self._merge_text(base, ours, theirs, self._favour)
        return {"base": base, "ours": ours, "theirs": theirs}[self._favour]

    def _is_written(self, names: list[str], base: Any, ours: Any, theirs: Any) -> bool:
        """Tell whether the system writes a field, so that ours is as good as theirs."""
        match names:
            case ["metadata", "annotations", name] if is_written_annotation(name):
                return True
            case ["metadata", "labels" | "annotations", *_]:
                return self._is_made and self._kind != "Pod"
            case ["metadata", name]:
                return self._is_made or name in METADATA
            case ["spec", "clusterIP" | "clusterIPs", *_] if self._kind == "Service":
                return base is ABSENT and not {"None", ""} & {str(ours), str(theirs)}
            case ["spec", "taints", taint, *_] if self._kind == "Node":
                return is_written_taint(json.loads(taint)["key"]) or names[-1] == "timeAdded"
            case ["spec", name, *_] if is_written_field(self._kind, name):
                return True
        return self._is_made


def _are_texts(*values: Any) -> bool:
    """Tell whether all values are strings, and one of them has several lines."""
    return all(isinstance(text, str) for text in values) and any("\n" in text for text in values)


def _merge_applied(base: Any, ours: Any, theirs: Any) -> Any:
    """Merge the last-applied configuration as if both had been applied; where they differ, ours
    counts."""
    try:
        old, our_config, their_config = (
            json.loads(text) if isinstance(text, str) else {} for text in (base, ours, theirs)
        )
    except ValueError:
        return ours
    if not all(isinstance(config, dict) and config for config in (our_config, their_config)):
        return ours
    schema = schema_for(str(our_config.get("apiVersion", "")), str(our_config.get("kind", "")))
    merge = Merge(lambda path, base, ours, theirs: ours, lambda base, ours, theirs: ours)
    return to_json(merge.merge(old, our_config, their_config, schema)) + "\n"


# --- managedFields --------------------------------------------------------------------------------


_IDENTITY = ("manager", "operation", "subresource", "apiVersion")


def merge_managers(base: list[Object], ours: list[Object], theirs: list[Object]) -> list[Object]:
    """Merge entries of the same manager, operation, subresource and version.

    An entry gains the fields that one side added, and loses those that one side removed unless the
    other side changed something below them. It gets the later time.
    """
    merge = Merge(_settle_entry, lambda base, ours, theirs: ours)
    identities = dict.fromkeys(_identity(entry) for entry in [*ours, *theirs])
    base_entries, our_entries, their_entries = (
        {_identity(entry): entry for entry in entries} for entries in (base, ours, theirs)
    )
    merged = (
        merge.merge(
            base_entries.get(identity, ABSENT),
            our_entries.get(identity, ABSENT),
            their_entries.get(identity, ABSENT),
            None,
        )
        for identity in identities
    )
    return [entry for entry in merged if entry is not ABSENT]


def _identity(entry: Object) -> tuple[str, ...]:
    return tuple(str(entry.get(name, "")) for name in _IDENTITY)


def _settle_entry(path: tuple[str, ...], base: Any, ours: Any, theirs: Any) -> Any:
    if path == ("f:time",):
        return max(str(ours), str(theirs))
    return theirs if ours is ABSENT else ours
