"""What ``--state etcd://HOST:PORT[,HOST:PORT…][/PREFIX][?OPTION=VALUE&…]`` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Address(NamedTuple):
    """An etcd, and which keys of it are a cluster.

    :ivar endpoints: host and port of each, in their order.
    :ivar prefix: before all keys, ``""`` or ``/NAME…``, without a slash at its end: the keys are
        ``{prefix}/registry/…`` and ``{prefix}/kubepy/…``.
    :ivar values: ``json`` or ``protobuf``: what objects are written in.
    :ivar timeout: seconds that a request may take.
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
    timeout: float = 5.0

    def __str__(self) -> str:
        """Return the address as it may be shown: without the password."""
        raise NotImplementedError


def parse_address(text: str, environ: Mapping[str, str] | None = None) -> Address:
    """Read an address; what it leaves out of user and password is taken from the environment
    (``KUBEPY_ETCD_USER``, ``KUBEPY_ETCD_PASSWORD``). Raises AddressError in one line that names the
    option and its value."""
    raise NotImplementedError
