"""What ``--state etcd://HOST:PORT[,HOST:PORT…][/PREFIX][?OPTION=VALUE&…]`` says."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from kubepy.storage.etcd.errors import AddressError

SCHEMES = ("etcd://", "etcds://")
DEFAULT_PORT = 2379
DEFAULT_TIMEOUT = 5.0
DEFAULT_LEASE = 15
_OPTIONS = ("values", "ca", "cert", "key", "server-name", "user", "password", "timeout", "lease")
_VALUES = ("json", "protobuf")
_ENVIRONMENT = "KUBEPY_ETCD_"  # and the name of the option
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0}
_DURATION = r"(\d+(?:\.\d+)?)(ms|s|m|)"
_RESERVED_PREFIXES = ("registry", "kubepy")  # what comes after the prefix


class Address(NamedTuple):
    """An etcd, and which keys of it are a cluster.

    :ivar endpoints: host and port of each, in their order.
    :ivar prefix: before all keys, ``""`` or ``/NAME…``, without a slash at its end: the keys are
        ``{prefix}/registry/…`` and ``{prefix}/kubepy/…``.
    :ivar values: ``json`` or ``protobuf``: what objects are written in.
    :ivar timeout: seconds that a request may take.
    :ivar lease: seconds after which a lock is free whose holder has died or was cut off.
    """

    endpoints: tuple[tuple[str, int], ...]
    prefix: str = ""
    tls: bool = False
    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""
    user: str = ""
    password: str = ""
    values: str = "json"
    timeout: float = DEFAULT_TIMEOUT
    lease: int = DEFAULT_LEASE

    def __str__(self) -> str:
        """Return the address as it may be shown: without the password."""
        scheme = "etcds://" if self.tls else "etcd://"
        user = f"{_quoted(self.user)}@" if self.user else ""
        options = [
            f"{name}={_quoted(value)}"
            for name, value in (
                ("ca", self.ca),
                ("cert", self.cert),
                ("key", self.key),
                ("server-name", self.server_name),
                ("timeout", "" if self.timeout == DEFAULT_TIMEOUT else f"{self.timeout:g}"),
                ("lease", "" if self.lease == DEFAULT_LEASE else f"{self.lease}"),
                ("values", "" if self.values == _VALUES[0] else self.values),
            )
            if value
        ]
        query = f"?{'&'.join(options)}" if options else ""
        return f"{scheme}{user}{self.shown_endpoints}{_quoted(self.prefix)}{query}"

    def __repr__(self) -> str:
        return f"<Address {self}>"

    @property
    def shown_endpoints(self) -> str:
        """The endpoints as an error names them: ``10.0.0.1:2379,[::1]:2379``."""
        shown = [shown_endpoint(host, port) for host, port in self.endpoints]
        return ",".join(shown)


def shown_endpoint(host: str, port: int) -> str:
    """Return host and port as a URL has them."""
    if ":" in host:
        return f"[{host}]:{port}"
    return f"{host}:{port}"


def is_address(text: str) -> bool:
    """Tell whether a state is in etcd."""
    return text.startswith(SCHEMES)


def parse_address(text: str, environ: Mapping[str, str] | None = None) -> Address:
    """Read an address. Certificates, user and password that it does not give are taken from the
    environment: ``KUBEPY_ETCD_CA``, ``_CERT``, ``_KEY``, ``_USER``, ``_PASSWORD``.

    Raises AddressError in one line that names the option and its value.
    """
    scheme, _, rest = text.partition("://")
    location, has_query, query = rest.partition("?")
    authority, _, path = location.partition("/")
    user_info, at, hosts = authority.rpartition("@")
    shown = f"{scheme}://{hosts}{'/' if path else ''}{path}"  # no password is in it
    if f"{scheme}://" not in SCHEMES:
        raise AddressError(f"{shown}: an address of etcd begins with etcd:// or etcds://")

    options = _options_of(query, shown) if has_query else {}
    if at:
        name, has_password, password = user_info.partition(":")
        options["user"] = _unquoted(name)
        if has_password:
            options["password"] = _unquoted(password)
    is_tls = scheme == "etcds" or "ca" in options or "cert" in options
    _add_environment(options, os.environ if environ is None else environ, is_tls=is_tls)
    _check_together(options, shown)

    return Address(
        endpoints=tuple(_endpoint(part, shown) for part in hosts.split(",")),
        prefix=_prefix(_unquoted(path), shown),
        tls=is_tls,
        ca=options.get("ca", ""),
        cert=options.get("cert", ""),
        key=options.get("key", ""),
        server_name=options.get("server-name", ""),
        user=options.get("user", ""),
        password=options.get("password", ""),
        values=_values(options.get("values", _VALUES[0]), shown),
        timeout=_seconds(options["timeout"], shown) if "timeout" in options else DEFAULT_TIMEOUT,
        lease=_whole_seconds(options["lease"], shown) if "lease" in options else DEFAULT_LEASE,
    )


def _options_of(query: str, shown: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        name = _unquoted(name)
        if name not in _OPTIONS:
            raise AddressError(
                f'{shown}: there is no option "{name}": the options are {", ".join(_OPTIONS)}'
            )
        if not equals or not value:
            raise AddressError(f'{shown}: the option "{name}" has no value')
        if name in options:
            raise AddressError(f'{shown}: the option "{name}" is there twice')
        options[name] = _unquoted(value)
    return options


def _add_environment(options: dict[str, str], environ: Mapping[str, str], *, is_tls: bool) -> None:
    """Add what the environment has. A password belongs to any user, a key only to its own
    certificate."""

    def add(name: str) -> None:
        value = environ.get(f"{_ENVIRONMENT}{name.upper()}")
        if value:
            options.setdefault(name, value)

    if "password" not in options:
        add("user")
    if "user" in options:
        add("password")
    if is_tls:
        add("ca")
        if "cert" not in options:
            add("cert")
            add("key")


def _check_together(options: Mapping[str, str], shown: str) -> None:
    if "key" in options and "cert" not in options:
        raise AddressError(f"{shown}: key={options['key']} needs cert=FILE")
    if "password" in options and "user" not in options:
        raise AddressError(f"{shown}: a password needs user=NAME")
    if "user" in options and "password" not in options:
        raise AddressError(
            f"{shown}: user={options['user']} needs a password: set {_ENVIRONMENT}PASSWORD"
        )


def _endpoint(text: str, shown: str) -> tuple[str, int]:
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^:\[\]\s]+))(?::(\d+))?", text)
    if match is None:
        raise AddressError(f'{shown}: "{text}" is no HOST:PORT (an IPv6 address: [ADDRESS]:PORT)')
    port = int(match[3] or DEFAULT_PORT)
    if not 0 < port < 1 << 16:
        raise AddressError(f'{shown}: "{text}": {port} is no port')
    return match[1] or match[2], port


def _prefix(path: str, shown: str) -> str:
    path = path.rstrip("/")
    if not path:
        return ""
    names = path.split("/")
    if "" in names or not path.isprintable():
        raise AddressError(f'{shown}: "/{path}" is no prefix of keys')
    if names[0] in _RESERVED_PREFIXES:
        raise AddressError(
            f'{shown}: the prefix begins with "/{names[0]}", which kubepy adds by itself: '
            "leave it out"
        )
    return f"/{path}"


def _values(text: str, shown: str) -> str:
    if text not in _VALUES:
        raise AddressError(f"{shown}: values={text}: json or protobuf")
    return text


def _seconds(text: str, shown: str) -> float:
    match = re.fullmatch(_DURATION, text)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if seconds <= 0:
        raise AddressError(f"{shown}: timeout={text}: seconds, as 5, 2.5s or 500ms")
    return seconds


def _whole_seconds(text: str, shown: str) -> int:
    number = text.removesuffix("s")
    if not number.isdecimal() or int(number) == 0:
        raise AddressError(f"{shown}: lease={text}: whole seconds, as 5 or 15s")
    return int(number)


# urllib.parse takes as long to import as the whole client
def _quoted(text: str) -> str:
    if text.isascii() and text.replace("/", "").isalnum():
        return text
    from urllib.parse import quote

    return quote(text)


def _unquoted(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)
