"""Objects from files that kubepy did not write: completed, completed the same way again, and edited
as the API updates.

``RANDOM_REQUESTS=2000 pytest tests/apiserver/test_handwritten.py`` tries more objects.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.api.scheme import BUILT_IN, Resource
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.requests.handwritten import complete, removed
from kubepy.controlplane.open import make_cluster
from kubepy.storage import EditError, Key
from kubepy.storage.model import to_json
from tests.apiserver.conftest import NOW
from tests.apiserver.random_objects import WORDS, objects
from tests.apiserver.test_random_requests import SOME, TYPES
from tests.apiserver.test_stored_objects import manifests

Object = dict[str, Any]
KINDS = {(one.group, one.kind): one for one in BUILT_IN}
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def key_of(resource: Resource, name: str) -> Key:
    return Key(resource.key, "default" if resource.namespaced else "", name)


def admit(
    cluster: LocalCluster, key: Key, obj: Object, old: Object | None, modified: float = 1.0
) -> Object:
    """Return the object of a file as storage asks the API server for it."""
    asked = copy.deepcopy(obj)
    metadata = asked.setdefault("metadata", {})
    if old is not None:
        for field in ("uid", "creationTimestamp"):
            metadata[field] = metadata.get(field) or old["metadata"][field]
    made = complete(cluster._server, key, asked, modified, copy.deepcopy(old))
    to_json(made)
    return made


def stored_manifests() -> list[Object]:
    """Return the manifests of the kinds that are stored as they are; new events are stored as those
    of core."""
    return [manifest for manifest in manifests() if manifest["apiVersion"] != "events.k8s.io/v1"]


def stored(cluster: LocalCluster, manifest: Object) -> tuple[Key, Object]:
    """Return an object that was created through the API, as its file holds it."""
    resource = KINDS[manifest["apiVersion"].rpartition("/")[0], manifest["kind"]]
    made = copy.deepcopy(cluster.client.create(resource.key, manifest, namespace="default"))
    del made["metadata"]["resourceVersion"]
    return key_of(resource, made["metadata"]["name"]), made


def manifest_of(kind: str) -> Object:
    return next(copy.deepcopy(one) for one in manifests() if one["kind"] == kind)


def at(obj: Object, path: str) -> tuple[Any, Any]:
    """Return the container of the value at a dotted path, and the last step of the path."""
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    found: Any = obj
    for step in steps:
        found = found[step]
    return found, last


def edited(obj: Object, **values: Any) -> Object:
    """Return a copy with other values at paths (``spec__replicas=3``)."""
    found = copy.deepcopy(obj)
    for path, value in values.items():
        container, last = at(found, path.replace("__", "."))
        container[last] = value
    return found


# --- the same again -------------------------------------------------------------------------------


@st.composite
def random_edits(draw: st.DrawFn) -> tuple[Resource, Object, Object]:
    """Return two contents of one file; the second is another object, or the first with a part of
    another object."""
    resource = draw(st.sampled_from(sorted(TYPES, key=lambda one: one.key)))
    first, second = draw(objects(TYPES[resource])), draw(objects(TYPES[resource]))
    if draw(st.booleans()):
        fields = draw(st.sets(st.sampled_from(sorted(second)))) if second else set()
        second = {**first, **{field: second[field] for field in fields}}
    for obj in (first, second):
        for field in ("apiVersion", "kind"):
            obj.pop(field, None)
        if not isinstance(obj.get("metadata"), dict):
            obj["metadata"] = {}
        obj["metadata"].pop("uid", None)
    return resource, first, second


@given(random_edits())
@settings(SOME)
def test_edited_file_derived_again_gives_same_object(
    cluster: LocalCluster, edit: tuple[Resource, Object, Object]
) -> None:
    resource, first, second = edit
    key, old = key_of(resource, "a"), None
    for content in (first, second, first):
        try:
            made = admit(cluster, key, content, old)
        except ValueError:
            continue
        assert admit(cluster, key, content, made, modified=99.0) == made
        old = made


def leaves(value: Any, path: str = "") -> list[str]:
    """Yield the paths of the scalar values in an object."""
    steps = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    below = [
        leaf
        for step, item in steps
        if "." not in str(step)
        for leaf in leaves(item, f"{path}.{step}")
    ]
    return below or [path.removeprefix(".")]


def change(obj: Object, path: str, how: str) -> None:
    """Remove a value, or replace it by another of its type."""
    container, last = at(obj, path)
    value = container[last]
    if how == "drop":
        del container[last]
    elif isinstance(value, bool):
        container[last] = not value
    elif isinstance(value, int | float):
        container[last] = value + 1
    else:
        container[last] = how


HOW = st.sampled_from(("drop", "drop", "other", *WORDS))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Key, Object]]:
    cluster = make_cluster(
        tmp_path_factory.mktemp("originals") / "state", {"clock": NOW, "seed": 1}
    )
    found = [stored(cluster, manifest) for manifest in manifests()]
    cluster.close()
    return found


@given(st.data())
@settings(SOME)
def test_changed_field_of_any_kind_is_taken_same_again_or_refused(
    cluster: LocalCluster, originals: list[tuple[Key, Object]], data: st.DataObject
) -> None:
    key, old = data.draw(st.sampled_from(originals))
    content = copy.deepcopy(old)
    for _ in range(data.draw(st.integers(1, 3))):
        change(content, data.draw(st.sampled_from(sorted(leaves(content)))), data.draw(HOW))
    content["metadata"] = {**old["metadata"], **content.get("metadata", {}), "name": key.name}
    try:
        made = admit(cluster, key, content, old)
    except ValueError:
        return
    assert admit(cluster, key, content, made, modified=99.0) == made
    assert made["metadata"].get("generation", 0) >= old["metadata"].get("generation", 0)


def test_file_of_every_stored_kind_is_its_object(cluster: LocalCluster) -> None:
    for manifest in stored_manifests():
        key, made = stored(cluster, manifest)
        assert admit(cluster, key, made, made) == made, manifest["kind"]


def test_manifest_in_place_of_every_stored_kind_is_taken_or_refused_for_field(
    cluster: LocalCluster,
) -> None:
    refused = set()
    for manifest in stored_manifests():
        key, made = stored(cluster, manifest)
        try:
            again = admit(cluster, key, manifest, made)
        except EditError as error:
            refused.add((manifest["kind"], error.field))
        else:
            assert again["metadata"]["uid"] == made["metadata"]["uid"]
            assert again.get("status") == made.get("status")
            assert admit(cluster, key, manifest, again) == again
    assert refused == {("Pod", "spec.tolerations")}  # as through the API: admission added some


# --- generation -----------------------------------------------------------------------------------


def counted(obj: Object, generation: int, template: int, observed: int) -> Object:
    """Return a DaemonSet with these generations."""
    metadata = {
        **obj["metadata"],
        "generation": generation,
        "annotations": {**obj["metadata"]["annotations"], TEMPLATE_GENERATION: str(template)},
    }
    return {
        **obj,
        "metadata": metadata,
        "status": {**obj["status"], "observedGeneration": observed},
    }


def numbers(obj: Object) -> tuple[int, int, int]:
    metadata = obj["metadata"]
    template = int(metadata["annotations"][TEMPLATE_GENERATION])
    return metadata["generation"], template, obj["status"].get("observedGeneration", 0)


@pytest.fixture
def daemon_set(cluster: LocalCluster) -> tuple[Key, Object]:
    """Return a DaemonSet at generation 4 and template generation 3, rolled out."""
    key, made = stored(cluster, manifest_of("DaemonSet"))
    return key, counted(made, 4, 3, 4)


IMAGE = "spec__template__spec__containers__0__image"


@pytest.mark.parametrize(
    ("of_file", "expected"),
    [
        pytest.param((4, 3, 4), (5, 4, 4), id="as before"),
        pytest.param((2, 1, 2), (5, 4, 2), id="an older file"),
        pytest.param((7, 6, 7), (8, 7, 7), id="a file from a branch that went further"),
        pytest.param((4, 3, 9), (10, 4, 9), id="a status that tells of a later generation"),
    ],
)
def test_changed_template_raises_generations_beyond_those_of_file_and_index(
    cluster: LocalCluster,
    daemon_set: tuple[Key, Object],
    of_file: tuple[int, int, int],
    expected: tuple[int, int, int],
) -> None:
    key, old = daemon_set
    file = edited(counted(old, *of_file), **{IMAGE: "other"})
    made = admit(cluster, key, file, old)
    assert numbers(made) == expected
    assert admit(cluster, key, file, made) == made


@pytest.mark.parametrize(
    ("of_file", "expected"),
    [
        pytest.param((2, 1, 2), (4, 3, 2), id="an older file"),
        pytest.param(
            (7, 6, 7),
            (7, 6, 6),
            id="a file from a branch that went further is still to be observed",
        ),
        pytest.param((4, 3, 3), (4, 3, 3), id="a status from before"),
    ],
)
def test_same_spec_keeps_highest_generations(
    cluster: LocalCluster,
    daemon_set: tuple[Key, Object],
    of_file: tuple[int, int, int],
    expected: tuple[int, int, int],
) -> None:
    key, old = daemon_set
    made = admit(cluster, key, counted(old, *of_file), old)
    assert numbers(made) == expected
    assert admit(cluster, key, counted(old, *of_file), made) == made


def test_changed_spec_outside_template_raises_generation_only(
    cluster: LocalCluster, daemon_set: tuple[Key, Object]
) -> None:
    key, old = daemon_set
    assert numbers(admit(cluster, key, edited(old, spec__minReadySeconds=77), old)) == (5, 3, 4)


def test_status_with_other_counts_is_taken_and_to_be_observed_again(
    cluster: LocalCluster, daemon_set: tuple[Key, Object]
) -> None:
    key, old = daemon_set
    made = admit(cluster, key, edited(old, status__numberReady=9), old)
    assert made["status"]["numberReady"] == 9
    assert numbers(made) == (4, 3, 3)


def test_file_without_status_generation_and_uid_keeps_those_known(
    cluster: LocalCluster, daemon_set: tuple[Key, Object]
) -> None:
    key, old = daemon_set
    made = admit(cluster, key, edited(manifest_of("DaemonSet"), **{IMAGE: "other"}), old)
    assert made["status"] == old["status"]
    assert made["metadata"]["uid"] == old["metadata"]["uid"]
    assert numbers(made) == (5, 4, 4)


def test_empty_list_in_spec_is_no_change(
    cluster: LocalCluster, daemon_set: tuple[Key, Object]
) -> None:
    key, old = daemon_set
    file = copy.deepcopy(old)
    file["spec"]["template"]["spec"]["imagePullSecrets"] = []
    assert numbers(admit(cluster, key, file, old)) == (4, 3, 4)


def test_template_generation_that_is_no_number_is_refused(
    cluster: LocalCluster, daemon_set: tuple[Key, Object]
) -> None:
    key, old = daemon_set
    file = copy.deepcopy(old)
    file["metadata"]["annotations"][TEMPLATE_GENERATION] = "many"
    with pytest.raises(EditError, match="invalid syntax"):
        admit(cluster, key, file, old)


@pytest.mark.parametrize(
    ("kind", "path", "value", "rise"),
    [
        ("Deployment", "metadata__annotations", {"a": "b"}, 1),
        ("Deployment", "spec__replicas", 9, 1),
        ("StatefulSet", "spec__replicas", 9, 1),
        ("StatefulSet", "metadata__annotations", {"a": "b"}, 0),
        ("ReplicaSet", "spec__replicas", 9, 1),
        ("Job", "spec__parallelism", 9, 1),
        ("CronJob", "spec__suspend", True, 1),
        ("PodDisruptionBudget", "spec__minAvailable", 9, 1),
        ("Pod", "spec__containers__0__image", "other", 1),
        ("Pod", "metadata__labels", {"a": "b"}, 0),
        ("PriorityClass", "description", "other", 0),
    ],
)
def test_generation_rises_with_what_kind_counts(
    cluster: LocalCluster, kind: str, path: str, value: Any, rise: int
) -> None:
    key, old = stored(cluster, manifest_of(kind))
    file = edited(old, **{path: value})
    made = admit(cluster, key, file, old)
    assert made["metadata"]["generation"] == 1 + rise
    assert admit(cluster, key, file, made) == made


CUSTOM = Key("ships.sea.example.org", "default", "a")


def ship(generation: int, **content: Any) -> Object:
    return {
        "apiVersion": "sea.example.org/v1",
        "kind": "Ship",
        "metadata": {"name": "a", "generation": generation},
        **content,
    }


def test_custom_resource_counts_everything_but_metadata_and_status(cluster: LocalCluster) -> None:
    old = admit(cluster, CUSTOM, ship(3, spec={"sails": 1}, status={"observedGeneration": 3}), None)
    same = admit(cluster, CUSTOM, ship(2, spec={"sails": 1}), old)
    assert (same["metadata"]["generation"], same["status"]) == (3, {"observedGeneration": 3})
    file = ship(2, spec={"sails": 2}, status={"observedGeneration": 7})
    other = admit(cluster, CUSTOM, file, old)
    assert (other["metadata"]["generation"], other["status"]) == (8, {"observedGeneration": 7})
    assert admit(cluster, CUSTOM, file, other) == other


# --- what is kept, and what comes back ------------------------------------------------------------


def test_service_keeps_what_was_allocated_and_drops_what_its_type_cannot_have(
    cluster: LocalCluster,
) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    }
    key, old = stored(cluster, manifest)
    again = admit(cluster, key, manifest, old)
    assert again["spec"] == old["spec"]
    file = edited(old, spec__type="ClusterIP")
    made = admit(cluster, key, file, old)
    assert "nodePort" not in made["spec"]["ports"][0]
    assert made["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert admit(cluster, key, file, made) == made
    file = edited(old, spec__type="ExternalName", spec__externalName="shop.example")
    renamed = admit(cluster, key, file, old)
    assert not {"clusterIP", "internalTrafficPolicy"} & set(renamed["spec"])
    assert admit(cluster, key, file, renamed) == renamed


def test_job_from_manifest_edited_again_keeps_its_selector(cluster: LocalCluster) -> None:
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "app"}]}
            }
        },
    }
    key = Key("jobs.batch", "default", "j")
    old = admit(cluster, key, manifest, None)
    made = admit(cluster, key, edited(manifest, spec__backoffLimit=3), old, modified=99.0)
    assert made["spec"]["selector"] == old["spec"]["selector"]
    assert made["metadata"]["creationTimestamp"] == old["metadata"]["creationTimestamp"]
    assert made["metadata"]["generation"] == 2


def test_pod_file_from_before_it_was_bound_is_taken(cluster: LocalCluster) -> None:
    key, pod = stored(cluster, manifest_of("Pod"))
    bound = edited(pod, spec__nodeName="node-1")
    assert (
        "nodeName" not in admit(cluster, key, {**pod, "metadata": bound["metadata"]}, bound)["spec"]
    )
    with pytest.raises(EditError, match="pod updates may not change fields"):
        admit(cluster, key, edited(bound, spec__nodeName="node-2"), bound)


NAMESPACE = Key("namespaces", "", "shop")


def test_removed_namespace_is_terminating_until_its_finalizer_is_gone(
    cluster: LocalCluster,
) -> None:
    _, old = stored(
        cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    )
    kept = removed(NAMESPACE, old, 0.0)
    assert kept is not None
    assert (kept["metadata"]["deletionTimestamp"], kept["status"]) == (
        "1970-01-01T00:00:00Z",
        {"phase": "Terminating"},
    )
    assert removed(NAMESPACE, kept, 9.0) == kept
    assert removed(NAMESPACE, {**kept, "spec": {}}, 9.0) is None


@pytest.mark.parametrize("has_status", [True, False])
def test_namespace_file_from_before_its_deletion_brings_it_back(
    cluster: LocalCluster, has_status: bool
) -> None:
    _, old = stored(
        cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    )
    kept = removed(NAMESPACE, old, 0.0)
    file = old if has_status else {name: value for name, value in old.items() if name != "status"}
    assert admit(cluster, NAMESPACE, file, kept) == old


def test_removed_namespace_that_may_not_be_deleted_comes_back(cluster: LocalCluster) -> None:
    default = cluster.client.get("namespaces", "default")
    assert removed(Key("namespaces", "", "default"), default, 0.0) == default


def test_removed_object_of_another_kind_is_gone(cluster: LocalCluster) -> None:
    assert removed(Key("nodes", "", "default"), {"metadata": {"name": "default"}}, 0.0) is None


ENTRY = {
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:data": {"f:a": {}}},
    "manager": "kubectl",
    "operation": "Apply",
    "time": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "Drop"},
        {"apiVersion": ""},
        {"fieldsType": "Other"},
        {"fieldsV1": {"zzz": {}}},
        {"fieldsV1": {"v:99x": {}}},
        {"fieldsV1": {"f:a": 5}},
        {"fieldsV1": {"k:5": {}}},
        {"fieldsV1": {"f:a": {f"v:{'9' * 5000}": {}}}},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_entry_of_manager_that_cannot_be_read_gives_way_to_old_ones(
    cluster: LocalCluster, wrong: Object
) -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "1"},
        "data": {"a": "1"},
    }
    key = Key("configmaps", "default", "a")
    good, bad = copy.deepcopy(obj), copy.deepcopy(obj)
    good["metadata"]["managedFields"] = [ENTRY]  # type: ignore[index]
    bad["metadata"]["managedFields"] = [{**ENTRY, **wrong}]  # type: ignore[index]
    old = admit(cluster, key, good, None)
    assert old["metadata"]["managedFields"] == [ENTRY]
    assert admit(cluster, key, bad, old) == old
    assert "managedFields" not in admit(cluster, key, bad, None)["metadata"]


@pytest.mark.parametrize("missing", ["apiVersion", "manager", "time"])
def test_stamp_of_client_that_lacks_something_is_left_out(
    cluster: LocalCluster, missing: str
) -> None:
    stamp = {
        "apiVersion": "v1",
        "manager": "kubectl",
        "operation": "Update",
        "time": "2026-01-01T00:00:00Z",
    }
    key = Key("configmaps", "default", "a")
    whole: Object = {"metadata": {"name": "a", "managedFields": [stamp]}}
    cut = {
        "metadata": {
            "name": "a",
            "managedFields": [{k: v for k, v in stamp.items() if k != missing}],
        }
    }
    assert admit(cluster, key, whole, None)["metadata"]["managedFields"] == [stamp]
    assert "managedFields" not in admit(cluster, key, cut, None)["metadata"]
