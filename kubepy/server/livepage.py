"""The page of a cluster's timeline at ``/``, and the stream of JSON that feeds it. No API server
has either.

The page is the same for everybody and has no data in it; its script fetches ``/timeline`` with a
token. Everybody sees there the steps of the objects that they may list. Each line of the stream is
all that the page shows; the next one comes when there are new steps, an empty one in between so
that both sides notice when the other has gone.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import zlib
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.authorization import AttributesRecord
from kubepy.insight import Timeline
from kubepy.lazy import lazy_imports
from kubepy.server import authentication
from kubepy.server.messages import GZIP_HEADERS, HttpRequest, RequestInfo, Response, StreamResponse
from kubepy.storage import StorageError

with lazy_imports():
    from kubepy.insight import revisions
    from kubepy.insight import timeline as timelines
    from kubepy.insight.picture import html

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application

TIMELINE = "/timeline"
BUDGETS = "poddisruptionbudgets.policy"
LOOK_SECONDS = 0.1  # how often the revision is compared
REST = 4  # after a document, so many times as long as it took passes before the next
KEPT = 8  # timelines and documents that are kept for those who ask next
GZIP_LEVEL = 4
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
    script, style = (
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in (html.live_script(), html.page_style(0))
    )
    policy = (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
        f"connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Response(
        200,
        text.encode(),
        "text/html; charset=utf-8",
        (
            ("Content-Security-Policy", policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Vary", "Accept"),
        ),
    )


class WholeTimeline(NamedTuple):
    """What happened up to a revision, whoever may see it.

    :ivar subjects: resource and namespace of all that is in it.
    """

    revision: int
    timeline: Timeline
    subjects: frozenset[tuple[str, str]]


class LiveTimelines:
    """The documents of the live page. They are costly, so all who see the same share them, and
    after each there is a rest.

    Keys are what requests have as ``since``, and for documents what somebody may not list as well.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # one reader of the backend at a time is enough
        self._wholes = dict[str, WholeTimeline]()
        self._documents = dict[tuple[str, frozenset[tuple[str, str]]], tuple[Timeline, bytes]]()
        self._rested = dict[str, float]()

    def is_resting(self, since: str) -> bool:
        """Tell whether the next document is to wait."""
        return asyncio.get_running_loop().time() < self._rested.get(since, 0.0)

    async def newest(
        self, application: Application, request: HttpRequest, info: RequestInfo
    ) -> bytes:
        """Return the document for a requester; as long as nothing new happens it is the same
        object.

        Raises Unauthorized, Forbidden, BadRequest.
        """
        async with self._turn:
            return await application.read(
                partial(self._read, application, request, info, asyncio.get_running_loop())
            )

    def _read(
        self,
        application: Application,
        request: HttpRequest,
        info: RequestInfo,
        loop: asyncio.AbstractEventLoop,
        cluster: LocalCluster,
    ) -> bytes:
        since, began = request.parameter("since"), loop.time()
        rights = listing_rights(
            cluster, authentication.identify(request, info, application, cluster)
        )
        whole = self._whole(since, cluster)
        unseen = frozenset(subject for subject in whole.subjects if not rights(*subject))
        drawn_from, document = self._documents.get((since, unseen), (None, b""))
        if drawn_from is not whole.timeline:
            document = document_of(
                visible(whole.timeline, rights) if unseen else whole.timeline, bool(since)
            )
            put_newest(self._documents, (since, unseen), (whole.timeline, document))
            put_newest(self._rested, since, loop.time() + REST * (loop.time() - began))
        return document

    def _whole(self, since: str, cluster: LocalCluster) -> WholeTimeline:
        """Return the timeline; the one of before where nothing has happened meanwhile. Raises
        BadRequest."""
        revision, before = cluster.client.revision(), self._wholes.get(since)
        if before is None or has_more(before, since, revision, cluster):
            shown = timelines.read_timeline(cluster, start_of(since, cluster))
            if before and (shown.steps, shown.courses) == (
                before.timeline.steps,
                before.timeline.courses,
            ):
                shown = before.timeline
            else:
                shown = revisions.with_rollouts(cluster, shown)
            keys = {
                *(step.key for step in (*shown.steps, *shown.present)),
                *(course.key for course in shown.courses),
            }
            subjects = {(key.resource, key.namespace) for key in keys}
            subjects |= {
                (resource, namespace) for _, namespace in subjects for resource in ("pods", BUDGETS)
            }
            before = WholeTimeline(revision, shown, frozenset(subjects))

        put_newest(self._wholes, since, before._replace(revision=revision))
        return self._wholes[since]


def put_newest(values: dict[Any, Any], key: Any, value: Any) -> None:
    """Keep a value as the newest of a few."""
    values.pop(key, None)
    values[key] = value
    while len(values) > KEPT:
        del values[next(iter(values))]


def has_more(before: WholeTimeline, since: str, revision: int, cluster: LocalCluster) -> bool:
    """Tell whether a timeline is another one by now: there are new entries, a pod may have become
    available without a write, or it begins later."""
    if since and before.timeline.until != cluster.clock.now():
        return True
    awaits_time = any(
        numbers.ready > numbers.available
        for _, numbers in (course.numbers[-1] for course in before.timeline.courses)
    )
    return before.revision != revision and (
        awaits_time or bool(cluster.timeline(after=before.revision))
    )


def start_of(since: str, cluster: LocalCluster) -> datetime | None:
    """Return the moment that a request means. Raises BadRequest."""
    try:
        return timelines.start_of(since, cluster.clock.now()) if since else None
    except ValueError as error:
        raise errors.BadRequest(str(error)) from None


def document_of(shown: Timeline, has_start: bool) -> bytes:
    """Return what the page shows, as a line. Without a start, the timeline begins with the first
    step in it."""
    if not has_start:
        shown = shown._replace(since=shown.steps[0].at if shown.steps else shown.until)
    return (
        json.dumps(html.live_document(shown), ensure_ascii=False, separators=(",", ":")).encode()
        + b"\n"
    )


async def timeline(
    live: LiveTimelines, application: Application, request: HttpRequest, info: RequestInfo
) -> Response | StreamResponse:
    """Answer a request for what the page shows: one document, or with ``?watch=1`` one whenever
    there are new steps.

    Raises Unauthorized, Forbidden, BadRequest, MethodNotAllowed.
    """
    if info.verb != "get":
        raise errors.method_not_allowed()
    since, revision = request.parameter("since"), application.watch_cache.revision
    document = await live.newest(application, request, info)
    if request.parameter("watch") not in ("1", "true"):
        return Response(200, document)

    async def follow() -> AsyncIterator[bytes]:
        """Yield a document whenever there are new steps, until the requester may not see them any
        more."""
        loop, seen, sent = asyncio.get_running_loop(), revision, document
        yield document
        said = loop.time()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            new = sent
            if (now := application.watch_cache.revision) != seen and not live.is_resting(since):
                seen = now
                try:
                    new = await live.newest(application, request, info)
                except (errors.Status, StorageError):
                    return  # the next request gets it as its answer
            if new is not sent or loop.time() - said > ALIVE_SECONDS:
                said = loop.time()
                yield new if new is not sent else b"\n"
                sent = new

    if not request.accepts_gzip:
        return StreamResponse(200, follow(), application.stopping)
    pieces = gzipped(follow())
    return StreamResponse(200, pieces, application.stopping, headers=GZIP_HEADERS)


async def gzipped(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Compress pieces, each of which is to be readable at once."""
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    async for piece in pieces:
        yield compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()


def listing_rights(cluster: LocalCluster, user: Object) -> MayList:
    """Return a function that tells whether a user may list a resource in a namespace, "" for all of
    them.

    Raises Forbidden for a user who may list pods nowhere, as the list of pods would.
    """

    def attributes(resource: str, namespace: str) -> AttributesRecord:
        name, _, group = resource.partition(".")
        return AttributesRecord(user, "list", group, name, "", namespace, "")

    @cache
    def may_list(resource: str, namespace: str) -> bool:
        return cluster.client.authorizer.authorize(attributes(resource, namespace)).allowed

    namespaces = (item["metadata"]["name"] for item in cluster.store.list("namespaces").objects)
    if not may_list("pods", "") and not any(
        may_list("pods", namespace) for namespace in namespaces
    ):
        refused = attributes("pods", "")
        raise refused.forbidden(cluster.client.authorizer.authorize(refused).reason)

    return lambda resource, namespace: may_list(resource, "") or may_list(resource, namespace)


def visible(whole: Timeline, may_list: MayList) -> Timeline:
    """Return the part of a timeline that is about objects that somebody may list."""
    kept = [
        number
        for number, step in enumerate(whole.steps)
        if may_list(step.key.resource, step.key.namespace)
    ]
    courses = []
    for course in whole.courses:
        namespace = course.key.namespace
        if not may_list(course.key.resource, namespace) or not may_list("pods", namespace):
            continue
        shows_budgets = may_list(BUDGETS, namespace)
        numbers = {bisect_right(kept, after - 1): entry for after, entry in course.numbers}
        bounds = {
            bisect_right(kept, after - 1): entry if shows_budgets else entry._replace(budget="")
            for after, entry in course.bounds
        }
        courses.append(
            course._replace(numbers=tuple(numbers.items()), bounds=tuple(bounds.items()))
        )

    return whole._replace(
        steps=tuple(whole.steps[number] for number in kept),
        courses=tuple(courses),
        present=tuple(pod for pod in whole.present if may_list("pods", pod.key.namespace)),
        rollouts=tuple(
            rollout
            for rollout in whole.rollouts
            if may_list(rollout.workload.resource, rollout.workload.namespace)
        ),
    )
