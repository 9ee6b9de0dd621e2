"""Objects of files as kubectl has them that knows their Go types."""

from __future__ import annotations

from kubepy.cli.runtime.errors import CliError
from kubepy.cli.runtime.resources import Info
from kubepy.cluster.objects.meta import Object


def typed(info: Info) -> Object:
    """The object of a file as its Go type writes it: fields that it does not know are gone, structs are there.

    Raises CliError."""
    from kubepy.cluster.types import DecodeError, decode

    try:
        return decode(info.content).object
    except DecodeError as error:
        raise CliError(f'unable to decode "{info.source}": {error}') from None
