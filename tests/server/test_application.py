"""The frame of every request: headers, limits, failures, ends."""

from __future__ import annotations

import asyncio
import gzip
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.api import errors
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.server import routes
from kubepy.server.backend import Backend
from kubepy.server.messages import HandlerContext, Response
from kubepy.storage.errors import RemovedIndexError
from tests.server.conftest import Api, scope_of

NAMESPACES = "/api/v1/namespaces"
CONFIG_MAPS = f"{NAMESPACES}/default/configmaps"


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def test_object_is_created_read_and_deleted(api: Api) -> None:
    assert api.post(CONFIG_MAPS, config_map("a", data={"k": "v"})).status == 201
    assert api.get(f"{CONFIG_MAPS}/a").json()["data"] == {"k": "v"}
    assert [item["metadata"]["name"] for item in api.get(CONFIG_MAPS).json()["items"]] == ["a"]
    assert api.delete(f"{CONFIG_MAPS}/a").status == 200
    assert api.get(f"{CONFIG_MAPS}/a").status == 404
    assert not api.log


def test_every_answer_has_the_headers_of_an_api_server(api: Api) -> None:
    answer = api.get(NAMESPACES)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-cache, private"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        answer.headers["audit-id"],
    )
    assert api.get(NAMESPACES, {"Audit-Id": "mine"}).headers["audit-id"] == "mine"


def test_request_without_a_token_gets_nothing_but_health(api: Api) -> None:
    assert api.get("/livez", token="").status == 200
    assert api.get(NAMESPACES, token="").status == 401
    assert api.get(NAMESPACES, token="wrong").json()["reason"] == "Unauthorized"


def test_body_above_the_limit_is_refused(api: Api) -> None:
    answer = api.post(CONFIG_MAPS, b"x" * (3 * 1024 * 1024 + 1))
    assert answer.status == 413
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Request entity too large: limit is 3145728",
        "reason": "RequestEntityTooLarge",
        "code": 413,
    }


def test_client_that_vanishes_in_mid_body_changes_nothing(api: Api) -> None:
    scope = scope_of("POST", CONFIG_MAPS, {"authorization": f"Bearer {api.application.token}"})
    answer = api.send(
        scope, [{"type": "http.request", "body": b'{"kind":"ConfigMap"', "more_body": True}]
    )
    assert answer.status == 0
    assert api.get(CONFIG_MAPS).json()["items"] == []


def test_defect_is_a_500_and_a_line_in_the_log(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(context: HandlerContext) -> Response:
        raise LookupError("nothing")

    with monkeypatch.context() as patched:
        patched.setattr(routes, "find_handler", lambda info: fail)
        answer = api.get(NAMESPACES)
    assert (answer.status, answer.json()["reason"]) == (500, "InternalError")
    [line] = api.log
    assert line.startswith(
        f"internal error: GET {NAMESPACES}: LookupError: nothing (test_application.py:"
    )
    assert api.get(NAMESPACES).status == 200


def test_warnings_of_a_request_are_headers(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(context: HandlerContext) -> Response:
        for text in ('say "a\\b"', "twice", "twice", ""):
            context.client.warn(text)
        return Response(200, b"{}")

    monkeypatch.setattr(routes, "find_handler", lambda info: warn)
    assert api.get(NAMESPACES).headers["warning"] == r'299 - "say \"a\\b\"", 299 - "twice"'


def test_large_answer_is_compressed_for_who_accepts_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"x" * (128 * 1024 + 1)
    monkeypatch.setattr(routes, "find_handler", lambda info: lambda context: Response(200, body))
    answer = api.get(NAMESPACES, {"Accept-Encoding": "deflate, gzip"})
    assert (answer.headers["content-encoding"], answer.headers["vary"]) == (
        "gzip",
        "Accept-Encoding",
    )
    assert gzip.decompress(answer.body) == body
    assert "content-encoding" not in api.get(NAMESPACES).headers


def test_timeout_that_cannot_be_read_is_refused(api: Api) -> None:
    assert api.get(f"{NAMESPACES}?timeout=soon").json()["message"] == (
        'invalid timeout specified in the request URL - time: invalid duration "soon"'
    )


def test_request_that_takes_too_long_is_a_timeout(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    release = threading.Event()
    monkeypatch.setattr(
        routes,
        "find_handler",
        lambda info: lambda context: Response(200, str(release.wait(20)).encode()),
    )
    answer = api.get(f"{NAMESPACES}?timeout=1ms")
    release.set()
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Timeout: request did not complete within the allotted timeout",
        "reason": "Timeout",
        "details": {},
        "code": 504,
    }


def test_folder_that_is_gone_is_an_error_until_it_is_back(api: Api) -> None:
    away = api.folder.with_name("away")
    api.folder.rename(away)
    answer = api.get(NAMESPACES)
    assert (answer.status, answer.json()["reason"]) == (500, "InternalError")
    away.rename(api.folder)
    assert api.get(NAMESPACES).status == 200


def test_status_of_an_error_has_upstreams_details() -> None:
    assert errors.not_found("deployments.apps", "web").as_object() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "web" not found',
        "reason": "NotFound",
        "details": {"name": "web", "group": "apps", "kind": "deployments"},
        "code": 404,
    }
    assert errors.internal_error("x").as_object()["details"] == {"causes": [{"message": "x"}]}
    assert "details" not in errors.BadRequest("no").as_object()


def test_kept_folder_is_the_same_for_two_servers(api: Api, new_api: Any) -> None:
    other = new_api(Path(api.folder))
    assert api.post(CONFIG_MAPS, config_map("a")).status == 201
    assert other.get(f"{CONFIG_MAPS}/a").status == 200


def test_write_whose_index_is_removed_meanwhile_is_made_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [RemovedIndexError("removed")]

    def answer(context: HandlerContext) -> Response:
        if failures:
            raise failures.pop()
        return Response(200, b"{}")

    monkeypatch.setattr(routes, "find_handler", lambda info: answer)
    assert api.delete(f"{CONFIG_MAPS}/a").status == 200
    assert not api.log


def test_error_has_the_warnings_of_its_request(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(context: HandlerContext) -> Response:
        context.client.warn("soon gone")
        raise errors.BadRequest("no")

    monkeypatch.setattr(routes, "find_handler", lambda info: fail)
    answer = api.get(NAMESPACES)
    assert (answer.status, answer.headers["warning"]) == (400, '299 - "soon gone"')


def test_time_that_another_process_moves_counts_at_the_next_request(tmp_path: Path) -> None:
    make_cluster(tmp_path / "state", {"clock": "2026-01-01T00:00:00Z"}).close()
    backend, other = (
        Backend(lambda: open_cluster(tmp_path / "state")),
        open_cluster(tmp_path / "state"),
    )

    async def times() -> set[datetime]:
        return {
            await run(lambda cluster: cluster.clock.now())
            for run in 4 * (backend.read, backend.write)
        }

    assert asyncio.run(times()) == {other.clock.now()}
    other.client.move_time_to(other.clock.now() + timedelta(hours=1))
    assert asyncio.run(times()) == {other.clock.now()}
    other.close()
    backend.close()
