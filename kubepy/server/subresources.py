"""Subresources that are more than a view of their object: logs, bindings, evictions, and those that
reach a node.

``status``, ``scale`` and the others that show a part of an object are served by ``handlers``. Where
containers are not modelled, what would reach one (exec, attach, port-forward, proxies) is refused
as by a cluster whose nodes cannot be reached. Upstream: ``pkg/registry/core/{pod,node,service}``,
``apiserver/pkg/endpoints/handlers/rest.go`` (ConnectResource).
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from kubepy.api import errors
from kubepy.api.clock import ZERO_TIME, parse_time
from kubepy.api.meta import Object, uid_of
from kubepy.api.scheme import Resource
from kubepy.api.types.special import DecodeError, decode_time
from kubepy.apiserver.requests.pods import BINDING, EVICTION
from kubepy.kubelet import inside, sessions
from kubepy.kubelet.logs import (
    ContainerLog,
    LogFollower,
    LogOptions,
    choose_container,
    goes_on,
    read_log,
    validate_log_options,
)
from kubepy.quoting import quote
from kubepy.server import (
    authentication,
    nodeproxy,
    parameters,
    portforward,
    remotecommand,
    requestbody,
)
from kubepy.server.handlers import ServedRequest
from kubepy.server.messages import (
    Answer,
    Handler,
    HandlerContext,
    HttpRequest,
    RequestInfo,
    Response,
    StreamResponse,
)
from kubepy.server.websockets import WEBSOCKET

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application

NO_CONTAINERS = "no containers run here: pods are simulated"
NO_PODS = "no pod is behind it"
MAX_PORT = 0xFFFF
HTTP_PORT = 80
ONLY_WEBSOCKETS = "SPDY is not spoken here: kubectl 1.31 and newer connect with WebSockets"
LOOK_AGAIN = 0.5  # seconds between two looks at a container whose log is followed
BINDINGS, PODS, NODES, SERVICES = "bindings", "pods", "nodes", "services"


def find_handler(info: RequestInfo) -> Handler | None:
    """Return the handler of a request for a subresource of this module, or for ``bindings``; None
    for others.

    Raises NotFound for a path that is none, MethodNotAllowed for a verb that the subresource does
    not have.
    """
    if info.api_group or (not info.subresource and info.resource != BINDINGS):
        return None
    verbs, handler = _HANDLERS.get((info.resource, info.subresource), ((), None))
    if (info.subresource_path and info.subresource != "proxy") or (
        info.resource == BINDINGS and (info.name or not info.namespace)
    ):
        raise errors.no_such_resource()
    if handler is not None and info.verb not in verbs:
        raise errors.method_not_allowed()
    return handler


# --- bindings and evictions -----------------------------------------------------------------------


def _create(context: HandlerContext, body_kind: Resource) -> Response:
    """Create a Binding or an Eviction; the answer is a Status."""
    endpoint = ServedRequest.of(context)
    options = parameters.create_options(context.request)
    body = requestbody.read_object(context.request, body_kind)
    return endpoint.respond(endpoint.do(body.object, options._replace(strict=body.strict)), 201)


def bind(context: HandlerContext) -> Response:
    """Assign a pod to a node."""
    return _create(context, BINDING)


def evict(context: HandlerContext) -> Response:
    """Delete a pod if its PodDisruptionBudget allows it.

    Where several budgets cover it, the answer is 201 with a Status that says 500: upstream's
    handler does so.
    """
    version = "v1beta1" if b"policy/v1beta1" in context.request.body else EVICTION.version
    try:
        return _create(context, EVICTION.at(version))
    except errors.Status as error:
        if error.reason:
            raise
        return ServedRequest.of(context).respond(error.as_object(), 201)


# --- logs -----------------------------------------------------------------------------------------


def log_options(request: HttpRequest) -> LogOptions:
    """Return the options of a log in a query. Raises BadRequest."""
    return LogOptions(
        request.parameter("container"),
        bool(parameters.flag(request, "follow")),
        bool(parameters.flag(request, "previous")),
        parameters.integer(request, "sinceSeconds"),
        _time(request, "sinceTime"),
        bool(parameters.flag(request, "timestamps")),
        parameters.integer(request, "tailLines"),
        parameters.integer(request, "limitBytes"),
        request.query["stream"][0] if "stream" in request.query else None,
    )


def _time(request: HttpRequest, name: str) -> datetime | None:
    text = request.parameter(name)
    if text in ("", "null"):
        return None
    try:
        moment = decode_time(text)
    except DecodeError as error:
        raise errors.BadRequest(str(error)) from None
    return parse_time(moment) if moment else ZERO_TIME


def log(context: HandlerContext) -> Response | StreamResponse:
    """Answer with the log of a container, or follow it until the container has ended. To a request
    for a WebSocket the answer is a stream in any case."""
    options = log_options(context.request)
    validate_log_options(context.info.name, options)
    present = _read_log(context.cluster, context.info, options)
    if present is None:
        return Response(204, b"", "")
    application = context.application
    if application is None:  # ``get --raw``
        return Response(200, present.data, "text/plain")
    if options.follow:
        pieces = _follow(application, context.info, options, present)
    elif context.request.header("upgrade") == WEBSOCKET:
        pieces = _once(present.data)
    else:
        return Response(200, present.data, "text/plain")
    return StreamResponse(200, pieces, application.stopping, "text/plain")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _read_log(cluster: LocalCluster, info: RequestInfo, options: LogOptions) -> ContainerLog | None:
    client = cluster.client
    pod = cast("Pod", client.get(PODS, info.name, namespace=info.namespace))
    return read_log(
        pod,
        options,
        lambda name: cast("Node | None", _find(cluster, NODES, name)),
        cluster.clock.now(),
        inside.log_reader(client, pod),
    )


def _find(cluster: LocalCluster, resource: str, name: str, namespace: str = "") -> Object | None:
    try:
        return cluster.client.get(resource, name, namespace=namespace)
    except errors.NotFound:
        return None


async def _follow(
    application: Application, info: RequestInfo, options: LogOptions, log: ContainerLog
) -> AsyncIterator[bytes]:
    """Yield what a container has printed, then what it prints. End with the container, or with the
    server."""
    follower = LogFollower(log, options)

    def read(cluster: LocalCluster) -> tuple[bytes, bool]:
        client = cluster.client
        pod = cast("Pod | None", _find(cluster, PODS, info.name, info.namespace))
        has_more = goes_on(log, lambda: _read_log(cluster, info, options))
        if pod is None or uid_of(pod) != log.run.partition("/")[0]:
            return b"", False
        container = choose_container(pod, options.container)
        lines = inside.log_reader(client, pod)(container, log.number)
        return follower.take(lines), has_more

    yield log.data
    is_open = log.is_open
    while is_open and not follower.has_all and not application.stopping.is_set():
        await asyncio.sleep(LOOK_AGAIN)
        data, is_open = await application.backend.read(read)
        if data:
            yield data


# --- what would reach a node ----------------------------------------------------------------------


def _refuse_dry_run(context: HandlerContext) -> None:
    if context.request.parameter("dryRun"):
        raise errors.BadRequest("dryRun is not supported")


def connect(context: HandlerContext) -> Answer:
    """Connect with a container: exec, attach, port-forward. Raises Status."""
    info = context.info
    _refuse_dry_run(context)
    if info.subresource == "portforward":
        _check_ports(context.request)
    _require_creation(context)
    pod = cast("Pod", context.client.get(PODS, info.name, namespace=info.namespace))
    container = ""
    if info.subresource != "portforward":
        container = choose_container(pod, context.request.parameter("container"))
    if not (node_name := pod["spec"].get("nodeName")):
        raise errors.BadRequest(f"pod {info.name} does not have a host assigned")
    if _find(context.cluster, NODES, node_name) is None:
        raise errors.not_found(PODS, node_name)  # as for logs
    if "upgrade" not in context.request.header("connection").lower():
        raise errors.BadRequest("Upgrade request required")
    is_websocket = context.request.header("upgrade").lower() == "websocket"
    if not inside.runs_containers(context.client):
        raise errors.Status(f"error dialing backend: {NO_CONTAINERS}")
    if not is_websocket:
        raise errors.Status(f"error dialing backend: {ONLY_WEBSOCKETS}")
    application = context.application
    assert application is not None  # a command asks for no upgrade
    if info.subresource == "portforward":
        return portforward.upgrade(application, pod, _ports(context.request))
    return _session(context, application, pod, container)


def _require_creation(context: HandlerContext) -> None:
    """Check that the user may create the subresource, also where a WebSocket asks for it with GET
    (``ensureAuthorizedForVerb``). Raises Forbidden."""
    user = context.client.context.user
    attributes = authentication.attributes_of(context.info, user)._replace(verb="create")
    decision = context.client.authorizer.authorize(attributes)
    if not decision.allowed:
        raise attributes.forbidden(decision.reason)


def _session(context: HandlerContext, application: Application, pod: Pod, container: str) -> Answer:
    """Return the answer to exec or attach. Raises BadRequest."""
    request = context.request
    streams = remotecommand.CommandStreams(
        tuple(request.query.get("command", ())),
        bool(parameters.flag(request, "stdin")),
        bool(parameters.flag(request, "stdout")),
        bool(parameters.flag(request, "stderr")),
        bool(parameters.flag(request, "tty")),
    )
    if not (streams.stdin or streams.stdout or streams.stderr):
        raise errors.BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    if context.info.subresource == "attach":
        return remotecommand.upgrade(
            application,
            streams._replace(command=()),
            lambda client: sessions.attach_to(client, pod, container, stdin=streams.stdin),
        )
    if not streams.command:
        raise errors.BadRequest("you must specify at least one command for the container")
    return remotecommand.upgrade(
        application,
        streams,
        lambda client: sessions.exec_in(
            client, pod, container, streams.command, stdin=streams.stdin, tty=streams.tty
        ),
    )


def _ports(request: HttpRequest) -> list[int]:
    """Return the ports of a query, which libraries name there."""
    ports = []
    for value in request.query.get("ports", ()):
        for text in value.split(","):
            ports.append(int(text))
    return ports


def _check_ports(request: HttpRequest) -> None:
    """Check that ports are numbers. Raises BadRequest."""
    for text in (text for value in request.query.get("ports", ()) for text in value.split(",")):
        is_number = text.isascii() and text.isdigit()
        if not is_number or int(text) > MAX_PORT:
            raise errors.BadRequest(
                f"cannot convert to []int32: strconv.ParseUint: parsing {quote(text)}: "
                f"{'value out of range' if is_number else 'invalid syntax'}"
            )


def split_scheme_name_port(text: str) -> tuple[str, str, str] | None:
    """Return the parts of ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT``; None for anything
    else."""
    parts = text.split(":")
    scheme, name, port = (*([""] if len(parts) < 3 else []), *parts, "", "")[:3]
    return (
        (scheme, name, port)
        if name and len(parts) <= 3 and scheme in ("", "http", "https")
        else None
    )


def proxy(context: HandlerContext) -> Response:
    """Pass a request on to a container of a pod, or of a pod behind a Service, or to the kubelet of
    a node, where containers are modelled. Raises Status for what cannot be reached."""
    _refuse_dry_run(context)
    info, client = context.info, context.client
    target = split_scheme_name_port(info.name)
    if target is None:
        raise errors.BadRequest(
            f"invalid {info.resource.removesuffix('s')} request {quote(info.name)}"
        )

    _, name, port = target
    obj: Object = {}
    if info.resource == SERVICES:
        _check_endpoints(context, name, port)
    else:
        obj = client.get(info.resource, name, namespace=info.namespace)
        if info.resource == PODS and not _is_global_unicast(
            (obj.get("status") or {}).get("podIP") or ""
        ):
            raise errors.BadRequest("address not allowed")

    if not inside.runs_containers(client):
        raise errors.ServiceUnavailable(f"error trying to reach service: {NO_CONTAINERS}")
    if info.resource == NODES:
        return nodeproxy.answer(context, obj)
    if info.resource == SERVICES:
        pod_name, number = _backend(context, name, port)
    else:
        pod_name, number = name, _pod_port(context, name, port)
    return _pass_on(context, pod_name, number)


def _pod_port(context: HandlerContext, name: str, port: str) -> int:
    """Return the port that a request for a pod means: without one, the first that it names."""
    if port.isdecimal():
        return int(port)
    pod = context.client.get(PODS, name, namespace=context.info.namespace)
    for container in pod["spec"]["containers"]:
        for entry in container.get("ports") or ():
            return int(entry["containerPort"])
    return HTTP_PORT


def _backend(context: HandlerContext, name: str, port: str) -> tuple[str, int]:
    """Return the pod behind a Service that a request goes to, and its port. Raises
    ServiceUnavailable where no pod is behind it."""
    namespace = context.info.namespace
    if port.isdecimal():
        service = context.client.get(SERVICES, name, namespace=namespace)
        ports = (service.get("spec") or {}).get("ports") or ()
        port = next(entry.get("name", "") for entry in ports if entry.get("port") == int(port))
    endpoints = _find(context.cluster, "endpoints", name, namespace) or {}
    for subset in endpoints.get("subsets") or ():
        numbers = [entry["port"] for entry in subset["ports"] if entry.get("name", "") == port]
        for address in subset.get("addresses") or ():
            target = address.get("targetRef") or {}
            if numbers and target.get("kind") == "Pod":
                return target["name"], numbers[0]
    raise errors.ServiceUnavailable(f"error trying to reach service: {NO_PODS}")


def _pass_on(context: HandlerContext, name: str, port: int) -> Response:
    """Return the answer of a pod. Raises ServiceUnavailable where it does not listen."""
    request = context.request
    pod = cast("Pod", context.client.get(PODS, name, namespace=context.info.namespace))
    query = urlencode(request.query, doseq=True)
    target = f"/{context.info.subresource_path}"
    if query:
        target = f"{target}?{query}"
    question = inside.PodRequest(request.method, target, request.headers, request.body)
    try:
        answer = inside.http_to_pod(context.client, pod, port, question)
    except inside.CannotConnect as error:
        address = (pod.get("status") or {}).get("podIP") or ""
        raise errors.ServiceUnavailable(
            f"error trying to reach service: dial tcp {address}:{port}: connect: {error}"
        ) from None
    headers = {key.lower(): value for key, value in answer.headers.items()}
    media_type = headers.pop("content-type", "")
    headers.pop("content-length", None)
    headers.pop("connection", None)
    return Response(answer.status, answer.body, media_type, tuple(headers.items()))


def _is_global_unicast(address: str) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local)


def _check_endpoints(context: HandlerContext, name: str, port: str) -> None:
    """Check that a Service has an endpoint with this port, which a number stands for too. Raises
    NotFound, ServiceUnavailable."""
    client, namespace = context.client, context.info.namespace
    if port.isdecimal():
        service = client.get(SERVICES, name, namespace=namespace)
        ports = (service.get("spec") or {}).get("ports") or ()
        named: Any = next(
            (entry.get("name", "") for entry in ports if entry.get("port") == int(port)), None
        )
        if named is None:
            raise errors.ServiceUnavailable(
                f"no service port {int(port)} found for service {quote(name)}"
            )
        port = named

    endpoints = _find(context.cluster, "endpoints", name, namespace)
    if endpoints is None:
        raise errors.not_found(SERVICES, name)  # as for logs
    subsets: list[Object] = endpoints.get("subsets") or []
    if not any(
        subset.get("addresses")
        and any(entry.get("name", "") == port for entry in subset.get("ports") or ())
        for subset in subsets
    ):
        raise errors.ServiceUnavailable(
            f"no endpoints available for service {quote(context.info.name if subsets else name)}"
        )


_STREAMING, _PROXIED = ("create", "get"), ("", "create", "delete", "get", "patch", "update")
_HANDLERS: dict[tuple[str, str], tuple[tuple[str, ...], Handler]] = {
    (BINDINGS, ""): (("create",), bind),
    (PODS, "binding"): (("create",), bind),
    (PODS, "eviction"): (("create",), evict),
    (PODS, "log"): (("get",), log),
    **{(PODS, name): (_STREAMING, connect) for name in ("attach", "exec", "portforward")},
    **{(resource, "proxy"): (_PROXIED, proxy) for resource in (NODES, PODS, SERVICES)},
}
