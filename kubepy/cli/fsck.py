"""``kubepy fsck``: what is wrong with a state folder, and mending it."""

from __future__ import annotations

from kubepy.cli.errors import SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.options import Options
from kubepy.quoting import printable


class FsckOptions(Options):
    """The flags of ``fsck``."""

    repair: bool = bool_flag("repair", help="Put right what can be put right without guessing, and say what was done.")


@command("fsck [--repair]", FsckOptions, examples="""
# Check the folder after a merge
kubepy fsck

# Another folder
kubepy --state /srv/lab/state fsck

# Make the index anew if it disagrees with the files, make Secrets private, remove what a killed process left
kubepy fsck --repair
""")
def fsck(factory: Factory, options: FsckOptions) -> None:
    """Check the state folder: files that cannot be objects, folders without their namespace, and whether files and
    index agree.

    Exits with 1 if anything is wrong. Nothing is changed unless --repair is given. A file that cannot be an object is
    never changed: edit or remove it."""
    options.require_no_args()
    if options.repair:
        for line in factory.cluster.store.repair():
            factory.print(printable(line))
    problems = [*factory.cluster.problems(), *factory.cluster.folders_without_namespace()]
    for problem in problems:
        factory.print(printable(str(problem)))
    disagreements = factory.cluster.store.check()
    for line in disagreements:
        factory.print(printable(line))
    if disagreements and not options.repair:
        factory.say('run "kubepy fsck --repair" to put right what can be put right without guessing')
    if problems or disagreements:
        raise SilentExit(1)
    factory.print(printable(f"{factory.folder}: no problems"))
