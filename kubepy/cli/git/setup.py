"""``kubepy git setup``: write attributes into the state folder, and drivers into git's
configuration."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from kubepy.cli.git.repository import Repository, write_lines
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.options import Options

ATTRIBUTES = ".gitattributes"
IGNORED = ".gitignore"
_FILES = ("/cluster/**/*.yaml", "/namespaces/**/*.yaml")
_ALL = tuple(f"{files} merge=kubepy diff=kubepy" for files in _FILES)
_INTENT = tuple(f"{line} filter=kubepy-intent" for line in _ALL)
# Files of objects that controllers make again. A user's own object among them is kept with `git
# add -f`.
_CONTROLLED = (
    "/cluster/persistentvolumes/pvc-*.yaml",
    "/namespaces/*/controllerrevisions.apps/",
    "/namespaces/*/endpoints/",
    "/namespaces/*/endpointslices.discovery.k8s.io/",
    "/namespaces/*/jobs.batch/*-[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9].yaml",
    "/namespaces/*/leases.coordination.k8s.io/",
    "/namespaces/*/pods/",
    "/namespaces/*/replicasets.apps/",
)
# A line at most two levels deep that opens a block: the section that a hunk is in.
_SECTIONS = "^ {0,2}([A-Za-z0-9][^:]*:)$"
# A pod's file is never another pod's, renamed. Git's newer strategy (ort) looks for renames all the
# same before 2.50; from then on "recursive" is another name for it.
_WITHOUT_RENAMES = {"merge.renames": "false", "pull.twohead": "recursive"}
# Without its driver (its environment was removed) git would keep ours, and nothing would show that
# theirs is missing.
_FALLBACK = (
    "status=$?; if test $status -gt 1; then git merge-file -q --marker-size=%L %A %O %B; "
    "status=$?; "
    "fi; exit $status"
)


class GitSetupOptions(Options):
    """The flags of ``git setup``."""

    intent_only: bool = bool_flag(
        "intent-only",
        help="Keep intent only: what controllers make, status, and everything "
        "else that the system writes stays out of the repository. Default: as the attributes "
        "in the state folder say.",
    )
    field_paths: bool = bool_flag(
        "field-paths",
        help="Let git show each changed field with its whole path, in place of lines of YAML.",
    )


@command(
    "setup [--intent-only] [--field-paths]",
    GitSetupOptions,
    examples="""
# Let git merge and compare the objects in ./state
kubepy git setup

# Commit the objects that users write, without the objects and status that controllers write
kubepy git setup --intent-only

# In git diff, each changed field with its whole path
kubepy git setup --field-paths
""",
)
def setup(factory: Factory, options: GitSetupOptions) -> None:
    """Set up the git repository that the state folder lies in, so that git merges objects by their fields.

    The attributes go into ".gitattributes" in the state folder, which is to be committed. The drivers go into the
    repository's own configuration, which is no part of a clone: run this once in every clone. Detection of renames is
    turned off for merges, since a file in a state folder is never another one renamed. What stands there already stays;
    a second run changes nothing."""  # noqa: E501
    options.require_no_args()
    factory.require_folder()
    repository = Repository(factory.folder)
    attributes = os.path.join(factory.folder, ATTRIBUTES)
    is_intent_only = (
        options.intent_only if options.changed("intent-only") else _keeps_intent_only(attributes)
    )
    changed = write_lines(attributes, _INTENT if is_intent_only else _ALL, own={*_ALL, *_INTENT})
    factory.print(f"{attributes}: {'written' if changed else 'unchanged'}")
    ignored = os.path.join(factory.folder, IGNORED)
    if write_lines(ignored, _CONTROLLED if is_intent_only else (), own=_CONTROLLED):
        factory.print(f"{ignored}: written")
    _configure(factory, repository, is_intent_only=is_intent_only, has_paths=options.field_paths)
    if is_intent_only and repository.run(
        "ls-files", "-i", "-c", "--exclude-standard", "-z", "--", "."
    ):
        factory.say(
            f"note: files that are left out from now on are still in the repository: git -C "
            f"{factory.folder} "
            "rm -r -q --cached . && git add ."
        )


def _keeps_intent_only(attributes: str) -> bool:
    try:
        with open(attributes, encoding="utf-8", errors="replace") as file:
            return not set(_INTENT).isdisjoint(file.read().splitlines())
    except FileNotFoundError:
        return False


def _configure(
    factory: Factory, repository: Repository, *, is_intent_only: bool, has_paths: bool
) -> None:
    program = program_line()
    merge_command = f"{program} git merge-file"
    settings: dict[str, str | None] = {
        "merge.kubepy.name": "objects of a kubepy cluster",
        "merge.kubepy.driver": f"{merge_command} -- %O %A %B %L %P %S %X %Y; {_FALLBACK}",
        "merge.kubepy.recursive": "kubepy-ancestor",
        "merge.kubepy-ancestor.name": "common ancestors of objects of a kubepy cluster",
        "merge.kubepy-ancestor.driver": f"{merge_command} --ancestor -- %O %A %B %L %P",
        "diff.kubepy.xfuncname": _SECTIONS,
        "diff.kubepy.textconv": f"{program} git diff-text" if has_paths else None,
        "diff.kubepy.cachetextconv": "true" if has_paths else None,
        "filter.kubepy-intent.process": f"{program} git filter" if is_intent_only else None,
        "filter.kubepy-intent.required": "true" if is_intent_only else None,
    }
    changes = [name for name, value in settings.items() if _change_setting(repository, name, value)]
    changes += [
        f"{name} = {value}"
        for name, value in _WITHOUT_RENAMES.items()
        if repository.setting(name) is None and _change_setting(repository, name, value)
    ]
    factory.print(
        "\n".join([f"{repository.configuration_file()}:", *(f"  {change}" for change in changes)])
        if changes
        else f"{repository.configuration_file()}: unchanged"
    )


def _change_setting(repository: Repository, name: str, value: str | None) -> bool:
    """Set or remove a setting. Return whether that changed it."""
    if repository.setting(name) == value:
        return False
    if value is None:
        repository.unset(name)
    else:
        repository.set(name, value)
    return True


def program_line() -> str:
    """Return this program as a shell calls it: git runs drivers without an activated
    environment."""
    installed = os.path.join(os.path.dirname(sys.executable), "kubepy")
    if program := installed if os.access(installed, os.X_OK) else shutil.which("kubepy"):
        return shlex.quote(os.path.abspath(program))
    return f"{shlex.quote(sys.executable)} -P -m kubepy.cli.program"
