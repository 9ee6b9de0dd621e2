"""``kubepy get``: tables, their columns and their order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy


@pytest.fixture
def three(kubepy: Kubepy) -> Kubepy:
    """Three ConfigMaps, and a Deployment without pods."""
    for name, value in (("a", "10"), ("b", "9"), ("c", "1Ki")):
        kubepy("create", "cm", name, f"--from-literal=size={value}")
    kubepy("create", "deployment", "web", "--image=nginx", "--replicas=0")
    return kubepy


def names(done: Done) -> list[str]:
    return [line.split()[0] for line in done.out.splitlines()]


# --- columns --------------------------------------------------------------------------------------


def test_cluster_wide_kind_after_namespaced_one_keeps_its_column_of_namespaces(
    three: Kubepy,
) -> None:
    three("create", "ns", "other")
    assert "NAMESPACE   NAME" in three("get", "cm,ns", "-A").out.split("\n\n")[1]
    assert "NAMESPACE" not in three("get", "ns,cm", "-A").out.split("\n\n")[0]


def test_kind_stands_before_name_wherever_that_is(three: Kubepy) -> None:
    three("annotate", "cm", "a", "x=y")
    assert three("get", "cm", "a", "--show-kind", "--no-headers").out.startswith("configmap/a   ")
    three(
        "create",
        "-f",
        "-",
        stdin="apiVersion: v1\nkind: Event\nmetadata: {name: e}\nreason: R\n"
        "involvedObject: {kind: Pod, name: p, namespace: default}\n",
    )
    assert three("get", "events", "--show-kind", "--no-headers").out.split() == [
        "<unknown>",
        "R",
        "pod/p",
    ]
    assert (
        three("get", "events", "--show-kind", "-o", "wide", "--no-headers").out.split()[-1]
        == "event/e"
    )


def test_server_that_does_not_print_leaves_name_and_age(three: Kubepy) -> None:
    lines = three(
        "get", "deploy,cm", "--server-print=false", "-o", "wide", "--show-labels"
    ).out.splitlines()
    assert [re.sub(r"\b\d+s\b", "<age>", line).split() for line in lines][:4] == [
        ["NAME", "AGE", "LABELS"],
        ["deployment.apps/web", "<age>", "app=web"],
        [],
        ["NAME", "AGE", "LABELS"],
    ]


def test_scale_has_columns_of_its_own(three: Kubepy) -> None:
    lines = three("get", "deploy", "web", "--subresource=scale").out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["NAME", "DESIRED", "AVAILABLE"],
        ["web", "0", "0"],
    ]
    assert lines[0].split()[3:] == ["AGE"]


@pytest.mark.parametrize("word", ["cm", "configmap", "ConfigMaps", "CONFIGMAP", "configmaps.v1."])
def test_names_of_types_are_taken_in_any_case(three: Kubepy, word: str) -> None:
    assert three("get", word, "a", "-o", "name").out == "configmap/a\n"


@pytest.mark.parametrize("word", ["CM", "Cm", "Deploy", "deployments.APPS"])
def test_short_names_and_groups_are_taken_as_they_are(three: Kubepy, word: str) -> None:
    short = word.partition(".")[0]
    assert three("get", word) == Done(
        "", f'error: the server doesn\'t have a resource type "{short}"\n', 1
    )


# --- custom columns -------------------------------------------------------------------------------


def test_path_that_cannot_be_read_is_told_after_headers(three: Kubepy) -> None:
    failed = three("get", "cm", "-o", "custom-columns=NAME:.metadata.name,X:.data[x]")
    assert failed == Done("NAME   X\n", "error: invalid array index x\n", 1)


def test_rows_before_error_are_shown(three: Kubepy, folder: Path) -> None:
    three("label", "cm", "b", "x=y")
    failed = three("get", "cm", "-o", "custom-columns=NAME:.metadata.name,X:.metadata.labels[0]")
    assert names(failed) == ["NAME", "a"]
    assert failed.err == "error: map[string]interface {} is not array or slice\n"


def test_columns_of_file_always_have_headers(three: Kubepy, folder: Path) -> None:
    (folder / "columns").write_text("WHO   WHAT\nmetadata.name .data.size\n")
    done = three("get", "cm", "a", "-o", "custom-columns-file=columns", "--no-headers")
    assert done.out == "WHO   WHAT\na     10\n"


# --- sorting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", [("--no-headers",), ("-o", "custom-columns=:.metadata.name")])
def test_strings_that_are_quantities_are_sorted_as_such(
    three: Kubepy, output: tuple[str, ...]
) -> None:
    assert [
        line.split()[0]
        for line in three("get", "cm", "--sort-by=.data.size", *output).out.splitlines()
        if line
    ] == ["b", "a", "c"]


def test_sort_by_across_tables_uses_their_objects(three: Kubepy) -> None:
    by_version = three(
        "get", "cm/c", "deploy/web", "cm/a", "--sort-by=.metadata.resourceVersion", "--no-headers"
    )
    assert names(by_version) == ["configmap/a", "configmap/c", "deployment.apps/web"]
    assert names(three("get", "cm,deploy", "--sort-by=.kind", "--no-headers")) == [
        "configmap/a",
        "configmap/b",
        "configmap/c",
        "deployment.apps/web",
    ]
    assert three("get", "cm,deploy", "--sort-by=.metadata.name").err == (
        'error: couldn\'t find any field with path "{.metadata.name}" in the list of objects\n'
    )


@pytest.mark.parametrize("output", [(), ("-o", "name")])
def test_maps_have_no_order(three: Kubepy, output: tuple[str, ...]) -> None:
    failed = three("get", "cm", "--sort-by=.data", *output)
    assert failed == Done(
        "",
        "error: Field {.data} is an unsortable type: interface, err: unsortable type: "
        "map[string]interface {}\n",
        1,
    )


# --- files ----------------------------------------------------------------------------------------


def test_object_of_file_has_namespace_or_is_not_looked_for(three: Kubepy) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    problem = 'no namespace set on resource /v1, Resource=configmaps "a"\n'
    assert three("get", "-A", "-f", "-", stdin=manifest) == Done("", problem, 1)
    assert three("get", "-f", "-", "-o", "name", stdin=manifest).out == "configmap/a\n"


def test_get_without_server_tables_skips_empty_kinds(kubepy: Kubepy) -> None:
    kubepy("create", "svc", "clusterip", "v", "--tcp=80")
    assert names(kubepy("get", "svc,jobs", "--server-print=false")) == ["NAME", "kubernetes", "v"]
    assert names(kubepy("get", "svc,jobs")) == ["NAME", "service/kubernetes", "service/v"]


def test_get_without_server_tables_sorts_all_kinds_together(kubepy: Kubepy) -> None:
    kubepy("create", "svc", "clusterip", "m", "--tcp=80")
    kubepy("create", "cm", "z")
    kubepy("create", "cm", "a")
    sorted_words = (
        "get",
        "svc,cm",
        "--server-print=false",
        "--sort-by=.metadata.name",
        "--no-headers",
    )
    found = [name for name in names(kubepy(*sorted_words)) if "kube" not in name]
    assert found == ["configmap/a", "service/m", "configmap/z"]
    assert kubepy("get", "svc,cm", "--server-print=false", "--sort-by=.nope") == Done(
        "", 'error: couldn\'t find any field with path "{.nope}" in the list of objects\n', 1
    )


def test_labels_are_shown_in_order_of_their_texts(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a")
    kubepy("label", "cm", "a", "app=x", "app.kubernetes.io/name=n")
    shown = kubepy("get", "cm", "a", "--show-labels", "--no-headers").out.split()[-1]
    assert shown == "app.kubernetes.io/name=n,app=x"


def test_selector_leaves_nothing_of_tables_of_files(kubepy: Kubepy, folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: x}}}"
    )
    kubepy("create", "-f", "a.yaml")
    assert kubepy("get", "-f", "a.yaml", "-l", "app=x") == Done(
        "", "No resources found in default namespace.\n", 0
    )
    assert kubepy("get", "-f", "a.yaml", "-l", "app=x", "-o", "name").out == "configmap/a\n"
    assert names(kubepy("get", "-f", "a.yaml", "-l", "!other")) == ["NAME", "a"]


def test_kustomization_of_one_object_is_that_object(kubepy: Kubepy) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "paint"}}
    Path("paint.yaml").write_text(json.dumps(settings))
    Path("kustomization.yaml").write_text("resources: [paint.yaml]\n")
    assert kubepy("apply", "-k", ".").status == 0
    assert json.loads(kubepy("get", "-k", ".", "-o", "json").out)["kind"] == "ConfigMap"
    assert kubepy("get", "-k", ".", "-o", "jsonpath={.metadata.name}").out == "paint"

    brush = {**settings, "metadata": {"name": "brush"}}
    Path("brush.yaml").write_text(json.dumps(brush))
    Path("kustomization.yaml").write_text("resources: [paint.yaml, brush.yaml]\n")
    assert kubepy("apply", "-k", ".").status == 0
    assert json.loads(kubepy("get", "-k", ".", "-o", "json").out)["kind"] == "List"
