"""Log the requests of a Client as client-go logs round trips (``-v=6`` and above).

There is no HTTP behind them: a URL is the path that the request would have at a server. Level 6
shows the verb, the URL, the status and the time of each; 7 also says when a request begins, with
its headers; 8 and above show the headers of answers and the bodies, cut off at 1,024 characters,
10,240 (9) or not at all (10). Upstream: ``client-go/transport/round_trippers.go``,
``client-go/rest/request.go`` (logBody, truncateBody).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from kubepy import __version__
from kubepy.api.errors import Status
from kubepy.api.meta import Object
from kubepy.api.scheme import GroupVersionResource
from kubepy.api.values import goformat
from kubepy.apiserver.client import Client, ObjectList, Objects
from kubepy.apiserver.request import (
    CollectionOptions,
    DeleteOptions,
    ListOptions,
    Patch,
    Request,
    WriteOptions,
)
from kubepy.klog import Logger, Value, place_of

T = TypeVar("T")
VERBS = {
    "get": "GET",
    "list": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
BODY_LIMITS = {8: 1024, 9: 10240}  # in characters, by verbosity
GZIP_THRESHOLD = (
    128 * 1024
)  # answers that are larger are sent compressed (``responsewriters/writers.go``)
PLACE = place_of(Client.do.__code__)
JSON = "application/json"


class RoundTrips:
    """The round trips so far of logging clients that share a batch.

    :ivar depth: of requests in each other: those that are part of another one are not logged.
    :ivar last_read: the URL; a read that repeats the one before is not logged: polls are in place
        of a watch.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.last_read = ""


class LoggingClient(Client):
    """A Client that logs its requests.

    Its batch is that of the Client that it stands for, through which the cluster itself reads
    without a word (definitions of custom resources).

    :ivar limit: the number of objects in an answer to a list, 0 for all (``--chunk-size``): a
        longer list is logged as the requests for its pages.
    :ivar headers: those of every request; ``parameters``: those of every URL.
    """

    limit = 0
    headers: Mapping[str, str] = {"Accept": JSON}
    parameters: Mapping[str, str] = {}
    disable_compression = False
    user_agent = f"kubepy/{__version__}"

    def __init__(self, client: Client, logger: Logger) -> None:
        self.__dict__.update(client.__dict__)
        self._logger = logger
        self._trips = RoundTrips()

    def _get(self, request: Request) -> Object:
        return self._logged(request, super()._get)

    def _list(self, request: Request) -> ObjectList:
        return self._logged(request, super()._list)

    def stream(
        self,
        resource: str | GroupVersionResource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Iterator[Object]:
        return iter(
            self.list(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
            ).items
        )

    def _create(self, request: Request, body: Any) -> Object:
        return self._logged(
            request, lambda request: super(LoggingClient, self)._create(request, body), body
        )

    def _update(self, request: Request, obj: Object) -> Object:
        return self._logged(
            request, lambda request: super(LoggingClient, self)._update(request, obj), obj
        )

    def _patch(self, request: Request, patch: Patch) -> Object:
        return self._logged(
            request,
            lambda request: super(LoggingClient, self)._patch(request, patch),
            patch.data,
            patch.type,
        )

    def _delete(self, request: Request) -> Object:
        return self._logged(request, super()._delete)

    def _delete_collection(self, request: Request) -> Objects:
        return self._logged(request, super()._delete_collection)

    def _logged(
        self,
        request: Request,
        do: Callable[[Request], T],
        body: Any = None,
        content_type: str = JSON,
    ) -> T:
        """Carry out a request, with its lines before and after it."""
        if self._trips.depth:
            return do(request)
        path, code = self.path_of(request), 0
        answer: Any = None
        url = with_query(path, {**_query(request, self.limit), **self.parameters})
        if url == self._trips.last_read and request.verb in ("get", "list"):
            return do(request)
        self._trips.last_read = url if request.verb in ("get", "list") else ""
        self._log_request(request, url, body, content_type)
        start = self.clock.now()
        self._trips.depth += 1
        try:
            answer = result = do(request)
            code = 201 if request.verb == "create" else 200
        except Status as error:
            answer, code = (
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": str(error),
                    "reason": error.reason,
                    "code": error.code,
                },
                error.code,
            )
            raise
        finally:
            self._trips.depth -= 1
            if code:
                elapsed = (self.clock.now() - start) // timedelta(milliseconds=1)
                self._log_response(request, url, (code, elapsed), answer)
                for page in self.further_pages(request, path, answer):
                    self._log_request(request, page, None)
                    self._log_response(request, page, (code, elapsed), None)

        return result

    def _log_request(self, request: Request, url: str, body: Any, content_type: str = JSON) -> None:
        if self._logger.highest < 7:
            return
        headers = {"User-Agent": self.user_agent, **self.headers}
        if body is not None:
            headers["Content-Type"] = content_type
        self._logger.info(
            7,
            PLACE,
            "Request",
            {"verb": VERBS[request.verb], "url": url, "headers": block(headers)},
        )
        if body is not None:
            self._log_body("Request Body", goformat.to_json(body))

    def _log_response(
        self, request: Request, url: str, code_and_time: tuple[int, int], answer: Any
    ) -> None:
        """Log an answer; with the request's own line, it does not name that again."""
        code, elapsed = code_and_time
        status = f"{code} {HTTPStatus(code).phrase}"
        if self._logger.highest < 7:
            self._logger.info(
                6,
                PLACE,
                "Response",
                {
                    "verb": VERBS[request.verb],
                    "url": url,
                    "status": status,
                    "milliseconds": elapsed,
                },
            )
            return

        headers: dict[str, Value] = {}
        text = ""
        if self._logger.highest >= 8:
            if isinstance(answer, ObjectList):
                answer = {
                    "items": answer.items,
                    "metadata": {"resourceVersion": answer.resource_version},
                }
            text = goformat.to_json(answer)
            sent = {"Cache-Control": "no-cache, private", "Content-Type": JSON}
            if len(text) > GZIP_THRESHOLD and not self.disable_compression:
                sent["Vary"] = "Accept-Encoding"
            headers = {"headers": block(sent)}

        self._logger.info(
            7, PLACE, "Response", {"status": status, **headers, "milliseconds": elapsed}
        )
        if answer is not None and text:
            self._log_body("Response Body", text)

    def _log_body(self, title: str, text: str) -> None:
        limit = BODY_LIMITS.get(self._logger.highest, len(text))
        if len(text) > limit:
            text = f"{text[:limit]} [truncated {len(text) - limit} chars]"
        self._logger.info(8, PLACE, title, {"body": text})

    def path_of(self, request: Request) -> str:
        resource = self._server.scheme.get(request.resource.group_resource)
        version = request.resource.version or (resource.version if resource else "v1")
        group = f"/apis/{request.resource.group}" if request.resource.group else "/api"
        namespace = request.namespace if resource is None or resource.namespaced else ""
        parts = ["namespaces", namespace] if namespace else []
        parts += [
            request.resource.resource,
            "" if request.verb == "create" and not request.subresource else request.name,
            request.subresource,
        ]
        return "/".join([group, version, *(quote(part, safe="") for part in parts if part)])

    def further_pages(self, request: Request, path: str, answer: Any) -> list[str]:
        """Return the URLs of the pages behind the first, which a server would answer one by one."""
        if not self.limit or not isinstance(answer, ObjectList):
            return []
        pages = []
        for start in range(self.limit, len(answer.items), self.limit):
            token = base64.urlsafe_b64encode(
                f'{{"v":"meta.k8s.io/v1","start":"{start}"}}'.encode()
            ).decode()
            pages.append(
                with_query(path, {**_query(request, self.limit), "continue": token.rstrip("=")})
            )
        return pages


def block(headers: Mapping[str, str]) -> str:
    """Return headers as a block of lines."""
    return "".join(f"{name}: {headers[name]}\n" for name in sorted(headers))


def with_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(sorted(query.items()))}" if query else path


def _query(request: Request, limit: int) -> dict[str, str]:
    """Return the parameters of a request as kubectl sends them; the options of a deletion are in
    its body."""
    options = request.options
    if isinstance(options, CollectionOptions):
        options = options.list
    query = {}
    if isinstance(options, ListOptions):
        query = {"fieldSelector": options.field_selector, "labelSelector": options.label_selector}
        if request.verb == "list" and limit:
            query["limit"] = str(limit)
    elif isinstance(options, WriteOptions):
        query = {
            "dryRun": "All" if options.dry_run else "",
            "fieldManager": options.field_manager,
            "fieldValidation": options.field_validation if options.field_manager else "",
            "force": "true" if options.force else "",
        }
    elif isinstance(options, DeleteOptions):
        query = {"dryRun": "All" if options.dry_run else ""}

    return {name: value for name, value in query.items() if value}
