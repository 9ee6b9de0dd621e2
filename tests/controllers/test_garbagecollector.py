from kubepy.api.meta import FOREGROUND, Object, name_of, owner_references, uid_of
from kubepy.apiserver.request import DeleteOptions
from kubepy.runtime.informers import Informers
from kubepy.storage import Key
from tests.controllers.conftest import Lab

RESOURCE = "configmaps"


def reference(owner: Object, *, block: bool = False, uid: str = "", kind: str = "") -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": kind or owner["kind"],
        "name": name_of(owner),
        "uid": uid or uid_of(owner),
        "blockOwnerDeletion": block,
    }


def delete(lab: Lab, name: str, policy: str, namespace: str = "default") -> None:
    lab.client.delete(
        RESOURCE, name, namespace=namespace, options=DeleteOptions(propagation_policy=policy)
    )


def owners_of(lab: Lab, name: str) -> list[str]:
    return [
        one["name"] for one in owner_references(lab.client.get(RESOURCE, name, namespace="default"))
    ]


def test_dependents_follow_their_owner_down_whole_chain(lab):
    boss = lab.config_map("boss")
    worker = lab.config_map("worker", owners=[reference(boss)])
    lab.config_map("apprentice", owners=[reference(worker)])
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["apprentice", "boss", "worker"]
    delete(lab, "boss", "Background")
    lab.settle()
    assert lab.names(RESOURCE, "default") == []


def test_object_with_another_owner_left_loses_only_absent_one(lab):
    boss, rival = lab.config_map("boss"), lab.config_map("rival")
    lab.config_map("shared", owners=[reference(boss), reference(rival)])
    delete(lab, "boss", "Background")
    lab.settle()
    assert owners_of(lab, "shared") == ["rival"]


def test_owner_of_another_uid_or_in_another_namespace_counts_as_absent(lab):
    lab.create(
        "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "north"}}
    )
    boss, head = lab.config_map("boss"), lab.config_map("head", namespace="north")
    lab.config_map(
        "wrong-uid", owners=[reference(boss, uid="0a0b0c0d-1111-2222-3333-444455556666")]
    )
    lab.config_map("far", owners=[reference(head)])
    lab.config_map("near", owners=[reference(head)], namespace="north")
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["boss"]
    assert lab.names(RESOURCE, "north") == ["head", "near"]
    events = [
        (one["involvedObject"]["name"], one["reason"]) for one in lab.client.list("events").items
    ]
    assert ("far", "OwnerRefInvalidNamespace") in events


def test_cluster_scoped_owner_owns_in_every_namespace(lab):
    lab.config_map("of-the-node", owners=[reference(lab.node("node-1"))])
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["of-the-node"]
    lab.client.delete("nodes", "node-1")
    lab.settle()
    assert lab.names(RESOURCE, "default") == []


def test_owner_of_unknown_kind_keeps_its_dependents(lab):
    boss = lab.config_map("boss")
    lab.config_map(
        "odd", owners=[{**reference(boss), "apiVersion": "example.com/v1", "kind": "Widget"}]
    )
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["boss", "odd"]


def test_foreground_deletion_waits_for_blocking_dependents(lab):
    patient, hasty = lab.config_map("patient"), lab.config_map("hasty")
    lab.config_map(
        "blocker", owners=[reference(patient, block=True)], finalizers=["example.com/hold"]
    )
    lab.config_map("bystander", owners=[reference(hasty)], finalizers=["example.com/hold"])
    delete(lab, "patient", "Foreground")
    delete(lab, "hasty", "Foreground")
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["blocker", "bystander", "patient"]
    assert lab.client.get(RESOURCE, "patient", namespace="default")["metadata"]["finalizers"] == [
        FOREGROUND
    ]
    for name in ("blocker", "bystander"):
        lab.change(RESOURCE, name, lambda obj: obj["metadata"].pop("finalizers"), "default")
    lab.settle()
    assert lab.names(RESOURCE, "default") == []


def test_dependent_that_stops_blocking_by_hand_lets_its_owner_go(lab):
    patient = lab.config_map("patient")
    lab.config_map(
        "blocker", owners=[reference(patient, block=True)], finalizers=["example.com/hold"]
    )
    delete(lab, "patient", "Foreground")
    lab.settle()
    lab.change(RESOURCE, "blocker", lambda obj: obj["metadata"].pop("ownerReferences"), "default")
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["blocker"]


def test_foreground_deletion_goes_through_chain_from_end(lab):
    boss = lab.config_map("boss")
    worker = lab.config_map("worker", owners=[reference(boss, block=True)])
    lab.config_map(
        "apprentice", owners=[reference(worker, block=True)], finalizers=["example.com/hold"]
    )
    delete(lab, "boss", "Foreground")
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["apprentice", "boss", "worker"]
    lab.change(RESOURCE, "apprentice", lambda obj: obj["metadata"].pop("finalizers"), "default")
    lab.settle()
    assert lab.names(RESOURCE, "default") == []


def test_circle_of_blocking_owners_is_broken(lab):
    one = lab.config_map("one")
    two = lab.config_map("two", owners=[reference(one, block=True)])
    lab.change(
        RESOURCE,
        "one",
        lambda obj: obj["metadata"].update(ownerReferences=[reference(two, block=True)]),
        "default",
    )
    delete(lab, "one", "Foreground")
    lab.settle()
    assert lab.names(RESOURCE, "default") == []


def test_orphaned_dependents_stay_without_their_owner(lab):
    boss = lab.config_map("boss")
    lab.config_map("worker", owners=[reference(boss)])
    delete(lab, "boss", "Orphan")
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["worker"]
    assert owners_of(lab, "worker") == []


def test_dependents_stay_while_their_owners_file_cannot_be_read(lab):
    """Keep dependents while their owner's file cannot be read, even without an index: an unreadable
    object is not deleted."""
    boss = lab.config_map("boss")
    lab.config_map("worker", owners=[reference(boss)])
    lab.settle()
    file = lab.file("configmaps", "boss", namespace="default")
    text = file.read_text()
    file.write_text(text + "<<<<<<< HEAD\n")
    lab.forget_index()
    summary = lab.settle()
    assert lab.names(RESOURCE, "default") == ["worker"]
    assert any("has merge conflict markers" in failure.error for failure in summary.failures)
    file.write_text(text)
    lab.settle()
    assert lab.names(RESOURCE, "default") == ["boss", "worker"]


def test_cluster_scoped_object_is_not_owned_by_what_is_in_namespace_and_stays(lab):
    boss = lab.config_map("boss")
    lab.create(
        "clusterroles.rbac.authorization.k8s.io",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "rules": [],
            "metadata": {"name": "odd", "ownerReferences": [reference(boss)]},
        },
    )
    lab.settle()
    delete(lab, "boss", "Background")
    lab.settle()
    assert "odd" in lab.names("clusterroles.rbac.authorization.k8s.io")
    [event] = [
        one for one in lab.client.list("events").items if one["involvedObject"]["name"] == "odd"
    ]
    assert (event["reason"], event["count"], event["metadata"]["namespace"]) == (
        "OwnerRefInvalidNamespace",
        1,
        "default",
    )
    assert event["message"] == (
        f"ownerRef [v1/ConfigMap, namespace: , name: boss, uid: {uid_of(boss)}] does not exist in "
        f'namespace ""'
    )


def test_owner_in_another_namespace_is_named_once(lab):
    lab.create(
        "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "north"}}
    )
    head, boss = lab.config_map("head", namespace="north"), lab.config_map("boss")
    lab.config_map("shared", owners=[reference(head), reference(boss)])
    lab.settle()
    lab.settle()
    assert owners_of(lab, "shared") == ["boss"]
    [event] = [
        one
        for one in lab.client.list("events").items
        if one["reason"] == "OwnerRefInvalidNamespace"
    ]
    assert (event["involvedObject"]["name"], event["count"], event["message"]) == (
        "shared",
        1,
        (
            f"ownerRef [v1/ConfigMap, namespace: default, name: head, uid: {uid_of(head)}] "
            'does not exist in namespace "default"'
        ),
    )


def test_owner_of_many_is_deleted_without_listing_them_for_each(lab, monkeypatch):
    owner = lab.config_map("owner")
    for number in range(30):
        lab.config_map(f"dependent-{number}", owners=[reference(owner)])
    lab.settle()
    listed = []
    list_dependents = Informers.dependents

    def note(informers: Informers, uid: str, resource: str | None = None) -> list[Key]:
        listed.append(uid)
        return list_dependents(informers, uid, resource)

    monkeypatch.setattr(Informers, "dependents", note)
    delete(lab, "owner", "Background")
    lab.settle()
    assert lab.names(RESOURCE, "default") == []
    assert listed.count(uid_of(owner)) <= 2
