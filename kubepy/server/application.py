"""The one ASGI callable of ``kubepy serve``, and what all its requests share."""

from __future__ import annotations

from typing import NamedTuple


class ServeOptions(NamedTuple):
    """The options of a server.

    :ivar authorization: ``AlwaysAllow``, or ``RBAC``: the roles of the cluster are enforced.
    :ivar controllers: the controllers run beside.
    """

    address: str = "127.0.0.1"
    port: int = 0
    authorization: str = "AlwaysAllow"
    controllers: bool = True


class Application:
    """The server of one cluster."""

    def __init__(self, folder: str, options: ServeOptions) -> None:
        self.folder = folder
        self.options = options
        self.token = ""
