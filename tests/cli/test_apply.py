"""apply: replaced objects, errors of patches, and the order of messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "c:1"}]}
"""
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: lone}\nspec: {containers: [{name: c, image: "
    "'c:1'}]}\n"
)
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: desk}\nspec: {ports: [{port: 80}]}\n"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def config_map(data: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: plain}}\ndata: {data}\n"


def apply(kubepy: Kubepy, text: str, *words: str) -> Done:
    return kubepy("apply", "-f", "-", *words, stdin=text)


# --- --force --------------------------------------------------------------------------------------


def test_forced_apply_recreates_object_with_immutable_change(kubepy: Kubepy) -> None:
    apply(kubepy, SERVICE)
    headless = SERVICE.replace("spec: {", "spec: {clusterIP: None, ")
    assert apply(kubepy, headless).status == 1
    assert apply(kubepy, headless, "--force") == Done("service/desk configured\n", "", 0)
    assert kubepy("get", "svc", "desk", "-o", "jsonpath={.spec.clusterIP}").out == "None"


def test_failed_recreation_restores_the_object(kubepy: Kubepy) -> None:
    apply(kubepy, SERVICE)
    done = apply(kubepy, SERVICE.replace("80", "99999"), "--force")
    assert done.status == 1
    assert "spec.ports[0].port: Invalid value: 99999" in done.err
    assert kubepy("get", "svc", "desk", "-o", "jsonpath={.spec.ports[0].port}").out == "80"


def test_slow_deletion_is_not_awaited_without_timeout(kubepy: Kubepy) -> None:
    apply(kubepy, POD.replace("{name: lone}", "{name: lone, finalizers: [example.org/wait]}"))
    done = apply(kubepy, POD.replace("c:1'", "c:1', ports: [{containerPort: 1}]"), "--force")
    assert done.status == 1
    assert done.err.endswith('\nfor: "STDIN": context deadline exceeded\n')


# --- errors ---------------------------------------------------------------------------------------


def test_conflict_shows_all_three_configurations_in_json_and_managers(kubepy: Kubepy) -> None:
    apply(kubepy, DEPLOYMENT)
    kubepy("set", "image", "deploy", "web", "c=c:9", "--reconcile=never")
    done = apply(kubepy, DEPLOYMENT.replace("c:1", "c:2"), "--overwrite=false", "--reconcile=never")
    assert done.status == 1
    assert done.err.startswith(
        "warning: error calculating patch from openapi v3 spec: patch:\nmetadata:\n"
    )
    assert "\nwarning: error calculating patch from openapi spec: patch:\nmetadata:\n" in done.err
    error = done.err[done.err.index("error: error when applying patch") :]
    lines = error.splitlines()
    assert lines[:6] == [
        "error: error when applying patch:",
        "",
        "to:",
        'Resource: "apps/v1, Resource=deployments", GroupVersionKind: "apps/v1, Kind=Deployment"',
        'Name: "web", Namespace: "default"',
        'for: "STDIN": error when patching "STDIN": creating patch with:',
    ]
    assert [lines[6], lines[9], lines[12]] == ["original:", "modified:", "current:"]
    original, modified, current = (json.loads(lines[index]) for index in (7, 10, 13))
    assert LAST_APPLIED in modified["metadata"].pop("annotations")
    assert modified["spec"]["template"]["spec"]["containers"] == [{"image": "c:2", "name": "c"}]
    assert original["metadata"] == {"annotations": {}, **modified["metadata"]}
    assert [entry["manager"] for entry in current["metadata"]["managedFields"]] == [
        "kubectl-client-side-apply",
        "kubectl-set",
    ]
    assert "\nconflicts with changes made from original to current:\n" in error


@pytest.mark.parametrize(("annotation", "flag"), [("no json", "true"), ("[]", "false")])
def test_annotation_that_is_no_configuration(kubepy: Kubepy, annotation: str, flag: str) -> None:
    kubepy("create", "cm", "plain")
    kubepy("annotate", "cm", "plain", f"{LAST_APPLIED}={annotation}")
    done = apply(kubepy, config_map("{a: b}"), f"--openapi-patch={flag}")
    assert done.err.endswith("\nfor: invalid JSON document\n")
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert warnings == (
        [
            "warning: error calculating patch from openapi v3 spec: invalid JSON document",
            "warning: error calculating patch from openapi spec: invalid JSON document",
        ]
        if flag == "true"
        else []
    )


def test_fields_that_type_does_not_have_cannot_be_compared(kubepy: Kubepy) -> None:
    text = DEPLOYMENT.replace("replicas: 0", "colour: {red: 1}")
    apply(kubepy, text, "--validate=ignore")
    done = apply(kubepy, text.replace("red: 1", "red: 2"), "--validate=ignore")
    assert [line for line in done.err.splitlines() if "api field" in line] == [
        'warning: error calculating patch from openapi v3 spec: unable to find api field "colour"',
        "warning: error calculating patch from openapi spec: "
        "LookupPatchMetaError(io.k8s.api.apps.v1.DeploymentSpec): "
        'unable to find api field "colour" in io.k8s.api.apps.v1.DeploymentSpec',
        'for: unable to find api field in struct DeploymentSpec for the json field "colour"',
    ]


def test_unreadable_input_is_reported_before_wrong_format(kubepy: Kubepy) -> None:
    assert apply(kubepy, "[", "-o", "bogus").err.startswith("error: error parsing STDIN")
    assert apply(kubepy, config_map("{a: b}"), "-o", "bogus").err.startswith(
        "error: unable to match a printer"
    )
    assert kubepy("get", "cm", "plain", "-o", "jsonpath={.data.a}").out == "b"


@pytest.mark.parametrize("value", ["", "=true"])
def test_old_dry_run_is_told_once(kubepy: Kubepy, value: str) -> None:
    done = apply(kubepy, config_map("{a: b}"), f"--dry-run{value}")
    assert done.out == "configmap/plain created (dry run)\n"
    assert len(done.err.splitlines()) == 1
    assert "can be replaced with --dry-run=client.\n" in done.err


def test_command_line_is_recorded_where_kubectl_does(kubepy: Kubepy, folder: Path) -> None:
    (folder / "d.yaml").write_text(DEPLOYMENT)

    def cause() -> str:
        path = r"jsonpath={.metadata.annotations.kubernetes\.io/change-cause}"
        return kubepy("get", "deploy", "web", "-o", path).out

    for words in (
        "create -f d.yaml",
        "label deploy web a=b",
        "annotate deploy web c=d",
        "apply -f d.yaml",
        "scale deploy web --replicas=1",
        'patch deploy web -p {"spec":{"minReadySeconds":2}}',
    ):
        assert kubepy(*words.split(), "--record").status == 0
        verb, *rest = words.replace("-f ", "--filename=").replace("-p ", "--patch=").split()
        flags = [word for word in rest if word.startswith("-")]
        names = [word for word in rest if not word.startswith("-")]
        assert cause() == " ".join(["kubepy", verb, *names, *flags, "--record=true"])


# --- last-applied configuration -------------------------------------------------------------------


def test_view_last_applied_shows_configuration_as_written(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "plain")
    kubepy("annotate", "cm", "plain", LAST_APPLIED + '={"b":1.50,  "a":"<x>"}')
    assert kubepy("apply", "view-last-applied", "cm", "plain").out == "a: <x>\nb: 1.5\n"
    assert (
        kubepy("apply", "view-last-applied", "cm", "plain", "-o", "json").out
        == '{\n  "b": 1.50,\n  "a": "<x>"\n}\n'
    )
    kubepy("annotate", "cm", "plain", f"{LAST_APPLIED}=no json", "--overwrite")
    assert kubepy("apply", "view-last-applied", "cm", "plain").out == "no json\n"
    assert kubepy("apply", "view-last-applied", "cm", "plain", "-o", "json") == Done(
        "", "error: invalid character 'o' in literal null (expecting 'u')\n", 1
    )


def test_file_whose_object_was_never_applied_has_nothing_to_view(
    kubepy: Kubepy, folder: Path
) -> None:
    (folder / "plain.yaml").write_text(config_map("{a: b}"))
    kubepy("create", "-f", "plain.yaml")
    assert kubepy("apply", "view-last-applied", "cm", "plain") == Done("", "", 0)
    assert kubepy("apply", "view-last-applied", "-f", "plain.yaml") == Done(
        "",
        "error: error when no last-applied-configuration annotation found on resource: plain\n "
        '"plain.yaml": <nil>\n',
        1,
    )
