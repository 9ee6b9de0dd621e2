"""``kubepy git refresh``: files that git calls modified although their content is as committed."""

from __future__ import annotations

from kubepy.cli.git.repository import Repository
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.verbs import Invocation, verb


@verb("refresh", "refresh", examples="""
# Before a merge in a repository that keeps intent only
kubepy git refresh && git merge feature

# What is modified in truth
kubepy git refresh && git status
""")
def refresh(factory: Factory, given: Invocation) -> None:
    """Tell git of the files below the state folder that hold what is committed, with a status beside it.

    Where only intent is kept, git compares sizes before it looks at contents, calls such files modified and refuses to
    merge. Changes that `git diff` shows stay as they are, neither staged nor undone."""
    if given.args:
        given.usage_error(f"Unexpected args: [{' '.join(given.args)}]")
    factory.require_cluster()
    repository = Repository(factory.folder)
    suspected = _paths(repository, "ls-files", "-m")
    changed = {*_paths(repository, "diff", "--name-only", "--relative"), *_paths(repository, "ls-files", "-d")}
    if same := [path for path in dict.fromkeys(suspected) if path not in changed]:
        repository.run("--literal-pathspecs", "add", "-f", "--pathspec-from-file=-", "--pathspec-file-nul",
                       stdin="\0".join(same))
    factory.print(f"{len(same)} files refreshed")


def _paths(repository: Repository, *words: str) -> list[str]:
    return [path for path in repository.run(*words, "-z", "--", ".").split("\0") if path]
