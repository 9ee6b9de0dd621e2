from contextlib import closing

from kubepy.api.meta import Object
from kubepy.controlplane import build_manager
from kubepy.controlplane.open import open_cluster
from tests.controllers.conftest import Lab

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
BOATS = "boats.harbour.example.org"


def define(lab: Lab) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": "harbour.example.org",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    lab.create(
        CRDS,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": BOATS},
            "spec": spec,
        },
    )


def boat(lab: Lab, name: str, **metadata: object) -> Object:
    return lab.create(
        BOATS,
        {
            "apiVersion": "harbour.example.org/v1",
            "kind": "Boat",
            "metadata": {"name": name, **metadata},
        },
        "default",
    )


def test_objects_of_definition_go_with_it(lab):
    define(lab)
    boat(lab, "ada")
    lab.client.delete(CRDS, BOATS)
    assert lab.names(BOATS) == ["ada"]
    lab.settle()
    assert lab.names(CRDS) == []


def test_definition_waits_for_object_that_is_held(lab):
    define(lab)
    boat(lab, "ada")
    boat(lab, "grace", finalizers=["example.com/hold"])
    lab.client.delete(CRDS, BOATS)
    lab.settle()
    assert lab.names(BOATS) == ["grace"]
    conditions = {
        one["type"]: one["reason"] for one in lab.client.get(CRDS, BOATS)["status"]["conditions"]
    }
    assert conditions["Terminating"] == "InstanceDeletionInProgress"
    lab.change(BOATS, "grace", lambda obj: obj["metadata"].pop("finalizers"), "default")
    lab.settle()
    assert lab.names(CRDS) == []


def test_files_of_kind_that_nothing_defines_keep_nobody_from_working(lab, tmp_path):
    folder = tmp_path / "state/namespaces/default/foos.example.org"
    folder.mkdir(parents=True)
    (folder / "a.yaml").write_text(
        "apiVersion: example.org/v1\nkind: Foo\nmetadata: {name: a, namespace: default}\n"
    )
    lab.node("node-1")
    lab.daemon_set("agent")
    assert lab.settle().failures == []
    assert list(lab.pods_by_node()) == ["node-1"]


def test_custom_objects_own_and_are_owned(lab):
    define(lab)
    ada = boat(lab, "ada")
    reference = {
        "apiVersion": "harbour.example.org/v1",
        "kind": "Boat",
        "name": "ada",
        "uid": ada["metadata"]["uid"],
    }
    lab.config_map("log", owners=[reference])
    lab.settle()
    assert lab.names("configmaps", "default") == ["log"]
    lab.client.delete(BOATS, "ada", namespace="default")
    lab.settle()
    assert lab.names("configmaps", "default") == []


# --- definitions that are deleted and created again


def owner_reference(obj: Object) -> Object:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }


def remove_definition(lab: Lab) -> str:
    """Remove the definition's file, as ``rm`` does; returns its text."""
    file = lab.file(CRDS, BOATS)
    text = file.read_text()
    file.unlink()
    return text


def put_back_definition(lab: Lab, text: str) -> None:
    file = lab.file(CRDS, BOATS)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def test_dependents_of_custom_objects_go_with_definition(lab):
    define(lab)
    lab.config_map("log", owners=[owner_reference(boat(lab, "ada"))])
    lab.settle()
    lab.client.delete(CRDS, BOATS)
    summary = lab.settle()
    assert summary.failures == []
    assert (lab.names(CRDS), lab.names("configmaps", "default")) == ([], [])
    assert [(change.printed_name, change.verb) for change in summary.changes()] == [
        ("boat.harbour.example.org/ada", "deleted"),
        (f"customresourcedefinition.apiextensions.k8s.io/{BOATS}", "deleted"),
        ("configmap/log", "deleted"),
    ]


def test_dependents_of_custom_objects_go_with_definition_while_controllers_watch(lab):
    define(lab)
    log = lab.config_map("log", owners=[owner_reference(boat(lab, "ada"))])
    lab.config_map(
        "page", owners=[owner_reference({"apiVersion": "v1", "kind": "ConfigMap", **log})]
    )
    manager = build_manager(lab.cluster)
    manager.run_until_settled()
    with closing(open_cluster(lab.folder)) as other:
        other.client.delete(CRDS, BOATS)
    assert manager.run_until_settled().failures == []
    assert (lab.names(CRDS), lab.names("configmaps", "default")) == ([], [])


def test_dependents_stay_while_definition_is_gone_and_their_owner_is_not(lab):
    """Remove the file of a definition: that does not delete its objects, whose files are still
    there."""
    define(lab)
    lab.config_map("log", owners=[owner_reference(boat(lab, "ada"))])
    lab.config_map("note", owners=[{**owner_reference(boat(lab, "grace")), "uid": "another"}])
    manager = build_manager(lab.cluster)
    manager.run_until_settled()
    text = remove_definition(lab)
    assert manager.run_until_settled().failures == []
    assert lab.names("configmaps", "default") == ["log"]
    lab.file(BOATS, "ada", "default").unlink()
    assert manager.run_until_settled().failures == []
    assert lab.names("configmaps", "default") == [
        "log"
    ]  # objects of an unknown type may still exist
    put_back_definition(lab, text)
    manager.run_until_settled()
    assert (lab.names(BOATS, "default"), lab.names("configmaps", "default")) == (["grace"], [])


def test_dependents_outlive_merge_that_broke_their_owner_and_its_definition(lab):
    define(lab)
    lab.config_map("log", owners=[owner_reference(boat(lab, "ada"))])
    manager = build_manager(lab.cluster)
    manager.run_until_settled()
    files = lab.file(CRDS, BOATS), lab.file(BOATS, "ada", "default")
    texts = [file.read_text() for file in files]
    for file, text in zip(files, texts, strict=True):
        file.write_text(f"<<<<<<< ours\n{text}=======\n{text}>>>>>>> theirs\n")
    manager.run_until_settled()
    assert lab.names("configmaps", "default") == ["log"]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    manager.run_until_settled()
    assert (lab.names(BOATS, "default"), lab.names("configmaps", "default")) == (["ada"], ["log"])


def test_object_whose_owner_is_gone_is_deleted_once_its_definition_is_back(lab):
    define(lab)
    text = remove_definition(lab)
    manager = build_manager(lab.cluster)
    manager.run_until_settled()
    file = lab.file(BOATS, "ada", "default")
    file.parent.mkdir(parents=True)
    file.write_text(
        "apiVersion: harbour.example.org/v1\nkind: Boat\nmetadata:\n  name: ada\n  "
        "ownerReferences:\n"
        "  - {apiVersion: v1, kind: ConfigMap, name: gone, uid: gone}\n"
    )
    assert manager.run_until_settled().failures == []
    assert file.exists()
    put_back_definition(lab, text)
    assert manager.run_until_settled().failures == []
    assert lab.names(BOATS, "default") == []


def test_namespace_takes_along_objects_of_definition_that_came_back(lab):
    define(lab)
    lab.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sea"}})
    lab.create(
        BOATS,
        {"apiVersion": "harbour.example.org/v1", "kind": "Boat", "metadata": {"name": "ada"}},
        "sea",
    )
    text = remove_definition(lab)
    manager = build_manager(lab.cluster)
    manager.run_until_settled(skip_waits=True)
    put_back_definition(lab, text)
    manager.run_until_settled(skip_waits=True)
    lab.client.delete("namespaces", "sea")
    assert manager.run_until_settled(skip_waits=True).failures == []
    assert ("sea" in lab.names("namespaces"), lab.names(BOATS)) == (False, [])


def test_namespace_goes_though_files_in_it_are_of_kind_that_nothing_defines_any_more(lab):
    define(lab)
    lab.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sea"}})
    lab.create(
        BOATS,
        {"apiVersion": "harbour.example.org/v1", "kind": "Boat", "metadata": {"name": "ada"}},
        "sea",
    )
    manager = build_manager(lab.cluster)
    manager.run_until_settled(skip_waits=True)
    remove_definition(lab)
    lab.client.delete("namespaces", "sea")
    assert manager.run_until_settled(skip_waits=True).failures == []
    assert "sea" not in lab.names("namespaces")


def test_controllers_know_schema_that_another_process_gave_definition(lab):
    """Let another process change the schema: the controllers keep the fields that the new schema
    allows."""
    define(lab)
    lab.change(
        CRDS,
        BOATS,
        lambda obj: obj["spec"]["versions"][0].update(
            schema={"openAPIV3Schema": {"type": "object"}}
        ),
    )
    boat(lab, "ada", finalizers=["foregroundDeletion", "example.com/hold"])
    manager = build_manager(lab.cluster)
    manager.run_until_settled()
    with closing(open_cluster(lab.folder)) as other:
        definition = other.client.get(CRDS, BOATS)
        open_schema = {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        }
        version = {**definition["spec"]["versions"][0], "schema": open_schema}
        other.client.update(
            CRDS, {**definition, "spec": {**definition["spec"], "versions": [version]}}
        )
    manager.has_work()
    manager.wait_for_work(0)  # the manager reads the new schema before the batch in which it writes
    with closing(open_cluster(lab.folder)) as other:
        ada = other.client.get(BOATS, "ada", namespace="default")
        other.client.update(BOATS, {**ada, "spec": {"sail": "red"}}, namespace="default")
        other.client.delete(BOATS, "ada", namespace="default")
    assert manager.run_until_settled().failures == []
    ada = lab.client.get(BOATS, "ada", namespace="default")
    assert (ada["metadata"]["finalizers"], ada["spec"]) == (["example.com/hold"], {"sail": "red"})
