"""What is not known of the containers of manifests (``kubepy.kubelet.foreseen``)."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from kubepy.api.objects.unknowns import UnknownPart
from kubepy.controlplane.open import make_cluster
from kubepy.kubelet.foreseen import is_doubtful, pod_of, script_in, unknowns_of

MODELLED = {"kubelet": {"containers": "modelled"}}


def pod(**container: Any) -> dict[str, Any]:
    whole = {"name": "main", "image": "acme/web:1", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [whole]},
    }


def workload(kind: str, template: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"metadata": {}, "spec": template["spec"]}}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return {"kind": kind, "metadata": {"name": "w", "namespace": "default"}, "spec": spec}


def unknowns(*objects: dict[str, Any], settings: dict[str, Any] = MODELLED) -> list[UnknownPart]:
    with closing(make_cluster("memory:", settings)) as cluster:
        return unknowns_of(cluster.client, objects)


def test_unknown_image_without_command_is_expected() -> None:
    image = UnknownPart("image", "acme/web:1", is_surprising=False)
    assert unknowns(pod(), pod()) == [image]


def test_unknown_image_of_cron_job_ends() -> None:
    image = UnknownPart("image", "acme/web:1", ends=True, is_surprising=False)
    assert unknowns(workload("CronJob", pod())) == [image]
    assert unknowns(workload("Deployment", pod())) == [image._replace(ends=False)]


@pytest.mark.parametrize(
    "container",
    [
        {"image": "nginx:1.27"},
        {"command": ["sleep", "60"]},
        {"image": "busybox", "args": ["sh", "-c", "echo $(date) | tr a b; f() { :; }; f"]},
        {"command": ["sh", "-c", "exec /v/x"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        {"image": "nginx", "command": ["nginx", "-g", "daemon off;"]},
    ],
)
def test_known_container_has_nothing_unknown(container: dict[str, Any]) -> None:
    assert unknowns(pod(**container)) == []


@pytest.mark.parametrize(
    "container",
    [
        {"command": ["frob", "x"]},
        {"args": ["frob"]},
        {"command": ["sh", "-ec", "frob --all; echo done"]},
        {"args": ["/bin/sh", "-c", "exec frob"]},
    ],
)
def test_unknown_program_in_known_image_is_surprising(container: dict[str, Any]) -> None:
    assert unknowns(pod(**container, image="busybox")) == [UnknownPart("program", "frob")]


def test_unknown_program_in_unknown_image_is_expected() -> None:
    program = UnknownPart("program", "/app/server", is_surprising=False)
    assert unknowns(pod(command=["/app/server"])) == [program]


def test_unknown_program_of_probe_and_hook_is_called() -> None:
    probe = {"exec": {"command": ["pg_isready"]}}
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "drain-all"]}}}
    parts = unknowns(pod(image="nginx", livenessProbe=probe, lifecycle=hook))
    assert parts == [UnknownPart("called", "pg_isready"), UnknownPart("called", "drain-all")]


def test_volume_of_unknown_type_is_named() -> None:
    obj = pod(image="nginx")
    obj["spec"]["volumes"] = [{"name": "share", "nfs": {}}, {"name": "tmp", "emptyDir": {}}]
    assert unknowns(obj) == [UnknownPart("volume", "nfs")]


def test_rule_that_says_enough_leaves_nothing_unknown() -> None:
    rules = [
        {"match": {"image": "acme/web*"}, "runsFor": "10s", "exec": {"pg_isready*": "ok"}},
    ]
    settings = {"kubelet": {"containers": "modelled", "rules": rules}}
    probe = {"exec": {"command": ["pg_isready"]}}
    assert unknowns(pod(command=["/app"], livenessProbe=probe), settings=settings) == []


def test_outcome_of_annotation_leaves_nothing_unknown() -> None:
    obj = pod()
    obj["metadata"]["annotations"] = {"kubepy.dev/outcome": "crash-loop"}
    assert unknowns(obj) == []


@pytest.mark.parametrize("annotation", ["ready-after", "exit-code"])
def test_annotation_that_cannot_be_read_is_left_to_the_kubelet(annotation: str) -> None:
    wrong = pod()
    wrong["metadata"]["annotations"] = {f"kubepy.dev/{annotation}": "soon"}
    image = UnknownPart("image", "acme/web:1", is_surprising=False)
    assert unknowns(wrong) == []
    assert unknowns(wrong, pod()) == [image]


def test_simple_cluster_names_what_is_not_acted_on() -> None:
    container = {"command": ["false"], "readinessProbe": {}, "livenessProbe": {"exec": {}}}
    simple = {"kubelet": {"containers": "simple"}}
    assert unknowns(workload("Deployment", pod(**container)), settings=simple) == [
        UnknownPart("commands", "", is_surprising=False),
        UnknownPart("probes", "", is_surprising=False),
    ]
    assert unknowns(workload("Job", pod(command=["false"])), settings=simple) == [
        UnknownPart("commands", "", ends=True, is_surprising=True)
    ]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx:no-such-tag", True),
        ("docker.io/library/nginx:typo", True),
        ("nginx", False),
        ("nginx:stable-alpine", False),
        ("nginx:1.26-typo", False),
        ("acme/web:no-such-tag", False),
        ("nginx@sha256:" + "0" * 64, False),
    ],
)
def test_doubtful_tag_is_one_of_known_image_without_version(image: str, expected: bool) -> None:
    assert is_doubtful(image) is expected


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["sh", "-c", "a b"], "a b"),
        (["/bin/bash", "-euc", "a", "x"], "a"),
        (["bash", "--norc", "-c", "a"], "a"),
        (["sh", "/x.sh", "-c", "a"], ""),
        (["sh", "-c"], ""),
        (["echo", "-c", "a"], ""),
    ],
)
def test_script_of_command_line(words: list[str], script: str) -> None:
    assert script_in(words) == script


def test_object_without_pods_has_no_pod() -> None:
    assert pod_of({"kind": "Deployment", "metadata": {"name": "x", "namespace": "y"}}) is None
