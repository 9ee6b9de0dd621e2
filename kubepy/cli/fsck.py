"""``kubepy fsck``: what is wrong with a state folder, and mending it."""

from __future__ import annotations

from kubepy.cli.errors import SilentExit
from kubepy.cli.runtime.command import Invocation, verb
from kubepy.cli.runtime.flags import boolean
from kubepy.cli.runtime.session import Session
from kubepy.quoting import printable

FLAGS = [boolean("repair", help="Put right what can be put right without guessing, and say what was done.")]


@verb("fsck", "fsck [--repair]", flags=FLAGS, examples="""
# Check the folder after a merge
kubepy fsck

# Another folder
kubepy --state /srv/lab/state fsck

# Make the index anew if it disagrees with the files, make Secrets private, remove what a killed process left
kubepy fsck --repair
""")
def fsck(session: Session, given: Invocation) -> None:
    """Check the state folder: files that cannot be objects, folders without their namespace, and whether files and
    index agree.

    Exits with 1 if anything is wrong. Nothing is changed unless --repair is given. A file that cannot be an object is
    never changed: edit or remove it."""
    if given.args:
        given.usage_error(printable(f"Unexpected args: [{' '.join(given.args)}]"))
    if given.repair:
        for line in session.cluster.store.repair():
            session.print(printable(line))
    problems = [*session.cluster.problems(), *session.cluster.folders_without_namespace()]
    for problem in problems:
        session.print(printable(str(problem)))
    disagreements = session.cluster.store.check()
    for line in disagreements:
        session.print(printable(line))
    if disagreements and not given.repair:
        session.say('run "kubepy fsck --repair" to put right what can be put right without guessing')
    if problems or disagreements:
        raise SilentExit(1)
    session.print(printable(f"{session.folder}: no problems"))
