"""Why objects do not end: deletions, Jobs, CronJobs, budgets, nodes, autoscalers. The pages of
docs/why/ show the main case of each cause; here are others, and objects that are healthy all the
same."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy import Cluster
from kubepy.insight.why import DONE, PROGRESSING, STUCK, Why
from kubepy.insight.why.verdict import Question, explain
from kubepy.storage import Key

from .incidents import claim, volume, workload

HOLD = """--type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'"""
STUCK_PODS = (
    """-p '{"spec":{"template":{"metadata":{"annotations":{"kubepy.dev/termination":"stuck"}}}}}'"""
)
AUTO = "autoscale deployment web --min=2 --max=5 --cpu=80%"


def made(
    *commands: str, nodes: int = 3, settings: dict[str, Any] | None = None, **manifests: str
) -> Cluster:
    """Return a cluster after manifests and commands."""
    cluster = Cluster.temporary(nodes=nodes, seed=7, settings=settings)
    for manifest in manifests.values():
        cluster.run("apply -f -", stdin=manifest, check=True)
    for command in commands:
        cluster.run(command, check=True)
    return cluster


def asked(cluster: Cluster, resource: str, name: str, namespace: str = "default") -> Why:
    """Return the answer about an object, with its remedies tried."""
    cluster.run("get namespaces", check=True)  # does what is due now

    def run(fork: Any, words: tuple[str, ...]) -> int:
        return Cluster(fork).run(list(words)).status

    with cluster._open() as local:
        return explain(Question(local, Key(resource, namespace, name), run))


def told(why: Why) -> tuple[str, str]:
    return why.state, why.cause


def leaf(why: Why) -> str:
    """Return the last object of the chain."""
    return f"{why.chain[-1].key.resource}/{why.chain[-1].key.name}"


def proven(why: Why) -> list[str]:
    return [" ".join(remedy.command) for remedy in why.remedies if remedy.proven]


# --- deletions ------------------------------------------------------------------------------------


def job(spec: str = "", annotations: str = "", policy: str = "Never") -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: report}}
spec:
  {spec}
  template:
    metadata: {{annotations: {{{annotations}}}}}
    spec: {{restartPolicy: {policy}, containers: [{{name: report, image: "report:1"}}]}}
"""


@pytest.mark.parametrize(
    ("spoil", "cause", "remedies"),
    [
        (f"patch pod POD {HOLD}", "finalizer", 1),
        ("annotate pod POD kubepy.dev/termination=stuck", "stuck-terminating", 1),
        ("annotate node NODE kubepy.dev/down-until=2027-01-01T00:00:00Z", "dead-node", 4),
    ],
)
def test_old_pod_left_behind_is_named_though_the_rollout_is_done(
    spoil: str, cause: str, remedies: int
) -> None:
    cluster = made("create deployment web --image=web:1", "rollout status deployment/web")
    pod = cluster.client.list("pods")[0]
    cluster.run(
        spoil.replace("POD", pod["metadata"]["name"]).replace("NODE", pod["spec"]["nodeName"]),
        check=True,
    )
    cluster.advance("2m")
    cluster.run("set image deployment/web web=web:2", check=True)
    cluster.settle()
    why = asked(cluster, "deployments.apps", "web")
    assert told(why) == (DONE, cause)
    assert any(link.key.name == pod["metadata"]["name"] for link in why.chain)
    assert len(proven(why)) == remedies
    assert told(asked(cluster, "pods", pod["metadata"]["name"])) == (STUCK, cause)


def test_recreate_waits_for_old_pod_that_does_not_end() -> None:
    cluster = made(
        "create deployment web --image=web:1",
        f"patch deployment web {STUCK_PODS}",
        """patch deployment web -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'""",  # noqa: E501
        "rollout status deployment/web",
    )
    old = cluster.client.list("pods")[0]["metadata"]["name"]
    cluster.run("set image deployment/web web=web:2", check=True)
    why = asked(cluster, "deployments.apps", "web")
    assert told(why) == (STUCK, "stuck-terminating")
    assert leaf(why) == f"pods/{old}"
    assert f"delete pod {old} --grace-period=0 --force" in proven(why)


def test_stateful_set_waits_for_pod_that_does_not_end() -> None:
    cluster = made(
        db="""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {kubepy.dev/termination: stuck}}
    spec: {containers: [{name: db, image: "db:1"}]}
"""
    )
    cluster.run("rollout status statefulset/db", check=True)
    cluster.run("set image statefulset/db db=db:2", check=True)
    why = asked(cluster, "statefulsets.apps", "db")
    assert told(why) == (STUCK, "stuck-terminating")
    assert leaf(why) == "pods/db-2"


def test_several_stuck_pods_are_one_remedy() -> None:
    cluster = made(
        "create deployment web --image=web:1 --replicas=3",
        f"patch deployment web {STUCK_PODS}",
        "rollout status deployment/web",
        "delete deployment web --cascade=foreground --wait=false",
    )
    why = asked(cluster, "deployments.apps", "web")
    assert told(why) == (STUCK, "stuck-terminating")
    assert [command.count("web-") for command in proven(why)] == [
        1,
        0,
        3,
    ]  # the last one ends pods by force


CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_patch_keeps_finalizer_that_controller_removes() -> None:
    cluster = made(
        "patch pvc data --type=json -p "
        """'[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]'""",
        "delete pvc data --wait=false",
        claim=CLAIM,
        pod="""
apiVersion: v1
kind: Pod
metadata: {name: db}
spec:
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  containers: [{name: db, image: "db:1"}]
""",
    )
    why = asked(cluster, "persistentvolumeclaims", "data")
    assert told(why) == (STUCK, "finalizer")
    assert [remedy.command[-1] for remedy in why.remedies] == [
        '{"metadata":{"finalizers":["kubernetes.io/pvc-protection"]}}'
    ]


def test_pod_with_stops_after_is_on_its_way() -> None:
    cluster = made(
        "run web --image=web:1 --annotations=kubepy.dev/stops-after=20s",
        "controller --once -q",
        "delete pod web --wait=false",
    )
    assert told(asked(cluster, "pods", "web")) == (PROGRESSING, "terminating")


def test_pod_of_dead_node_that_comes_back_is_on_its_way() -> None:
    cluster = made("run web --image=web:1", "controller --once -q")
    node = cluster.client.get("pod/web")["spec"]["nodeName"]
    cluster.run(f"annotate node {node} kubepy.dev/down-until=2026-01-01T01:00:00Z", check=True)
    cluster.advance("2m")
    cluster.run("delete pod web --wait=false", check=True)
    assert told(asked(cluster, "pods", "web")) == (PROGRESSING, "dead-node")
    assert told(asked(cluster, "nodes", node, "")) == (PROGRESSING, "node-not-ready")


def test_claim_of_finished_pod_is_protected() -> None:
    volumes = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], containers:"
    cluster = made(claim=CLAIM, job=job().replace("containers:", volumes))
    cluster.settle()
    cluster.run("delete pvc data --wait=false", check=True)
    why = asked(cluster, "persistentvolumeclaims", "data")
    assert told(why) == (STUCK, "claim-protected")
    assert len(proven(why)) == 1


def test_namespace_on_its_way_is_not_stuck() -> None:
    cluster = made(
        "create namespace shop",
        "create deployment web --image=web:1 --replicas=3 -n shop",
        "controller --once -q",
        "delete namespace shop --wait=false",
    )
    assert told(asked(cluster, "namespaces", "shop", "")) == (PROGRESSING, "namespace-contents")


def test_namespace_names_finalizers_of_several_objects_in_one_remedy() -> None:
    cluster = made(
        "create namespace shop",
        "create configmap keep -n shop",
        "create secret generic also -n shop",
        f"patch configmap keep -n shop {HOLD}",
        f"patch secret also -n shop {HOLD}",
        "delete namespace shop --wait=false",
    )
    why = asked(cluster, "namespaces", "shop", "")
    assert told(why) == (STUCK, "namespace-finalizer")
    assert len(proven(why)) == 1


# --- Jobs and CronJobs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifest", "answer"),
    [
        (job(annotations="kubepy.dev/outcome: ready"), (PROGRESSING, "job-running")),
        (
            job("backoffLimit: 2", 'kubepy.dev/exit-code: "1"', "OnFailure"),
            (STUCK, "backoff-limit"),
        ),
        (
            job(
                "completions: 2\n  completionMode: Indexed\n  backoffLimitPerIndex: 0",
                'kubepy.dev/exit-code: "1"',
            ),
            (STUCK, "failed-indexes"),
        ),
        (job("activeDeadlineSeconds: 5", "kubepy.dev/runs-for: 9s"), (STUCK, "job-deadline")),
        (job("activeDeadlineSeconds: 9", "kubepy.dev/runs-for: 5s"), (PROGRESSING, "job-running")),
    ],
)
def test_job(manifest: str, answer: tuple[str, str]) -> None:
    assert told(asked(made(job=manifest), "jobs.batch", "report")) == answer


def test_job_that_will_fail_can_be_saved() -> None:
    manifest = job("backoffLimit: 1", 'kubepy.dev/outcome: "crash-loop*4, succeeded"', "OnFailure")
    cluster = made(job=manifest.replace("crash-loop*4", "image-pull-backoff, crash-loop*4"))
    why = asked(cluster, "jobs.batch", "report")
    assert told(why) == (STUCK, "backoff-limit")
    assert proven(why) == ['patch job/report --type=merge -p {"spec":{"backoffLimit":12}}']


def cron_job(spec: str = "", annotations: str = "") -> str:
    return f"""
apiVersion: batch/v1
kind: CronJob
metadata: {{name: report}}
spec:
  schedule: "0 * * * *"
  {spec}
  jobTemplate:
    spec:
      template:
        metadata: {{annotations: {{{annotations}}}}}
        spec: {{restartPolicy: Never, containers: [{{name: report, image: "report:1"}}]}}
"""


RESUME = """patch cronjob report -p '{"spec":{"suspend":false}}'"""


@pytest.mark.parametrize(
    ("manifest", "commands", "answer"),
    [
        (cron_job(), ["clock advance 5h"], (DONE, "cronjob-waiting")),
        (
            cron_job("concurrencyPolicy: Forbid", "kubepy.dev/runs-for: 150m"),
            ["clock advance 150m"],
            (PROGRESSING, "cronjob-missed"),
        ),
        (
            cron_job("concurrencyPolicy: Forbid", "kubepy.dev/runs-for: 40m"),
            ["clock advance 90m"],
            (DONE, "cronjob-waiting"),
        ),
        (
            cron_job("startingDeadlineSeconds: 60\n  suspend: true"),
            ["clock advance 90m", RESUME],
            (DONE, "cronjob-missed"),
        ),
        (cron_job("suspend: true"), ["clock advance 90m", RESUME], (DONE, "cronjob-waiting")),
        (
            cron_job(annotations='kubepy.dev/exit-code: "1"'),
            ["clock advance 90m"],
            (DONE, "backoff-limit"),
        ),
        (
            cron_job("startingDeadlineSeconds: 60"),
            [
                "clock advance 90m",
                """patch cronjob report -p '{"spec":{"schedule":"15 * * * *"}}'""",
            ],
            (DONE, "cronjob-waiting"),
        ),
    ],
)
def test_cron_job(manifest: str, commands: list[str], answer: tuple[str, str]) -> None:
    cluster = made(cron_job=manifest)
    for command in commands:
        cluster.run(command, check=True)
    assert told(asked(cluster, "cronjobs.batch", "report")) == answer


# --- budgets --------------------------------------------------------------------------------------


def budget(spec: str) -> str:
    return f"""
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web}}
spec: {{{spec}, selector: {{matchLabels: {{app: web}}}}}}
"""


@pytest.mark.parametrize(
    ("spec", "state", "remedies"),
    [
        ("minAvailable: 2", STUCK, 3),
        ("minAvailable: 1", DONE, 0),
        ("maxUnavailable: 0", STUCK, 2),
        ("minAvailable: 100%", STUCK, 2),
        ("minAvailable: 51%", STUCK, 3),
        ("maxUnavailable: 1%", DONE, 0),
    ],
)
def test_cordoned_node_with_budget(spec: str, state: str, remedies: int) -> None:
    cluster = made(
        "create deployment web --image=web:1 --replicas=2",
        "rollout status deployment/web",
        budget=budget(spec),
    )
    node = cluster.client.list("pods")[0]["spec"]["nodeName"]
    assert told(asked(cluster, "nodes", node, "")) == (DONE, "up-to-date")
    assert asked(cluster, "poddisruptionbudgets.policy", "web").state == DONE
    cluster.run(f"cordon {node}", check=True)
    why = asked(cluster, "nodes", node, "")
    assert told(why) == (state, "disruption-budget" if state == STUCK else "cordoned")
    if state == STUCK:
        assert len(proven(why)) == len(why.remedies) == remedies
        of_budget = asked(cluster, "poddisruptionbudgets.policy", "web")
        assert told(of_budget) == (STUCK, "disruption-budget")
        assert len(proven(of_budget)) == remedies


def test_budget_that_cannot_count_pods_without_controller() -> None:
    cluster = made(
        "run web --image=web:1 --labels=app=web",
        "controller --once -q",
        budget=budget("maxUnavailable: 1"),
    )
    node = cluster.client.get("pod/web")["spec"]["nodeName"]
    cluster.run(f"cordon {node}", check=True)
    why = asked(cluster, "nodes", node, "")
    assert told(why) == (STUCK, "disruption-budget")
    assert why.chain[-1].field == "metadata.ownerReferences"
    assert len(proven(why)) == 2


def test_two_budgets_of_one_pod_allow_nothing() -> None:
    cluster = made(
        "create deployment web --image=web:1",
        "rollout status deployment/web",
        budget=budget("maxUnavailable: 1"),
        other=budget("minAvailable: 0").replace("name: web", "name: other"),
    )
    node = cluster.client.list("pods")[0]["spec"]["nodeName"]
    cluster.run(f"cordon {node}", check=True)
    why = asked(cluster, "nodes", node, "")
    assert told(why) == (STUCK, "disruption-budget")
    assert "delete poddisruptionbudget/web" in proven(why)


def test_drain_held_up_by_pod_that_is_not_healthy_leads_to_it() -> None:
    cluster = made(
        "create deployment web --image=web:1 --replicas=2",
        "rollout status deployment/web",
        budget=budget("maxUnavailable: 1"),
    )
    first, second = cluster.client.list("pods")
    cluster.client.patch(
        f"pod/{first['metadata']['name']}",
        {"metadata": {"annotations": {"kubepy.dev/outcome": "not-ready"}}},
    )
    cluster.run(f"cordon {second['spec']['nodeName']}", check=True)
    why = asked(cluster, "nodes", second["spec"]["nodeName"], "")
    assert told(why) == (STUCK, "disruption-budget")
    assert leaf(why) == f"pods/{first['metadata']['name']}"


# --- changes that do nothing ----------------------------------------------------------------------


WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", envFrom: [{configMapRef: {name: settings}}],
         volumeMounts: [{name: key, mountPath: /key}]}
      volumes: [{name: key, secret: {secretName: key}}]
"""


@pytest.mark.parametrize(
    "change",
    [
        """patch configmap settings -p '{"data":{"a":"2"}}'""",
        """patch secret key -p '{"stringData":{"a":"2"}}'""",
    ],
)
def test_changed_config_is_named_until_restart(change: str) -> None:
    cluster = made(
        "create configmap settings --from-literal=a=1",
        "create secret generic key --from-literal=a=1",
    )
    cluster.run("apply -f -", stdin=WEB, check=True)
    cluster.run("rollout status deployment/web", check=True)
    assert told(asked(cluster, "deployments.apps", "web")) == (DONE, "up-to-date")
    cluster.run(change, check=True)  # in the same second
    why = asked(cluster, "deployments.apps", "web")
    assert told(why) == (DONE, "config-changed")
    assert proven(why) == ["rollout restart deployment/web"]
    cluster.run("rollout restart deployment/web", check=True)
    assert cluster.settle()
    assert told(asked(cluster, "deployments.apps", "web")) == (DONE, "up-to-date")


def test_configuration_that_pods_ran_without_is_asked_for_until_it_is_there() -> None:
    cluster = made(
        settings={"kubelet": {"containers": "simple"}},
        deployment="""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        envFrom: [{configMapRef: {name: settings}}, {configMapRef: {name: more, optional: true}}]
        env: [{name: KEY, valueFrom: {secretKeyRef: {name: keys, key: key}}}]
""",
    )
    cluster.advance("1m")
    steps = {
        "": "configmap-missing",
        "create configmap settings --from-literal=a=b": "secret-missing",
        "create secret generic keys --from-literal=key=value": "up-to-date",
        "create configmap more --from-literal=a=b": "config-changed",
        "rollout restart deployment/web": "up-to-date",
        """patch configmap settings -p '{"data":{"a":"c"}}'""": "config-changed",
    }
    helps = []
    for command, cause in steps.items():
        if command:
            cluster.run(command, check=True)
            cluster.advance("1m")
        why = asked(cluster, "deployments.apps", "web")
        assert told(why) == (DONE, cause)
        helps += [remedy.proven for remedy in why.remedies]
    assert helps == [False, True, True, True]  # the first leaves the Secret missing


def test_label_of_config_is_no_change_of_it() -> None:
    cluster = made(
        "create configmap settings --from-literal=a=1",
        "create secret generic key --from-literal=a=1",
    )
    cluster.run("apply -f -", stdin=WEB, check=True)
    cluster.run("rollout status deployment/web", check=True)
    cluster.advance("1m")
    cluster.run("label configmap settings team=shop", check=True)
    assert told(asked(cluster, "deployments.apps", "web")) == (DONE, "up-to-date")


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("annotate deployment web a=b", "template-unchanged"),
        ("""patch deployment web -p '{"spec":{"minReadySeconds":1}}'""", "template-unchanged"),
        ("set image deployment/web web=web:2", "up-to-date"),
        ("rollout restart deployment/web", "up-to-date"),
        ("scale deployment web --replicas=0", "scaled-to-zero"),
    ],
)
def test_change_beside_template_is_named(command: str, cause: str) -> None:
    cluster = made(
        "create deployment web --image=web:1", "rollout status deployment/web", "clock advance 1m"
    )
    cluster.run(command, check=True)
    cluster.settle()
    assert told(asked(cluster, "deployments.apps", "web")) == (DONE, cause)


# --- autoscalers ----------------------------------------------------------------------------------


def test_autoscaler_undoes_scale() -> None:
    cluster = made("create deployment web --image=web:1 --replicas=2", AUTO, "clock advance 1m")
    assert told(asked(cluster, "deployments.apps", "web")) == (DONE, "up-to-date")
    cluster.run("scale deployment web --replicas=9", check=True)
    assert asked(cluster, "deployments.apps", "web").cause == "autoscaler-conflict"
    cluster.advance("1m")
    assert told(asked(cluster, "deployments.apps", "web")) == (DONE, "autoscaler-conflict")
    assert cluster.client.get("deployment/web")["spec"]["replicas"] == 5


def test_autoscaler_undoes_scale_by_its_metrics() -> None:
    cluster = made(
        "create secret generic key --from-literal=a=1",
        "autoscale deployment web --min=1 --max=5 --cpu=80%",
        "clock advance 5m",
        web=WEB.replace(
            "metadata: {labels: {app: web}}",
            "metadata: {labels: {app: web}, annotations: {kubepy.dev/cpu: 10m}}",
        ).replace(
            "envFrom: [{configMapRef: {name: settings}}]", "resources: {requests: {cpu: 100m}}"
        ),
    )
    cluster.settle()
    assert asked(cluster, "deployments.apps", "web").state == DONE
    cluster.run("scale deployment web --replicas=4", check=True)
    assert told(asked(cluster, "deployments.apps", "web")) == (DONE, "autoscaler-conflict")
    cluster.settle()
    cluster.advance("10m")
    why = asked(cluster, "deployments.apps", "web")
    assert told(why) == (DONE, "autoscaler-conflict")
    assert "undid 4 replicas" in why.chain[0].text


def test_target_scaled_to_zero_disables_autoscaler() -> None:
    cluster = made(
        "create deployment web --image=web:1 --replicas=2",
        AUTO,
        "scale deployment web --replicas=0",
        "clock advance 1m",
    )
    why = asked(cluster, "horizontalpodautoscalers.autoscaling", "web")
    assert told(why) == (STUCK, "autoscaler-conflict")
    assert leaf(why) == "deployments.apps/web"


def test_two_autoscalers_of_one_target() -> None:
    cluster = made(
        "create deployment web --image=web:1 --replicas=2",
        AUTO,
        f"{AUTO} --name=other",
        "clock advance 1m",
    )
    why = asked(cluster, "horizontalpodautoscalers.autoscaling", "web")
    assert told(why) == (STUCK, "autoscaler-rival")
    assert leaf(why) == "horizontalpodautoscalers.autoscaling/other"


# --- evidence and remedies ------------------------------------------------------------------------


def test_job_that_will_fail_says_what_is_not_so_yet_and_names_the_annotation() -> None:
    cluster = Cluster.temporary(nodes=3, seed=7)
    cluster.run(
        "apply -f -",
        stdin=job("backoffLimit: 2", "kubepy.dev/outcome: failed", "Never"),
        check=True,
    )
    cluster.settle(0)
    why = asked(cluster, "jobs.batch", "report")
    assert told(why) == (STUCK, "backoff-limit")
    failure, exit_code, annotation = why.chain
    assert failure.text.startswith("at 2026-")
    assert exit_code.text.endswith("(later)")
    assert (annotation.value, annotation.field) == (
        "failed",
        "metadata.annotations['kubepy.dev/outcome']",
    )
    cluster.settle()
    assert not any("(later)" in link.text for link in asked(cluster, "jobs.batch", "report").chain)


@pytest.mark.parametrize(
    ("nodes", "spec", "cause", "helps"),
    [
        (0, "", "no-nodes", []),
        (
            2,
            "nodeSelector: {disk: ssd}",
            "node-selector",
            ["label nodes node-1 disk=ssd", "label nodes --all disk=ssd"],
        ),
        (
            2,
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: "
            "[{matchExpressions: [{key: disk, operator: Exists}]}]}}}",
            "node-affinity",
            [],
        ),
    ],
)
def test_daemon_set_without_a_node_says_so(
    nodes: int, spec: str, cause: str, helps: list[str]
) -> None:
    cluster = made(
        nodes=nodes,
        agent=f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      containers: [{{name: agent, image: "agent:1"}}]
      {spec}
""",
    )
    why = asked(cluster, "daemonsets.apps", "agent")
    assert told(why) == (DONE, cause)
    assert proven(why) == helps


def test_daemon_set_names_the_taint_that_its_pods_do_not_tolerate() -> None:
    cluster = made(
        "taint nodes node-1 gpu=yes:NoSchedule",
        "taint nodes node-2 here=fine:NoSchedule",
        "taint nodes node-2 maintenance=now:NoExecute",
        nodes=2,
        agent="""
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: "agent:1"}]
      tolerations: [{key: here, operator: Exists}]
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
        {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-2]}]}]}}}
""",  # noqa: E501
    )
    cluster.run("delete pods --all", check=True)
    why = asked(cluster, "daemonsets.apps", "agent")
    assert told(why) == (DONE, "taint")
    taint = why.chain[-1]
    assert (taint.key.name, taint.value["key"]) == ("node-2", "maintenance")


def test_two_pods_that_do_not_end_are_let_go_of_by_one_command() -> None:
    cluster = made(
        "create deployment web --image=web:1 --replicas=2",
        """patch deployment web -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'""",  # noqa: E501
        f"patch deployment web {STUCK_PODS}",
        "rollout restart deployment/web",
    )
    cluster.advance("2m")
    cluster.run("set image deployment/web web=web:2", check=True)
    cluster.advance("1m")
    why = asked(cluster, "deployments.apps", "web")
    assert told(why)[0] == STUCK
    names = [pod["metadata"]["name"] for pod in cluster.client.list("pods")]
    assert proven(why) == [f"delete pod {' '.join(names)} --grace-period=0 --force"]


def test_quota_with_two_causes_quotes_the_one_that_the_api_names() -> None:
    cluster = made("create quota all --hard=pods=2,requests.cpu=2", nodes=1)
    cluster.run(
        """run first --image=web:1 --overrides='{"spec":{"containers":[{"name":"first","image":"web:1",
        "resources":{"requests":{"cpu":"100m"}}}]}}'""",  # noqa: E501
        check=True,
    )
    cluster.run(
        """run second --image=web:1 --overrides='{"spec":{"containers":[{"name":"second","image":"web:1",
        "resources":{"requests":{"cpu":"100m"}}}]}}'""",  # noqa: E501
        check=True,
    )
    cluster.run("create deployment web --image=web:1", check=True)
    why = asked(cluster, "deployments.apps", "web")
    assert told(why) == (STUCK, "quota-exceeded")
    assert "must specify requests.cpu" in str([link.value for link in why.chain])
    assert why.chain[-1].field == "spec.hard['requests.cpu']"
    assert proven(why) == ["delete resourcequota/all"]


# --- Services -------------------------------------------------------------------------------------


def test_service_follows_pods_that_are_not_ready() -> None:
    cluster = made(
        "run web --image=web:1 --annotations=kubepy.dev/outcome=not-ready",
        "expose pod web --port=80",
    )
    why = asked(cluster, "services", "web")
    assert told(why) == (STUCK, "not-ready")
    assert leaf(why) == "pods/web"


def test_service_is_done_with_one_ready_pod() -> None:
    cluster = made(
        "run web --image=web:1 --labels=app=web",
        "expose pod web --port=80",
        "run other --image=web:1 --labels=app=web --annotations=kubepy.dev/outcome=not-ready",
    )
    assert asked(cluster, "services", "web").state == DONE


def test_volume_whose_claim_is_gone_says_so() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    for manifest in (volume("disk", "1Gi"), claim(spec="storageClassName: manual")):
        cluster.run("apply -f -", stdin=manifest, check=True)
    cluster.advance("10s")
    cluster.run("delete pvc data", check=True)
    cluster.advance("10s")
    why = cluster.why("pv/disk")
    assert (why.state, why.cause) == (STUCK, "volume-released")
    assert [(remedy.kind, remedy.proven) for remedy in why.remedies] == [("destructive", True)]


def test_daemon_set_without_any_untainted_node_has_remedies() -> None:
    cluster = Cluster.temporary(nodes=2, seed=7)
    cluster.run("taint nodes --all dedicated=db:NoSchedule", check=True)
    cluster.run("apply -f -", stdin=workload("DaemonSet"), check=True)
    why = cluster.why("daemonset/web")
    assert (why.state, why.cause) == (DONE, "taint")
    assert [remedy.proven for remedy in why.remedies] == [True, True]
    assert why.remedies[1].command[-1] == "dedicated:NoSchedule-"
