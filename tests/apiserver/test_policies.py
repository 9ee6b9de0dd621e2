"""ValidatingAdmissionPolicies: denials, warnings, bindings."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.admission.policies import BINDINGS, POLICIES
from kubepy.apiserver.client import Client
from kubepy.apiserver.request import MERGE_PATCH, Patch

Object = dict[str, Any]


def policy(
    client: Client,
    *validations: Object,
    resources: tuple[str, ...] = ("configmaps",),
    operations: tuple[str, ...] = ("CREATE", "UPDATE"),
    binding: Object | None = None,
    **spec: Any,
) -> None:
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": list(resources),
    }
    client.create(
        POLICIES,
        {
            "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": list(validations),
                **spec,
            },
        },
    )
    client.create(
        BINDINGS,
        {
            "metadata": {"name": "b"},
            "spec": {"policyName": "p", "validationActions": ["Deny"], **(binding or {})},
        },
    )


def config(name: str = "c", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def denial(client: Client, obj: Object) -> str:
    with pytest.raises(Status) as error:
        client.create("configmaps", obj, namespace="default")
    return error.value.message.removeprefix(
        "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied "
        "request: "
    )


def test_failing_policy_denies_in_its_own_words(client: Client) -> None:
    policy(
        client,
        {"expression": "size(object.data) < 3"},
        {"expression": "!('x' in object.data)", "message": "no x"},
        {
            "expression": "object.data.y != 'z'",
            "messageExpression": "'y of ' + object.metadata.name + ' is z'",
        },
    )
    assert denial(client, config(a="1", b="2", c="3")) == "failed expression: size(object.data) < 3"
    assert denial(client, config(x="1", y="2")) == "no x"
    assert denial(client, config(y="z")) == "y of c is z"
    assert denial(client, config(a="1")) == (
        "expression 'object.data.y != 'z'' resulted in error: no such key: y"
    )
    client.create("configmaps", config(y="1"), namespace="default")


def test_denial_is_invalid_unless_policy_has_another_reason(client: Client) -> None:
    policy(client, {"expression": "false", "message": "never", "reason": "Forbidden"})
    with pytest.raises(Status) as error:
        client.create("configmaps", config(), namespace="default")
    assert (error.value.code, error.value.reason) == (403, "Forbidden")


def test_policies_that_only_warn_let_through(client: Client) -> None:
    policy(
        client,
        {"expression": "false", "message": "mind"},
        binding={"validationActions": ["Warn", "Audit"]},
    )
    warnings: list[str] = []
    client = client.with_warn(warnings.append)
    client.create("configmaps", config(), namespace="default")
    assert warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': mind"
    ]


def test_updates_and_deletions_have_old_object(client: Client) -> None:
    rule = (
        "request.operation == 'DELETE' ? !has(oldObject.data.kept) : object.data == oldObject.data"
    )
    policy(client, {"expression": rule, "message": "kept"}, operations=("UPDATE", "DELETE"))
    client.create("configmaps", config(kept="1"), namespace="default")
    with pytest.raises(Status):
        client.patch(
            "configmaps", "c", Patch(MERGE_PATCH, {"data": {"a": "1"}}), namespace="default"
        )
    client.patch(
        "configmaps",
        "c",
        Patch(MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}}),
        namespace="default",
    )
    with pytest.raises(Status):
        client.delete("configmaps", "c", namespace="default")


def test_conditions_and_variables(client: Client) -> None:
    policy(
        client,
        {"expression": "variables.count < variables.limit"},
        variables=[
            {"name": "limit", "expression": "2"},
            {"name": "count", "expression": "size(object.data)"},
        ],
        matchConditions=[{"name": "named", "expression": "object.metadata.name.startsWith('c')"}],
    )
    assert (
        denial(client, config(a="1", b="2"))
        == "failed expression: variables.count < variables.limit"
    )
    client.create("configmaps", config("other", a="1", b="2"), namespace="default")


def test_parameters_come_from_objects(client: Client) -> None:
    client.create("configmaps", config("limits", most="1"), namespace="default")
    policy(
        client,
        {"expression": "size(object.data) <= int(params.data.most)"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}},
    )
    assert (
        denial(client, config(a="1", b="2"))
        == "failed expression: size(object.data) <= int(params.data.most)"
    )
    with pytest.raises(Status) as error:
        client.create("configmaps", config(), namespace="kube-system")
    assert error.value.message.endswith(
        "failed to configure binding: no params found for policy binding with `Deny` "
        "parameterNotFoundAction"
    )


def test_binding_counts_only_where_its_selectors_fit(client: Client) -> None:
    client.create("namespaces", {"metadata": {"name": "free", "labels": {"policy": "off"}}})
    policy(
        client,
        {"expression": "false"},
        binding={
            "matchResources": {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "policy", "operator": "NotIn", "values": ["off"]}]
                }
            }
        },
    )
    client.create("configmaps", config(), namespace="free")
    assert denial(client, config()) == "failed expression: false"


def test_policy_ignores_other_resources_and_policies(client: Client) -> None:
    policy(client, {"expression": "false"}, resources=("*",))
    client.patch(POLICIES, "p", Patch(MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}}))
    client.delete(BINDINGS, "b")
    client.create("configmaps", config(), namespace="default")


def test_policy_that_cannot_be_read_is_refused(client: Client) -> None:
    with pytest.raises(Status) as error:
        policy(
            client,
            {"expression": "object.spec >"},
            {"expression": "1 + 1"},
            {"expression": "objekt.x"},
        )
    assert error.value.message.startswith(
        'ValidatingAdmissionPolicy.admissionregistration.k8s.io "p" is invalid: '
        "[spec.validations[0].expression: "
        'Invalid value: "object.spec >": compilation failed: ERROR: <input>:1:14: Syntax error'
    )
    assert (
        'spec.validations[1].expression: Invalid value: "1 + 1": must evaluate to bool'
        in error.value.message
    )
    assert "undeclared reference to 'objekt' (in container '')" in error.value.message


# --- cost -----------------------------------------------------------------------------------------

TEXT = "a" * 90_000
# Each costs 810,000: ten times 9,001 for the text, times 9 for the pattern.
EXPENSIVE = (
    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(n, "
    "object.data.text.matches('^(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o)*$'))"
)
OVER = EXPENSIVE.replace("[1,", "[0, 1,").replace("10]", "10, 11, 12, 13]")
ENDED = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


def test_expression_over_its_limit_is_error_of_that_expression(client: Client) -> None:
    policy(client, {"expression": OVER}, {"expression": "false", "message": "second"})
    assert denial(client, config(text=TEXT)) == (
        f"expression '{OVER}' resulted in error: operation cancelled: actual cost limit exceeded"
    )


def test_policy_out_of_budget_denies_in_words_of_upstream(client: Client) -> None:
    policy(client, {"expression": "false", "message": "first"}, *[{"expression": EXPENSIVE}] * 13)
    assert denial(client, config(text=TEXT)) == ENDED


def test_policy_out_of_budget_that_ignores_failures_lets_through(client: Client) -> None:
    policy(
        client, {"expression": "false"}, *[{"expression": EXPENSIVE}] * 13, failurePolicy="Ignore"
    )
    client.create("configmaps", config(text=TEXT), namespace="default")


def test_match_conditions_have_budget_of_their_own(client: Client) -> None:
    conditions = [{"name": f"c{n}", "expression": EXPENSIVE} for n in range(4)]
    policy(client, {"expression": "false"}, matchConditions=conditions)
    assert denial(client, config(text=TEXT)) == ENDED


def test_variables_are_paid_by_expression_that_names_them(client: Client) -> None:
    names = [f"v{n}" for n in range(13)]
    variables = [{"name": name, "expression": EXPENSIVE} for name in names]
    policy(
        client,
        {"expression": " && ".join(f"variables.{name}" for name in names)},
        variables=variables,
    )
    assert denial(client, config(text=TEXT)) == ENDED


def test_variable_that_fails_is_named(client: Client) -> None:
    policy(
        client, {"expression": "variables.v > 0"}, variables=[{"name": "v", "expression": "1 / 0"}]
    )
    assert denial(client, config()) == (
        "expression 'variables.v > 0' resulted in error: composited variable \"v\" "
        "fails to evaluate: division by zero"
    )


def test_messages_out_of_budget_fail_every_validation(client: Client) -> None:
    message = f"{EXPENSIVE} ? 'never' : ''"
    policy(client, *[{"expression": "true", "messageExpression": message}] * 13)
    assert denial(client, config(text=TEXT)) == f"failed messageExpression: {ENDED}"
