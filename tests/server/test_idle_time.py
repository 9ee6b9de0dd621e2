"""``serve --time=when-idle``: the cluster's own time goes on while all clients wait."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.clock import parse_time
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.server.idletime import ClusterAtRest, IdlePace, TimeFlagError, parse_pace, target_of
from tests.server.conftest import SECONDS, Answer, Api, ServerProcess

START = datetime(2026, 1, 1, tzinfo=UTC)
STANDS_SECONDS = 0.6  # of real time, in which an idle cluster would go on by minutes
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}},
}


class IdleServer(ServerProcess):
    """A server whose cluster's time goes on while clients wait."""

    def now(self) -> datetime:
        """Return the time of the cluster, without a request."""
        settings = (self.folder / "kubepy.yaml").read_text()
        found = re.search(r'^clock: "(.*)"$', settings, re.MULTILINE)
        assert found
        return parse_time(found[1])

    def stands(self) -> bool:
        """Return whether time does not move for a while."""
        before = self.now()
        time.sleep(STANDS_SECONDS)
        return self.now() == before

    def wait_until_it_stands(self) -> None:
        """Wait until time does not move, which an open request or an unread event holds up."""
        end = time.monotonic() + SECONDS
        while not self.stands():
            assert time.monotonic() < end, "time goes on"

    def wait_for(self, moment: datetime) -> None:
        """Wait, without a request, until the cluster's time has reached a moment."""
        end = time.monotonic() + SECONDS
        while self.now() < moment:
            assert time.monotonic() < end, f"{self.now()} is before {moment}"
            time.sleep(0.01)

    def create(self, path: str, obj: Any) -> Any:
        answer = self.request("POST", path, obj)
        assert answer.status == 201, answer.body
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self.request("GET", path)
        assert answer.status == 200, answer.body
        return answer.json()


class RawClient:
    """A connection whose bytes are sent and read one by one."""

    def __init__(self, server: ServerProcess) -> None:
        plain = socket.create_connection(server.address, SECONDS)
        self.connection = server.tls().wrap_socket(plain, server_hostname=server.address[0])
        self._token = server.token

    def send_head(self, method: str, path: str, *headers: str) -> None:
        head = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self._token}")
        self.connection.sendall("\r\n".join((*head, *headers, "", "")).encode())

    def read_until(self, text: bytes) -> bytes:
        received = b""
        while text not in received:
            piece = self.connection.recv(65536)
            assert piece, received
            received += piece
        return received

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def new_idle_server(tmp_path: Path) -> Iterator[Callable[..., IdleServer]]:
    """Start servers of new clusters with a node and a time of their own."""
    started: list[IdleServer] = []

    def start(*flags: str, time_flag: str = "when-idle") -> IdleServer:
        folder = tmp_path / f"{len(started)}" / "state"
        cluster = make_cluster(folder, {"clock": "2026-01-01T00:00:00Z", "seed": 7})
        cluster.client.create("nodes", NODE)
        cluster.close()
        started.append(IdleServer(folder, f"--time={time_flag}", *flags))
        return started[-1]

    yield start
    for server in started:
        status, errors = server.stop()
        assert (status, errors) == (0, "")


# --- the pace -------------------------------------------------------------------------------------


def test_pace_flag_is_read() -> None:
    assert parse_pace("cluster") is None
    assert parse_pace("when-idle") == IdlePace()
    assert parse_pace("when-idle,after=1s,speed=60") == IdlePace(1.0, 60.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("idle", "idle is invalid: must be cluster or when-idle"),
        ("when-idle,slow", "slow is invalid: when-idle may be followed by after=DURATION and"),
        ("when-idle,after=", 'after: time: invalid duration ""'),
        ("when-idle,after=2m", "after=2m: must be between 0s and 1m"),
        ("when-idle,speed=0", "speed=0: must be a number from 1 to 1000000"),
        ("when-idle,speed=½", "speed=½: must be a number from 1 to 1000000"),
    ],
)
def test_wrong_pace_flag_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(TimeFlagError) as caught:
        parse_pace(text)
    assert message in str(caught.value)


def test_time_gains_speed_after_a_pause_and_then_keeps_it() -> None:
    pace = IdlePace(after=0.1, speed=100.0)
    assert pace.seconds(0.1) == 0
    assert pace.seconds(0.15) == pytest.approx(1.25)
    assert pace.seconds(0.2) == pytest.approx(5)
    assert pace.seconds(1.2) == pytest.approx(105)
    assert IdlePace(after=0, speed=2.0).seconds(3) == 6


def test_time_stops_at_a_moment_that_is_due_and_else_at_whole_seconds() -> None:
    due = START + timedelta(seconds=2.5)
    assert target_of(ClusterAtRest(1, START, due), 60) == due
    assert target_of(ClusterAtRest(1, START, due), 2.4) == START + timedelta(seconds=2)
    assert target_of(ClusterAtRest(1, due, None), 1) == START + timedelta(seconds=3)
    assert target_of(ClusterAtRest(1, START, None), 0.9) is None


# --- when it moves, and when it stands ------------------------------------------------------------


def test_time_moves_while_nobody_asks(new_idle_server: Callable[..., IdleServer]) -> None:
    server = new_idle_server()
    server.wait_for(START + timedelta(minutes=30))
    answer = server.request("GET", "/version")
    assert parsedate_to_datetime(answer.headers["date"]) >= START + timedelta(minutes=30)


def test_time_stands_while_a_request_is_open(new_idle_server: Callable[..., IdleServer]) -> None:
    server = new_idle_server()
    body = json.dumps({"metadata": {"name": "slow"}}).encode()
    client = RawClient(server)
    client.send_head(
        "POST", CONFIG_MAPS, "Content-Type: application/json", f"Content-Length: {len(body)}"
    )
    client.connection.sendall(body[:5])
    server.wait_until_it_stands()  # the server has the head of the request
    now = server.now()
    client.connection.sendall(body[5:])
    answer = client.read_until(b"creationTimestamp")
    assert b"201 Created" in answer
    created = server.get(f"{CONFIG_MAPS}/slow")["metadata"]["creationTimestamp"]
    assert created == now.strftime("%Y-%m-%dT%H:%M:%SZ")
    server.wait_for(now + timedelta(minutes=1))
    client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a client has not read")
def test_time_stands_until_a_watch_has_been_read(
    new_idle_server: Callable[..., IdleServer],
) -> None:
    server = new_idle_server()
    client = RawClient(server)
    revision = server.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
    client.send_head("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={revision}")
    client.read_until(b"\r\n\r\n")
    server.wait_for(server.now() + timedelta(minutes=1))  # an open watch alone holds nothing up
    server.create(CONFIG_MAPS, {"metadata": {"name": "news"}})
    server.wait_until_it_stands()
    now = server.now()
    assert b'"ADDED"' in client.read_until(b"news")
    server.wait_for(now + timedelta(minutes=1))
    client.close()


def test_health_checks_hold_nothing_up(new_idle_server: Callable[..., IdleServer]) -> None:
    server = new_idle_server(time_flag="when-idle,after=200ms")
    end = server.now() + timedelta(minutes=10)
    deadline = time.monotonic() + SECONDS
    while server.now() < end:
        assert server.request("GET", "/readyz").status == 200
        assert time.monotonic() < deadline


def test_time_stands_after_a_request_as_long_as_is_said(
    new_idle_server: Callable[..., IdleServer],
) -> None:
    server = new_idle_server(time_flag="when-idle,after=30s")
    server.get("/api/v1/nodes")
    assert server.stands()
    assert server.now() == START


def test_cluster_with_the_systems_time_is_refused(new_folder: Callable[[], Path]) -> None:
    folder = new_folder()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "kubepy",
            "--state",
            folder,
            "serve",
            "--port=0",
            "--time=when-idle",
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "HOME": str(folder.parent)},
    )
    assert done.returncode == 1
    assert "add the line 'clock: \"20" in done.stderr
    assert done.stderr.startswith("error: --time=when-idle moves the cluster's own time, and that")
    assert done.stdout == ""


# --- what happens in it ---------------------------------------------------------------------------


class Operator:
    """A small operator: it counts its rounds in a ConfigMap, one a minute of the cluster's time,
    which the server's answers tell."""

    def __init__(self, server: IdleServer) -> None:
        self._server = server
        self.moments: list[datetime] = []

    def _request(self, method: str, body: Any = None) -> Answer:
        path = CONFIG_MAPS if method == "POST" else f"{CONFIG_MAPS}/rounds"
        answer = self._server.request(method, path, body)
        assert answer.status in (200, 201), answer.body
        return answer

    def work(self, rounds: int) -> None:
        answer = self._request("POST", {"metadata": {"name": "rounds"}, "data": {"count": "0"}})
        due = date_of(answer)
        while len(self.moments) < rounds:
            answer = self._request("GET")
            if date_of(answer) < due:
                time.sleep(0.15)
                continue
            obj = answer.json()
            obj["data"] = {"count": str(len(self.moments) + 1)}
            self._request("PUT", obj)
            self.moments.append(date_of(answer))
            due = date_of(answer) + timedelta(minutes=1)


def date_of(answer: Answer) -> datetime:
    return parsedate_to_datetime(answer.headers["date"])


def test_half_an_hour_of_an_operators_requeues_takes_seconds(
    new_idle_server: Callable[..., IdleServer],
) -> None:
    server = new_idle_server()
    operator = Operator(server)
    begin = time.monotonic()
    operator.work(30)
    took = time.monotonic() - begin
    assert operator.moments[-1] - operator.moments[0] >= timedelta(minutes=29)
    assert server.get(f"{CONFIG_MAPS}/rounds")["data"] == {"count": "30"}
    assert took < 60  # of half an hour; about six seconds on two cores


def template(command: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [container], **spec},
    }


def test_deadlines_of_jobs_and_rollouts_pass(new_idle_server: Callable[..., IdleServer]) -> None:
    server = new_idle_server()
    pod = template("sleep 100000", restartPolicy="Never")
    job = {"metadata": {"name": "late"}, "spec": {"activeDeadlineSeconds": 900, "template": pod}}
    server.create(JOBS, job)
    stuck = template("sleep 100000", nodeSelector={"disk": "none"})
    selector = {"matchLabels": {"app": "x"}}
    server.create(
        DEPLOYMENTS,
        {
            "metadata": {"name": "stuck"},
            "spec": {"progressDeadlineSeconds": 600, "selector": selector, "template": stuck},
        },
    )
    server.wait_for(server.now() + timedelta(minutes=20))
    job = server.get(f"{JOBS}/late")
    failed = next(entry for entry in job["status"]["conditions"] if entry["type"] == "Failed")
    assert failed["reason"] == "DeadlineExceeded"
    began = parse_time(job["status"]["startTime"])
    assert parse_time(failed["lastTransitionTime"]) - began == timedelta(seconds=900)
    deployment = server.get(f"{DEPLOYMENTS}/stuck")
    progressing = {entry["type"]: entry for entry in deployment["status"]["conditions"]}
    assert progressing["Progressing"]["reason"] == "ProgressDeadlineExceeded"


def test_runs_of_a_cronjob_come_at_their_moments_in_every_run(
    new_idle_server: Callable[..., IdleServer],
) -> None:
    def run() -> list[tuple[str, str, str]]:
        server = new_idle_server()
        spec = {
            "schedule": "*/10 * * * *",
            "successfulJobsHistoryLimit": 100,
            "jobTemplate": {"spec": {"template": template("sleep 90", restartPolicy="Never")}},
        }
        server.create(CRON_JOBS, {"metadata": {"name": "tick"}, "spec": spec})
        begin = server.now()
        server.wait_for(begin + timedelta(hours=2))
        jobs = server.get(JOBS)["items"]
        return [
            (
                job["metadata"]["name"],
                job["metadata"]["creationTimestamp"],
                job["status"].get("completionTime", ""),
            )
            for job in jobs
            if begin + timedelta(minutes=10)
            < parse_time(job["metadata"]["creationTimestamp"])
            < begin + timedelta(minutes=110)
        ]

    first = run()
    second = run()
    common = {name for name, *_ in first} & {name for name, *_ in second}
    assert len(common) >= 5
    assert [job for job in first if job[0] in common] == [job for job in second if job[0] in common]
    for _, created, completed in first:
        assert created.endswith("0:00Z")
        assert parse_time(completed) - parse_time(created) >= timedelta(seconds=90)


def test_watcher_sees_each_moment_by_itself(new_idle_server: Callable[..., IdleServer]) -> None:
    """Time does not go on to the end of a Job before its watcher has read of its beginning."""
    server = new_idle_server()
    client = RawClient(server)
    revision = server.get(JOBS)["metadata"]["resourceVersion"]
    client.send_head("GET", f"{JOBS}?watch=1&resourceVersion={revision}")
    client.read_until(b"\r\n\r\n")
    pod = template("sleep 600", restartPolicy="Never")
    server.create(JOBS, {"metadata": {"name": "job"}, "spec": {"template": pod}})
    received = client.read_until(b'"type":"Complete"').decode()
    client.close()
    actives = re.findall(r'"active":(\d)', received)
    assert "1" in actives


# --- what it stands on ----------------------------------------------------------------------------


def test_time_is_moved_for_other_processes_where_there_are_webhooks(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    cluster = make_cluster(folder, {"clock": "2026-01-01T00:00:00Z"})
    webhook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [],
    }
    cluster.client.create(
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        {"metadata": {"name": "hook"}, "webhooks": [webhook]},
    )
    cluster.client.move_time_to(START + timedelta(hours=1))
    other = open_cluster(folder)
    other.client.take_over_time()
    assert other.clock.now() == START + timedelta(hours=1)
    other.close()
    cluster.close()


# --- clients that wait for a moment ---------------------------------------------------------------


WAIT = "/kubepy/clock/wait"


def test_half_an_hour_of_timers_takes_seconds_and_none_comes_early(
    new_idle_server: Callable[..., IdleServer],
) -> None:
    server = new_idle_server()
    begin = time.monotonic()
    before = parse_time(server.get(f"{WAIT}?for=1m")["now"])
    for _ in range(29):
        now = parse_time(server.get(f"{WAIT}?for=1m")["now"])
        name = f"round-{now:%H%M%S}"
        created = server.create(CONFIG_MAPS, {"metadata": {"name": name}})
        assert parse_time(created["metadata"]["creationTimestamp"]) >= now.replace(microsecond=0)
        assert now - before >= timedelta(minutes=1)
        before = now
    assert before - START >= timedelta(minutes=30)
    assert time.monotonic() - begin < 60


def test_timer_until_a_moment_is_met_exactly(new_idle_server: Callable[..., IdleServer]) -> None:
    server = new_idle_server()
    moment = server.now() + timedelta(hours=1, seconds=0.25)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert parse_time(server.get(f"{WAIT}?until={text}")["now"]) == moment


def test_two_timers_of_one_moment_both_come(new_idle_server: Callable[..., IdleServer]) -> None:
    server = new_idle_server()
    text = (server.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    clients = [RawClient(server) for _ in range(2)]
    for client in clients:
        client.send_head("GET", f"{WAIT}?until={text}")
        client.read_until(b"\r\n\r\n")
    for client in clients:
        assert text.encode() in client.read_until(b'"now"')
        client.close()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "one of the parameters for=DURATION and until=TIME is required"),
        ("?for=1s&until=2026-01-01T00:00:00Z", "one of the parameters"),
        ("?for=soon", '"soon" is not a duration such as 30s'),
        ("?until=noon", '"noon" is not a time such as 2026-11-20T10:13:48Z'),
    ],
)
def test_wrong_timer_is_refused(api: Api, query: str, message: str) -> None:
    answer = api.get(f"{WAIT}{query}")
    assert answer.status == 400
    assert message in answer.json()["message"]


def test_timer_waits_in_the_systems_time(api: Api) -> None:
    begin = time.monotonic()
    answer = api.stream(f"{WAIT}?for=300ms").event()
    assert "now" in answer
    assert time.monotonic() - begin >= 0.3


def test_timer_needs_a_token(api: Api) -> None:
    assert api.get(f"{WAIT}?for=1s", token="").status == 401
