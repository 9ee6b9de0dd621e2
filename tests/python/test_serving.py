"""``Cluster.serve``, ``Cluster.shell``, the decorator for unittest, and what the pytest plugin does
with them."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import ssl
import sys
import threading
import unittest
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kubepy
from kubepy import Cluster, CommandError
from kubepy.server.application import Application
from kubepy.serving import ClusterServer
from tests.waiting import eventually

pytest_plugins = ["pytester"]

SECONDS = 20.0
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


def ask(server: ClusterServer, path: str, method: str = "GET", body: Any = None) -> Any:
    """Send a request as another client does."""
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, headers, method=method)
    context = ssl.create_default_context(cadata=server.certificate_authority)
    with urllib.request.urlopen(request, context=context, timeout=SECONDS) as response:
        return json.load(response)


def names(server: ClusterServer, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in ask(server, path)["items"]]


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def script(folder: Path, text: str, name: str = "deploy.sh") -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{text}")
    path.chmod(0o755)


@pytest.fixture(params=["memory", "folder", "fork of a folder"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    clock = "2026-01-01T00:00:00Z"
    if request.param == "memory":
        with Cluster.temporary() as cluster:
            yield cluster
        return
    with Cluster.create(tmp_path / "state", clock=clock, seed=1) as cluster:
        if request.param == "folder":
            yield cluster
            return
        with cluster.fork() as fork:
            yield fork


# --- serve ----------------------------------------------------------------------------------------


def test_served_cluster_is_the_very_cluster(cluster: Cluster) -> None:
    cluster.client.create(config_map("of-python"))
    with cluster.serve() as server:
        assert names(server, MAPS) == ["of-python"]
        ask(server, MAPS, "POST", config_map("of-client"))
        assert cluster.client.get("cm/of-client")
        cluster.client.create(config_map("while-served"))
        assert "while-served" in names(server, MAPS)
    assert cluster.run("get cm -o name").stdout.count("configmap/") == 3


def test_command_reads_where_the_keys_of_a_server_are() -> None:
    with Cluster.temporary() as cluster, cluster.serve():
        done = cluster.run("get --raw /.well-known/openid-configuration")
        assert (done.stderr, done.status) == ("", 0)
        assert "/openid/v1/jwks" in done.stdout


def test_server_leaves_the_cluster_as_open_as_before() -> None:
    with Cluster.temporary() as cluster:
        binding = "create clusterrolebinding b --clusterrole=cluster-admin --user=u"
        commands = ("get --raw /openid/v1/jwks", f"{binding} --dry-run=server --as=somebody")
        before = [cluster.run(command) for command in commands]
        with cluster.serve(authorization="RBAC"):
            assert [cluster.run(command).status for command in commands] == [0, 1]
        assert [cluster.run(command) for command in commands] == before


def test_controllers_work_beside_a_served_cluster(cluster: Cluster) -> None:
    with cluster.serve() as server:
        cluster.run("create deployment web --image=web:1 --replicas=2", check=True)
        eventually(lambda: len(names(server, PODS)) == 2)
        assert cluster.run("rollout status deploy/web").status == 0
        cluster.advance("1h")
        assert ask(server, "/kubepy/clock/advance", "POST", {"by": "1h"})["now"].startswith(
            "2026-01-01T02:0"
        )
        assert cluster.settle()
        cluster.client.patch("deploy/web", {"spec": {"replicas": 3}})
        eventually(lambda: len(names(server, PODS)) == 3)


def test_controllers_of_a_server_are_those_that_are_asked_for() -> None:
    with Cluster.temporary() as cluster, cluster.serve(controllers="api") as server:
        deployment = json.loads(
            cluster.run("create deployment web --image=web:1 --dry-run=client -o json").stdout
        )
        ask(server, "/apis/apps/v1/namespaces/default/deployments", "POST", deployment)
        ask(server, "/kubepy/clock/advance", "POST", {"by": "1h"})
        assert names(server, PODS) == []


def test_server_ends_with_its_block(cluster: Cluster) -> None:
    with cluster.serve() as server:
        kubeconfig = server.kubeconfig
        assert server.url in Path(kubeconfig).read_text()
        application = weakref.ref(server.application)
    assert not os.path.exists(kubeconfig)
    with pytest.raises(urllib.error.URLError):
        ask(server, MAPS)
    server.close()
    del server

    def is_gone() -> bool:
        gc.collect()
        return application() is None

    eventually(is_gone)
    with cluster.serve() as again:
        assert names(again, MAPS) == []


def test_error_that_ends_a_server_is_raised_when_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    close = Application.close

    def fail(application: Application) -> None:
        close(application)
        raise ZeroDivisionError

    monkeypatch.setattr(Application, "close", fail)
    with Cluster.temporary() as cluster:
        with pytest.raises(ZeroDivisionError), cluster.serve():
            pass
        assert cluster.run("get nodes").status == 0


def test_cluster_is_served_once_at_a_time() -> None:
    with Cluster.temporary() as cluster, cluster.serve() as server:
        with pytest.raises(ValueError, match=f"served already, at {server.url}"), cluster.serve():
            pass
        assert names(server, MAPS) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"controllers": "nonsense"}, "nonsense is no group of controllers"),
        ({"authorization": "Nobody"}, "authorization='Nobody': must be AlwaysAllow or RBAC"),
    ],
)
def test_wrong_option_of_serve_is_a_value_error(options: dict[str, str], message: str) -> None:
    with (
        Cluster.temporary() as cluster,
        pytest.raises(ValueError, match=message),
        cluster.serve(**options),
    ):
        pass


def test_many_threads_use_a_served_cluster_from_both_sides() -> None:
    problems: list[BaseException] = []
    with Cluster.temporary(nodes=2) as cluster, cluster.serve() as server:

        def guarded(work: Callable[[int], object]) -> Callable[[], None]:
            def run() -> None:
                try:
                    for number in range(8):
                        work(number)
                except BaseException as error:
                    problems.append(error)

            return run

        works: list[Callable[[int], object]] = [
            lambda number: ask(server, MAPS, "POST", config_map(f"http-{number}")),
            lambda number: cluster.client.create(config_map(f"python-{number}")),
            lambda number: cluster.run(f"create cm run-{number}", check=True),
            lambda number: cluster.advance("1m"),
            lambda number: cluster.run("get pods -A", check=True),
        ]
        threads = [threading.Thread(target=guarded(work)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert problems == []
        assert len(names(server, MAPS)) == 24
        assert cluster.now.isoformat() == "2026-01-01T00:08:00+00:00"


def test_kubernetes_client_speaks_to_the_server() -> None:
    client = pytest.importorskip("kubernetes.client", reason="the client is missing")
    with Cluster.temporary(nodes=2) as cluster, cluster.serve() as server:
        api = client.CoreV1Api(server.kubernetes_client())
        assert [node.metadata.name for node in api.list_node().items] == ["node-1", "node-2"]


# --- shell ----------------------------------------------------------------------------------------

DEPLOY = """set -e
kubectl create deployment web --image=web:1
kubectl rollout status deployment/web
sleep 3600
"$PYTHON" - <<'END'
import os, re, ssl, urllib.request
config = open(os.environ["KUBECONFIG"]).read()
server, token = (re.search(rf"{word}: (\\S+)", config)[1] for word in ("server", "token"))
request = urllib.request.Request(server + "/api/v1/nodes?limit=5", headers={
    "Authorization": f"Bearer {token}", "User-Agent": "installer/1"})
urllib.request.urlopen(request, context=ssl._create_unverified_context())
END
kubectl get configmap nothing || exit 7
"""


def test_script_has_kubectl_kubeconfig_and_the_clusters_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, DEPLOY)
    monkeypatch.setenv("PYTHON", sys.executable)
    with Cluster.temporary() as cluster:
        began = cluster.now
        result = cluster.shell("./deploy.sh", folder=tmp_path)
        assert (cluster.now - began).total_seconds() >= 3600
        assert cluster.client.get("deploy/web")["status"]["availableReplicas"] == 1
    assert (result.returncode, bool(result)) == (7, False)
    assert "deployment.apps/web created\n" in result.stdout
    assert result.stderr == 'Error from server (NotFound): configmaps "nothing" not found\n'
    requests = [(request.method, request.path, request.code) for request in result.requests]
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    assert requests[:2] == [("POST", deployments, 201), ("GET", f"{deployments}/web", 200)]
    assert requests[-2:] == [
        ("GET", "/api/v1/nodes", 200),
        ("GET", f"{MAPS}/nothing", 404),
    ]
    assert [request.user_agent for request in result.requests[-2:]] == [
        "installer/1",
        f"kubectl/{kubepy.KUBERNETES_VERSION}",
    ]
    assert result.requests[-2].query == "limit=5"


def test_script_uses_the_server_that_is_there() -> None:
    with Cluster.temporary() as cluster, cluster.serve() as server:
        result = cluster.shell('echo "$KUBECONFIG"; kubectl get nodes')
        assert result.stdout.startswith(f"{server.kubeconfig}\n")
        assert [request.path for request in server.requests] == ["/api/v1/nodes"]
        assert cluster.run("get nodes")
        assert len(server.requests) == 1


def test_script_that_fails_raises_where_it_is_to_be_checked() -> None:
    with Cluster.temporary() as cluster:
        assert cluster.shell("true", check=True)
        with pytest.raises(CommandError, match=r"exit 3: exit status 3"):
            cluster.shell("exit 3", check=True)
        assert cluster.shell("./none.sh").returncode == 127


def test_script_without_end_is_stopped() -> None:
    with Cluster.temporary() as cluster:
        with pytest.raises(TimeoutError, match=r"no end within 0\.5 s"):
            cluster.shell("while true; do command sleep 0.05; done", timeout=0.5)
        assert cluster.shell("kubectl get nodes -o name").stdout == "node/node-1\n"


# --- unittest -------------------------------------------------------------------------------------


@kubepy.cluster(nodes=3)
class Decorated(unittest.TestCase):
    cluster: Cluster

    def setUp(self) -> None:
        self.cluster.client.create(config_map("of-set-up"))

    def test_first(self) -> None:
        self.cluster.client.create(config_map("a"))
        assert len(self.cluster.client.list("nodes")) == 3

    def test_second(self) -> None:
        assert [cm["metadata"]["name"] for cm in self.cluster.client.list("cm")] == ["of-set-up"]

    @kubepy.cluster(nodes=1, seed=7)
    def test_method(self) -> None:
        assert len(self.cluster.client.list("nodes")) == 1
        assert self.cluster.seed == 7

    def tearDown(self) -> None:
        assert len(self.cluster.client.list("nodes")) == 3


class DecoratedMethods(unittest.IsolatedAsyncioTestCase):
    cluster: Cluster

    @kubepy.cluster(nodes=2)
    async def test_coroutine(self) -> None:
        await asyncio.sleep(0)
        assert len(self.cluster.client.list("nodes")) == 2

    def test_other(self) -> None:
        assert getattr(self, "cluster", None) is None


@pytest.mark.parametrize("decorated", [5, object()])
def test_decorator_of_something_else_is_a_type_error(decorated: Any) -> None:
    with pytest.raises(TypeError, match="for a class or a method"):
        kubepy.cluster()(decorated)
    with pytest.raises(TypeError, match="is no unittest"):
        kubepy.cluster()(type("Plain", (), {}))


# --- pytest ---------------------------------------------------------------------------------------


def test_fixture_serves_the_cluster_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        import urllib.request, ssl, json

        def test_it(kubepy, kubepy_server):
            assert os.environ["KUBECONFIG"] == kubepy_server.kubeconfig
            kubepy.run("create cm a", check=True)
            request = urllib.request.Request(
                f"{kubepy_server.url}/api/v1/namespaces/default/configmaps/a",
                headers={"Authorization": f"Bearer {kubepy_server.token}"})
            context = ssl.create_default_context(cadata=kubepy_server.certificate_authority)
            answer = json.load(urllib.request.urlopen(request, context=context))
            assert answer["kind"] == "ConfigMap"
        """
    )
    result = pytester.runpytest()
    assert result.parseoutcomes() == {"passed": 1}, result.stdout.str()


def test_transcript_runs_a_script_beside_it(pytester: pytest.Pytester) -> None:
    script(
        pytester.path,
        'test -f "$KUBECONFIG" || exit 9\nkubectl apply -f "$(dirname "$0")/manifests"\nsleep 60\n',
    )
    (pytester.path / "manifests").mkdir()
    (pytester.path / "manifests" / "a.yaml").write_text(json.dumps(config_map("a")))
    (pytester.path / "deploy.kubepy.txt").write_text(
        "$ ./deploy.sh\n"
        "configmap/a created\n"
        "$ kubectl get cm a\n"
        "NAME   DATA   AGE\n"
        "a      0      60s\n"
        "$ ./own.sh one; cat manifests/a.yaml | wc -l\n"
        "one\n"
        "0\n"
        '$ test -z "$KUBECONFIG"\n'
        "$ ./none.sh\n"
        "! bash: line 1: ./none.sh: No such file or directory\n"
        "[127]\n"
        "-- own.sh --\n"
        '#!/bin/sh\necho "$1"\n'
    )
    result = pytester.runpytest("-vv")
    assert result.parseoutcomes() == {"passed": 1}, result.stdout.str()
    assert sorted(path.name for path in pytester.path.glob("*.sh")) == ["deploy.sh"]
