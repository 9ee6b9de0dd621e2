"""``kubepy mcp``: the cluster in use as tools for agents."""

from __future__ import annotations

import os
from typing import Any

from kubepy.cli import installation
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.cli.mcp import messages, server
    from kubepy.controlplane import open as openings

MAX_SECONDS = 3600.0


class McpOptions(Options):
    """The flags of ``mcp``."""

    allow_writes: bool = bool_flag(
        "allow-writes",
        help="Add a tool that runs commands on the cluster itself. Without it nothing that a "
        "client asks for changes the cluster.",
    )
    timeout: float = duration_flag(
        "timeout", default=60.0, help="How long a call may take before it is ended."
    )


@command(
    "mcp [--allow-writes] [--timeout=60s]",
    McpOptions,
    examples="""
# Serve the cluster in ./state to an agent, which starts this command itself
kubepy mcp

# A certain cluster and namespace
kubepy --state /home/me/lab/state -n shop mcp

# Let the agent change the cluster as well
kubepy mcp --allow-writes
""",
)
def mcp(factory: Factory, options: McpOptions) -> None:
    """Serve the cluster in use to an agent, as tools of the Model Context Protocol over standard input and output.

    The tools read the cluster, say what a command would do (plan), why something is not done (why) and what happened
    (timeline), and run commands on forks in memory, so that an agent rehearses before it acts. The cluster itself is
    changed only with --allow-writes.

    Commands that read or write files of this machine, start programs, open ports or are about another cluster are
    refused. The command ends when its standard input does."""  # noqa: E501
    options.require_no_args()
    if not 0 < options.timeout <= MAX_SECONDS:
        raise CliError("--timeout must be more than 0 and at most 1h")
    if factory.open_cluster:
        raise CliError("mcp serves a cluster from a process of its own, and this one is open here")
    factory.require_cluster()
    installation.require_extra("mcp", "mcp", "jsonschema")
    if factory.stdin.isatty():
        factory.say(
            "note: this speaks the Model Context Protocol; an agent starts it (Ctrl-C ends it)"
        )
    server.run(served_by(factory), writes=options.allow_writes, seconds=options.timeout)


def served_by(factory: Factory) -> messages.ServedCluster:
    """Return the cluster in use, and whom requests to it are made as. Raises CliError."""
    place = factory.place
    options = factory.options
    return messages.ServedCluster(
        place=place if openings.is_in_etcd(place) else os.path.abspath(place),
        namespace=factory.namespace,
        user=user_of(factory),
        reconcile=options.reconcile or os.environ.get("KUBEPY_RECONCILE", ""),
        program=factory.program,
        trusts=options.trust,
    )


def user_of(factory: Factory) -> dict[str, Any]:
    """Return the user of --as or of the context, as a context describes one; empty for the
    administrator. Raises CliError."""
    target = factory._target
    user = factory.options.impersonated_user(target.user_name, target.user)
    if user is None:
        return {}
    return {
        "as": user["username"],
        "as-uid": user.get("uid", ""),
        "as-groups": user.get("groups", []),
        "as-user-extra": user.get("extra", {}),
    }
