"""Refused updates of a pod's status."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rules import created, pod, strategy

Object = dict[str, Any]
ENDED = {"name": "c", "state": {"terminated": {"exitCode": 1}}}
RUNNING = {"name": "c", "state": {"running": {}}}
IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def refusals(status: Object, before: Object | None = None, **spec: Any) -> list[str]:
    """Return the errors of a status update; ``before`` is the status before it."""
    obj = created("pods", pod(**spec))
    old = {**obj, "status": {**obj["status"], **(before or {})}}
    new = {**obj, "status": {**old["status"], **status}}
    return [str(error) for error in strategy("pods").validate_status_update(new, old)]


def test_status_that_stays_is_good() -> None:
    assert refusals({}) == []


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "podIP": "10.0.0.1"}, []),
        (
            {"podIPs": [{"ip": "10.0.0.1.2"}]},
            [f'status.podIPs[0]: Invalid value: "10.0.0.1.2": {IP}'],
        ),
        (
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            [
                'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify '
                "no more than one IP for each "
                "IP family"
            ],
        ),
        (
            {"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]},
            ['status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`'],
        ),
        (
            {"observedGeneration": -1},
            ["status.observedGeneration: Invalid value: -1: must be a non-negative integer"],
        ),
        (
            {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": -2}]},
            [
                "status.conditions[0].observedGeneration: Invalid value: -2: must be a "
                "non-negative integer"
            ],
        ),
        (
            {"qosClass": "Guaranteed"},
            ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
        ),
        (
            {"resourceClaimStatuses": [{"name": "gpu"}, {"name": "gpu"}]},
            [
                'status.resourceClaimStatuses[0].name: Invalid value: "gpu": must match the name '
                "of an entry in "
                "`spec.resourceClaims`",
                'status.resourceClaimStatuses[1].name: Invalid value: "gpu": must match the name '
                "of an entry in "
                "`spec.resourceClaims`",
                'status.resourceClaimStatuses[1].name: Duplicate value: "gpu"',
            ],
        ),
        (
            {"containerStatuses": [{"name": "c", "user": {"linux": {"uid": -1, "gid": 0}}}]},
            [
                "status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 "
                "and 2147483647, inclusive"
            ],
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "c",
                        "allocatedResourcesStatus": [
                            {
                                "name": "example.com/gpu",
                                "resources": [{"resourceID": "0", "health": "Fine"}],
                            }
                        ],
                    }
                ]
            },
            [
                "status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "
                '"example.com/gpu": must match one '
                "of the container's resource requests",
                "status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health: "
                'Unsupported value: "Fine": '
                'supported values: "Healthy", "Unhealthy", "Unknown"',
            ],
        ),
    ],
)
def test_status_is_refused(status: Object, errors: list[str]) -> None:
    assert refusals(status) == errors


def test_address_that_was_there_before_is_tolerated() -> None:
    assert refusals({"podIP": "x"}, {"podIPs": [{"ip": "010.0.0.1"}]}) == []


def test_bound_pod_is_nominated_for_no_node() -> None:
    at = "status.nominatedNodeName"
    assert refusals({"nominatedNodeName": "node-1"}) == []
    assert refusals({"nominatedNodeName": "node-1"}, nodeName="node-2") == [
        f"{at}: Forbidden: may not be set on pods that are already bound to a node"
    ]
    assert (
        refusals(
            {"nominatedNodeName": "node-1"}, {"nominatedNodeName": "node-1"}, nodeName="node-2"
        )
        == []
    )


def test_container_that_has_ended_runs_again_as_its_policy_lets_it() -> None:
    again = ({"containerStatuses": [RUNNING]}, {"containerStatuses": [ENDED]})
    refused = [
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated "
        "state"
    ]
    assert refusals(*again, restartPolicy="Never") == refused
    assert refusals(*again, restartPolicy="OnFailure") == []
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [7]}}
    containers = [
        {"name": "c", "image": "a:1"},
        {"name": "d", "image": "a:1", "restartPolicy": "Never", "restartPolicyRules": [rule]},
    ]
    assert refusals(*again, restartPolicy="Never", containers=containers) == []
