"""``kubepy init``: make a cluster, with nodes if asked for."""

from __future__ import annotations

from kubepy.cli.command import Invocation, verb
from kubepy.cli.errors import CliError
from kubepy.cli.flags import integer
from kubepy.cli.session import Session

FLAGS = [integer("nodes", help="How many Ready nodes to make: node-1, node-2 …")]


@verb("init", "init [--nodes=N]", flags=FLAGS, creates=True, examples="""
# Make a cluster in ./state
kubepy init

# Make one with three nodes in another folder
kubepy --state /tmp/lab init --nodes=3
""")
def init(session: Session, given: Invocation) -> None:
    """Make a cluster: a new state folder.

    The folder is --state, $KUBEPY_STATE or ./state; it must not hold a cluster yet."""
    if given.args:
        given.usage_error(f"Unexpected args: [{' '.join(given.args)}]")
    if given.nodes < 0:
        raise CliError(f"--nodes={given.nodes} is invalid: must be greater than or equal to 0")
    if session.has_cluster:
        raise CliError(f'there is a cluster in "{session.folder}" already')
    client = session.client
    with client.joined():
        names = [_make_node(session, f"node-{number}") for number in range(1, given.nodes + 1)]
    session.print(f"cluster created in {session.folder}")
    for name in names:
        session.print(f"node/{name} created")


def _make_node(session: Session, name: str) -> str:
    """A Ready node, as the simulated kubelet registers it."""
    from kubepy.kubelet import register

    node = session.client.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    session.client.update("nodes", register(node, session.cluster.clock.now()), subresource="status")
    return name
