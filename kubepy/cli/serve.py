"""``kubepy serve``: the API of the cluster over HTTPS, for every Kubernetes client."""

from __future__ import annotations

import base64
import errno
import os
import shlex
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag, string_flag
from kubepy.cli.runtime.kubeconfig import ConfigAccess
from kubepy.cli.runtime.options import Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.cli import inner_commands, installation
    from kubepy.controlplane import groups
    from kubepy.server import application as applications
    from kubepy.server import certificates, clientcertificates, idletime, listener, signing

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application, ServeOptions
    from kubepy.server.certificates import Keys
    from kubepy.server.listener import TlsFiles

KUBECONFIG = os.path.join(".kubepy", "kubeconfig")
PORT = 6443


class ServeCommandOptions(Options):
    """The flags of ``serve``."""

    address: str = string_flag(
        "address",
        default="127.0.0.1",
        help="The address to listen on. Others than those of "
        "this machine's loopback let other machines reach the cluster, who need the token.",
    )
    port: int = int_flag("port", default=PORT, help="The port to listen on; 0 chooses a free one.")
    write_kubeconfig: str = string_flag(
        "write-kubeconfig",
        help="Write a kubeconfig for the server to this file. "
        "Without it, it is .kubepy/kubeconfig in the state folder.",
    )
    controllers: str = string_flag(
        "controllers",
        default="on",
        help="The controllers that run beside: on, off (api,kubelet), or names of groups, "
        "separated by commas (api,gc,namespace).",
    )
    client_ca_file: str = string_flag(
        "client-ca-file",
        help="A file with certificates of CAs, in PEM. Who has a certificate by one of them is "
        "the user that its subject names; so is who has one by the CA of the server itself.",
    )
    authorization: str = string_flag(
        "authorization",
        default="AlwaysAllow",
        help="AlwaysAllow, or RBAC: enforce the roles that are in the folder.",
    )
    time: str = string_flag(
        "time",
        default="cluster",
        help="cluster: commands and clients move the cluster's own time, where it has one. "
        "when-idle: it also goes on by itself while no request is open and every watch has been "
        "read (when-idle,after=50ms,speed=1000: clients must be quiet for 50 ms, and 1000 "
        "seconds pass in one).",
    )


@command(
    "serve [--address=ADDRESS] [--port=PORT] [--write-kubeconfig=FILE]",
    ServeCommandOptions,
    examples="""
# Serve the cluster in ./state
kubepy serve

# On any free port, with a kubeconfig of a chosen name
kubepy serve --port=0 --write-kubeconfig=/tmp/kubeconfig

# For clients that bring controllers of their own
kubepy serve --controllers=off

# With the garbage collector and what removes namespaces, and no other controller
kubepy serve --controllers=gc,namespace

# Let the cluster's own time go on whenever all clients wait
kubepy serve --time=when-idle

# For users with certificates by a CA
kubepy serve --client-ca-file=ca.crt --authorization=RBAC
""",
)
def serve(factory: Factory, options: ServeCommandOptions) -> None:
    """Serve the API of the cluster over HTTPS: for kubectl, helm, client-go and every other Kubernetes client.

    The folder stays the truth: what is changed there by others, as by "git checkout", clients see as a change. One line
    says when the server is ready, and how to use it. SIGTERM or SIGINT ends it after the requests that it has begun."""  # noqa: E501
    options.require_no_args()
    if options.authorization not in ("AlwaysAllow", "RBAC"):
        raise CliError(
            f"--authorization={printable(options.authorization)} is invalid: must be AlwaysAllow "
            "or RBAC"
        )

    if not 0 <= options.port <= 65535:
        raise CliError(f"--port={options.port} is invalid: must be between 0 and 65535")
    if not options.address:
        raise CliError("--address is empty: it must be an address or a name of this machine")
    if not factory.place:
        factory.require_folder()
    factory.require_cluster()
    installation.require_serve()

    received = _run(factory, options)
    if received[:1] == [signal.SIGINT]:
        raise SilentExit(128 + signal.SIGINT)


def _run(factory: Factory, options: ServeCommandOptions) -> list[int]:
    """Serve until a signal; return the signals that came. Raises CliError, StorageError."""
    folder = factory.private_folder
    try:
        names = groups.reconcilers_of(options.controllers)
    except groups.UnknownGroupError as error:
        raise CliError(f"--controllers: {error}") from None
    try:
        pace = idletime.parse_pace(options.time)
    except idletime.TimeFlagError as error:
        raise CliError(f"--time: {error}") from None
    client_ca = read_client_ca(options.client_ca_file) if options.client_ca_file else ""
    try:
        sockets = listener.listen(options.address, options.port)
    except OSError as error:
        hint = "; --port=0 chooses a free port" if error.errno == errno.EADDRINUSE else ""
        raise CliError(
            f"cannot listen on {printable(options.address)} port {options.port}: "
            f"{(error.strerror or str(error)).lower()}{hint}"
        ) from None

    keys = certificates.load_keys(folder, certificates.hosts_of(options.address), factory.say)
    serve_options = applications.ServeOptions(
        options.authorization,
        names,
        factory.options.v,
        pace=pace,
        run_command=inner_commands.runner(factory.main),
    )
    application = new_application(factory.place, serve_options, keys, factory.say)
    url = url_of(options.address, sockets[0].getsockname()[1])
    path = options.write_kubeconfig
    kept = os.path.join(folder, KUBECONFIG)

    def keep() -> None:
        """Put back what others have removed from .kubepy/."""
        keys.files.restore()
        if not path and not os.path.exists(kept) and os.path.isdir(os.path.dirname(kept)):
            with suppress(CliError):  # the next time will do as well
                write_kubeconfig(kept, folder, url, keys.ca, keys.token)

    def ready() -> None:
        factory.print(
            f"serving {printable(factory.shown_place)} at {url}: kubectl --kubeconfig "
            f"{shlex.quote(os.path.abspath(path or kept))} get nodes"
        )
        if factory.stdout.isatty():  # a link with the token in it is for nobody else
            factory.print(f"timeline: {url}/#token={keys.token}")
        factory.stdout.flush()

    if not path and os.path.lexists(kept):
        os.unlink(kept)  # of a server that has ended: nothing in it is to be kept
    write_kubeconfig(path or kept, folder, url, keys.ca, keys.token)
    return listener.serve(application, tls_files(keys, client_ca), sockets, ready, keep)


def new_application(
    place: str | LocalCluster,
    options: ServeOptions,
    keys: Keys,
    log: Callable[[str], None] = lambda line: None,
) -> Application:
    """Return a server with keys of its own, which signs certificates with them."""
    signer = signing.CertificateSigner(keys.authority, keys.authority_key)
    return applications.Application(
        place,
        options,
        token=keys.token,
        signing_key=keys.signing_key,
        credentials=applications.CredentialOptions(signer=signer),
        log=log,
    )


def tls_files(keys: Keys, client_ca: str = "") -> TlsFiles:
    """Return what a server speaks TLS with.

    :param client_ca: the certificates of more CAs of clients than its own, in PEM.
    """
    vouching = f"{keys.ca.decode()}\n{client_ca}"
    return listener.TlsFiles(keys.certificate, keys.certificate_key, vouching)


def read_client_ca(path: str) -> str:
    """Return the certificates of a file of CAs, in PEM. Raises CliError."""
    try:
        with open(path, "rb") as file:
            return clientcertificates.certificates_of(file.read())
    except OSError as error:
        raise CliError(
            f"--client-ca-file: {printable(path)}: {(error.strerror or str(error)).lower()}"
        ) from None
    except ValueError as error:
        raise CliError(f"--client-ca-file: {printable(path)}: {error}") from None


def url_of(address: str, port: int) -> str:
    """Return the URL under which this machine reaches a server that listens on an address."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
    if ":" in host:
        return f"https://[{host}]:{port}"
    return f"https://{host}:{port}"


def write_kubeconfig(path: str, folder: str, url: str, ca: bytes, token: str) -> None:
    """Write a kubeconfig whose current context is the server; other entries of the file stay.
    Raises CliError."""
    name = f"kubepy-{os.path.basename(os.path.realpath(folder))}"
    access = ConfigAccess("", os.path.abspath(path))
    config = access.read()
    cluster = {"certificate-authority-data": base64.b64encode(ca).decode(), "server": url}
    access.write(
        config._replace(
            current=name,
            clusters={**config.clusters, name: cluster},
            contexts={**config.contexts, name: {"cluster": name, "user": name}},
            users={**config.users, name: {"token": token}},
        )
    )
