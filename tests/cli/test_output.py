"""``-o``: output formats of objects."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Kubepy

PRIORITY = ("create", "priorityclass", "high", "--value=2000000", "--dry-run=client", "-o")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("jsonpath={.value} {.metadata.name}", "2e+06 high"),
        ("jsonpath-as-json={.value}", "[\n    2000000\n]\n"),
        ("go-template={{.value}}", "2000000"),
        ("name", "priorityclass.scheduling.k8s.io/high\n"),
    ],
)
def test_numbers_of_what_generator_makes_have_lost_their_type_in_templates(
        kubepy: Kubepy, output: str, text: str) -> None:
    assert kubepy(*PRIORITY, output).out == text


def test_numbers_of_what_cluster_gives_keep_their_type(kubepy: Kubepy) -> None:
    kubepy("create", "priorityclass", "high", "--value=2000000")
    assert kubepy("get", "priorityclass", "high", "-o", "jsonpath={.value}").out == "2000000"


def test_template_that_does_not_fit_shows_object_as_it_was_sent(kubepy: Kubepy) -> None:
    failed = kubepy(*PRIORITY, "go-template={{.value.x}}")
    assert '\traw data was:\n\t\t{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1",' in failed.out
    assert failed.err == ('error: error executing template "{{.value.x}}": template: output:1:8: executing "output" at '
                          "<.value.x>: can't evaluate field x in type interface {}\n")


def test_template_beside_format_that_takes_none_is_not_looked_at(kubepy: Kubepy) -> None:
    assert kubepy(*PRIORITY, "name", "--template={{").out == "priorityclass.scheduling.k8s.io/high\n"
    assert kubepy(*PRIORITY, "jsonpath", "--template={.value}").out == "2e+06"


# --- managedFields ------------------------------------------------------------------------------------------------

SHOWING = [
    "jsonpath={.metadata}", "jsonpath={@}", "jsonpath={.metadata.*}", "jsonpath={..manager}", "jsonpath={.items[0]}",
    "jsonpath={range .items[*]}{@}{end}", "jsonpath={.items}", "jsonpath={.items[*].metadata}", "jsonpath={.*}",
    "jsonpath={.metadata['name','managedFields']}", "go-template={{.}}", "go-template={{.metadata}}",
    "go-template={{range .items}}{{.metadata}}{{end}}", "go-template={{with .metadata}}{{.managedFields}}{{end}}",
    "go-template={{range $i, $x := .items}}{{$x}}{{end}}", "go-template={{index .metadata \"managedFields\"}}",
    "go-template={{range .items}}{{template \"x\" .}}{{end}}{{define \"x\"}}{{.metadata}}{{end}}",
    "custom-columns=A:.metadata", "custom-columns=A:.metadata.managedFields",
]
HIDING = [
    "jsonpath={.metadata.name}", "jsonpath={.data}", "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}",
    "jsonpath={.items[?(@.metadata.name==\"a\")].data.x}", "jsonpath={.items[*]['metadata.name','kind']}",
    "go-template={{.metadata.name}}", "go-template={{range .items}}{{.metadata.labels}}{{end}}",
    "go-template={{with .metadata}}{{.name}}{{end}}", "go-template={{if .items}}{{.kind}}{{end}}",
    "custom-columns=A:.metadata.name,B:.data",
]


@pytest.mark.parametrize("output", SHOWING)
def test_template_shows_managed_fields_where_it_shows_all_of_object(kubepy: Kubepy, output: str) -> None:
    kubepy("create", "cm", "a", "--from-literal=x=1")
    one = () if ".items" in output else ("a",)
    assert "kubectl-create" in kubepy("get", "cm", *one, "--field-selector=metadata.name=a" if not one else "--v=0",
                                      "-o", output).out


@pytest.mark.parametrize("output", HIDING)
def test_template_of_single_fields_does_without_managed_fields(kubepy: Kubepy, output: str,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    from kubepy.apiserver.client import Client

    kubepy("create", "cm", "a", "--from-literal=x=1")
    monkeypatch.delattr(Client, "with_managed_fields")
    assert kubepy("get", "cm", "-o", output).status == 0


def test_template_error_shows_managed_fields(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a", "--from-literal=x=1")
    failed = kubepy("get", "cm", "a", "-o", "jsonpath={.no}", "--allow-missing-template-keys=false")
    assert "kubectl-create" in failed.err
