"""``kubepy plan``: its text, its document, its exit status, and that it changes nothing."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster, CommandError
from kubepy.cli.main import main
from tests.cli.conftest import Done, Kubepy

SETTINGS = {"kubelet": {"readyAfter": "5s", "stopsAfter": "3s"}}


def rolled_out(
    *, nodes: int = 3, replicas: int = 3, clock: str | None = "2026-01-01T00:00:00Z"
) -> Cluster:
    """Return a cluster with a Deployment whose pods take 5 s to become ready, and 3 s to stop."""
    cluster = Cluster.temporary(nodes=nodes, seed=7, settings=SETTINGS, clock=clock)
    cluster.run(f"create deployment web --image=web:1 --replicas={replicas}", check=True)
    cluster.settle(0 if clock is None else "24h")
    return cluster


def plan(cluster: Cluster, command: str, stdin: str = "") -> dict[str, Any]:
    result = cluster.run(f"plan -o json {command}", stdin=stdin)
    assert result.stdout, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    hurts = 3 if document["harm"] else 0
    assert result.status == (hurts if document["finishes"] else 2)
    return document


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Return the time and the content of every file, and the time of every folder."""

    def content(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

    return {
        str(path): (path.stat().st_mtime_ns, content(path))
        for path in folder.rglob("*")
        if path.name != ".kubepy"
    }  # SQLite makes files in that one when it reads


# --- text -----------------------------------------------------------------------------------------


def test_text_shows_waves_workloads_and_end() -> None:
    cluster = rolled_out()
    result = cluster.run("plan set image deploy/web web=web:2")
    lines = result.stdout.splitlines()
    assert result.status == 0
    assert lines[0] == "deployment.apps/web image updated"
    assert lines[2].startswith("now        ~ deployment web changed: web:1 to web:2")
    assert lines[2].endswith("3/3 ▇▇▇▇▇▇▇▇▇▇ min 3")
    assert lines[-3:] == [
        "deployment web: done after 15s, 3 pods replaced, lowest 3/3 (min 3)",
        "",
        "Finishes after 15s; the last step is after 18s.",
    ]
    assert max(map(len, lines)) <= 80


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1"}]}
"""


def test_text_pod_of_the_same_name_is_another_one_on_its_own_node() -> None:
    cluster = Cluster.temporary(nodes=2, seed=7)
    cluster.run("apply -f -", stdin=STATEFUL_SET, check=True)
    cluster.settle()
    node = cluster.client.get("pod", "db-0")["spec"]["nodeName"]
    other = {"node-1": "node-2", "node-2": "node-1"}[node]
    lines = cluster.run(f"plan drain {node}").stdout.splitlines()
    assert [line.partition("  1/1")[0].strip() for line in lines if "pod db-0" in line] == [
        f"- pod db-0 deleted on {node}",
        f"* pod db-0 created, ready on {other}",
    ]
    steps = plan(cluster, f"drain {node}")["steps"]
    assert [step["node"] for step in steps if step["action"] == "ready"] == [other]


def test_text_workload_that_is_made_anew_is_not_gone() -> None:
    cluster = rolled_out()
    manifest = cluster.run("get deployment web -o yaml").stdout
    text = cluster.run("plan replace --force -f -", stdin=manifest).stdout
    assert "\ndeployment web: done after" in text, text
    assert "\ndeployment web: gone" in cluster.run("plan delete deployment web").stdout


def test_text_pod_that_a_workload_makes_anew_belongs_to_whom_it_did() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.run("run db-0 --image=db:1 --labels=app=other", check=True)
    cluster.run("apply -f -", stdin=STATEFUL_SET, check=True)
    cluster.settle()
    workloads = plan(cluster, "delete pod db-0")["workloads"]
    assert [workload["name"] for workload in workloads] == ["db-0", "db"]


def test_waves_that_repeat_are_folded() -> None:
    cluster = rolled_out(nodes=1, replicas=60)
    cluster.client.patch(
        "deploy/web",
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}},
    )
    lines = cluster.run("plan rollout restart deploy/web").stdout.splitlines()
    assert len(lines) < 40
    assert any("more times like this, every 5s" in line for line in lines)


def test_long_plan_without_repetition_is_cut_in_the_middle() -> None:
    cluster = rolled_out(nodes=1, replicas=100)
    cluster.client.patch(
        "deploy/web",
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}},
    )
    lines = cluster.run("plan --ready-after=2s..30s rollout restart deploy/web").stdout.splitlines()
    assert len(lines) < 60
    assert sum("pods replaced" in line for line in lines) > 5


def test_plan_of_broken_image_says_what_blocks() -> None:
    cluster = rolled_out()
    template = {"metadata": {"annotations": {"kubepy.dev/outcome": "image-pull-backoff"}}}
    cluster.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "bad"},
            "spec": {
                "selector": {"matchLabels": {"app": "bad"}},
                "paused": True,
                "template": {
                    "metadata": {**template["metadata"], "labels": {"app": "bad"}},
                    "spec": {"containers": [{"name": "bad", "image": "bad:1"}]},
                },
            },
        }
    )
    cluster.settle()
    result = cluster.run("plan rollout resume deploy/bad")
    assert result.status == 2
    assert "deployment bad: does not finish" in result.stdout
    assert "    pod bad-" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Does not finish: nothing more happens ")


def test_plan_without_anything_under_way_says_so() -> None:
    assert rolled_out().run("plan").stdout == "Nothing is under way.\n"


def test_plan_without_command_shows_what_is_under_way() -> None:
    cluster = rolled_out()
    cluster.run("set image deploy/web web=web:2", check=True)
    cluster.advance("6s")
    result = cluster.run("plan")
    assert (result.status, result.stdout.splitlines()[-1]) == (
        0,
        "Finishes after 9s; the last step is after 12s.",
    )


def test_encoding_without_blocks_gets_plain_characters() -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with rolled_out()._open() as local:
        assert (
            main(["plan", "rollout", "restart", "deploy/web"], stdout=output, open_cluster=local)
            == 0
        )
    output.seek(0)
    assert "3/3 ########## min 3" in output.read()


# --- document -------------------------------------------------------------------------------------


def test_document_has_plan_steps_and_workloads() -> None:
    document = plan(rolled_out(), "kubectl set image deploy/web web=web:2")
    assert list(document) == [
        "kind",
        "command",
        "startedAt",
        "settledAfter",
        "finishes",
        "harm",
        "workloads",
        "steps",
        "notes",
        "contests",
        "cut",
        "why",
        "failIf",
    ]
    assert document["command"] == ["set", "image", "deploy/web", "web=web:2"]
    assert (document["startedAt"], document["settledAfter"]) == ("2026-01-01T00:00:05Z", "18s")
    [workload] = document["workloads"]
    assert (
        workload.items()
        >= {
            "name": "web",
            "minAvailable": 3,
            "maxSurge": 1,
            "updated": 3,
            "finished": True,
            "finishedAfter": "15s",
            "blockedBy": None,
        }.items()
    )
    assert document["steps"][0]["action"] == "changed"


def test_several_runs_have_a_distribution() -> None:
    document = plan(rolled_out(), "--ready-after=5s..20s --runs=9 rollout restart deploy/web")
    runs = document["runs"]
    assert (runs["count"], runs["finished"]) == (9, 9)
    assert runs["workloads"][0]["minAvailable"] == 3
    assert 15 < float(runs["finishedAfter"]["median"].removesuffix("s")) <= 60
    assert document == plan(
        rolled_out(), "--ready-after=5s..20s --runs=9 rollout restart deploy/web"
    )


def test_times_are_told_of_the_runs_that_finish() -> None:
    ranges = "--ready-after=5s..20s --runs=9 --for=40s rollout restart deploy/web"
    finished = json.loads(rolled_out().run(f"plan -o json {ranges}").stdout)["runs"]["finished"]
    assert 0 < finished < 9
    lines = rolled_out().run(f"plan {ranges}").stdout.splitlines()
    [line] = [line for line in lines if line.startswith("9 runs, ")]
    assert line.startswith(f"9 runs, of which {finished} finish. Above is the worst of them, seed ")
    assert sum(line.startswith("seed ") for line in lines) == 9 - finished
    assert sum(f"of the {finished} that finish" in line for line in lines) == 2


def test_runs_read_standard_input_each_time() -> None:
    manifest = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "one"},
            "spec": {"containers": [{"name": "one", "image": "one"}]},
        }
    )
    document = plan(rolled_out(), "--runs=3 apply -f -", stdin=manifest)
    assert document["runs"]["finished"] == 3


# --- what finishes --------------------------------------------------------------------------------


def test_limit_reached_does_not_finish() -> None:
    document = plan(rolled_out(), "--for=4s rollout restart deploy/web")
    assert (document["finishes"], document["settledAfter"]) == (False, None)


def test_drain_against_budget_does_not_finish() -> None:
    cluster = rolled_out(nodes=2, replicas=4)
    cluster.run("create pdb web --selector=app=web --min-available=4", check=True)
    cluster.settle()
    document = plan(cluster, "drain node-1 --ignore-daemonsets")
    assert document["finishes"] is False
    assert document["workloads"][0]["resource"] == "nodes"
    assert document["why"][0]["cause"] == "disruption-budget"


def test_drain_that_gives_up_says_once_what_stops_it() -> None:
    cluster = rolled_out()
    cluster.run("create pdb web --selector=app=web --min-available=3", check=True)
    cluster.settle()
    for command in ("plan drain node-1", "plan drain node-1 --timeout=20s"):
        result = cluster.run(command)
        assert (result.status, result.stdout.count("the budget web covers it")) == (2, 1)
        assert (result.stderr.count("violate"), "wait for ever" in result.stderr) == (1, False)
        cluster.run("cordon node-1", check=True)  # then the drain itself writes nothing


def test_drain_tells_of_its_own_nodes_alone() -> None:
    cluster = rolled_out(nodes=2, replicas=4)
    cluster.run("create pdb web --selector=app=web --min-available=4", check=True)
    cluster.run("cordon node-1 node-2", check=True)  # the drain itself writes neither
    cluster.settle()
    document = plan(cluster, "drain node-2 --ignore-daemonsets")
    assert [workload["name"] for workload in document["workloads"]] == ["node-2"]


def test_delete_with_finalizer_does_not_finish() -> None:
    cluster = rolled_out()
    cluster.client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "kept",
                "namespace": "default",
                "finalizers": ["example.com/keep"],
            },
        }
    )
    for command in ("delete cm kept", "delete cm kept --wait=false"):
        document = plan(cluster, command)
        assert [workload["name"] for workload in document["workloads"]] == ["kept"]
        assert document["workloads"][0]["blockedBy"]["name"] == "kept"


def test_deleted_namespace_finishes_when_it_is_gone() -> None:
    cluster = rolled_out()
    cluster.run("create namespace shop", check=True)
    cluster.run("run one --image=one -n shop", check=True)
    cluster.settle()
    document = plan(cluster, "delete namespace shop --wait=false")
    assert {workload["name"]: workload["finishedAfter"] for workload in document["workloads"]} == {
        "shop": "10s",
        "one": "8s",
    }  # the controller waits for 5 s before it looks at the namespace


def test_unrelated_workload_that_was_stuck_does_not_count() -> None:
    cluster = rolled_out()
    cluster.run("run broken --image=broken --annotations=kubepy.dev/outcome=crash-loop", check=True)
    cluster.advance("1m")
    assert plan(cluster, "rollout restart deploy/web")["finishes"] is True
    assert "not counted" in cluster.run("plan rollout restart deploy/web").stdout
    assert plan(cluster, "")["finishes"] is False
    assert plan(cluster, "label pod broken tier=back")["finishes"] is False


# --- errors and refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "envtest-assets",
        "mcp",
        "controller --watch",
        "get pods -w",
        "init",
        "fork x",
        "fsck",
        "git setup",
        "config view",
        "plan get pods",
        "completion bash",
        "edit deploy/web",
        "version",
        "why deploy/web",
        "logs web",
        "explain pods",
        "kuberc view",
    ],
)
def test_command_that_cannot_be_tried_is_refused_in_a_line(command: str) -> None:
    result = rolled_out().run(f"plan {command}")
    assert (result.status, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith("error: plan cannot try ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--for=x rollout restart deploy/web", '"--for" flag'),
        ("--for=-1s", "--for must not be negative"),
        ("--ready-after=soon", '"--ready-after" flag'),
        ("--stops-after=9s..2s", '"--stops-after" flag'),
        ("--runs=0", "--runs must be"),
        ("-o wide", '"wide"'),
        ("set image deploy/none a=b", '"none" not found'),
        ("frobnicate", 'unknown command "frobnicate"'),
        ("scale deploy/web", '"replicas"'),
        ("get pods --frob", "--frob"),
    ],
)
def test_error_names_what_is_wrong(line: str, message: str) -> None:
    result = rolled_out().run(f"plan {line}")
    assert (result.status, result.stdout) == (1, "")
    assert message in result.stderr


def test_global_flags_go_on_to_the_command() -> None:
    cluster = rolled_out()
    cluster.run("create namespace shop", check=True)
    cluster.settle()
    assert plan(cluster, "-n shop run one --image=one")["steps"][0]["namespace"] == "shop"
    assert plan(cluster, "run one --image=one -n shop -o yaml")["steps"][0]["namespace"] == "shop"


# --- nothing changes ------------------------------------------------------------------------------


def test_plan_changes_nothing_on_disk(bare: Kubepy, folder: Path) -> None:
    bare("init", "--nodes=3", "--clock=2026-01-01T00:00:00Z", "--seed=7")
    bare("create", "deployment", "web", "--image=web:1")
    bare("create", "configmap", "kept", "--from-literal=a=b")
    bare("controller", "--until-settled", "-q")
    bare("get", "pods")
    before = contents(folder)
    for words in (
        ["set", "image", "deploy/web", "web=web:2"],
        ["delete", "deploy", "web"],
        ["drain", "node-1"],
        [],
        ["delete", "cm", "kept"],
        ["--runs=2", "scale", "deploy/web", "--replicas=9"],
        ["create", "token", "default"],
        ["rollout", "status", "deploy/web"],
    ):
        done: Done = bare("plan", *words)
        assert done.status in (0, 1, 3), done
        assert contents(folder) == before, words


def test_plan_where_there_is_no_cluster_makes_none(bare: Kubepy, folder: Path) -> None:
    done = bare("plan", "create", "configmap", "a")
    assert (done.status, done.out.splitlines()[-1]) == (0, "Finishes at once.")
    assert not (folder / "state").exists()
    assert bare("plan").status == 1


def test_plan_of_cluster_with_system_time_has_its_own() -> None:
    document = plan(rolled_out(clock=None), "scale deploy/web --replicas=1")
    assert document["finishes"]


# --- Python ---------------------------------------------------------------------------------------


def test_cluster_plan_has_steps_and_raises_errors() -> None:
    cluster = rolled_out()
    planned = cluster.plan("rollout restart deploy/web", ready_after="2s")
    assert planned
    assert planned.settled_after is not None
    assert planned.settled_after.total_seconds() == 9
    assert planned.workloads[0]["name"] == "web"
    assert {step["action"] for step in planned.steps} >= {"created", "ready", "terminating"}
    assert not cluster.plan(["rollout", "restart", "deploy/web"], limit="1s")
    with pytest.raises(CommandError, match='"none" not found'):
        cluster.plan("scale deploy/none --replicas=1")


def test_bars_stand_below_each_other_where_a_bound_holds_at_times_only() -> None:
    cluster = Cluster.temporary(
        nodes=3, settings={"kubelet": {"readyAfter": "5s", "stopsAfter": "3s"}}
    )
    cluster.run("create deployment web --image=web:1 --replicas=3", check=True)
    cluster.advance("1m")
    lines = cluster.run("plan drain node-1", check=True).stdout.splitlines()
    bars = [line for line in lines if "▇" in line]
    assert len({line.index("▇") for line in bars}) == 1
    assert ["min 3" in line for line in bars] == [False, True]
    [evicted] = [line for line in lines if "terminating" in line]
    assert evicted.split()[-3:] == ["terminating:", "EvictionByEvictionAPI", "2/3"]
    assert "deployment web: done after 5s, 1 pod replaced, lowest 2/3" in lines


DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "agent:1"}]}
"""


@pytest.mark.parametrize(
    ("tainted", "text"),
    [
        (["node-1"], "it has no pod on 1 of the 3 nodes that it is for"),
        (["node-1", "node-2", "node-3"], "it has no pods, as there is no node for them"),
    ],
    ids=["one", "all"],
)
def test_plan_of_daemon_set_notes_the_nodes_that_it_leaves_out(
    tainted: list[str], text: str
) -> None:
    cluster = Cluster.temporary(nodes=3, seed=7, clock="2026-01-01T00:00:00Z")
    cluster.run(f"taint nodes {' '.join(tainted)} team=b:NoSchedule", check=True)
    lines = cluster.run("plan apply -f -", stdin=DAEMON_SET).stdout.splitlines()
    note = lines.index("  note: nodes have taints that the pod does not tolerate (taint)")
    assert lines[note + 1 : note + 3] == [
        f"    daemonset agent: {text}",
        "    node node-1: the pods do not tolerate this taint",
    ]
    assert lines[-1] == "Finishes at once."
    document = plan(cluster, "apply -f -", DAEMON_SET)
    [noted] = document["notes"]
    assert noted["object"]["name"] == "agent"
    assert (noted["cause"], noted["chain"][0]["text"]) == ("taint", text)


EVICTED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeName: node-1
      tolerations: [{key: a, effect: NoExecute, operator: Exists, tolerationSeconds: 5}]
      containers: [{name: web, image: "web:1"}]
"""


def test_pods_that_are_evicted_again_and_again_never_come_to_rest() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7, clock="2026-01-01T00:00:00Z")
    cluster.run("taint nodes node-1 a=b:NoExecute", check=True)
    result = cluster.run("plan apply -f -", stdin=EVICTED)
    assert result.status == 2
    assert result.stdout.endswith("\nDoes not finish: it never comes to rest.\n")
    assert "replicaset-controller" in result.stdout
    assert "taint-eviction-controller deletes them" in result.stdout
    document = plan(cluster, "apply -f -", EVICTED)
    [contest] = document["contests"]
    assert 100 <= contest["rounds"] <= 200
    [why] = document["why"]
    assert why["cause"] == "contention"

    cluster.run("apply -f -", stdin=EVICTED, check=True)
    answer = cluster.run("why deploy/web")
    assert answer.status == 2
    assert "every 5s, without end" in " ".join(answer.stdout.split())
    assert "kubepy taint nodes node-1 a:NoExecute-\n      proven" in answer.stdout
    untouched = plan(cluster, "create configmap c")
    assert untouched["finishes"]
    cluster.run("taint nodes node-1 a:NoExecute-", check=True)
    assert cluster.run("why deploy/web").status == 0


def test_plan_and_why_agree_on_two_autoscalers_that_have_yet_to_scale() -> None:
    cluster = Cluster.temporary(nodes=2, seed=7, clock="2026-01-01T00:00:00Z")
    cluster.run("create deployment web --image=web:1 --replicas=2", check=True)
    cluster.run("autoscale deployment/web --name=a --min=1 --max=2 --cpu=50%", check=True)
    cluster.run("autoscale deployment/web --name=b --min=4 --max=6 --cpu=50%", check=True)
    assert cluster.run("plan").status == 2
    answer = cluster.run("why deploy/web -o json")
    assert answer.status == 2
    document = json.loads(answer.stdout)
    assert (document["state"], document["cause"]) == ("stuck", "contention")
    assert [remedy["proven"] for remedy in document["remedies"]] == [True, True]
