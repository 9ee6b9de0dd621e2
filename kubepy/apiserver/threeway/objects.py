"""Three-way merge of whole objects, as a merge of branches needs it.

What somebody wanted merges field by field. What the system writes never conflicts:

- ``status`` is taken whole from one side: from the side whose generation counts, else from the one that changed it,
  ours if both did.
- ``metadata.generation`` is a side's own where the merged spec is that side's, the number stands for no other spec on
  the other side, and not both sides' controllers have worked on a workload's pods. Else it is above all of them, so
  that no status has observed it. A DaemonSet's template generation follows the same rule by its template.
- What a controller made, and would make again, is taken from ours where both sides changed it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, annotations_of, uid_of
from kubepy.api.patches.elements import same
from kubepy.api.schema.openapi import Schema, schema_for
from kubepy.api.values.goformat import to_json
from kubepy.apiserver.managedfields.fieldpath import Path, path_text
from kubepy.apiserver.managedfields.typed import ABSENT
from kubepy.apiserver.strategies.apps import TEMPLATE_GENERATION, WorkloadStrategy
from kubepy.apiserver.strategies.strategy import Strategy
from kubepy.apiserver.threeway.values import UNSETTLED, Merge, Side
from kubepy.apiserver.threeway.written import (
    METADATA,
    is_made_by_controller,
    is_written_annotation,
    is_written_field,
    is_written_taint,
    without_written_annotations,
)
from kubepy.apiserver.validation.fields import semantically_equal

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
# Takes base, ours, theirs and a side; gives the merged text, in which the side wins where lines conflict.
MergeText = Callable[[str, str, str, Side], str]


class Kind(NamedTuple):
    """Knowledge of a kind. ``strategy`` and ``schema`` are None for a custom resource without its definition;
    ``has_status``: status is the system's."""

    strategy: Strategy | None
    schema: Schema | None
    has_status: bool = True


class Versions(NamedTuple):
    """The three versions of an object; ``base`` is empty where both sides added it."""

    base: Object
    ours: Object
    theirs: Object


class Merged(NamedTuple):
    """The merged object, once with our and once with their value in every conflict (the same object without one), and
    the paths of the conflicts."""

    ours: Object
    theirs: Object
    conflicts: list[str]


def merge_objects(versions: Versions, kind: Kind, merge_text: MergeText) -> Merged:
    """Merge two versions of one object."""
    if whole := _made_anew(versions):
        return Merged(whole, whole, [])
    merger = _Merger(versions, kind, merge_text)
    ours, conflicts = merger.run("ours")
    if not conflicts:
        return Merged(ours, ours, [])
    return Merged(ours, merger.run("theirs")[0], [path_text(path).removeprefix(".") for path in conflicts])


def merge_into_ancestor(versions: Versions, kind: Kind, merge_text: MergeText) -> Object:
    """Merge two common ancestors into one: where they conflict, their own ancestor's value stays."""
    return _made_anew(versions) or _Merger(versions, kind, merge_text).run("base")[0]


def _made_anew(versions: Versions) -> Object | None:
    """The side as a whole that a controller made anew (a StatefulSet's pod), ours if both are new."""
    base, ours, theirs = versions
    if uid_of(ours) == uid_of(theirs) or not (is_made_by_controller(ours) and is_made_by_controller(theirs)):
        return None
    return theirs if base and uid_of(base) == uid_of(ours) else ours


class _Merger:
    def __init__(self, versions: Versions, kind: Kind, merge_text: MergeText) -> None:
        self._base, self._ours, self._theirs = self._versions = _with_one_uid(versions)
        self._kind = kind
        self._merge_text = merge_text
        self._kind_name = str(versions.ours.get("kind", ""))
        self._is_made = is_made_by_controller(versions.ours) or is_made_by_controller(versions.theirs)

    def run(self, favour: Side) -> tuple[Object, list[Path]]:
        """The merged object with that side's value in every conflict, and the conflicts."""
        settler = _Settler(self._kind_name, self._is_made, favour, self._merge_text)
        merge = Merge(settler.settle, settler.choose)
        base, ours, theirs = (self._body(version) for version in self._versions)
        body: Object = merge.merge(base, ours, theirs, self._kind.schema)
        return self._completed(body, has_conflicts=bool(merge.conflicts)), merge.conflicts

    def _body(self, obj: Object) -> Object:
        """The part that merges field by field."""
        left_out = {"status"} if self._kind.has_status else set()
        body = {name: value for name, value in obj.items() if name not in left_out}
        if "metadata" in body:
            body["metadata"] = {name: value for name, value in body["metadata"].items() if name != "generation"}
        return body

    def _completed(self, body: Object, *, has_conflicts: bool) -> Object:
        """The body with generation, template generation and status."""
        is_unseen = has_conflicts or self._both_moved_pods()
        holder = None if is_unseen else self._holder(body, _generation, self._spec_changed)
        generation = self._number(holder, _generation)
        merged = {**body, "metadata": {**body["metadata"], **({"generation": generation} if generation else {})}}
        if self._kind_name == "DaemonSet":
            _set_template_generation(merged, self._number(
                None if has_conflicts else self._holder(body, _template_generation, _template_changed),
                _template_generation))
        if self._kind.has_status and (status := self._status(holder)) is not None:
            merged["status"] = status
        return merged

    # --- counters

    def _holder(self, merged: Object, number: Callable[[Object], int],
                changed: Callable[[Object, Object], bool]) -> Object | None:
        """The side whose number goes for the merged object, None if it needs one of its own.

        A number that did not rise with an edit by hand, or that stands for another spec on the other side, does not.
        """
        sides = []
        for side, other in ((self._ours, self._theirs), (self._theirs, self._ours)):
            is_stale = bool(self._base) and changed(side, self._base) and number(side) <= number(self._base)
            is_taken = changed(other, merged) and number(side) <= number(other)
            if not (changed(merged, side) or is_stale or is_taken):
                sides.append(side)
        if len(sides) == 2 and number(self._ours) == number(self._theirs):
            return self._side_of_status()
        return max(sides, key=number, default=None)

    def _both_moved_pods(self) -> bool:
        """Detect that pods of both sides come together, which no status has counted."""
        if not (self._base and isinstance(self._kind.strategy, WorkloadStrategy)):
            return False
        return not any(same(self._base.get("status"), side.get("status")) for side in (self._ours, self._theirs))

    def _number(self, holder: Object | None, number: Callable[[Object], int]) -> int:
        if holder is not None:
            return number(holder)
        highest = max(number(version) for version in self._versions)
        return highest + 1 if highest else 0

    def _spec_changed(self, new: Object, old: Object) -> bool:
        """True if an update raises generation; annotations of the system do not count."""
        new, old = without_written_annotations(new), without_written_annotations(old)
        if self._kind.strategy is not None:
            return self._kind.strategy.has_generation and self._kind.strategy.spec_changed(new, old)
        return not semantically_equal(_content(new), _content(old))

    # --- status

    def _status(self, holder: Object | None) -> Any:
        return (self._side_of_status() if holder is None or not _generation(holder) else holder).get("status")

    def _side_of_status(self) -> Object:
        """The side that changed status, ours if both or none did."""
        return self._theirs if same(self._base.get("status"), self._ours.get("status")) else self._ours


def _with_one_uid(versions: Versions) -> Versions:
    """The versions under the uid that the merged object has: what was made of another (a job's selector) follows.

    It is the uid of the side that made the object anew, ours if both did.
    """
    base, ours, theirs = versions
    anew = theirs if base and uid_of(base) == uid_of(ours) else ours
    uid = uid_of(anew)
    return Versions(*(_with_text(version, uid_of(version), uid) if version else version for version in versions))


def _with_text(value: Any, old: str, new: str) -> Any:
    """The value with every text that equals ``old`` replaced."""
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
    return int(text) if text.isascii() and text.isdigit() else 0


def _set_template_generation(obj: Object, number: int) -> None:
    if number:
        annotations = {**annotations_of(obj), TEMPLATE_GENERATION: str(number)}
        obj["metadata"] = {**obj["metadata"], "annotations": annotations}


def _template_changed(new: Object, old: Object) -> bool:
    return not semantically_equal((new.get("spec") or {}).get("template"), (old.get("spec") or {}).get("template"))


def _content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


class _Settler:
    """Decides what both sides changed differently and is no conflict all the same."""

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
            return _later(ours, theirs)
        if self._kind == "ControllerRevision" and names == ["revision"]:
            return max((number for number in (ours, theirs) if isinstance(number, int)), default=ours)
        if self._is_written(names, base, ours, theirs):
            return ours
        if _are_texts(base, ours, theirs):
            return self._merge_lines(base, ours, theirs)
        return UNSETTLED

    def choose(self, base: Any, ours: Any, theirs: Any) -> Any:
        """The favoured side's value; of a text of several lines only the lines that conflict."""
        if _are_texts(base, ours, theirs):
            return self._merge_text(base, ours, theirs, self._favour)
        return {"base": base, "ours": ours, "theirs": theirs}[self._favour]

    def _is_written(self, names: list[str], base: Any, ours: Any, theirs: Any) -> bool:
        """True for a field of the system's, where ours is as good as theirs."""
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

    def _merge_lines(self, base: str, ours: str, theirs: str) -> Any:
        """The text with both sides' lines, UNSETTLED where lines conflict."""
        merged = self._merge_text(base, ours, theirs, "ours")
        return merged if merged == self._merge_text(base, ours, theirs, "theirs") else UNSETTLED


def _are_texts(*values: Any) -> bool:
    """True if all are texts, and one of them has several lines."""
    return all(isinstance(text, str) for text in values) and any("\n" in text for text in values)


def _merge_applied(base: Any, ours: Any, theirs: Any) -> Any:
    """The last-applied configuration as if both had been applied; where they differ, ours."""
    try:
        old, our_config, their_config = (json.loads(text) if isinstance(text, str) else {}
                                         for text in (base, ours, theirs))
    except ValueError:
        return ours
    if not all(isinstance(config, dict) and config for config in (our_config, their_config)):
        return ours
    schema = schema_for(str(our_config.get("apiVersion", "")), str(our_config.get("kind", "")))
    merge = Merge(lambda path, base, ours, theirs: ours, lambda base, ours, theirs: ours)
    return to_json(merge.merge(old, our_config, their_config, schema)) + "\n"


def _later(ours: Any, theirs: Any) -> Any:
    """The later of two times; ours where one is none."""
    try:
        return max(ours, theirs, key=parse_time)
    except (TypeError, ValueError):
        return ours
