import copy

import pytest

from kubepy.api.errors import Status
from kubepy.api.patches import documents as patch
from kubepy.api.patches.json_patch import OperationError, Patcher
from kubepy.api.schema.openapi import schema_for

DEPLOYMENT = schema_for("apps/v1", "Deployment")
POD = schema_for("v1", "Pod")
SERVICE = schema_for("v1", "Service")


def pod(**spec):
    return {"spec": spec}


def named(*names):
    return [{"name": name} for name in names]


# --- JSON patch -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3], "b": {"k": "v"}}),
        (
            [{"op": "replace", "path": "/b/new", "value": 1}],
            {"a": [1, 2], "b": {"k": "v", "new": 1}},
        ),
        ([{"op": "remove", "path": "/a/-1"}], {"a": [1], "b": {"k": "v"}}),
        ([{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3], "b": {"k": "v"}}),
        ([{"op": "test", "path": "/c", "value": None}], {"a": [1, 2], "b": {"k": "v"}}),
        (
            [{"op": "add", "path": "/b/x~1y~0", "value": 1}],
            {"a": [1, 2], "b": {"k": "v", "x/y~": 1}},
        ),
        ([{"op": "copy", "from": "/b/none", "path": "/b/k"}], {"a": [1, 2], "b": {"k": None}}),
        ([{"op": "add", "path": "a/c", "value": 1}], {"a": [1, 2], "b": {"k": "v"}, "c": 1}),
        ([{"op": "add", "path": "/b/x"}], {"a": [1, 2], "b": {"k": "v", "x": None}}),
        ([{"op": "test", "path": "/b", "value": {"k": "v"}}], {"a": [1, 2], "b": {"k": "v"}}),
        (
            [
                {"op": "move", "from": "/b/k", "path": "/b/m"},
                {"op": "copy", "from": "/b/m", "path": "/b/c"},
            ],
            {"a": [1, 2], "b": {"m": "v", "c": "v"}},
        ),
    ],
)
def test_json_patch_operations_apply_as_on_server(operations, result):
    obj = {"a": [1, 2], "b": {"k": "v"}}
    before = copy.deepcopy(obj)
    assert patch.json_patch(obj, operations) == result
    assert obj == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/absent"},
        {"op": "replace", "path": "/a/9", "value": 1},
        {"op": "test", "path": "/a/0", "value": 2},
        {"op": "add", "path": "/absent/deeper", "value": 1},
        {"op": "explode", "path": "/a"},
        {"op": "remove"},
        {"path": "/a"},
        {"op": "replace", "path": "", "value": 1},
        {"op": "test", "path": "", "value": {}},
        {"op": "add", "path": "/a/2", "value": 1},
        {"op": "add", "path": "/a/-3", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "remove", "path": "/a/-"},
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "test", "path": "/a/0", "value": 1.0},
        {"op": "move", "from": "/b", "path": "/c"},
    ],
)
def test_failing_json_patch_operation_is_invalid_without_details(operation):
    with pytest.raises(Status) as refused:
        patch.json_patch({"a": [1]}, [operation])
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (
            {"op": "add", "path": "/b/c", "value": 1},
            'add operation does not apply: doc is missing path: "/b/c": missing value',
        ),
        (
            {"op": "add", "path": "/a/x"},
            "error in add for path: '/a/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            {"op": "add", "path": "/a/5"},
            "error in add for path: '/a/5': Unable to access invalid index: 5: invalid index "
            "referenced",
        ),
        (
            {"op": "remove", "path": "/b"},
            "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
        ),
        (
            {"op": "replace", "path": "/a/9"},
            "replace operation does not apply: doc is missing key: /a/9: missing value",
        ),
        (
            {"op": "replace"},
            "replace operation failed to decode path: operation missing path field: missing value",
        ),
        ({"op": "test", "path": "/a/0", "value": 2}, "testing value /a/0 failed: test failed"),
        (
            {"op": "move", "from": "/b", "path": "/c"},
            "error in move for path: 'b': Unable to remove nonexistent key: b: missing value",
        ),
        (
            {"op": "copy", "from": "/b/c", "path": "/c"},
            "copy operation does not apply: doc is missing from path: /b/c: missing value",
        ),
        ({"op": "what"}, "Unexpected kind: what"),
    ],
)
def test_failing_operation_raises_upstreams_error(operation, why):
    with pytest.raises(OperationError) as failed:
        Patcher({"a": [1]}).apply(operation)
    assert str(failed.value) == why


def test_json_patch_that_is_no_list_is_bad_request():
    with pytest.raises(Status) as refused:
        patch.json_patch({}, {"op": "remove"})
    assert refused.value.message == (
        "error decoding patch: json: cannot unmarshal object into Go value of type "
        "[]handlers.jsonPatchOp"
    )


def test_copies_beyond_limit_are_rejected():
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 64
    with pytest.raises(Status, match="rejected our request"):
        patch.json_patch({"a": ["x" * 100]}, doubling)


# --- merge patch ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({"a": None}, {"list": [{"n": 1}]}),
        ({"a": {"b": None, "c": {"d": None, "e": 1}}}, {"a": {"c": {"e": 1}}, "list": [{"n": 1}]}),
        ({"list": [{"m": None, "k": 2}]}, {"a": {"b": 1}, "list": [{"k": 2}]}),
        ({"a": [None, {"x": None}]}, {"a": [None, {"x": None}], "list": [{"n": 1}]}),
        ({}, {"a": {"b": 1}, "list": [{"n": 1}]}),
    ],
)
def test_merge_patch_merges_maps_replaces_lists_and_deletes_nulls(change, result):
    assert patch.merge_patch({"a": {"b": 1}, "list": [{"n": 1}]}, change) == result


# --- strategic merge patch ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "change", "result"),
    [
        pytest.param(
            named("a", "b"),
            [{"name": "b", "image": "b:2"}],
            [{"name": "a"}, {"name": "b", "image": "b:2"}],
            id="merged by name",
        ),
        pytest.param(
            named("a", "b"), named("new"), named("new", "a", "b"), id="a new one goes first"
        ),
        pytest.param(
            named("web", "logger"),
            [{"name": "sidecar"}, {"name": "web"}],
            named("sidecar", "web", "logger"),
            id="the patch's order holds",
        ),
        pytest.param(
            named("a", "b"), [{"name": "a", "$patch": "delete"}], named("b"), id="deleted"
        ),
        pytest.param(
            named("a", "b"),
            [{"name": "c", "$patch": "delete"}],
            named("a", "b"),
            id="deleting the absent",
        ),
        pytest.param(
            named("a", "b"), [{"$patch": "replace"}, {"name": "c"}], named("c"), id="replaced"
        ),
    ],
)
def test_lists_with_merge_key(live, change, result):
    assert patch.strategic_merge_patch(pod(containers=live), pod(containers=change), POD) == pod(
        containers=result
    )


def test_set_element_order_places_patch_elements_among_others():
    change = pod(**{"containers": named("d"), "$setElementOrder/containers": named("d", "b")})
    done = patch.strategic_merge_patch(pod(containers=named("a", "b", "c")), change, POD)
    assert done == pod(containers=named("d", "a", "b", "c"))


def test_element_added_in_place_of_deleted_one_comes_last():
    change = pod(
        **{
            "containers": [*named("new"), {"name": "a", "$patch": "delete"}],
            "$setElementOrder/containers": named("new"),
        }
    )
    done = patch.strategic_merge_patch(pod(containers=named("a", "b")), change, POD)
    assert done == pod(containers=named("b", "new"))


def test_retain_keys_removes_other_keys():
    live = pod(volumes=[{"name": "work", "configMap": {"name": "c"}}])
    change = pod(
        volumes=[{"name": "work", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]
    )
    assert patch.strategic_merge_patch(live, change, POD) == pod(
        volumes=[{"name": "work", "secret": {"secretName": "s"}}]
    )


def test_primitive_lists_are_merged_and_deleted_from():
    live = {"metadata": {"finalizers": ["a", "b"]}}
    assert patch.strategic_merge_patch(live, {"metadata": {"finalizers": ["c", "a"]}}, POD) == {
        "metadata": {"finalizers": ["c", "a", "b"]}
    }
    assert patch.strategic_merge_patch(
        live, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD
    ) == {"metadata": {"finalizers": ["b"]}}


def test_maps_are_replaced_and_deleted_by_directive():
    live = {"metadata": {"annotations": {"a": "1", "b": "2"}}}
    replaced = {"metadata": {"annotations": {"$patch": "replace", "only": "this"}}}
    assert patch.strategic_merge_patch(live, replaced, POD) == {
        "metadata": {"annotations": {"only": "this"}}
    }
    deleted = {"metadata": {"annotations": {"$patch": "delete"}}}
    assert patch.strategic_merge_patch(live, deleted, POD) == {"metadata": {"annotations": {}}}


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            [{"$patch": "explode", "name": "a"}],
            500,
            "unknown patch type: explode in map: map[$patch:explode name:a]",
        ),
        ([{"image": "x"}], 500, "map: map[image:x] does not contain declared merge key: name"),
        (
            [{"$patch": "merge", "name": "a"}],
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (["a"], 500, "list element types are not identical: [[map[name:a]] [a]]"),
        ([["a"]], 500, "list element types are not identical: [[map[name:a]] [[a]]]"),
    ],
)
def test_bad_directive_raises_upstreams_error(change, code, message):
    with pytest.raises(Status) as refused:
        patch.strategic_merge_patch(pod(containers=named("a")), pod(containers=change), POD)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_malformed_directive_is_bad_request():
    with pytest.raises(Status) as refused:
        patch.strategic_merge_patch({"spec": {}}, {"spec": {"$retainKeys": ["a"], "b": 1}}, POD)
    assert (refused.value.reason, refused.value.message) == (
        "BadRequest",
        "invalid patch format of retainKeys",
    )


def test_custom_resources_take_no_strategic_merge_patch():
    with pytest.raises(Status) as refused:
        patch.strategic_merge_patch({}, {}, None)
    assert refused.value.code == 415


# --- computing ------------------------------------------------------------------------------------


def test_added_container_is_patched_with_order_of_all():
    assert patch.two_way_strategic(
        pod(containers=named("a")), pod(containers=named("a", "b")), POD
    ) == pod(**{"containers": named("b"), "$setElementOrder/containers": named("a", "b")})


def test_removed_container_is_deleted_by_directive():
    assert patch.two_way_strategic(
        pod(containers=named("a", "b")), pod(containers=named("b")), POD
    ) == pod(
        **{
            "containers": [{"$patch": "delete", "name": "a"}],
            "$setElementOrder/containers": named("b"),
        }
    )


def test_changed_volume_patch_retains_keys():
    before = pod(volumes=[{"name": "v", "emptyDir": {}}])
    after = pod(volumes=[{"name": "v", "secret": {"secretName": "s"}}])
    assert patch.two_way_strategic(before, after, POD) == pod(
        **{
            "volumes": [
                {
                    "name": "v",
                    "$retainKeys": ["name", "secret"],
                    "emptyDir": None,
                    "secret": {"secretName": "s"},
                }
            ],
            "$setElementOrder/volumes": named("v"),
        }
    )


def test_service_ports_with_same_number_are_paired_from_end():
    def ports(*protocols):
        return pod(ports=[{"port": 53, "protocol": one} for one in protocols])

    assert patch.two_way_strategic(ports("TCP", "UDP"), ports("TCP", "SCTP"), SERVICE) == pod(
        **{
            "ports": [{"port": 53, "protocol": "SCTP"}],
            "$setElementOrder/ports": [{"port": 53}, {"port": 53}],
        }
    )


def test_unsorted_finalizers_always_count_as_changed():
    unsorted, in_order = ({"metadata": {"finalizers": found}} for found in (["b", "a"], ["a", "b"]))
    assert patch.two_way_strategic(unsorted, unsorted, POD) == {
        "metadata": {"$setElementOrder/finalizers": ["b", "a"]}
    }
    assert patch.two_way_strategic(in_order, in_order, POD) == {}


def test_apply_after_foreign_container_always_sends_order():
    ours = pod(containers=named("web"))
    live = pod(containers=named("sidecar", "web"))
    assert patch.three_way_strategic(ours, ours, live, POD) == pod(
        **{"$setElementOrder/containers": named("web")}
    )


def test_apply_deletes_own_fields_and_keeps_those_of_others():
    def metadata(**labels):
        return {"metadata": {"labels": labels}}

    made = patch.three_way_strategic(
        metadata(a="1", gone="x"), metadata(a="2"), metadata(a="1", gone="x", own="y"), POD
    )
    assert made == metadata(a="2", gone=None)
    json_made = patch.three_way_json_merge(
        metadata(a="1", gone="x"), metadata(a="2"), metadata(a="1", gone="x", own="y")
    )
    assert json_made == made


def test_apply_without_overwrite_stops_at_conflict():
    old, new, live = ({"spec": {"replicas": count}} for count in (1, 2, 3))
    assert patch.three_way_strategic(old, new, live, DEPLOYMENT) == new
    with pytest.raises(
        patch.PatchError, match="conflicts with changes made from original to current"
    ):
        patch.three_way_strategic(old, new, live, DEPLOYMENT, overwrite=False)


def test_unknown_field_is_error_only_if_it_differs():
    odd = {"spec": {"odd": {"a": 1}}}
    assert patch.two_way_strategic(odd, odd, POD) == {}
    with pytest.raises(
        patch.PatchError,
        match='unable to find api field in struct PodSpec for the json field "odd"',
    ):
        patch.two_way_strategic(odd, {"spec": {"odd": {"a": 2}}}, POD)


@pytest.mark.parametrize(
    ("original", "modified", "current", "made"),
    [
        pytest.param({}, {"a": None}, {"a": 1}, {"a": None}, id="a null deletes"),
        pytest.param({"a": None}, {"a": None}, {"a": 1}, {}, id="once only"),
        pytest.param({}, {"a": {}}, {}, {"a": {}}, id="an empty map is a value"),
        pytest.param(
            {"a": {"b": 1}},
            {"a": {}},
            {"a": {"b": 1, "c": 2}},
            {"a": {"b": None}},
            id="inner deletion",
        ),
        pytest.param({"l": [1]}, {"l": [1, 2]}, {"l": [1]}, {"l": [1, 2]}, id="lists are replaced"),
        pytest.param({"n": 1}, {"n": 1}, {"n": 1.0}, {}, id="1 is 1.0"),
    ],
)
def test_json_merge_patch_three_way(original, modified, current, made):
    assert patch.three_way_json_merge(original, modified, current) == made


def test_apply_never_renames_custom_resource():
    with pytest.raises(
        patch.PatchError, match="At least one of apiVersion, kind and name was changed"
    ):
        patch.three_way_json_merge(None, {"metadata": {"name": "b"}}, {"metadata": {"name": "a"}})
