"""The changes between two revisions of a workload, by path: a list, a diff that a person reads, one
line.

Lists merge as server-side apply merges them, so that a container, a variable or a volume is named
by its key (``containers[web].env[COLOUR].value``), and only lists without keys are compared line by
line. Paths begin in the spec of the pod; ``template.labels`` and ``template.annotations`` are those
of the pod template, ``annotations`` those of the workload itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from kubepy.api.meta import Object, nested_list, nested_map, spec_of
from kubepy.api.patches.elements import same
from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.typed import ABSENT, TypedError, child, elements, is_atomic
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.storage import yaml

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
HASH_LABELS = ("pod-template-hash", "controller-revision-hash")
ORDER = "order"  # the last step of the path to a list of which only the order has changed
MAX_LINE = 100  # characters; a longer change of a value takes two lines
MAX_VALUE = 40  # characters of a value in a summary
CONTEXT = 2  # unchanged lines around changed ones
NOUNS = {
    "annotations": "annotation",
    "containers": "container",
    "ephemeralContainers": "ephemeral container",
    "imagePullSecrets": "imagePullSecret",
    "initContainers": "init container",
    "labels": "label",
    "ports": "port",
    "tolerations": "toleration",
    "volumeMounts": "volumeMount",
    "volumes": "volume",
}
DIGEST = re.compile("(@[^:]+:[0-9a-f]{12})[0-9a-f]+")
_IMAGE = re.compile("(?s)(.*?)((?::[^:/@]+)?(?:@.+)?)$")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class PathStep(NamedTuple):
    """A step of a path: a field, or (``is_key``) an item of a list by its keys or an entry of a map
    by its key."""

    name: str
    is_key: bool = False


class RevisionChange(NamedTuple):
    """A value that differs between two revisions; ABSENT where there is none.

    :ivar steps: the path.
    :ivar keys: the fields of an item of a list that its path names already.
    """

    steps: tuple[PathStep, ...]
    old: Any
    new: Any
    keys: frozenset[str] = frozenset()

    @property
    def path(self) -> str:
        """The path as text: ``containers[web].image``,
        ``template.labels[app.kubernetes.io/name]``."""
        return path_text(self.steps)

    @property
    def is_one_sided(self) -> bool:
        """True for a value that was added or removed."""
        return self.old is ABSENT or self.new is ABSENT

    @property
    def rest(self) -> Any:
        """The value that was added or removed, without the keys that the path names."""
        value = self.new if self.old is ABSENT else self.old
        if not self.keys:
            return value
        return {name: entry for name, entry in value.items() if name not in self.keys}

    @property
    def document(self) -> Object:
        """The change for programs: null where there is no value."""
        return {
            "path": self.path,
            "from": None if self.old is ABSENT else self.old,
            "to": None if self.new is ABSENT else self.new,
        }


def path_text(steps: Sequence[PathStep]) -> str:
    parts = [f"[{step.name}]" if step.is_key else f".{step.name}" for step in steps]
    return "".join(parts).removeprefix(".")


# --- comparing ------------------------------------------------------------------------------------


def changes_of(old: Object, new: Object, schema: Schema | None) -> list[RevisionChange]:
    """Compare two pod templates.

    :param schema: that of a pod template.
    """
    before, after = (
        {
            name: value
            for name, value in nested_map(template, "metadata").items()
            if value is not None
        }
        for template in (old, new)
    )  # older servers wrote creationTimestamp: null
    changes: list[RevisionChange] = []
    for name in sorted(before.keys() | after.keys()):
        steps = (PathStep("template"), PathStep(name))
        if name in ("labels", "annotations"):
            changes += (
                change
                for change in map_changes(before.get(name) or {}, after.get(name) or {}, steps)
                if change.steps[-1].name not in HASH_LABELS
            )
        else:
            changes += _changes(before.get(name, ABSENT), after.get(name, ABSENT), None, steps)

    return [*changes, *_changes(old.get("spec"), new.get("spec"), child(schema, "spec"), ())]


def map_changes(old: Object, new: Object, steps: tuple[PathStep, ...]) -> Iterator[RevisionChange]:
    """Compare two maps of texts, such as labels."""
    for name in sorted(old.keys() | new.keys()):
        sides = old.get(name, ABSENT), new.get(name, ABSENT)
        if sides[0] != sides[1]:
            yield RevisionChange((*steps, PathStep(name, True)), *sides)


def _changes(
    old: Any, new: Any, schema: Schema | None, steps: tuple[PathStep, ...]
) -> Iterator[RevisionChange]:
    if same(old, new):
        return
    lists = [[] if side is ABSENT else side for side in (old, new)]
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys(), key=lambda name: (name != "image", name)):
            below = child(schema, name)
            step = PathStep(name, not _NAME.fullmatch(name))
            yield from _changes(old.get(name, ABSENT), new.get(name, ABSENT), below, (*steps, step))
    elif all(isinstance(side, list) for side in lists) and (
        names := _names(lists[0], lists[1], schema)
    ):
        yield from _item_changes((lists[0], lists[1]), names, schema, steps)
    else:
        yield RevisionChange(steps, old, new)


def _names(
    old: list[Any], new: list[Any], schema: Schema | None
) -> tuple[list[str], list[str]] | None:
    """Return the names of the items of both lists; None for lists without keys, or with one key
    twice."""
    if schema is None or is_atomic(schema, old):
        return None
    with suppress(TypedError):
        names = elements(schema, old, ()), elements(schema, new, ())
        if all(len(set(side)) == len(side) for side in names):
            return names
    return None


def _item_changes(
    lists: tuple[list[Any], list[Any]],
    names: tuple[list[str], list[str]],
    schema: Schema | None,
    steps: tuple[PathStep, ...],
) -> Iterator[RevisionChange]:
    old, new = (
        dict(zip(side, items, strict=True)) for side, items in zip(names, lists, strict=True)
    )
    for name in dict.fromkeys([*names[0], *names[1]]):
        step, keys = _item_step(name)
        if name in old and name in new:
            yield from _changes(old[name], new[name], schema and schema.items(), (*steps, step))
        else:
            yield RevisionChange((*steps, step), old.get(name, ABSENT), new.get(name, ABSENT), keys)
    before, after = (
        [_item_step(name)[0].name for name in side if name in old and name in new] for side in names
    )
    if before != after:
        yield RevisionChange((*steps, PathStep(ORDER)), before, after)


def _item_step(element: str) -> tuple[PathStep, frozenset[str]]:
    """Return the step to an item of a list and the fields in it, by its path element
    (``k:{"name":"web"}``)."""
    value = json.loads(element[2:])
    if not isinstance(value, dict):
        return PathStep(str(value), True), frozenset()
    return PathStep("/".join(map(str, value.values())), True), frozenset(value)


# --- a diff for people ----------------------------------------------------------------------------


class DiffLine(NamedTuple):
    """A line of a diff: ``+`` added, ``-`` removed, ``~`` the path of a change, `` `` unchanged.

    :ivar old: the value before, where the line has both values: ``path: old -> new``.
    """

    mark: str
    text: str
    old: str = ""
    new: str = ""


def diff_lines(change: RevisionChange) -> Iterator[DiffLine]:
    """Yield the lines that show a change."""
    if change.is_one_sided:
        yield from _one_sided(change)
        return
    old = _shown(change.old)
    new = _shown(change.new)
    if len(old) == len(new) == 1 and not isinstance(change.old, list | dict):
        if len(change.path) + len(old[0]) + len(new[0]) <= MAX_LINE:
            yield DiffLine("~", f"{change.path}: ", old[0], new[0])
            return
    elif change.steps[-1] == PathStep(ORDER):
        sides = (", ".join(side) for side in (change.old, change.new))
        yield DiffLine("~", f"{path_text(change.steps[:-1])}, in another order: ", *sides)
        return

    yield DiffLine("~", f"{change.path}:")
    for mark, line in compared_lines(old, new):
        yield DiffLine(mark, f"  {line}")


def _one_sided(change: RevisionChange) -> Iterator[DiffLine]:
    """Yield the lines of a value that is on one side only. Fields that are alone in their map go
    into the path."""
    mark = "+" if change.old is ABSENT else "-"
    value = change.rest
    steps = change.steps
    if change.keys and not value:
        yield DiffLine(mark, change.path)
        return
    while isinstance(value, dict) and len(value) == 1:
        [(name, value)] = value.items()
        steps = (*steps, PathStep(name, not _NAME.fullmatch(name)))
    lines = _shown(value)
    if len(lines) == 1 and not (value and isinstance(value, dict | list)):
        yield DiffLine(mark, f"{path_text(steps)}: {lines[0]}")
        return
    yield DiffLine(mark, f"{path_text(steps)}:")
    yield from (DiffLine(mark, f"  {line}") for line in lines)


def _shown(value: Any) -> list[str]:
    """Return the lines of a value in YAML."""
    return yaml.dump(value).removesuffix("\n").split("\n")


def compared_lines(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of both texts with their marks, and ``...`` for unchanged lines that are left
    out."""
    end = 0
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        if group[0][1] > end:
            yield " ", "..."
        for tag, first, last, new_first, new_last in group:
            if tag == "equal":
                yield from ((" ", line) for line in old[first:last])
            else:
                yield from (("-", line) for line in old[first:last])
                yield from (("+", line) for line in new[new_first:new_last])
        end = group[-1][2]
    if end < len(old):
        yield " ", "..."


# --- one line -------------------------------------------------------------------------------------


def summary(changes: Sequence[RevisionChange], template: Object) -> str:
    """Return one line: ``image web nginx:1.15 -> 1.16, +env A``; images come first.

    :param template: the new one; where it has several containers, theirs are named.
    """
    spec = spec_of(template)
    several = len([*nested_list(spec, "containers"), *nested_list(spec, "initContainers")]) > 1
    ordered = sorted(changes, key=lambda change: change.steps[-1] != PathStep("image"))
    return ", ".join(dict.fromkeys(_phrase(change, several) for change in ordered))


def _phrase(change: RevisionChange, several: bool) -> str:
    steps = change.steps
    container = ""
    if len(steps) > 2 and steps[0].name.lower().endswith("containers"):
        container = steps[1].name
        steps = steps[2:]
    if steps[0] == PathStep("template"):
        steps = steps[1:]
    if (
        steps == (PathStep("annotations"), PathStep(RESTARTED_AT, True))
        and change.new is not ABSENT
    ):
        return "restarted"

    if steps[-1] == PathStep(ORDER):
        return f"order of {_noun(steps[:-1])}"
    if (
        steps == (PathStep("image"),)
        and isinstance(change.old, str)
        and isinstance(change.new, str)
    ):
        return f"image {container} {image_change(change.old, change.new)}"

    if steps[-1] == PathStep("value") and len(steps) > 1 and steps[-2].is_key:  # of a variable
        steps = steps[:-1]
    noun = f"{_noun(steps)} ({container})" if container and several else _noun(steps)
    if change.is_one_sided:
        return f"{'+' if change.old is ABSENT else '-'}{noun}"
    old, new = (
        value if isinstance(value, str) else json.dumps(value) for value in (change.old, change.new)
    )
    is_short = all(len(text) <= MAX_VALUE and "\n" not in text for text in (old, new))
    if not is_short or isinstance(change.old, list | dict) or isinstance(change.new, list | dict):
        return f"~{noun}"
    return f"{noun} {old} -> {new}"


def _noun(steps: Sequence[PathStep]) -> str:
    """Return the words for a path: ``env A``, ``label tier``, ``resources.limits.cpu``,
    ``volume data.configMap``."""
    words = ""
    text = ""
    for step in steps:
        if step.is_key:
            words = f"{words}{NOUNS.get(text, text)} {step.name}".lstrip()
            text = ""
        else:
            text = f"{text}.{step.name}" if text or words else step.name
    return f"{words}{text}"


def image_change(old: str, new: str) -> str:
    """Return ``nginx:1.15 -> 1.16``: only the new tag or digest where nothing else has changed;
    digests are cut."""
    (name, tag), (new_name, new_tag) = (
        _IMAGE.findall(DIGEST.sub(r"\1", image))[0] for image in (old, new)
    )
    return (
        f"{name}{tag} -> "
        f"{new_tag.removeprefix(':') if name == new_name and new_tag else new_name + new_tag}"
    )
