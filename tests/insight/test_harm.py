"""What a plan says of harm: commands that hurt and commands that don't, each with the exit status
and all of the harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubepy import Cluster
from kubepy.cli.main import main

TIMES = {"kubelet": {"readyAfter": "5s", "stopsAfter": "3s"}}
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: %(name)s}
spec:
  replicas: %(replicas)s
  selector: {matchLabels: {app: %(name)s}}
  template:
    metadata: {labels: {app: %(name)s}}
    spec:
      containers: [{name: c, image: "%(name)s:1"}]
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
"""
INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: %s, selector: {matchLabels: {app: web}}}
---
"""
DATABASE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
"""
DAEMON = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: "agent:1"}]}
---
"""
CONFIGURED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers: [{name: c, image: "app:1", envFrom: [{configMapRef: {name: settings}}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: loose}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
"""
USER = """
apiVersion: v1
kind: Pod
metadata: {name: lonely}
spec:
  containers: [{name: c, image: "lonely:1", volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: loose}}]
---
"""
POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: none}
spec: {podSelector: {}, policyTypes: [Ingress]}
"""
WEB = DEPLOYMENT % {"name": "web", "replicas": 3} + SERVICE
ONE = DEPLOYMENT % {"name": "web", "replicas": 1}


def web(*more: str) -> str:
    return "".join((WEB, *more))


def cluster_of(manifests: str, nodes: int = 3, namespace: str = "default") -> Cluster:
    """Return a cluster at rest with these objects."""
    cluster = Cluster.temporary(nodes=nodes, seed=7, clock="2026-01-01T00:00:00Z", settings=TIMES)
    if namespace != "default":
        cluster.run(["create", "namespace", namespace], check=True)
    cluster.run(["apply", "-n", namespace, "-f", "-"], stdin=manifests, check=True)
    cluster.advance("1m")
    return cluster


def harm_of(cluster: Cluster, command: str, stdin: str = "") -> tuple[int, set[str]]:
    """Return the exit status of a plan, and its harm as ``kind object``."""
    result = cluster.run(f"plan -o json {command}", stdin=stdin)
    assert result.stdout, result.stderr
    harms = json.loads(result.stdout)["harm"]
    kinds = [f"{harm['kind']} {short(harm['object'])}" for harm in harms]
    assert len(kinds) == len(set(kinds))
    return result.status, set(kinds)


def short(key: dict[str, str]) -> str:
    name = "*" if key["name"].startswith("pvc-") else key["name"]
    return f"{key['resource'].partition('.')[0]}/{name}"


def nothing(cluster: Cluster) -> None:
    """Leave a cluster as it is."""


def run(*commands: str) -> Callable[[Cluster], None]:
    """Return what runs commands in a cluster and lets time pass."""

    def prepare(cluster: Cluster) -> None:
        for command in commands:
            cluster.run(command, check=True)
        cluster.advance("1m")

    return prepare


class Case(NamedTuple):
    """A command with what it does.

    :ivar status: the exit status; ``harm``: all of it, as ``kind object``.
    """

    name: str
    manifests: str
    command: str
    status: int
    harm: tuple[str, ...] = ()
    stdin: str = ""
    prepare: Callable[[Cluster], None] = nothing
    nodes: int = 3
    namespace: str = "default"


RECREATE = (
    """patch deploy web -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null},"""
    """"template":{"metadata":{"annotations":{"a":"b"}}}}}'"""
)
AWAY = ("outage deployments/web", "below-bound deployments/web", "unreachable services/web")
LOST = (
    "never-finishes deployments/web",
    "outage deployments/web",
    "worse deployments/web",
    "below-bound deployments/web",
    "unreachable services/web",
)
PORTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "web:1", ports: [{name: %s, containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: a, port: 80, targetPort: http}, {name: b, port: 81, targetPort: 81}]
---
"""
OTHER_INGRESS = INGRESS.replace("{name: web}", "{name: other}").replace("number: 80", "number: 81")
BOTH_PORTS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - http:
      paths:
      - {path: /a, pathType: Prefix, backend: {service: {name: web, port: {number: %s}}}}
      - {path: /b, pathType: Prefix, backend: {service: {name: web, port: {number: %s}}}}
---
"""
TAINT = "taint nodes --all a=b:NoExecute"
FULL = """patch deploy web -p '{"spec":{"template":{"spec":{"containers":[{"name":"c","resources":\
{"requests":{"cpu":"900"}}}]}}}}'"""
SELECT = """patch svc web -p '{"spec":{"selector":{"app":"%s"}}}'"""
SLOW = """patch deploy web -p '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,\
"maxUnavailable":1}},"template":{"metadata":{"annotations":{"a":"b"}}}}}'"""

CASES = [
    # --- nothing is hurt
    Case("ordinary rollout", web(), "set image deploy/web c=web:2", 0),
    Case("restart", web(INGRESS), "rollout restart deploy/web", 0),
    Case("rollout that may lack one pod", web(), SLOW, 0),
    Case("drain with room", web(BUDGET % 2), "drain node-1", 0),
    Case("drain of one of three", web(), "drain node-2", 0),
    Case("scale up", web(), "scale deploy/web --replicas=5", 0),
    Case("scale down", web(), "scale deploy/web --replicas=1", 0),
    Case("cordon", web(BUDGET % 2), "cordon node-1", 0),
    Case("node label", web(), "label node node-1 a=b", 0),
    Case("taint without eviction", web(), "taint nodes --all a=b:NoSchedule", 0),
    Case("deployment deleted", ONE, "delete deploy web", 0),
    Case("service deleted", web(), "delete svc web", 0),
    Case("pod without controller deleted", CLAIM + USER, "delete pod lonely", 0),
    Case("budget with room", web(), "create pdb web --selector=app=web --min-available=2", 0),
    Case("budget of nothing", web(), "create pdb x --selector=app=x --min-available=1", 0),
    Case("budget deleted", web(BUDGET % 2), "delete pdb web", 0),
    Case(
        "other service",
        web(),
        "create service clusterip db --tcp=80",
        2,
        ("never-finishes services/db",),
    ),
    Case("daemon set rolled out", DAEMON, "set image ds/agent c=agent:2", 0),
    Case("stateful set rolled out", DATABASE, "set image sts/db c=db:2", 0),
    Case("config map deleted under running pods", CONFIGURED, "delete cm settings", 0),
    Case("network policy", web(), "apply -f -", 0, stdin=POLICY),
    Case("new deployment", web(), "create deployment new --image=new --replicas=2", 0),
    Case("job", web(), "create job once --image=busybox -- true", 0),
    Case("nothing under way", web(), "", 0),
    # --- pods
    Case("all pods deleted", web(), "delete pods --all", 3, AWAY),
    Case(
        "all pods deleted behind an ingress",
        web(INGRESS),
        "delete pods --all",
        3,
        (*AWAY, "unreachable ingresses/web"),
    ),
    Case(
        "a pod deleted",
        web(),
        "delete pod -l app=web --field-selector=spec.nodeName=node-1",
        3,
        ("below-bound deployments/web",),
    ),
    Case(
        "change to Recreate",
        web(),
        RECREATE,
        3,
        ("outage deployments/web", "unreachable services/web"),
    ),
    Case(
        "drain of the only pod",
        ONE,
        "drain node-1 node-2 node-3",
        2,
        ("never-finishes deployments/web", "outage deployments/web", "worse deployments/web"),
    ),
    Case(
        "replaced by force",
        web(),
        "replace --force -f -",
        3,
        ("outage deployments/web", "unreachable services/web"),
        stdin=DEPLOYMENT % {"name": "web", "replicas": 3},
    ),
    Case("scale to 0", web(), "scale deploy/web --replicas=0", 3, ("unreachable services/web",)),
    Case("scale to 0 without a service", ONE, "scale deploy/web --replicas=0", 0),
    Case("pods that fit on no node", web(), FULL, 2, ("never-finishes deployments/web",)),
    Case(
        "image that cannot be pulled",
        web(),
        "set image deploy/web c=nginx:no-such-tag",
        2,
        ("never-finishes deployments/web",),
    ),
    Case("all nodes tainted", web(), TAINT, 2, LOST),
    Case(
        "all nodes tainted beside a Pending pod",
        web(),
        TAINT,
        3,
        (
            "outage deployments/web",
            "worse deployments/web",
            "below-bound deployments/web",
            "unreachable services/web",
        ),
        prepare=run(FULL),
    ),
    Case("node deleted", web(), "delete node node-1", 3, ("below-bound deployments/web",)),
    Case(
        "pod without controller evicted",
        CLAIM + USER,
        TAINT,
        3,
        ("outage pods/lonely", "worse pods/lonely"),
    ),
    Case(
        "daemon set with a missing image",
        DAEMON,
        "set image ds/agent c=nginx:no-such-tag",
        2,
        ("never-finishes daemonsets/agent", "worse daemonsets/agent"),
    ),
    Case("daemon set without a node", DAEMON, TAINT, 3, ("outage daemonsets/agent",)),
    Case(
        "daemon set whose nodeSelector matches nothing",
        DAEMON,
        """patch ds agent -p '{"spec":{"template":{"spec":{"nodeSelector":{"no":"node"}}}}}'""",
        3,
        ("outage daemonsets/agent",),
    ),
    Case(
        "daemon set with one node less",
        DAEMON,
        "taint node node-1 a=b:NoExecute",
        0,
    ),
    # --- services, budgets, nodes
    Case(
        "service with another selector",
        web(),
        SELECT % "other",
        2,
        ("never-finishes services/web", "unreachable services/web"),
    ),
    Case(
        "targetPort that pods no longer have",
        PORTS % "http" + INGRESS + OTHER_INGRESS,
        "apply -f -",
        3,
        ("unreachable services/web", "unreachable ingresses/web"),
        stdin=(PORTS % "web").partition("---")[0],
    ),
    Case(
        "one of two ports behind an ingress gone, named last",
        PORTS % "http" + BOTH_PORTS % (81, 80),
        "apply -f -",
        3,
        ("unreachable services/web", "stuck ingresses/web"),
        stdin=(PORTS % "web").partition("---")[0],
    ),
    Case(
        "one of two ports behind an ingress gone, named first",
        PORTS % "http" + BOTH_PORTS % (80, 81),
        "apply -f -",
        3,
        ("unreachable services/web", "stuck ingresses/web"),
        stdin=(PORTS % "web").partition("---")[0],
    ),
    Case(
        "targetPort that changes with the pods",
        PORTS % "http",
        "set image deploy/web c=web:2",
        0,
    ),
    Case(
        "service of a workload deleted",
        web(),
        "delete deploy web",
        3,
        ("unreachable services/web",),
    ),
    Case(
        "service deleted behind an ingress",
        web(INGRESS),
        "delete svc web",
        3,
        ("unreachable ingresses/web",),
    ),
    Case(
        "budget without room",
        web(),
        "create pdb web --selector=app=web --min-available=3",
        3,
        ("blocked poddisruptionbudgets/web",),
    ),
    Case(
        "budget that loses its room",
        web(BUDGET % 2),
        "scale deploy/web --replicas=2",
        3,
        ("blocked poddisruptionbudgets/web",),
    ),
    Case(
        "drain without room",
        web(BUDGET % 3),
        "drain node-1",
        2,
        ("never-finishes nodes/node-1", "stuck poddisruptionbudgets/web"),
    ),
    # --- data
    Case(
        "claim deleted",
        CLAIM + USER,
        "delete pvc loose",
        3,
        ("data persistentvolumeclaims/loose", "data persistentvolumes/*"),
        prepare=run("delete pod lonely"),
    ),
    Case(
        "namespace with a claim deleted",
        CLAIM + USER,
        "delete ns shop",
        3,
        ("data persistentvolumeclaims/loose", "data persistentvolumes/*"),
        namespace="shop",
    ),
    Case(
        "restart without its config map",
        CONFIGURED,
        "rollout restart deploy/app",
        2,
        ("never-finishes deployments/app",),
        prepare=run("delete cm settings"),
    ),
    Case("restart of pods with claims", DATABASE, "rollout restart sts/db", 0),
    Case(
        "claim in use deleted",
        CLAIM + USER,
        "delete pvc loose --wait=false",
        2,
        ("never-finishes persistentvolumeclaims/loose", "data persistentvolumeclaims/loose"),
    ),
    Case(
        "claims that go with their pods",
        DATABASE,
        "scale sts/db --replicas=1",
        3,
        ("data persistentvolumeclaims/data-db-1", "data persistentvolumes/*"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_command_has_its_exit_status_and_harm(case: Case) -> None:
    cluster = cluster_of(case.manifests, case.nodes, case.namespace)
    case.prepare(cluster)
    assert harm_of(cluster, case.command, case.stdin) == (case.status, set(case.harm))


def test_what_happens_without_the_command_is_no_harm_of_it() -> None:
    cluster = cluster_of(web())
    crashing = "create deployment shaky --image=busybox -- sh -c 'sleep 60; exit 1'"
    cluster.run(crashing, check=True)
    cluster.advance("100s")
    while cluster.client.get("deployment", "shaky")["status"].get("availableReplicas"):
        cluster.advance("1s")  # until it has crashed again; then it starts again soon
    status, harm = harm_of(cluster, "--for=2h set image deploy/web c=web:2")
    assert (status, harm) == (0, set())
    assert harm_of(cluster, "--for=2h delete pods -l app=web") == (3, set(AWAY))


def test_moments_of_harm_are_those_of_the_steps() -> None:
    result = cluster_of(web()).run("plan -o json delete pods --all")
    plan = json.loads(result.stdout)
    begin = {step["at"] for step in plan["steps"] if step["action"] == "terminating"}
    for harm in plan["harm"]:
        assert {harm["at"]} == begin
        assert harm["for"] == "5s"
    [outage] = [harm for harm in plan["harm"] if harm["kind"] == "outage"]
    assert outage["before"] == {"desired": 3, "available": 3}
    assert outage["after"] == {"desired": 3, "available": 0}


def test_endpoints_before_are_those_before_the_plan() -> None:
    cluster = cluster_of(DATABASE + SERVICE.replace("web", "db"))
    plan = json.loads(cluster.run("plan -o json scale sts/db --replicas=0").stdout)
    [harm] = [harm for harm in plan["harm"] if harm["kind"] == "unreachable"]
    assert harm["before"] == {"endpoints": 2}


def test_pods_of_workload_made_anew_are_lowest_while_there_are_none() -> None:
    again = DEPLOYMENT % {"name": "web", "replicas": 3}
    cluster = cluster_of(again)
    flags = ["--fail-on=", "--fail-if=available < 0.8"]
    words = ["replace", "--force", "-f", "-"]
    result = cluster.run(["plan", *flags, *words], stdin=again)
    assert "lowest 0/3" in result.stdout
    assert result.status == 3
    plan = json.loads(cluster.run(["plan", "-o", "json", *words], stdin=again).stdout)
    assert plan["workloads"][0]["minAvailable"] == 0


CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron}
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: "cron:1", command: [sleep, "10"]}]
---
"""


def test_cron_job_that_command_does_not_touch_has_no_part_in_its_time() -> None:
    # The horizon reaches beyond the next run, which the plan then shows.
    command = ["taint", "node", "node-1", "a=b:NoExecute"]
    cluster = cluster_of(web(CRON_JOB))
    cluster.run(["annotate", "node", "--all", "kubepy.dev/ready-after=6m"], check=True)
    result = cluster.run(["plan", "--for=9m", *command])
    assert "cronjob cron: goes on by itself" in result.stdout
    flags = ["--fail-on=", "--fail-if=finishedAfter > duration('1s') && kind == 'CronJob'"]
    assert plan_of(cluster, [*flags, "--for=9m", *command])[0] == 0
    plan = json.loads(cluster.run(["plan", "-o", "json", "--for=9m", *command]).stdout)
    assert {workload["name"]: workload["goesOn"] for workload in plan["workloads"]} == {
        "cron": True,
        "web": False,
    }


@pytest.mark.parametrize("command", ["patch cronjob cron", "patch job once"])
def test_command_that_suspends_finishes_with_a_note(command: str) -> None:
    cluster = cluster_of(CRON_JOB)
    cluster.run("create job once --image=busybox -- sleep 500", check=True)
    words = [*command.split(), "-p", '{"spec":{"suspend":true}}']
    plan = json.loads(cluster.run(["plan", "-o", "json", *words]).stdout)
    assert (plan["finishes"], plan["harm"]) == (True, [])
    assert [note["cause"] for note in plan["notes"]] == [f"{words[1]}-suspended"]


def test_harm_that_the_limit_cuts_off_is_not_said_to_last() -> None:
    cluster = cluster_of(web(BUDGET % 2))
    said = cluster.run("plan --for=4s delete pods -l app=web").stdout
    assert "outage now, still after 4s" in said
    assert "to the end" not in said
    assert "blocked" not in said
    lasting = cluster.run("plan --for=1h scale deploy/web --replicas=2").stdout
    assert "blocked" in lasting


def test_plan_ends_where_only_cron_jobs_go_on_that_cannot_run() -> None:
    cluster = cluster_of(web(CRON_JOB))
    cluster.run("create quota q --hard=pods=3", check=True)
    cluster.advance("1s")
    result = cluster.run("plan rollout restart deploy/web")
    assert "nothing more happens but the runs of CronJobs" in result.stdout
    assert "quota-exceeded" in result.stdout
    plan = json.loads(cluster.run("plan -o json rollout restart deploy/web").stdout)
    jobs = [step for step in plan["steps"] if step["resource"] == "jobs.batch"]
    assert 2 < len(jobs) < 20


# --- what counts ----------------------------------------------------------------------------------


def plan_of(cluster: Cluster, words: list[str]) -> tuple[int, str]:
    """Return the exit status of a plan, and what it says on both streams."""
    result = cluster.run(["plan", *words])
    return result.status, result.stdout + result.stderr


DELETED = ["delete", "pods", "--all"]


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ([], 3),
        (["--fail-on=never-finishes"], 0),
        (["--fail-on=data,outage"], 3),
        (["--fail-on=data", "--fail-on=blocked"], 0),
        (["--fail-on="], 0),
        (["--fail-on=", "--fail-if=available < 0.1"], 3),
        (["--fail-on=", "--fail-if=finishedAfter > duration('4s')"], 3),
        (["--fail-on=", "--fail-if=finishedAfter > duration('5s')"], 0),
        (["--fail-on=", "--fail-if=kind == 'Deployment' && name == 'web' && desired == 3"], 3),
        (["--fail-on=", "--fail-if=namespace != 'default'", "--fail-if=!finished"], 0),
    ],
)
def test_flags_say_what_counts(flags: list[str], status: int) -> None:
    assert plan_of(cluster_of(WEB), [*flags, *DELETED])[0] == status


def test_what_does_not_finish_takes_longer_than_any_duration() -> None:
    flags = ["--fail-on=", "--fail-if=finishedAfter > duration('1000h')"]
    assert plan_of(cluster_of(WEB), [*flags, "set", "image", "deploy/web", "c=nginx:none"])[0] == 3


@pytest.mark.parametrize(
    ("flag", "error"),
    [
        ("--fail-on=x", '--fail-on[0]: "x" is none of below-bound, blocked, data,'),
        ("--fail-if=availible < 1", "--fail-if: does not compile: ERROR:"),
        ("--fail-if=name", "--fail-if: must be an expression that is true or false"),
        (
            "--fail-if=desired / 0 == 1",
            "fail-if desired / 0 == 1: of Deployment web: division by zero",
        ),
        ("--seeds=3..1", "must be a range of seeds such as 0..99"),
        ("--shard=0/2", "must be a part such as 2/5"),
        ("--shard=2/2", "--shard=2/2 has no seed of 1"),
        ("--jobs=0", "--jobs must be at least 1"),
        ("--seed=-1", "--seed must not be negative"),
    ],
)
def test_wrong_flag_is_an_error_that_names_it(flag: str, error: str) -> None:
    status, said = plan_of(cluster_of(WEB), [flag, *DELETED])
    assert status == 1
    assert error in said


def test_policy_file_is_found_above_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "kubepy-plan.yaml").write_text("failOn: [data]\nfailIf: [available < 0.1]\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    cluster = cluster_of(WEB)
    status, said = plan_of(cluster, DELETED)
    assert status == 3
    assert "\n! deployment web: available < 0.1\n" in said
    assert "outage now, for 5s: 0/3 available, 3/3 before (not counted)" in said
    (tmp_path / "kubepy-plan.yaml").write_text("failOn: [data]\n")
    assert plan_of(cluster, DELETED)[0] == 0
    assert plan_of(cluster, ["--fail-on=outage", *DELETED])[0] == 3
    (tmp_path / ".git").rmdir()
    assert plan_of(cluster, ["--fail-on=outage", *DELETED])[0] == 3


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "failon: [data]",
            "kubepy-plan.yaml: failon: unknown field: must be one of failOn, failIf",
        ),
        ("failOn: data", "kubepy-plan.yaml: failOn: must be a list"),
        ("failOn: [outages]", 'kubepy-plan.yaml: failOn[0]: "outages" is none of'),
        ("failIf: [1]", "kubepy-plan.yaml: failIf[0]: must be a string"),
        ("failIf: ['x < 1']", "kubepy-plan.yaml: failIf[0]: does not compile"),
        ("- a", "kubepy-plan.yaml: must be a map"),
        ("a: [", "kubepy-plan.yaml: "),
        ("{}\n---\n{}", "kubepy-plan.yaml: must be one document, not 2"),
    ],
)
def test_wrong_policy_file_is_an_error_that_names_the_field(
    text: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kubepy-plan.yaml").write_text(text)
    status, said = plan_of(cluster_of(WEB), DELETED)
    assert status == 1
    assert error in said


# --- several runs ---------------------------------------------------------------------------------


def runs_of(cluster: Cluster, words: list[str]) -> dict[str, Any]:
    result = cluster.run(["plan", "-o", "json", *words])
    assert result.stdout, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


SLOWLY = ["--ready-after=1s..30s", "--for=40s"]
RESTART = ["rollout", "restart", "deploy/web"]


def test_failing_seed_is_named_and_repeated() -> None:
    cluster = cluster_of(WEB)
    document = runs_of(cluster, [*SLOWLY, "--seeds=0..11", *RESTART])
    runs = document["runs"]
    failed = {run["seed"]: run for run in runs["failed"]}
    assert 0 < len(failed) == 12 - runs["finished"]
    assert runs["worst"] in failed
    assert not document["finishes"]
    for seed in range(12):
        repeated = runs_of(cluster, [*SLOWLY, f"--seed={seed}", *RESTART])
        assert repeated["finishes"] == (seed not in failed)
        assert "runs" not in repeated
        if seed in failed:
            assert repeated["harm"] == failed[seed]["harm"]
            assert repeated["why"][0]["cause"] == failed[seed]["cause"]
    assert repeated["startedAt"] == document["startedAt"]


def test_shards_share_the_seeds() -> None:
    cluster = cluster_of(WEB)
    whole = runs_of(cluster, [*SLOWLY, "--runs=7", *RESTART])["runs"]
    parts = [
        runs_of(cluster, [*SLOWLY, "--runs=7", f"--shard={part}/2", *RESTART])["runs"]
        for part in (1, 2)
    ]
    assert [part["count"] for part in parts] == [4, 3]
    failed = [run for part in parts for run in part["failed"]]
    assert sorted(failed, key=lambda run: run["seed"]) == whole["failed"]


def test_several_processes_find_what_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = Cluster.create(
        tmp_path / "state", nodes=3, seed=7, clock="2026-01-01T00:00:00Z", settings=TIMES
    )
    cluster.run("apply -f -", stdin=WEB, check=True)
    cluster.advance("1m")
    cluster.close()
    # no module of Python's own, whatever the working directory has
    (tmp_path / "operator.py").write_text("raise SystemExit('wrong module')\n")
    said = []
    for jobs in ("1", "2"):
        words = ["plan", "-o", "json", *SLOWLY, "--runs=6", f"--jobs={jobs}", *RESTART]
        assert main(words) == 2
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
