"""Health checks, version, metrics, the list of paths."""

from __future__ import annotations

import os

import pytest

from kubepy.server.health import MAX_LABELLED
from tests.server.conftest import Api


@pytest.mark.parametrize("endpoint", ["healthz", "livez", "readyz"])
def test_health_is_ok_and_tells_its_checks_when_verbose(api: Api, endpoint: str) -> None:
    answer = api.get(f"/{endpoint}")
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    verbose = api.get(f"/{endpoint}?verbose").body.decode().splitlines()
    assert verbose[:3] == ["[+]ping ok", "[+]log ok", "[+]etcd ok"]
    assert verbose[-1] == f"{endpoint} check passed"
    assert ("[+]shutdown ok" in verbose) == (endpoint == "readyz")


def test_health_leaves_excluded_checks_out_and_warns_of_unknown_ones(api: Api) -> None:
    text = api.get("/readyz?verbose&exclude=etcd&exclude=nope&exclude=never").body.decode()
    assert "[+]etcd excluded: ok\n" in text
    assert 'warn: some health checks cannot be excluded: no matches for "never","nope"\n' in text


def test_health_has_a_path_for_each_check(api: Api) -> None:
    assert api.get("/livez/ping").body == b"ok"
    assert api.get("/readyz/poststarthook/rbac/bootstrap-roles").body == b"ok"
    assert api.get("/readyz/nope").status == 404
    assert api.get("/livez/shutdown").status == 404


def test_readiness_ends_when_the_server_stops(api: Api) -> None:
    api.run(api.application.stop())
    answer = api.get("/readyz")
    assert answer.status == 500
    assert answer.body.endswith(b"[-]shutdown failed: reason withheld\nreadyz check failed\n")
    assert api.get("/readyz/shutdown").body == b"internal server error: process is shutting down\n"
    assert api.get("/livez").status == 200


def test_readiness_ends_when_the_folder_is_gone(api: Api) -> None:
    assert api.get("/readyz").status == 200
    os.rename(api.folder, f"{api.folder}.gone")
    try:
        answer, ping = api.get("/readyz"), api.get("/livez/ping")
    finally:
        os.rename(f"{api.folder}.gone", api.folder)
    assert answer.status == 500
    assert b"[-]etcd failed: reason withheld\n" in answer.body
    assert ping.body == b"ok"


@pytest.mark.parametrize(("free", "status"), [(0, 500), (63, 500), (64, 200)])
def test_readiness_ends_when_the_disk_is_full(
    api: Api, monkeypatch: pytest.MonkeyPatch, free: int, status: int
) -> None:
    block = 4096
    disk = os.statvfs_result((block, block, 1000, free, free, 1000, 1000, 1000, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    assert api.get("/readyz").status == status
    assert api.get("/livez").status == 200


def test_version_is_that_of_a_server(api: Api) -> None:
    answer = api.get("/version")
    version = answer.json()
    assert (
        version["major"],
        version["minor"],
        version["emulationMinor"],
        version["minCompatibilityMinor"],
    ) == ("1", "36", "36", "35")
    assert answer.body.startswith(b'{\n  "major": "1",')
    assert "kubepyVersion" not in version


def test_root_lists_the_paths(api: Api) -> None:
    paths = api.get("/").json()["paths"]
    assert paths == sorted(paths)
    assert {
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz/etcd",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz/shutdown",
        "/version",
    } <= set(paths)


def test_metrics_are_those_of_this_server(api: Api) -> None:
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b'apiserver_resource_objects{group="",resource="namespaces"} 4\n' in answer.body
    api.get("/apis/apps/v1/namespaces/default/deployments/none")
    assert (
        b'apiserver_request_total{code="404",dry_run="",group="apps",resource="deployments",'
        b'scope="resource",'
        b'subresource="",verb="GET",version="v1"} 1\n'
    ) in api.get("/metrics").body


def test_metrics_stay_few_whatever_clients_ask_for(api: Api) -> None:
    for number in range(MAX_LABELLED):
        api.application.requests[str(number),] = 1
    api.get("/apis/apps/v1/strangers")
    assert len(api.application.requests) == MAX_LABELLED + 1


def test_keys_of_tokens_are_published(api: Api) -> None:
    configuration = api.get("/.well-known/openid-configuration", {"host": "localhost:6443"})
    assert configuration.json()["jwks_uri"] == "https://localhost:6443/openid/v1/jwks"
    keys = api.get("/openid/v1/jwks")
    assert keys.headers["content-type"] == "application/jwk-set+json"
    assert keys.headers["cache-control"] == "public, max-age=3600"
    assert len(keys.json()["keys"]) == 1


@pytest.mark.parametrize("path", ["/logs", "/debug/pprof/", "/configz", "/swagger.json"])
def test_paths_that_a_server_has_not_switched_on_are_not_found(api: Api, path: str) -> None:
    assert api.get(path).body == b"404 page not found\n"
