"""``kubepy port-forward``: ports of this machine, whose connections end in a pod of the model.

Upstream: ``kubectl/pkg/cmd/portforward``, ``client-go/tools/portforward``.
"""

from __future__ import annotations

import errno
import selectors
import socket
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.errors import NotFound
from kubepy.api.meta import Object, name_of, namespace_of, status_of, uid_of
from kubepy.cli.errors import CliError
from kubepy.cli.inside.pods import PODS, attachable_pod, named_object, require_containers
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import duration_flag, string_slice_flag
from kubepy.cli.runtime.options import Options
from kubepy.kubelet import inside
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubepy.api.typed import Pod

with lazy_imports():
    from kubepy import klog
    from kubepy.cli import installation
    from kubepy.kubelet import portstreams

SERVICES = "services"
LOCALHOST = "localhost"
LOOPBACK = ("127.0.0.1", "::1")
MAX_PORT = 0xFFFF
PIECE = 64 * 1024
LOOK_AGAIN = 1.0  # seconds between two looks at the pod
LOST = "lost connection to pod"
PLACE = "portforward.go:424"


class PortForwardOptions(Options):
    """The flags of ``port-forward``."""

    address: list[str] = string_slice_flag(
        "address",
        default=[LOCALHOST],
        help="Addresses to listen on (comma separated): IP addresses, or localhost, which stands "
        "for 127.0.0.1 and ::1, and is enough if one of them can be listened on.",
    )
    pod_running_timeout: float = duration_flag(
        "pod-running-timeout",
        default=60.0,
        help="How long to wait until at least one pod is running.",
    )


class ForwardedPort(NamedTuple):
    """A port of this machine, 0 for any that is free, and one of a pod."""

    local: int
    remote: int


@command(
    "port-forward TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
    PortForwardOptions,
    examples="""
# Ports 5000 and 6000 of this machine are those of a pod
kubepy port-forward pod/web 5000 6000

# Of a pod of a Deployment
kubepy port-forward deployment/web 8080:80

# Of a pod of a Service: the target port of its port named https
kubepy port-forward service/web 8443:https

# On all addresses, and on any port that is free
kubepy port-forward --address=0.0.0.0 pod/web :80
""",
)
def port_forward(factory: Factory, options: PortForwardOptions) -> None:
    """Forward one or more local ports to a pod.

    What listens in the model answers requests of HTTP/1.1 (docs/kubelet.md). The command ends when it is interrupted, when
    the pod is gone, or when a connection is refused."""  # noqa: E501
    words = options.args
    if len(words) < 2:
        options.usage_error("TYPE/NAME and list of ports are required for port-forward")
    require_containers(factory, "port-forward")
    factory.catch_up()
    resource, obj = named_object(
        factory, options, words[:1], "cannot forward ports of multiple objects at a time"
    )
    pod = attachable_pod(
        factory,
        resource,
        obj,
        options.pod_running_timeout,
    )
    service = obj if resource.key == SERVICES else None
    ports = [_forwarded(word, pod, service) for word in words[1:]]
    phase = status_of(pod).get("phase")
    if phase != "Running":
        raise CliError(f"unable to forward port because pod is not running. Current status={phase}")
    try:
        import h11  # noqa: F401
    except ImportError:
        raise CliError(f"this command needs {installation.missing_extra('serve')}") from None
    with Forwarder(factory, pod) as forwarder:
        forwarder.listen(ports, options.address)
        try:
            forwarder.run()
        except KeyboardInterrupt:
            return


# --- ports ----------------------------------------------------------------------------------------


def _forwarded(word: str, pod: Object, service: Object | None) -> ForwardedPort:
    """Read ``[LOCAL]:REMOTE`` or ``PORT``, by numbers or names. Raises CliError."""
    local, colon, remote = word.partition(":")
    if not colon:
        remote = local
    if not remote:
        raise CliError("remote port cannot be empty")
    number = _number_of(remote, pod, service)
    if colon:
        local_number = _parsed(local or "0", word)
    elif remote.isdigit():
        local_number = _parsed(remote, word)
    else:
        local_number = number
    if service is not None:
        number = _target_port(number, pod, service)
    return ForwardedPort(local_number, number)


def _parsed(text: str, word: str) -> int:
    is_number = text.isascii() and text.isdigit()
    if not is_number or int(text) > MAX_PORT:
        raise CliError(
            f"error parsing local port '{text}': strconv.ParseUint: parsing \"{text}\": "
            "invalid syntax"
        )
    return int(text)


def _number_of(remote: str, pod: Object, service: Object | None) -> int:
    """Return the number of a port of a Service, or of a pod. Raises CliError."""
    if remote.isascii() and remote.isdigit():
        return int(remote)
    if service is not None:
        for port in service["spec"].get("ports") or ():
            if port.get("name") == remote:
                return int(port["port"])
        raise CliError(f"Service '{name_of(service)}' does not have a named port '{remote}'")
    found = _named_container_port(pod, remote)
    if found is None:
        raise CliError(f"Pod '{name_of(pod)}' does not have a named port '{remote}'")
    return found


def _named_container_port(pod: Object, name: str) -> int | None:
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == name:
                return int(port["containerPort"])
    return None


def _target_port(number: int, pod: Object, service: Object) -> int:
    """Return the port of a pod behind a port of its Service. Raises CliError."""
    for port in service["spec"].get("ports") or ():
        if port["port"] != number:
            continue
        target = port.get("targetPort", number)
        if service["spec"].get("clusterIP") == "None" and not isinstance(target, str):
            return int(target or number)
        if isinstance(target, int):
            return target or number
        found = _named_container_port(pod, target)
        if found is None:
            raise CliError(f"Pod '{name_of(pod)}' does not have a named port '{target}'")
        return found
    raise CliError(f"Service {name_of(service)} does not have a service port {number}")


# --- connections ----------------------------------------------------------------------------------


class _Listener(NamedTuple):
    socket: socket.socket
    port: ForwardedPort


class _Connection(NamedTuple):
    socket: socket.socket
    port: ForwardedPort
    stream: portstreams.PortStream


class Forwarder:
    """Listens, and passes on what connections bring; all in this thread."""

    def __init__(self, factory: Factory, pod: Object) -> None:
        self._factory = factory
        self._pod = pod
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *error: object) -> None:
        for key in list(self._selector.get_map().values()):
            key.data.socket.close()
        self._selector.close()

    def listen(self, ports: Sequence[ForwardedPort], addresses: Sequence[str]) -> None:
        """Listen on all ports, and say so. Raises CliError if none of them can be had."""
        has_any = False
        for port in ports:
            problems = self._listen_on(port, addresses)
            if problems:
                self._factory.say(
                    f"Unable to listen on port {port.local}: Listeners failed to create with the "
                    f"following errors: [{' '.join(problems)}]"
                )
            else:
                has_any = True
        self._factory.stdout.flush()
        if not has_any:
            texts = []
            for port in ports:
                texts.append(f"{{{port.local} {port.remote}}}")
            listed = " ".join(texts)
            raise CliError(f"unable to listen on any of the requested ports: [{listed}]")

    def _listen_on(self, port: ForwardedPort, addresses: Sequence[str]) -> list[str]:
        """Listen on a port of some addresses; return what was in the way."""
        problems: list[str] = []
        for address in addresses:
            if address != LOCALHOST:
                _, problem = self._bind(port, address)
                problems += problem
                continue
            bound = port
            local_problems: list[str] = []
            for loopback in LOOPBACK:
                bound, problem = self._bind(bound, loopback)
                local_problems += problem
            if len(local_problems) == len(LOOPBACK):
                problems += local_problems
        return problems

    def _bind(self, port: ForwardedPort, address: str) -> tuple[ForwardedPort, list[str]]:
        """Listen on one address; return the port with its number there."""
        family = socket.AF_INET
        kind = "tcp4"
        shown = address
        if ":" in address:
            family = socket.AF_INET6
            kind = "tcp6"
            shown = f"[{address}]"
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address, port.local))
            listener.listen()
        except OSError as error:
            listener.close()
            reason = (error.strerror or str(error)).lower()
            if error.errno == errno.EADDRINUSE:
                reason = "bind: address already in use"
            text = f"listen {kind} {shown}:{port.local}: {reason}"
            return port, [f"unable to create listener: Error {text}"]
        bound = ForwardedPort(listener.getsockname()[1], port.remote)
        self._factory.print(f"Forwarding from {shown}:{bound.local} -> {bound.remote}")
        self._selector.register(listener, selectors.EVENT_READ, _Listener(listener, bound))
        return bound, []

    def run(self) -> None:
        """Pass on connections until the pod is gone. Raises CliError."""
        while True:
            for key, _ in self._selector.select(LOOK_AGAIN):
                if isinstance(key.data, _Listener):
                    self._accept(key.data)
                else:
                    self._pass_on(key.data)
            self._present_pod()

    def _present_pod(self) -> Pod:
        """Return the pod as it is. Raises CliError for one that is gone or has ended."""
        client = self._factory.client
        name = name_of(self._pod)
        namespace = namespace_of(self._pod)
        try:
            pod = client.get(PODS, name, namespace=namespace)
        except NotFound:
            raise CliError(LOST) from None
        if uid_of(pod) != uid_of(self._pod):
            raise CliError(LOST)
        if status_of(pod).get("phase") != "Running":
            raise CliError(LOST)
        return cast("Pod", pod)

    def _accept(self, listener: _Listener) -> None:
        accepted, _ = listener.socket.accept()
        connection = _Connection(accepted, listener.port, portstreams.PortStream())
        self._factory.print(f"Handling connection for {listener.port.local}")
        self._factory.stdout.flush()
        self._factory.driver.react()
        self._selector.register(accepted, selectors.EVENT_READ, connection)
        try:
            inside.connect_to_pod(self._factory.client, self._present_pod(), listener.port.remote)
        except inside.CannotConnect as error:
            self._fail(connection, error)

    def _pass_on(self, connection: _Connection) -> None:
        """Let the pod take what a client has sent, and send its answer."""

        def exchange(request: inside.PodRequest) -> inside.PodReply:
            self._factory.driver.react()
            return inside.http_to_pod(
                self._factory.client, self._present_pod(), connection.port.remote, request
            )

        try:
            data = connection.socket.recv(PIECE)
            answer = connection.stream.receive(data, exchange)
            connection.socket.sendall(answer)
        except OSError:  # the client has gone
            data = b""
        except inside.CannotConnect as error:
            self._fail(connection, error)
        if not data or connection.stream.is_closed:
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _fail(self, connection: _Connection, error: Exception) -> None:
        """End the command as kubectl does, whose tunnel a failed connection closes. Raises
        CliError."""
        local, remote = connection.port
        clock = self._factory.cluster.clock
        head = klog.header("E", clock, PLACE)
        self._factory.say(
            f'{head} "Unhandled Error" err="an error occurred forwarding {local} -> {remote}: '
            f'error forwarding port {remote} to pod {uid_of(self._pod)}, uid : {error}"'
        )
        raise CliError(LOST)
