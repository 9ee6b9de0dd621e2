"""Pods whose containers do not run, and pods that are not created: each cause in each kind of
workload, among healthy ones. The pages of docs/why/ show the main case of each cause."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy import Cluster
from kubepy.insight import stdin_of
from kubepy.insight.why import DONE, PROGRESSING, STUCK, Why

Object = dict[str, Any]
OUTCOME = "kubepy.dev/outcome"
WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Pod")
INIT = [{"name": "init", "image": "init:1"}]
CONTAINER = {"name": "c", "image": "c:1"}


def manifest(
    kind: str, spec: Object | None = None, annotations: Object | None = None, **fields: Any
) -> Object:
    """Return a workload, or a pod, named ``web``."""
    meta = {"labels": {"app": "web"}, "annotations": annotations or {}}
    pod_spec = {"containers": [CONTAINER], **(spec or {})}
    if kind == "Pod":
        return {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": "web", **meta},
            "spec": pod_spec,
        }
    if kind == "Job":
        template = {"metadata": meta, "spec": {"restartPolicy": "Never", **pod_spec}}
        return {
            "apiVersion": "batch/v1",
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": {"template": template},
        }
    size = {} if kind == "DaemonSet" else {"replicas": 3}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            **size,
            "selector": {"matchLabels": {"app": "web"}},
            **fields,
            "template": {"metadata": meta, "spec": pod_spec},
        },
    }


def cluster_with(*objects: Object, **settings: Any) -> Cluster:
    cluster = Cluster.temporary(nodes=3, seed=7, settings=settings or None)
    for obj in objects:
        cluster.client.create(obj)
    return cluster


def proven(answer: Why) -> list[str]:
    return [" ".join(remedy.command) for remedy in answer.remedies if remedy.proven]


def assert_proven_remedies_help(cluster: Cluster, answer: Why, kind: str) -> None:
    for remedy in answer.remedies:
        if remedy.proven:
            fork = cluster.fork()
            fork.run(list(remedy.command), stdin=stdin_of(remedy.command), check=True)
            fork.settle()
            assert fork.why(kind, "web").state == DONE, remedy


BROKEN: list[
    tuple[str, Object, str, str]
] = [  # cause, spec, outcome, a part of the field that the chain shows
    (
        "invalid-image-name",
        {"containers": [{"name": "c", "image": "C:1"}]},
        "",
        "spec.containers[0].image",
    ),
    (
        "invalid-image-name",
        {"initContainers": [{"name": "i", "image": "a b"}]},
        "",
        "spec.initContainers[0].image",
    ),
    (
        "invalid-image-name",
        {"containers": [CONTAINER, {"name": "d", "image": "d:"}]},
        "",
        "spec.containers[1].image",
    ),
    ("image-pull", {}, "image-pull-backoff", "status.containerStatuses[0].state.waiting.reason"),
    ("crash-loop", {}, "crash-loop", "status.containerStatuses[0].state.waiting.reason"),
    ("out-of-memory", {}, "oom-killed", "lastState.terminated.reason"),
    (
        "init-container-failing",
        {"initContainers": INIT},
        "init-crash-loop",
        "status.initContainerStatuses[0]",
    ),
    ("not-ready", {}, "not-ready", "status.containerStatuses[0].ready"),
    ("not-started", {}, "pending", f"metadata.annotations['{OUTCOME}']"),
    ("invalid-annotation", {}, "perfect", f"metadata.annotations['{OUTCOME}']"),
]


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize(("cause", "spec", "outcome", "field"), BROKEN)
def test_broken_pods_are_named_from_their_workload(
    kind: str, cause: str, spec: Object, outcome: str, field: str
) -> None:
    cluster = cluster_with(manifest(kind, spec, {OUTCOME: outcome} if outcome else {}))
    answer = cluster.why(kind, "web")
    assert (answer.state, answer.cause) == (STUCK, cause)
    assert any(field in link.field for link in answer.chain)
    assert answer.chain[0].key.name == "web"
    if (
        kind in ("Deployment", "DaemonSet", "Pod")
        and cause not in ("not-ready",)
        and "a b" not in str(spec)
    ):
        assert proven(answer), answer
    assert_proven_remedies_help(cluster, answer, kind)


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
@pytest.mark.parametrize(("cause", "spec", "outcome", "field"), BROKEN)
def test_rollout_that_breaks_is_undone(
    kind: str, cause: str, spec: Object, outcome: str, field: str
) -> None:
    cluster = cluster_with(
        manifest(kind, {"initContainers": INIT} if spec.get("initContainers") else {})
    )
    cluster.settle()
    template = manifest(kind, spec, {OUTCOME: outcome} if outcome else {})["spec"]["template"]
    cluster.client.patch(f"{kind.lower()}/web", {"spec": {"template": template}}, type="merge")
    answer = cluster.why(kind, "web")
    assert answer.state == STUCK
    assert answer.cause in (cause, "surge-waits" if cause == "not-ready" else cause)
    assert f"rollout undo {kind.lower()}/web" in proven(answer)


def test_image_of_last_good_revision_is_proposed() -> None:
    cluster = cluster_with(manifest("Deployment"))
    cluster.run("set image deployment/web c=good:2", check=True)
    cluster.run("set image deployment/web c=Bad:3", check=True)
    assert "set image deployment/web c=good:2" in proven(cluster.why("deployment/web"))


def test_one_broken_pod_among_healthy_ones_is_the_one_to_blame() -> None:
    cluster = cluster_with(manifest("Deployment"))
    cluster.settle()
    broken = cluster.client.list("pods")[1]["metadata"]["name"]
    cluster.run(f"annotate pod {broken} {OUTCOME}=oom-killed", check=True)
    answer = cluster.why("deployment/web")
    assert (answer.state, answer.cause) == (STUCK, "out-of-memory")
    assert {link.key.name for link in answer.chain if link.key.resource == "pods"} == {broken}
    assert proven(answer) == [f"annotate pod/{broken} {OUTCOME}-"]


def test_second_container_that_waits_is_named() -> None:
    cluster = cluster_with(
        manifest("Pod", {"containers": [CONTAINER, {"name": "d", "image": "D"}]})
    )
    assert "status.containerStatuses[1].state.waiting.reason" in [
        link.field for link in cluster.why("pod/web").chain
    ]


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize(
    "outcome",
    [
        "crash-loop*3, ready",
        "oom-killed*2, ready",
        "image-pull-backoff*2, ready",
        "init-crash-loop*2, crash-loop, ready",
    ],
)
def test_pod_that_fails_some_times_is_on_its_way(kind: str, outcome: str) -> None:
    spec = {"initContainers": INIT} if "init" in outcome else {}
    cluster = cluster_with(manifest(kind, spec, {OUTCOME: outcome}))
    assert cluster.why(kind, "web").state == PROGRESSING
    cluster.settle()
    answer = cluster.why(kind, "web")
    assert (answer.state, answer.cause) == (DONE, "up-to-date")


def test_outcome_of_node_is_the_last_link_and_its_removal_the_remedy() -> None:
    cluster = cluster_with(manifest("DaemonSet"))
    cluster.run("annotate node node-2 kubepy.dev/pod-outcome=crash-loop", check=True)
    answer = cluster.why("daemonset/web")
    assert (answer.cause, answer.chain[-1].key.name) == ("crash-loop", "node-2")
    assert proven(answer) == ["annotate node node-2 kubepy.dev/pod-outcome-"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kubelet": {"outcome": "crash-loop"}}, "kubelet.outcome in kubepy.yaml: crash-loop"),
        ({"kubelet": {"outcome": "pending"}}, "kubelet.outcome in kubepy.yaml: pending"),
        (
            {"faults": {"pods": [{"outcome": "oom-killed"}]}},
            "faults.pods in kubepy.yaml: oom-killed",
        ),
    ],
)
def test_outcome_of_settings_is_named(settings: Object, text: str) -> None:
    answer = cluster_with(manifest("Deployment"), **settings).why("deployment/web")
    assert answer.state == STUCK
    assert answer.chain[-1].text == f"the simulated kubelet follows {text}"
    assert answer.remedies == ()


# --- pods that have ended -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "outcome", "cause"),
    [
        ({"restartPolicy": "Never"}, "failed", "container-failed"),
        ({"restartPolicy": "Never"}, "crash-loop", "container-failed"),
        ({"restartPolicy": "Never"}, "oom-killed", "out-of-memory"),
        (
            {"restartPolicy": "Never", "initContainers": INIT},
            "init-crash-loop",
            "init-container-failing",
        ),
        ({"initContainers": INIT}, "init-failed", "init-container-failing"),
        ({"activeDeadlineSeconds": 5}, "not-ready", "deadline-exceeded"),
        ({"activeDeadlineSeconds": 5}, "crash-loop", "deadline-exceeded"),
        ({"nodeName": "node-1", "nodeSelector": {"a": "b"}}, "", "pod-rejected"),
    ],
)
def test_pod_that_has_failed_or_will(spec: Object, outcome: str, cause: str) -> None:
    cluster = cluster_with(manifest("Pod", spec, {OUTCOME: outcome} if outcome else {}))
    assert cluster.why("pod/web").state == STUCK
    cluster.settle()
    answer = cluster.why("pod/web")
    assert (answer.state, answer.cause) == (STUCK, cause)


def test_job_with_broken_pod_goes_on_with_another_image() -> None:
    cluster = cluster_with(manifest("Job", {"containers": [{"name": "c", "image": "Busybox"}]}))
    answer = cluster.why("job/web")
    assert (answer.state, answer.cause) == (STUCK, "invalid-image-name")
    assert [command.startswith("set image pod/web-") for command in proven(answer)] == [True]


# --- missing objects ------------------------------------------------------------------------------


READS: list[tuple[str, str, Object]] = [
    (
        "configmap-missing",
        "configmap",
        {"containers": [{**CONTAINER, "envFrom": [{"configMapRef": {"name": "x"}}]}]},
    ),
    ("configmap-missing", "configmap", {"volumes": [{"name": "v", "configMap": {"name": "x"}}]}),
    (
        "secret-missing",
        "secret",
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "x"}}]}}]},
    ),
    (
        "secret-missing",
        "secret",
        {
            "initContainers": [
                {
                    "name": "i",
                    "image": "i:1",
                    "env": [
                        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}
                    ],
                }
            ]
        },
    ),
]


@pytest.mark.parametrize("kind", [*WORKLOADS, "Job"])
@pytest.mark.parametrize(("cause", "resource", "spec"), READS)
def test_missing_object_is_made_by_the_remedy(
    kind: str, cause: str, resource: str, spec: Object
) -> None:
    cluster = cluster_with(manifest(kind, spec), kubelet={"references": "required"})
    answer = cluster.why(kind, "web")
    assert (answer.state, answer.cause) == (STUCK, cause)
    assert (answer.chain[-1].key.resource, answer.chain[-1].key.name) == (f"{resource}s", "x")
    words = ["secret generic" if resource == "secret" else resource]
    assert [command.startswith(f"create {words[0]} x") for command in proven(answer)] == [True]
    assert_proven_remedies_help(cluster, answer, kind)


@pytest.mark.parametrize("resource", ["configmap", "secret generic"])
def test_missing_keys_are_added_by_the_remedy(resource: str) -> None:
    source = "configMap" if resource == "configmap" else "secret"
    items = {
        "items": [{"key": "a", "path": "a"}, {"key": "b", "path": "b"}, {"key": "c", "path": "c"}]
    }
    volume = {
        "name": "v",
        source: {"name" if source == "configMap" else "secretName": "x", **items},
    }
    cluster = cluster_with(
        manifest("Deployment", {"volumes": [volume]}), kubelet={"references": "required"}
    )
    cluster.run(f"create {resource} x --from-literal=b=1", check=True)
    answer = cluster.why("deployment/web")
    assert (answer.state, answer.cause) == (STUCK, "key-missing")
    assert answer.chain[-1].text == "it has no such key; its keys: b"
    assert len(proven(answer)) == 1
    assert_proven_remedies_help(cluster, answer, "deployment")


@pytest.mark.parametrize("kind", WORKLOADS)
def test_pods_that_a_real_kubelet_would_not_start_are_done_and_named(kind: str) -> None:
    spec = {"containers": [{**CONTAINER, "envFrom": [{"secretRef": {"name": "x"}}]}]}
    cluster = cluster_with(manifest(kind, spec), kubelet={"containers": "simple"})
    answer = cluster.why(kind, "web")
    assert (answer.state, answer.cause) == (DONE, "secret-missing")
    assert "a real kubelet would not start it" in answer.chain[0].text


@pytest.mark.parametrize("kind", WORKLOADS)
def test_missing_secret_holds_up_the_pods_of_new_clusters(kind: str) -> None:
    spec = {"containers": [{**CONTAINER, "envFrom": [{"secretRef": {"name": "x"}}]}]}
    cluster = cluster_with(manifest(kind, spec))
    answer = cluster.why(kind, "web")
    assert (answer.state, answer.cause) == (STUCK, "secret-missing")
    assert proven(answer) == ["create secret generic x"]
    assert_proven_remedies_help(cluster, answer, kind)


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        (
            {
                "containers": [
                    {**CONTAINER, "envFrom": [{"secretRef": {"name": "x", "optional": True}}]}
                ]
            },
            {},
        ),
        (
            {"containers": [{**CONTAINER, "envFrom": [{"secretRef": {"name": "x"}}]}]},
            {"references": "ignored"},
        ),
        (
            {"volumes": [{"name": "v", "configMap": {"name": "kube-root-ca.crt"}}]},
            {"references": "required"},
        ),
        ({"imagePullSecrets": [{"name": "x"}]}, {"references": "required"}),
    ],
)
def test_references_that_hold_nothing_up_are_not_named(spec: Object, settings: Object) -> None:
    answer = cluster_with(manifest("Deployment", spec), kubelet=settings).why("deployment/web")
    assert (answer.state, answer.cause) == (DONE, "up-to-date")


def test_object_that_goes_missing_later_is_no_cause() -> None:
    spec = {"containers": [{**CONTAINER, "envFrom": [{"configMapRef": {"name": "x"}}]}]}
    cluster = cluster_with(kubelet={"references": "required"})
    cluster.run("create configmap x", check=True)
    cluster.client.create(manifest("Deployment", spec))
    cluster.settle()
    cluster.run("delete configmap x", check=True)
    assert cluster.why("deployment/web").cause == "up-to-date"


@pytest.mark.parametrize("kind", [*WORKLOADS[:-1], "Job"])
@pytest.mark.parametrize(
    ("spec", "cause", "command"),
    [
        ({"serviceAccountName": "robot"}, "service-account-missing", "create serviceaccount robot"),
        (
            {"priorityClassName": "high"},
            "priority-class-missing",
            "create priorityclass high --value=1000",
        ),
    ],
)
def test_pods_that_the_api_refuses_for_a_missing_object(
    kind: str, spec: Object, cause: str, command: str
) -> None:
    cluster = cluster_with(manifest(kind, spec), bootstrap="full")
    answer = cluster.why(kind, "web")
    assert (answer.state, answer.cause) == (STUCK, cause)
    assert any("the API refuses its pods" in link.text for link in answer.chain)
    assert proven(answer) == [command]
    assert_proven_remedies_help(cluster, answer, kind)


@pytest.mark.parametrize("kind", [*WORKLOADS[:-1], "Job"])
def test_missing_runtime_class_is_made_last(kind: str) -> None:
    cluster = cluster_with(manifest(kind, {"runtimeClassName": "kata"}), bootstrap="full")
    answer = cluster.why(kind, "web")
    assert (answer.state, answer.cause) == (STUCK, "runtime-class-missing")
    assert any("the API refuses its pods" in link.text for link in answer.chain)
    assert proven(answer)[-1] == "create -f -"  # it only changes the simulation
    assert_proven_remedies_help(cluster, answer, kind)


def test_two_missing_objects_are_named_as_the_api_does() -> None:
    spec = {"serviceAccountName": "robot", "priorityClassName": "high"}
    answer = cluster_with(manifest("Deployment", spec), bootstrap="full").why("deployment/web")
    message = next(str(link.value) + link.text for link in answer.chain if "refuses" in link.text)
    assert answer.cause == (
        "priority-class-missing" if "PriorityClass" in message else "service-account-missing"
    )


def test_commands_name_the_namespace_of_the_pods() -> None:
    obj = manifest(
        "Deployment", {"containers": [{**CONTAINER, "envFrom": [{"configMapRef": {"name": "x"}}]}]}
    )
    cluster = cluster_with(kubelet={"references": "required"})
    cluster.run("create namespace shop", check=True)
    obj["metadata"]["namespace"] = "shop"
    cluster.client.create(obj)
    answer = cluster.why("deployment/web", namespace="shop")
    assert proven(answer) == ["create configmap x -n shop"]
