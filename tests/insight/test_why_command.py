"""`kubepy why` as a command: its states and exit status, its forms, and that it changes nothing."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from kubepy import Cluster
from kubepy.cli.main import main
from kubepy.controlplane import MANAGER_LOCK
from kubepy.insight.why.scene import value_at
from kubepy.insight.why.verdict import Question, explain
from kubepy.runtime.checkpoint import CHECKPOINT
from kubepy.storage import Key

from .incidents import job

WEB = Key("deployments.apps", "default", "web")
BROKEN = '{"spec":{"template":{"metadata":{"annotations":{"kubepy.dev/outcome":"not-ready"}}}}}'
BARE_POD = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "task"},
        "spec": {"containers": [{"name": "task", "image": "Task:1"}]},
    }
)
REPAIRED = '{"spec":{"template":{"metadata":{"annotations":{"kubepy.dev/outcome":null}}}}}'


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with a Deployment that is rolled out."""
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run("create deployment web --image=web:1 --replicas=2", check=True)
    cluster.settle()
    return cluster


def test_why_status_says_how_the_object_stands(cluster: Cluster) -> None:
    assert cluster.run("why deployment/web").status == 0
    cluster.run("annotate nodes --all kubepy.dev/ready-after=5s", check=True)
    cluster.run("set image deployment/web web=web:2", check=True)
    assert cluster.run("why deployment/web").status == 3
    cluster.run(["patch", "deployment", "web", "-p", BROKEN], check=True)
    result = cluster.run("why deployment web")
    assert (result.status, result.stdout.splitlines()[0]) == (
        2,
        "deployment.apps/web is stuck: it is not ready (not-ready)",
    )


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("why deployment/none", 'Error from server (NotFound): deployments.apps "none" not found'),
        ("why deployment/web -n none", 'Error from server (NotFound): namespaces "none" not found'),
        ("why deployment", "error: resource(s) were provided, but no name was specified"),
        ("why sheep/web", 'error: the server doesn\'t have a resource type "sheep"'),
        (
            "why deployment/web -o wide",
            'error: unable to match a printer suitable for the output format "wide", allowed '
            "formats are: text,json,yaml",
        ),
    ],
)
def test_why_bad_input_is_one_error(cluster: Cluster, command: str, error: str) -> None:
    result = cluster.run(command)
    assert (result.status, result.stdout, result.stderr.rstrip()) == (1, "", error)


def test_why_all_namespaces_asks_about_whatever_is_not_done(cluster: Cluster) -> None:
    cluster.run("create namespace shop", check=True)
    cluster.run("create quota team --hard=pods=0 -n shop", check=True)
    cluster.run("create deployment api --image=api:1 -n shop", check=True)
    cluster.run(["create", "-f", "-"], stdin=BARE_POD, check=True)
    result = cluster.run("why -A")
    heads = [line for line in result.stdout.splitlines() if " is stuck: " in line]
    assert result.status == 2
    assert [head.partition(" is ")[0] for head in heads] == [
        "deployment.apps/api in shop",
        "pod/task in default",
    ]
    remedy = """kubepy patch resourcequota/team --type=merge -p '{"spec":{"hard":{"pods":"1"}}}' -n shop"""  # noqa: E501
    assert remedy in result.stdout


def test_why_all_namespaces_leaves_no_pod_of_a_custom_resource_out(cluster: Cluster) -> None:
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "name": "app",
        "uid": "1",
        "controller": True,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "task", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "task", "image": "Task:1"}]},
    }
    cluster.run("create -f - --reconcile=never", stdin=json.dumps(pod), check=True)
    result = cluster.run("why -A --reconcile=never -o json")
    assert [item["object"]["name"] for item in json.loads(result.stdout)["items"]] == ["task"]


def test_why_all_namespaces_of_one_type_answers_all_of_it(cluster: Cluster) -> None:
    items = json.loads(cluster.run("why deployments -A -o json").stdout)["items"]
    assert [(item["object"]["name"], item["state"]) for item in items] == [("web", "done")]
    result = cluster.run("why jobs -A")
    assert (result.status, result.stdout, result.stderr) == (0, "", "No resources found\n")


def test_why_all_namespaces_says_when_everything_is_done(cluster: Cluster) -> None:
    result = cluster.run("why -A")
    assert (result.status, result.stdout) == (0, "everything is done\n")
    assert json.loads(cluster.run("why -A -o json").stdout) == {"kind": "List", "items": []}


def test_everything_of_a_cluster_without_nodes_proposes_one() -> None:
    result = Cluster.temporary(nodes=0).run("why -A")
    assert (result.status, result.stdout) == (0, "everything is done\n")
    assert "there are no nodes" in result.stderr
    assert "create -f -" in result.stderr


def test_why_file_asks_about_its_objects_as_they_are_in_the_cluster(cluster: Cluster) -> None:
    manifests = cluster.run("get deployment web -o yaml", check=True).stdout.replace(
        "replicas: 2", "replicas: 9"
    )
    result = cluster.run("why -f -", stdin=manifests)
    assert (result.status, result.stdout.splitlines()[0]) == (
        0,
        "deployment.apps/web is done: there is nothing to do (up-to-date)",
    )
    cluster.run("delete deployment web", check=True)
    result = cluster.run("why -f -", stdin=manifests)
    assert (result.status, result.stdout, result.stderr) == (
        1,
        "",
        'Error from server (NotFound): deployments.apps "web" not found\n',
    )


def test_why_several_objects_answers_each_and_exits_with_the_worst(cluster: Cluster) -> None:
    cluster.run("cordon node-1", check=True)
    cluster.run("create deployment idle --image=idle:1 --replicas=0", check=True)
    cluster.run("rollout pause deployment/web", check=True)
    cluster.run("set image deployment/web web=web:2", check=True)
    result = cluster.run("why deployments web idle")
    assert result.status == 2
    assert [line for line in result.stdout.splitlines() if line.startswith("deployment.apps")] == [
        "deployment.apps/web is stuck: the rollout is paused (paused)",
        "deployment.apps/idle is done: it is scaled to zero, so it has no pods",
    ]
    listed = json.loads(cluster.run("why deployments -l app -o json").stdout)
    assert [item["cause"] for item in listed["items"]] == ["scaled-to-zero", "paused"]
    some = cluster.run("why deployments none idle -o json")
    assert some.status == 1
    assert [item["object"]["name"] for item in json.loads(some.stdout)["items"]] == ["idle"]


def test_why_json_has_the_documented_form(cluster: Cluster) -> None:
    cluster.run(["patch", "deployment", "web", "-p", BROKEN], check=True)
    answer = json.loads(cluster.run("why deployment/web -o json").stdout)
    assert list(answer) == [
        "kind",
        "object",
        "state",
        "cause",
        "chain",
        "remedies",
        "sequence",
        "next",
    ]
    assert answer["object"] == {
        "resource": "deployments.apps",
        "namespace": "default",
        "name": "web",
    }
    undo = ["kubepy", "rollout", "undo", "deployment/web"]
    assert answer["remedies"] == [
        {"command": undo, "kind": "real", "proven": True, "finishesAfter": "0s"},
        {
            "command": ["kubepy", "patch", "deployment/web", "--type=merge", "-p", REPAIRED],
            "kind": "simulated",
            "proven": True,
            "finishesAfter": "0s",
        },
    ]
    assert answer["sequence"] == {
        "finishesAfter": "0s",
        "steps": [{"command": undo, "cause": "not-ready", "kind": "real", "after": "0s"}],
    }
    for link in answer["chain"]:
        obj = cluster.client.get(link["object"]["resource"], link["object"]["name"])
        assert value_at(obj, link["field"]) == link["value"]
        field = link["field"].replace("kubepy.dev", r"kubepy\.dev")
        shown = cluster.run(
            [
                "get",
                link["object"]["resource"],
                link["object"]["name"],
                "-o",
                f"jsonpath={{.{field}}}",
            ]
        ).stdout
        assert shown == ("" if link["value"] is None else json.dumps(link["value"]).strip('"'))


@pytest.mark.parametrize("program", ["kubectl", "kubectl kubepy"])
def test_why_remedies_begin_with_the_name_that_the_program_was_called_by(
    cluster: Cluster, program: str
) -> None:
    cluster.run(["patch", "deployment", "web", "-p", BROKEN], check=True)
    cluster.settle(0)
    with cluster._open() as local:
        outputs = [io.StringIO(), io.StringIO(), io.StringIO()]
        for words, stdout in zip(
            (["why", "deploy/web"], ["why", "deploy/web", "-o", "json"], ["plan", "-o", "json"]),
            outputs,
            strict=True,
        ):
            assert (
                main(
                    words, stdout=stdout, stderr=io.StringIO(), open_cluster=local, program=program
                )
                == 2
            )
    text, answer, plan = (output.getvalue() for output in outputs)
    assert f"  {program} rollout undo deployment/web\n" in text
    for document in (json.loads(answer), *json.loads(plan)["why"]):
        assert document["remedies"][0]["command"][:-2] == [*program.split(), "rollout"]


def test_why_remedy_in_another_namespace_names_it(cluster: Cluster) -> None:
    cluster.run("create namespace shop", check=True)
    cluster.run("create deployment web --image=web:1 -n shop", check=True)
    cluster.settle()
    cluster.run("rollout pause deployment/web -n shop", check=True)
    cluster.run("set image deployment/web web=web:2 -n shop", check=True)
    answer = json.loads(cluster.run("why deployment/web -n shop -o json").stdout)
    assert answer["remedies"][0]["command"] == [
        "kubepy",
        "rollout",
        "resume",
        "deployment/web",
        "-n",
        "shop",
    ]
    assert answer["remedies"][0]["proven"]


def test_why_context_with_a_namespace_remedies_name_theirs(tmp_path: Path) -> None:
    cluster = Cluster.create(tmp_path / "state", nodes=1, clock="2026-01-01T00:00:00Z", seed=7)
    cluster.run("create deployment web --image=web:1", check=True)
    cluster.settle()
    cluster.run("rollout pause deployment/web", check=True)
    cluster.run("set image deployment/web web=web:2", check=True)
    cluster.run("config set-context --current --namespace=kube-system", check=True)
    answer = json.loads(cluster.run("why deployment/web -n default -o json").stdout)
    assert answer["remedies"] == [
        {
            "command": ["kubepy", "rollout", "resume", "deployment/web", "-n", "default"],
            "kind": "real",
            "proven": True,
            "finishesAfter": "0s",
        }
    ]


def test_why_changes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with Cluster.create(folder, nodes=3, clock="2026-01-01T00:00:00Z", seed=7) as cluster:
        cluster.run("create deployment web --image=web:1 --replicas=2", check=True)
        cluster.settle()
        cluster.run(["patch", "deployment", "web", "-p", BROKEN], check=True)
        cluster.settle(0)
        before = snapshot(folder)
        assert cluster.run("why deployment/web").status == 2
        assert cluster.run("why pods -l app=web -o json").status == 2
        assert cluster.why("deploy/web").remedies[0].proven
        assert snapshot(folder) == before


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the time of change and the bytes of each file; of the index's lists of readers
    neither."""
    return {
        str(path.relative_to(folder)): (os.stat(path).st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


def test_why_same_cluster_same_bytes(cluster: Cluster) -> None:
    cluster.run(["patch", "deployment", "web", "-p", BROKEN], check=True)
    outputs = {
        again.run("why deployment/web").stdout for again in (cluster, cluster, cluster.fork())
    }
    assert len(outputs) == 1


def test_why_text_fits_in_80_columns_and_is_plain_in_a_pipe(cluster: Cluster) -> None:
    cluster.run(["patch", "deployment", "web", "-p", BROKEN], check=True)
    output = cluster.run("why deployment/web").stdout
    assert "\033" not in output
    assert (
        max(len(line) for line in output.splitlines() if not line.startswith("  kubepy patch"))
        <= 80
    )


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_why_on_a_terminal_is_coloured(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubepy.cli.main import main

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with cluster._open() as local:
        main(["why", "deployment/web"], stdout=terminal, stderr=io.StringIO(), open_cluster=local)
    assert terminal.getvalue().startswith("\033[32;1mdeployment.apps/web is done")


# --- nobody runs the controllers ------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--reconcile=never"], []])
def test_why_without_controllers_says_so(
    cluster: Cluster, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not words:
        monkeypatch.setenv("KUBEPY_RECONCILE", "never")
    cluster.run("set image deployment/web web=web:2", check=True)
    answer = json.loads(cluster.run(["why", "deployment/web", "-o", "json", *words]).stdout)
    assert (answer["state"], answer["cause"], answer["next"]) == ("stuck", "no-controllers", None)
    assert answer["remedies"] == [
        {
            "command": ["kubepy", "controller", "--once"],
            "kind": "real",
            "proven": True,
            "finishesAfter": "0s",
        }
    ]


def test_why_without_controllers_that_need_time_runs_them_until_settled() -> None:
    cluster = Cluster.temporary(nodes=1, settings={"reconcile": "never"})
    cluster.run("annotate nodes --all kubepy.dev/ready-after=90s", check=True)
    cluster.run("create deployment web --image=web:1", check=True)
    answer = cluster.why("deploy/web")
    assert (answer.state, answer.cause) == ("stuck", "no-controllers")
    assert [(remedy.command, remedy.finishes_after) for remedy in answer.remedies] == [
        (("controller", "--until-settled"), 90.0)
    ]


def test_why_without_controllers_done_is_done(cluster: Cluster) -> None:
    assert cluster.run("why deployment/web --reconcile=never").status == 0


def test_why_without_controllers_known_trouble_is_named(cluster: Cluster) -> None:
    cluster.run(["patch", "deployment", "web", "-p", BROKEN], check=True)
    cluster.settle(0)
    answer = json.loads(cluster.run("why deployment/web -o json --reconcile=never").stdout)
    assert (answer["state"], answer["cause"]) == ("stuck", "not-ready")


@pytest.mark.parametrize(
    ("reconcilers", "cause"),
    [
        (["kubelet", "node-faults"], "no-controllers"),
        (["kubelet", "deployment-controller"], "rolling-out"),
    ],
)
def test_why_beside_a_server_asks_what_it_runs(
    cluster: Cluster, reconcilers: list[str], cause: str
) -> None:
    cluster.run("set image deployment/web web=web:2", check=True)
    with cluster._open() as local:
        record = json.loads(local.store.meta(CHECKPOINT) or "")
        local.store.set_values(
            {CHECKPOINT: json.dumps({**record, "reconcilers": [*reconcilers, "settings"]})}
        )
        with local.store.hold(MANAGER_LOCK):
            answer = explain(Question(local, WEB))
    assert answer.cause == cause
    assert answer.remedies == ()


def test_why_manifest_with_backslashes_is_the_same_in_every_shell(cluster: Cluster) -> None:
    """The echo of some shells makes a line break of a backslash and an n."""
    manifest = job(
        container='args: ["-c", "a\\nb"]', pod="priorityClassName: none, schedulerName: x"
    )
    cluster.run("create priorityclass none --value=1", check=True)
    cluster.run("apply -f -", stdin=manifest, check=True)
    lines = cluster.run("why job/report").stdout.splitlines()
    [line] = [line for line in lines if "replace --force" in line]
    assert line.startswith("  printf '%s\\n' '{")
