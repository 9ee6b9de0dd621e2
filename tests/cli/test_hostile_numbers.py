"""Numbers, quantities and times of absurd size, in every place for one: each gets an answer, none
ends a command with an internal error, and a file with such a number affects no other object.

``KUBEPY_FUZZ=5000 pytest tests/cli/test_hostile_numbers.py`` tries more of them, and other ones
each time.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Done, Kubepy

Object = dict[str, Any]
Place = tuple[str | int, ...]

EXAMPLES = os.environ.get("KUBEPY_FUZZ")
FUZZ = settings(
    max_examples=int(EXAMPLES or 60),
    derandomize=EXAMPLES is None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
LONG = "1" * 5000


# In JSON's spelling.
NUMBERS = (
    LONG,
    f"-{LONG}",
    "1e999",
    "1e308",
    "1e-999",
    f"0.{'0' * 5000}1",
    str(2**64),
    str(2**63 - 1),
    str(-(2**63)),
    str(2**31),
    "-1",
    "1.5",
)
TEXTS = (
    LONG,
    f"-{LONG}",
    f"{LONG}%",
    f"{LONG}Gi",
    f"{LONG}m",
    f"1e{LONG}",
    "1e999999999",
    "1e400",
    f"{LONG}s",
    "²",
    "1_0",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00Z",
    "0999-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
)

LABELS = {"app": "x"}
SPEC = {
    "containers": [
        {
            "name": "c",
            "image": "i",
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"port": 80, "path": "/"}, "periodSeconds": 3},
        }
    ],
    "terminationGracePeriodSeconds": 30,
    "activeDeadlineSeconds": 100,
    "priority": 0,
    "tolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    ],
}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": SPEC}
TIME = "2026-01-01T00:00:00Z"


def made(
    api_version: str, kind: str, annotations: dict[str, str] | None = None, **fields: Any
) -> Object:
    metadata = {
        "name": "o",
        "creationTimestamp": TIME,
        "generation": 1,
        "annotations": annotations or {},
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


OBJECTS: dict[str, Object] = {
    "daemonsets.apps": made(
        "apps/v1",
        "DaemonSet",
        {"deprecated.daemonset.template.generation": "1"},
        spec={
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "minReadySeconds": 0,
            "revisionHistoryLimit": 10,
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0},
            },
        },
    ),
    "deployments.apps": made(
        "apps/v1",
        "Deployment",
        {"deployment.kubernetes.io/revision": "1", "deprecated.deployment.rollback.to": "1"},
        spec={
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "progressDeadlineSeconds": 10,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 1, "maxSurge": "25%"},
            },
        },
    ),
    "statefulsets.apps": made(
        "apps/v1",
        "StatefulSet",
        spec={
            "replicas": 1,
            "serviceName": "s",
            "ordinals": {"start": 0},
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    ),
    "jobs.batch": made(
        "batch/v1",
        "Job",
        spec={
            "parallelism": 1,
            "completions": 2,
            "backoffLimit": 3,
            "activeDeadlineSeconds": 100,
            "ttlSecondsAfterFinished": 10,
            "completionMode": "Indexed",
            "template": {"spec": {**SPEC, "restartPolicy": "Never"}},
        },
    ),
    "cronjobs.batch": made(
        "batch/v1",
        "CronJob",
        spec={
            "schedule": "*/5 * * * *",
            "startingDeadlineSeconds": 100,
            "jobTemplate": {
                "spec": {
                    "template": {
                        "spec": {
                            "containers": [{"name": "c", "image": "i"}],
                            "restartPolicy": "Never",
                        }
                    }
                }
            },
        },
    ),
    "pods": made("v1", "Pod", {"controller.kubernetes.io/pod-deletion-cost": "1"}, spec=SPEC),
    "persistentvolumeclaims": made(
        "v1",
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
    "resourcequotas": made("v1", "ResourceQuota", spec={"hard": {"cpu": "10", "pods": "5"}}),
    "limitranges": made(
        "v1",
        "LimitRange",
        spec={
            "limits": [
                {
                    "type": "Container",
                    "max": {"cpu": "10"},
                    "min": {"cpu": "1m"},
                    "maxLimitRequestRatio": {"cpu": "3"},
                }
            ]
        },
    ),
    "services": made(
        "v1", "Service", spec={"selector": LABELS, "ports": [{"port": 80, "targetPort": 80}]}
    ),
    "poddisruptionbudgets.policy": made(
        "policy/v1",
        "PodDisruptionBudget",
        spec={"minAvailable": "50%", "selector": {"matchLabels": LABELS}},
    ),
    "horizontalpodautoscalers.autoscaling": made(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        spec={
            "minReplicas": 1,
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        },
    ),
    "configmaps": made("v1", "ConfigMap", data={"a": "1"}),
    "leases.coordination.k8s.io": made(
        "coordination.k8s.io/v1",
        "Lease",
        spec={"leaseDurationSeconds": 3, "renewTime": "2026-01-01T00:00:00.000000Z"},
    ),
}


def numeric_places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the paths of numbers, quantities and times."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numeric_places(inner, (*place, key))
    elif not isinstance(value, bool) and str(value)[:1].isdigit():
        yield place


def with_number(obj: Object, place: Place, number: str) -> str:
    """Return an object as JSON with a number (or string), spelled as in JSON, at a path."""
    changed: Any = copy.deepcopy(obj)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "HERE"
    return json.dumps(changed, indent=1).replace('"HERE"', number)


CASES = [(resource, place) for resource, obj in OBJECTS.items() for place in numeric_places(obj)]
case = st.sampled_from(CASES)
number = st.sampled_from([*NUMBERS, *map(json.dumps, TEXTS)])


def assert_answered(done: Done, what: object) -> None:
    assert "internal error" not in done.out + done.err, (what, done.err[-300:])


@FUZZ
@given(case=case, number=number)
def test_numbers_in_manifests_are_taken_or_refused(
    paint: Kubepy, case: tuple[str, Place], number: str
) -> None:
    resource, place = case
    text = with_number(OBJECTS[resource], place, number)
    for words in (
        ("create", "-f", "-", "--dry-run=server"),
        ("create", "-f", "-", "--dry-run=client", "-o", "yaml"),
        ("apply", "-f", "-", "--server-side", "--dry-run=server"),
        ("diff", "-f", "-"),
    ):
        assert_answered(paint(*words, stdin=text), (resource, place, number[:20], words))


@FUZZ
@given(case=case, number=number)
def test_numbers_in_file_of_folder_cost_no_other_object(
    paint: Kubepy, folder: Path, case: tuple[str, Place], number: str
) -> None:
    resource, place = case
    path = folder / "state" / "namespaces" / "default" / resource / "o.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(with_number(OBJECTS[resource], place, number))
    for words in (
        ("get", resource),
        ("describe", resource),
        ("fsck",),
        ("get", resource, "-o", "yaml"),
    ):
        assert_answered(paint(*words), (resource, place, number[:20], words))
    assert paint("get", "cm", "paint", "-o", "name").out == "configmap/paint\n"
    path.unlink()


ARGUMENTS: tuple[str, ...] = (
    "create cm x --from-literal=a={}",
    "scale deploy/x --replicas={}",
    "scale deploy/x --replicas=1 --timeout={}",
    "get cm -l a>{}",
    "get cm --request-timeout={}",
    "get cm -o jsonpath={{.items[{}]}}",
    "get cm -o jsonpath={{.items[0:{}]}}",
    "get cm -o jsonpath={{.items[?(@.a=={})]}}",
    "get cm --chunk-size={}",
    "get cm -o go-template={{{{{}}}}}",
    "get cm -o go-template={{{{index\0.items\0{}}}}}",
    'get cm -o go-template={{{{printf\0"%{}d"\0001}}}}',
    'get cm -o go-template={{{{printf\0"%.{}f"\0001.5}}}}',
    'get cm -o go-template={{{{printf\0"%*d"\0{}\0001}}}}',
    'get cm -o go-template={{{{printf\0"%[{}]d"\0001}}}}',
    "get --raw /api/v1/pods?limit={}",
    "delete cm none --grace-period={}",
    "delete cm none --timeout={}",
    "rollout undo deploy/x --to-revision={}",
    "create quota q --hard=cpu={} --dry-run=server",
    "create priorityclass pc --value={} --dry-run=server",
    "create pdb b --selector=a=b --min-available={} --dry-run=server",
    "create service nodeport s --tcp={} --dry-run=server",
    "create service nodeport s --tcp=80:{} --dry-run=server",
    "create ingress i --rule=a/b=c:{} --dry-run=server",
    "create cronjob c --image=x --schedule={} --dry-run=server",
    "create cronjob c --image=x --schedule=@every\0{} --dry-run=server",
    "create deployment d --image=x --replicas={} --dry-run=server",
    "run r --image=x --port={} --dry-run=server",
    'run r --image=x --overrides={{"spec":{{"priority":{}}}}} --dry-run=server',
    'run r --image=x --override-type=json --overrides=[{{"op":"add","path":"/spec/containers/{}",'
    '"value":1}}]'
    " --dry-run=server",
    'patch cm paint -p {{"data":{{"a":{}}}}} --dry-run=server',
    'patch cm paint --type=merge -p {{"metadata":{{"generation":{}}}}} --dry-run=server',
    "patch cm paint --type=merge -p metadata:\0{{generation:\0{}}} --dry-run=server",
    'patch cm paint --type=json -p [{{"op":"add","path":"/data/a","value":{}}}] --dry-run=server',
    "wait cm/none --for=delete --timeout={}",
    "label cm paint --resource-version={} a=b --dry-run=server",
)


@pytest.mark.parametrize(
    "text", [*TEXTS[:9], "1e999", "-1e999", "0x" + "f" * 5000, "0" * 5000, "1" * 4301, "."]
)
def test_numbers_in_arguments_are_taken_or_refused(paint: Kubepy, text: str) -> None:
    for command in ARGUMENTS:
        words = [
            word.replace("{{", "\1")
            .replace("}}", "\2")
            .replace("{}", text)
            .replace("\1", "{")
            .replace("\2", "}")
            .replace("\0", " ")
            for word in command.split()
        ]
        assert_answered(paint(*words), command)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            f'{{"apiVersion":"v1","kind":"ConfigMap",\n"metadata":{{"name":"x",'
            f'"generation":{LONG}}}}}',
            f'error: unable to decode "STDIN": json: cannot unmarshal number {LONG} into Go value '
            f"of type float64\n",
        ),
        (
            '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","generation":1e999}}',
            'error: unable to decode "STDIN": json: cannot unmarshal number 1e999 into Go value '
            "of type float64\n",
        ),
    ],
)
def test_number_beyond_float64_in_json_is_refused_in_gos_words(
    paint: Kubepy, text: str, error: str
) -> None:
    assert paint("create", "-f", "-", stdin=text) == Done("", error, 1)


def test_number_of_many_digits_in_yaml_is_text_as_go_reads_it(paint: Kubepy) -> None:
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata: {{a: {LONG}}}\n"
    assert paint("create", "-f", "-", stdin=manifest) == Done("configmap/x created\n", "", 0)
    assert paint("get", "cm", "x", "-o", "jsonpath={.data.a}").out == LONG


def test_number_beyond_float64_in_file_is_problem_with_its_line(
    paint: Kubepy, folder: Path
) -> None:
    path = folder / "state" / "namespaces" / "default" / "configmaps" / "x.yaml"
    path.write_text('{"metadata":\n{"name": "x",\n"generation": 1e999}}\n')
    place = (
        "namespaces/default/configmaps/x.yaml:3: json: cannot unmarshal number 1e999 into Go "
        "value of type float64"
    )
    assert place in paint("fsck").out
    assert paint("get", "cm", "paint", "-o", "name").out == "configmap/paint\n"


@pytest.mark.parametrize(
    "clock", ["0001-01-01T00:00:00Z", "0999-06-01T00:00:00Z", "9999-12-31T23:59:59Z"]
)
def test_clock_outside_years_of_nanoseconds_is_refused(
    bare: Kubepy, folder: Path, clock: str
) -> None:
    (folder / "state").mkdir()
    (folder / "state" / "kubepy.yaml").write_text(f'formatVersion: 1\nclock: "{clock}"\n')
    assert bare("get", "cm") == Done(
        "", f"error: kubepy.yaml: clock: '{clock}' is not between the years 1678 and 2261\n", 1
    )


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        (
            f"clock: {LONG}",
            f"kubepy.yaml: clock: '{LONG}' is not a time such as 2026-11-20T10:13:48Z",
        ),
        ("clock: 9999-12-31T23:59:59-23:59", "is not a time such as 2026-11-20T10:13:48Z"),
        (
            "clock: 2026-01-01T00:00:00.123456789Z",
            "kubepy.yaml: clock: '2026-01-01T00:00:00.123456789Z' is too exact",
        ),
        *(
            (f"seed: {seed}", "kubepy.yaml: seed: must be a string or a number without fraction")
            for seed in ("[]", "true", "1.5")
        ),
    ],
)
def test_settings_of_absurd_values_are_refused(
    bare: Kubepy, folder: Path, setting: str, error: str
) -> None:
    (folder / "state").mkdir()
    (folder / "state" / "kubepy.yaml").write_text(f"formatVersion: 1\n{setting}\n")
    done = bare("get", "cm")
    assert error in done.err
    assert_answered(done, setting)


def test_old_times_are_written_with_four_digits_of_year(paint: Kubepy) -> None:
    manifest = (
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: x}\n"
        "spec: {renewTime: '0999-01-02T03:04:05.000006Z'}\n"
    )
    paint("create", "-f", "-", stdin=manifest)
    assert (
        paint("get", "lease", "x", "-o", "jsonpath={.spec.renewTime}").out
        == "0999-01-02T03:04:05.000006Z"
    )
    assert "no problems" in paint("fsck").out
