"""Commands that might bring an object to done, for several causes: changes of a pod template, other
sizes, smaller requests. :mod:`kubepy.insight.why` tries each of them on a fork before it calls it
proven.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kubepy.api.errors import Status
from kubepy.api.meta import Object, clone, is_controlled_by, nested_list, nested_map
from kubepy.api.objects.pods import is_pod_active, node_name, phase_of
from kubepy.api.patches.documents import json_patch as json_patched
from kubepy.insight import Link, RemedyCommand
from kubepy.insight.why.goals import desired_replicas
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.insight.why.scene import Scene, Words

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# The parts of the path of the pod spec in each kind.
POD_SPECS = {
    **dict.fromkeys(
        (
            "DaemonSet",
            "Deployment",
            "Job",
            "ReplicaSet",
            "ReplicationController",
            "StatefulSet",
        ),
        ("spec", "template", "spec"),
    ),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "Pod": ("spec",),
}
MADE_ANEW = ("Job", "Pod")  # kinds whose pod spec cannot be changed
TRACKING = ("controller-uid", "job-name")
SCALED = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
MEBI = 2**20
SMALLEST = {
    "cpu": 10,
    "memory": 4 * MEBI,
    "ephemeral-storage": 4 * MEBI,
}  # a request below this is not sensible

Operation = tuple[str, Sequence[str | int], Any]


def field_path(parent: str, *names: str) -> str:
    """Return the path of a field in a map: ``status.used.pods``,
    ``metadata.labels['example.com/disk']``."""
    return parent + "".join(
        f".{name}" if PLAIN.fullmatch(name) else f"['{name}']" for name in names
    )


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def json_patch(scene: Scene, obj: Object, *operations: Object) -> Words:
    """Return the command that patches an object by operations of RFC 6902."""
    return scene.command(
        obj, "patch", scene.word(obj), "--type=json", "-p", compact_json(operations)
    )


def merge_patch(scene: Scene, obj: Object, patch: Object) -> Words:
    return scene.command(obj, "patch", scene.word(obj), "--type=merge", "-p", compact_json(patch))


def pointer(*parts: str | int) -> str:
    """Return the JSON pointer of a field."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def absent(resource: str, namespace: str, name: str, text: str) -> Link:
    """Return the link of an object that does not exist."""
    return Link(Key(resource, namespace, name), "", None, text)


# --- owners ---------------------------------------------------------------------------------------


def top_owner(scene: Scene, obj: Object) -> Object:
    """Return the object at the top of an object's owners, custom resources left out: of a pod its
    Deployment, or itself."""
    while (owner := scene.owner(obj)) is not None and not scene.is_custom(owner):
        obj = owner
    return obj


def pods_of(scene: Scene, workload: Object) -> list[Object]:
    """Return the pods that belong to a workload and neither have ended nor are being deleted; a
    pod's is itself."""
    if workload["kind"] == "Pod":
        return [workload]
    if workload["kind"] == "Deployment":
        owners = scene.owned(workload, "replicasets.apps")
    else:
        owners = [workload]
    return [pod for owner in owners for pod in scene.owned(owner, "pods") if is_pod_active(pod)]


def waiting_pods(scene: Scene, workload: Object) -> int:
    """Return how many pods of a workload have no node."""
    return sum(not node_name(pod) for pod in pods_of(scene, workload))


def replaces_pods(workload: Object) -> bool:
    """Return whether a new template comes to a pod that is not ready without a hand: a StatefulSet
    waits for it."""
    if workload["kind"] == "DaemonSet":
        return nested_map(workload["spec"], "updateStrategy").get("type") != "OnDelete"
    return workload["kind"] == "Deployment" and not workload["spec"].get("paused")


# --- commands -------------------------------------------------------------------------------------


def patch_template(scene: Scene, pod: Object, *operations: Operation) -> list[Words]:
    """Return the command that changes the template of a pod's workload; a Job, or a pod of nobody,
    is made anew.

    :param operations: ``add``, ``replace`` or ``remove``; the parts of a path below the pod's
        ``spec``; the value.
    """
    workload = top_owner(scene, pod)
    if workload["kind"] not in POD_SPECS:
        return []
    patch = [
        {
            "op": name,
            "path": pointer(*POD_SPECS[workload["kind"]], *path),
            **({} if name == "remove" else {"value": value}),
        }
        for name, path, value in operations
    ]
    if workload["kind"] in MADE_ANEW:
        return made_anew(scene, workload, patch)
    return of_template(workload, json_patch(scene, workload, *patch))


def of_template(workload: Object, words: Words) -> list[Words]:
    """Return a command that changes a workload's template, as one that needs others where it does
    not replace pods."""
    return [RemedyCommand(words, needs_more=not replaces_pods(workload))]


def set_resources(
    scene: Scene, workload: Object, amounts: Mapping[str, Mapping[str, str]], container: str = ""
) -> list[Words]:
    """Return the command that sets requests and limits in a workload's template; a Job is made
    anew.

    :param amounts: those of ``requests`` and ``limits``, by resource.
    :param container: the only one that gets them; "": all.
    """
    if workload["kind"] == "Job":
        chosen = [
            (index, present)
            for index, present in enumerate(pod_spec_of(workload)["containers"])
            if container in ("", present["name"])
        ]
        return patch_template(
            scene,
            workload,
            *(
                (
                    "add",
                    ("containers", index, "resources"),
                    merged_amounts(nested_map(present, "resources"), amounts),
                )
                for index, present in chosen
            ),
        )

    if workload["kind"] not in POD_SPECS or workload["kind"] in MADE_ANEW:
        return []
    flags = [
        f"--{kind}=" + ",".join(f"{name}={amount}" for name, amount in of_kind.items())
        for kind, of_kind in amounts.items()
    ]
    only = ("-c", container) if container else ()
    return of_template(
        workload, scene.command(workload, "set", "resources", scene.word(workload), *only, *flags)
    )


def merged_amounts(resources: Object, amounts: Mapping[str, Mapping[str, str]]) -> Object:
    return {
        **resources,
        **{kind: {**(resources.get(kind) or {}), **of_kind} for kind, of_kind in amounts.items()},
    }


def pod_spec_of(workload: Object) -> Object:
    """Return the pod spec in a workload's template; of a pod its own, of other kinds an empty
    one."""
    spec = workload
    for part in POD_SPECS.get(workload["kind"], ("spec", "template", "spec")):
        spec = spec.get(part) or {}
    return spec


def made_anew(
    scene: Scene, obj: Object, patch: list[Object], *, has_begun: bool = False
) -> list[Words]:
    """Return the command that makes a Job or a pod anew with a change, if it has not come to
    anything yet.

    :param has_begun: what it has come to does not count: it fails, or has failed.
    """
    if not has_begun and any(
        phase_of(pod) in ("Running", "Succeeded") for pod in owned_pods(scene, obj)
    ):
        return []
    try:
        changed = json_patched(manifest_of(obj), patch)
    except Status:  # the field is not the manifest's: admission has set it
        return []
    return [RemedyCommand(("replace", "--force", "-f", "-"), compact_json(changed))]


def owned_pods(scene: Scene, obj: Object) -> list[Object]:
    if obj["kind"] == "Pod":
        return [obj]
    return scene.owned(obj, "pods")


def manifest_of(obj: Object) -> Object:
    """Return a Job or a pod as a manifest, without what the API has added to it."""
    metadata = {}
    spec = clone(obj["spec"])
    for field in ("name", "namespace", "labels", "annotations"):
        if obj["metadata"].get(field):
            metadata[field] = clone(obj["metadata"][field])
    if obj["kind"] == "Job":
        spec.pop("selector", None)
        metadata["labels"] = without_tracking(nested_map(metadata, "labels"))
        of_pods = nested_map(spec, "template", "metadata")
        of_pods["labels"] = without_tracking(nested_map(of_pods, "labels"))

    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
        "spec": spec,
    }


def without_tracking(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels without those by which a Job knows its pods."""
    return {
        name: value for name, value in labels.items() if name.rpartition("/")[2] not in TRACKING
    }


def placed_pods(scene: Scene, obj: Object) -> tuple[int, int]:
    """Return how many pods of a workload have a node: those of the newest template, and all.

    :param obj: a new pod, or the new ReplicaSet.
    """
    workload = top_owner(scene, obj)
    pods = [pod for pod in pods_of(scene, workload) if node_name(pod)]
    newest = scene.owner(obj) if obj["kind"] == "Pod" else obj
    is_rolled_by_sets = workload["kind"] == "Deployment" and newest is not None
    return sum(
        not is_rolled_by_sets or is_controlled_by(pod, newest or workload) for pod in pods
    ), len(pods)


def scale_down(scene: Scene, obj: Object) -> list[Words]:
    """Return the command that scales an object's workload to the number of its new pods that have a
    node."""
    workload = top_owner(scene, obj)
    if workload["kind"] not in SCALED:
        return []
    placed, _ = placed_pods(scene, obj)
    if not 0 < placed < desired_replicas(workload):
        return []
    return [scene.command(workload, "scale", scene.word(workload), f"--replicas={placed}")]


def replace_in_place(scene: Scene, obj: Object) -> list[Words]:
    """Return the command that lets a rollout delete an old pod before it makes the new one, where
    one is under way and there are places enough for that."""
    workload = top_owner(scene, obj)
    field = {"Deployment": "strategy", "DaemonSet": "updateStrategy"}.get(workload["kind"])
    new, all_pods = placed_pods(scene, obj)
    if workload["kind"] == "Deployment" and (
        new == all_pods or all_pods < desired_replicas(workload)
    ):
        return []

    strategy = workload["spec"].get(field) or {} if field else {}
    if not all_pods or not nested_map(strategy, "rollingUpdate").get("maxSurge"):
        return []
    return [
        merge_patch(
            scene,
            workload,
            {"spec": {field: {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}},
        )
    ]


def tolerate(scene: Scene, pod: Object, taints: Iterable[Object]) -> list[Words]:
    """Return the command that makes a pod, or the template that it comes from, tolerate taints."""
    tolerations = [
        {
            "key": taint["key"],
            "effect": taint["effect"],
            **(
                {"operator": "Equal", "value": taint["value"]}
                if taint.get("value")
                else {"operator": "Exists"}
            ),
        }
        for taint in taints
    ]
    workload = top_owner(scene, pod)
    if (
        workload["kind"] == "Pod"
    ):  # tolerations are among the few fields of a pod that may be added to
        return [
            json_patch(
                scene,
                pod,
                *(
                    {"op": "add", "path": "/spec/tolerations/-", "value": toleration}
                    for toleration in tolerations
                ),
            )
        ]

    present = nested_list(pod_spec_of(workload), "tolerations")
    return patch_template(scene, pod, ("add", ("tolerations",), [*present, *tolerations]))


def on_nodes(
    scene: Scene, pod: Object, nodes: Sequence[str], *words: str, after: Sequence[str] = ()
) -> list[Words]:
    """Return a command about the first of several nodes; where more pods wait also about all of
    them."""
    commands: list[Words] = [(*words, nodes[0], *after)]
    if len(nodes) > 1 and waiting_pods(scene, top_owner(scene, pod)) > 1:
        commands.append((*words, *nodes, *after))
    return commands


# --- requests -------------------------------------------------------------------------------------


def show_amount(resource: str, amount: int) -> str:
    """Return an amount as a manifest has it; cpu comes in thousandths, everything else in whole
    units."""
    if resource == "cpu":
        if amount % 1000 == 0:
            return f"{amount // 1000}"
        return f"{amount}m"
    if resource in SMALLEST and amount >= MEBI:
        if amount % (MEBI * 1024) == 0:
            return f"{amount // (MEBI * 1024)}Gi"
        return f"{amount // MEBI}Mi"
    return str(amount)


def largest_share(rooms: Sequence[int], number: int) -> int:
    """Return the largest amount of which so many fit into these rooms, 0 for none."""
    shares = {room // count for room in rooms for count in range(1, number + 1)}
    return max(
        (share for share in shares if share and sum(room // share for room in rooms) >= number),
        default=0,
    )


def request_less(scene: Scene, pod: Object, amounts: Mapping[str, int]) -> list[Words]:
    """Return the command that lowers what a pod requests of resources to these amounts.

    The one container that requests them gives what is too much; none if several do, or too little
    would be left.
    """
    workload = top_owner(scene, pod)
    containers = pod["spec"]["containers"]
    asking = [
        container
        for container in containers
        if not {*amounts}.isdisjoint(nested_list(container, "resources", "requests"))
    ]
    if (
        len(asking) != 1
        or not amounts
        or any(amount < SMALLEST.get(name, 1) for name, amount in amounts.items())
    ):
        return []

    name, shown = (
        asking[0]["name"],
        {name: show_amount(name, amount) for name, amount in amounts.items()},
    )
    if workload["kind"] == "Pod":
        patch = {"spec": {"containers": [{"name": name, "resources": {"requests": shown}}]}}
        return [
            scene.command(
                pod, "patch", scene.word(pod), "--subresource=resize", "-p", compact_json(patch)
            )
        ]

    return set_resources(scene, workload, {"requests": shown}, name if len(containers) > 1 else "")
