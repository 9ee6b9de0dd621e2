"""Validation errors of DaemonSets, Deployments, StatefulSets, Jobs and the like, with upstream's
messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rules import (
    GONE,
    changed,
    created,
    daemon_set,
    refusals,
    strategy,
    update_refusals,
    warnings,
    workload,
)

DS = "daemonsets.apps"


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({}, []),
        (
            {"spec.template.metadata.labels": {"app": "other"}},
            [
                'spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does '
                "not match template `labels`"
            ],
        ),
        (
            {"spec.selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
        ),
        (
            {"spec.selector": GONE},
            [
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not '
                "match template `labels`"
            ],
        ),
        (
            {"spec.selector.matchExpressions": [{"key": "a", "operator": "Like"}]},
            [
                'spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid '
                "selector operator"
            ],
        ),
        (
            {"spec.minReadySeconds": -1},
            ["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"spec.revisionHistoryLimit": -1},
            ["spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"spec.template.spec.restartPolicy": "OnFailure"},
            [
                'spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported '
                'values: "Always"'
            ],
        ),
        (
            {"spec.template.spec.activeDeadlineSeconds": 5},
            [
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
                "DaemonSet is not Supported"
            ],
        ),
        (
            {"spec.template.spec.containers.0.image": ""},
            ["spec.template.spec.containers[0].image: Required value"],
        ),
        (
            {"spec.template.metadata.labels": {"app": "web", "a b": "c"}},
            [
                'spec.template.labels: Invalid value: "a b": name part must consist of '
                "alphanumeric characters, '-', '_' or "
                "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                "'my.name',  or '123-abc', regex "
                "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ],
        ),
    ],
)
def test_daemon_set_invalid_is_refused(changes: dict[str, Any], errors: list[str]) -> None:
    assert refusals(DS, changed(daemon_set(), changes)) == errors


@pytest.mark.parametrize(
    ("rolling", "errors"),
    [
        ({"maxUnavailable": 0}, ["maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
        (
            {"maxUnavailable": 1, "maxSurge": 1},
            ["maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"],
        ),
        (
            {"maxUnavailable": "110%"},
            ['maxUnavailable: Invalid value: "110%": must not be greater than 100%'],
        ),
        (
            {"maxUnavailable": "many"},
            [
                'maxUnavailable: Invalid value: "many": a valid percent string must be a numeric '
                "string followed by an ending "
                "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                "maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
            ],
        ),
        (
            {"maxUnavailable": -1},
            ["maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
        ),
        ({"maxUnavailable": 0, "maxSurge": "50%"}, []),
    ],
)
def test_rolling_update_without_progress_is_refused(
    rolling: dict[str, Any], errors: list[str]
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    path = "spec.updateStrategy.rollingUpdate."
    assert refusals(DS, daemon_set(updateStrategy=strategy)) == [path + error for error in errors]


def test_update_strategy_unknown_is_refused() -> None:
    assert refusals(DS, daemon_set(updateStrategy={"type": "Recreate"})) == [
        'spec.updateStrategy: Unsupported value: {"Type":"Recreate","RollingUpdate":null}: '
        "supported values: "
        '"RollingUpdate", "OnDelete"'
    ]


@pytest.mark.parametrize(
    ("key", "kind"),
    [(DS, "DaemonSet"), ("deployments.apps", "Deployment"), ("replicasets.apps", "ReplicaSet")],
)
def test_selector_update_is_refused(key: str, kind: str) -> None:
    old = workload(kind)
    new = changed(
        old,
        {
            "spec.selector.matchLabels": {"tier": "web"},
            "spec.template.metadata.labels": {"tier": "web"},
        },
    )
    assert update_refusals(key, new, old) == [
        'spec.selector: Invalid value: {"matchLabels":{"tier":"web"}}: field is immutable'
    ]


def test_map_in_error_is_printed_in_key_order() -> None:
    labels = {"zone": "a", "app": "other", "tier": "b"}
    assert refusals(DS, changed(daemon_set(), {"spec.template.metadata.labels": labels})) == [
        'spec.template.metadata.labels: Invalid value: {"app":"other","tier":"b","zone":"a"}: '
        "`selector` does not "
        "match template `labels`"
    ]
    old = daemon_set()
    selector = {
        "matchLabels": {"zone": "a", "app": "b"},
        "matchExpressions": [{"operator": "Exists", "key": "app"}],
    }
    new = changed(
        old, {"spec.selector": selector, "spec.template.metadata.labels": {"zone": "a", "app": "b"}}
    )
    assert update_refusals(DS, new, old) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"b","zone":"a"},'
        '"matchExpressions":[{"key":"app",'
        '"operator":"Exists"}]}: field is immutable'
    ]


def test_daemon_set_update_of_other_fields_is_accepted() -> None:
    new = daemon_set(minReadySeconds=3, updateStrategy={"type": "OnDelete"}, revisionHistoryLimit=1)
    assert (
        update_refusals(
            DS, changed(new, {"spec.template.spec.containers.0.image": "web:2"}), daemon_set()
        )
        == []
    )


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {"spec.replicas": -1},
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"spec.strategy": {"type": "Recreate", "rollingUpdate": {}}},
            [
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy "
                "`type` is 'Recreate'"
            ],
        ),
        (
            {"spec.strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            [
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when "
                "`maxSurge` is 0"
            ],
        ),
        (
            {"spec.minReadySeconds": 700},
            [
                "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than "
                "minReadySeconds"
            ],
        ),
        (
            {"spec.template.spec.restartPolicy": "Never"},
            [
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
                '"Always"'
            ],
        ),
    ],
)
def test_deployment_invalid_is_refused(changes: dict[str, Any], errors: list[str]) -> None:
    assert refusals("deployments.apps", changed(workload("Deployment"), changes)) == errors


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {"spec.podManagementPolicy": "Random"},
            [
                "spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or "
                "'Parallel'"
            ],
        ),
        (
            {"spec.updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}},
            [
                "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater "
                "than or equal to 0"
            ],
        ),
        (
            {"spec.updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
            [
                "spec.updateStrategy.rollingUpdate: Invalid value: "
                '{"Partition":1,"MaxUnavailable":null}: only allowed for '
                "updateStrategy 'RollingUpdate'"
            ],
        ),
        (
            {
                "spec.persistentVolumeClaimRetentionPolicy": {
                    "whenDeleted": "Keep",
                    "whenScaled": "Retain",
                }
            },
            [
                "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "
                '"Keep": supported values: "Retain", '
                '"Delete"'
            ],
        ),
        (
            {"spec.ordinals": {"start": -1}},
            ["spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"],
        ),
    ],
)
def test_stateful_set_invalid_is_refused(changes: dict[str, Any], errors: list[str]) -> None:
    assert refusals("statefulsets.apps", changed(workload("StatefulSet"), changes)) == errors


def test_stateful_set_update_of_immutable_field_is_refused() -> None:
    old = workload("StatefulSet")
    grown = changed(old, {"spec.replicas": 3, "spec.minReadySeconds": 2})
    assert update_refusals("statefulsets.apps", grown, old) == []
    assert update_refusals(
        "statefulsets.apps", changed(old, {"spec.podManagementPolicy": "Parallel"}), old
    ) == [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
        "'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are "
        "forbidden"
    ]


def job(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "web:1"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "u-1"},
        "spec": {"template": template, **spec},
    }


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({}, []),
        (
            {"spec.template.spec.restartPolicy": "Always"},
            [
                'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", '
                '"Never"'
            ],
        ),
        (
            {"spec.parallelism": -1},
            ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"spec.backoffLimit": -1},
            ["spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"spec.completionMode": "Indexed", "spec.parallelism": 2},
            ["spec.completions: Required value: when completion mode is Indexed"],
        ),
        (
            {"spec.completionMode": "Sorted"},
            [
                'spec.completionMode: Unsupported value: "Sorted": supported values: '
                '"NonIndexed", "Indexed"'
            ],
        ),
        (
            {"spec.manualSelector": True, "spec.selector": {"matchLabels": {"a": "b"}}},
            [
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match "
                "template `labels`"
            ],
        ),
    ],
)
def test_job_invalid_is_refused(changes: dict[str, Any], errors: list[str]) -> None:
    assert refusals("jobs.batch", changed(job(), changes)) == errors


def test_job_template_update_is_refused() -> None:
    old = created("jobs.batch", job())
    errors = update_refusals(
        "jobs.batch", changed(old, {"spec.template.spec.containers.0.image": "web:2"}), old
    )
    assert len(errors) == 1
    assert errors[0].startswith("spec.template: Invalid value: {")
    assert errors[0].endswith(": field is immutable")


def cron_job(schedule: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": job()["spec"]}, **spec},
    }


@pytest.mark.parametrize(
    ("schedule", "errors"),
    [
        ("*/5 0-6 1,15 jan-mar MON", []),
        ("@hourly", []),
        ("@every 1h30m", []),
        ("", ["spec.schedule: Required value"]),
        (
            "* * * *",
            [
                'spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* '
                "* * *]"
            ],
        ),
        (
            "60 * * * *",
            [
                'spec.schedule: Invalid value: "60 * * * *": end of range (60) above maximum '
                "(59): 60"
            ],
        ),
        (
            "TZ=UTC 0 * * * *",
            [
                'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in '
                "schedule, use timeZone field "
                "instead"
            ],
        ),
    ],
)
def test_schedule_is_parsed_as_cron_does(schedule: str, errors: list[str]) -> None:
    assert refusals("cronjobs.batch", cron_job(schedule)) == errors


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        (
            {"spec.timeZone": "Nowhere/Land"},
            ['spec.timeZone: Invalid value: "Nowhere/Land": unknown time zone Nowhere/Land'],
        ),
        (
            {"spec.concurrencyPolicy": "Maybe"},
            [
                'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", '
                '"Forbid", "Replace"'
            ],
        ),
        (
            {"spec.successfulJobsHistoryLimit": -1},
            [
                "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or "
                "equal to 0"
            ],
        ),
        (
            {"metadata.name": "x" * 53},
            [
                'metadata.name: Invalid value: "' + "x" * 53 + '": must be no more than 52 '
                "characters"
            ],
        ),
    ],
)
def test_cron_job_invalid_is_refused(changes: dict[str, Any], errors: list[str]) -> None:
    assert refusals("cronjobs.batch", changed(cron_job("0 0 * * *"), changes)) == errors


def test_replication_controller_without_selector_takes_template_labels() -> None:
    controller = changed(
        workload("ReplicationController"), {"apiVersion": "v1", "spec.selector": GONE}
    )
    assert refusals("replicationcontrollers", controller) == []
    other = changed(controller, {"spec.selector": {"app": "other"}})
    assert refusals("replicationcontrollers", other) == [
        'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match '
        "template `labels`"
    ]


def test_deployment_with_name_that_is_no_label_is_accepted_with_warning() -> None:
    named = changed(workload("Deployment"), {"metadata.name": "a.b"})
    assert warnings("deployments.apps", named) == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
        "behavior; a DNS label "
        "is recommended: [must not contain dots]"
    ]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_status_count_missing_counts_as_zero(kind: str) -> None:
    key = f"{kind.lower()}s.apps"
    old = created(key, workload(kind))
    found = strategy(key).validate_status_update(
        {**old, "status": {"replicas": -1, "availableReplicas": 1}}, old
    )
    lines = [str(error) for error in found]
    below = "cannot be greater than status.replicas"
    assert lines[0] == "status.replicas: Invalid value: -1: must be greater than or equal to 0"
    assert f"status.readyReplicas: Invalid value: 0: {below}" in lines
    assert f"status.availableReplicas: Invalid value: 1: {below}" in lines
