"""The ReplicaSets of Deployments, where a source holds Deployments and pods and no ReplicaSets.

Without it a Deployment would make another ReplicaSet of that name, with pods of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from kubepy.api.meta import Object, controller_of, labels_of, nested_map
from kubepy.api.objects.deployments import HASH_LABEL
from kubepy.api.objects.pods import is_pod_ready
from kubepy.controllers.deployment.replica_sets import new_replica_set, revision_or_zero
from kubepy.storage import Key

DEPLOYMENTS, PODS, REPLICA_SETS = "deployments.apps", "pods", "replicasets.apps"
# Fields of the status that are there when they are 0, too.
_ZEROS = ("replicas", "terminatingReplicas")


def present_replica_sets(objects: Mapping[Key, Object]) -> Iterator[tuple[Key, Object]]:
    """Yield the ReplicaSets of the present templates of Deployments, with the names, uids and
    hashes that their pods tell. Nothing where the source holds ReplicaSets."""
    if any(key.resource == REPLICA_SETS for key in objects):
        return
    pods: dict[tuple[str, str], list[Object]] = {}  # by the namespace and name of their ReplicaSets
    for key, obj in objects.items():
        owner = controller_of(obj) if key.resource == PODS else None
        if owner is not None and owner["kind"] == "ReplicaSet":
            pods.setdefault((key.namespace, owner["name"]), []).append(obj)
    for key, deployment in objects.items():
        if key.resource != DEPLOYMENTS:
            continue
        for (namespace, name), owned in pods.items():
            is_of_deployment = namespace == key.namespace and name.startswith(f"{key.name}-")
            if is_of_deployment and _has_template(owned[0], deployment):
                replica_set = _replica_set(deployment, name, owned)
                yield Key(REPLICA_SETS, namespace, name), replica_set


def _has_template(pod: Object, deployment: Object) -> bool:
    """Tell whether a pod was made of the present template of a Deployment, as far as its labels and
    containers tell."""
    template = nested_map(deployment, "spec", "template")
    labels = labels_of(pod)
    if any(labels.get(name) != value for name, value in labels_of(template).items()):
        return False
    if not labels.get(HASH_LABEL):
        return False
    return _programs(pod) == _programs(template)


def _programs(holder: Object) -> list[Any]:
    """Return what the containers of a pod or a template run."""
    return [
        [container.get(field) for field in ("name", "image", "command", "args", "env")]
        for container in nested_map(holder, "spec").get("containers") or ()
    ]


def _replica_set(deployment: Object, name: str, pods: list[Object]) -> Object:
    """Return the ReplicaSet that owns pods of the present template."""
    reference = controller_of(pods[0])
    assert reference is not None  # these are the pods of one
    revision = revision_or_zero(cast("Any", deployment)) or 1
    made: Any = new_replica_set(cast("Any", deployment), revision, len(pods))
    hash_ = labels_of(pods[0])[HASH_LABEL]
    template = made["spec"]["template"]
    created = min(pod["metadata"].get("creationTimestamp") or "" for pod in pods)
    ready = sum(is_pod_ready(cast("Any", pod)) for pod in pods)
    status = {
        "availableReplicas": ready,
        "fullyLabeledReplicas": len(pods),
        "observedGeneration": 1,
        "readyReplicas": ready,
        "replicas": len(pods),
        "terminatingReplicas": 0,
    }
    return {
        **made,
        "metadata": {
            **made["metadata"],
            "name": name,
            "uid": reference["uid"],
            "generation": 1,
            "labels": {**made["metadata"]["labels"], HASH_LABEL: hash_},
            **({"creationTimestamp": created} if created else {}),
        },
        "spec": {
            **made["spec"],
            "selector": {
                **made["spec"]["selector"],
                "matchLabels": {**made["spec"]["selector"]["matchLabels"], HASH_LABEL: hash_},
            },
            "template": {
                **template,
                "metadata": {
                    **template["metadata"],
                    "labels": {**template["metadata"]["labels"], HASH_LABEL: hash_},
                },
            },
        },
        "status": {field: value for field, value in status.items() if value or field in _ZEROS},
    }
