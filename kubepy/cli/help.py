"""``kubepy help``: the help of any command. Upstream: cobra's InitDefaultHelpCmd."""

from __future__ import annotations

from kubepy.cli.runtime.command import Invocation, Verb, load, verb
from kubepy.cli.runtime.session import Session
from kubepy.quoting import printable


@verb("help", "help [COMMAND...]", examples="""
# The flags of a command
kubepy help rollout undo

# All commands
kubepy help
""")
def help_(session: Session, given: Invocation) -> None:
    """Show the help of a command."""
    from kubepy.cli.main import PROGRAM, root_command

    command: Verb = root_command()
    path = PROGRAM
    for word in given.args:
        name = command.canonical(word)
        if not name:
            break
        command, path = load(name, command.entries[name]), f"{path} {name}"
    if given.args and path == PROGRAM:
        session.say(f"Unknown help topic [{' '.join(f'`{printable(word)}`' for word in given.args)}]\n\n")
        session.say(command.help_text(path))
        return
    session.print(command.help_text(path))


@verb("alpha", "alpha", examples="""
# What there is
kubepy alpha
""")
def alpha(session: Session, given: Invocation) -> None:
    """Commands that could still change: there are none."""
    session.say("No alpha commands are available in this version of kubepy")
