"""run and expose: objects made from flags and from other objects."""

from __future__ import annotations

import json

import pytest

from kubepy.api.objects.images import is_image_reference
from tests.cli.conftest import Kubepy


def made(kubepy: Kubepy, *words: str) -> dict[str, object]:
    done = kubepy(*words, "--dry-run=client", "-o", "json")
    assert done.status == 0, done.err
    result = json.loads(done.out)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize(
    "image", ["a", "a/b:1", "host:5000/a/b_c:v1", f"a@sha256:{'0' * 64}", "[::1]:80/a"]
)
def test_references_of_images(image: str) -> None:
    assert is_image_reference(image)


@pytest.mark.parametrize("image", ["", "A", "a:", "a b", "a/", "a@sha256:0", "http://a"])
def test_invalid_image_reference_is_refused(image: str) -> None:
    assert not is_image_reference(image)


def test_fields_of_pod_come_in_order_of_its_struct(kubepy: Kubepy) -> None:
    done = kubepy(
        "run",
        "box",
        "--image=b",
        "--privileged",
        "-i",
        "--attach=false",
        "--env=A=1",
        "--dry-run=client",
        "-o",
        "json",
        "--",
        "sleep",
    )
    container = json.loads(done.out)["spec"]["containers"][0]
    assert list(container) == [
        "name",
        "image",
        "args",
        "env",
        "resources",
        "securityContext",
        "stdin",
        "stdinOnce",
    ]
    assert list(json.loads(done.out)) == ["kind", "apiVersion", "metadata", "spec", "status"]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge", '{"apiVersion":"v1","spec":{"hostNetwork":true,"unknown":1}}'),
        ("strategic", '{"spec":{"hostNetwork":true}}'),
        ("json", '[{"op":"add","path":"/spec/hostNetwork","value":true}]'),
    ],
)
def test_overrides_change_what_was_generated(kubepy: Kubepy, kind: str, patch: str) -> None:
    pod = made(kubepy, "run", "box", "--image=b", f"--override-type={kind}", f"--overrides={patch}")
    assert pod["spec"] == {
        "containers": [{"name": "box", "image": "b", "resources": {}}],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "hostNetwork": True,
    }


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["run", "--image=a"],
            "error: NAME is required for run\nSee 'kubepy run -h' for help and examples\n",
        ),
        (["run", "x", "--image=a", "--env=1"], "error: invalid env: 1\n"),
        (["run", "x", "--image=a", "--overrides={"], "error: Invalid JSON Patch\n"),
        (
            ["run", "x", "--image=a", "--overrides={}", "--override-type=odd"],
            "error: invalid override type: odd\n",
        ),
        (["expose", "cm", "absent"], "error: cannot expose a ConfigMap\n"),
        (
            ["expose", "svc", "absent"],
            'Error from server (NotFound): services "absent" not found\n',
        ),
        (["expose", "ns", "default"], "error: cannot expose a Namespace\n"),
    ],
)
def test_run_and_expose_refuse_invalid_input(kubepy: Kubepy, words: list[str], error: str) -> None:
    assert kubepy(*words) == ("", error, 1)


def test_run_attaches_to_no_simple_container(simple: Kubepy) -> None:
    assert simple("run", "x", "--image=a", "-i") == (
        "",
        "error: attaching is not supported: no containers run here, pods are simulated "
        "(--attach=false creates the pod only)\n",
        1,
    )


def test_run_with_expose_prints_service_first(kubepy: Kubepy) -> None:
    done = kubepy("run", "web", "--image=nginx", "--port=80", "--expose")
    assert done.out == "service/web created\npod/web created\n"
    assert kubepy("get", "svc", "web", "-o", "jsonpath={.spec.selector}").out == '{"run":"web"}'


def test_expose_names_several_ports_and_protocols(kubepy: Kubepy) -> None:
    ports = [
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 53, "protocol": "TCP"},
        {"containerPort": 80},
    ]
    overrides = json.dumps([{"op": "add", "path": "/spec/containers/0/ports", "value": ports}])
    kubepy("run", "dns", "--image=d", "--override-type=json", f"--overrides={overrides}")
    service = made(kubepy, "expose", "pod", "dns")
    assert service["spec"] == {
        "ports": [
            {"name": "port-1-udp", "protocol": "UDP", "port": 53, "targetPort": 53},
            {"name": "port-1-tcp", "protocol": "TCP", "port": 53, "targetPort": 53},
            {"name": "port-2", "protocol": "TCP", "port": 80, "targetPort": 80},
        ],
        "selector": {"run": "dns"},
    }


def test_selector_given_to_expose_is_that_of_service(kubepy: Kubepy) -> None:
    kubepy("create", "deployment", "web", "--image=nginx")
    service = made(
        kubepy, "expose", "deploy/web", "--port=1", "--selector=a=b,c=d", "--target-port=http"
    )
    assert service["spec"] == {
        "ports": [{"protocol": "TCP", "port": 1, "targetPort": "http"}],
        "selector": {"a": "b", "c": "d"},
    }
