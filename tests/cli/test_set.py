"""``kubepy set``, ``label``, ``annotate``, ``scale`` and ``autoscale``: changes, messages,
refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: nginx
        resources: {limits: {cpu: 1500m}}
        env:
        - {name: PLAIN, value: x}
        - {name: MODE, valueFrom: {configMapKeyRef: {name: conf, key: mode}}}
        - {name: GONE, valueFrom: {configMapKeyRef: {name: conf, key: gone}}}
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
"""


@pytest.fixture
def web(kubepy: Kubepy, folder: Path) -> Kubepy:
    """A Deployment, a ConfigMap and a Service."""
    (folder / "web.yaml").write_text(WEB)
    assert kubepy("apply", "-f", "web.yaml").status == 0
    assert kubepy("create", "cm", "conf", "--from-literal=mode=fast").status == 0
    assert kubepy("create", "svc", "clusterip", "web", "--tcp=80").status == 0
    return kubepy


# --- env ------------------------------------------------------------------------------------------


def test_set_env_list_prints_values_and_unresolved_references(web: Kubepy) -> None:
    assert web("set", "env", "deploy/web", "--list") == Done(
        "# Deployment web, container main\nPLAIN=x\n# MODE from configmap conf, key mode\n"
        "# GONE from configmap conf, key gone\n# NAME from field path metadata.name\n"
        "# CPU from resource field limits.cpu\n",
        "",
        0,
    )
    assert web("set", "env", "deploy/web", "--list", "--resolve") == Done(
        "# Deployment web, container main\nPLAIN=x\nMODE=fast\n# GONE from configmap conf, key "
        "gone\nNAME=web\nCPU=2\n",
        "error retrieving reference for GONE: key gone not found in config map conf\n",
        0,
    )


def test_set_env_variable_names_are_checked_by_client(web: Kubepy) -> None:
    done = web("set", "env", "deploy/web", "A B=c")
    assert (done.out, done.status) == ("", 1)
    assert done.err.startswith(
        'error: "A B" is not a valid key name: a valid environment variable name must '
    )


# --- selectors, and --local -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        ("a in (b)", "match expression [{a In [b]}] not supported on this object"),
        ("a", "match expression [{a Exists []}] not supported on this object"),
        ("a!=b", '"!=" is not a valid label selector operator'),
        (
            "a=b=c",
            "couldn't parse the selector string \"a=b=c\": found '=', expected: ',' or 'end of "
            "string'",
        ),
    ],
)
def test_set_selector_refuses_expressions(web: Kubepy, selector: str, error: str) -> None:
    assert web("set", "selector", "svc/web", selector) == Done("", f"error: {error}\n", 1)


def test_set_selector_with_old_resource_version_conflicts(web: Kubepy) -> None:
    assert web("set", "selector", "svc/web", "a=b", "--resource-version=1").err.startswith(
        'Error from server (Conflict): Operation cannot be fulfilled on services "web": '
    )
    assert web("set", "selector", "svc/web", "a=b").out == "service/web selector updated\n"
    assert web("get", "svc", "web", "-o", "jsonpath={.spec.selector}").out == '{"a":"b"}'


@pytest.mark.parametrize(
    "words", ["image deploy/web main=x", "resources deploy/web --limits=cpu=1"]
)
def test_set_local_refuses_resource_args(web: Kubepy, words: str) -> None:
    assert web("set", *words.split(), "--local").err == (
        "error: you must specify resources by --filename when --local is set.\nExample resource "
        "specifications include:"
        "\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n"
    )


CUSTOM = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


@pytest.mark.parametrize(
    "words",
    [
        "set image widget/w a=b",
        "set env widget/w A=b",
        "set selector widget/w a=b",
        "set sa widget/w x",
        "expose widget w --port=80",
    ],
)
def test_set_custom_resource_is_refused(web: Kubepy, folder: Path, words: str) -> None:
    (folder / "crd.yaml").write_text(CUSTOM)
    (folder / "w.yaml").write_text(
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}"
    )
    assert web("apply", "-f", "crd.yaml").status == 0
    assert web("apply", "-f", "w.yaml").status == 0
    assert web(*words.split()).err == (
        'error: no kind "Widget" is registered for version "example.com/v1" in scheme '
        '"pkg/scheme/scheme.go:28"\n'
    )


def test_set_args_with_files_are_refused(web: Kubepy) -> None:
    assert web("label", "deploy", "web", "-f", "web.yaml", "a=b").err == (
        "error: when paths, URLs, or stdin is provided as input, you may not specify resource "
        "arguments as well\n"
    )
    assert web("label", "deploy/web", "-f", "web.yaml", "a=b").err == (
        "error: resource/name arguments cannot be provided when a path is specified\n"
    )


# --- --record -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("label deploy web --record a=b", "kubepy label deploy web a=b --record=true"),
        (
            "annotate deploy/web a=b --overwrite --record",
            "kubepy annotate deploy/web a=b --overwrite=true --record=true",
        ),
        (
            "scale --record deploy/web --replicas 3",
            "kubepy scale deploy/web --record=true --replicas=3",
        ),
        ("set sa deploy/web robot --record", "kubepy set sa deploy/web robot --record=true"),
        (
            "-n default set image deploy web main=a --record",
            "kubepy set image deploy web main=a --namespace=default --record=true",
        ),
    ],
)
def test_record_keeps_command_line(web: Kubepy, words: str, cause: str) -> None:
    done = web(*words.split())
    assert (done.err, done.status) == (
        "Flag --record has been deprecated, --record will be removed in the future\n",
        0,
    )
    found = json.loads(web("get", "deploy", "web", "-o", "json").out)["metadata"]["annotations"]
    assert found["kubernetes.io/change-cause"] == cause


def test_create_record_keeps_command_line(kubepy: Kubepy, folder: Path) -> None:
    (folder / "web.yaml").write_text(WEB)
    kubepy("create", "-f", "web.yaml", "--record")
    found = json.loads(kubepy("get", "deploy", "web", "-o", "json", "--reconcile=never").out)[
        "metadata"
    ]["annotations"]
    assert found == {
        "kubernetes.io/change-cause": "kubepy create --filename=web.yaml --record=true"
    }


# --- scale and autoscale --------------------------------------------------------------------------


def test_scale_replicas_beyond_int32_is_refused(web: Kubepy) -> None:
    done = web("scale", "deploy/web", "--replicas=99999999999")
    assert (done.out, done.status) == ("", 1)
    assert done.err.endswith(
        ": json: cannot unmarshal number 99999999999 into Go struct field ScaleSpec.spec.replicas "
        "of type int32\n"
    )


def test_scale_timeout_waits_until_scaled(web: Kubepy) -> None:
    assert web(
        "scale", "deploy/web", "--replicas=3", "--timeout=200ms", "--reconcile=never"
    ) == Done(
        "",
        "no controller is running (--reconcile=never): waiting for another process to run one\n"
        'error: timed out waiting for "web" to be synced\n',
        1,
    )
    assert web("scale", "deploy/web", "--replicas=3", "--timeout=1m") == Done(
        "deployment.apps/web scaled\n", "", 0
    )


def test_autoscale_invalid_fails_with_kubectls_message(web: Kubepy) -> None:
    words = ("autoscale", "deploy", "web", "--max=3")
    assert web(*words).out == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    lost = (
        "error: failed to create autoscaling/v2 HPA and the configuration is incompatible with "
        "autoscaling/v1: "
    )
    assert web(*words).err == f"{lost}empty input\n"
    assert web(*words, "--cpu=500m").err == f"{lost}%!w(<nil>)\n"
    assert web(*words, "--cpu=70%").err == (
        'Error from server (AlreadyExists): horizontalpodautoscalers.autoscaling "web" already '
        "exists\n"
    )


@pytest.mark.parametrize("words", ["-f - -", "-f - -e -"])
def test_set_env_standard_input_for_two_things_is_refused(kubepy: Kubepy, words: str) -> None:
    done = kubepy("set", "env", *words.split(), stdin="LEVEL=debug")
    assert done == Done("", "error: standard input cannot be used for multiple arguments\n", 1)
