"""``kubepy git merge-file``: the driver by which git merges the file of one object.

Whatever happens, the file holds git's own merge of the lines at first, so that neither side can get lost.
"""

from __future__ import annotations

import os
from difflib import SequenceMatcher
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.patches.elements import same
from kubepy.apiserver.threeway.objects import Merged, Versions, merge_into_ancestor, merge_objects
from kubepy.apiserver.threeway.values import Side
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.git.files import Place, is_handmade, kind_of, place_of, read_object, render
from kubepy.cli.git.repository import run_git
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.storage.manifest import ContentError, parse

MARKER_SIZE = 7
LABELS = ("ours", "theirs")
FLAGS = [
    boolean("ancestor", help="Make one common ancestor of two: a conflict gets the value of their own ancestor, "
            "without markers."),
]


class Texts(NamedTuple):
    """The contents of the three files."""

    base: bytes
    ours: bytes
    theirs: bytes


class Marking(NamedTuple):
    """The form of the markers around a conflict."""

    size: int = MARKER_SIZE
    ours: str = LABELS[0]
    theirs: str = LABELS[1]


@verb("merge-file", "merge-file [--ancestor] ANCESTOR OURS THEIRS [MARKER_SIZE [PATH [LABEL...]]]", flags=FLAGS,
      examples="""
# As git calls it (merge.kubepy.driver): the result is left in OURS
kubepy git merge-file -- %O %A %B %L %P %S %X %Y

# Merge three files of one Deployment by hand
kubepy git merge-file base.yaml ours.yaml theirs.yaml 7 state/namespaces/default/deployments.apps/web.yaml
""")
def merge_file(factory: Factory, given: Invocation) -> None:
    """Merge two versions of an object's file into OURS, as the lists and maps of the API merge.

    PATH is the file's in the repository; without it ANCESTOR, OURS and THEIRS are merged by what they hold. The labels
    are those of the ancestor, ours and theirs. What the system writes (generation, status, managers) is never a
    conflict. A field that both sides changed to different values is left with markers around both; then, as for a file
    that is no object and is merged by its lines, the exit status is 1."""
    if len(given.args) < 3:
        given.usage_error("ANCESTOR, OURS and THEIRS are required")
    base, ours, theirs, size, path, *labels = [*given.args, "", ""][:max(len(given.args), 5)]
    texts = Texts(*(_read(name) for name in (base, ours, theirs)))
    marking = _marking(size, labels)
    is_clean = _merge_lines(texts, ours, marking)
    try:
        data, conflicts = merge_texts(texts, place_of(path), marking, is_ancestor=given.ancestor)
    except ContentError as error:
        factory.say(f"{path or ours}: merged line by line: {error.line}: {error.why}")
        raise SilentExit(0 if is_clean else 1) from None
    _write(ours, data)
    for field in conflicts:
        factory.say(f"CONFLICT (field): {path or ours}: {field}")
    if conflicts:
        raise SilentExit(1)


def _marking(size: str, labels: list[str]) -> Marking:
    """``labels`` are the ancestor's, ours and theirs; a git before 2.44 leaves the placeholders as they are."""
    if size and not size.isdecimal():
        raise CliError(f"the size of the markers must be a number, not {size!r}")
    ours, theirs = (label if label and not label.startswith("%") else default
                    for label, default in zip([*labels, "", "", ""][1:3], LABELS, strict=True))
    return Marking(int(size or MARKER_SIZE), ours, theirs)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


# --- objects ----------------------------------------------------------------------------------------------------------


def merge_texts(texts: Texts, place: Place | None, marking: Marking, *,
                is_ancestor: bool = False) -> tuple[bytes, list[str]]:
    """The merged content, and the fields in conflict. Raises ContentError for what is no object."""
    if place is not None and place.is_managers:
        return _merge_managers(texts), []
    versions = Versions(read_object(texts.base) if texts.base.strip() else {}, read_object(texts.ours),
                        read_object(texts.theirs))
    kind = kind_of(versions.ours, place)
    if is_ancestor:
        merged = merge_into_ancestor(versions, kind, _merge_strings)
        return _rendered(texts, versions, merged), []
    result = merge_objects(versions, kind, _merge_strings)
    if not result.conflicts:
        return _rendered(texts, versions, result.ours), []
    return _with_conflicts(texts, versions, result, marking), result.conflicts


def _rendered(texts: Texts, versions: Versions, merged: Object) -> bytes:
    """The text of the merged object: as it stands on a side that is the same, else made from a side's text."""
    sides = _sides_to_edit(texts, versions)
    for text, obj in sides:
        if same(merged, obj):
            return text
    return render(sides[0][0], merged)


def _with_conflicts(texts: Texts, versions: Versions, merged: Merged, marking: Marking) -> bytes:
    text = _sides_to_edit(texts, versions)[0][0]
    ours, theirs = (_lines(render(text, side).decode()) for side in (merged.ours, merged.theirs))
    return with_markers(ours, theirs, marking).encode()


def _sides_to_edit(texts: Texts, versions: Versions) -> list[tuple[bytes, Object]]:
    """The texts that the merged one can be made from, ours first: of two of which one was written by hand only that
    one, so that its comments stay."""
    sides = [(texts.ours, versions.ours), (texts.theirs, versions.theirs)]
    handmade = [side for side in sides if is_handmade(*side)]
    return handmade if len(handmade) == 1 else sides


def _lines(text: str) -> list[str]:
    """The lines of a file, each with its end; a last one without gets one, since a marker may follow."""
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")]


def with_markers(ours: list[str], theirs: list[str], marking: Marking) -> str:
    """One text of two, with markers around the lines in which they differ."""
    start = _common(ours, theirs)
    end = _common(ours[start:][::-1], theirs[start:][::-1])
    middle = slice(start, len(ours) - end), slice(start, len(theirs) - end)
    matcher = SequenceMatcher(None, ours[middle[0]], theirs[middle[1]], autojunk=False)
    merged = ours[:start]
    for tag, first, last, their_first, their_last in matcher.get_opcodes():
        left, right = ours[middle[0]][first:last], theirs[middle[1]][their_first:their_last]
        merged += left if tag == "equal" else _marked(left, right, marking)
    return "".join(merged + ours[len(ours) - end:])


def _common(left: list[str], right: list[str]) -> int:
    """The number of lines at the start that are the same."""
    length = min(len(left), len(right))
    return next((index for index in range(length) if left[index] != right[index]), length)


def _marked(ours: list[str], theirs: list[str], marking: Marking) -> list[str]:
    size = marking.size
    return [f"{'<' * size} {marking.ours}\n", *ours, f"{'=' * size}\n", *theirs, f"{'>' * size} {marking.theirs}\n"]


def _merge_managers(texts: Texts) -> bytes:
    from kubepy.apiserver.threeway.managers import merge_managers
    from kubepy.storage.yaml import dump

    base, ours, theirs = (_managers_in(text) for text in texts)
    merged = merge_managers(base, ours, theirs)
    return texts.ours if merged == ours else dump({"managedFields": merged}).encode()


def _managers_in(text: bytes) -> list[Object]:
    if not text.strip():
        return []
    content = parse(text)
    managers = content.object.get("managedFields")
    if not isinstance(managers, list) or not all(isinstance(entry, dict) for entry in managers):
        raise ContentError(content.line, "has no managedFields")
    return managers


# --- lines ------------------------------------------------------------------------------------------------------------


def _merge_lines(texts: Texts, path: str, marking: Marking) -> bool:
    """Leave git's merge of the lines in a file; returns whether nothing is in conflict. Raises CliError."""
    merged, status = _git_merge(texts, f"--marker-size={marking.size}", "-L", marking.ours, "-L", "base", "-L",
                                marking.theirs)
    if status > 127:  # binary data, for one: the file stays as it is, which is ours
        return False
    _write(path, merged)
    return status == 0


def _merge_strings(base: str, ours: str, theirs: str, favour: Side) -> str:
    texts = Texts(*(text.encode() for text in (base, ours, theirs)))
    merged = {side: _git_merge(texts, f"--{side}")[0].decode() for side in LABELS}
    if merged["ours"] == merged["theirs"]:
        return merged["ours"]
    return base if favour == "base" else merged[favour]


def _git_merge(texts: Texts, *flags: str) -> tuple[bytes, int]:
    """git's merge of three texts, and its exit status: how many conflicts there are, more than 127 for an error."""
    with TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("ours", "base", "theirs")]
        for path, text in zip(paths, (texts.ours, texts.base, texts.theirs), strict=True):
            _write(path, text)
        done = run_git(["merge-file", "-p", "-q", *flags, *paths])
    return done.stdout, done.returncode
