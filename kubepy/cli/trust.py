"""``kubepy trust``: trust a state folder that was made elsewhere."""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import Options
from kubepy.controlplane.open import is_in_etcd
from kubepy.quoting import printable
from kubepy.storage import homes


class TrustOptions(Options):
    """The flags of ``trust``: none of its own."""


@command(
    "trust",
    TrustOptions,
    examples="""
# Let the webhooks of a clone be called
kubepy trust

# Trust a folder for one command only
kubepy --trust get pods
""",
)
def trust(factory: Factory, options: TrustOptions) -> None:
    """Trust the state folder from now on, as if it had been made here by you.

    In a folder that came with a clone, a tarball or a copy, no webhook is called, and a ".kubepy" that came along is
    put aside as ".kubepy.untrusted": its contexts, keys and index have no effect. This command takes it back, with all
    that is in it, and lets webhooks be called. Look at both first: contexts send commands to other folders, an index
    can write any object, and webhooks are asked over the network."""  # noqa: E501
    options.require_no_args()
    if not factory.home or is_in_etcd(factory.home):
        raise factory.has_no_folder(factory.home)
    factory.require_home()
    try:
        for line in homes.trust(factory.home):
            factory.print(printable(line))
    except OSError as error:
        raise CliError(f"{printable(error.filename or factory.home)}: {error.strerror}") from None
    factory.print(printable(f"{factory.home} is trusted"))
