"""MutatingAdmissionPolicies: both types of patches, their order, failures, parameters, dry runs."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.admission.mutatingpolicies import BINDINGS, POLICIES
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import (
    MERGE_PATCH,
    CreateOptions,
    Patch,
)
from tests.apiserver.test_policies import config

Object = dict[str, Any]


def applied(expression: str) -> Object:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def labelled(key: str, value: str = "'on'") -> Object:
    """Return a mutation that sets a label."""
    return applied(f"Object{{metadata: Object.metadata{{labels: {{'{key}': {value}}}}}}}")


def bind(
    client: Client,
    *mutations: Object,
    name: str = "p",
    resources: tuple[str, ...] = ("configmaps",),
    binding: Object | None = None,
    **spec: Any,
) -> None:
    """Create a policy of mutations and its binding."""
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
    }
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": list(mutations),
        "reinvocationPolicy": "Never",
        **spec,
    }
    client.create(POLICIES, {"metadata": {"name": name}, "spec": policy})
    bound = {"policyName": name, **(binding or {})}
    client.create(BINDINGS, {"metadata": {"name": name}, "spec": bound})


def create(client: Client, obj: Object | None = None, resource: str = "configmaps") -> Object:
    return client.create(resource, obj or config(x="1"), namespace="default")


def refusal(client: Client) -> str:
    with pytest.raises(Status) as error:
        create(client)
    assert (error.value.code, error.value.reason) == (403, "Invalid")
    return error.value.message


POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "c"},
    "spec": {"containers": [{"name": "app", "image": "nginx"}]},
}


def test_apply_configuration_is_merged_by_the_schema(client: Client) -> None:
    bind(
        client,
        applied(
            """Object{
              spec: Object.spec{
                initContainers: [
                  Object.spec.initContainers{
                    name: "proxy", image: "mesh:1", restartPolicy: "Always"
                  }
                ],
                containers: object.spec.containers.map(c, Object.spec.containers{
                  name: c.name,
                  env: [Object.spec.containers.env{name: "ZONE", value: "a"}]
                })
              }
            }"""
        ),
        resources=("pods",),
    )
    pod = create(client, POD, "pods")
    [container] = pod["spec"]["containers"]
    assert (container["image"], container["env"]) == ("nginx", [{"name": "ZONE", "value": "a"}])
    [proxy] = pod["spec"]["initContainers"]
    assert (proxy["name"], proxy["terminationMessagePath"]) == ("proxy", "/dev/termination-log")


def test_json_patch_changes_what_its_operations_say(client: Client) -> None:
    bind(
        client,
        patched(
            """[
              JSONPatch{op: "test", path: "/data/x", value: "1"},
              JSONPatch{op: "replace", path: "/data/x", value: object.data.x + "0"},
              JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}},
              JSONPatch{
                op: "add",
                path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/zone"),
                value: "eu"
              },
              JSONPatch{op: "copy", from: "/data/x", path: "/data/y"}
            ]"""
        ),
    )
    created = create(client)
    assert created["data"] == {"x": "10", "y": "10"}
    assert created["metadata"]["labels"] == {"a": "b", "example.com/zone": "eu"}


def test_json_patch_whose_test_fails_changes_nothing(client: Client) -> None:
    bind(
        client,
        patched(
            """[JSONPatch{op: "test", path: "/data/x", value: "2"},
                JSONPatch{op: "remove", path: "/data/x"}]"""
        ),
    )
    assert create(client)["data"] == {"x": "1"}


def test_mutations_see_what_those_before_have_changed(client: Client) -> None:
    bind(
        client,
        labelled("a", "variables.next"),
        labelled("b", "variables.next"),
        variables=[
            {
                "name": "next",
                "expression": "'n' + string(size(object.metadata.?labels.orValue({})))",
            }
        ],
    )
    assert create(client)["metadata"]["labels"] == {"a": "n0", "b": "n1"}


def test_policy_is_applied_only_where_its_conditions_hold(client: Client) -> None:
    conditions = [{"name": "x", "expression": "object.data.x == '1'"}]
    bind(client, labelled("a"), matchConditions=conditions)
    assert create(client)["metadata"]["labels"] == {"a": "on"}
    assert "labels" not in create(client, config("d", x="2"))["metadata"]


def test_update_and_patch_are_mutated_and_deletion_is_not(client: Client) -> None:
    create(client)
    bind(client, labelled("a", "request.operation"))
    patch = Patch(MERGE_PATCH, {"data": {"y": "1"}})
    updated = client.patch("configmaps", "c", patch, namespace="default")
    assert updated["metadata"]["labels"] == {"a": "UPDATE"}
    client.delete("configmaps", "c", namespace="default")


def test_parameter_is_what_the_binding_refers_to(client: Client) -> None:
    create(client, config("settings", zone="eu"))
    bind(
        client,
        labelled("zone", "params.data.zone"),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": {"name": "settings", "parameterNotFoundAction": "Deny"}},
    )
    assert create(client)["metadata"]["labels"] == {"zone": "eu"}
    client.delete("configmaps", "settings", namespace="default")
    with pytest.raises(Status) as error:
        create(client, config("d"))
    assert error.value.message == (
        "policy 'p' with binding 'p' denied request: failed to configure binding: "
        "no params found for policy binding with `Deny` parameterNotFoundAction"
    )


def test_failure_refuses_the_request_in_the_words_of_upstream(client: Client) -> None:
    bind(client, labelled("a", "object.data.nowhere"))
    assert refusal(client) == (
        "policy 'p' with binding 'p' denied request: expression 'Object{metadata: "
        "Object.metadata{labels: {'a': object.data.nowhere}}}' resulted in error: "
        "no such key: nowhere"
    )


def test_failure_is_ignored_where_the_policy_says_so(client: Client) -> None:
    bind(client, labelled("a", "object.data.nowhere"), failurePolicy="Ignore")
    assert "labels" not in create(client)["metadata"]


@pytest.mark.parametrize(
    ("mutation", "reason"),
    [
        (
            patched('[JSONPatch{op: "remove", path: "/data/nowhere"}]'),
            "JSON Patch: error in remove for path: '/data/nowhere': ",
        ),
        (
            applied("Object{data: Object.wrong{x: 'y'}}"),
            'type mismatch: unexpected type name "Object.wrong", expected "Object.data", which '
            "matches field name path from root Object type",
        ),
        (
            applied("Object{colour: 'red'}"),
            "error applying patch: failed to convert patch object to typed object: "
            ".colour: field not declared in schema",
        ),
    ],
)
def test_mutation_that_cannot_be_made_is_refused(
    client: Client, mutation: Object, reason: str
) -> None:
    bind(client, mutation)
    assert refusal(client).startswith(f"policy 'p' with binding 'p' denied request: {reason}")


def test_part_of_an_atomic_field_is_not_set(client: Client) -> None:
    bind(
        client,
        applied("Object{spec: Object.spec{nodeSelector: {'zone': 'a'}}}"),
        resources=("pods",),
    )
    with pytest.raises(Status) as error:
        create(client, POD, "pods")
    assert error.value.message == (
        "policy 'p' with binding 'p' denied request: error applying patch: invalid "
        "ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector"
    )


@pytest.mark.parametrize(("policy", "seen"), [("Never", "1"), ("IfNeeded", "2")])
def test_policy_is_applied_again_after_later_changes_if_it_asks_for_it(
    client: Client, policy: str, seen: str
) -> None:
    count = "string(size(object.data))"
    bind(client, labelled("seen", count), name="a", reinvocationPolicy=policy)
    bind(client, applied("Object{data: {'y': '1'}}"), name="b")
    assert create(client)["metadata"]["labels"] == {"seen": seen}


def test_dry_run_is_mutated_and_stored_nowhere(client: Client) -> None:
    bind(client, labelled("a"))
    created = client.create(
        "configmaps", config(), namespace="default", options=CreateOptions(dry_run=True)
    )
    assert created["metadata"]["labels"] == {"a": "on"}
    assert client.list("configmaps", namespace="default").items == []


def complaints(client: Client, mutation: Object, **spec: Any) -> str:
    with pytest.raises(Status) as error:
        bind(client, mutation, **spec)
    return error.value.message


@pytest.mark.parametrize(
    ("mutation", "reason"),
    [
        (
            applied("1"),
            'spec.mutations[0].applyConfiguration.expression: Invalid value: "1": must evaluate '
            "to Object but got int",
        ),
        (
            patched("Object{}"),
            'spec.mutations[0].jsonPatch.expression: Invalid value: "Object{}": must evaluate to '
            "list(JSONPatch) but got Object",
        ),
        ({"patchType": "Merge"}, 'supported values: "ApplyConfiguration", "JSONPatch"'),
        (
            {"patchType": "JSONPatch"},
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is "
            "JSONPatch",
        ),
        (
            {**applied("Object{}"), "jsonPatch": {"expression": "[]"}},
            'spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified '
            "when patchType is ApplyConfiguration",
        ),
    ],
)
def test_invalid_mutation_is_refused_with_its_policy(
    client: Client, mutation: Object, reason: str
) -> None:
    assert reason in complaints(client, mutation)


def test_policy_needs_a_reinvocation_policy(client: Client) -> None:
    message = complaints(client, labelled("a"), reinvocationPolicy="")
    assert "spec.reinvocationPolicy: Required value" in message
