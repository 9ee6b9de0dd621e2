"""``kubepy serve`` as a process, with TLS."""

from __future__ import annotations

import signal
import stat
from collections.abc import Callable

import pytest

from tests.server.conftest import ServerProcess


def test_ready_line_names_address_and_kubeconfig(server: ServerProcess) -> None:
    assert server.ready_line == (f"serving {server.folder} at {server.url}: kubectl --kubeconfig {server.kubeconfig} "
                                 "get nodes\n")
    assert stat.S_IMODE(server.kubeconfig.stat().st_mode) == 0o600
    answer = server.request("GET", "/api/v1/namespaces")
    assert answer.status == 200
    assert "server" not in answer.headers


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signal_ends_the_server(server: ServerProcess, number: int, status: int) -> None:
    assert server.stop(number) == (status, "")


def test_restart_keeps_certificate_authority_and_token(new_server: Callable[..., ServerProcess]) -> None:
    first = new_server("--controllers=off")
    first.stop()
    second = new_server("--controllers=off", folder=first.folder)
    assert second.token == first.token
    [one], [other] = (server.config["clusters"] for server in (first, second))
    assert one["cluster"]["certificate-authority-data"] == other["cluster"]["certificate-authority-data"]
