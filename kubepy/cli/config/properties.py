"""``kubepy config set`` and ``unset``: single values by their paths. Upstream: ``set.go``, ``unset.go``."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubepy.cli.config.contexts import chosen, unexpected_args
from kubepy.cli.errors import CliError
from kubepy.cli.runtime import kubeconfig
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import parse_bool
from kubepy.cli.runtime.kubeconfig import Entries, Kubeconfig
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import printable, quote

# What a value may be, by the section's name and the field's.
FIELDS: Mapping[str, Mapping[str, Callable[[str], object]]] = {
    "clusters": {"server": kubeconfig.server_of, "tls-server-name": str, "insecure-skip-tls-verify": parse_bool,
                 "certificate-authority": str, "certificate-authority-data": lambda text: _base64(text),
                 "proxy-url": str, "disable-compression": parse_bool},
    "contexts": {"cluster": str, "user": str, "namespace": str},
    "users": {"client-certificate": str, "client-certificate-data": lambda text: _base64(text), "client-key": str,
              "client-key-data": lambda text: _base64(text), "token": str, "tokenFile": str, "as": str, "as-uid": str,
              "username": str, "password": str},
}
CURRENT = "current-context"


class Path(NamedTuple):
    """``contexts.lab.namespace``; ``name`` and ``field`` may be "" (``contexts.lab``, ``contexts``)."""

    section: str
    name: str
    field: str


@verb("set", "set PROPERTY_NAME PROPERTY_VALUE", flags=[
    boolean("set-raw-bytes", help="Take the value of a ...-data property as it is, instead of as base64."),
], examples="""
# The namespace of a context
kubepy config set contexts.lab.namespace web

# The folder of a cluster
kubepy config set clusters.lab.server /srv/lab/state
""")
def set_(factory: Factory, given: Invocation) -> None:
    """Set an individual value of the contexts, clusters and users."""
    if len(given.args) != 2:
        raise unexpected_args(factory, given)
    property_name, value = given.args
    if not value:
        raise CliError("you cannot use set to unset a property")
    if given.set_raw_bytes and property_name.endswith("-data"):
        value = base64.b64encode(value.encode()).decode()
    config = chosen(factory)
    kubeconfig.write(factory.home, _with(config, parse(property_name), value))
    factory.print(f"Property {quote(property_name)} set.")


@verb("unset", "unset PROPERTY_NAME", examples="""
# A context without a namespace of its own
kubepy config unset contexts.lab.namespace

# No current context
kubepy config unset current-context
""")
def unset(factory: Factory, given: Invocation) -> None:
    """Unset an individual value of the contexts, clusters and users."""
    if len(given.args) != 1:
        raise unexpected_args(factory, given)
    config = chosen(factory)
    kubeconfig.write(factory.home, _without(config, parse(given.args[0])))
    factory.print(f"Property {quote(given.args[0])} unset.")


def parse(text: str) -> Path:
    """A name may hold dots: it ends where a field's name begins. Raises CliError."""
    if not text:
        raise CliError("you must specify a property")
    section, *rest = text.split(".")
    if section == CURRENT and not rest:
        return Path(section, "", "")
    if section not in FIELDS:
        raise CliError(printable(f"unable to parse {text} after [] at api.Config"))
    fields = [place for place, part in enumerate(rest) if place and part in FIELDS[section]]
    if not fields:
        return Path(section, ".".join(rest), "")
    if fields[0] != len(rest) - 1:
        raise CliError(f"unable to parse one or more field values of {text}")
    return Path(section, ".".join(rest[:-1]), rest[-1])


def _with(config: Kubeconfig, path: Path, value: str) -> Kubeconfig:
    if path.section == CURRENT:
        return config._replace(current=value)
    entries = _section(config, path)
    if not path.field:
        raise CliError(f"can't set a map to a value: map[{' '.join(sorted(entries))}]")
    try:
        parsed = FIELDS[path.section][path.field](value)
    except ValueError as error:
        raise CliError(str(error)) from None
    return _replaced(config, path.section, {**entries, path.name: {**entries.get(path.name, {}), path.field: parsed}})


def _without(config: Kubeconfig, path: Path) -> Kubeconfig:
    if path.section == CURRENT:
        return config._replace(current="")
    entries = _section(config, path)
    if not path.name:
        return _replaced(config, path.section, {})
    if not path.field:
        return _replaced(config, path.section, {name: one for name, one in entries.items() if name != path.name})
    if path.name not in entries:
        raise CliError(f"current map key `{path.name}` is invalid")
    entry = {key: value for key, value in entries[path.name].items() if key != path.field}
    return _replaced(config, path.section, {**entries, path.name: entry})


def _replaced(config: Kubeconfig, section: str, entries: Entries) -> Kubeconfig:
    clusters, contexts, users = (entries if one == section else getattr(config, one) for one in FIELDS)
    return Kubeconfig(config.current, clusters, contexts, users)


def _section(config: Kubeconfig, path: Path) -> Entries:
    found: Entries = getattr(config, path.section)
    return found


def _base64(text: str) -> str:
    text = text.translate({ord("\r"): None, ord("\n"): None})  # as base64 breaks lines
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("error decoding input value: illegal base64 data") from None
    return text
