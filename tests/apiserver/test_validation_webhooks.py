"""Validation errors of webhook configurations, with upstream's messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rules import changed, refusals, update_refusals

KEY = "validatingwebhookconfigurations.admissionregistration.k8s.io"
GOOD: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "x"},
    "webhooks": [
        {
            "name": "pods.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1", "v9"],
            "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/check/pods"}},
            "matchConditions": [
                {"name": "own", "expression": "authorizer.requestResource.check('x').allowed()"}
            ],
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["pods", "pods/*", "*/scale"],
                    "scope": "*",
                }
            ],
        }
    ],
}
W = "webhooks.0"  # for ``changed``
AT = "webhooks[0]"  # in errors


def test_webhook_configuration_valid_is_accepted() -> None:
    assert refusals(KEY, GOOD) == []
    mutating = {**GOOD, "kind": "MutatingWebhookConfiguration"}
    assert refusals("mutatingwebhookconfigurations.admissionregistration.k8s.io", mutating) == []


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {f"{W}.name": "pods"},
            [
                f'{AT}.name: Invalid value: "pods": should be a domain with at least three '
                f"segments separated by dots"
            ],
        ),
        (
            {f"{W}.sideEffects": "Some"},
            [
                f'{AT}.sideEffects: Unsupported value: "Some": supported values: "None", '
                f'"NoneOnDryRun"'
            ],
        ),
        (
            {f"{W}.sideEffects": None},
            [f"{AT}.sideEffects: Required value: must specify one of None, NoneOnDryRun"],
        ),
        (
            {f"{W}.failurePolicy": "Maybe", f"{W}.matchPolicy": "Close"},
            [
                f'{AT}.failurePolicy: Unsupported value: "Maybe": supported values: "Fail", '
                f'"Ignore"',
                f'{AT}.matchPolicy: Unsupported value: "Close": supported values: "Equivalent", '
                f'"Exact"',
            ],
        ),
        (
            {f"{W}.timeoutSeconds": 31},
            [
                f"{AT}.timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and "
                f"30 seconds"
            ],
        ),
        (
            {f"{W}.admissionReviewVersions": []},
            [f"{AT}.admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
        ),
        (
            {f"{W}.admissionReviewVersions": ["v7", "v7"]},
            [
                f'{AT}.admissionReviewVersions[1]: Invalid value: "v7": duplicate version',
                f'{AT}.admissionReviewVersions: Invalid value: ["v7","v7"]: must include at least '
                f"one of v1, v1beta1",
            ],
        ),
        (
            {f"{W}.clientConfig": {}},
            [f"{AT}.clientConfig: Required value: exactly one of url or service is required"],
        ),
        (
            {f"{W}.clientConfig": {"url": "http://example.com"}},
            [
                f"{AT}.clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL "
                f"scheme; desired format: "
                "https://host[/path]"
            ],
        ),
        (
            {f"{W}.clientConfig": {"url": "https://[x"}},
            [
                f"{AT}.clientConfig.url: Required value: url must be a valid URL: parse "
                "\"https://[x\": missing ']' in host; desired format: https://host[/path]"
            ],
        ),
        (
            {f"{W}.clientConfig": {"url": "https://a!:b@host?c=%zz#d%20e"}},
            [
                f'{AT}.clientConfig.url: Invalid value: "a%21:b": user information is not '
                "permitted in the URL",
                f'{AT}.clientConfig.url: Invalid value: "d e": fragments are not permitted in the '
                "URL",
                f'{AT}.clientConfig.url: Invalid value: "c=%zz": query parameters are not '
                "permitted in the URL",
            ],
        ),
        (
            {f"{W}.rules.0.operations": ["GET"]},
            [
                f'{AT}.rules[0].operations[0]: Unsupported value: "GET": supported values: "*", '
                f'"CONNECT", "CREATE", "DELETE", '
                '"UPDATE"'
            ],
        ),
        (
            {
                f"{W}.rules.0.operations": ["*", "CREATE"],
                f"{W}.rules.0.apiGroups": [],
                f"{W}.rules.0.apiVersions": [""],
            },
            [
                f'{AT}.rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, '
                f"must not specify other "
                "operations",
                f"{AT}.rules[0].apiGroups: Required value",
                f"{AT}.rules[0].apiVersions[0]: Required value",
            ],
        ),
        (
            {f"{W}.rules.0.resources": ["pods/*", "pods/exec", "*/*"]},
            [
                f"{AT}.rules[0].resources[1]: Invalid value: \"pods/exec\": if 'pods/*' is "
                f"present, must not specify pods/exec",
                f'{AT}.rules[0].resources: Invalid value: ["pods/*","pods/exec","*/*"]: if '
                f"'*/*' is present, must not "
                "specify other resources",
            ],
        ),
        (
            {f"{W}.rules.0.resources": ["*", "pods"]},
            [
                f'{AT}.rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is present, must '
                f"not specify other resources "
                "without subresources"
            ],
        ),
        (
            {f"{W}.rules.0.scope": "Here"},
            [
                f'{AT}.rules[0].scope: Unsupported value: "Here": supported values: "*", '
                f'"Cluster", "Namespaced"'
            ],
        ),
        (
            {f"{W}.matchConditions": [{"name": "", "expression": " "}]},
            [
                f"{AT}.matchConditions[0].expression: Required value",
                f"{AT}.matchConditions[0].name: Required value",
            ],
        ),
        (
            {"webhooks": [GOOD["webhooks"][0]] * 2},
            ['webhooks[1].name: Duplicate value: "pods.example.com"'],
        ),
    ],
)
def test_webhook_configuration_invalid_is_refused(
    changes: dict[str, Any], errors: list[str]
) -> None:
    assert refusals(KEY, changed(GOOD, changes)) == errors


def test_match_condition_with_syntax_error_is_refused() -> None:
    found = refusals(KEY, changed(GOOD, {f"{W}.matchConditions.0.expression": "1 +"}))
    assert len(found) == 1
    assert found[0].startswith(
        f'{AT}.matchConditions[0].expression: Invalid value: "1 +": compilation failed: ERROR: '
        "<input>:1:4: Syntax error: "
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"webhooks": [GOOD["webhooks"][0]] * 2},
        {f"{W}.sideEffects": "Unknown"},
        {f"{W}.admissionReviewVersions": ["v7"]},
    ],
)
def test_webhook_update_tolerates_old_faults(changes: dict[str, Any]) -> None:
    old = changed(GOOD, changes)
    assert update_refusals(KEY, changed(old, {f"{W}.timeoutSeconds": 5}), old) == []
