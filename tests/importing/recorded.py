"""Recorded lives: by the name of the state that people see, the objects around one pod in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.importing.lives import (
    DAY,
    HOUR,
    MINUTE,
    NAMESPACE,
    UNAUTHORIZED,
    DeploymentLife,
    Object,
    ago,
    crash_loop,
    ended,
    node,
    pod,
    running,
    terminated,
    uid,
    waiting,
)

APP = "registry.example.com/shop/app:1.4"
PROBE = {
    "httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"},
    "periodSeconds": 10,
    "failureThreshold": 3,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}


def nodes() -> list[Object]:
    return [node("worker-1"), node("worker-2")]


def app(**more: Any) -> list[Object]:
    return [{"name": "app", "image": APP, **more}]


def deployed(statuses: dict[str, Object], *, containers: Any = None, **more: Any) -> list[Object]:
    """Return a Deployment ``app`` with one pod ``app-h1-p``."""
    init = more.pop("init", ())
    life = DeploymentLife("app", {"h1": containers or app()}, init=init)
    life.add_pod("p", statuses, **more)
    return [*nodes(), *life.objects()]


def job(name: str, status: Object, pods: list[Object], **spec: Any) -> list[Object]:
    """Return a Job and its pods, which are given without an owner."""
    own_uid = uid("Job", name)
    labels = {
        "batch.kubernetes.io/controller-uid": own_uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": own_uid,
        "job-name": name,
    }
    template_spec = {
        key: value
        for key, value in pods[0]["spec"].items()
        if key in ("containers", "dnsPolicy", "restartPolicy", "schedulerName", "securityContext")
    }
    full: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": own_uid,
            "creationTimestamp": ago(HOUR),
            "generation": 1,
            "labels": labels,
        },
        "spec": {
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "completions": 1,
            "manualSelector": False,
            "parallelism": 1,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": own_uid}},
            "suspend": False,
            "template": {
                "metadata": {"labels": labels},
                "spec": {**template_spec, "terminationGracePeriodSeconds": 30},
            },
            **spec,
        },
        "status": status,
    }
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": own_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for each in pods:
        each["metadata"]["labels"] = labels
        each["metadata"]["ownerReferences"] = [reference]
    return [full, *pods]


# --- the lives ------------------------------------------------------------------------------------


def crash_loop_back_off() -> list[Object]:
    last = ended(3, 112, 100, message="panic: DATABASE_URL is not set\n")
    return deployed({"app": crash_loop("app-h1-p", last, 7, "5m0s")}, age=20 * MINUTE)


def crash_loop_that_runs() -> list[Object]:
    return deployed({"app": running(5, restarts=4, last=ended(1, 180, 165))}, age=5 * MINUTE)


def exits_with_zero_again_and_again() -> list[Object]:
    last = ended(0, 85 * MINUTE, 25 * MINUTE)
    return deployed(
        {"app": running(25 * MINUTE, restarts=20, last=last)},
        containers=app(command=["sleep", "3600"]),
        age=21 * HOUR,
    )


def out_of_memory_and_running_again() -> list[Object]:
    limited = app(resources={"limits": {"memory": "256Mi"}, "requests": {"memory": "256Mi"}})
    last = ended(137, 150 * MINUTE, 40 * MINUTE + 1, "OOMKilled")
    return deployed(
        {"app": running(40 * MINUTE, restarts=4, last=last)},
        containers=limited,
        status={"qosClass": "Burstable"},
    )


def out_of_memory_in_a_loop() -> list[Object]:
    limited = app(resources={"limits": {"memory": "64Mi"}})
    last = ended(137, 33, 31, "OOMKilled")
    return deployed(
        {"app": crash_loop("app-h1-p", last, 3, "40s")},
        containers=limited,
        age=2 * MINUTE,
        status={"qosClass": "Burstable"},
    )


def image_pull_back_off() -> list[Object]:
    message = f'Back-off pulling image "{APP}": ErrImagePull: {UNAUTHORIZED.format(APP)}'
    return deployed({"app": waiting("ImagePullBackOff", message)}, age=17 * MINUTE)


def error_of_image_pull() -> list[Object]:
    return deployed({"app": waiting("ErrImagePull", UNAUTHORIZED.format(APP))}, age=40)


def secret_not_found() -> list[Object]:
    source = {"secretKeyRef": {"name": "db", "key": "password"}}
    containers = app(env=[{"name": "PASSWORD", "valueFrom": source}])
    message = 'secret "db" not found'
    return deployed(
        {"app": waiting("CreateContainerConfigError", message)},
        containers=containers,
        age=HOUR,
    )


def image_runs_as_root() -> list[Object]:
    """The kubelet knows the user of the image; nobody else does."""
    message = "container has runAsNonRoot and image will run as root (pod: app, container: app)"
    return deployed({"app": waiting("CreateContainerConfigError", message)}, age=HOUR)


def program_not_found() -> list[Object]:
    message = (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        'runc create failed: unable to start container process: exec: "/app/run": stat /app/run: '
        "no such file or directory: unknown"
    )
    last: Object = {
        **ended(128, 90, 90, "StartError", message),
        "startedAt": "1970-01-01T00:00:00Z",
    }
    return deployed({"app": crash_loop("app-h1-p", last, 5, "2m40s")}, age=10 * MINUTE)


def unschedulable() -> list[Object]:
    containers = app(resources={"requests": {"cpu": "64"}})
    life = DeploymentLife("app", {"h1": containers})
    made = life.add_pod("p", {}, age=HOUR)
    del made["spec"]["nodeName"]
    message = (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 "
        "nodes are available: 2 Preemption is not helpful for scheduling."
    )
    made["status"] = {
        "conditions": [
            {
                "lastProbeTime": None,
                "lastTransitionTime": ago(HOUR - 1),
                "message": message,
                "observedGeneration": 1,
                "reason": "Unschedulable",
                "status": "False",
                "type": "PodScheduled",
            }
        ],
        "observedGeneration": 1,
        "phase": "Pending",
        "qosClass": "Burstable",
    }
    return [*nodes(), *life.objects()]


def missing_volume() -> list[Object]:
    volumes = [{"name": "settings", "configMap": {"name": "settings", "defaultMode": 420}}]
    mounts = [{"name": "settings", "mountPath": "/etc/app"}]
    return deployed(
        {"app": waiting("ContainerCreating")},
        containers=app(volumeMounts=mounts),
        spec={"volumes": volumes},
        age=HOUR,
    )


def volume_not_attached() -> list[Object]:
    """A cloud does not attach a disk: only the events tell it."""
    objects = deployed({"app": waiting("ContainerCreating")}, age=HOUR)
    message = (
        'AttachVolume.Attach failed for volume "pvc-0b7a" : rpc error: code = Internal desc = '
        "volume is attached to another node"
    )
    event: Object = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": "app-h1-p.18a",
            "namespace": NAMESPACE,
            "uid": uid("Event", "attach"),
            "creationTimestamp": ago(HOUR - 10),
        },
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "app-h1-p",
            "namespace": NAMESPACE,
            "uid": uid("Pod", "app-h1-p"),
        },
        "reason": "FailedAttachVolume",
        "message": message,
        "type": "Warning",
        "count": 20,
        "firstTimestamp": ago(HOUR - 10),
        "lastTimestamp": ago(60),
        "source": {"component": "attachdetach-controller"},
        "reportingComponent": "attachdetach-controller",
        "reportingInstance": "",
    }
    return [*objects, event]


def running_and_not_ready() -> list[Object]:
    return deployed(
        {"app": running(2 * HOUR, ready=False)},
        containers=app(readinessProbe=PROBE),
        age=2 * HOUR + 5,
    )


def completed_job() -> list[Object]:
    done = pod(
        "migrate-x7k2p",
        {"app": terminated(ended(0, 50 * MINUTE, 50 * MINUTE - 95))},
        phase="Succeeded",
        spec={"restartPolicy": "Never"},
        age=51 * MINUTE,
    )
    conditions = [
        {
            "lastProbeTime": ago(48 * MINUTE),
            "lastTransitionTime": ago(48 * MINUTE),
            "message": "Reached expected number of succeeded pods",
            "reason": "CompletionsReached",
            "status": "True",
            "type": kind,
        }
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    status = {
        "completionTime": ago(48 * MINUTE),
        "conditions": conditions,
        "ready": 0,
        "startTime": ago(51 * MINUTE),
        "succeeded": 1,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    return [*nodes(), *job("migrate", status, [done])]


def failed_pods_of_job() -> list[Object]:
    """Two pods have failed, and the third runs."""
    pods = [
        pod(
            f"migrate-{name}",
            {"app": terminated(ended(2, begin, begin - 8))},
            phase="Failed",
            spec={"restartPolicy": "Never"},
            age=begin + 3,
        )
        for name, begin in (("a", 90), ("b", 70))
    ]
    last = pod("migrate-c", {"app": running(5)}, spec={"restartPolicy": "Never"}, age=8)
    status = {
        "active": 1,
        "failed": 2,
        "ready": 1,
        "startTime": ago(93),
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    return [*nodes(), *job("migrate", status, [*pods, last])]


def evicted() -> list[Object]:
    life = DeploymentLife("app", {"h1": app()})
    life.add_pod("q", {"app": running(DAY)}, age=DAY + 10, ready_after=9, node="worker-2")
    objects = life.objects()
    gone = pod(
        "app-h1-p",
        {"app": terminated(ended(137, 2 * DAY, DAY + 60))},
        phase="Failed",
        owner=life.replica_set("h1"),
        labels={"app": "app", "pod-template-hash": "h1"},
        status={
            "reason": "Evicted",
            "message": "The node was low on resource: memory. Threshold quantity: 100Mi.",
        },
    )
    return [*nodes(), *objects, gone]


def terminating_on_silent_node() -> list[Object]:
    life = DeploymentLife("app", {"h1": app()})
    life.add_pod("q", {"app": running(4 * MINUTE)}, age=4 * MINUTE + 5, ready_after=3)
    stuck = life.add_pod("p", {"app": running(3 * DAY)}, node="worker-3")
    stuck["metadata"] |= {
        "deletionTimestamp": ago(4 * MINUTE),
        "deletionGracePeriodSeconds": 30,
        "generation": 2,
    }
    for condition in stuck["status"]["conditions"]:
        if condition["type"] == "Ready":
            condition |= {"status": "False", "lastTransitionTime": ago(9 * MINUTE)}
            condition.pop("reason", None)
    stuck["status"]["conditions"].append(
        {
            "lastProbeTime": None,
            "lastTransitionTime": ago(4 * MINUTE),
            "message": "Taint manager: deleting due to NoExecute taint",
            "reason": "DeletionByTaintManager",
            "status": "True",
            "type": "DisruptionTarget",
        }
    )
    objects = life.objects()
    for each in objects:
        if each["kind"] in ("ReplicaSet", "Deployment"):
            each["status"]["terminatingReplicas"] = 1
    return [*nodes(), node("worker-3", "Unknown"), *objects]


def terminating_and_running_still() -> list[Object]:
    life = DeploymentLife("app", {"h1": app()})
    life.add_pod("q", {"app": running(20)}, age=22, ready_after=1)
    leaving = life.add_pod("p", {"app": running(3 * DAY)})
    leaving["metadata"] |= {
        "deletionTimestamp": ago(-40),
        "deletionGracePeriodSeconds": 60,
        "generation": 2,
    }
    leaving["status"]["observedGeneration"] = 2
    leaving["spec"]["terminationGracePeriodSeconds"] = 60
    objects = life.objects()
    for each in objects:
        if each["kind"] in ("ReplicaSet", "Deployment"):
            each["status"]["terminatingReplicas"] = 1
    return [*nodes(), *objects]


def init_container_in_crash_loop() -> list[Object]:
    init = [{"name": "wait", "image": "registry.example.com/shop/wait:2"}]
    full = f"app-h1-p_{NAMESPACE}({uid('Pod', 'app-h1-p')})"
    message = f"back-off 1m20s restarting failed container=wait pod={full}"
    return deployed(
        {
            "wait": waiting("CrashLoopBackOff", message, 4, ended(1, 70, 40)),
            "app": waiting("PodInitializing"),
        },
        init=init,
        age=6 * MINUTE,
    )


def init_container_that_runs() -> list[Object]:
    init = [
        {"name": "fetch", "image": "registry.example.com/shop/fetch:1"},
        {"name": "load", "image": "registry.example.com/shop/load:1"},
    ]
    done: Object = {**terminated(ended(0, 590, 560)), "ready": True}
    return deployed(
        {
            "fetch": done,
            "load": running(559, ready=False),
            "app": waiting("PodInitializing"),
        },
        init=init,
        age=600,
    )


def sidecar() -> list[Object]:
    init = [
        {
            "name": "proxy",
            "image": "registry.example.com/mesh/proxy:1.20",
            "restartPolicy": "Always",
            "startupProbe": PROBE,
        },
        {"name": "migrate", "image": "registry.example.com/shop/migrate:1"},
    ]
    migrated: Object = {**terminated(ended(0, 2 * DAY - 8, 2 * DAY - 20)), "ready": True}
    return deployed(
        {
            "proxy": running(2 * DAY - 4),
            "migrate": migrated,
            "app": running(2 * DAY - 21),
        },
        init=init,
        age=2 * DAY,
        ready_after=25,
    )


def contradicting_command() -> list[Object]:
    """A script that fails in the model, where the files of the image are not, and runs."""
    return deployed(
        {"app": running(3 * DAY - 5)},
        containers=app(command=["sh", "-c", "cd /opt/app && exec ./server"]),
        ready_after=20,
    )


def contradicting_probe() -> list[Object]:
    probe = {**PROBE, "exec": {"command": ["cat", "/tmp/healthy"]}}
    del probe["httpGet"]
    return deployed(
        {"app": running(3 * DAY - 5)},
        containers=app(readinessProbe=probe, livenessProbe=probe),
        ready_after=20,
    )


LIVES: dict[str, Callable[[], list[Object]]] = {
    life.__name__.replace("_", " "): life
    for life in (
        crash_loop_back_off,
        crash_loop_that_runs,
        exits_with_zero_again_and_again,
        out_of_memory_and_running_again,
        out_of_memory_in_a_loop,
        image_pull_back_off,
        error_of_image_pull,
        secret_not_found,
        image_runs_as_root,
        program_not_found,
        unschedulable,
        missing_volume,
        volume_not_attached,
        running_and_not_ready,
        completed_job,
        failed_pods_of_job,
        evicted,
        terminating_on_silent_node,
        terminating_and_running_still,
        init_container_in_crash_loop,
        init_container_that_runs,
        sidecar,
        contradicting_command,
        contradicting_probe,
    )
}
