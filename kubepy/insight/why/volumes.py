"""Why a claim is not bound, and why the claims of a pod keep it from being scheduled.

The binder's own functions say whether a volume can serve a claim; this module finds the volume that
comes closest, and the field that is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import (
    Object,
    annotations_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
)
from kubepy.api.objects.pods import is_pod_terminal, node_name, phase_of
from kubepy.api.objects.volumes import (
    CLASSES,
    DEFAULT_CLASS,
    SELECTED_NODE,
    attributes_match,
    capacity,
    class_of,
    default_class,
    has_class,
    is_bound,
    is_bound_to,
    modes_match,
    mounts,
    not_made_for,
    offers_access,
    requested_size,
    uses_of,
    waits_for_consumer,
)
from kubepy.api.selectors import from_label_selector
from kubepy.controllers.persistentvolume.provisioner import PROVISIONER
from kubepy.insight.why.manifests import consumer_of, new_claim, new_class, replaced_claim
from kubepy.insight.why.remedies import absent, field_path, json_patch, merge_patch
from kubepy.insight.why.scene import Diagnosis
from kubepy.scheduler.plugins.volumes import NO_PROVISIONER, ZONE_LABELS, is_volume_conflict

if TYPE_CHECKING:
    from kubepy.insight import Finding, Link
    from kubepy.insight.why.scene import Scene, Words
    from kubepy.scheduler.cache import NodeInfo

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
IN_TREE = "kubernetes.io/"
ONCE_POD = "ReadWriteOncePod"
NO_VOLUMES = "it makes no volumes: that is left to people"

WITHOUT_VOLUME = "claim-without-volume"
TOO_SMALL = "volume-too-small"
RELEASED = "volume-released"


class Defect(NamedTuple):
    """Something that is wrong with a volume for a claim.

    :ivar field: of the volume.
    :ivar remedies: commands that mend it.
    :ivar cause: the cause where nothing else is wrong.
    :ivar change: fields of a claim that the volume would serve all the same; none: it serves
        nobody.
    """

    field: str
    text: str
    remedies: list[Words]
    cause: str = WITHOUT_VOLUME
    change: Mapping[str, Any] = MappingProxyType({})


class NearestVolume(NamedTuple):
    """The volume that comes closest to serving a claim, by what is wrong with it; without defects:
    there is none."""

    links: list[Link]
    remedies: list[Words]
    cause: str = ""


NONE_NEAR = NearestVolume([], [])
STANDARD = "standard"  # the name of the class that a cluster has by default


# --- a claim that is not bound --------------------------------------------------------------------


def pending_claim(scene: Scene, claim: Object) -> Finding | None:
    """Find out why a claim is not bound; None where it is, is being deleted, or gets its volume by
    and by."""
    if is_being_deleted(claim):
        return None
    if phase_of(claim) == "Lost":
        return lost_claim(scene, claim)
    if is_bound(claim):
        return None
    return waiting_for_consumer(scene, claim) or unserved(scene, claim)


def lost_claim(scene: Scene, claim: Object) -> Finding:
    name = claim["spec"].get("volumeName", "")
    volume = scene.get(VOLUMES, "", name)
    link = scene.link(claim, "status.phase", "it has lost its volume, and with that its data")
    if volume is None:
        return scene.finding(
            "claim-lost", link, absent(VOLUMES, "", name, "it does not exist any more")
        )
    return scene.finding(
        "claim-lost", link, scene.link(volume, "spec.claimRef", "it is another claim's")
    )


def class_object(scene: Scene, claim: Object) -> Object | None:
    return scene.get(CLASSES, "", class_of(claim))


def waiting_for_consumer(scene: Scene, claim: Object) -> Finding | None:
    """Find out why a claim whose class waits for a pod does not get a node: the pod's reason is the
    cause."""
    storage_class = class_object(scene, claim)
    if (
        storage_class is None
        or not waits_for_consumer(storage_class)
        or SELECTED_NODE in annotations_of(claim)
    ):
        return None

    pods = [
        pod
        for pod in scene.list("pods", namespace_of(claim))
        if mounts(pod, claim)
        and not is_pod_terminal(pod)
        and not node_name(pod)
        and not is_being_deleted(pod)
    ]
    mode = scene.link(
        storage_class, "volumeBindingMode", "it binds a claim when a pod that uses it has a node"
    )
    if not pods:
        link = scene.link(claim, "status.phase", "no pod uses it yet")
        return scene.finding("claim-waits-for-consumer", link, mode, fallbacks=[consumer_of(claim)])
    finding = scene.diagnose_any(pods)
    if finding is None:
        return None
    return scene.lead(
        finding, scene.link(claim, "spec.storageClassName", "it waits for its pod to get a node")
    )


def unserved(scene: Scene, claim: Object) -> Finding | None:
    """Find out why no volume serves a claim: the class, the provisioner, or the volumes that there
    are."""
    if name := claim["spec"].get("volumeName"):
        return refused_by_named(scene, claim, name)
    name = class_of(claim)
    storage_class = class_object(scene, claim)
    near = nearest_volume(scene, claim)
    provisioner = str((storage_class or {}).get("provisioner") or NO_PROVISIONER)
    link = scene.link(
        claim, "spec.storageClassName", "no free volume matches it, and nobody provisions one"
    )
    if near.cause in (TOO_SMALL, RELEASED) and provisioner.startswith(IN_TREE):
        return scene.finding(near.cause, link, *near.links, remedies=near.remedies)
    if (storage_class is None and name) or not has_class(claim):
        return without_class(scene, claim, near)
    if not provisioner.startswith(IN_TREE):
        return not_provisioned(scene, claim, storage_class or {}, provisioner)
    last = near.links
    if storage_class is not None and not last:
        last = [scene.link(storage_class, "provisioner", NO_VOLUMES)]
    return scene.finding(
        WITHOUT_VOLUME, link, *last, remedies=[*near.remedies, *with_other_class(scene, claim)]
    )


def with_other_class(scene: Scene, claim: Object) -> list[Words]:
    """Return the commands that make a claim anew with a class whose volumes are made here, the
    default class first."""
    able = [
        storage_class
        for storage_class in scene.list(CLASSES)
        if storage_class.get("provisioner") == PROVISIONER
    ]
    able.sort(key=lambda storage_class: annotations_of(storage_class).get(DEFAULT_CLASS) != "true")
    return [
        replaced_claim(claim, storageClassName=name_of(storage_class))
        for storage_class in able[:1]
        if name_of(storage_class) != class_of(claim)
    ]


def without_class(scene: Scene, claim: Object, near: NearestVolume) -> Finding:
    """Make the finding of a claim whose class does not exist, or that names none where there is no
    default class."""
    links, remedies, _ = near
    if name := class_of(claim):
        link = scene.link(claim, "spec.storageClassName", "it asks for a class that does not exist")
        last = absent(CLASSES, "", name, "there is no such StorageClass")
        return scene.finding(
            "claim-without-class",
            link,
            *links,
            last,
            remedies=[*remedies, *with_other_class(scene, claim), new_class(name)],
        )

    classes = scene.list(CLASSES)
    assert default_class(classes) is None
    link = scene.link(
        claim,
        "spec.storageClassName",
        "it names no class, no class is the default, and no free volume without a class matches it",
    )
    annotation = field_path("metadata.annotations", DEFAULT_CLASS)
    links = [
        scene.link(storage_class, annotation, "it is not the default")
        for storage_class in classes[:1]
    ] or links
    able = [
        storage_class
        for storage_class in classes
        if storage_class.get("provisioner") == PROVISIONER
    ]
    return scene.finding(
        "claim-without-class",
        link,
        *links,
        remedies=[
            *remedies,
            *(
                merge_patch(scene, claim, {"spec": {"storageClassName": name_of(storage_class)}})
                for storage_class in able
            ),
            *(
                ("annotate", f"storageclass/{name_of(storage_class)}", f"{DEFAULT_CLASS}=true")
                for storage_class in able
            ),
            *(() if classes else (new_class(STANDARD, is_default=True),)),
        ],
    )


def not_provisioned(
    scene: Scene, claim: Object, storage_class: Object, provisioner: str
) -> Finding | None:
    """Make the finding of a claim that waits for its class's provisioner; None where the simulated
    one will do it."""
    link = scene.link(
        claim,
        "spec.storageClassName",
        "no free volume matches it, so its class is to provision one",
    )
    failures = [
        event for event in scene.events(claim) if event.get("reason") == "ProvisioningFailed"
    ]
    if provisioner == PROVISIONER:
        if not failures:
            return None
        last = scene.link(
            failures[-1], "message", "the provisioner says why it cannot make the volume"
        )
    else:
        last = scene.link(storage_class, "provisioner", "this provisioner does not run here")

    return scene.finding(
        "claim-not-provisioned", link, last, remedies=with_other_class(scene, claim)
    )


def refused_by_named(scene: Scene, claim: Object, name: str) -> Finding | None:
    """Find out why a claim cannot have the volume that it names."""
    link = scene.link(claim, "spec.volumeName", "it asks for this volume and no other")
    volume = scene.get(VOLUMES, "", name)
    if volume is None:
        return scene.finding(
            WITHOUT_VOLUME,
            link,
            absent(VOLUMES, "", name, "there is no such volume"),
            remedies=[replaced_claim(claim)],
        )

    defects = list(defects_of(scene, volume, claim, is_named=True))
    if not defects:
        return None
    defect = defects[0]
    return scene.finding(
        defect.cause, link, scene.link(volume, defect.field, defect.text), remedies=defect.remedies
    )


# --- volumes that do not match --------------------------------------------------------------------


def defects_of(
    scene: Scene, volume: Object, claim: Object, *, is_named: bool = False
) -> Iterator[Defect]:
    """Yield what is wrong with a volume for a claim."""

    def mend(spec: Object) -> list[Words]:
        return [merge_patch(scene, volume, {"spec": spec})]

    claim_ref = nested_map(volume["spec"], "claimRef")
    if is_being_deleted(volume):
        yield Defect("metadata.deletionTimestamp", "it is being deleted", [])
    if claim_ref and not is_bound_to(volume, claim):
        yield taken(scene, volume)
    if capacity(volume) < requested_size(claim):
        yield too_small(scene, volume, claim)
    if class_of(volume) != class_of(claim):
        text = "it is of another class" if class_of(volume) else "it is of no class"
        yield Defect(
            "spec.storageClassName",
            text,
            mend({"storageClassName": class_of(claim)}),
            change={"storageClassName": class_of(volume)},
        )
    if not attributes_match(claim, volume):
        yield Defect("spec.volumeAttributesClassName", "it has other attributes", [])
    if not modes_match(claim, volume):
        own = {"volumeMode": volume["spec"].get("volumeMode", "Filesystem")}
        yield Defect("spec.volumeMode", "it has another mode", [], change=own)
    if not offers_access(volume, claim):
        modes = claim["spec"]["accessModes"]
        offered = nested_list(volume["spec"], "accessModes")
        wanted = modes if ONCE_POD in (*modes, *offered) else [*offered, *modes]
        yield Defect(
            "spec.accessModes",
            f"it does not offer {', '.join(modes)}",
            mend({"accessModes": wanted}),
            change={"accessModes": offered},
        )

    selector = claim["spec"].get("selector")
    if (
        selector is not None
        and not is_named
        and not from_label_selector(selector).matches(labels_of(volume))
    ):
        labels = [f"{key}={value}" for key, value in nested_map(selector, "matchLabels").items()]
        yield Defect(
            "metadata.labels",
            "the claim's selector does not match its labels",
            [("label", scene.word(volume), *labels, "--overwrite")] if labels else [],
            change={"selector": None},
        )


def taken(scene: Scene, volume: Object) -> Defect:
    """Return the defect of a volume that is another claim's, or was: then its data may still be
    wanted."""
    if phase_of(volume) != "Released":
        return Defect("spec.claimRef.name", "it is another claim's", [])
    free = json_patch(scene, volume, {"op": "remove", "path": "/spec/claimRef"})
    return Defect(
        "spec.claimRef.name", "it keeps the data of a claim that is gone", [free], RELEASED
    )


def too_small(scene: Scene, volume: Object, claim: Object) -> Defect:
    """Return the defect of a volume that is smaller than the claim asks; the claim can be made anew
    with less."""
    size = str(requested_size(claim))
    smaller = {"requests": {"storage": str(capacity(volume))}}
    return Defect(
        "spec.capacity.storage",
        f"it is smaller than {size}",
        [
            replaced_claim(claim, resources=smaller),
            merge_patch(scene, volume, {"spec": {"capacity": {"storage": size}}}),
        ],
        TOO_SMALL,
        {"resources": smaller},
    )


def nearest_volume(scene: Scene, claim: Object) -> NearestVolume:
    """Return the volume that comes closest to serving a claim."""
    candidates = [
        (volume, list(defects_of(scene, volume, claim))) for volume in scene.list(VOLUMES)
    ]
    candidates = [
        (volume, defects)
        for volume, defects in candidates
        if defects and phase_of(volume) != "Bound"
    ]
    if not candidates:
        return NONE_NEAR
    volume, defects = min(candidates, key=lambda candidate: len(candidate[1]))
    links = [scene.link(volume, defect.field, defect.text) for defect in defects]
    causes = {defect.cause for defect in defects}
    cause = defects[0].cause if causes <= {TOO_SMALL, RELEASED} else WITHOUT_VOLUME
    if len(defects) == 1 or cause != WITHOUT_VOLUME:
        remedies = defects[0].remedies
    else:
        remedies = adapted(claim, defects)
    return NearestVolume(links, remedies, cause)


def adapted(claim: Object, defects: Iterable[Defect]) -> list[Words]:
    """Return the command that makes a claim anew so that a volume with these defects serves it."""
    changes: dict[str, Any] = {}
    for defect in defects:
        if not defect.change:
            return []
        changes.update(defect.change)
    return [replaced_claim(claim, **changes)]


# --- the claims of a pod --------------------------------------------------------------------------


def claims_of(scene: Scene, pod: Object) -> list[Object]:
    """Return the claims of a pod that exist."""
    claims = (scene.get(CLAIMS, namespace_of(pod), use.claim) for use in uses_of(pod))
    return [claim for claim in claims if claim is not None]


def unbound(scene: Scene, pod: Object) -> Finding | None:
    """Find out why a pod that fits on a node still waits for a claim."""
    waiting = [claim for claim in claims_of(scene, pod) if not is_bound(claim)]
    return next(
        (finding for claim in waiting if (finding := unserved(scene, claim)) is not None), None
    )


def unusable_claim(scene: Scene, pod: Object) -> Finding | None:
    """Find out which claim keeps a pod from being scheduled at all: missing, lost, being deleted,
    or not bound."""
    namespace = namespace_of(pod)
    for index, volume in enumerate(nested_list(pod["spec"], "volumes")):
        for use in uses_of({**pod, "spec": {"volumes": [volume]}}):
            claim = scene.get(CLAIMS, namespace, use.claim)
            if claim is None:
                field = "ephemeral" if use.ephemeral else "persistentVolumeClaim.claimName"
                link = scene.link(pod, f"spec.volumes[{index}].{field}", "it mounts this claim")
                return scene.finding(
                    "claim-missing",
                    link,
                    absent(CLAIMS, namespace, use.claim, "there is no such claim"),
                    remedies=[] if use.ephemeral else [new_claim(namespace, use.claim)],
                )
            if use.ephemeral and (reason := not_made_for(claim, pod)):
                return scene.finding(
                    "claim-missing", scene.link(claim, "metadata.ownerReferences", reason)
                )
            if not is_usable(claim) and (finding := scene.diagnose(claim)) is not None:
                return finding

    return None


def is_usable(claim: Object) -> bool:
    return is_bound(claim) and not is_being_deleted(claim) and phase_of(claim) != "Lost"


def lost_volume(scene: Scene, pod: Object) -> list[Link]:
    """Return the links of the pod's claim that is bound to a volume that does not exist."""
    for claim in claims_of(scene, pod):
        name = claim["spec"].get("volumeName", "")
        if is_bound(claim) and scene.get(VOLUMES, "", name) is None:
            return [
                scene.link(claim, "spec.volumeName", "the pod's claim is bound to this volume"),
                absent(VOLUMES, "", name, "it does not exist"),
            ]
    return []


def unprovided(scene: Scene, pod: Object) -> Iterator[Object]:
    """Yield the claims of a pod for which a node has no volume, nor can one be provisioned
    there."""
    for claim in claims_of(scene, pod):
        storage_class = class_object(scene, claim) or {}
        provisioner = storage_class.get("provisioner") or NO_PROVISIONER
        restricted = storage_class.get("allowedTopologies") or SELECTED_NODE in annotations_of(
            claim
        )
        if not is_bound(claim) and (provisioner == NO_PROVISIONER or restricted):
            yield claim


def reachable_from_elsewhere(
    scene: Scene, claim: Object
) -> Iterator[tuple[Object, str, str, list[str]]]:
    """Yield where the volumes for a claim can be reached: an object, its field, a node's label, the
    label's values.

    The object is the volume that the claim is bound to, one that matches it, or the class with its
    topologies.
    """
    if is_bound(claim):
        volumes = [scene.get(VOLUMES, "", claim["spec"].get("volumeName") or "")]
    else:
        volumes = [
            volume for volume in scene.list(VOLUMES) if not list(defects_of(scene, volume, claim))
        ]

    for volume in volumes:
        for path, key, values in zones_of(volume or {"metadata": {}, "spec": {}}):
            yield volume or {}, path, key, values
    storage_class = class_object(scene, claim) or {}
    for index, term in enumerate(
        (not is_bound(claim) and storage_class.get("allowedTopologies")) or ()
    ):
        for place, requirement in enumerate(nested_list(term, "matchLabelExpressions")):
            path = f"allowedTopologies[{index}].matchLabelExpressions[{place}].values"
            yield storage_class, path, requirement["key"], list(requirement["values"])


def cause_of_nothing_to_bind(scene: Scene, pod: Object) -> str:
    """Return volume-zone where there is a volume for each claim, or a class that makes one, but
    elsewhere."""
    claims = list(unprovided(scene, pod))
    are_elsewhere = all(
        any(True for _ in reachable_from_elsewhere(scene, claim)) for claim in claims
    )
    if claims and are_elsewhere:
        return "volume-zone"
    return "claim-without-volume"


def nothing_to_bind(scene: Scene, pod: Object) -> NearestVolume:
    """Return the links of the pod's claim for which there is no volume, and the commands that mend
    the nearest one."""
    for claim in unprovided(scene, pod):
        link = scene.link(
            claim, "spec.storageClassName", "no free volume that a node reaches matches the claim"
        )
        storage_class = class_object(scene, claim) or {}
        if (selected := annotations_of(claim).get(SELECTED_NODE)) is not None:
            path = field_path("metadata.annotations", SELECTED_NODE)
            return NearestVolume(
                [link, scene.link(claim, path, f"its volume is being provisioned for {selected}")],
                [],
            )
        near = nearest_volume(scene, claim)
        links = near.links
        if not links and storage_class:
            links = [scene.link(storage_class, "provisioner", NO_VOLUMES)]
        return NearestVolume(
            [link, *links], [*near.remedies, *with_other_class(scene, claim)], near.cause
        )

    return NONE_NEAR


def elsewhere(
    scene: Scene, pod: Object, node_info: NodeInfo
) -> tuple[list[Link], dict[str, str | None]]:
    """Return the links that show why a volume of the pod cannot be reached from a node, and the
    labels of a node that could reach it."""
    for claim in claims_of(scene, pod):
        field = "spec.volumeName" if is_bound(claim) else "spec.storageClassName"
        first = scene.link(
            claim,
            field,
            "it is bound to this volume" if is_bound(claim) else "it has no volume yet",
        )
        for obj, path, key, values in reachable_from_elsewhere(scene, claim):
            if node_info.labels.get(key) not in values:
                links = [
                    first,
                    scene.link(
                        obj, path, f"only nodes reach it whose {key} is {' or '.join(values)}"
                    ),
                ]
                if node_info.node is not None:
                    links.append(
                        scene.link(
                            dict(node_info.node),
                            field_path("metadata.labels", key),
                            "it is elsewhere",
                        )
                    )
                return links, {key: values[0]}

    return [], {}


def zones_of(volume: Object) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the fields of a volume that say from where it is reached, each with a node's label and
    its values."""
    labels = labels_of(volume)
    for key in ZONE_LABELS:
        if key in labels:
            yield field_path("metadata.labels", key), key, labels[key].split("__")
    required: Any = nested_map(volume["spec"], "nodeAffinity", "required")
    for index, term in enumerate(nested_list(required, "nodeSelectorTerms")):
        for place, expression in enumerate(nested_list(term, "matchExpressions")):
            if expression["operator"] == "In":
                path = (
                    f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]."
                    f"matchExpressions[{place}].values"
                )
                yield path, expression["key"], list(expression["values"])


def users_of_volumes(
    scene: Scene, pod: Object, node_info: NodeInfo
) -> tuple[list[Link], list[Object]]:
    """Return the links that show who uses a volume that only one pod may use, and these pods."""
    own = {use.claim for use in uses_of(pod) if not use.ephemeral}
    for claim in claims_of(scene, pod):
        if name_of(claim) in own and ONCE_POD in nested_list(claim["spec"], "accessModes"):
            users = [
                other
                for other in scene.list("pods", namespace_of(pod))
                if node_name(other)
                and other is not pod
                and not is_pod_terminal(other)
                and mounts(other, claim)
            ]
            if users:
                return [
                    scene.link(claim, "spec.accessModes", "only one pod may use the claim"),
                    *(scene.link(user, "spec.volumes", "it uses the claim") for user in users[:1]),
                ], users

    for index, volume in enumerate(nested_list(pod["spec"], "volumes")):
        for other in node_info.pods.values():
            if any(
                is_volume_conflict(volume, taken)
                for taken in nested_list(other.pod["spec"], "volumes")
            ):
                holder = dict(other.pod)
                return [
                    scene.link(
                        pod, f"spec.volumes[{index}]", "only one pod of a node may use the disk"
                    ),
                    scene.link(holder, "spec.volumes", f"it uses the disk on {node_info.name}"),
                ], [holder]

    return [], []


def released_volume(scene: Scene, volume: Object) -> Finding | None:
    """Say of a volume whose claim is gone that it serves no other one."""
    if phase_of(volume) != "Released" or is_being_deleted(volume):
        return None
    defect = taken(scene, volume)
    return scene.finding(
        defect.cause,
        scene.link(volume, "status.phase", "it serves no further claim"),
        scene.link(volume, defect.field, defect.text),
        remedies=defect.remedies,
    )


DIAGNOSES: dict[str, tuple[Diagnosis, ...]] = {
    CLAIMS: (pending_claim,),
    VOLUMES: (released_volume,),
}
