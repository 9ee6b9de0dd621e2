"""apply --server-side, and the output of managers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Done, Kubepy

MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dial}\ndata: {low: '1', high: '10'}\n"
MANAGERS = (
    "-ojsonpath={range .metadata.managedFields[*]}{.manager} {.operation} "
    '{.fieldsV1.f:data}{"\\n"}{end}'
)


def test_conflicts_are_told_with_what_to_do(kubepy: Kubepy) -> None:
    assert kubepy("apply", "--server-side", "-f", "-", stdin=MANIFEST) == Done(
        "configmap/dial serverside-applied\n", "", 0
    )
    done = kubepy(
        "apply",
        "--server-side",
        "--field-manager=two",
        "-f",
        "-",
        stdin=MANIFEST.replace("'1'", "'2'"),
    )
    assert done.status == 1
    assert done.err.startswith(
        'error: Apply failed with 1 conflict: conflict with "kubectl": .data.low\nPlease review'
    )
    done = kubepy(
        "apply",
        "--server-side",
        "--field-manager=two",
        "--force-conflicts",
        "-f",
        "-",
        "-o",
        "name",
        stdin=MANIFEST.replace("'1'", "'2'"),
    )
    assert done == Done("configmap/dial\n", "", 0)


def test_kubectl_migrates_from_apply_on_client(kubepy: Kubepy) -> None:
    kubepy("apply", "-f", "-", stdin=MANIFEST)
    kubepy("label", "cm", "dial", "a=b")
    assert kubepy("get", "cm", "dial", MANAGERS).out == (
        'kubectl-client-side-apply Update {".":{},"f:high":{},"f:low":{}}\nkubectl-label Update \n'
    )
    done = kubepy("apply", "--server-side", "-f", "-", stdin=MANIFEST.replace(", high: '10'", ""))
    assert done.out == "configmap/dial serverside-applied\n"
    assert (
        kubepy("get", "cm", "dial", "-o", "jsonpath={.data}").out == '{"low":"1"}'
    )  # fields left out are removed
    assert kubepy("get", "cm", "dial", MANAGERS).out == (
        'kubectl-last-applied Apply \nkubectl Apply {"f:low":{}}\nkubectl-label Update \n'
    )


def test_manifest_without_defaults_applied_later_changes_nothing(kubepy: Kubepy) -> None:
    settings = Path("state/kubepy.yaml")
    version = "-ojsonpath={.metadata.resourceVersion}"
    policy = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\n"
        "spec: {podSelector: {}, ingress: [{ports: [{port: 8084}]}]}\n"
    )
    kubepy("apply", "--server-side", "-f", "-", stdin=policy)
    before = kubepy("get", "netpol", "p", version).out
    settings.write_text('formatVersion: 1\nclock: "2100-01-01T00:00:00Z"\n')
    kubepy("apply", "--server-side", "-f", "-", stdin=policy)
    assert kubepy("get", "netpol", "p", version).out == before
    kubepy("apply", "--server-side", "-f", "-", stdin=policy.replace("8084", "8085"))
    assert kubepy("get", "netpol", "p", version).out != before


def test_managers_are_shown_only_when_they_are_asked_for(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "plain", "--from-literal=a=b")
    for style in ("yaml", "json", "kyaml"):
        assert "manage" not in kubepy("get", "cm", "plain", "-o", style).out
    shown = json.loads(kubepy("get", "cm", "-o", "json", "--show-managed-fields").out)["items"][0]
    assert [entry["fieldsV1"] for entry in shown["metadata"]["managedFields"]] == [
        {"f:data": {".": {}, "f:a": {}}}
    ]
    assert kubepy(
        "get", "cm", "plain", "-o", "custom-columns=M:.metadata.managedFields[0].manager"
    ).out == ("M\nkubectl-create\n")


def test_unknown_fields_and_missing_managers_are_refused(kubepy: Kubepy) -> None:
    assert kubepy("apply", "--server-side", "-f", "-", stdin=MANIFEST + "dta: {}\n").err == (
        "Error from server: failed to create typed patch object (default/dial; /v1, "
        "Kind=ConfigMap): .dta: field not "
        "declared in schema\n"
    )
    assert kubepy("apply", "--server-side", "--field-manager=", "-f", "-", stdin=MANIFEST).err == (
        'The PatchOptions "" is invalid: fieldManager: Required value: is required for apply '
        "patch\n"
    )
