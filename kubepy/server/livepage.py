"""The page of a cluster's timeline at ``/``, and the stream of JSON that feeds it. No API server has either.

The page is the same for everybody and has no data in it; its script fetches ``/timeline`` with a token. Everybody sees
there the steps of the objects that they may list. Each line of the stream is all that the page shows; the next one
comes when there are new steps, an empty one in between so that both sides notice when the other has gone.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.authorization import AttributesRecord
from kubepy.insight import Timeline
from kubepy.lazy import lazy_imports
from kubepy.server import authentication
from kubepy.server.messages import HttpRequest, RequestInfo, Response, StreamResponse
from kubepy.storage import StorageError

with lazy_imports():
    from kubepy.insight import timeline as timelines
    from kubepy.insight.picture import html

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application

TIMELINE = "/timeline"
LOOK_SECONDS = 0.1  # how often the revision is compared
REST = 1  # after a document, so many times as long as it took passes before the next
ALIVE_SECONDS = 5.0  # between empty lines
MayList = Callable[[str, str], bool]


def is_page(request: HttpRequest) -> bool:
    """Tell whether a browser asks for the page; other clients get the list of paths."""
    media_types = [part.partition(";")[0].strip() for part in request.header("accept").split(",")]
    return request.path == "/" and request.method in ("GET", "HEAD") and "text/html" in media_types


@cache
def page() -> Response:
    """Return the page, which may do nothing but ask this server."""
    text = html.live_page()
    script, style = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
                     for part in (html.live_script(), html.page_style(0)))
    policy = (f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; "
              "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    return Response(200, text.encode(), "text/html; charset=utf-8", (
        ("Content-Security-Policy", policy), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
        ("Vary", "Accept")))


async def timeline(application: Application, request: HttpRequest, info: RequestInfo) -> Response | StreamResponse:
    """Answer a request for what the page shows: one document, or with ``?watch=1`` one whenever there are new steps.

    Raises Unauthorized, Forbidden, BadRequest, MethodNotAllowed.
    """
    if info.verb != "get":
        raise errors.method_not_allowed()

    def read(cluster: LocalCluster, before: Timeline | None = None) -> tuple[Timeline, bytes]:
        """Return the timeline and its document, b"" where nothing has happened since."""
        shown = timeline_for(application, request, info, cluster)
        if before is not None and (shown.steps, shown.courses) == (before.steps, before.courses):
            return shown, b""
        return shown, json.dumps(html.live_document(shown), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    revision = application.watch_cache.revision
    shown, document = await application.read(read)
    if request.parameter("watch") not in ("1", "true"):
        return Response(200, document)

    async def follow() -> AsyncIterator[bytes]:
        """Yield a document whenever there are new steps, until the requester may not see them any more."""
        loop, before, seen, rest = asyncio.get_running_loop(), shown, revision, 0.0
        yield document
        sent = loop.time()
        while True:
            await asyncio.sleep(LOOK_SECONDS + rest)
            began, rest, new = loop.time(), 0.0, b""
            if (now := application.watch_cache.revision) != seen:
                seen = now
                try:
                    before, new = await application.read(partial(read, before=before))
                except (errors.Status, StorageError):
                    return  # the next request gets it as its answer
                rest = REST * (loop.time() - began)
            if new or began - sent > ALIVE_SECONDS:
                sent = began
                yield new or b"\n"

    return StreamResponse(200, follow())


def timeline_for(application: Application, request: HttpRequest, info: RequestInfo, cluster: LocalCluster) -> Timeline:
    """Return what a requester may see. Raises Unauthorized, Forbidden, BadRequest."""
    user = authentication.identify(request, info, application, cluster)
    since = None
    if text := request.parameter("since"):
        try:
            since = timelines.start_of(text, cluster.clock.now())
        except ValueError as error:
            raise errors.BadRequest(str(error)) from None
    rights = listing_rights(cluster, user)
    shown = visible(timelines.read_timeline(cluster, since), rights)
    if since is None:  # the first step may be another one than that of the whole
        shown = shown._replace(since=shown.steps[0].at if shown.steps else shown.until)
    return shown


def listing_rights(cluster: LocalCluster, user: Object) -> MayList:
    """Return a function that tells whether a user may list a resource in a namespace, "" for all of them.

    Raises Forbidden for a user who may list pods nowhere, as the list of pods would.
    """
    def attributes(resource: str, namespace: str) -> AttributesRecord:
        name, _, group = resource.partition(".")
        return AttributesRecord(user, "list", group, name, "", namespace, "")

    @cache
    def may_list(resource: str, namespace: str) -> bool:
        return cluster.client.authorizer.authorize(attributes(resource, namespace)).allowed

    namespaces = (item["metadata"]["name"] for item in cluster.store.list("namespaces").objects)
    if not may_list("pods", "") and not any(may_list("pods", namespace) for namespace in namespaces):
        refused = attributes("pods", "")
        raise refused.forbidden(cluster.client.authorizer.authorize(refused).reason)
    return lambda resource, namespace: may_list(resource, "") or may_list(resource, namespace)


def visible(whole: Timeline, may_list: MayList) -> Timeline:
    """Return the part of a timeline that is about objects that somebody may list."""
    kept = [number for number, step in enumerate(whole.steps) if may_list(step.key.resource, step.key.namespace)]
    courses = []
    for course in whole.courses:
        namespace = course.key.namespace
        if not may_list(course.key.resource, namespace) or not may_list("pods", namespace):
            continue
        shows_budgets = may_list("poddisruptionbudgets.policy", namespace)
        numbers = {bisect_right(kept, after - 1): entry for after, entry in course.numbers}
        bounds = {bisect_right(kept, after - 1): entry if shows_budgets else entry._replace(budget="")
                  for after, entry in course.bounds}
        courses.append(course._replace(numbers=tuple(numbers.items()), bounds=tuple(bounds.items())))
    return whole._replace(steps=tuple(whole.steps[number] for number in kept), courses=tuple(courses),
                          present=tuple(pod for pod in whole.present if may_list("pods", pod.key.namespace)))
