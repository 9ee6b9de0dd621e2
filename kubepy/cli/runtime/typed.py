"""Objects of files as kubectl has them that knows their Go types."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.infos import Info
from kubepy.quoting import quote


def type_name(obj: Object) -> str:
    """The name of the object's Go type. Raises CliError for a kind that kubectl has no type for."""
    from kubepy.api.types import type_of

    if name := type_of(obj):
        return name
    raise CliError(f'no kind {quote(obj["kind"])} is registered for version {quote(obj["apiVersion"])} in scheme '
                   '"pkg/scheme/scheme.go:28"')


def typed(info: Info) -> Object:
    """The object of a file as its Go type writes it: fields that it does not know are gone, structs are there.

    Raises CliError."""
    from kubepy.api.types import DecodeError, decode

    try:
        return decode(info.content).object
    except DecodeError as error:
        raise CliError(f"unable to decode {quote(info.source)}: {error}") from None
