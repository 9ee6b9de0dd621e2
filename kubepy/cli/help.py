"""``kubepy help``, ``alpha``, and the commands of kubectl that have no meaning here.

Upstream: cobra's InitDefaultHelpCmd, ``kubectl/pkg/cmd/alpha.go``.
"""

from __future__ import annotations

from kubepy.cli.runtime.command import command, load
from kubepy.cli.runtime.dispatch import root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import Options
from kubepy.quoting import printable


@command(
    "help [COMMAND...]",
    Options,
    examples="""
# The flags of a command
kubepy help rollout undo

# List all commands
kubepy help
""",
)
def help_(factory: Factory, options: Options) -> None:
    """Show the help of a command."""
    topic = root_command(factory)
    program = path = topic.name
    for word in options.args:
        name = topic.canonical(word)
        if not name:
            break
        topic = load(name, topic.entries[name])
        path = f"{path} {name}"

    if options.args and path == program:
        factory.say(
            f"Unknown help topic [{' '.join(f'`{printable(word)}`' for word in options.args)}]\n\n"
        )
        factory.say(topic.help_text(path))
        return

    factory.print(topic.help_text(path))


@command(
    "alpha",
    Options,
    examples="""
# List the alpha commands
kubepy alpha
""",
)
def alpha(factory: Factory, options: Options) -> None:
    """Commands that could still change: there are none."""
    factory.say(f"No alpha commands are available in this version of {factory.program}")
