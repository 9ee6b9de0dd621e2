"""Random histories of a workload, and its numbers counted from the objects alone."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kubepy.api.meta import Object, labels_of
from kubepy.api.objects.deployments import HASH_LABEL, new_replica_set
from kubepy.api.objects.pods import is_pod_available, is_pod_ready, is_pod_terminal
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.views import REVISION_LABEL
from kubepy.insight import Numbers
from kubepy.storage import Key

MANIFEST = """
apiVersion: apps/v1
kind: {kind}
metadata: {{name: w}}
spec:
  {fields}
  minReadySeconds: {seconds}
  selector: {{matchLabels: {{app: w}}}}
  template:
    metadata:
      labels: {{app: w}}
      annotations: {{{annotations}}}
    spec: {{containers: [{{name: c, image: "i:1", resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}
"""
FIELDS = {
    "Deployment": (
        "strategy: {type: RollingUpdate}",
        "strategy: {type: Recreate}",
        "progressDeadlineSeconds: 30",
        "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}",
    ),
    "DaemonSet": (
        "updateStrategy: {type: RollingUpdate}",
        "updateStrategy: {type: OnDelete}",
        "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
    ),
    "StatefulSet": (
        "serviceName: x",
        "podManagementPolicy: Parallel",
        "updateStrategy: {rollingUpdate: {partition: 1}}",
    ),
}
LIVES = (
    ["kubepy.dev/ready-after: 3s", "kubepy.dev/ready-after: 1s..9s"],
    ["kubepy.dev/stops-after: 3s", "kubepy.dev/stops-after: 1s..9s"],
    [
        'kubepy.dev/outcome: "crash-loop*2, ready"',
        "kubepy.dev/outcome: crash-loop",
        "kubepy.dev/outcome: failed",
        'kubepy.dev/outcome: "image-pull-backoff, ready"',
        "kubepy.dev/outcome: not-ready",
    ],
)
KEYS = {kind: Key(f"{kind.lower()}s.apps", "default", "w") for kind in FIELDS}


def history(seed: int) -> tuple[Key, list[tuple[str, str, list[int]]]]:
    """Return a workload, and the commands of its life: each with its standard input and the seconds
    that go by then, in parts that can be divided by three."""
    chance = random.Random(seed)
    kind = chance.choice(list(FIELDS))
    return KEYS[kind], [
        (command, stdin, [3 * chance.choice((1, 2, 4, 13)) for _ in range(chance.randint(0, 2))])
        for command, stdin in commands(chance, kind)
    ]


def commands(chance: random.Random, kind: str) -> Iterator[tuple[str, str]]:
    fields = chance.choice(FIELDS[kind])
    seconds = 0 if fields.startswith("progress") else chance.choice((0, 0, 4, 7))
    if kind != "DaemonSet":
        fields = f"replicas: {chance.randint(1, 4)}\n  {fields}"
    annotations = ", ".join(
        chance.choice(life)
        for life, rate in zip(LIVES, (0.7, 0.5, 0.25), strict=True)
        if chance.random() < rate
    )
    yield (
        "apply -f -",
        MANIFEST.format(
            kind=kind,
            fields=fields,
            seconds=seconds,
            annotations=annotations,
            cpu=chance.choice(("100m", "1500m")),
        ),
    )
    for _ in range(chance.randint(4, 9)):
        yield (
            chance.choice(
                list(changes(chance, f"{kind.lower()}/w", f"node-{chance.randint(1, 3)}"))
            ),
            "",
        )


def changes(chance: random.Random, workload: str, node: str) -> Iterator[str]:
    """Yield commands that change a workload or the nodes under it."""
    yield f"set image {workload} c=i:{chance.randint(1, 3)}"
    yield f"rollout undo {workload}"
    yield f"rollout restart {workload}"
    yield f'patch {workload} -p \'{{"spec":{{"minReadySeconds":{chance.choice((0, 3, 9))}}}}}\''
    yield f"delete {workload} --cascade=orphan"
    yield f"delete {workload} --wait=false"
    yield "delete pod -l app=w --wait=false"
    yield f"cordon {node}"
    yield f"uncordon {node}"
    yield f"drain {node} --ignore-daemonsets --timeout=20s"
    yield f"annotate node {node} kubepy.dev/down-until=2026-01-01T00:10:00Z --overwrite"
    if workload.startswith("daemon"):
        yield f"delete node {node}"
    else:
        yield f"scale {workload} --replicas={chance.randint(0, 5)}"
    if workload.startswith("deployment"):
        yield f"rollout pause {workload}"
        yield f"rollout resume {workload}"


def counted(cluster: LocalCluster, key: Key) -> Numbers | None:
    """Count the pods of a workload whose controllers have nothing to do now; None where there is no
    such workload."""
    workload = cluster.store.get(key)
    if workload is None:
        return None
    status, desired, label = (
        workload.get("status") or {},
        workload["spec"].get("replicas", 0),
        REVISION_LABEL,
    )
    owners = [workload]
    if key.resource == "deployments.apps":
        owners, label = owned(cluster, "replicasets.apps", workload), HASH_LABEL
        newest = new_replica_set(workload, owners)
    elif key.resource == "daemonsets.apps":
        desired = status.get("desiredNumberScheduled", 0)
        newest = max(
            owned(cluster, "controllerrevisions.apps", workload), key=lambda cr: cr["revision"]
        )
    else:
        newest = {"metadata": {"labels": {label: status.get("updateRevision")}}}
    revision = labels_of(newest)[label] if newest is not None else None
    pods = [
        (pod, owner)
        for owner in owners
        for pod in owned(cluster, "pods", owner)
        if not is_pod_terminal(pod)
    ]
    staying = [(pod, owner) for pod, owner in pods if not pod["metadata"].get("deletionTimestamp")]
    available = [
        is_pod_available(pod, owner["spec"].get("minReadySeconds") or 0, cluster.clock.now())
        for pod, owner in staying
    ]
    return Numbers(
        desired,
        len(pods),
        sum(is_pod_ready(pod) for pod, _ in staying),
        sum(available),
        sum(labels_of(pod).get(label) == revision for pod, _ in staying),
        len(pods) - len(staying),
    )


def owned(cluster: LocalCluster, resource: str, owner: Object) -> list[Object]:
    return [
        obj
        for obj in cluster.store.list(resource).objects
        if any(
            reference["uid"] == owner["metadata"]["uid"] and reference.get("controller")
            for reference in obj["metadata"].get("ownerReferences") or ()
        )
    ]
