"""``from kubepy import Cluster``: clusters, objects, command lines, time."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import kubepy as package
from kubepy import (
    AlreadyExists,
    ApiError,
    Cluster,
    CommandError,
    Conflict,
    FolderError,
    Forbidden,
    Invalid,
    NoClusterError,
    NotFound,
    UnsupportedMediaType,
)

KUBEPY = str(Path(sys.executable).with_name("kubepy"))


def config_map(name: str = "paint", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data or {"colour": "red"},
    }


def nested(depth: int) -> dict[str, Any]:
    obj: dict[str, Any] = {}
    for _ in range(depth):
        obj = {"a": obj}
    return obj


@pytest.fixture(params=["memory", "folder"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A cluster in memory, and one in a folder."""
    if request.param == "memory":
        made = Cluster.temporary()
    else:
        made = Cluster.create(tmp_path / "state", clock="2026-01-01T00:00:00Z", seed=1)
    with made:
        yield made


# --- the package ----------------------------------------------------------------------------------


def test_public_names_can_be_imported() -> None:
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="module 'kubepy' has no attribute 'nothing'"):
        _ = package.nothing  # type: ignore[attr-defined]


def test_importing_package_imports_no_other_module() -> None:
    code = (
        "import sys; before = set(sys.modules); import kubepy; print(sorted(set(sys.modules) - "
        "before))"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout == "['kubepy']\n"


def test_importing_cluster_does_no_work() -> None:
    """Watch the import: the modules that it loads, what it opens beside their code, its threads."""
    code = """if True:
        import sys, threading
        events = set()

        def watch(event, arguments):
            is_code = event == "open" and str(arguments[0]).endswith((".py", ".pyc", ".so"))
            if event in ("import", "exec", "compile", "marshal.loads", "os.listdir") or is_code:
                return
            if event.startswith(("open", "os.", "socket", "subprocess", "sqlite3", "_thread")):
                events.add((event, str(arguments)))

        before = set(sys.modules)
        sys.addaudithook(watch)
        import kubepy.clusters
        loaded = set(sys.modules) - before
        print(sorted(events), threading.active_count())
        print(sorted(name for name in loaded if name.startswith("kubepy")))
        print(sorted(loaded & {"inspect", "dataclasses", "sqlite3", "random", "hashlib", "uuid"}))
    """
    command = [sys.executable, "-B", "-c", code]  # the first import would write bytecode
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert done.stdout.splitlines() == [
        "[] 1",
        "['kubepy', 'kubepy.api', 'kubepy.api.meta', 'kubepy.arguments', 'kubepy.cli', "
        "'kubepy.cli.errors', 'kubepy.cli.names', 'kubepy.clusters', 'kubepy.lazy', "
        "'kubepy.quoting', 'kubepy.results', 'kubepy.runtime', 'kubepy.runtime.objectrequests', "
        "'kubepy.storage', 'kubepy.storage.errors', "
        "'kubepy.storage.frozen', 'kubepy.storage.model']",
        "[]",
    ]


# --- clusters -------------------------------------------------------------------------------------


def test_created_folder_is_that_of_init(tmp_path: Path) -> None:
    with Cluster.create(
        tmp_path / "python", nodes=2, clock="2026-01-01T00:00:00Z", seed=7
    ) as cluster:
        assert [node["metadata"]["name"] for node in cluster.client.list("nodes")] == [
            "node-1",
            "node-2",
        ]
        assert (cluster.folder, cluster.seed) == (str(tmp_path / "python"), 7)
    subprocess.run(
        [KUBEPY, "--state=shell", "init", "--nodes=2", "--clock=2026-01-01T00:00:00Z", "--seed=7"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    made = {
        path.relative_to(tmp_path / "python"): path.read_text()
        for path in (tmp_path / "python").rglob("*.yaml")
    }
    assert made
    assert made == {
        path.relative_to(tmp_path / "shell"): path.read_text()
        for path in (tmp_path / "shell").rglob("*.yaml")
    }


def test_create_refuses_folder_with_cluster(tmp_path: Path) -> None:
    Cluster.create(tmp_path / "state", nodes=0).close()
    with pytest.raises(FolderError, match=r"there is a cluster in .* already"):
        Cluster.create(tmp_path / "state")
    with Cluster.open(tmp_path / "state") as cluster:
        assert cluster.client.list("nodes") == []


def test_open_refuses_folder_without_cluster(tmp_path: Path) -> None:
    with pytest.raises(NoClusterError):
        Cluster.open(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clock": "yesterday"}, "clock='yesterday': must be a time such as 2026-01-01T00:00:00Z"),
        (
            {"clock": "2300-01-01T00:00:00Z"},
            "clock: '2300-01-01T00:00:00Z' is not between the years 1678 and 2261",
        ),
        ({"settings": {"foo": 1}}, "settings: foo: unknown setting"),
        (
            {"settings": {"reconcile": "sometimes"}},
            'settings: reconcile: "sometimes" is not one of auto, never',
        ),
        ({"settings": {"seed": 3}}, "settings: seed: must be given as seed="),
        ({"clock": datetime(2026, 1, 1)}, "the clock 2026-01-01T00:00:00 has no time zone"),
        ({"nodes": -1}, "nodes=-1: must be greater than or equal to 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        Cluster.temporary(**options)
    with pytest.raises(ValueError, match=message):
        Cluster.create(tmp_path / "state", **options)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": "3"}, "nodes='3': must be a whole number"),
        ({"nodes": 2.5}, "nodes=2.5: must be a whole number"),
        ({"nodes": True}, "nodes=True: must be a whole number"),
        ({"clock": 5}, "clock=5: must be a datetime, a string or None"),
        ({"seed": [1]}, "seed=[1]: must be a whole number, a string or None"),
        ({"settings": "x"}, "settings='x': must be a dict or None"),
        ({"settings": {1: 2}}, "settings={1: 2}: must be a dict or None"),
    ],
)
def test_options_of_wrong_type_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        Cluster.temporary(**options)
    with pytest.raises(TypeError, match=re.escape(message)):
        Cluster.create(tmp_path / "state", **options)
    assert not (tmp_path / "state").exists()


def test_closed_cluster_refuses_work(cluster: Cluster) -> None:
    cluster.close()
    cluster.close()
    assert repr(cluster).endswith(" closed>")
    with pytest.raises(ValueError, match="this cluster is closed"):
        cluster.client.list("pods")
    with pytest.raises(ValueError, match="this cluster is closed"):
        cluster.run("get pods")


def test_fork_and_origin_do_not_see_each_other(cluster: Cluster) -> None:
    cluster.client.create(config_map("both"))
    with cluster.fork() as fork:
        cluster.client.create(config_map("origin"))
        fork.client.delete("cm/both")
        fork.run("create cm fork --from-literal=a=b", check=True)
        assert [obj["metadata"]["name"] for obj in fork.client.list("cm")] == ["fork"]
        assert [obj["metadata"]["name"] for obj in cluster.client.list("cm")] == ["both", "origin"]
        assert fork.folder == ""


def test_temporary_clusters_are_independent_and_alike() -> None:
    first, second = Cluster.temporary(nodes=2), Cluster.temporary(nodes=2)
    first.run("create deployment web --image=nginx", check=True)
    assert second.client.list("deployments") == []
    second.run("create deployment web --image=nginx", check=True)
    assert first.settle()
    assert second.settle()
    assert first.client.list("pods") == second.client.list("pods")
    other = Cluster.temporary(nodes=2, seed=2)
    other.run("create deployment web --image=nginx", check=True)
    other.settle()
    assert other.client.list("pods") != first.client.list("pods")


def test_cluster_sees_what_other_processes_write(tmp_path: Path) -> None:
    with Cluster.create(tmp_path / "state", clock="2026-01-01T00:00:00Z") as cluster:
        environment = {**os.environ, "KUBEPY_STATE": cluster.folder}
        for command in (
            "create cm paint --from-literal=a=b",
            f"create -f {__file__.replace('.py', '.yaml')}",
        ):
            subprocess.run(
                [KUBEPY, *command.split()], env=environment, check=True, capture_output=True
            )
        assert cluster.client.get("cm/paint")["data"] == {"a": "b"}
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}}
        assert cluster.client.create(widget)["metadata"]["name"] == "one"
        subprocess.run(
            [KUBEPY, "delete", "crd", "widgets.example.com"],
            env=environment,
            check=True,
            capture_output=True,
        )
        with pytest.raises(ValueError, match='no matches for kind "Widget"'):
            cluster.client.create(widget)
        settings = Path(cluster.folder, "kubepy.yaml")
        settings.write_text(settings.read_text().replace("2026-01-01", "2026-02-01"))
        assert cluster.now == datetime(2026, 2, 1, tzinfo=UTC)


# --- objects --------------------------------------------------------------------------------------


def test_object_is_created_read_changed_and_deleted(cluster: Cluster) -> None:
    client = cluster.client
    made = client.create(config_map())
    assert made["metadata"]["namespace"] == "default"
    assert "managedFields" not in made["metadata"]
    for get in (
        client.get("cm/paint"),
        client.get("configmaps", "paint"),
        client.get("ConfigMap", "paint"),
    ):
        assert get == made
    made["data"]["colour"] = "blue"
    assert client.get("cm/paint")["data"] == {"colour": "red"}  # each object is the caller's own
    client.update(made)
    with pytest.raises(Conflict):
        client.update(made)
    assert client.patch("cm/paint", {"data": {"size": "2"}})["data"] == {
        "colour": "blue",
        "size": "2",
    }
    assert client.patch("cm/paint", [{"op": "remove", "path": "/data/size"}], type="json")[
        "data"
    ] == {"colour": "blue"}
    client.delete("cm/paint")
    with pytest.raises(NotFound, match='configmaps "paint" not found'):
        client.get("cm/paint")
    with pytest.raises(NotFound):
        client.delete("cm", "paint")


def test_apply_takes_fields_over_only_by_force(cluster: Cluster) -> None:
    client = cluster.client
    assert client.apply(config_map())["data"] == {"colour": "red"}
    assert client.apply(config_map(), field_manager="other")["data"] == {"colour": "red"}
    with pytest.raises(Conflict, match='conflict with "other"'):
        client.apply(config_map(colour="blue"))
    assert client.apply(config_map(colour="blue"), force=True)["data"] == {"colour": "blue"}


def test_errors_of_the_api_are_exceptions(cluster: Cluster) -> None:
    client = cluster.client
    client.create(config_map())
    with pytest.raises(AlreadyExists) as raised:
        client.create(config_map())
    assert (raised.value.code, raised.value.reason) == (409, "AlreadyExists")
    assert isinstance(raised.value, ApiError)
    with pytest.raises(Invalid, match=r"metadata\.name"):
        client.create(config_map("Not_A_Name"))
    with pytest.raises(NotFound, match="namespaces"):
        client.create(config_map(), namespace="nowhere")
    with pytest.raises(Forbidden):
        client.delete("namespace", "kube-system")
    client.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
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
    )
    client.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}})
    with pytest.raises(UnsupportedMediaType):
        client.patch("widgets/one", {"metadata": {"labels": {"a": "b"}}})
    assert client.patch("widgets/one", {"metadata": {"labels": {"a": "b"}}}, type="merge")[
        "metadata"
    ]["labels"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda client: client.get("depoyments", "web"),
            'doesn\'t have a resource type "depoyments"',
        ),
        (lambda client: client.get("pods"), "name an object: pods/NAME"),
        (
            lambda client: client.create({"kind": "Pod"}),
            "an object needs apiVersion, kind and metadata",
        ),
        (
            lambda client: client.create({"apiVersion": "v2", "kind": "Pod", "metadata": {}}),
            'no matches for kind "Pod"',
        ),
        (
            lambda client: client.create(
                config_map() | {"metadata": {"name": "a", "namespace": "b"}}, namespace="c"
            ),
            'the object\'s namespace "b" is not "c"',
        ),
        (
            lambda client: client.patch("cm/x", {}, type="best"),
            "type 'best' is none of strategic, merge, json",
        ),
        (lambda client: client.get("deploy/web", "web"), "deploy/web names an object already"),
        (
            lambda client: client.create(config_map(u="\ud800")),
            "a character that UTF-8 cannot encode",
        ),
        (
            lambda client: client.create(config_map() | {"data": nested(100_000)}),
            "the object is nested too deeply",
        ),
        (
            lambda client: client.list("pods", labels="a=\ud800"),
            "labels='a=.*': has a character that UTF-8 cannot encode",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(Cluster.temporary(nodes=0).client)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda cluster: cluster.run(["get", 5]),
            "command=['get', 5]: must be a string or a list of strings",
        ),
        (
            lambda cluster: cluster.run(b"get nodes"),
            "command=b'get nodes': must be a string or a list of strings",
        ),
        (lambda cluster: cluster.run("get nodes", stdin=b"x"), "stdin=b'x': must be a string"),
        (lambda cluster: cluster.advance([1]), "by=[1]: must be a timedelta, a string or a number"),
        (lambda cluster: Cluster.open(5), "path=5: must be a string or a path"),
        (lambda cluster: cluster.client.create(None), "obj=None: must be a dict"),
        (lambda cluster: cluster.client.create([]), "obj=[]: must be a dict"),
        (
            lambda cluster: cluster.client.list("pods", labels=None),
            "labels=None: must be a string or a dict of strings",
        ),
        (
            lambda cluster: cluster.client.list("pods", labels={"app": None}),
            "labels={'app': None}: must be a string or",
        ),
        (lambda cluster: cluster.client.get("deploy", 5), "name=5: must be a string"),
        (
            lambda cluster: cluster.client.get("deploy/web", namespace=None),
            "namespace=None: must be a string",
        ),
        (
            lambda cluster: cluster.client.delete("cm/a", grace_period="5"),
            "grace_period='5': must be a whole number or",
        ),
        (
            lambda cluster: cluster.client.watch("pods", timeout="5"),
            "timeout='5': must be a number or None",
        ),
    ],
)
def test_arguments_of_wrong_type_are_named(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        call(Cluster.temporary(nodes=0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("depoyment/web",), "the server doesn't have a resource type"),
        (("deploy",), "name an object: deploy/NAME"),
        (("", "web"), "resource type"),
    ],
)
def test_timeline_refuses_what_is_no_object(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cluster.temporary(nodes=0).timeline(*arguments)


@pytest.mark.parametrize(
    ("since", "message"),
    [
        *(
            (
                text,
                f"since={text} is neither a time such as 2026-01-01T12:00:00Z nor a duration such "
                f"as 30m or 2d",
            )
            for text in ("2026-13-01T00:00:00Z", "2026-01-01", "yesterday", "")
        ),
        ("-5m", "since must not be negative: -5m"),
        ("2026-01-01T00:00:00.0000001Z", "time goes by microseconds"),
        (datetime(2026, 1, 1), "a datetime needs a time zone"),
    ],
)
def test_timeline_refuses_wrong_moments(since: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cluster.temporary(nodes=0).timeline(since=since)


def test_timeline_begins_at_moment_or_so_long_ago(cluster: Cluster) -> None:
    cluster.run("create configmap x", check=True)
    cluster.run("create namespace shop", check=True)
    ways = [cluster.now - timedelta(minutes=1), timedelta(minutes=1), "1m", 60]
    if cluster.clock:
        assert len({str(cluster.timeline(since=since)) for since in ways}) == 1
    assert [step["name"] for step in cluster.timeline("ns/shop", since="1m")["steps"]] == ["shop"]
    with pytest.raises(NotFound, match='namespaces "none" not found'):
        cluster.timeline("ns", "none")
    cluster.run("delete namespace shop", check=True)
    assert cluster.timeline("ns/shop")["steps"] != []
    assert cluster.timeline(since="1d")["since"] >= "1970"


def test_empty_namespace_of_manifest_is_unset() -> None:
    client = Cluster.temporary(nodes=0).client
    obj = client.create(config_map() | {"metadata": {"name": "a", "namespace": None}})
    assert obj["metadata"]["namespace"] == "default"


def test_value_that_json_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match="an object cannot hold"):
        Cluster.temporary(nodes=0).client.create(config_map() | {"data": {"a": object()}})


def test_list_selects_by_namespace_labels_and_fields(cluster: Cluster) -> None:
    client = cluster.client
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    client.create(config_map("one") | {"metadata": {"name": "one", "labels": {"tier": "web"}}})
    client.create(
        config_map("two") | {"metadata": {"name": "two", "labels": {"tier": "web"}}},
        namespace="shop",
    )

    def names(**options: Any) -> list[str]:
        return [obj["metadata"]["name"] for obj in client.list("configmaps", **options)]

    assert names(labels={"tier": "web"}) == ["one"]
    assert names(labels="tier", namespace=None) == ["one", "two"]
    assert names(labels="tier!=web", namespace="shop") == []
    assert names(fields={"metadata.name": "two"}, namespace=None) == ["two"]


def test_scale_and_status_are_subresources(cluster: Cluster) -> None:
    cluster.run("create deployment web --image=nginx", check=True)
    scale = cluster.client.get("deploy/web", subresource="scale")
    scale["spec"]["replicas"] = 3
    assert (
        cluster.client.patch("deploy/web", {"spec": {"replicas": 2}}, subresource="scale")["spec"][
            "replicas"
        ]
        == 2
    )
    assert cluster.client.get("deploy/web")["spec"]["replicas"] == 2


@pytest.mark.parametrize("kind", ["deployment", "statefulset"])
def test_scale_that_was_read_can_be_written(cluster: Cluster, kind: str) -> None:
    for name in ("deployment", "statefulset"):
        cluster.client.create(
            {
                "apiVersion": "apps/v1",
                "kind": {"deployment": "Deployment"}.get(name, "StatefulSet"),
                "metadata": {"name": "web"},
                "spec": {
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
                    },
                },
            }
        )
    scale = cluster.client.get(f"{kind}/web", subresource="scale")
    scale["spec"]["replicas"] = 3
    assert cluster.client.update(scale, subresource="scale")["spec"] == {"replicas": 3}
    replicas = {
        name: cluster.client.get(f"{name}/web")["spec"]["replicas"]
        for name in ("deployment", "statefulset")
    }
    assert replicas == {"deployment": 1, "statefulset": 1} | {kind: 3}
    del scale["metadata"]["uid"]  # whose it is cannot be told then
    with pytest.raises(ValueError, match='no matches for kind "Scale"'):
        cluster.client.update(scale, subresource="scale")


def test_watch_yields_changes_since_last_iteration(cluster: Cluster) -> None:
    cluster.client.create(config_map("before"))
    watch = cluster.client.watch("configmaps", labels="!hidden")
    assert list(watch) == []
    cluster.client.create(config_map("new"))
    cluster.client.patch("cm/before", {"data": {"colour": "blue"}})
    cluster.client.create(
        config_map("other") | {"metadata": {"name": "other", "labels": {"hidden": "yes"}}}
    )
    assert [(event.type, event.object["metadata"]["name"]) for event in watch] == [
        ("ADDED", "new"),
        ("MODIFIED", "before"),
    ]
    cluster.client.delete("cm/new")
    assert [(event.type, event.object["metadata"]["name"]) for event in watch] == [
        ("DELETED", "new")
    ]
    assert list(watch) == []


def test_watch_waits_for_change_of_other_thread(cluster: Cluster) -> None:
    watch = cluster.client.watch("configmaps", timeout=30)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(cluster.client.create, config_map())
        assert next(iter(watch)).object["metadata"]["name"] == "paint"


# --- command lines --------------------------------------------------------------------------------


SCRIPT = [
    "create deployment web --image=nginx --replicas=2",
    "controller --once -q",
    "get pods -o wide",
    "get deploy web -o yaml",
    "get nothing",
    "describe deploy web",
    "scale deploy/web --replicas=1",
    "config set-context --current --namespace=kube-system",
    "get pods",
    "config get-contexts",
    "config set-context --current --namespace=default",
    "delete deploy web --wait=false",
    "get pod,deploy -A",
    "rollout status deploy/none",
    "api-resources",
    "--help",
    "get --help",
    "version --client",
]


def test_output_is_that_of_the_program(tmp_path: Path) -> None:
    clusters = {"memory": Cluster.temporary(nodes=2, seed=7)}
    for name in ("python", "shell"):
        clusters[name] = Cluster.create(
            tmp_path / name, nodes=2, clock="2026-01-01T00:00:00Z", seed=7
        )
    environment = {**os.environ, "KUBEPY_STATE": clusters["shell"].folder, "HOME": str(tmp_path)}
    for command in SCRIPT:
        done = subprocess.run(
            [KUBEPY, *command.split()], env=environment, capture_output=True, text=True, check=False
        )
        for name in ("memory", "python"):
            result = clusters[name].run(command)
            assert (result.stdout, result.stderr, result.status) == (
                done.stdout,
                done.stderr,
                done.returncode,
            ), command


def test_command_is_text_or_words_with_standard_input(cluster: Cluster) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: paint}\ndata: {a: 'b'}\n"
    assert cluster.run("create -f -", stdin=manifest).stdout == "configmap/paint created\n"
    words = ["get", "cm", "paint", "-o", "jsonpath={.data.a} {.kind}"]
    assert (
        cluster.run(words).stdout
        == cluster.run("get cm paint -o 'jsonpath={.data.a} {.kind}'").stdout
        == "b ConfigMap"
    )
    with pytest.raises(ValueError, match="No closing quotation"):
        cluster.run("get 'pods")


def test_program_names_itself_as_it_is_called(cluster: Cluster) -> None:
    for program in ("kubectl", "kubepy"):
        assert f"{program} get -h" in cluster.run(f"{program} get").stderr
    assert cluster.run("get").stderr == cluster.run("kubepy get").stderr


def test_failure_is_false_and_raises_if_checked(cluster: Cluster) -> None:
    result = cluster.run("get cm nothing")
    assert not result
    assert result.status == 1
    with pytest.raises(CommandError) as raised:
        cluster.run("kubectl get cm nothing", check=True)
    assert str(raised.value) == (
        "kubectl get cm nothing: exit status 1\n"
        'Error from server (NotFound): configmaps "nothing" not found'
    )
    assert raised.value.result == result
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.command, copy.result) == (
        str(raised.value),
        raised.value.command,
        result,
    )
    assert cluster.run("get cm", check=True)


def test_other_clusters_cannot_be_reached(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.run(f"--state={tmp_path} get pods").stderr == (
        "error: --state cannot be given: this command line works on a cluster that is open "
        "already\n"
    )
    other = Cluster.create(tmp_path / "other", nodes=0)
    other.client.create(config_map())
    for command in (
        f"config set-cluster other --server={other.folder}",
        "config set-context other --cluster=other",
        "config use-context other",
    ):
        assert cluster.run(command)
    assert "the context is one of another cluster" in cluster.run("get cm paint").stderr


def test_users_surroundings_do_not_count(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "kuberc").write_text("not: [a kuberc")
    plugin = tmp_path / "bin" / "kubepy-hello"
    plugin.parent.mkdir()
    plugin.write_text("#!/bin/sh\necho hello\n")
    plugin.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBEPY_STATE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("KUBERC", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", f"{plugin.parent}:{os.environ['PATH']}")
    assert cluster.run("kubectl get nodes").stdout.count("node-1") == 1
    assert (
        'unknown command "hello"' in cluster.run("hello").stderr
    )  # a plugin would replace this process


def test_command_leaves_process_as_it_was(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (
        os.getcwd(),
        dict(os.environ),
        sys.stdout,
        sys.stderr,
        sys.stdin,
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
    )
    warn = cluster.client
    for command in (
        "run web --image=nginx --as=jane -v=8",
        "get pods --as=nobody",
        "controller --once",
        "wait --for=condition=Ready pod/web --timeout=10s",
        "diff -f -",
        "explain pods",
        "nothing",
    ):
        cluster.run(command, stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert before == (
        os.getcwd(),
        dict(os.environ),
        sys.stdout,
        sys.stderr,
        sys.stdin,
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
    )
    assert capfd.readouterr() == ("", "")
    assert cluster.client is warn
    assert (
        cluster.run("auth whoami -o jsonpath={.status.userInfo.username}").stdout
        == "kubernetes-admin"
    )
    assert cluster.run("get pods").stderr == ""  # no log of -v=8 is left


def test_threads_do_not_disturb_each_other() -> None:
    def work(number: int) -> list[str]:
        with Cluster.temporary(seed=number % 3, nodes=1 + number % 2) as cluster:
            cluster.run(
                f"create deployment web --image=nginx --replicas={1 + number % 2}", check=True
            )
            cluster.run("controller --once", check=True)
            cluster.run("rollout status deploy/web --timeout=60s", check=True)
            return [cluster.run("get pods,nodes -o wide").stdout, cluster.run("get nothing").stderr]

    alone = [work(number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(6))) == alone


def test_threads_take_turns_on_one_cluster(cluster: Cluster) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: cluster.client.create(config_map(f"map-{number}")), range(20)))
        outputs = set(
            pool.map(lambda number: cluster.run("get cm --no-headers -o name").stdout, range(8))
        )
    assert len(outputs) == 1
    assert len(cluster.client.list("cm")) == 20


def test_editor_gets_object(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/red/green/")
    cluster.client.create(config_map())
    assert cluster.run("edit cm/paint").stdout == "configmap/paint edited\n"
    assert cluster.client.get("cm/paint")["data"] == {"colour": "green"}


@pytest.mark.parametrize("command", ["fsck", "git setup", "git resolve"])
def test_cluster_in_memory_has_no_folder(command: str) -> None:
    result = Cluster.temporary(nodes=0).run(command)
    assert (result.stderr, result.status) == (
        "error: this cluster is in memory: it has no folder\n",
        1,
    )


# --- time -----------------------------------------------------------------------------------------


def test_settle_runs_controllers(cluster: Cluster) -> None:
    cluster.run("create deployment web --image=nginx --replicas=2", check=True)
    assert cluster.client.list("pods") == []
    assert cluster.settle()
    assert [pod["status"]["phase"] for pod in cluster.client.list("pods")] == ["Running", "Running"]


@pytest.mark.parametrize("by", ["90m", timedelta(minutes=90), 5400, 5400.0])
def test_advance_moves_own_time(cluster: Cluster, by: Any) -> None:
    assert cluster.now == cluster.clock == datetime(2026, 1, 1, tzinfo=UTC)
    cluster.run("create cronjob tick --image=nginx --schedule='0 * * * *' -- true", check=True)
    cluster.advance(by)
    assert cluster.now == cluster.clock == datetime(2026, 1, 1, 1, 30, tzinfo=UTC)
    [job] = cluster.client.list("jobs")
    assert job["metadata"]["creationTimestamp"] == "2026-01-01T01:00:00Z"


def test_settle_stops_at_limit(cluster: Cluster) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "slow"},
        "spec": {
            "template": {
                "metadata": {"annotations": {"kubepy.dev/runs-for": "1h"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]},
            }
        },
    }
    cluster.client.create(job)
    assert not cluster.settle("10m")
    assert cluster.now == datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
    assert cluster.settle()
    assert cluster.client.get("job/slow")["status"]["succeeded"] == 1
    assert cluster.now >= datetime(2026, 1, 1, 1, 0, tzinfo=UTC)
    assert cluster.now < datetime(2026, 1, 1, 1, 1, tzinfo=UTC)


def test_faults_happen_by_seed(tmp_path: Path) -> None:
    faults = {"pods": [{"rate": 0.5, "outcome": "not-ready"}]}
    ready = set()
    for seed in (1, 1, 2, 3):
        cluster = Cluster.temporary(seed=seed, settings={"faults": faults})
        cluster.run("create deployment web --image=nginx --replicas=8", check=True)
        cluster.settle("1m")
        ready.add((seed, cluster.client.get("deploy/web")["status"]["readyReplicas"]))
    assert len(ready) == 3
    (tmp_path / "faults.yaml").write_text("pods: [{outcome: not-ready}]")
    cluster = Cluster.temporary()
    cluster.run("create deployment web --image=nginx", check=True)
    result = cluster.run(f"rollout status deploy/web --timeout=5s --faults {tmp_path}/faults.yaml")
    assert result.status == 1
    assert "faults: seed 1\n" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["faults.yaml"]
    cluster.run("rollout restart deploy/web", check=True)
    assert cluster.run("rollout status deploy/web --timeout=5s")  # without faults again


def test_system_time_cannot_be_moved(tmp_path: Path) -> None:
    for cluster in (Cluster.temporary(clock=None), Cluster.create(tmp_path / "state")):
        assert cluster.clock is None
        assert abs(cluster.now - datetime.now(UTC)) < timedelta(seconds=5)
        with pytest.raises(ValueError, match="time is the system's"):
            cluster.advance("1s")


@pytest.mark.parametrize("by", ["100000d", 1e12, float("inf"), timedelta(days=100000)])
def test_time_stays_in_the_years_of_a_clock(cluster: Cluster, by: Any) -> None:
    for move in (cluster.advance, cluster.settle):
        with pytest.raises(ValueError, match="the clock must stay between the years 1678 and 2261"):
            move(by)
    assert cluster.now == datetime(2026, 1, 1, tzinfo=UTC)
    assert cluster.run("get nodes")


# --- commands that wait ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["get cm -w", "get cm -w --as=jane -v=6", "controller --watch"])
def test_waiting_command_lets_others_work_and_ends_with_cluster(
    cluster: Cluster, command: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cluster.run, command)
        for number in range(5):
            cluster.client.create(config_map(f"map-{number}"))
            assert cluster.run(f"get cm map-{number} -o name").stderr == ""
            assert "kubernetes-admin" in cluster.run("auth whoami").stdout
            time.sleep(0.05)
        assert not waiting.done()
        cluster.close()
        result = waiting.result(timeout=10)
    assert (result.status, result.stderr.splitlines()[-1]) == (1, "error: this cluster is closed")


@pytest.mark.parametrize(
    "command", ["wait --for=create cm/paint --timeout=60s", "wait --for=delete cm/old"]
)
def test_other_thread_brings_about_what_is_waited_for(command: str) -> None:
    with Cluster.temporary(clock=None) as cluster, ThreadPoolExecutor(1) as pool:
        cluster.client.create(config_map("old"))
        waiting = pool.submit(cluster.run, command)
        time.sleep(0.2)
        assert not waiting.done()
        cluster.client.create(config_map())
        cluster.client.delete("cm/old")
        assert waiting.result(timeout=20).status == 0


def test_threads_settle_together() -> None:
    with Cluster.temporary(clock=None) as cluster, ThreadPoolExecutor(3) as pool:
        cluster.run("run slow --image=nginx --annotations=kubepy.dev/ready-after=1s", check=True)
        assert all(pool.map(lambda _: cluster.settle("20s"), range(3)))


@pytest.mark.parametrize("by", ["5 minutes", "-1s", -1, "", float("nan")])
def test_wrong_duration_is_refused(by: Any) -> None:
    with pytest.raises(ValueError, match=r"duration|length of time|unit"):
        Cluster.temporary(nodes=0).advance(by)
