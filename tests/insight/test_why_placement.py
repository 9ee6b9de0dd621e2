"""Causes of placement beside those of the pages: other kinds, several reasons at once, rollouts,
preemption, refusals.

Each case makes a cluster, asks ``why`` and names the cause; the answer's evidence must be what the
API has, and remedies that are proven must bring the object to done.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api.meta import clone
from kubepy.insight.prediction import predict
from kubepy.insight.why.remedies import field_path, largest_share, show_amount
from kubepy.insight.why.scene import value_at
from tests.apiserver.webhook_server import CA_BUNDLE, configuration, rule, serving

Object = dict[str, Any]
APP = {"app": "web"}
HOST = "kubernetes.io/hostname"
ANTI_AFFINITY = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": APP}}
            ]
        }
    }
}
VOLUMES = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
RWOP = "ReadWriteOncePod"


def workload(
    kind: str = "Deployment",
    replicas: int = 2,
    name: str = "web",
    *,
    annotations: Object | None = None,
    spec: Object | None = None,
    **pod: Any,
) -> Object:
    """Make a workload whose pods have these further fields."""
    template = {
        "metadata": {"labels": {"app": name}, "annotations": annotations or {}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}], **pod},
    }
    own = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
        **(spec or {}),
    }
    if kind == "DaemonSet":
        del own["replicas"]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": own}


def asking(amount: str, resource: str = "cpu") -> Object:
    """Make the containers of a pod that requests so much."""
    return {
        "containers": [
            {"name": "web", "image": "nginx", "resources": {"requests": {resource: amount}}}
        ]
    }


def with_port(port: int = 80) -> Object:
    return {
        "containers": [
            {"name": "web", "image": "nginx", "ports": [{"containerPort": port, "hostPort": port}]}
        ]
    }


def pod(name: str = "web", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "web", "image": "nginx"}], **spec},
    }


LARGE: dict[str, Any] = {"resources": {"requests": {"storage": "9Gi"}}}


def claim(storage_class: str | None = "", mode: str = "ReadWriteOnce", **spec: Any) -> Object:
    named = {} if storage_class is None else {"storageClassName": storage_class}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "2Gi"}},
            **named,
            **spec,
        },
    }


def volume(
    mode: str = "ReadWriteOnce", size: str = "2Gi", labels: Object | None = None, **spec: Any
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk", "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": [mode],
            "hostPath": {"path": "/data"},
            **spec,
        },
    }


def storage_class(name: str, provisioner: str, mode: str = "Immediate", **fields: Any) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **fields,
    }


def limit_range(**item: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits"},
        "spec": {"limits": [item]},
    }


def claim_template(size: str = "1Gi") -> Object:
    return {
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": size}},
                },
            }
        ]
    }


Step = str | Object
CASES: dict[str, tuple[list[Step], str, str]] = {  # name: (what happens, what is asked, the cause)
    # several reasons at once
    "cordon-beside-siblings": (
        ["cordon node-3", workload(replicas=3, **ANTI_AFFINITY)],
        "deploy/web",
        "cordoned",
    ),
    "cordon-beside-full-nodes": (
        ["cordon node-3", workload(replicas=3, **asking("3"))],
        "deploy/web",
        "cordoned",
    ),
    "cordoned-node-with-label": (
        ["cordon node-3", "label node node-3 disk=ssd", workload(nodeSelector={"disk": "ssd"})],
        "deploy/web",
        "cordoned",
    ),
    "full-node-with-label": (
        ["label node node-3 disk=ssd", workload(nodeSelector={"disk": "ssd"}, **asking("3"))],
        "deploy/web",
        "insufficient-cpu",
    ),
    "tainted-node-with-label": (
        [
            "taint node node-3 a=b:NoSchedule",
            "label node node-3 disk=ssd",
            workload(nodeSelector={"disk": "ssd"}),
        ],
        "deploy/web",
        "taint",
    ),
    "control-plane-and-full-nodes": (
        [
            "taint node node-1 node-role.kubernetes.io/control-plane:NoSchedule",
            workload(replicas=3, **asking("3")),
        ],
        "deploy/web",
        "insufficient-cpu",
    ),
    "control-plane-only": (
        ["taint node --all node-role.kubernetes.io/control-plane:NoSchedule", workload()],
        "deploy/web",
        "taint",
    ),
    "too-big-for-any": (
        ["cordon node-1", "taint node node-2 a=b:NoExecute", workload(**asking("5"))],
        "deploy/web",
        "insufficient-cpu",
    ),
    "two-resources": (
        [
            pod(
                containers=[
                    {
                        "name": "web",
                        "image": "nginx",
                        "resources": {"requests": {"cpu": "9", "memory": "90Gi"}},
                    }
                ]
            )
        ],
        "pod/web",
        "insufficient-cpu",
    ),
    "spread-with-full-domain": (
        [
            *(f"label node node-{number} zone=z{number}" for number in (1, 2, 3)),
            pod("hog", nodeName="node-3", **asking("4")),
            workload(
                replicas=4,
                topologySpreadConstraints=[
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": APP},
                    }
                ],
                **asking("1"),
            ),
        ],
        "deploy/web",
        "insufficient-cpu",
    ),
    "zone-with-cordoned-node": (
        [
            "label node node-1 node-2 topology.kubernetes.io/zone=a",
            "cordon node-3",
            "label node node-3 topology.kubernetes.io/zone=b",
            volume(labels={"topology.kubernetes.io/zone": "b"}),
            claim(),
            workload(**VOLUMES),
        ],
        "deploy/web",
        "cordoned",
    ),
    # kinds
    "daemonset-pinned-port": (
        [
            workload(replicas=1, name="other", **with_port()),
            "controller --once -q",
            workload("DaemonSet", **with_port()),
        ],
        "ds/web",
        "host-port",
    ),
    "daemonset-pinned-cpu": (
        [pod("hog", nodeName="node-2", **asking("4")), workload("DaemonSet", **asking("1"))],
        "ds/web",
        "insufficient-cpu",
    ),
    "statefulset-cpu": (
        [workload("StatefulSet", replicas=4, **asking("3"))],
        "sts/web",
        "insufficient-cpu",
    ),
    "statefulset-taint": (
        ["taint node --all a=b:NoSchedule", workload("StatefulSet")],
        "sts/web",
        "taint",
    ),
    "bare-pod-taint": (["taint node --all a:NoSchedule", pod()], "pod/web", "taint"),
    "bare-pod-port": (
        [
            *(
                pod(f"other-{number}", nodeName=f"node-{number}", **with_port())
                for number in (1, 2, 3)
            ),
            pod(**with_port()),
        ],
        "pod/web",
        "host-port",
    ),
    "bare-pod-gate": (
        [pod(schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}])],
        "pod/web",
        "scheduling-gate",
    ),
    "deployment-gate": (
        [workload(schedulingGates=[{"name": "example.com/a"}])],
        "deploy/web",
        "scheduling-gate",
    ),
    "anti-affinity-of-others": (
        [
            workload(
                "DaemonSet",
                name="guard",
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": HOST, "labelSelector": {"matchLabels": APP}}
                        ]
                    }
                },
            ),
            "controller --once -q",
            workload(),
        ],
        "deploy/web",
        "pod-anti-affinity",
    ),
    "affinity-names-missing-node": (
        [
            pod(
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {
                                            "key": "metadata.name",
                                            "operator": "In",
                                            "values": ["node-9"],
                                        }
                                    ]
                                }
                            ]
                        }
                    }
                }
            )
        ],
        "pod/web",
        "node-missing",
    ),
    "affinity-names-missing-or-labelled-node": (
        [
            workload(
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": HOST, "operator": "In", "values": ["node-9"]}
                                    ]
                                },
                                {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                            ]
                        }
                    }
                }
            )
        ],
        "deploy/web",
        "node-affinity",
    ),
    "node-name": ([workload(nodeName="node-9")], "deploy/web", "node-missing"),
    "hostname-selector": ([workload(nodeSelector={HOST: "node-9"})], "deploy/web", "node-missing"),
    "affinity-to-pod-without-node": (
        [
            workload(replicas=1, name="db", **asking("9")),
            workload(
                affinity={
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "db"}}}
                        ]
                    }
                }
            ),
        ],
        "deploy/web",
        "insufficient-cpu",
    ),
    "default-request-of-limits": (
        [limit_range(type="Container", defaultRequest={"cpu": "9"}), workload()],
        "deploy/web",
        "limit-range-default",
    ),
    "own-request-beside-limits": (
        [limit_range(type="Container", defaultRequest={"memory": "9"}), workload(**asking("9"))],
        "deploy/web",
        "insufficient-cpu",
    ),
    "default-request-and-quota": (
        [
            limit_range(type="Container", defaultRequest={"cpu": "2"}),
            "create quota q --hard=requests.cpu=1",
            workload(),
        ],
        "deploy/web",
        "quota-exceeded",
    ),
    "outranked": (
        [
            "create priorityclass high --value=9",
            workload("DaemonSet", name="big", priorityClassName="high", **asking("3")),
            "controller --once -q",
            workload(**asking("2")),
        ],
        "deploy/web",
        "preempted",
    ),
    "outranked-and-too-large": (
        [
            "create priorityclass high --value=9",
            workload("DaemonSet", name="big", priorityClassName="high", **asking("3")),
            "controller --once -q",
            workload(**asking("5")),
        ],
        "deploy/web",
        "insufficient-cpu",
    ),
    "outranked-by-system-pods": (
        [
            workload(
                "DaemonSet", name="big", priorityClassName="system-node-critical", **asking("3")
            ),
            "controller --once -q",
            workload(**asking("2")),
        ],
        "deploy/web",
        "insufficient-cpu",
    ),
    "port-outranked": (
        [
            "create priorityclass high --value=9",
            workload("DaemonSet", name="big", priorityClassName="high", **with_port()),
            "controller --once -q",
            workload(**with_port()),
        ],
        "deploy/web",
        "preempted",
    ),
    # rollouts in which only the pod beside the old ones does not fit
    "surge-cpu": (
        [
            workload(replicas=3, **asking("3")),
            "controller --once -q",
            "set image deploy/web web=nginx:2",
        ],
        "deploy/web",
        "insufficient-cpu",
    ),
    "surge-port": (
        [
            workload(replicas=3, **with_port()),
            "controller --once -q",
            "set image deploy/web web=nginx:2",
        ],
        "deploy/web",
        "host-port",
    ),
    "surge-volume": (
        [
            volume(RWOP),
            claim(mode=RWOP),
            workload(replicas=1, **VOLUMES),
            "controller --once -q",
            "set image deploy/web web=nginx:2",
        ],
        "deploy/web",
        "volume-in-use",
    ),
    "second-pod-of-volume": (
        [volume(RWOP), claim(mode=RWOP), workload(**VOLUMES)],
        "deploy/web",
        "volume-in-use",
    ),
    # claims
    "consumer-is-cordoned-out": (
        ["cordon node-1 node-2 node-3", claim(None), workload(**VOLUMES)],
        "pvc/data",
        "cordoned",
    ),
    "class-is-gone": ([claim("nope"), workload(**VOLUMES)], "deploy/web", "claim-without-class"),
    "no-provisioner": (
        [
            storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            claim("local"),
            workload(**VOLUMES),
        ],
        "deploy/web",
        "claim-without-volume",
    ),
    "provisioner-elsewhere": (
        [
            storage_class("ebs", "ebs.csi.aws.com", "WaitForFirstConsumer"),
            claim("ebs"),
            workload(**VOLUMES),
        ],
        "deploy/web",
        "claim-not-provisioned",
    ),
    "topology-elsewhere": (
        [
            storage_class(
                "zonal",
                "kubepy.dev/simulated",
                "WaitForFirstConsumer",
                allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["z9"]}]}],
            ),
            claim("zonal"),
            workload(**VOLUMES),
        ],
        "deploy/web",
        "volume-zone",
    ),
    "local-volume-elsewhere": (
        [
            storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            volume(
                storageClassName="local",
                nodeAffinity={
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "zone", "operator": "In", "values": ["z9"]}
                                ]
                            }
                        ]
                    }
                },
            ),
            claim("local"),
            workload(**VOLUMES),
        ],
        "deploy/web",
        "volume-zone",
    ),
    "volume-of-another-class": (
        [volume(storageClassName="slow"), claim()],
        "pvc/data",
        "claim-without-volume",
    ),
    "volume-with-other-mode": ([volume(RWOP), claim()], "pvc/data", "claim-without-volume"),
    "volume-released": (
        [volume(), claim(), "controller --once -q", "delete pvc data", claim()],
        "pvc/data",
        "volume-released",
    ),
    "volume-released-and-too-small": (
        [volume(), claim(), "controller --once -q", "delete pvc data", claim(**LARGE)],
        "pvc/data",
        "volume-released",
    ),
    "volume-too-small-and-of-another-class": (
        [volume(storageClassName="slow"), claim(**LARGE)],
        "pvc/data",
        "claim-without-volume",
    ),
    "volume-of-a-class-without-object-too-small": (
        [volume(storageClassName="own"), claim("own", **LARGE)],
        "pvc/data",
        "volume-too-small",
    ),
    "volume-that-waits-for-its-pod-too-small": (
        [
            storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            volume(storageClassName="local"),
            claim("local", **LARGE),
            workload(**VOLUMES),
        ],
        "deploy/web",
        "volume-too-small",
    ),
    "volume-named-and-too-small": (
        [volume(), claim(volumeName="disk", **LARGE)],
        "pvc/data",
        "volume-too-small",
    ),
    "volume-named-and-missing": ([claim(volumeName="gone")], "pvc/data", "claim-without-volume"),
    "volume-on-missing-node": (
        [
            volume(
                nodeAffinity={
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": HOST, "operator": "In", "values": ["node-9"]}
                                ]
                            }
                        ]
                    }
                }
            ),
            claim(),
            workload(**VOLUMES),
        ],
        "deploy/web",
        "node-missing",
    ),
    # refusals
    "quota-statefulset": (
        ["create quota q --hard=pods=1", workload("StatefulSet")],
        "sts/web",
        "quota-exceeded",
    ),
    "quota-daemonset": (
        ["create quota q --hard=pods=1", workload("DaemonSet")],
        "ds/web",
        "quota-exceeded",
    ),
    "quota-job": (
        ["create quota q --hard=pods=0", "create job web --image=x"],
        "job/web",
        "quota-exceeded",
    ),
    "quota-cronjob": (
        [
            "create quota q --hard=count/jobs.batch=0",
            "create cronjob web --image=x --schedule='* * * * *'",
            "clock advance 3m",
        ],
        "cj/web",
        "quota-exceeded",
    ),
    "webhook-of-bindings": (
        [
            configuration(
                "ValidatingWebhookConfiguration",
                "guard",
                {"rules": [rule("pods/binding", ("CREATE",))]},
            ),
            workload(),
        ],
        "deploy/web",
        "webhook-unreachable",
    ),
    "quota-replicasets": (
        ["create quota q --hard=count/replicasets.apps=0", workload()],
        "deploy/web",
        "quota-exceeded",
    ),
    "quota-claims": (
        [
            "create quota q --hard=persistentvolumeclaims=1",
            workload("StatefulSet", replicas=3, spec=claim_template()),
        ],
        "sts/web",
        "quota-exceeded",
    ),
    "quota-ephemeral-volume": (
        [
            "create quota q --hard=persistentvolumeclaims=0",
            workload(
                replicas=1,
                volumes=[
                    {
                        "name": "data",
                        "ephemeral": {"volumeClaimTemplate": {"spec": claim(None)["spec"]}},
                    }
                ],
            ),
        ],
        "deploy/web",
        "quota-exceeded",
    ),
    "disk-in-use": (
        [workload(replicas=4, volumes=[{"name": "data", "gcePersistentDisk": {"pdName": "disk"}}])],
        "deploy/web",
        "volume-in-use",
    ),
    "volume-lost": (
        [
            volume(),
            claim(),
            "controller --once -q",
            "delete pv disk --wait=false",
            """patch pv disk -p '{"metadata":{"finalizers":null}}'""",
            "controller --once -q",
            workload(**VOLUMES),
        ],
        "deploy/web",
        "claim-lost",
    ),
    "volume-without-label": (
        [volume(), claim(selector={"matchLabels": {"tier": "gold"}})],
        "pvc/data",
        "claim-without-volume",
    ),
    "selector-of-provisioned-claim": (
        [claim(None, selector={"matchLabels": {"tier": "gold"}}), workload(**VOLUMES)],
        "deploy/web",
        "claim-not-provisioned",
    ),
    "volume-of-another-claim": (
        [
            volume(),
            {**claim(), "metadata": {"name": "other"}},
            "controller --once -q",
            claim(volumeName="disk"),
        ],
        "pvc/data",
        "claim-without-volume",
    ),
    "quota-unnamed": (
        ["create quota q --hard=requests.cpu=1", workload()],
        "deploy/web",
        "quota-exceeded",
    ),
    "quota-of-two": (
        ["create quota a --hard=pods=9", "create quota b --hard=pods=1", workload()],
        "deploy/web",
        "quota-exceeded",
    ),
    "quota-cpu": (
        ["create quota q --hard=requests.cpu=500m", workload(replicas=3, **asking("200m"))],
        "deploy/web",
        "quota-exceeded",
    ),
    "limits-maximum-as-default": (
        [limit_range(type="Container", max={"cpu": "1"}), workload(**asking("2"))],
        "deploy/web",
        "limit-range",
    ),
    "limits-minimum": (
        [
            limit_range(type="Container", min={"memory": "64Mi"}),
            workload(**asking("1Mi", "memory")),
        ],
        "deploy/web",
        "limit-range",
    ),
    "limits-of-claims": (
        [
            limit_range(type="PersistentVolumeClaim", max={"storage": "1Gi"}),
            workload("StatefulSet", spec=claim_template("2Gi")),
        ],
        "sts/web",
        "limit-range",
    ),
    "limits-before-quota": (
        [
            limit_range(type="Container", max={"cpu": "1"}),
            "create quota q --hard=pods=9",
            workload(**asking("2")),
        ],
        "deploy/web",
        "limit-range",
    ),
    "security-baseline": (
        [
            "label ns default pod-security.kubernetes.io/enforce=baseline",
            workload("DaemonSet", hostNetwork=True),
        ],
        "ds/web",
        "pod-security",
    ),
}


def make(steps: Sequence[Step], nodes: int = 3) -> Cluster:
    cluster = Cluster.temporary(nodes=nodes, seed=7)
    for step in steps:
        if isinstance(step, str):
            cluster.run(step, check=True)
        else:
            cluster.client.create(clone(step))
    cluster.run("controller --once -q", check=True)
    return cluster


def ask(cluster: Cluster, target: str) -> Object:
    answer: Object = json.loads(cluster.run(f"why {target} -o json").stdout)
    return answer


def check_evidence(cluster: Cluster, answer: Object) -> None:
    """Assert that each link shows what the API has."""
    for link in answer["chain"]:
        key = link["object"]
        shown = cluster.run(
            ["get", key["resource"], key["name"], "-n", key["namespace"] or "default", "-o", "json"]
        )
        expected = (
            value_at(json.loads(shown.stdout), link["field"]) if shown and link["field"] else None
        )
        assert link["value"] == expected, link


def proven(answer: Object) -> list[list[str]]:
    return [remedy["command"] for remedy in answer["remedies"] if remedy["proven"]]


@pytest.mark.parametrize("name", CASES)
def test_cause_is_named_with_evidence_and_remedies_that_help(name: str) -> None:
    steps, target, cause = CASES[name]
    cluster = make(steps)
    answer = ask(cluster, target)
    assert (answer["cause"], answer["state"]) == (cause, "stuck"), answer["chain"]
    check_evidence(cluster, answer)
    for remedy in answer["remedies"]:
        if remedy["proven"]:
            attempt = cluster.fork()
            attempt.run(remedy["command"], stdin=remedy.get("stdin", ""), check=True)
            attempt.settle()
            assert ask(attempt, target)["state"] == "done", remedy


REMEDIES = {
    "surge-cpu": "maxSurge",
    "surge-port": "maxSurge",
    "surge-volume": "Recreate",
    "daemonset-pinned-cpu": "priority",
    "daemonset-pinned-port": "priority",
    "statefulset-cpu": "--replicas=3",
    "bare-pod-taint": "tolerations",
    "bare-pod-port": "delete",
    "bare-pod-gate": "schedulingGates",
    "quota-statefulset": '"pods":"2"',
    "quota-cpu": '"requests.cpu":"600m"',
    "quota-unnamed": "--requests=cpu=100m",
    "limits-minimum": "64Mi",
    "volume-released": "/spec/claimRef",
    "volume-of-another-class": "storageClassName",
    "cordon-beside-siblings": "uncordon node-3",
    "second-pod-of-volume": "--replicas=1",
    "full-node-with-label": "--replicas=1",
}


@pytest.mark.parametrize("name", REMEDIES)
def test_remedy_that_fits_is_proven(name: str) -> None:
    steps, target, _ = CASES[name]
    commands = [" ".join(command) for command in proven(ask(make(steps), target))]
    assert any(REMEDIES[name] in command for command in commands), commands


def test_chain_has_message_of_scheduler_and_all_reasons() -> None:
    cluster = make(
        ["cordon node-1", "taint node node-2 a=b:NoSchedule", workload(replicas=2, **asking("3"))]
    )
    answer = ask(cluster, "deploy/web")
    [event] = [
        event for event in cluster.client.list("events") if event["reason"] == "FailedScheduling"
    ]
    assert event["message"] in [link["value"] for link in answer["chain"]]
    texts = " ".join(link["text"] for link in answer["chain"])
    assert "had untolerated taint(s)" in texts
    assert "Insufficient cpu" in texts
    assert answer["chain"][-1]["object"]["name"] == "node-1"


def test_pod_of_daemon_set_is_judged_by_its_node_alone() -> None:
    cluster = make(
        [
            pod("hog", nodeName="node-2", **asking("4")),
            "cordon node-1 node-3",
            workload("DaemonSet", **asking("1")),
        ]
    )
    answer = ask(cluster, "ds/web")
    assert answer["chain"][-1]["object"]["name"] == "node-2"
    assert not any("cordon" in link["text"] for link in answer["chain"])


def test_preemption_that_will_help_is_progress() -> None:
    low = workload(
        replicas=3, name="low", annotations={"kubepy.dev/stops-after": "20s"}, **asking("3")
    )
    cluster = make(
        [
            low,
            "controller --once -q",
            "create priorityclass high --value=1000",
            pod(priorityClassName="high", **asking("3")),
        ]
    )
    assert ask(cluster, "pod/web")["state"] == "progressing"
    never = make(
        [
            low,
            "controller --once -q",
            "create priorityclass calm --value=1000 --preemption-policy=Never",
            pod(priorityClassName="calm", **asking("3")),
        ]
    )
    answer = ask(never, "pod/web")
    assert (answer["state"], answer["cause"]) == ("stuck", "insufficient-cpu")


def test_pod_that_fits_is_not_blamed() -> None:
    cluster = Cluster.temporary(nodes=1, seed=7)
    cluster.client.create(workload(annotations={"kubepy.dev/ready-after": "5s"}))
    assert ask(cluster, "deploy/web")["state"] == "progressing"


@pytest.mark.parametrize(
    ("kind", "failure_policy"), [("Validating", "Fail"), ("Mutating", "Ignore")]
)
def test_webhook_that_denies_is_named(kind: str, failure_policy: str) -> None:
    denial = {"allowed": False, "status": {"message": "not on a Friday"}}
    with serving(lambda request: denial, certificate="hook") as hook:
        cluster = Cluster.temporary(nodes=1, seed=7)
        webhook = {
            "clientConfig": {"url": f"{hook.url}/", "caBundle": CA_BUNDLE},
            "rules": [rule("pods")],
            "failurePolicy": failure_policy,
        }
        cluster.client.create(configuration(f"{kind}WebhookConfiguration", "guard", webhook))
        cluster.client.create(workload())
        cluster.run("controller --once -q", check=True)
        answer = ask(cluster, "deploy/web")
    assert answer["cause"] == "webhook-refused"
    assert answer["chain"][-1]["value"] == "hook.example.com"
    assert any("not on a Friday" in str(link["value"]) for link in answer["chain"])
    assert proven(answer) == [["kubepy", "delete", f"{kind.lower()}webhookconfiguration/guard"]]


def test_webhook_for_other_namespaces_is_not_blamed() -> None:
    cluster = make(
        [
            configuration(
                "ValidatingWebhookConfiguration",
                "guard",
                {"rules": [rule("pods")], "namespaceSelector": {"matchLabels": {"guarded": "yes"}}},
            ),
            "create quota q --hard=pods=0",
            workload(),
        ]
    )
    assert ask(cluster, "deploy/web")["cause"] == "quota-exceeded"


@pytest.mark.parametrize(
    ("expression", "message"), [("false", "never"), ("object.spec.nope == 1", "no such key")]
)
def test_expression_of_policy_is_named(expression: str, message: str) -> None:
    group = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "policy"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule("pods", ("CREATE",))]},
            "validations": [{"expression": "true"}, {"expression": expression, "message": "never"}],
        },
    }
    binding = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "binding"},
        "spec": {"policyName": "policy", "validationActions": ["Deny"]},
    }
    answer = ask(make([policy, binding, workload()]), "deploy/web")
    assert answer["cause"] == "admission-policy"
    leaf = answer["chain"][-1]
    assert (leaf["field"], leaf["value"]) == ("spec.validations[1].expression", expression)


def test_policy_without_parameters_is_named() -> None:
    group = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "policy"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "true"}],
            "matchConstraints": {"resourceRules": [rule("pods", ("CREATE",))]},
        },
    }
    binding = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "binding"},
        "spec": {
            "policyName": "policy",
            "validationActions": ["Deny"],
            "paramRef": {"name": "gone", "namespace": "default", "parameterNotFoundAction": "Deny"},
        },
    }
    answer = ask(make([policy, binding, workload()]), "deploy/web")
    assert answer["cause"] == "admission-policy"
    assert "spec.paramRef" in [link["field"] for link in answer["chain"]]
    assert len(proven(answer)) == 2


def test_webhook_that_times_out_is_asked_once_by_all_predictions() -> None:
    silence = threading.Event()
    with serving(lambda request: {"allowed": silence.wait(3)}, certificate="hook") as hook:
        cluster = Cluster.temporary(nodes=1, seed=7)
        webhook = {
            "clientConfig": {"url": f"{hook.url}/", "caBundle": CA_BUNDLE},
            "rules": [rule("pods")],
            "timeoutSeconds": 1,
        }
        cluster.client.create(configuration("ValidatingWebhookConfiguration", "guard", webhook))
        cluster.run(
            ["--reconcile=never", "create", "deployment", "web", "--image=nginx"], check=True
        )
        with cluster._open() as local:
            for _ in range(2):
                fork = predict(local, lambda fork: None).cluster
                [event] = [
                    event
                    for event in fork.client.list("events").items
                    if event["reason"] == "FailedCreate"
                ]
                assert "context deadline exceeded" in event["message"]
        silence.set()
    assert len(hook.reviews) == 1


def test_namespace_of_remedies_is_that_of_object() -> None:
    cluster = make(["create namespace shop", "create quota q --hard=pods=1 -n shop"])
    cluster.client.create({**workload(), "metadata": {"name": "web", "namespace": "shop"}})
    cluster.run("controller --once -q", check=True)
    answer = json.loads(cluster.run("why deploy/web -n shop -o json").stdout)
    assert answer["cause"] == "quota-exceeded"
    assert all(command[-2:] == ["-n", "shop"] for command in proven(answer))


def test_field_path_quotes_names_that_are_not_plain() -> None:
    assert field_path("status.used", "pods") == "status.used.pods"
    assert field_path("metadata.labels", "a.b/c") == "metadata.labels['a.b/c']"


def test_largest_share_fills_rooms() -> None:
    assert largest_share([1000, 1000, 4000], 4) == 1000
    assert largest_share([], 2) == 0


def test_amounts_are_shown_as_in_manifests() -> None:
    assert [
        show_amount("cpu", 1500),
        show_amount("cpu", 2000),
        show_amount("memory", 3 * 2**29),
        show_amount("memory", 2**31),
        show_amount("example.com/gpu", 2),
    ] == ["1500m", "2", "1536Mi", "2Gi", "2"]
