"""Refused updates of a Job's status, with upstream's messages."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.apiserver.kinds.batch.validation.job_status import validate_job_status_update

START, LATER = "2026-11-20T10:00:00Z", "2026-11-20T10:05:00Z"


def true(*types: str) -> list[dict[str, str]]:
    return [{"type": one, "status": "True"} for one in types]


def refusals(spec: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [
        str(error)
        for error in validate_job_status_update(
            {"spec": spec, "status": after}, {"spec": spec, "status": before}
        )
    ]


COMPLETE = {
    "startTime": START,
    "completionTime": LATER,
    "conditions": true("SuccessCriteriaMet", "Complete"),
}
FAILED = {"startTime": START, "conditions": true("FailureTarget", "Failed")}
RUNNING = {"startTime": START, "active": 1}


@pytest.mark.parametrize(
    ("spec", "before", "after", "errors"),
    [
        ({}, RUNNING, COMPLETE, []),
        ({}, RUNNING, FAILED, []),
        (
            {},
            RUNNING,
            {**RUNNING, "startTime": LATER},
            ["status.startTime: Required value: startTime cannot be removed for unsuspended job"],
        ),
        (
            {},
            RUNNING,
            {"active": 1},
            ["status.startTime: Required value: startTime cannot be removed for unsuspended job"],
        ),
        ({"suspend": True}, RUNNING, {}, []),
        ({}, {**RUNNING, "conditions": true("Suspended")}, {**RUNNING, "startTime": LATER}, []),
        (
            {},
            RUNNING,
            {**COMPLETE, "active": 1},
            ["status.active: Invalid value: 1: active>0 is invalid for finished job"],
        ),
        (
            {},
            RUNNING,
            {**COMPLETE, "uncountedTerminatedPods": {"failed": ["a"]}},
            [
                "status.uncountedTerminatedPods: Invalid value: "
                '{"Succeeded":null,"Failed":["a"]}: must be empty for finished '
                "job"
            ],
        ),
        (
            {},
            RUNNING,
            {**RUNNING, "uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
        ),
        (
            {},
            RUNNING,
            {**RUNNING, "completedIndexes": "0"},
            [
                'status.completedIndexes: Invalid value: "0": cannot set non-empty '
                "completedIndexes when non-indexed completion "
                "mode"
            ],
        ),
        (
            {"completionMode": "Indexed", "completions": 3},
            RUNNING,
            {**RUNNING, "completedIndexes": "2,1"},
            [
                'status.completedIndexes: Invalid value: "2,1": error parsing completedIndexes: '
                "non-increasing order, previous: "
                "2, current: 1"
            ],
        ),
        (
            {"completionMode": "Indexed", "completions": 3},
            RUNNING,
            {**RUNNING, "failedIndexes": "0"},
            [
                'status.failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when '
                "backoffLimitPerIndex is null"
            ],
        ),
        (
            {"completionMode": "Indexed", "completions": 9, "backoffLimitPerIndex": 0},
            RUNNING,
            {**RUNNING, "completedIndexes": "0-2,5", "failedIndexes": "4-6"},
            [
                'status.failedIndexes: Invalid value: "4-6": failedIndexes and completedIndexes '
                "overlap at index: 5"
            ],
        ),
        (
            {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 0},
            RUNNING,
            {**RUNNING, "failedIndexes": "3"},
            [
                'status.failedIndexes: Invalid value: "3": error parsing failedIndexes: too large '
                'index: "3"'
            ],
        ),
        (
            {},
            RUNNING,
            {**RUNNING, "ready": 2},
            ["status.ready: Invalid value: 2: cannot set more ready pods than active"],
        ),
        (
            {},
            COMPLETE,
            {**COMPLETE, "completionTime": START},
            [f'status.completionTime: Invalid value: "{START}": field is immutable'],
        ),
        (
            {},
            COMPLETE,
            {"startTime": START, "conditions": true("SuccessCriteriaMet")},
            [
                "status.conditions: Invalid value: cannot disable the terminal Complete=True "
                "condition"
            ],
        ),
        (
            {},
            {**RUNNING, "failed": 2},
            {**RUNNING, "failed": 1},
            ["status.failed: Invalid value: 1: cannot decrease the failed counter"],
        ),
        (
            {"successPolicy": {}},
            RUNNING,
            {**COMPLETE, "conditions": true("Complete")},
            [
                "status.conditions: Invalid value: cannot set Complete=True condition without the "
                "SuccessCriteriaMet=true "
                "condition",
                "status.conditions: Invalid value: cannot set Complete=True for Job with "
                "SuccessPolicy unless "
                "SuccessCriteriaMet=True",
            ],
        ),
    ],
)
def test_job_status_with_contradiction_is_refused(
    spec: dict[str, Any], before: dict[str, Any], after: dict[str, Any], errors: list[str]
) -> None:
    assert refusals(spec, before, after) == errors


def test_job_status_update_tolerates_old_faults() -> None:
    wrong = {
        "startTime": START,
        "active": 1,
        "ready": 2,
        "completedIndexes": "x",
        "conditions": true("Complete", "FailureTarget"),
    }
    assert (
        refusals(
            {"completionMode": "Indexed", "completions": 3}, wrong, {**wrong, "terminating": 0}
        )
        == []
    )
