"""``kubepy git resolve``: settle conflicts that git shows to no merge driver.

Where one side removed a file and the other changed it, git asks what to do. The answer is known
when a controller made the object and makes it again if it is needed, or when only the system wrote
to it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kubepy.api.meta import controller_of
from kubepy.apiserver.threeway import intent_of, is_made_by_controller
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.git.files import kind_of, read_object, state_file_at
from kubepy.cli.git.repository import Repository
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import Options
from kubepy.storage.manifests import MANAGED, ContentError

BASE = "1"
OURS = "2"
THEIRS = "3"


class UnmergedPath(NamedTuple):
    """A path in conflict, with the blobs of its stages: the ancestor's, ours, theirs."""

    path: str
    stages: dict[str, str]


class ConflictResolution(NamedTuple):
    """The stage whose file stays ("": the file is removed), and the reason."""

    stage: str
    reason: str


@command(
    "resolve",
    Options,
    examples="""
# After a merge that stopped: settle the conflicts that need no decision, and go on
kubepy git resolve && git commit --no-edit

# The same during a rebase
kubepy git resolve && git rebase --continue
""",
)
def resolve(factory: Factory, options: Options) -> None:
    """Settle the conflicts of a merge, rebase or cherry-pick in which one side removed an object's file.

    An object that a controller made is removed: the controllers make it again if it is wanted. So is one that the other
    side changed in nothing but what the system writes. What is left for somebody to decide is listed, and the exit
    status is 1."""  # noqa: E501
    options.require_no_args()
    factory.require_folder()
    repository = Repository(factory.folder)
    unmerged = unmerged_paths(repository)
    if not unmerged:
        factory.print("nothing to resolve")
        return
    left: list[UnmergedPath] = []
    for conflict in unmerged:
        resolution = _decide(repository, conflict)
        if resolution is None:
            left.append(conflict)
            continue
        if resolution.stage:
            commit = _commit_of(repository, resolution.stage)
            repository.run("checkout", "-q", commit, "--", _pathspec(conflict.path))
        else:
            repository.run("rm", "-q", "-f", "--", _pathspec(conflict.path))
        factory.print(
            f"{conflict.path}: {'kept' if resolution.stage else 'removed'}: {resolution.reason}"
        )

    for conflict in left:
        if {OURS, THEIRS} <= conflict.stages.keys():
            advice = "both sides changed it: edit it, then `git add`"
        else:
            changed, removed = ("ours", "theirs") if OURS in conflict.stages else ("theirs", "ours")
            advice = (
                f"{changed} changed it, {removed} removed it: `git add` keeps it, `git rm` "
                f"removes it"
            )
        factory.say(f"{conflict.path}: {advice}")

    if left:
        raise SilentExit(1)


def unmerged_paths(repository: Repository) -> list[UnmergedPath]:
    """Return the paths in conflict below the state folder, from the repository's root; managers
    last."""
    stages: dict[str, dict[str, str]] = {}
    output = repository.run("ls-files", "-u", "-z", "--full-name", "--", ".")
    for entry in filter(None, output.split("\0")):
        description, path = entry.split("\t", 1)
        _, blob, stage = description.split(" ")
        stages.setdefault(path, {})[stage] = blob
    paths = sorted(stages, key=lambda path: (f"/{MANAGED}/" in path, path))
    return [UnmergedPath(path, stages[path]) for path in paths]


def _pathspec(path: str) -> str:
    """Return a path below the repository's root for commands that run in the state folder."""
    return f":(top,literal){path}"


def _commit_of(repository: Repository, side: str) -> str:
    """Return the commit with the files of a side.

    The index will not do: where git took two new files for a renamed old one, it has merged them
    there.
    """
    if side == OURS:
        return "HEAD"
    for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"):
        if repository.run("rev-parse", "-q", "--verify", name, expected=(0, 1)):
            return name
    raise CliError("no merge, rebase, cherry-pick or revert is under way")


def _decide(repository: Repository, unmerged: UnmergedPath) -> ConflictResolution | None:
    """Return what settles a conflict by the side that still has the file; None when somebody has to
    decide."""
    stages = unmerged.stages
    file = state_file_at(unmerged.path)
    if file is None or {OURS, THEIRS} <= stages.keys():
        return None
    survivor = next((side for side in (OURS, THEIRS) if side in stages), "")
    if not survivor:
        return ConflictResolution("", "both sides removed it")
    if BASE not in stages:
        return ConflictResolution(survivor, "one side added it")
    if file.is_managers:
        object_path = unmerged.path.replace(f"/{MANAGED}/", "/")
        has_object = bool(repository.run("ls-files", "-z", "--", _pathspec(object_path)))
        return ConflictResolution(survivor if has_object else "", "as the object it belongs to")

    try:
        blobs = (repository.run("cat-file", "blob", stages[stage]) for stage in (BASE, survivor))
        old, new = (read_object(os.fsencode(blob)) for blob in blobs)
    except ContentError:  # a person has to look at a file that cannot be read
        return None

    if is_made_by_controller(new):
        owner = controller_of(new) or {"kind": "a", "name": "controller"}
        return ConflictResolution(
            "",
            f"made by {owner.get('kind')} {owner.get('name')}, which makes it again if it is "
            "wanted",
        )

    has_status = kind_of(new, file).has_status
    if intent_of(old, has_status=has_status) == intent_of(new, has_status=has_status):
        return ConflictResolution("", "changed in nothing but what the system writes")
    return None
