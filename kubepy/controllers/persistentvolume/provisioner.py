"""The storage behind StorageClasses whose provisioner is ``kubepy.dev/simulated``, or that of a
cluster on one machine: a volume for every claim that asks.

It works as the CSI external-provisioner does (``sig-storage-lib-external-provisioner``): a claim
that the binder annotated with its name gets a volume reserved for that claim, and a released volume
whose policy is Delete is deleted. Every node reaches the volumes, unless the class names
topologies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubepy.api.errors import Status
from kubepy.api.meta import (
    AnyObject,
    annotations_of,
    has_finalizer,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    object_reference,
    uid_of,
    with_finalizer,
    without_finalizer,
)
from kubepy.api.objects.volumes import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    class_of,
    waits_for_consumer,
)
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    ResourceClient,
)
from kubepy.runtime.reconcile import Context, Handler, Key, enqueue_object

if TYPE_CHECKING:
    from kubepy.api.typed import (
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        PersistentVolumeSpec,
        StorageClass,
        VolumeNodeAffinity,
    )

PROVISIONER = "kubepy.dev/simulated"
# The provisioners of minikube and kind stand in manifests that are meant for such clusters.
PROVISIONERS = frozenset((PROVISIONER, "k8s.io/minikube-hostpath", "rancher.io/local-path"))
DRIVER = "simulated.kubepy.dev"
FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"


class SimulatedProvisioner:
    """Reconciles claims that ask for a volume of this provisioner, and its volumes."""

    name = PROVISIONER

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._claims = context.informers.lister(PERSISTENT_VOLUME_CLAIMS)
        self._classes = context.informers.lister(STORAGE_CLASSES)
        self._nodes = context.informers.lister(NODES)
        self._volumes = context.informers.lister(PERSISTENT_VOLUMES)
        self._volume_client = ResourceClient(context.client, PERSISTENT_VOLUMES)
        self._recorder = Recorder(context.client, PROVISIONER)

    def handlers(self) -> Mapping[str, Handler]:
        enqueue_own = enqueue_object(self.queue, lambda obj: is_assigned(obj) or is_own(obj))
        return {
            PERSISTENT_VOLUME_CLAIMS: enqueue_own,
            PERSISTENT_VOLUMES: enqueue_own,
            STORAGE_CLASSES: lambda event: None,
            NODES: lambda event: None,
        }  # so that informers hold them

    def sync(self, key: Key) -> None:
        if key.resource == PERSISTENT_VOLUME_CLAIMS:
            claim = self._claims.get(key.namespace, key.name)
            if claim is not None:
                self._sync_claim(claim)
            return

        volume = self._volumes.get("", key.name)
        if volume is None or not is_own(volume):
            return
        volume = self._with_right_finalizer(volume)
        if should_delete(volume):
            # The protection of volumes removes its own finalizer.
            if not is_being_deleted(volume):
                self._volume_client.delete(volume)
                volume = self._volume_client.get("", name_of(volume))
            self._volume_client.update(without_finalizer(volume, FINALIZER))

    # --- claims

    def _sync_claim(self, claim: PersistentVolumeClaim) -> None:
        storage_class = self._classes.get("", class_of(claim))
        if storage_class is None or not should_provision(claim, storage_class):
            return
        if self._volumes.get("", volume_name(claim)) is not None:
            return
        selected = annotations_of(claim).get(SELECTED_NODE)
        node = self._nodes.get("", selected) if selected else None
        subject = (
            f"External provisioner is provisioning volume for claim "
            f'"{namespace_of(claim)}/{name_of(claim)}"'
        )
        self._recorder.event(claim, "Normal", "Provisioning", subject)
        if claim["spec"].get("selector") is not None:
            self._fail(claim, storage_class, "claim Selector is not supported")
            return
        try:
            volume = self._volume_client.create(new_volume(claim, storage_class, node))
        except Status as error:
            self._fail(claim, storage_class, str(error))
            raise

        self._recorder.event(
            claim,
            "Normal",
            "ProvisioningSucceeded",
            f"Successfully provisioned volume {name_of(volume)}",
        )

    def _fail(self, claim: PersistentVolumeClaim, storage_class: StorageClass, error: str) -> None:
        self._recorder.event(
            claim,
            "Warning",
            "ProvisioningFailed",
            f'failed to provision volume with StorageClass "{name_of(storage_class)}": {error}',
        )

    # --- volumes

    def _with_right_finalizer(self, volume: PersistentVolume) -> PersistentVolume:
        """Add the finalizer to volumes that are to be deleted with their claim; remove it from
        others."""
        if volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete":
            if not has_finalizer(volume, FINALIZER):
                return volume
            return self._volume_client.update(without_finalizer(volume, FINALIZER))
        if has_finalizer(volume, FINALIZER) or is_being_deleted(volume):
            return volume
        return self._volume_client.update(with_finalizer(volume, FINALIZER))


def is_assigned(obj: AnyObject) -> bool:
    """Tell whether a claim asks for a volume of this provisioner."""
    annotations = annotations_of(obj)
    provisioner = annotations.get(STORAGE_PROVISIONER) or annotations.get(BETA_STORAGE_PROVISIONER)
    return provisioner in PROVISIONERS


def is_own(obj: AnyObject) -> bool:
    """Tell whether this provisioner made a volume."""
    return annotations_of(obj).get(PROVISIONED_BY) == PROVISIONER


def should_provision(claim: PersistentVolumeClaim, storage_class: StorageClass) -> bool:
    """Tell whether to provision now: a claim that waits for its first consumer must have a selected
    node."""
    if claim["spec"].get("volumeName") or not is_assigned(claim) or is_being_deleted(claim):
        return False
    if not waits_for_consumer(storage_class):
        return True
    return bool(annotations_of(claim).get(SELECTED_NODE))


def should_delete(volume: PersistentVolume) -> bool:
    """Tell whether a volume is released, its policy is Delete, and it has the finalizer yet."""
    if (volume.get("status") or {}).get("phase") != "Released" or not has_finalizer(
        volume, FINALIZER
    ):
        return False
    return bool(volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete")


def volume_name(claim: PersistentVolumeClaim) -> str:
    """Return the name of the volume that is made for a claim."""
    return f"pvc-{uid_of(claim)}"


def new_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None
) -> PersistentVolume:
    """Return a volume reserved for a claim; ``node``: that of the pod that needs it, if
    selected."""
    name = volume_name(claim)
    claim_spec = claim["spec"]
    spec: PersistentVolumeSpec = {
        "accessModes": claim_spec.get("accessModes") or [],
        "capacity": {"storage": claim_spec["resources"]["requests"]["storage"]},
        "claimRef": object_reference(claim),
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": name_of(storage_class),
        "volumeMode": claim_spec.get("volumeMode", "Filesystem"),
    }
    mount_options = storage_class.get("mountOptions")
    if mount_options:
        spec["mountOptions"] = mount_options
    attributes_class = claim_spec.get("volumeAttributesClassName")
    if attributes_class:
        spec["volumeAttributesClassName"] = attributes_class
    affinity = node_affinity(storage_class, node)
    if affinity:
        spec["nodeAffinity"] = affinity
    volume: PersistentVolume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": spec,
    }
    if spec["persistentVolumeReclaimPolicy"] == "Delete":
        return with_finalizer(volume, FINALIZER)
    return volume


def node_affinity(storage_class: StorageClass, node: Node | None) -> VolumeNodeAffinity | None:
    """Return the node affinity for volumes of a class with topologies: all of them, or those that
    the node is in."""
    terms = storage_class.get("allowedTopologies") or []
    if node is not None:
        labels = labels_of(node)
        terms = [
            term
            for term in terms
            if all(
                labels.get(requirement["key"]) in requirement["values"]
                for requirement in term.get("matchLabelExpressions") or []
            )
        ]

    if not terms:
        return None
    return {
        "required": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {
                            "key": requirement["key"],
                            "operator": "In",
                            "values": requirement["values"],
                        }
                        for requirement in term.get("matchLabelExpressions") or []
                    ]
                }
                for term in terms
            ]
        }
    }
