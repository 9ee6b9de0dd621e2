from kubepy.cluster.meta import Object
from tests.controllers.conftest import Lab

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
BOATS = "boats.harbour.example.org"


def define(lab: Lab) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {"group": "harbour.example.org", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}
    lab.create(CRDS, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                      "metadata": {"name": BOATS}, "spec": spec})


def boat(lab: Lab, name: str, **metadata: object) -> Object:
    return lab.create(BOATS, {"apiVersion": "harbour.example.org/v1", "kind": "Boat",
                              "metadata": {"name": name, **metadata}}, "default")


def test_the_objects_of_a_definition_go_with_it(lab):
    define(lab)
    boat(lab, "ada")
    lab.client.delete(CRDS, BOATS)
    assert lab.names(BOATS) == ["ada"]
    lab.settle()
    assert lab.names(CRDS) == []


def test_a_definition_waits_for_an_object_that_is_held(lab):
    define(lab)
    boat(lab, "ada")
    boat(lab, "grace", finalizers=["example.com/hold"])
    lab.client.delete(CRDS, BOATS)
    lab.settle()
    assert lab.names(BOATS) == ["grace"]
    conditions = {one["type"]: one["reason"] for one in lab.client.get(CRDS, BOATS)["status"]["conditions"]}
    assert conditions["Terminating"] == "InstanceDeletionInProgress"
    lab.change(BOATS, "grace", lambda obj: obj["metadata"].pop("finalizers"), "default")
    lab.settle()
    assert lab.names(CRDS) == []


def test_files_of_a_kind_that_nothing_defines_keep_nobody_from_working(lab, tmp_path):
    folder = tmp_path / "state/namespaces/default/foos.example.org"
    folder.mkdir(parents=True)
    (folder / "a.yaml").write_text("apiVersion: example.org/v1\nkind: Foo\nmetadata: {name: a, namespace: default}\n")
    lab.node("node-1")
    lab.daemon_set("agent")
    assert lab.settle().failures == []
    assert list(lab.pods_by_node()) == ["node-1"]


def test_custom_objects_own_and_are_owned(lab):
    define(lab)
    ada = boat(lab, "ada")
    reference = {"apiVersion": "harbour.example.org/v1", "kind": "Boat", "name": "ada", "uid": ada["metadata"]["uid"]}
    lab.config_map("log", owners=[reference])
    lab.settle()
    assert lab.names("configmaps", "default") == ["log"]
    lab.client.delete(BOATS, "ada", namespace="default")
    lab.settle()
    assert lab.names("configmaps", "default") == []
