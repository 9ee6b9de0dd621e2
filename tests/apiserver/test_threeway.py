"""Three-way merges of objects: fields by the lists and maps of the API, and fields written by the
system."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import schema_for
from kubepy.api.scheme import Scheme
from kubepy.apiserver.kinds import new_strategy
from kubepy.apiserver.managedfields.typed import ABSENT
from kubepy.apiserver.threeway import (
    UNSETTLED,
    Kind,
    Merge,
    Merged,
    Versions,
    intent_of,
    merge_into_ancestor,
    merge_managers,
    merge_objects,
)


def lines(base: str, ours: str, theirs: str, side: str) -> str:
    """Merge text by lines, in place of git."""
    return {"ours": ours, "theirs": theirs, "base": base}[side]


def kind_of(obj: Object) -> Kind:
    resource = Scheme().for_kind(obj["apiVersion"], obj["kind"])
    assert resource is not None
    return Kind(
        new_strategy(resource, lambda resource: {}), schema_for(obj["apiVersion"], obj["kind"])
    )


def merged(base: Object, ours: Object, theirs: Object) -> Merged:
    before = copy.deepcopy((base, ours, theirs))
    result = merge_objects(Versions(base, ours, theirs), kind_of(ours), lines)
    assert (base, ours, theirs) == before
    return result


def at(obj: Any, path: str) -> Any:
    for part in path.split("/"):
        obj = obj[int(part)] if isinstance(obj, list) else obj.get(part)
    return obj


def changed(obj: Object, **changes: Any) -> Object:
    """Return a copy with other values at paths (``spec__replicas=3``); None removes a value."""
    new = copy.deepcopy(obj)
    for path, value in changes.items():
        *parents, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        place: Any = new
        for parent in parents:
            place = place.setdefault(parent, {}) if isinstance(place, dict) else place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return new


CONTAINERS = "spec__template__spec__containers"
TEMPLATE_GENERATION = "metadata__annotations__deprecated.daemonset.template.generation"
DAEMONSET: Object = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {
        "name": "agent",
        "namespace": "default",
        "uid": "u",
        "generation": 4,
        "annotations": {"deprecated.daemonset.template.generation": "3"},
        "labels": {"app": "agent"},
    },
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {
                "containers": [
                    {"name": "a", "image": "a:1", "env": [{"name": "A", "value": "1"}]},
                    {"name": "b", "image": "b:1"},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        },
    },
    "status": {"observedGeneration": 4, "numberReady": 3},
}


def rolled(obj: Object, generation: int, template_generation: int, **changes: Any) -> Object:
    """Return a DaemonSet with a new spec that was rolled out."""
    return changed(
        obj,
        **changes,
        metadata__generation=generation,
        status__observedGeneration=generation,
        **{TEMPLATE_GENERATION: str(template_generation)},
    )


def numbers(obj: Object) -> tuple[int, int, int]:
    """Return generation, template generation and observed generation."""
    return (
        obj["metadata"]["generation"],
        int(obj["metadata"]["annotations"]["deprecated.daemonset.template.generation"]),
        obj["status"]["observedGeneration"],
    )


IMAGE_A, IMAGE_B = f"{CONTAINERS}__0__image", f"{CONTAINERS}__1__image"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param({}, {}, (4, 3, 4), id="nobody changed it"),
        pytest.param(
            rolled(DAEMONSET, 5, 4, **{IMAGE_A: "a:2"}),
            {"metadata__labels__x": "y"},
            (5, 4, 5),
            id="the spec is ours",
        ),
        pytest.param(
            {"metadata__labels__x": "y"},
            rolled(DAEMONSET, 5, 4, **{IMAGE_A: "a:2"}),
            (5, 4, 5),
            id="the spec is theirs",
        ),
        pytest.param(
            changed(DAEMONSET, **{IMAGE_A: "a:2"}, metadata__generation=5),
            changed(DAEMONSET, **{IMAGE_B: "b:2"}, metadata__generation=7),
            (8, 4, 4),
            id="both changed it",
        ),
        pytest.param(
            changed(
                DAEMONSET, **{IMAGE_A: "a:2", TEMPLATE_GENERATION: "4"}, metadata__generation=5
            ),
            changed(DAEMONSET, metadata__generation=6, **{TEMPLATE_GENERATION: "5"}),
            (7, 6, 4),
            id="theirs went there and back",
        ),
        pytest.param(
            changed(DAEMONSET, **{IMAGE_A: "a:2"}),
            {"metadata__labels__x": "y"},
            (5, 4, 4),
            id="edited by hand under the old number",
        ),
        pytest.param(
            rolled(DAEMONSET, 5, 4, **{IMAGE_A: "a:2"}),
            rolled(DAEMONSET, 5, 4, **{IMAGE_A: "a:2"}, metadata__labels__x="y"),
            (6, 4, 5),
            id="both rolled out the same",
        ),
    ],
)
def test_generation_is_sides_own_only_where_its_status_has_seen_merged_spec(
    ours: Object, theirs: Object, expected: tuple[int, int, int]
) -> None:
    ours, theirs = (
        side if "kind" in side else changed(DAEMONSET, **side) for side in (ours, theirs)
    )
    assert numbers(merged(DAEMONSET, ours, theirs).ours) == expected


def test_generation_never_comes_where_none_was() -> None:
    bare = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"replicas": 1},
    }
    result = merged(bare, changed(bare, spec__replicas=2), changed(bare, spec__paused=True)).ours
    assert result == {**bare, "spec": {"replicas": 2, "paused": True}}


@pytest.mark.parametrize(
    ("ours", "theirs", "path", "expected"),
    [
        ({IMAGE_A: "a:2"}, {IMAGE_B: "b:2"}, "spec/template/spec/containers/0/image", "a:2"),
        (
            {f"{CONTAINERS}__0__env": None},
            {f"{CONTAINERS}__0__env": [{"name": "A", "value": "1"}, {"name": "B"}]},
            "spec/template/spec/containers/0/env",
            [{"name": "B"}],
        ),
        ({"metadata__labels": None}, {"metadata__labels__x": "y"}, "metadata/labels", {"x": "y"}),
        ({"metadata__labels": None}, {"metadata__labels": {}}, "metadata/labels", {}),
        (
            {"metadata__finalizers": ["a"]},
            {"metadata__finalizers": ["b"]},
            "metadata/finalizers",
            ["a", "b"],
        ),
        (
            {CONTAINERS: [{"name": "b", "image": "b:1"}, {"name": "a", "image": "a:1"}]},
            {f"{CONTAINERS}__1__image": "b:2"},
            "spec/template/spec/containers/0",
            {"name": "b", "image": "b:2"},
        ),
        (
            {f"{CONTAINERS}__1__ports": [{"containerPort": 80, "protocol": "UDP"}]},
            {f"{CONTAINERS}__1__ports": [{"containerPort": 80}]},
            "spec/template/spec/containers/1/ports",
            [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80}],
        ),
    ],
)
def test_fields_that_one_side_changed_merge(
    ours: Object, theirs: Object, path: str, expected: Any
) -> None:
    result = merged(DAEMONSET, changed(DAEMONSET, **ours), changed(DAEMONSET, **theirs))
    assert result.conflicts == []
    assert at(result.ours, path) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "conflict"),
    [
        ({IMAGE_A: "a:2"}, {IMAGE_A: "a:3"}, 'spec.template.spec.containers[name="a"].image'),
        ({f"{CONTAINERS}__1": None}, {IMAGE_B: "b:2"}, 'spec.template.spec.containers[name="b"]'),
        (
            {f"{CONTAINERS}__0__args": ["x"]},
            {f"{CONTAINERS}__0__args": ["y"]},
            'spec.template.spec.containers[name="a"].args',
        ),
        (
            {"spec__template__spec__volumes__0": {"name": "v", "hostPath": {"path": "/"}}},
            {"spec__template__spec__volumes__0": {"name": "v", "configMap": {"name": "x"}}},
            'spec.template.spec.volumes[name="v"]',
        ),
        (
            {f"{CONTAINERS}__0__livenessProbe": {"exec": {"command": ["x"]}}},
            {f"{CONTAINERS}__0__livenessProbe": {"tcpSocket": {"port": 1}}},
            'spec.template.spec.containers[name="a"].livenessProbe',
        ),
        ({"metadata__labels__app": "x"}, {"metadata__labels__app": "y"}, "metadata.labels.app"),
        (
            {"spec__template__spec__hostNetwork": True},
            {"spec__template__spec__hostNetwork": 1},
            "spec.template.spec.hostNetwork",
        ),
    ],
)
def test_field_that_both_sides_changed_is_only_conflict(
    ours: Object, theirs: Object, conflict: str
) -> None:
    left, right = changed(DAEMONSET, **ours), changed(DAEMONSET, **theirs)
    result = merged(DAEMONSET, left, right)
    assert result.conflicts == [conflict]
    assert result.ours["spec"] == left["spec"]
    assert result.theirs["spec"] == right["spec"]
    assert numbers(result.ours) == numbers(result.theirs) == (5, 4, 4)
    ancestor = merge_into_ancestor(Versions(DAEMONSET, left, right), kind_of(left), lines)
    assert ancestor["spec"] == DAEMONSET["spec"]


def controlled(kind: str, **changes: Any) -> Object:
    obj = {
        "apiVersion": "v1" if kind == "Pod" else "apps/v1",
        "kind": kind,
        "metadata": {
            "name": "x-0",
            "uid": "u",
            "labels": {"app": "x"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "name": "x",
                    "uid": "o",
                    "controller": True,
                }
            ],
        },
    }
    return changed(obj, **changes)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("u", "u", "new", "theirs"),
        ("u", "new", "u", "ours"),
        ("u", "new", "newer", "ours"),
        ("", "one", "two", "ours"),
    ],
)
def test_object_that_controller_made_anew_is_taken_whole(
    base: str, ours: str, theirs: str, expected: str
) -> None:
    sides = {
        "ours": controlled("Pod", metadata__uid=ours, spec__nodeName="n1", metadata__labels__a="x"),
        "theirs": controlled(
            "Pod", metadata__uid=theirs, spec__nodeName="n2", metadata__labels__a="y"
        ),
    }
    result = merged(
        controlled("Pod", metadata__uid=base) if base else {}, sides["ours"], sides["theirs"]
    )
    assert (result.ours, result.conflicts) == (sides[expected], [])


def test_objects_that_controllers_wrote_to_on_both_sides_are_no_conflict() -> None:
    result = merged(
        controlled("ReplicaSet", spec__replicas=3),
        controlled("ReplicaSet", spec__replicas=0),
        controlled("ReplicaSet", spec__replicas=5, metadata__annotations__note="x"),
    )
    assert (result.conflicts, result.ours["spec"]) == ([], {"replicas": 0})
    assert result.ours["metadata"]["annotations"] == {"note": "x"}


def test_labels_that_somebody_gave_pod_on_both_sides_are_conflict() -> None:
    result = merged(
        controlled("Pod"),
        controlled("Pod", metadata__labels__a="x", spec__nodeName="n1"),
        controlled("Pod", metadata__labels__a="y", spec__nodeName="n2"),
    )
    assert result.conflicts == ["metadata.labels.a"]
    assert result.theirs["spec"] == {"nodeName": "n1"}


def test_controller_revision_keeps_higher_number() -> None:
    base, ours, theirs = (controlled("ControllerRevision", revision=number) for number in (1, 2, 4))
    assert merged(base, ours, theirs).ours["revision"] == 4


def test_job_that_both_sides_created_has_one_uid_throughout() -> None:
    def job(uid: str) -> Object:
        labels = {"batch.kubernetes.io/controller-uid": uid}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "x", "uid": uid, "creationTimestamp": f"2026-01-01T00:00:0{uid}Z"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}},
            },
        }

    assert merged({}, job("1"), job("2")) == Merged(job("1"), job("1"), [])


def test_node_cordoned_and_tainted_merges_taint_by_taint() -> None:
    def node(*taints: Object, **changes: Any) -> Object:
        spec = {"taints": list(taints)} if taints else {}
        return changed(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec}, **changes
        )

    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "1"}
    own = {"key": "own", "effect": "NoSchedule"}
    result = merged(
        node(), node(cordoned, spec__unschedulable=True), node({**cordoned, "timeAdded": "2"}, own)
    )
    assert (result.conflicts, result.ours["spec"]) == (
        [],
        {"taints": [cordoned, own], "unschedulable": True},
    )


def test_restarts_on_both_sides_count_as_later_one() -> None:
    key = "spec__template__metadata__annotations__kubectl.kubernetes.io/restartedAt"
    early, late = (
        changed(DAEMONSET, **{key: time})
        for time in ("2026-01-01T10:00:00Z", "2026-01-01T09:30:00-01:00")
    )
    for ours, theirs in ((early, late), (late, early)):
        result = merged(DAEMONSET, ours, theirs)
        assert result.conflicts == []
        assert result.ours["spec"] == late["spec"]


def test_addresses_that_both_sides_allocated_are_ours_but_none_is_decision() -> None:
    def service(address: str) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "x"},
            "spec": {"clusterIP": address, "clusterIPs": [address]},
        }

    assert merged({}, service("10.0.0.1"), service("10.0.0.2")) == Merged(
        service("10.0.0.1"), service("10.0.0.1"), []
    )
    assert "spec.clusterIP" in merged({}, service("10.0.0.1"), service("None")).conflicts


def test_managers_of_both_sides_stay() -> None:
    def entry(manager: str, time: str, **fields: Any) -> Object:
        return {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "time": time,
            "fieldsV1": {"f:data": fields},
        }

    base = [entry("a", "1", **{"f:x": {}, "f:y": {}})]
    result = merge_managers(
        base,
        [entry("a", "2", **{"f:y": {}})],
        [entry("a", "3", **{"f:x": {}, "f:y": {}, "f:z": {}}), entry("b", "3", **{"f:w": {}})],
    )
    assert result == [entry("a", "3", **{"f:y": {}, "f:z": {}}), entry("b", "3", **{"f:w": {}})]


def test_intent_has_nothing_that_system_writes() -> None:
    assert intent_of(DAEMONSET)["metadata"] == {
        "name": "agent",
        "namespace": "default",
        "labels": {"app": "agent"},
    }
    assert "status" not in intent_of(DAEMONSET)
    taints = [
        {"key": "node.kubernetes.io/unschedulable"},
        {"key": "node.kubernetes.io/out-of-service"},
    ]
    node = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": taints}}
    assert intent_of(node)["spec"] == {"taints": taints[1:]}
    chosen = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"volumeName": "v"},
    }
    assert intent_of(chosen) == chosen
    found = changed(
        chosen, **{"metadata__annotations__pv.kubernetes.io/bound-by-controller": "yes"}
    )
    assert intent_of(found)["spec"] == {}


# --- laws -----------------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "b"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
SIDES = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


def merge_values(base: Any, ours: Any, theirs: Any, side: int) -> tuple[Any, list[Any]]:
    merge = Merge(lambda *values: UNSETTLED, lambda *values: values[side])
    return merge.merge(base, ours, theirs, None), merge.conflicts


@given(base=SIDES, side=SIDES)
def test_side_that_alone_changed_something_wins(base: Any, side: Any) -> None:
    for sides in ((base, side, base), (base, base, side), (base, side, side)):
        value, conflicts = merge_values(*sides, 0)
        assert (json.dumps(value, sort_keys=True), conflicts) == (
            json.dumps(side, sort_keys=True),
            [],
        )  # 1 is not True


@given(base=SIDES, ours=SIDES, theirs=SIDES)
@settings(max_examples=300)
def test_merge_is_same_from_both_sides(base: Any, ours: Any, theirs: Any) -> None:
    left, left_conflicts = merge_values(base, ours, theirs, 1)
    right, right_conflicts = merge_values(base, theirs, ours, 2)
    assert sorted(left_conflicts) == sorted(right_conflicts)
    assert left == right


@given(base=SIDES, ours=SIDES, theirs=SIDES)
def test_merge_without_conflict_has_every_change_of_both_sides(
    base: Any, ours: Any, theirs: Any
) -> None:
    value, conflicts = merge_values(base, ours, theirs, 1)
    if conflicts:
        return
    merged_map = {} if value is ABSENT else value
    for side in (ours, theirs):
        for name in base.keys() | side.keys():
            old, new = base.get(name, ABSENT), side.get(name, ABSENT)
            if repr(old) != repr(new) and not isinstance(new, dict):
                assert repr(merged_map.get(name, ABSENT)) == repr(new)
