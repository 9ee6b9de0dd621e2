"""``kubepy git merge-file``: the driver with which git merges the file of an object.

The file holds git's own merge of the lines first, so that neither side gets lost when merging
objects fails.
"""

from __future__ import annotations

import os
from difflib import SequenceMatcher
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.patches.elements import same
from kubepy.apiserver.threeway import Side, Versions, merge_into_ancestor, merge_objects
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.git.files import StateFile, is_handmade, kind_of, read_object, render, state_file_at
from kubepy.cli.git.repository import run_git
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.storage.manifests import ContentError, parse

with lazy_imports():
    from kubepy.apiserver import threeway
    from kubepy.storage import yaml

MARKER_SIZE = 7
LABELS = ("ours", "theirs")


class Texts(NamedTuple):
    """The contents of the three files."""

    base: bytes
    ours: bytes
    theirs: bytes


class MarkerStyle(NamedTuple):
    """The form of the markers around a conflict."""

    size: int = MARKER_SIZE
    ours: str = LABELS[0]
    theirs: str = LABELS[1]


class MergeFileOptions(Options):
    """The flags of ``git merge-file``."""

    ancestor: bool = bool_flag(
        "ancestor",
        help="Make one common ancestor of two: a conflict gets the value of their "
        "own ancestor, without markers.",
    )


@command(
    "merge-file [--ancestor] ANCESTOR OURS THEIRS [MARKER_SIZE [PATH [LABEL...]]]",
    MergeFileOptions,
    examples="""
# As git calls it (merge.kubepy.driver): the result is left in OURS
kubepy git merge-file -- %O %A %B %L %P %S %X %Y

# Merge three files of one Deployment by hand
kubepy git merge-file base.yaml ours.yaml theirs.yaml 7 state/namespaces/default/deployments.apps/web.yaml
""",  # noqa: E501
)
def merge_file(factory: Factory, options: MergeFileOptions) -> None:
    """Merge two versions of an object's file into OURS, as the lists and maps of the API merge.

    PATH is the file's in the repository; without it ANCESTOR, OURS and THEIRS are merged by what they hold. The labels
    are those of the ancestor, ours and theirs. What the system writes (generation, status, managers) is never a
    conflict. A field that both sides changed to different values is left with markers around both; then, as for a file
    that is no object and is merged by its lines, the exit status is 1."""  # noqa: E501
    if len(options.args) < 3:
        options.usage_error("ANCESTOR, OURS and THEIRS are required")
    base, ours, theirs, size, path, *labels = [*options.args, "", ""][: max(len(options.args), 5)]
    contents = []
    for name in (base, ours, theirs):
        with open(name, "rb") as file:
            contents.append(file.read())
    texts = Texts(*contents)
    markers = _marker_style(size, labels)
    is_clean = _merge_lines(texts, ours, markers)
    try:
        data, conflicts = merge_texts(
            texts, state_file_at(path), markers, is_ancestor=options.ancestor
        )
    except ContentError as error:
        factory.say(f"{path or ours}: merged line by line: {error.line}: {error.reason}")
        raise SilentExit(0 if is_clean else 1) from None

    _write(ours, data)
    for field in conflicts:
        factory.say(f"CONFLICT (field): {path or ours}: {field}")
    if conflicts:
        raise SilentExit(1)


def _marker_style(size: str, labels: list[str]) -> MarkerStyle:
    """Return the style that git asks for; a git before 2.44 leaves the placeholders of labels as
    they are.

    :param labels: those of the ancestor, ours and theirs.
    """
    if size and not size.isdecimal():
        raise CliError(f"the size of the markers must be a number, not {size!r}")
    ours, theirs = (
        label if label and not label.startswith("%") else default
        for label, default in zip([*labels, "", "", ""][1:3], LABELS, strict=True)
    )
    return MarkerStyle(int(size or MARKER_SIZE), ours, theirs)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


# --- objects --------------------------------------------------------------------------------------


def merge_texts(
    texts: Texts, file: StateFile | None, markers: MarkerStyle, *, is_ancestor: bool = False
) -> tuple[bytes, list[str]]:
    """Return the merged content, and the fields in conflict. Raises ContentError for a text that
    holds no object."""
    if file is not None and file.is_managers:
        return _merge_managers(texts), []
    versions = Versions(
        read_object(texts.base) if texts.base.strip() else {},
        read_object(texts.ours),
        read_object(texts.theirs),
    )
    kind = kind_of(versions.ours, file)
    if is_ancestor:
        return _rendered(texts, versions, merge_into_ancestor(versions, kind, _merge_strings)), []
    merged = merge_objects(versions, kind, _merge_strings)
    if not merged.conflicts:
        return _rendered(texts, versions, merged.ours), []
    text = _sides_to_edit(texts, versions)[0][0]
    # A last line without an end gets one, since a marker may follow.
    ours, theirs = (
        [f"{line}\n" for line in render(text, side).decode().removesuffix("\n").split("\n")]
        for side in (merged.ours, merged.theirs)
    )
    return with_markers(ours, theirs, markers).encode(), merged.conflicts


def _rendered(texts: Texts, versions: Versions, merged: Object) -> bytes:
    """Return the text of the merged object: that of a side with the same object, else made from a
    side's text."""
    sides = _sides_to_edit(texts, versions)
    for text, obj in sides:
        if same(merged, obj):
            return text
    return render(sides[0][0], merged)


def _sides_to_edit(texts: Texts, versions: Versions) -> list[tuple[bytes, Object]]:
    """Return the texts that the merged one can be made from, ours first.

    When only one of them was written by hand, it is the only one, so that its comments stay.
    """
    sides = [(texts.ours, versions.ours), (texts.theirs, versions.theirs)]
    handmade = [side for side in sides if is_handmade(*side)]
    if len(handmade) == 1:
        return handmade
    return sides


def with_markers(ours: list[str], theirs: list[str], markers: MarkerStyle) -> str:
    """Combine two texts, with markers around the lines in which they differ."""
    start = _common(ours, theirs)
    end = _common(ours[start:][::-1], theirs[start:][::-1])
    middle = slice(start, len(ours) - end), slice(start, len(theirs) - end)
    matcher = SequenceMatcher(None, ours[middle[0]], theirs[middle[1]], autojunk=False)
    merged = ours[:start]
    size = markers.size
    for tag, first, last, their_first, their_last in matcher.get_opcodes():
        left = ours[middle[0]][first:last]
        right = theirs[middle[1]][their_first:their_last]
        if tag == "equal":
            merged += left
        else:
            merged += [
                f"{'<' * size} {markers.ours}\n",
                *left,
                f"{'=' * size}\n",
                *right,
                f"{'>' * size} {markers.theirs}\n",
            ]

    return "".join(merged + ours[len(ours) - end :])


def _common(left: list[str], right: list[str]) -> int:
    """Return the number of lines at the start that are the same."""
    length = min(len(left), len(right))
    return next((index for index in range(length) if left[index] != right[index]), length)


def _merge_managers(texts: Texts) -> bytes:
    sides: list[list[Object]] = []
    for text in texts:
        content = parse(text) if text.strip() else None
        entries = content.object.get("managedFields") if content else []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ContentError(content.line if content else 0, "has no managedFields")
        sides.append(entries)
    merged = threeway.merge_managers(*sides)
    if merged == sides[1]:
        return texts.ours
    return yaml.dump({"managedFields": merged}).encode()


# --- lines ----------------------------------------------------------------------------------------


def _merge_lines(texts: Texts, path: str, markers: MarkerStyle) -> bool:
    """Leave git's merge of the lines in a file. Return whether it has no conflicts. Raises
    CliError."""
    merged, status = _git_merge(
        texts,
        f"--marker-size={markers.size}",
        "-L",
        markers.ours,
        "-L",
        "base",
        "-L",
        markers.theirs,
    )
    if status > 127:  # git refuses binary data, for example: the file stays as it is, which is ours
        return False
    _write(path, merged)
    return status == 0


def _merge_strings(base: str, ours: str, theirs: str, favour: Side) -> str:
    texts = Texts(*(text.encode() for text in (base, ours, theirs)))
    merged = {side: _git_merge(texts, f"--{side}")[0].decode() for side in LABELS}
    if merged["ours"] == merged["theirs"]:
        return merged["ours"]
    if favour == "base":
        return base
    return merged[favour]


def _git_merge(texts: Texts, *flags: str) -> tuple[bytes, int]:
    """Return git's merge of three texts, and its exit status: the number of conflicts, above 127
    for an error."""
    with TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("ours", "base", "theirs")]
        for path, text in zip(paths, (texts.ours, texts.base, texts.theirs), strict=True):
            _write(path, text)
        completed = run_git(["merge-file", "-p", "-q", *flags, *paths])
    return completed.stdout, completed.returncode
