"""``kubepy proxy``: the API of the cluster over plain HTTP on this machine, without a token.

Upstream: ``kubectl/pkg/cmd/proxy/proxy.go``.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
from typing import TYPE_CHECKING

from kubepy import system
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, int_flag, string_flag
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

if TYPE_CHECKING:
    from kubepy.server.gateway import Filter

with lazy_imports():
    from kubepy.api.values import goregex
    from kubepy.cli import installation
    from kubepy.controlplane import groups
    from kubepy.server import application as applications
    from kubepy.server import gateway, listener

DEFAULT_PORT, MAX_PORT = 8001, 0xFFFF
ACCEPTED_HOSTS = r"^localhost$,^127\.0\.0\.1$,^\[::1\]$"
REJECTED_PATHS = "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach"
PLACE = "proxy.go:180"  # of kubectl's warnings
TOKEN_BYTES = 32


class ProxyOptions(Options):
    """The flags of ``proxy``."""

    www: str = string_flag(
        "www",
        "w",
        help="Also serve static files from the given directory under the specified prefix.",
    )
    www_prefix: str = string_flag(
        "www-prefix",
        "P",
        "/static/",
        help="Prefix to serve static files under, if static file directory is specified.",
    )
    api_prefix: str = string_flag(
        "api-prefix", default="/", help="Prefix to serve the proxied API under."
    )
    accept_paths: str = string_flag(
        "accept-paths",
        default="^.*",
        help="Regular expression for paths that the proxy should accept.",
    )
    reject_paths: str = string_flag(
        "reject-paths",
        default=REJECTED_PATHS,
        help="Regular expression for paths that the proxy should reject. Paths specified here will "
        "be rejected even accepted by --accept-paths.",
    )
    accept_hosts: str = string_flag(
        "accept-hosts",
        default=ACCEPTED_HOSTS,
        help="Regular expression for hosts that the proxy should accept.",
    )
    reject_methods: str = string_flag(
        "reject-methods",
        default="^$",
        help="Regular expression for HTTP methods that the proxy should reject (example "
        "--reject-methods='POST,PUT,PATCH').",
    )
    port: int = int_flag(
        "port",
        "p",
        DEFAULT_PORT,
        help="The port on which to run the proxy. Set to 0 to pick a random port.",
    )
    address: str = string_flag(
        "address", default="127.0.0.1", help="The IP address on which to serve on."
    )
    disable_filter: bool = bool_flag(
        "disable-filter",
        help="If true, disable request filtering in the proxy. This is dangerous, and can leave "
        "you vulnerable to XSRF attacks, when used with an accessible port.",
    )
    unix_socket: str = string_flag(
        "unix-socket", "u", help="Unix socket on which to run the proxy."
    )
    keepalive: float = duration_flag(
        "keepalive", help="Without effect here: there is no connection behind the proxy."
    )
    append_server_path: bool = bool_flag(
        "append-server-path", help="Without effect here: the server has no path."
    )


@command(
    "proxy [--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix]",
    ProxyOptions,
    examples="""
# The whole API, on port 8001 of this machine: curl localhost:8001/api/v1/pods
kubepy proxy

# On any free port, which is printed
kubepy proxy --port=0

# Under another path: curl localhost:8001/custom/api/v1/pods
kubepy proxy --api-prefix=/custom/

# Only a part of the API, and files of a folder
kubepy proxy --www=./site --www-prefix=/site/ --api-prefix=/api/

# For reading only
kubepy proxy --reject-methods='POST,PUT,PATCH,DELETE'
""",
)
def proxy(factory: Factory, options: ProxyOptions) -> None:
    """Run a proxy to the API of the cluster on this machine.

    Requests need no token: they are those of the current user. Pods, Services and nodes are reached below
    /api/v1/namespaces/NAMESPACE/pods/NAME/proxy/, services/NAME/proxy/ and /api/v1/nodes/NAME/proxy/
    (docs/containers.md). SIGTERM or SIGINT ends it after the requests that it has begun."""  # noqa: E501
    options.require_no_args()
    rules = _filter_of(factory, options)
    if options.unix_socket and options.port != DEFAULT_PORT:
        raise CliError("cannot set --unix-socket and --port at the same time")
    _look_for_static_folder(factory, options.www)
    if not factory.place:
        factory.require_folder()
    factory.require_cluster()
    installation.require_serve("h11", "uvicorn", "wsproto")
    received = _serve(factory, options, rules)
    if received[:1] == [signal.SIGINT]:
        raise SilentExit(128 + signal.SIGINT)


def _filter_of(factory: Factory, options: ProxyOptions) -> Filter | None:
    """Return the filter of requests; None without one. Raises CliError for an expression that is
    none."""
    if options.disable_filter:
        if not options.unix_socket:
            factory.log(
                PLACE,
                "Request filter disabled, your proxy is vulnerable to XSRF attacks, please be "
                "cautious",
            )
        return None
    return gateway.Filter(
        _patterns(options.accept_paths),
        _patterns(options.reject_paths),
        _patterns(options.accept_hosts),
        _patterns(options.reject_methods),
    )


def _patterns(text: str) -> list[object]:
    """Compile regular expressions between commas. Raises CliError."""
    patterns: list[object] = []
    for part in text.split(",") if text else ():
        try:
            patterns.append(goregex.compile_go(part))
        except goregex.GoRegexError as error:
            raise CliError(f"Error compiling re: {printable(str(error))}") from None
    return patterns


def _look_for_static_folder(factory: Factory, folder: str) -> None:
    """Warn of a folder of static files that is none."""
    if not folder:
        return
    try:
        is_folder = stat.S_ISDIR(os.stat(folder).st_mode)
    except OSError as error:
        reason = (error.strerror or "").lower()
        factory.log(
            PLACE, f"Failed to stat static file directory {folder}: stat {folder}: {reason}"
        )
        return
    if not is_folder:
        factory.log(PLACE, f"Static file directory {folder} is not a directory")


def _serve(factory: Factory, options: ProxyOptions, rules: Filter | None) -> list[int]:
    """Serve until a signal; return the signals that came. Raises CliError, StorageError."""
    sockets = _sockets(options)
    token = os.urandom(TOKEN_BYTES).hex()
    application = applications.Application(
        factory.place,
        applications.ServeOptions(
            controllers=groups.EVERY if factory.reconciles else frozenset(),
            verbosity=factory.options.v,
            user=factory.client.user,
        ),
        token=token,
        log=factory.say,
    )

    def ready() -> None:
        factory.print(f"Starting to serve on {_shown(sockets[0])}")
        factory.stdout.flush()

    gateway_options = gateway.GatewayOptions(
        [(b"authorization", f"Bearer {token}".encode())],
        rules,
        _with_slash(options.api_prefix),
        _with_slash(options.www_prefix),
        options.www,
    )
    try:
        return listener.serve_gateway(application, gateway_options, sockets, ready)
    finally:
        if options.unix_socket:
            _remove_socket(options.unix_socket)


def _with_slash(prefix: str) -> str:
    if prefix.endswith("/"):
        return prefix
    return f"{prefix}/"


def _sockets(options: ProxyOptions) -> list[socket.socket]:
    """Listen. Raises CliError."""
    path = options.unix_socket
    try:
        if path:
            return [_unix_socket(path)]
        if not 0 <= options.port <= MAX_PORT:
            raise CliError(f"listen tcp: address {options.port}: invalid port")
        return listener.listen(options.address, options.port)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        where = f"unix {path}"
        if not path:
            where = f"tcp {_with_port(options.address, options.port)}"
        raise CliError(f"listen {printable(where)}: bind: {reason}") from None


def _unix_socket(path: str) -> socket.socket:
    """Listen on a socket that only this user can reach; one that is there is replaced. Raises
    OSError."""
    _remove_socket(path)
    unix_socket = system.unix_socket()
    mask = os.umask(0o077)
    try:
        unix_socket.bind(path)
        unix_socket.listen()
    except OSError:
        unix_socket.close()
        raise
    finally:
        os.umask(mask)
    unix_socket.setblocking(False)
    return unix_socket


def _remove_socket(path: str) -> None:
    """Remove a socket, stale or not; other files stay."""
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.unlink(path)
    except FileNotFoundError:
        pass


def _shown(listening: socket.socket) -> str:
    """Return the address of a socket, as Go prints it."""
    address = listening.getsockname()
    if isinstance(address, str):  # of a socket in a file
        return address
    host, port = address[:2]
    return _with_port(host, port)


def _with_port(host: str, port: int) -> str:
    if ":" in host:
        return f"[{host}]:{port}"
    return f"{host}:{port}"
