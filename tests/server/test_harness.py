"""The endpoints for harnesses: forks, reset, time, plans and diagnoses."""

from __future__ import annotations

import asyncio
import gc
import json
import ssl
import threading
import urllib.request
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from wsproto import events

from kubepy.cli.inner_commands import runner
from kubepy.cli.main import main
from kubepy.controlplane.furnishing import furnish
from kubepy.controlplane.open import MEMORY, make_cluster, open_cluster
from kubepy.results import AnsweredRequest
from kubepy.server.application import Application, ServeOptions
from kubepy.server.chain import HandlerChain
from kubepy.server.harness import forks
from tests.kubelet import fakemachine
from tests.server.conftest import (
    SECONDS,
    SIGNING_KEY,
    TOKEN,
    Answer,
    Api,
    headers_of,
    scope_of,
)
from tests.server.streams import ServedFolder, WebSocketClient
from tests.server.test_authentication import as_user
from tests.server.test_remotecommand import make_folder
from tests.waiting import eventually

NOON = "2026-01-01T12:00:00Z"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MASTER = as_user("root", "system:masters")


class HarnessApi(Api):
    """A server in this process whose clients stay until they have their answer."""

    def __init__(self, place: Any, options: ServeOptions) -> None:
        self.folder = Path(str(place))
        self.log: list[str] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.application = Application(
            place if not isinstance(place, Path) else str(place),
            options._replace(run_command=runner(main)),
            token=TOKEN,
            signing_key=SIGNING_KEY,
            log=self.log.append,
        )
        self.cluster = open_cluster(place) if isinstance(place, Path) else make_cluster(MEMORY)
        self.chain = HandlerChain(self.application)
        self.run(self.application.start())

    def send(
        self,
        scope: dict[str, Any],
        messages: list[dict[str, Any]],
        gone: asyncio.Event | None = None,
    ) -> Answer:
        sent: list[Any] = []
        stays = gone or asyncio.Event()

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop(0)
            await stays.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        self.run(self.chain(scope, receive, send))
        body = b"".join(message.get("body", b"") for message in sent)
        return Answer(sent[0]["status"], headers_of(sent[0]), body)

    def harness(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that succeeds; return its document."""
        answer = self.request(method, f"/kubepy/{path}", body)
        assert answer.status in (200, 201), answer.body
        return answer.json()

    def fork(self) -> str:
        """Make a fork; return the path below which its API is, without the last slash."""
        server: str = self.harness("POST", "forks", {})["server"]
        assert server.endswith("/")
        return server.removesuffix("/")

    def advance(self, by: str) -> str:
        now: str = self.harness("POST", "clock/advance", {"by": by})["now"]
        return now


@pytest.fixture
def new_harness(
    new_folder: Callable[[], Path],
) -> Iterator[Callable[..., HarnessApi]]:
    """Start servers, without controllers: ``new_harness(folder, authorization="RBAC")``; without a
    folder the cluster is in memory, has time of its own and a node."""
    started: list[HarnessApi] = []

    def start(
        folder: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> HarnessApi:
        serve_options = ServeOptions(**{"controllers": frozenset(), **options})
        place: Any = folder
        if folder is None:
            place = make_cluster(MEMORY, {"clock": NOON} if settings is None else settings)
            furnish(place, 1)
        started.append(HarnessApi(place, serve_options))
        return started[-1]

    yield start
    for api in started:
        api.close()
        assert not [line for line in api.log if "internal error" in line]


@pytest.fixture
def memory(new_harness: Callable[..., HarnessApi]) -> HarnessApi:
    return new_harness()


@pytest.fixture(params=["memory", "folder"])
def either(
    request: pytest.FixtureRequest,
    new_harness: Callable[..., HarnessApi],
    new_folder: Callable[[], Path],
) -> HarnessApi:
    return new_harness() if request.param == "memory" else new_harness(new_folder())


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data,
    }


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "web", "image": "web:1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def cron_job(schedule: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "job", "image": "job:1"}]}
    spec = {"template": {"spec": pod}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "again"},
        "spec": {
            "schedule": schedule,
            "successfulJobsHistoryLimit": 100,
            "jobTemplate": {"spec": spec},
        },
    }


def names(api: Api, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in api.get(path).json()["items"]]


def count_of_caches() -> int:
    """Return how many servers work in this process."""
    return [thread.name for thread in threading.enumerate()].count("watch cache")


# --- forks


def test_fork_and_its_origin_do_not_see_each_others_writes(either: HarnessApi) -> None:
    either.post(MAPS, config_map("before"))
    fork = either.fork()
    either.post(MAPS, config_map("of-origin"))
    assert either.post(f"{fork}{MAPS}", config_map("of-fork")).status == 201
    assert names(either, f"{fork}{MAPS}") == ["before", "of-fork"]
    assert names(either, MAPS) == ["before", "of-origin"]


def test_forks_are_listed_and_shown_until_they_are_dropped(memory: HarnessApi) -> None:
    first = memory.harness("POST", "forks")
    second = memory.harness("POST", "forks", {})
    assert first == {"id": "fork-1", "server": "/kubepy/forks/fork-1/"}
    assert memory.harness("GET", "forks") == {"forks": [first, second]}
    assert memory.harness("GET", "forks/fork-2") == second
    assert memory.harness("DELETE", "forks/fork-1")["status"] == "Success"
    assert memory.harness("GET", "forks") == {"forks": [second]}
    for method, path in (
        ("DELETE", "/kubepy/forks/fork-1"),
        ("GET", "/kubepy/forks/fork-1"),
        ("GET", f"/kubepy/forks/fork-1{MAPS}"),
        ("POST", "/kubepy/forks/fork-1/kubepy/forks"),
    ):
        answer = memory.request(method, path)
        assert (answer.status, answer.json()["reason"]) == (404, "NotFound")


def test_fork_is_a_whole_server_with_forks_of_its_own(memory: HarnessApi) -> None:
    fork = memory.fork()
    index = memory.get(f"{fork}/openapi/v3").json()["paths"]
    url = index["api/v1"]["serverRelativeURL"]
    assert url.startswith(f"{fork}/openapi/v3/api/v1?hash=")
    assert "openapi" in memory.get(url).json()
    inner = memory.harness("POST", "forks/fork-1/kubepy/forks", {})["server"]
    assert inner == f"{fork}/kubepy/forks/fork-1/"
    memory.post(f"{fork}{MAPS}", config_map("later"))
    assert "later" in names(memory, f"{fork}{MAPS}")
    assert "later" not in names(memory, f"{inner}api/v1/namespaces/default/configmaps")
    assert memory.harness("POST", "forks/fork-1/kubepy/clock/advance", {"by": "1h"}) == {
        "now": "2026-01-01T13:00:00Z"
    }
    assert memory.advance("0s") == NOON


def test_inner_path_is_that_of_the_innermost_fork() -> None:
    path = "/kubepy/forks/fork-1/kubepy/forks/fork-7/api/v1/namespaces/a/pods/b/exec"
    assert forks.inner_path(path) == "/api/v1/namespaces/a/pods/b/exec"
    assert forks.inner_path("/kubepy/forks/fork-1") == "/kubepy/forks/fork-1"


def test_watch_of_a_fork_ends_when_the_fork_is_dropped(memory: HarnessApi) -> None:
    fork = memory.fork()
    stream = memory.stream(f"{fork}{MAPS}?watch=1")
    memory.post(f"{fork}{MAPS}", config_map("a"))
    assert stream.event()["object"]["metadata"]["name"] == "a"
    memory.harness("DELETE", "forks/fork-1")
    assert stream.event() is None


@pytest.mark.parametrize(
    "path",
    [f"{MAPS}?watch=1", "/kubepy/clock/wait?for=1h", "/timeline?watch=1"],
)
def test_stream_of_a_fork_ends_with_it(memory: HarnessApi, path: str) -> None:
    stream = memory.stream(f"{memory.fork()}{path}")
    memory.harness("DELETE", "forks/fork-1")
    stream.future.result(SECONDS)
    assert memory.log == []


def test_dropped_fork_leaves_neither_objects_nor_threads(memory: HarnessApi) -> None:
    fork = memory.fork()
    names(memory, f"{fork}{MAPS}")
    assert count_of_caches() == 2
    cluster = weakref.ref(memory.chain._harness.forks.get("fork-1").cluster)
    memory.harness("DELETE", "forks/fork-1")

    def is_gone() -> bool:
        gc.collect()
        return cluster() is None

    eventually(is_gone)
    assert count_of_caches() == 1


def test_forks_end_with_their_server(new_folder: Callable[[], Path]) -> None:
    api = HarnessApi(new_folder(), ServeOptions())
    fork = api.fork()
    names(api, f"{fork}{MAPS}")
    assert count_of_caches() == 2
    api.close()
    assert count_of_caches() == 0


# --- WebSockets of forks


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedFolder]:
    """A server with TLS, whose cluster has a pod with a container."""
    fakemachine.install(monkeypatch)
    served = ServedFolder(make_folder(tmp_path))
    yield served
    served.close()
    assert served.log == []


def ask(served: ServedFolder, method: str, path: str, body: Any = None) -> Any:
    """Send a request over the network that succeeds; return its document."""
    request = urllib.request.Request(
        f"{served.url}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "authorization": f"Bearer {served.keys.token}",
            "content-type": "application/json",
        },
    )
    context = ssl.create_default_context(cadata=served.keys.ca.decode())
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


def fork_of(served: ServedFolder, below: str = "") -> str:
    """Make a fork; return the path below which its API is, without the last slash."""
    server: str = ask(served, "POST", f"{below}/kubepy/forks", {})["server"]
    return server.removesuffix("/")


def watch_socket(served: ServedFolder, path: str) -> WebSocketClient:
    return WebSocketClient(served, f"{path}?watch=1", origin="https://console.example.com")


def test_watch_below_forks_may_be_a_websocket(served: ServedFolder) -> None:
    fork = fork_of(served, fork_of(served))
    client = watch_socket(served, f"{fork}{MAPS}")
    assert isinstance(client.opening, events.AcceptConnection)
    ask(served, "POST", f"{fork}{MAPS}", config_map("of-fork"))
    assert json.loads(client.event().data)["object"]["metadata"]["name"] == "of-fork"
    client.close()


@pytest.mark.parametrize("depth", [1, 2])
def test_websockets_of_a_fork_end_with_it(served: ServedFolder, depth: int) -> None:
    fork = ""
    for _ in range(depth):
        fork = fork_of(served, fork)
    watch = watch_socket(served, f"{fork}{MAPS}")
    session = WebSocketClient(
        served, f"{fork}{PODS}/web/exec?command=wait&stdout=true", ["v4.channel.k8s.io"]
    )
    assert session.event().data == b"\x01"
    ask(served, "DELETE", "/kubepy/forks/fork-1")
    assert watch.messages() == []
    assert session.messages() == []


# --- reset


def test_reset_shows_watchers_each_change(memory: HarnessApi) -> None:
    for name in ("kept", "changed", "removed", "replaced"):
        memory.post(MAPS, config_map(name, of="before"))
    kept = memory.get(f"{MAPS}/kept").json()
    replaced = memory.get(f"{MAPS}/replaced").json()
    memory.fork()
    memory.delete(f"{MAPS}/removed")
    memory.delete(f"{MAPS}/replaced")
    memory.post(MAPS, config_map("replaced", of="before"))
    memory.patch(f"{MAPS}/changed", {"data": {"of": "after"}})
    memory.post(MAPS, config_map("new"))
    revision = memory.get(MAPS).json()["metadata"]["resourceVersion"]
    stream = memory.stream(f"{MAPS}?watch=1&resourceVersion={revision}")

    assert memory.harness("POST", "reset", {"to": "fork-1"}) == {"now": NOON}
    events = [stream.event() for _ in range(5)]
    stream.close()
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("MODIFIED", "changed"),
        ("DELETED", "new"),
        ("ADDED", "removed"),
        ("DELETED", "replaced"),
        ("ADDED", "replaced"),
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(revision)
    assert memory.get(f"{MAPS}/kept").json() == kept
    assert memory.get(f"{MAPS}/replaced").json()["metadata"]["uid"] == replaced["metadata"]["uid"]
    assert memory.get(f"{MAPS}/changed").json()["data"] == {"of": "before"}


def test_reset_works_again_and_again_and_takes_back_time_and_kinds(memory: HarnessApi) -> None:
    memory.fork()
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    for _ in range(2):
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert memory.post(path, definition).status == 201
        eventually(lambda: memory.get(widgets).status == 200)
        assert memory.advance("1h") == "2026-01-01T13:00:00Z"
        assert memory.harness("POST", "reset", {"to": "fork-1"}) == {"now": NOON}
        assert memory.get(widgets).status == 404


def test_controllers_go_on_from_the_fork_after_a_reset(
    new_harness: Callable[..., HarnessApi],
) -> None:
    api = new_harness(controllers=ServeOptions().controllers)
    api.fork()
    for name in ("first", "second"):
        assert api.post(DEPLOYMENTS, deployment(name)).status == 201
        eventually(lambda: len(names(api, PODS)) == 1)
        api.advance("1m")

        def is_available(name: str = name) -> bool:
            status = api.get(f"{DEPLOYMENTS}/{name}").json()["status"]
            return bool(status.get("availableReplicas"))

        eventually(is_available)
        assert api.harness("POST", "reset", {"to": "fork-1"}) == {"now": NOON}
        assert names(api, PODS) == names(api, DEPLOYMENTS) == []


def test_reset_of_a_cluster_in_a_folder_says_that_it_is_not_possible(
    new_harness: Callable[..., HarnessApi], new_folder: Callable[[], Path]
) -> None:
    folder = new_folder()
    api = new_harness(folder)
    fork = api.fork()
    answer = api.post("/kubepy/reset", {"to": "fork-1"})
    assert (answer.status, answer.json()["message"]) == (
        405,
        f"only a cluster in memory can be reset, and this one is in the folder {folder}",
    )
    assert api.post(f"{fork}/kubepy/forks", {}).status == 201  # a fork is in memory
    assert api.post(f"{fork}/kubepy/reset", {"to": "fork-1"}).status == 200


# --- time


def test_advance_lets_the_controllers_work_at_each_moment(
    new_harness: Callable[..., HarnessApi], new_folder: Callable[[], Path]
) -> None:
    folder = new_folder()
    settings = folder / "kubepy.yaml"
    settings.write_text(f'{settings.read_text()}clock: "{NOON}"\n')
    api = new_harness(folder, controllers=ServeOptions().controllers)
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    assert api.post(CRON_JOBS, cron_job("0 * * * *")).status == 201
    assert api.advance("3h30m") == "2026-01-01T15:30:00Z"
    times = [item["metadata"]["creationTimestamp"] for item in api.get(jobs).json()["items"]]
    assert sorted(times) == [f"2026-01-01T{hour}:00:00Z" for hour in (13, 14, 15)]


def test_advance_runs_only_the_controllers_of_the_server(memory: HarnessApi) -> None:
    memory.post(DEPLOYMENTS, deployment("web"))
    memory.advance("1h")
    assert names(memory, PODS) == []


def test_advance_of_the_systems_time_says_that_it_is_not_possible(
    new_harness: Callable[..., HarnessApi],
) -> None:
    api = new_harness(settings={})
    answer = api.post("/kubepy/clock/advance", {"by": "1h"})
    assert (answer.status, answer.json()["message"]) == (
        405,
        "the time of this cluster is the system's, which cannot be moved",
    )


def test_advance_ends_when_its_client_has_gone(new_harness: Callable[..., HarnessApi]) -> None:
    api = new_harness(controllers=ServeOptions().controllers)
    assert api.post(CRON_JOBS, cron_job("* * * * *")).status == 201
    gone = asyncio.Event()
    gone.set()
    headers = {"authorization": f"Bearer {TOKEN}"}
    scope = scope_of("POST", "/kubepy/clock/advance", headers)
    body = {"type": "http.request", "body": b'{"by": "50000h"}', "more_body": False}
    answer = api.send(scope, [body], gone)
    assert answer.json()["now"] < "2031"


def test_concurrent_resets_moves_and_writes_do_no_harm(
    new_harness: Callable[..., HarnessApi],
) -> None:
    api = new_harness(controllers=ServeOptions().controllers)
    api.fork()
    statuses: list[int] = []

    def work(number: int) -> None:
        for turn in range(5):
            statuses.append(api.post(MAPS, config_map(f"m-{number}-{turn}")).status)
            statuses.append(api.post("/kubepy/reset", {"to": "fork-1"}).status)
            statuses.append(api.post("/kubepy/clock/advance", {"by": "10m"}).status)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 201}
    assert api.harness("POST", "reset", {"to": "fork-1"}) == {"now": NOON}
    assert not [name for name in names(api, MAPS) if name.startswith("m-")]


# --- plans and diagnoses


def test_plan_is_the_document_of_the_command_and_changes_nothing(either: HarnessApi) -> None:
    either.post(DEPLOYMENTS, deployment("web"))
    command = ["kubectl", "scale", "deploy/web", "--replicas=3"]
    plan = either.harness("POST", "plan", {"command": command})
    assert (plan["kind"], plan["command"]) == ("Plan", command[1:])
    assert plan["workloads"][0]["desired"] == 3
    assert either.get(f"{DEPLOYMENTS}/web").json()["spec"]["replicas"] == 1
    assert names(either, PODS) == []


def test_plan_reads_manifests_from_its_standard_input(memory: HarnessApi) -> None:
    body = {"command": ["apply", "-f", "-"], "stdin": json.dumps(deployment("new"))}
    plan = memory.harness("POST", "plan", body)
    assert [workload["name"] for workload in plan["workloads"]] == ["new"]


def test_why_is_the_document_of_the_command(memory: HarnessApi) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big"},
        "spec": {
            "containers": [{"name": "a", "image": "a:1", "resources": {"requests": {"cpu": "900"}}}]
        },
    }
    memory.post(PODS, pod)
    why = memory.harness("POST", "why", {"object": "pod/big"})
    assert (why["kind"], why["state"], why["object"]["name"]) == ("Why", "stuck", "big")
    answer = memory.post("/kubepy/why", {"object": "pod/big", "namespace": "kube-system"})
    assert (answer.status, answer.json()["reason"]) == (404, "NotFound")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("plan", {"command": ["nonsense"]}, 'unknown command "nonsense"'),
        ("plan", {"command": ["scale", "deploy/none", "--replicas=1"]}, "not found"),
        ("plan", {"command": ["--state=/tmp", "delete", "node", "node-1"]}, "--state"),
        ("why", {"object": "nonsense/web"}, 'resource type "nonsense"'),
        ("why", {"object": "--help"}, "--help"),
    ],
)
def test_command_that_fails_is_an_error_of_its_client(
    memory: HarnessApi, path: str, body: Any, message: str
) -> None:
    answer = memory.post(f"/kubepy/{path}", body)
    assert 400 <= answer.status < 500
    assert message in answer.json()["message"]


# --- who may, and bodies

PATHS = [
    ("POST", "forks"),
    ("GET", "forks"),
    ("DELETE", "forks/fork-1"),
    ("GET", "forks/fork-1"),
    ("POST", "reset"),
    ("POST", "clock/advance"),
    ("POST", "plan"),
    ("POST", "why"),
    ("GET", "nothing"),
]


@pytest.mark.parametrize("authorization", ["AlwaysAllow", "RBAC"])
def test_only_administrators_may(
    new_harness: Callable[..., HarnessApi], authorization: str
) -> None:
    api = new_harness(authorization=authorization)
    api.fork()
    for method, path in PATHS:
        answer = api.request(method, f"/kubepy/{path}", {}, as_user("jane", "developers"))
        assert (answer.status, answer.json()["reason"]) == (403, "Forbidden")
        assert f'cannot {method.lower()} path "/kubepy/{path}"' in answer.json()["message"]
        answer = api.request(method, f"/kubepy/{path}", {}, token="")
        assert (answer.status, answer.json()["reason"]) == (401, "Unauthorized")
    assert api.request("GET", "/kubepy/forks", headers=MASTER).status == 200
    assert len(api.harness("GET", "forks")["forks"]) == 1


def test_fork_enforces_the_roles_of_its_origin(new_harness: Callable[..., HarnessApi]) -> None:
    api = new_harness(authorization="RBAC")
    fork = api.fork()
    assert api.get(f"{fork}{MAPS}", as_user("jane")).status == 403
    assert api.get(f"{fork}{MAPS}", token="").status == 401
    assert api.get(f"{fork}{MAPS}", MASTER).status == 200


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("forks", {"name": "x"}, "name"),
        ("reset", {}, "to"),
        ("reset", {"to": 7}, "to"),
        ("reset", {"to": "fork-99"}, "to"),
        ("reset", {"to": " ", "more": None}, "more"),
        ("clock/advance", {}, "by"),
        ("clock/advance", {"by": None}, "by"),
        ("clock/advance", {"by": 30}, "by"),
        ("clock/advance", {"by": "soon"}, "by"),
        ("clock/advance", {"by": "-1h"}, "by"),
        ("clock/advance", {"by": "99999999d"}, "by"),
        ("clock/advance", {"by": "1e400h"}, "by"),
        ("clock/advance", {"by": "\ud800"}, "by"),
        ("plan", {}, "command"),
        ("plan", {"command": "scale deploy/web"}, "command"),
        ("plan", {"command": ["scale", 3]}, "command"),
        ("plan", {"command": ["a\0b"]}, "command"),
        ("plan", {"command": ["get"], "stdin": []}, "stdin"),
        ("why", {"object": ["pod", "a"]}, "object"),
        ("why", {"object": "pod/a", "namespace": 1}, "namespace"),
        ("why", {"object": "pod/a", "\ud800": 1}, "?"),
    ],
)
def test_wrong_field_of_a_body_is_named(
    memory: HarnessApi, path: str, body: Any, field: str
) -> None:
    answer = memory.post(f"/kubepy/{path}", body)
    document = answer.json()
    assert (answer.status, document["kind"], document["reason"]) == (422, "Status", "Invalid")
    assert field in [cause["field"] for cause in document["details"]["causes"]]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"7", b"null", b"\xff", b'"x"', b"[" * 100_000, b'{"by":' * 5_000]
)
@pytest.mark.parametrize("path", ["forks", "reset", "clock/advance", "plan", "why"])
def test_body_that_is_no_object_is_refused(memory: HarnessApi, path: str, body: bytes) -> None:
    answer = memory.request("POST", f"/kubepy/{path}", body)
    assert (answer.status, answer.json()["reason"]) == (400, "BadRequest")


def test_large_body_is_refused(memory: HarnessApi) -> None:
    assert memory.request("POST", "/kubepy/plan", b" " * (4 << 20)).status == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/kubepy", 404),
        ("GET", "/kubepy/", 404),
        ("POST", "/kubepy/clock", 404),
        ("POST", "/kubepy/forks/a/b/c", 404),
        ("POST", "/kubepy/forks//api", 404),
        ("GET", "/kubepy/forks/..%2f..%2fapi/v1/pods", 404),
        ("GET", "/kubepy/reset", 405),
        ("PATCH", "/kubepy/forks", 405),
        ("PUT", "/kubepy/plan", 405),
    ],
)
def test_path_or_method_that_is_none_is_a_status(
    memory: HarnessApi, method: str, path: str, status: int
) -> None:
    answer = memory.request(method, path, {})
    assert (answer.status, answer.json()["kind"]) == (status, "Status")


def test_each_answered_request_is_heard_of(memory: HarnessApi) -> None:
    heard: list[AnsweredRequest] = []
    memory.application.hear_request = heard.append
    memory.get(f"{MAPS}?limit=5&watch=0", {"User-Agent": "client/1"})
    memory.get("/api/v1/nothing")
    assert heard == [
        AnsweredRequest("GET", MAPS, "limit=5&watch=0", "client/1", 200),
        AnsweredRequest("GET", "/api/v1/nothing", "", "", 404),
    ]
