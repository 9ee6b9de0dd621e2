"""``kubepy git resolve``: conflicts that git shows to no merge driver.

Where one side removed a file and the other changed it, git asks. It need not where a controller made the object and
will make it again if it is wanted, or where only the system wrote to it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from kubepy.api.meta import controller_of
from kubepy.apiserver.threeway.written import intent_of, is_made_by_controller
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.git.files import kind_of, place_of, read_object
from kubepy.cli.git.repository import Repository
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.storage.folder import MANAGED
from kubepy.storage.manifest import ContentError

BASE, OURS, THEIRS = "1", "2", "3"


class Unmerged(NamedTuple):
    """A path in conflict, with the blobs of its stages: the ancestor's, ours, theirs."""

    path: str
    stages: dict[str, str]


class Decision(NamedTuple):
    """The stage whose file stays ("" for none: the file is removed), and the reason."""

    stage: str
    reason: str


@verb("resolve", "resolve", examples="""
# After a merge that stopped: settle what needs nobody's decision, and go on
kubepy git resolve && git commit --no-edit

# In the midst of a rebase
kubepy git resolve && git rebase --continue
""")
def resolve(factory: Factory, given: Invocation) -> None:
    """Settle the conflicts of a merge, rebase or cherry-pick in which one side removed an object's file.

    An object that a controller made is removed: the controllers make it again if it is wanted. So is one that the other
    side changed in nothing but what the system writes. What is left for somebody to decide is listed, and the exit
    status is 1."""
    if given.args:
        given.usage_error(f"Unexpected args: [{' '.join(given.args)}]")
    factory.require_cluster()
    repository = Repository(factory.folder)
    unmerged = unmerged_paths(repository)
    if not unmerged:
        factory.print("nothing to resolve")
        return
    left = [conflict for conflict in unmerged if not _settle(factory, repository, conflict)]
    for conflict in left:
        factory.say(f"{conflict.path}: {_complaint(conflict)}")
    if left:
        raise SilentExit(1)


def unmerged_paths(repository: Repository) -> list[Unmerged]:
    """The paths in conflict below the state folder, relative to the repository's root; managers after objects."""
    stages: dict[str, dict[str, str]] = {}
    output = repository.run("ls-files", "-u", "-z", "--full-name", "--", ".")
    for entry in filter(None, output.split("\0")):
        description, path = entry.split("\t", 1)
        _, blob, stage = description.split(" ")
        stages.setdefault(path, {})[stage] = blob
    return [Unmerged(path, stages[path]) for path in sorted(stages, key=lambda path: (f"/{MANAGED}/" in path, path))]


def _settle(factory: Factory, repository: Repository, unmerged: Unmerged) -> bool:
    decision = _decide(repository, unmerged)
    if decision is None:
        return False
    path = _pathspec(unmerged.path)
    if decision.stage:
        repository.run("checkout", "-q", _commit_of(repository, decision.stage), "--", path)
    else:
        repository.run("rm", "-q", "-f", "--", path)
    factory.print(f"{unmerged.path}: {'kept' if decision.stage else 'removed'}: {decision.reason}")
    return True


def _pathspec(path: str) -> str:
    """A path below the repository's root for commands that run in the state folder."""
    return f":(top,literal){path}"


def _commit_of(repository: Repository, side: str) -> str:
    """The commit whose files are that side's.

    Not what git has put into the index: where it took two new files for one old one renamed, it has merged them."""
    if side == OURS:
        return "HEAD"
    for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"):
        if repository.run("rev-parse", "-q", "--verify", name, expected=(0, 1)):
            return name
    raise CliError("no merge, rebase, cherry-pick or revert is under way")


def _decide(repository: Repository, unmerged: Unmerged) -> Decision | None:
    stages = unmerged.stages
    place = place_of(unmerged.path)
    if place is None or {OURS, THEIRS} <= stages.keys():
        return None
    survivor = OURS if OURS in stages else THEIRS if THEIRS in stages else ""
    if not survivor:
        return Decision("", "both sides removed it")
    if BASE not in stages:
        return Decision(survivor, "one side added it")
    if place.is_managers:
        of_object = unmerged.path.replace(f"/{MANAGED}/", "/")
        has_object = bool(repository.run("ls-files", "-z", "--", _pathspec(of_object)))
        return Decision(survivor if has_object else "", "as the object it belongs to")
    return _decide_by_content(repository, unmerged, survivor)


def _decide_by_content(repository: Repository, unmerged: Unmerged, survivor: str) -> Decision | None:
    try:
        blobs = (repository.run("cat-file", "blob", unmerged.stages[stage]) for stage in (BASE, survivor))
        old, new = (read_object(os.fsencode(blob)) for blob in blobs)
    except ContentError:  # what cannot be read is somebody's to decide
        return None
    if is_made_by_controller(new):
        owner = controller_of(new) or {"kind": "a", "name": "controller"}
        return Decision("", f"made by {owner.get('kind')} {owner.get('name')}, which makes it again if it is wanted")
    has_status = kind_of(new, place_of(unmerged.path)).has_status
    if intent_of(old, has_status=has_status) == intent_of(new, has_status=has_status):
        return Decision("", "changed in nothing but what the system writes")
    return None


def _complaint(unmerged: Unmerged) -> str:
    if {OURS, THEIRS} <= unmerged.stages.keys():
        return "both sides changed it: edit it, then `git add`"
    changed, removed = ("ours", "theirs") if OURS in unmerged.stages else ("theirs", "ours")
    return f"{changed} changed it, {removed} removed it: `git add` keeps it, `git rm` removes it"
