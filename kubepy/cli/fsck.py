"""``kubepy fsck``: what is wrong with a state folder."""

from __future__ import annotations

from kubepy.cli.errors import SilentExit
from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.session import Session
from kubepy.quoting import printable


@verb("fsck", "fsck", examples="""
# Check the folder after a merge
kubepy fsck

# Another folder
kubepy --state /srv/lab/state fsck
""")
def fsck(session: Session, given: Invocation) -> None:
    """Check the state folder: files that cannot be objects, and whether files and index agree.

    Exits with 1 if anything is wrong. Nothing is changed."""
    if given.args:
        given.usage_error(printable(f"Unexpected args: [{' '.join(given.args)}]"))
    problems = session.cluster.problems()
    for problem in problems:
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        session.print(printable(f"{place}: {problem.why}"))
    disagreements = session.cluster.store.check()
    for line in disagreements:
        session.print(printable(line))
    if problems or disagreements:
        raise SilentExit(1)
    session.print(printable(f"{session.folder}: no problems"))
