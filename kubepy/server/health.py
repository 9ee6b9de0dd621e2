"""The paths of a server about itself: version, health checks, metrics, the list of its paths.

Upstream: ``apiserver/pkg/server/healthz``, ``pkg/server/routes``, ``pkg/routes/openidmetadata.go``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from kubepy import KUBERNETES_VERSION, system
from kubepy.api.errors import method_not_allowed, no_such_resource
from kubepy.api.values.goformat import quote, to_json
from kubepy.lazy import lazy_imports
from kubepy.server import negotiation
from kubepy.server.discovery import served_groups
from kubepy.server.messages import (
    JSON,
    TEXT,
    Handler,
    HandlerContext,
    HttpRequest,
    RequestInfo,
    Response,
)
from kubepy.server.requestinfo import path_not_found
from kubepy.storage import Key, StorageError

with lazy_imports():
    from kubepy.apiserver import tokens

Check = Callable[
    [HandlerContext | None], str
]  # returns what is wrong, "" if nothing is; None: the cluster cannot be opened

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # Go's names of machines
LEAST_ROOM = (
    256 * 1024
)  # bytes on a disk below which writes fail: of the index, and of the files of a commit
NO_SNIFFING = (("X-Content-Type-Options", "nosniff"),)
KEYS_TYPE = "application/jwk-set+json"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
OWN_PATHS = (
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/version",
)


def find_handler(info: RequestInfo) -> Handler:
    """Return the handler of a path of the server itself."""
    return serve


def serve(context: HandlerContext) -> Response:
    """Answer a path that is neither a resource nor discovery. Raises MethodNotAllowed."""
    match context.info.parts:
        case _ if context.info.path in ("/", "/index.html"):
            return json_response({"paths": paths(context)})
        case ("version",):
            _require_route(context, JSON)
            return json_response(version_info(of_server=True))
        case ("version", *_):
            raise no_such_resource()
        case _ if is_check(context.info):
            return check(context.request, context.info, context)
        case ("metrics",):
            return Response(200, metrics(context).encode(), METRICS_TYPE)
        case (".well-known", "openid-configuration") if context.client.tokens.key is not None:
            _require_route(context, JSON)
            host = f"{context.request.header('host')}{context.prefix}"
            address = f"https://{host}/openid/v1/jwks"
            issued = context.client.tokens
            configuration = tokens.openid_configuration(
                issued.issuers[0], address, issued.public_keys()
            )
            return _keys(configuration, JSON)
        case ("openid", "v1", "jwks") if context.client.tokens.key is not None:
            _require_route(context, KEYS_TYPE)
            keys = [key.web_key() for key in context.client.tokens.public_keys()]
            return _keys({"keys": keys}, KEYS_TYPE)

    raise path_not_found()


def _require_route(context: HandlerContext, media_type: str) -> None:
    """Check what go-restful checks of a route. Raises MethodNotAllowed, NotAcceptable."""
    if context.info.verb != "get":
        raise method_not_allowed()
    negotiation.require_acceptable(context.request, (media_type,))


def json_response(value: object) -> Response:
    """Return an answer that is no API object: indented, whatever the client accepts
    (``WriteRawJSON``)."""
    return Response(200, to_json(value, indent=2, sort_keys=False).encode())


def _keys(document: object, media_type: str) -> Response:
    """Return what others need to check the tokens of ServiceAccounts."""
    return Response(
        200,
        to_json(document, sort_keys=False).encode(),
        media_type,
        (("Cache-Control", "public, max-age=3600"),),
    )


def version_info(*, of_server: bool = False) -> dict[str, str]:
    """Return the version as kubectl and a server print it (``version.Info``).

    The details of a build are empty, as upstream leaves them where nothing is known: no Go program
    was built.
    """
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    compatible = {
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
    }
    name, processor = system.machine()
    platform = f"{name.lower()}/{ARCHITECTURES.get(processor, processor.lower())}"
    return {
        "major": major,
        "minor": minor,
        **(compatible if of_server else {}),
        "gitVersion": KUBERNETES_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": platform,
    }


def paths(context: HandlerContext) -> list[str]:
    """Return the paths of the server, sorted."""
    groups = {
        name: versions for name, versions in served_groups(context.cluster.scheme).items() if name
    }
    return sorted(
        {
            *OWN_PATHS,
            *(f"/apis/{name}" for name in groups),
            *(
                f"/apis/{name}/{version}"
                for name, versions in groups.items()
                for version in versions
            ),
            *(f"/{endpoint}" for endpoint in CHECKS),
            *(f"/{endpoint}/{check}" for endpoint, checks in CHECKS.items() for check in checks),
        }
    )


# --- health ---------------------------------------------------------------------------------------


def is_check(info: RequestInfo) -> bool:
    """Tell whether a path is one of health checks."""
    endpoint, *names = info.parts or ("",)
    return (
        endpoint in CHECKS
        and not info.path.endswith("/")
        and (not names or "/".join(names) in CHECKS[endpoint])
    )


def check(
    request: HttpRequest, info: RequestInfo, context: HandlerContext | None = None
) -> Response:
    """Answer a path of health checks. ``context`` is None if the cluster cannot be opened."""
    endpoint, *names = info.parts
    name = "/".join(names)
    return (
        _named_check(CHECKS[endpoint][name], context)
        if name
        else _health(request, endpoint, context)
    )


def _health(request: HttpRequest, endpoint: str, context: HandlerContext | None) -> Response:
    """Run the checks of ``/healthz``, ``/livez`` or ``/readyz``, except those excluded
    (``handleRootHealth``)."""
    excluded, lines, failed = request.query.get("exclude", []), [], False
    for name, run in CHECKS[endpoint].items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif run(context):
            lines.append(f"[-]{name} failed: reason withheld")
            failed = True
        else:
            lines.append(f"[+]{name} ok")

    if unknown := sorted(set(excluded) - set(CHECKS[endpoint])):
        lines.append(
            f"warn: some health checks cannot be excluded: no matches for "
            f"{','.join(map(quote, unknown))}"
        )

    text = "".join(f"{line}\n" for line in lines)
    if failed:
        return Response(500, f"{text}{endpoint} check failed\n".encode(), TEXT, NO_SNIFFING)
    if "verbose" in request.query:
        return Response(200, f"{text}{endpoint} check passed\n".encode(), TEXT, NO_SNIFFING)
    return Response(200, b"ok", TEXT, NO_SNIFFING)


def _named_check(run: Check, context: HandlerContext | None) -> Response:
    if problem := run(context):
        return Response(500, f"internal server error: {problem}\n".encode(), TEXT, NO_SNIFFING)
    return Response(200, b"ok", TEXT)


def _succeed(context: HandlerContext | None) -> str:
    """Check what holds as soon as a server answers at all."""
    return ""


def _check_storage(context: HandlerContext | None) -> str:
    """Check that the folder of the cluster can be read."""
    if context is None:
        return "the folder of the cluster cannot be read"
    store = context.cluster.store
    try:
        store.settings()
        if folder := context.cluster.folder:
            os.scandir(folder).close()
        store.get(Key("namespaces", "", "default"))
    except (StorageError, OSError) as error:
        return str(error)
    return ""


def _check_room(context: HandlerContext | None) -> str:
    """Check that the cluster can be read, and that its disk has room for a write."""
    if problem := _check_storage(context):
        return problem
    folder = context.cluster.folder if context is not None else ""
    if not folder:
        return ""
    if system.free_bytes(folder) < LEAST_ROOM:
        return f"no space left on the disk of {folder}"
    return ""


def _check_shutdown(context: HandlerContext | None) -> str:
    """Check that the server has not been asked to end."""
    application = context.application if context else None
    return (
        "process is shutting down"
        if application is not None and application.stopping.is_set()
        else ""
    )


_ALWAYS = {"ping": _succeed, "log": _succeed, "etcd": _check_storage}
_READY = {"etcd-readiness": _check_room, "informer-sync": _succeed}
_STARTED = dict.fromkeys(
    (
        "poststarthook/start-apiextensions-controllers",
        "poststarthook/crd-informer-synced",
        "poststarthook/start-system-namespaces-controller",
        "poststarthook/rbac/bootstrap-roles",
        "poststarthook/scheduling/bootstrap-system-priority-classes",
        "poststarthook/bootstrap-controller",
        "poststarthook/apiservice-registration-controller",
        "poststarthook/apiservice-discovery-controller",
        "autoregister-completion",
        "poststarthook/apiservice-openapi-controller",
        "poststarthook/apiservice-openapiv3-controller",
    ),
    _succeed,
)
# The checks of each endpoint in their order, by the names of upstream's; hooks have run before a
# server answers.
CHECKS: dict[str, dict[str, Check]] = {
    "healthz": {**_ALWAYS, **_STARTED},
    "livez": {**_ALWAYS, **_STARTED},
    "readyz": {**_ALWAYS, **_READY, **_STARTED, "shutdown": _check_shutdown},
}


# --- metrics --------------------------------------------------------------------------------------


LABELS = ("code", "dry_run", "group", "resource", "scope", "subresource", "verb", "version")
MAX_LABELLED = 2000  # combinations of labels: clients choose what they ask for
_VERBS = {"create": "POST", "update": "PUT"}


def count_request(
    requests: Counter[tuple[str, ...]], request: HttpRequest, info: RequestInfo, status: int
) -> None:
    """Count a request under the labels of ``apiserver_request_total``."""
    if info.is_resource_request:
        scope = "namespace" if info.namespace else "cluster"
        if info.name:
            scope = "resource"
        labels = (
            str(status),
            request.parameter("dryRun"),
            info.api_group,
            info.resource,
            scope,
            info.subresource,
            _VERBS.get(info.verb, info.verb.upper()),
            info.api_version,
        )
    else:
        labels = (
            str(status),
            "",
            "",
            "",
            "",
            f"/{info.parts[0] if info.parts else ''}",
            request.method,
            "",
        )

    if labels not in requests and len(requests) >= MAX_LABELLED:
        labels = (str(status), "", "", "", "", "", request.method, "")
    requests[labels] += 1


def metrics(context: HandlerContext) -> str:
    """Return the metrics of the server as Prometheus reads them."""
    versions = version_info()
    build = {
        name: versions[field]
        for name, field in (
            ("git_version", "gitVersion"),
            ("major", "major"),
            ("minor", "minor"),
            ("platform", "platform"),
        )
    }
    store = context.cluster.store
    counts = [
        (
            _labels({"group": name.partition(".")[2], "resource": name.partition(".")[0]}),
            len(store.list(name).objects),
        )
        for name in context.cluster.resources()
    ]
    requests = context.application.requests.copy() if context.application is not None else {}
    answered = [
        (_labels(dict(zip(LABELS, labels, strict=True))), count)
        for labels, count in sorted(requests.items())
    ]
    return "".join(
        (
            _metric("apiserver_request_total", "counter", "Requests that were answered.", answered),
            _metric("apiserver_resource_objects", "gauge", "Stored objects.", counts),
            _metric(
                "kubernetes_build_info",
                "gauge",
                "The version of the server.",
                [(_labels(build), 1)],
            ),
            _metric(
                "process_cpu_seconds_total",
                "counter",
                "Processor time in seconds.",
                [("", round(time.process_time(), 2))],
            ),
        )
    )


def _labels(values: Mapping[str, str]) -> str:
    return f"{{{','.join(f'{name}={to_json(value)}' for name, value in values.items())}}}"


def _metric(name: str, kind: str, help_: str, samples: Iterable[tuple[str, float]]) -> str:
    lines = [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
    return "".join(
        f"{line}\n" for line in (*lines, *(f"{name}{labels} {value}" for labels, value in samples))
    )
