"""ValidatingAdmissionPolicies: what they deny and warn of, where they are bound."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.cluster.client import Client
from kubepy.cluster.errors import Status
from kubepy.cluster.requests.admission.policies import BINDINGS, POLICIES
from kubepy.cluster.requests.options import MERGE_PATCH

Object = dict[str, Any]


def policy(client: Client, *validations: Object, resources: tuple[str, ...] = ("configmaps",),
           operations: tuple[str, ...] = ("CREATE", "UPDATE"), binding: Object | None = None, **spec: Any) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": list(operations), "resources": list(resources)}
    client.create(POLICIES, {"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]}, "validations": list(validations), **spec}})
    client.create(BINDINGS, {"metadata": {"name": "b"}, "spec": {
        "policyName": "p", "validationActions": ["Deny"], **(binding or {})}})


def config(name: str = "c", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def denial(client: Client, obj: Object) -> str:
    with pytest.raises(Status) as error:
        client.create("configmaps", obj, namespace="default")
    return error.value.message.removeprefix(
        "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ")


def test_what_does_not_hold_is_denied_in_the_words_of_the_policy(client: Client) -> None:
    policy(client, {"expression": "size(object.data) < 3"},
           {"expression": "!('x' in object.data)", "message": "no x"},
           {"expression": "object.data.y != 'z'", "messageExpression": "'y of ' + object.metadata.name + ' is z'"})
    assert denial(client, config(a="1", b="2", c="3")) == "failed expression: size(object.data) < 3"
    assert denial(client, config(x="1", y="2")) == "no x"
    assert denial(client, config(y="z")) == "y of c is z"
    assert denial(client, config(a="1")) == (
        "expression 'object.data.y != 'z'' resulted in error: no such key: y")
    client.create("configmaps", config(y="1"), namespace="default")


def test_a_denial_is_invalid_unless_the_policy_has_another_reason(client: Client) -> None:
    policy(client, {"expression": "false", "message": "never", "reason": "Forbidden"})
    with pytest.raises(Status) as error:
        client.create("configmaps", config(), namespace="default")
    assert (error.value.code, error.value.reason) == (403, "Forbidden")


def test_policies_that_only_warn_let_through(client: Client) -> None:
    policy(client, {"expression": "false", "message": "mind"}, binding={"validationActions": ["Warn", "Audit"]})
    warnings: list[str] = []
    client.warn = warnings.append
    client.create("configmaps", config(), namespace="default")
    assert warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': mind"]


def test_updates_and_deletions_have_an_old_object(client: Client) -> None:
    rule = "request.operation == 'DELETE' ? !has(oldObject.data.kept) : object.data == oldObject.data"
    policy(client, {"expression": rule, "message": "kept"}, operations=("UPDATE", "DELETE"))
    client.create("configmaps", config(kept="1"), namespace="default")
    with pytest.raises(Status):
        client.patch("configmaps", "c", {"data": {"a": "1"}}, MERGE_PATCH, namespace="default")
    client.patch("configmaps", "c", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH, namespace="default")
    with pytest.raises(Status):
        client.delete("configmaps", "c", namespace="default")


def test_conditions_and_variables(client: Client) -> None:
    policy(client, {"expression": "variables.count < variables.limit"},
           variables=[{"name": "limit", "expression": "2"}, {"name": "count", "expression": "size(object.data)"}],
           matchConditions=[{"name": "named", "expression": "object.metadata.name.startsWith('c')"}])
    assert denial(client, config(a="1", b="2")) == "failed expression: variables.count < variables.limit"
    client.create("configmaps", config("other", a="1", b="2"), namespace="default")


def test_parameters_come_from_objects(client: Client) -> None:
    client.create("configmaps", config("limits", most="1"), namespace="default")
    policy(client, {"expression": "size(object.data) <= int(params.data.most)"},
           paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
           binding={"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}})
    assert denial(client, config(a="1", b="2")) == "failed expression: size(object.data) <= int(params.data.most)"
    with pytest.raises(Status) as error:
        client.create("configmaps", config(), namespace="kube-system")
    assert error.value.message.endswith(
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")


def test_a_binding_counts_only_where_its_selectors_fit(client: Client) -> None:
    client.create("namespaces", {"metadata": {"name": "free", "labels": {"policy": "off"}}})
    policy(client, {"expression": "false"}, binding={"matchResources": {"namespaceSelector": {
        "matchExpressions": [{"key": "policy", "operator": "NotIn", "values": ["off"]}]}}})
    client.create("configmaps", config(), namespace="free")
    assert denial(client, config()) == "failed expression: false"


def test_other_resources_and_policies_themselves_are_left_alone(client: Client) -> None:
    policy(client, {"expression": "false"}, resources=("*",))
    client.patch(POLICIES, "p", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    client.delete(BINDINGS, "b")
    client.create("configmaps", config(), namespace="default")


def test_a_policy_that_cannot_be_read_is_refused(client: Client) -> None:
    with pytest.raises(Status) as error:
        policy(client, {"expression": "object.spec >"}, {"expression": "1 + 1"}, {"expression": "objekt.x"})
    assert error.value.message.startswith(
        'ValidatingAdmissionPolicy.admissionregistration.k8s.io "p" is invalid: [spec.validations[0].expression: '
        'Invalid value: "object.spec >": compilation failed: ERROR: <input>:1:14: Syntax error')
    assert 'spec.validations[1].expression: Invalid value: "1 + 1": must evaluate to bool' in error.value.message
    assert "undeclared reference to 'objekt' (in container '')" in error.value.message
