"""Claims and volumes: matching, binding, provisioning, release, loss."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object, annotations_of, name_of, uid_of
from tests.controllers.conftest import Lab
from tests.controllers.statefulset_objects import storage_class
from tests.controllers.volume_objects import (
    CLAIMS,
    VOLUMES,
    claim,
    claims,
    make,
    phases,
    pod,
    said,
    volume,
)

# --- volumes that exist already -------------------------------------------------------------------


def test_claim_gets_smallest_volume_that_is_large_enough(lab: Lab) -> None:
    make(
        lab,
        volume("a-small", "500Mi"),
        volume("b-large", "10Gi"),
        volume("c-fits", "2Gi"),
        claim(size="1Gi"),
    )
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "c-fits")}
    assert phases(lab) == {"a-small": "Available", "b-large": "Available", "c-fits": "Bound"}


def test_binding_is_recorded_on_claim_and_volume(lab: Lab) -> None:
    make(lab, volume("pv", "2Gi", accessModes=["ReadWriteOnce", "ReadOnlyMany"]), claim())
    lab.settle()
    bound, kept = lab.client.get(CLAIMS, "data", namespace="default"), lab.client.get(VOLUMES, "pv")
    assert annotations_of(bound) == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert bound["status"] == {
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "capacity": {"storage": "2Gi"},
        "phase": "Bound",
    }
    assert annotations_of(kept) == {"pv.kubernetes.io/bound-by-controller": "yes"}
    reference = kept["spec"]["claimRef"]
    assert (reference["name"], reference["namespace"], reference["uid"]) == (
        "data",
        "default",
        uid_of(bound),
    )


@pytest.mark.parametrize(
    ("offered", "wanted"),
    [
        pytest.param(volume(size="1Gi"), claim(size="2Gi"), id="too small"),
        pytest.param(volume(storageClassName="fast"), claim(), id="another class"),
        pytest.param(volume(accessModes=["ReadOnlyMany"]), claim(), id="another access mode"),
        pytest.param(volume(), claim(volumeMode="Block"), id="another volume mode"),
        pytest.param(
            volume(labels={"disk": "hdd"}),
            claim(selector={"matchLabels": {"disk": "ssd"}}),
            id="selector",
        ),
        pytest.param(
            volume(claimRef={"name": "other", "namespace": "default"}),
            claim(),
            id="reserved for another",
        ),
    ],
)
def test_volume_that_does_not_fit_is_left_alone(lab: Lab, offered: Object, wanted: Object) -> None:
    make(lab, offered, wanted)
    lab.settle()
    assert (claims(lab), phases(lab)) == ({"data": ("Pending", "")}, {"pv": "Available"})
    assert said(lab) == [
        "Normal FailedBinding: no persistent volumes available for this claim and no storage "
        "class is "
        "set"
    ]


def test_fewer_access_modes_come_before_better_size(lab: Lab) -> None:
    make(
        lab,
        volume("many", "1Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"]),
        volume("one", "5Gi"),
        claim(),
    )
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "one")}


def test_reserved_volume_goes_to_claim_it_is_reserved_for_whatever_its_size(lab: Lab) -> None:
    make(
        lab,
        volume("own", "9Gi", claimRef={"name": "data", "namespace": "default"}),
        volume("fits"),
        claim(),
    )
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "own")}
    assert "pv.kubernetes.io/bound-by-controller" not in annotations_of(
        lab.client.get(VOLUMES, "own")
    )


def test_claim_that_names_volume_waits_for_it(lab: Lab) -> None:
    make(lab, volume("other"), claim(volumeName="own"))
    lab.settle()
    assert claims(lab) == {"data": ("Pending", "own")}
    make(lab, volume("own"))
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "own")}


def test_claim_that_names_volume_too_small_for_it_is_told(lab: Lab) -> None:
    make(lab, volume("own", "500Mi"), claim(volumeName="own"))
    lab.settle()
    assert claims(lab) == {"data": ("Pending", "own")}
    assert said(lab) == [
        'Warning VolumeMismatch: Cannot bind to requested volume "own": requested PV is too small'
    ]


def test_claims_naming_one_volume_do_not_share_it(lab: Lab) -> None:
    make(lab, volume("pv"), claim("a", volumeName="pv"))
    lab.settle()
    make(lab, claim("b", volumeName="pv"))
    lab.settle()
    assert claims(lab) == {"a": ("Bound", "pv"), "b": ("Pending", "pv")}
    assert said(lab, "b") == [
        'Warning FailedBinding: volume "pv" already bound to a different claim.'
    ]


def test_claim_that_waits_is_served_when_volume_comes(lab: Lab) -> None:
    make(lab, claim())
    lab.settle()
    make(lab, volume())
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "pv")}


# --- volumes whose claim is deleted ---------------------------------------------------------------


def released(lab: Lab, offered: Object) -> Object | None:
    """Bind a claim to the volume and delete the claim; return the volume, None if it is deleted
    too."""
    make(lab, offered, claim())
    lab.settle()
    assert claims(lab)["data"][0] == "Bound"
    lab.client.delete(CLAIMS, "data", namespace="default")
    lab.settle()
    return next(iter(lab.client.list(VOLUMES).items), None)


def test_retained_volume_is_released_and_serves_nobody_else(lab: Lab) -> None:
    left = released(lab, volume(persistentVolumeReclaimPolicy="Retain"))
    assert left is not None
    assert left["status"]["phase"] == "Released"
    make(lab, claim())
    lab.settle()
    assert (claims(lab), phases(lab)) == ({"data": ("Pending", "")}, {"pv": "Released"})


def test_released_volume_is_available_again_when_its_reference_is_taken_off(lab: Lab) -> None:
    released(lab, volume(persistentVolumeReclaimPolicy="Retain"))
    make(lab, claim())
    lab.change(VOLUMES, "pv", lambda one: one["spec"].pop("claimRef"))
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "pv")}


def test_host_path_below_tmp_is_deleted(lab: Lab) -> None:
    offered = volume(persistentVolumeReclaimPolicy="Delete", hostPath={"path": "/tmp/data"})
    assert released(lab, offered) is None


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            {"hostPath": {"path": "/srv/data"}},
            "host_path deleter only supports /tmp/.+ but received provided /srv/data",
        ),
        (
            {"nfs": {"server": "s", "path": "/"}},
            'error getting deleter volume plugin for volume "pv": no deletable volume plugin '
            "matched",
        ),
    ],
)
def test_volume_that_nobody_can_delete_has_failed(lab: Lab, source: Object, why: str) -> None:
    left = released(lab, volume(persistentVolumeReclaimPolicy="Delete", **source))
    assert left is not None
    assert (left["status"]["phase"], left["status"]["message"]) == ("Failed", why)
    assert said(lab, "pv") == [f"Warning VolumeFailedDelete: {why}"]


def test_recycled_volume_is_available_again(lab: Lab) -> None:
    left = released(lab, volume(persistentVolumeReclaimPolicy="Recycle"))
    assert left is not None
    assert (left["status"]["phase"], "claimRef" in left["spec"]) == ("Available", False)
    assert said(lab, "pv") == ["Normal VolumeRecycled: Volume recycled"]


@pytest.mark.parametrize(
    ("policy", "is_kept"), [("Delete", False), ("Recycle", False), ("Retain", True)]
)
def test_content_of_volume_goes_as_its_policy_says(lab: Lab, policy: str, is_kept: bool) -> None:
    content = '{"root": {"k": "d", "m": 511, "c": {"row": {"s": "1"}}}, "version": 1}'
    lab.cluster.store.set_values({"volume/pv": content, "volume/other": content})
    source = {"hostPath": {"path": "/tmp/data"}}
    released(lab, volume(persistentVolumeReclaimPolicy=policy, **source))
    assert (lab.cluster.store.meta("volume/pv") is not None) == is_kept
    assert (lab.folder / "volumes/pv/files/row").exists() == is_kept
    assert lab.cluster.store.meta("volume/other") is not None


def test_content_of_retained_volume_outlives_its_object(lab: Lab) -> None:
    content = '{"root": {"k": "d"}, "version": 1}'
    lab.cluster.store.set_values({"volume/pv": content})
    released(lab, volume(persistentVolumeReclaimPolicy="Retain"))
    lab.client.delete(VOLUMES, "pv")
    lab.settle()
    assert phases(lab) == {}
    assert lab.cluster.store.meta("volume/pv") is not None


def test_claim_whose_volume_is_gone_is_lost(lab: Lab) -> None:
    make(lab, volume(), claim())
    lab.settle()
    lab.client.delete(VOLUMES, "pv")
    lab.settle()
    assert (claims(lab), phases(lab)) == (
        {"data": ("Bound", "pv")},
        {"pv": "Bound"},
    )  # protected while it is bound
    lab.change(VOLUMES, "pv", lambda one: one["metadata"].update(finalizers=[]))
    lab.settle()
    assert claims(lab) == {"data": ("Lost", "pv")}
    assert said(lab) == [
        "Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    ]


def test_volume_being_deleted_goes_with_its_claim(lab: Lab) -> None:
    make(lab, volume(persistentVolumeReclaimPolicy="Retain"), claim())
    lab.settle()
    lab.client.delete(VOLUMES, "pv")
    lab.client.delete(CLAIMS, "data", namespace="default")
    lab.settle()
    assert (claims(lab), phases(lab)) == ({}, {})


def test_volume_that_lost_its_protection_gets_it_back(lab: Lab) -> None:
    make(lab, volume())
    lab.change(VOLUMES, "pv", lambda one: one["metadata"].update(finalizers=[]))
    lab.settle()
    assert lab.client.get(VOLUMES, "pv")["metadata"]["finalizers"] == [
        "kubernetes.io/pv-protection"
    ]


# --- provisioned volumes --------------------------------------------------------------------------


def test_class_gives_every_claim_volume(lab: Lab) -> None:
    make(lab, storage_class(mode="Immediate"), claim("a"), claim("b", "3Gi"))
    lab.settle()
    made = {name_of(one): one for one in lab.client.list(VOLUMES).items}
    assert {phase for phase, _ in claims(lab).values()} == {"Bound"}
    assert sorted(one["spec"]["capacity"]["storage"] for one in made.values()) == ["1Gi", "3Gi"]
    name = claims(lab)["a"][1]
    assert name == f"pvc-{uid_of(lab.client.get(CLAIMS, 'a', namespace='default'))}"
    assert said(lab, "a") == [
        "Normal ExternalProvisioning: Waiting for a volume to be created either by the external "
        "provisioner "
        "'kubepy.dev/simulated' or manually by the system administrator. If volume creation is "
        "delayed, please verify "
        "that the provisioner is running and correctly registered.",
        'Normal Provisioning: External provisioner is provisioning volume for claim "default/a"',
        f"Normal ProvisioningSucceeded: Successfully provisioned volume {name}",
    ]


def test_provisioned_volume_looks_like_external_provisioners(lab: Lab) -> None:
    make(lab, storage_class(mode="Immediate", mountOptions=["noatime"]), claim())
    lab.settle()
    [made] = lab.client.list(VOLUMES).items
    assert made["metadata"]["finalizers"] == [
        "external-provisioner.volume.kubernetes.io/finalizer",
        "kubernetes.io/pv-protection",
    ]
    spec = {key: value for key, value in made["spec"].items() if key != "claimRef"}
    assert spec == {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "simulated.kubepy.dev", "volumeHandle": name_of(made)},
        "mountOptions": ["noatime"],
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": "standard",
        "volumeMode": "Filesystem",
    }


@pytest.mark.parametrize(("policy", "left"), [("Delete", {}), ("Retain", {"pvc": "Released"})])
def test_provisioned_volume_goes_with_its_claim_unless_class_retains_it(
    lab: Lab, policy: str, left: dict[str, str]
) -> None:
    make(lab, storage_class(mode="Immediate", reclaimPolicy=policy), claim())
    lab.settle()
    lab.client.delete(CLAIMS, "data", namespace="default")
    lab.settle()
    assert {name.partition("-")[0]: phase for name, phase in phases(lab).items()} == left


@pytest.mark.parametrize("provisioner", ["k8s.io/minikube-hostpath", "rancher.io/local-path"])
def test_provisioner_of_a_cluster_on_one_machine_makes_volumes(lab: Lab, provisioner: str) -> None:
    make(lab, storage_class(mode="Immediate", provisioner=provisioner), claim())
    lab.settle()
    assert claims(lab)["data"][0] == "Bound"
    lab.client.delete(CLAIMS, "data", namespace="default")
    lab.settle()
    assert lab.client.list(VOLUMES).items == []


def test_policy_that_changes_to_retain_lets_go_of_volume(lab: Lab) -> None:
    make(lab, storage_class(mode="Immediate"), claim())
    lab.settle()
    [made] = lab.client.list(VOLUMES).items
    lab.change(
        VOLUMES,
        name_of(made),
        lambda one: one["spec"].update(persistentVolumeReclaimPolicy="Retain"),
    )
    lab.settle()
    assert lab.client.list(VOLUMES).items[0]["metadata"]["finalizers"] == [
        "kubernetes.io/pv-protection"
    ]


def test_claim_that_waits_for_its_consumer_is_bound_where_that_is_scheduled(lab: Lab) -> None:
    make(lab, storage_class(), claim())
    lab.settle()
    assert claims(lab) == {"data": ("Pending", "")}
    assert said(lab) == [
        "Normal WaitForFirstConsumer: waiting for first consumer to be created before binding"
    ]
    lab.node("node-1")
    make(lab, pod())
    lab.settle()
    assert claims(lab)["data"][0] == "Bound"
    bound = lab.client.get(CLAIMS, "data", namespace="default")
    assert annotations_of(bound)["volume.kubernetes.io/selected-node"] == "node-1"
    assert lab.client.get("pods", "p", namespace="default")["status"]["phase"] == "Running"


def test_claim_says_which_pod_it_waits_for_when_that_fits_nowhere(lab: Lab) -> None:
    lab.node("node-1")
    make(lab, storage_class(), pod(nodeSelector={"disk": "ssd"}), claim())
    lab.settle()
    assert claims(lab) == {"data": ("Pending", "")}
    assert said(lab)[-1] == "Normal WaitForPodScheduled: waiting for pod p to be scheduled"


def test_volumes_of_class_with_topologies_stay_where_they_are(lab: Lab) -> None:
    for name, zone in (("node-1", "a"), ("node-2", "b"), ("node-3", "c")):
        lab.node(name)
        lab.change(
            "nodes", name, lambda one, zone=zone: one["metadata"].update(labels={"zone": zone})
        )
    terms = [{"matchLabelExpressions": [{"key": "zone", "values": ["b", "c"]}]}]
    make(lab, storage_class(allowedTopologies=terms), claim(), pod())
    lab.settle()
    placed = lab.client.get("pods", "p", namespace="default")["spec"]["nodeName"]
    [made] = lab.client.list(VOLUMES).items
    assert placed in ("node-2", "node-3")
    assert made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b", "c"]}]}
    ]


def test_scheduler_takes_free_volume_that_node_reaches(lab: Lab) -> None:
    for name in ("node-1", "node-2"):
        lab.node(name)
        lab.change(
            "nodes", name, lambda one, name=name: one["metadata"].update(labels={"host": name})
        )

    def local(name: str, host: str) -> Object:
        terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": [host]}]}]
        return volume(
            name, storageClassName="local", nodeAffinity={"required": {"nodeSelectorTerms": terms}}
        )

    make(
        lab,
        storage_class("local", default=False, provisioner="kubernetes.io/no-provisioner"),
        local("pv-2", "node-2"),
        claim(storageClassName="local"),
        pod(),
    )
    lab.settle()
    assert claims(lab) == {"data": ("Bound", "pv-2")}
    placed = lab.client.get("pods", "p", namespace="default")
    assert (placed["spec"]["nodeName"], placed["status"]["phase"]) == ("node-2", "Running")


def test_pods_whose_volumes_are_being_made_count_on_their_nodes(lab: Lab) -> None:
    names = [f"p-{number}" for number in range(4)]
    for number in range(4):
        lab.node(f"node-{number}")
    make(
        lab,
        storage_class(),
        *(claim(f"c-{name}") for name in names),
        *(pod(name, f"c-{name}") for name in names),
    )
    lab.settle()
    nodes = [
        lab.client.get("pods", name, namespace="default")["spec"]["nodeName"] for name in names
    ]
    chosen = [
        annotations_of(lab.client.get(CLAIMS, f"c-{name}", namespace="default"))[
            "volume.kubernetes.io/selected-node"
        ]
        for name in names
    ]
    assert (sorted(nodes), chosen) == ([f"node-{number}" for number in range(4)], nodes)


def test_claims_of_one_pod_need_a_volume_each(lab: Lab) -> None:
    lab.node("node-1")
    mounted = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in ("a", "b")]
    make(
        lab,
        storage_class("local", default=False, provisioner="kubernetes.io/no-provisioner"),
        volume("pv", storageClassName="local"),
        claim("a", storageClassName="local"),
        claim("b", storageClassName="local"),
        pod(volumes=mounted),
    )
    lab.settle()
    assert claims(lab) == {"a": ("Pending", ""), "b": ("Pending", "")}
    make(lab, volume("second", storageClassName="local"))
    lab.settle()
    assert sorted(claims(lab).values()) == [("Bound", "pv"), ("Bound", "second")]


@pytest.mark.parametrize(
    ("fields", "event"),
    [
        (
            {"provisioner": "kubernetes.io/no-provisioner"},
            "Warning ProvisioningFailed: no volume plugin matched name: "
            "kubernetes.io/no-provisioner",
        ),
        (
            {"provisioner": "ebs.csi.aws.com"},
            "Normal ExternalProvisioning: Waiting for a volume to be created either by "
            "the external provisioner 'ebs.csi.aws.com' or manually by the system administrator. "
            "If volume creation is "
            "delayed, please verify that the provisioner is running and correctly registered.",
        ),
    ],
)
def test_unknown_provisioner_makes_no_volume(lab: Lab, fields: dict[str, str], event: str) -> None:
    make(lab, storage_class(mode="Immediate", **fields), claim())
    lab.settle()
    assert (claims(lab), said(lab)) == ({"data": ("Pending", "")}, [event])


def test_class_that_is_not_there_is_named(lab: Lab) -> None:
    make(lab, claim(storageClassName="gone"))
    lab.settle()
    assert said(lab) == ['Warning ProvisioningFailed: storageclass.storage.k8s.io "gone" not found']
    make(lab, storage_class("gone", "Immediate", default=False))
    lab.settle()
    assert claims(lab)["data"][0] == "Bound"


# --- the default class ----------------------------------------------------------------------------


def class_of(lab: Lab) -> str | None:
    found: str | None = lab.client.get(CLAIMS, "data", namespace="default")["spec"].get(
        "storageClassName"
    )
    return found


def test_claim_without_class_gets_newest_default(lab: Lab) -> None:
    make(lab, storage_class("old", "Immediate"))
    lab.pass_time(60)
    make(lab, storage_class("new", "Immediate"), storage_class("plain", default=False), claim())
    assert class_of(lab) == "new"


def test_claim_that_wants_no_class_gets_none(lab: Lab) -> None:
    make(lab, storage_class(mode="Immediate"), claim(storageClassName=""))
    lab.settle()
    assert (class_of(lab), claims(lab)) == ("", {"data": ("Pending", "")})


def test_default_class_made_later_serves_claims_that_wait_for_one(lab: Lab) -> None:
    make(lab, claim())
    lab.settle()
    make(lab, storage_class(mode="Immediate"))
    lab.settle()
    assert (class_of(lab), claims(lab)["data"][0]) == ("standard", "Bound")
