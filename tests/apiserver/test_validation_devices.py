"""Validation errors of claims, classes and slices of devices, with the messages of a real
server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rules import (
    GONE,
    changed,
    created,
    defaulted,
    refusals,
    strategy,
    update_refusals,
)

V1 = "resource.k8s.io/v1"
CLAIMS, TEMPLATES, CLASSES, SLICES = (
    f"{name}.resource.k8s.io"
    for name in ("resourceclaims", "resourceclaimtemplates", "deviceclasses", "resourceslices")
)
SPEC: dict[str, Any] = {
    "devices": {
        "requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu"}},
            {"name": "s", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]},
        ]
    }
}
GOOD: dict[str, dict[str, Any]] = {
    CLAIMS: {
        "apiVersion": V1,
        "kind": "ResourceClaim",
        "spec": {
            **SPEC,
            "devices": {
                **SPEC["devices"],
                "constraints": [{"requests": ["r", "s/a"], "matchAttribute": "example.com/model"}],
                "config": [
                    {
                        "requests": ["s"],
                        "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}},
                    }
                ],
            },
        },
    },
    TEMPLATES: {"apiVersion": V1, "kind": "ResourceClaimTemplate", "spec": {"spec": SPEC}},
    CLASSES: {
        "apiVersion": V1,
        "kind": "DeviceClass",
        "spec": {
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
            "extendedResourceName": "example.com/gpu",
        },
    },
    SLICES: {
        "apiVersion": V1,
        "kind": "ResourceSlice",
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "g",
                    "attributes": {"model": {"string": "x"}},
                    "allowMultipleAllocations": True,
                    "capacity": {"memory": {"value": "10"}},
                    "taints": [{"key": "k", "effect": "None"}],
                }
            ],
        },
    },
}
REQUEST = "spec.devices.requests[0]"
EXACTLY = "spec.devices.requests.0.exactly"
DEVICE = "spec.devices[0]"
NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a "
    "subrequest separated by '/'"
)
NODES = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation "
    "is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)


def good(key: str) -> dict[str, Any]:
    return {**GOOD[key], "metadata": {"name": "x", "namespace": "default"}}


@pytest.mark.parametrize("key", GOOD)
def test_device_object_valid_is_accepted(key: str) -> None:
    assert refusals(key, good(key)) == []
    assert update_refusals(key, good(key), good(key)) == []


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {"spec.devices.requests.0.name": "5%", "spec.devices.constraints": []},
            [f'{REQUEST}.name: Invalid value: "5%": {LABEL}'],
        ),
        (
            {"spec.devices.requests.0.exactly": GONE},
            [
                f"{REQUEST}: Required value: exactly one of `exactly` or `firstAvailable` is "
                f"required"
            ],
        ),
        (
            {"spec.devices.requests.1.exactly": {}},
            [
                "spec.devices.requests[1]: Invalid value: null: exactly one of `exactly` or "
                "`firstAvailable` is required, but "
                "multiple fields are set"
            ],
        ),
        (
            {
                "spec.devices.requests.1.name": "r",
                "spec.devices.constraints": [],
                "spec.devices.config": [],
            },
            ['spec.devices.requests[1]: Duplicate value: "r"'],
        ),
        (
            {
                "spec.devices.requests": [SPEC["devices"]["requests"][0]] * 33,
                "spec.devices.constraints": [],
                "spec.devices.config": [],
            },
            ["spec.devices.requests: Too many: 33: must have at most 32 items"],
        ),
        (
            {
                f"{EXACTLY}.deviceClassName": "",
                f"{EXACTLY}.selectors": [{}],
                f"{EXACTLY}.count": -1,
            },
            [
                f"{REQUEST}.exactly.deviceClassName: Required value",
                f"{REQUEST}.exactly.selectors[0].cel: Required value",
                f"{REQUEST}.exactly.count: Invalid value: -1: must be greater than zero",
            ],
        ),
        (
            {f"{EXACTLY}.allocationMode": "Some"},
            [
                f'{REQUEST}.exactly.allocationMode: Unsupported value: "Some": supported values: '
                f'"All", "ExactCount"'
            ],
        ),
        (
            {f"{EXACTLY}.allocationMode": "All", f"{EXACTLY}.count": 2},
            [
                f"{REQUEST}.exactly.count: Invalid value: 2: must not be specified when "
                f"allocationMode is 'All'"
            ],
        ),
        (
            {f"{EXACTLY}.selectors": [{"cel": {"expression": "x" * 10241}}]},
            [
                f"{REQUEST}.exactly.selectors[0].cel.expression: Too long: may not be more than "
                f"10240 bytes"
            ],
        ),
        (
            {
                f"{EXACTLY}.tolerations": [
                    {"operator": "Exists", "value": "v", "effect": "X"},
                    {"operator": "Has"},
                ]
            },
            [
                f'{REQUEST}.exactly.tolerations[0].value: Invalid value: "v": must be empty for '
                f"operator `Exists`",
                f'{REQUEST}.exactly.tolerations[0].effect: Unsupported value: "X": supported '
                f'values: "NoExecute", "NoSchedule", '
                '"None"',
                f'{REQUEST}.exactly.tolerations[1].operator: Unsupported value: "Has": supported '
                f'values: "Equal", "Exists"',
            ],
        ),
        (
            {
                "spec.devices.constraints": [
                    {"requests": ["s/b", "r", "r", "a/b/c"], "distinctAttribute": "model"},
                    {},
                ]
            },
            [
                f'spec.devices.constraints[0].requests[0]: Invalid value: "s/b": {NO_REQUEST}',
                f'spec.devices.constraints[0].requests[3]: Invalid value: "a/b/c": {NO_REQUEST}',
                'spec.devices.constraints[0].requests[2]: Duplicate value: "r"',
                'spec.devices.constraints[0].distinctAttribute: Invalid value: "model": a fully '
                "qualified name must be a domain "
                "and a name separated by a slash",
                'spec.devices.constraints[1]: Required value: exactly one of "matchAttribute" or '
                '"distinctAttribute" is '
                "required, but multiple fields are set",
            ],
        ),
        (
            {
                "spec.devices.config": [
                    {},
                    {"opaque": {}},
                    {"opaque": {"driver": "d", "parameters": [1]}},
                    {"opaque": {"driver": "d", "parameters": {"a": "b" * 10240}}},
                ]
            },
            [
                "spec.devices.config[0].opaque: Required value",
                "spec.devices.config[1].opaque.driver: Required value",
                "spec.devices.config[1].opaque.parameters: Required value",
                'spec.devices.config[2].opaque.parameters: Invalid value: "<value omitted>": must '
                "be a valid JSON object",
                "spec.devices.config[3].opaque.parameters: Too long: may not be more than 10240 "
                "bytes",
            ],
        ),
    ],
)
def test_claim_invalid_is_refused(changes: dict[str, Any], errors: list[str]) -> None:
    assert refusals(CLAIMS, changed(good(CLAIMS), changes)) == errors


@pytest.mark.parametrize(
    ("key", "changes", "errors"),
    [
        (
            TEMPLATES,
            {"spec.metadata": {"name": "a"}, "spec.spec.devices.requests.0.exactly.count": -1},
            [
                "spec.metadata.name: Forbidden: cannot be set",
                "spec.spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater "
                "than zero",
            ],
        ),
        (
            CLASSES,
            {"spec.selectors": [{}], "spec.config": [{}], "spec.extendedResourceName": "cpu"},
            [
                "spec.selectors[0].cel: Required value",
                "spec.config[0].opaque: Required value",
                'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended '
                "resource name",
            ],
        ),
        (
            SLICES,
            {"spec": {}},
            [
                "spec.driver: Required value",
                "spec.pool.name: Required value",
                "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                f"spec: Required value: {NODES}",
            ],
        ),
        (
            SLICES,
            {"spec.allNodes": True},
            [
                f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {NODES}, but multiple fields '
                f"are set"
            ],
        ),
        (
            SLICES,
            {"spec.devices.0.nodeName": "n"},
            [
                f"{DEVICE}: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can "
                f"only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            ],
        ),
        (
            SLICES,
            {"spec.devices": [{"name": f"d{number}"} for number in range(129)]},
            ["spec.devices: Too many: 129: must have at most 128 items"],
        ),
        (
            SLICES,
            {
                "spec.devices": [
                    {"name": f"d{number}", "taints": [{"key": "k", "effect": "None"}]}
                    for number in range(65)
                ]
            },
            ["spec.devices: Too many: 65: must have at most 64 items"],
        ),
        (
            SLICES,
            {
                "spec.devices.0.attributes": {
                    "1a": {"int": 1},
                    "b": {},
                    "c": {"int": 1, "bool": True},
                    "d": {"version": "1"},
                    "e": {"string": "x" * 65},
                }
            },
            [
                f'{DEVICE}.attributes: Invalid value: "1a": {IDENTIFIER}',
                f'{DEVICE}.attributes[b]: Invalid value: "": exactly one value must be specified',
                f"{DEVICE}.attributes[c]: Invalid value: "
                f'{{"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,'
                '"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: '
                "exactly one value must be "
                "specified",
                f'{DEVICE}.attributes[d].version: Invalid value: "1": must be a string compatible '
                f"with semver.org spec 2.0.0",
                f"{DEVICE}.attributes[e].string: Too long: may not be more than 64 bytes",
            ],
        ),
        (
            SLICES,
            {
                "spec.devices.0.allowMultipleAllocations": False,
                "spec.devices.0.capacity.memory.requestPolicy": {"default": "1"},
            },
            [
                f"{DEVICE}.capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations "
                f"must be true"
            ],
        ),
        (
            SLICES,
            {
                "spec.devices.0.capacity.memory.requestPolicy": {
                    "default": "3",
                    "validValues": ["2", "1", "20"],
                }
            },
            [
                f'{DEVICE}.capacity[memory].requestPolicy.validValues[1]: Invalid value: "1": '
                f"values must be sorted in ascending "
                "order",
                f'{DEVICE}.capacity[memory].requestPolicy.validValues[2]: Invalid value: "20": '
                f"option is larger than capacity "
                "value: 10",
                f'{DEVICE}.capacity[memory].requestPolicy.validValues: Invalid value: "3": '
                f"default value is not valid according "
                "to the requestPolicy",
            ],
        ),
        (
            SLICES,
            {
                "spec.devices.0.capacity.memory.requestPolicy": {
                    "default": "4",
                    "validRange": {"min": "1", "max": "20", "step": "2"},
                }
            },
            [
                f'{DEVICE}.capacity[memory].requestPolicy.validRange.max: Invalid value: "20": '
                f"max is larger than capacity "
                "value: 10",
                f'{DEVICE}.capacity[memory].requestPolicy.validRange.step: Invalid value: "4": '
                f"value is not a multiple of a "
                "given step (2) from (1)",
                f'{DEVICE}.capacity[memory].requestPolicy.validRange.step: Invalid value: "20": '
                f"value is not a multiple of a "
                "given step (2) from (1)",
            ],
        ),
        (
            SLICES,
            {
                "spec.devices.0.consumesCounters": [
                    {"counterSet": "a"},
                    {"counterSet": "a", "counters": {"b": {"value": "1"}}},
                ]
            },
            [
                f"{DEVICE}.consumesCounters[0].counters: Required value",
                f'{DEVICE}.consumesCounters[1]: Duplicate value: "a"',
            ],
        ),
        (
            SLICES,
            {
                "spec.devices.0.bindingConditions": ["a"],
                "spec.devices.0.bindingFailureConditions": ["a", "a"],
            },
            [
                f'{DEVICE}.bindingFailureConditions[0]: Invalid value: "a": '
                f"bindingFailureConditions must not overlap with "
                "bindingConditions",
                f'{DEVICE}.bindingFailureConditions[1]: Duplicate value: "a"',
                f'{DEVICE}.bindingFailureConditions[1]: Invalid value: "a": '
                f"bindingFailureConditions must not overlap with "
                "bindingConditions",
            ],
        ),
    ],
)
def test_device_object_invalid_is_refused(
    key: str, changes: dict[str, Any], errors: list[str]
) -> None:
    assert refusals(key, changed(good(key), changes)) == errors


@pytest.mark.parametrize(
    ("key", "changes", "errors"),
    [
        (
            CLAIMS,
            {"spec": {}},
            [
                'spec: Invalid value: {"Devices":{"Requests":null,"Constraints":null,'
                '"Config":null}}: field is immutable'
            ],
        ),
        (
            SLICES,
            {"spec.pool.name": "q", "spec.nodeName": "m"},
            [
                'spec.pool.name: Invalid value: "q": field is immutable',
                'spec.nodeName: Invalid value: "m": field is immutable',
            ],
        ),
        (SLICES, {"spec.pool.generation": 2, "spec.devices.0.name": "h"}, []),
        (CLASSES, {"spec": {}}, []),
    ],
)
def test_device_object_update_is_validated(
    key: str, changes: dict[str, Any], errors: list[str]
) -> None:
    assert update_refusals(key, changed(good(key), changes), good(key)) == errors


def test_slice_fields_of_features_that_are_off_are_dropped() -> None:
    made = created(
        SLICES, changed(good(SLICES), {"spec.devices.0.attributes.model.strings": ["y"]})
    )
    assert made["spec"]["devices"][0]["attributes"] == {"model": {"string": "x"}}


RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "g"}
ALLOCATION = {"devices": {"results": [RESULT]}}
STATUS = {"driver": "gpu.example.com", "pool": "p", "device": "g"}
CONSUMER = {"resource": "pods", "name": "p", "uid": "u"}


def status_refusals(status: dict[str, Any], old: dict[str, Any]) -> list[str]:
    made, before = (defaulted(CLAIMS, {**good(CLAIMS), "status": part}) for part in (status, old))
    strategy(CLAIMS).prepare_for_status_update(made, before)
    return [str(error) for error in strategy(CLAIMS).validate_status_update(made, before)]


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        ({"allocation": ALLOCATION, "reservedFor": [CONSUMER], "devices": [STATUS]}, []),
        (
            {"reservedFor": [CONSUMER]},
            ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
        ),
        (
            {"allocation": ALLOCATION, "reservedFor": [CONSUMER, CONSUMER]},
            ['status.reservedFor[1]: Duplicate value: "u"'],
        ),
        (
            {"devices": [STATUS]},
            [
                "status.devices[0]: Invalid value: "
                '{"Driver":"gpu.example.com","Pool":"p","Device":"g","ShareID":""}: must be an '
                "allocated device in the claim"
            ],
        ),
        (
            {
                "allocation": ALLOCATION,
                "devices": [
                    {
                        **STATUS,
                        "conditions": [{"type": "Ready", "status": "X"}],
                        "networkData": {"ips": ["10.0.0.1"]},
                    }
                ],
            },
            [
                'status.devices[0].conditions[0].status: Unsupported value: "X": supported '
                'values: "False", "True", "Unknown"',
                "status.devices[0].conditions[0].lastTransitionTime: Required value",
                "status.devices[0].conditions[0].reason: Required value",
                'status.devices[0].networkData.ips[0]: Invalid value: "10.0.0.1": must be a valid '
                "address in CIDR form, (e.g. "
                "10.9.8.7/24 or 2001:db8::1/64)",
            ],
        ),
        (
            {
                "allocation": {
                    "devices": {
                        "results": [{**RESULT, "request": "q", "shareID": "x"}],
                        "config": [{"opaque": {"driver": "d", "parameters": {}}}],
                    }
                }
            },
            [
                f'status.allocation.devices.results[0].request: Invalid value: "q": {NO_REQUEST}',
                'status.allocation.devices.results[0].shareID: Invalid value: "x": error '
                "validating uid: invalid UUID length: 1",
                "status.allocation.devices.config[0].source: Required value",
            ],
        ),
    ],
)
def test_claim_status_is_validated(status: dict[str, Any], errors: list[str]) -> None:
    assert status_refusals(status, {}) == errors


def test_claim_allocation_cannot_change() -> None:
    other = {"devices": {"results": [{**RESULT, "device": "h"}]}}
    [error] = status_refusals({"allocation": other}, {"allocation": ALLOCATION})
    assert error.startswith(
        'status.allocation: Invalid value: {"Devices":{"Results":[{"Request":"r"'
    )
    assert error.endswith(": field is immutable")


def test_claim_deallocated_loses_the_statuses_of_its_devices() -> None:
    assert (
        status_refusals({"devices": [STATUS]}, {"allocation": ALLOCATION, "devices": [STATUS]})
        == []
    )
