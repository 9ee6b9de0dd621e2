"""Compound incidents: clusters in which two or three things at once keep an object from getting
where it should be."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import yaml

from kubepy import Cluster


class Incident(NamedTuple):
    """A cluster that something is wrong with.

    :ivar asks: the object that does not get there.
    :ivar commands: command lines that lead there; ``apply`` alone applies the next manifest,
        ``after 2m`` lets time go on.
    :ivar settings: of ``kubepy.yaml``.
    """

    asks: str
    commands: tuple[str, ...]
    manifests: tuple[str, ...] = ()
    nodes: int = 3
    settings: dict[str, object] = {}  # noqa: RUF012


def begun(incident: Incident) -> Cluster:
    """Return a cluster in which an incident has happened."""
    cluster = Cluster.temporary(nodes=incident.nodes, seed=7, settings=incident.settings or None)
    manifests = iter(incident.manifests)
    for command in incident.commands:
        if command == "apply":
            cluster.run("apply -f -", stdin=next(manifests), check=True)
        elif command.startswith("after "):
            cluster.advance(command.removeprefix("after "))
        else:
            cluster.run(command, check=True)
    assert next(manifests, None) is None, "a manifest is left"
    cluster.settle(0)
    return cluster


def fields(text: str) -> dict[str, Any]:
    """Return fields in YAML's flow style: ``replicas: 2, paused: true``."""
    read: dict[str, Any] = yaml.safe_load("{" + text + "}")
    return read


def manifest(api_version: str, kind: str, name: str, spec: dict[str, Any], **others: Any) -> str:
    """Return a manifest as a document of a file."""
    obj = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
        **others,
    }
    return json.dumps(obj) + "\n"


def template(
    name: str,
    image: str,
    *,
    container: str = "",
    pod: str = "",
    annotations: str = "",
    restart: str = "Always",
) -> dict[str, Any]:
    """Return a pod template with one container; texts are fields, see :func:`fields`."""
    containers = [{"name": name, "image": image, **fields(container)}]
    return {
        "metadata": {"labels": {"app": name}, "annotations": fields(annotations)},
        "spec": {"restartPolicy": restart, "containers": containers, **fields(pod)},
    }


def workload(
    kind: str,
    name: str = "web",
    *,
    replicas: int = 2,
    spec: str = "",
    image: str = "",
    **of_template: str,
) -> str:
    """Return the manifest of a Deployment, StatefulSet or DaemonSet."""
    own: dict[str, Any] = {} if kind == "DaemonSet" else {"replicas": replicas}
    if kind == "StatefulSet":
        own["serviceName"] = name
    return manifest(
        "apps/v1",
        kind,
        name,
        {
            **own,
            **fields(spec),
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, image or f"{name}:1", **of_template),
        },
    )


def deployment(name: str = "web", **options: Any) -> str:
    return workload("Deployment", name, **options)


def job(spec: str = "", *, image: str = "report:1", **of_template: str) -> str:
    return manifest(
        "batch/v1",
        "Job",
        "report",
        {**fields(spec), "template": template("report", image, restart="Never", **of_template)},
    )


def cron_job(
    spec: str = "", *, image: str = "report:1", schedule: str = "*/10 * * * *", **of_template: str
) -> str:
    pods = template("report", image, restart="Never", **of_template)
    return manifest(
        "batch/v1",
        "CronJob",
        "report",
        {"schedule": schedule, **fields(spec), "jobTemplate": {"spec": {"template": pods}}},
    )


def claim(name: str = "data", spec: str = "", size: str = "1Gi") -> str:
    return manifest(
        "v1",
        "PersistentVolumeClaim",
        name,
        {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            **fields(spec),
        },
    )


def volume(name: str, size: str, spec: str = "") -> str:
    return manifest(
        "v1",
        "PersistentVolume",
        name,
        {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/data"},
            **fields(spec),
        },
    )


def service(
    name: str = "web", port: str = "port: 80", selector: str = "app: web", spec: str = ""
) -> str:
    return manifest(
        "v1",
        "Service",
        name,
        {"selector": fields(selector), "ports": [fields(port)], **fields(spec)},
    )


def ingress(backend: str = "web", port: str = "number: 80", spec: str = "") -> str:
    path = {
        "path": "/",
        "pathType": "Prefix",
        "backend": {"service": {"name": backend, "port": fields(port)}},
    }
    rules = [{"host": "web.example.com", "http": {"paths": [path]}}]
    return manifest("networking.k8s.io/v1", "Ingress", "web", {"rules": rules, **fields(spec)})


def autoscaler(name: str = "web", low: int = 2, high: int = 5) -> str:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return manifest(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        name,
        {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    )


def budget(spec: str, name: str = "web") -> str:
    selector = {"matchLabels": {"app": "web"}}
    return manifest(
        "policy/v1", "PodDisruptionBudget", name, {**fields(spec), "selector": selector}
    )


def limits(item: str) -> str:
    return manifest(
        "v1", "LimitRange", "limits", {"limits": [{"type": "Container", **fields(item)}]}
    )


PODS_CREATED = "apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]"


def webhook(rule: str = PODS_CREATED) -> str:
    """Return a webhook of a Service that does not exist."""
    hook = {
        "name": "guard.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "clientConfig": {"service": {"namespace": "guard", "name": "guard", "path": "/"}},
        "rules": [fields(rule)],
    }
    return (
        json.dumps(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "guard"},
                "webhooks": [hook],
            }
        )
        + "\n"
    )


def policy(expression: str, rule: str = PODS_CREATED) -> str:
    """Return an admission policy with its binding."""
    group = "admissionregistration.k8s.io/v1"
    validations, constraints = [{"expression": expression}], {"resourceRules": [fields(rule)]}
    return (
        manifest(
            group,
            "ValidatingAdmissionPolicy",
            "rules",
            {"failurePolicy": "Fail", "validations": validations, "matchConstraints": constraints},
        )
        + "---\n"
        + manifest(
            group,
            "ValidatingAdmissionPolicyBinding",
            "rules",
            {"policyName": "rules", "validationActions": ["Deny"]},
        )
    )


TAINT = "taint nodes --all dedicated=db:NoSchedule"
CORDON = "cordon node-1 node-2 node-3"
PAUSE = "rollout pause deployment/web"
ROLLED_OUT = "rollout status deployment/web"
RESTRICTED = "label namespace default pod-security.kubernetes.io/enforce=restricted"
HOLD = """--type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'"""
NO_PODS = "create quota team --hard=pods=0"
REQUIRED = {"kubelet": {"references": "required"}}
SPREAD = (
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, "
    "whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"
)
ENV = "envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: password}}]"

INCIDENTS: dict[str, Incident] = {
    # workloads and their pods
    "quota and taint": Incident(
        "deployment/web", (NO_PODS, TAINT, "create deployment web --image=web:1 --replicas=2")
    ),
    "paused and bad image": Incident(
        "deployment/web",
        (
            "create deployment web --image=web:1",
            ROLLED_OUT,
            PAUSE,
            "set image deployment/web web=Web:2",
        ),
    ),
    "pod security and quota": Incident(
        "deployment/web", (RESTRICTED, NO_PODS, "create deployment web --image=web:1")
    ),
    "scheduling gate and selector": Incident(
        "deployment/web",
        ("apply",),
        (deployment(pod="schedulingGates: [{name: example.com/wait}], nodeSelector: {disk: ssd}"),),
    ),
    "selector, taint and cordon": Incident(
        "deployment/web", (TAINT, CORDON, "apply"), (deployment(pod="nodeSelector: {disk: ssd}"),)
    ),
    "three missing references": Incident(
        "deployment/web",
        ("apply",),
        (deployment(container=ENV, pod="volumes: [{name: v, configMap: {name: files}}]"),),
        settings=REQUIRED,
    ),
    "reference and bad image": Incident(
        "deployment/web", ("apply",), (deployment(container=ENV, image="Web:1"),), settings=REQUIRED
    ),
    "limit range and quota": Incident(
        "deployment/web",
        (NO_PODS, "apply", "apply"),
        (
            limits("max: {cpu: 500m}"),
            deployment(container="resources: {requests: {cpu: '1'}, limits: {cpu: '2'}}"),
        ),
    ),
    "two bad revisions": Incident(
        "deployment/web",
        (
            "create deployment web --image=web:1 --replicas=2",
            ROLLED_OUT,
            "set image deployment/web web=Web:2",
            "set image deployment/web web=Web:3",
            PAUSE,
        ),
    ),
    "broken stateful set and its earlier revision": Incident(
        "statefulset/web",
        (
            "apply",
            "rollout status statefulset/web",
            "set image statefulset/web web=Web:2",
            "after 1m",
            "set image statefulset/web web=Web:3",
        ),
        (workload("StatefulSet", replicas=3),),
    ),
    "daemon set taint and host port": Incident(
        "daemonset/web",
        ("apply", "after 1s", "taint nodes node-2 dedicated=db:NoSchedule", "apply"),
        (
            """{apiVersion: v1, kind: Pod, metadata: {name: squatter}, spec: {nodeName: node-1, containers: [
        {name: c, image: 'c:1', ports: [{containerPort: 80, hostPort: 8080}]}]}}""",  # noqa: E501
            workload(
                "DaemonSet",
                container="ports: [{containerPort: 80, hostPort: 8080}]",
                pod="nodeSelector: {kubernetes.io/os: linux}, tolerations: [{operator: Exists}]",
                image="Web:1",
            ),
        ),
    ),
    "on delete and bad image": Incident(
        "statefulset/web",
        ("apply", "after 1m", "set image statefulset/web web=Web:2", "delete pod web-1"),
        (workload("StatefulSet", spec="updateStrategy: {type: OnDelete}"),),
    ),
    "name taken and taint": Incident(
        "statefulset/web",
        ("run web-0 --image=other:1", "after 1s", TAINT, "apply"),
        (workload("StatefulSet"),),
    ),
    "readiness gate and taint": Incident(
        "deployment/web",
        (TAINT, "apply"),
        (deployment(pod="readinessGates: [{conditionType: example.com/ok}]"),),
    ),
    # placement
    "huge request and selector": Incident(
        "deployment/web",
        ("apply",),
        (
            deployment(
                container="resources: {requests: {cpu: '64'}}", pod="nodeSelector: {disk: ssd}"
            ),
        ),
    ),
    "anti-affinity and quota": Incident(
        "deployment/web",
        ("create quota team --hard=pods=2", "apply"),
        (
            deployment(
                replicas=5,
                pod="affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["
                "{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: "
                "web}}}]}}",
            ),
        ),
    ),
    "spread and cordon": Incident(
        "deployment/web",
        ("cordon node-1 node-2", "apply"),
        (deployment(replicas=4, pod=f"{SPREAD}, nodeSelector: {{disk: ssd}}"),),
    ),
    "host port and taint": Incident(
        "deployment/web",
        ("taint nodes node-1 dedicated=db:NoSchedule", "apply"),
        (deployment(replicas=4, container="ports: [{containerPort: 80, hostPort: 8080}]"),),
    ),
    "no nodes and bad image": Incident(
        "deployment/web", ("apply",), (deployment(image="Web:1"),), nodes=0
    ),
    "dead node and taint": Incident(
        "deployment/web",
        (
            "annotate node node-1 kubepy.dev/down-until=2030-01-01T00:00:00Z",
            "after 2m",
            "taint nodes node-2 node-3 dedicated=db:NoSchedule",
            "apply",
        ),
        (deployment(),),
    ),
    "node name and quota": Incident(
        "deployment/web", (NO_PODS, "apply"), (deployment(pod="nodeName: node-9"),)
    ),
    "priority class and memory": Incident(
        "deployment/web",
        ("apply",),
        (
            deployment(
                pod="priorityClassName: urgent", container="resources: {requests: {memory: 900Gi}}"
            ),
        ),
    ),
    # storage
    "class missing and taint": Incident(
        "deployment/web",
        (TAINT, "apply", "apply"),
        (
            claim(spec="storageClassName: fast"),
            deployment(
                replicas=1, pod="volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"
            ),
        ),
    ),
    "volume too small and selector": Incident(
        "deployment/web",
        ("apply", "apply", "apply"),
        (
            volume("disk", "1Gi"),
            claim(spec="storageClassName: manual", size="5Gi"),
            deployment(
                replicas=1,
                pod="nodeSelector: {disk: ssd}, "
                "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]",
            ),
        ),
    ),
    "volume released and cordon": Incident(
        "deployment/web",
        ("apply", "apply", "after 10s", "delete pvc data", "after 10s", CORDON, "apply", "apply"),
        (
            volume("disk", "1Gi"),
            claim(spec="storageClassName: manual"),
            claim(spec="storageClassName: manual"),
            deployment(
                replicas=1, pod="volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"
            ),
        ),
    ),
    "claim missing and quota": Incident(
        "deployment/web",
        (NO_PODS, "apply"),
        (
            deployment(
                replicas=1, pod="volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"
            ),
        ),
    ),
    # policy
    "webhook and quota": Incident(
        "deployment/web", (NO_PODS, "apply", "create deployment web --image=web:1"), (webhook(),)
    ),
    "policy and cordon": Incident(
        "deployment/web",
        (CORDON, "apply", "create deployment web --image=web:1"),
        (policy("object.spec.containers.all(c, has(c.resources.limits))"),),
    ),
    "service account and selector": Incident(
        "deployment/web",
        ("apply",),
        (deployment(pod="serviceAccountName: robot, nodeSelector: {disk: ssd}"),),
        settings={"bootstrap": "full"},
    ),
    # deletions
    "namespace with finalizer and stuck pod": Incident(
        "namespace/shop",
        (
            "create namespace shop",
            "create configmap keep -n shop",
            f"patch configmap keep -n shop {HOLD}",
            "run web --image=web:1 -n shop --annotations=kubepy.dev/termination=stuck",
            "after 1s",
            "delete namespace shop --wait=false",
            "after 2m",
        ),
    ),
    "pod with finalizer on dead node": Incident(
        "pod/web",
        (
            "run web --image=web:1",
            "after 1s",
            f"patch pod web {HOLD}",
            "annotate nodes --all kubepy.dev/down-until=2030-01-01T00:00:00Z",
            "after 2m",
            "delete pod web --wait=false",
            "after 1m",
        ),
    ),
    "claim in use and finalizer": Incident(
        "pvc/data",
        (
            "apply",
            "apply",
            "after 5s",
            "patch pvc data --type=json -p "
            """'[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]'""",
            "delete pvc data --wait=false",
        ),
        (
            claim(),
            deployment(
                replicas=1, pod="volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"
            ),
        ),
    ),
    # nodes and budgets
    "two budgets and a pod that is not ready": Incident(
        "node/node-1",
        ("apply", "after 5s", "apply", "apply", "cordon node-1"),
        (
            workload("DaemonSet", "agent") + "---\n" + deployment(replicas=3, pod=SPREAD),
            budget("minAvailable: 3"),
            budget("maxUnavailable: 0", "other"),
        ),
    ),
    # jobs
    "job suspended and quota": Incident("job/report", (NO_PODS, "apply"), (job("suspend: true"),)),
    "job without parallelism and taint": Incident(
        "job/report", (TAINT, "apply"), (job("parallelism: 0"),)
    ),
    "job with bad image and cordon": Incident(
        "job/report", (CORDON, "apply"), (job(image="Report:1"),)
    ),
    "cron job suspended and quota": Incident(
        "cronjob/report",
        (
            "create quota team --hard=count/jobs.batch=0",
            "apply",
            "after 15m",
            """patch cronjob report -p '{"spec":{"suspend":true}}'""",
        ),
        (cron_job(),),
    ),
    "cron job forbids and taint": Incident(
        "cronjob/report",
        (TAINT, "apply", "after 25m"),
        (cron_job("concurrencyPolicy: Forbid", image="Report:1"),),
    ),
    # network
    "service scaled to zero and wrong port": Incident(
        "service/web",
        ("apply", "apply"),
        (
            deployment(replicas=0, container="ports: [{name: http, containerPort: 8080}]"),
            service(port="port: 80, targetPort: web"),
        ),
    ),
    "service with wrong selector and a taint": Incident(
        "service/web", (TAINT, "apply", "apply"), (deployment(), service(selector="app: wbe"))
    ),
    "ingress with wrong port and pods not ready": Incident(
        "ingress/web",
        ("apply", "apply", "apply"),
        (deployment(image="Web:1"), service(), ingress(port="number: 8080")),
    ),
    "ingress without service and paused": Incident(
        "ingress/web",
        ("apply", PAUSE, "apply", "apply"),
        (deployment(pod="nodeSelector: {disk: ssd}"), service(), ingress("wbe")),
    ),
    # autoscalers
    "autoscaler of nothing and quota": Incident(
        "hpa/web",
        ("create quota team --hard=pods=2", "apply", "apply"),
        (deployment(replicas=0, annotations="kubepy.dev/cpu: 90m"), autoscaler(low=4)),
    ),
    "two autoscalers and no requests": Incident(
        "hpa/web",
        ("apply", "apply", "apply", "after 1m"),
        (deployment(), autoscaler(low=2, high=3), autoscaler("other", 4, 6)),
    ),
    # objects that must be made anew, or that lead elsewhere than meant
    "job that fails and quota": Incident(
        "job/report",
        (NO_PODS, "apply"),
        (job("backoffLimit: 2", annotations='kubepy.dev/exit-code: "1"'),),
    ),
    "job that a policy fails and taint": Incident(
        "job/report",
        (TAINT, "apply"),
        (
            job(
                "podFailurePolicy: {rules: [{action: FailJob, "
                "onExitCodes: {operator: In, values: [3]}}]}",
                annotations='kubepy.dev/exit-code: "3"',
            ),
        ),
    ),
    "job past its deadline and selector": Incident(
        "job/report",
        ("apply", "after 2m"),
        (job("activeDeadlineSeconds: 30", pod="nodeSelector: {disk: ssd}"),),
    ),
    "job of another controller and gate": Incident(
        "job/report",
        ("apply",),
        (
            job(
                "managedBy: example.com/queue",
                pod="schedulingGates: [{name: example.com/wait}]",
            ),
        ),
    ),
    "runtime class and taint": Incident(
        "deployment/web", (TAINT, "apply"), (deployment(pod="runtimeClassName: gvisor"),)
    ),
    "stateful set on a full node": Incident(
        "statefulset/web",
        ("apply",),
        (
            workload(
                "StatefulSet",
                pod="nodeName: node-1",
                container="resources: {requests: {cpu: '9'}}",
            ),
        ),
    ),
    "deployment on a full node": Incident(
        "deployment/web",
        ("apply",),
        (deployment(pod="nodeName: node-1", container="resources: {requests: {cpu: '9'}}"),),
    ),
    "toleration for no time and bad image": Incident(
        "deployment/web",
        ("taint nodes --all dedicated=db:NoExecute", "apply"),
        (
            deployment(
                image="Web:1",
                pod="tolerations: [{key: dedicated, operator: Exists, effect: NoExecute, "
                "tolerationSeconds: 0}]",
            ),
        ),
    ),
    "mistyped target and quota": Incident(
        "hpa/web",
        ("create quota team --hard=pods=2", "apply", "apply", "after 1m"),
        (
            deployment(
                container="resources: {requests: {cpu: 100m}}", annotations="kubepy.dev/cpu: 50m"
            ),
            autoscaler(low=4).replace(
                '"kind": "Deployment", "name": "web"', '"kind": "Deployment", "name": "wbe"'
            ),
        ),
    ),
    "jobs made suspended and taint": Incident(
        "cronjob/report",
        (TAINT, "apply", "after 25m"),
        (
            cron_job("concurrencyPolicy: Forbid").replace(
                '"jobTemplate": {"spec": {', '"jobTemplate": {"spec": {"suspend": true, '
            ),
        ),
    ),
    "claims of a class that is missing and quota": Incident(
        "statefulset/web",
        ("create quota team --hard=persistentvolumeclaims=1", "apply"),
        (
            workload(
                "StatefulSet",
                replicas=3,
                spec="volumeClaimTemplates: [{metadata: {name: data}, spec: {"
                "storageClassName: fast, accessModes: [ReadWriteOnce], "
                "resources: {requests: {storage: 1Gi}}}}]",
            ),
        ),
    ),
    "pod security and gates in parallel": Incident(
        "statefulset/web",
        (RESTRICTED, "apply"),
        (
            workload(
                "StatefulSet",
                replicas=3,
                spec="podManagementPolicy: Parallel",
                pod="schedulingGates: [{name: example.com/wait}]",
            ),
        ),
    ),
    "cron job suspended, with a late start and a bad image": Incident(
        "cronjob/report",
        ("apply", "after 25m"),
        (cron_job("startingDeadlineSeconds: 5, suspend: true", image="Report:1"),),
    ),
    "replica set with quota and bad image": Incident(
        "replicaset/web",
        (NO_PODS, "apply"),
        (workload("ReplicaSet", image="Web:1"),),
    ),
    "autoscaler whose minimum finds no room": Incident(
        "hpa/web",
        ("apply", "apply"),
        (
            deployment(
                replicas=20,
                container="resources: {requests: {cpu: '2'}}",
                annotations="kubepy.dev/cpu: '1'",
            ),
            autoscaler(low=20, high=20),
        ),
    ),
    "autoscaler beyond a quota and a taint": Incident(
        "hpa/web",
        ("create quota team --hard=pods=1", TAINT, "apply", "apply"),
        (
            deployment(
                replicas=1,
                container="resources: {requests: {cpu: 100m}}",
                annotations="kubepy.dev/cpu: 50m",
            ),
            autoscaler(),
        ),
    ),
    "claim of a missing class, used by nobody": Incident(
        "pvc/data", ("apply",), (claim(spec="storageClassName: nope", size="500Gi"),)
    ),
    "claim larger than its volume, with another access": Incident(
        "pvc/data",
        ("apply", "apply"),
        (
            volume("small", "1Gi"),
            claim(spec="storageClassName: manual, accessModes: [ReadWriteMany]", size="5Gi"),
        ),
    ),
    "claim larger than its volume, with a selector": Incident(
        "pvc/data",
        ("apply", "apply"),
        (
            volume("small", "1Gi"),
            claim(spec="storageClassName: manual, selector: {matchLabels: {a: b}}", size="5Gi"),
        ),
    ),
    "claim without any class, and quota": Incident(
        "deployment/web",
        ("delete storageclass standard", NO_PODS, "apply", "apply"),
        (
            claim(),
            deployment(
                replicas=1, pod="volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"
            ),
        ),
    ),
    "ingress of a service without selector": Incident(
        "ingress/web", ("apply", "apply", "apply"), (service(selector=""), ingress(), deployment())
    ),
    "replication controller with bad image and taint": Incident(
        "rc/web",
        (TAINT, "apply"),
        (
            manifest(
                "v1",
                "ReplicationController",
                "web",
                {"replicas": 2, "template": template("web", "Web:1")},
            ),
        ),
    ),
    "replica set with three faults of its template": Incident(
        "rs/web",
        ("apply",),
        (
            workload(
                "ReplicaSet",
                image="Web:1",
                pod="nodeSelector: {disk: ssd}",
                container="envFrom: [{configMapRef: {name: settings}}]",
            ),
        ),
        settings=REQUIRED,
    ),
    "replica set with gate and service account": Incident(
        "rs/web",
        ("apply",),
        (
            workload(
                "ReplicaSet",
                pod="schedulingGates: [{name: example.com/wait}], serviceAccountName: robot",
            ),
        ),
    ),
    "many large pods and a taint": Incident(
        "deployment/web",
        (TAINT, "apply"),
        (deployment(replicas=12, container="resources: {requests: {cpu: '3'}}"),),
    ),
    "pods that exclude each other and quota": Incident(
        "deployment/web",
        ("create quota team --hard=pods=2", "apply"),
        (
            deployment(
                replicas=5,
                pod="affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                "[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: "
                "{app: web}}}]}}",
            ),
        ),
    ),
    "storage quota and cordon": Incident(
        "statefulset/web",
        ("create quota storage --hard=requests.storage=1Gi", CORDON, "apply"),
        (
            workload(
                "StatefulSet",
                spec="volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: "
                "[ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}]",
                container="volumeMounts: [{name: d, mountPath: /d}]",
            ),
        ),
    ),
}
