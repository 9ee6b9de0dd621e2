"""``-o``: output formats of objects."""

from __future__ import annotations

import json

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
    kubepy: Kubepy, output: str, text: str
) -> None:
    assert kubepy(*PRIORITY, output).out == text


@pytest.mark.parametrize(
    "output", ["json", "yaml", "name", "custom-columns=N:.metadata.name,D:.data"]
)
def test_objects_of_type_are_printed_one_by_one_as_they_are_together(
    kubepy: Kubepy, output: str
) -> None:
    values = ("<b>&\u2028\x01\x7f", '"\\"', "1\n2\n", "10.0.0.1", "é\U0001f600")
    for name, value in zip("abcde", values, strict=True):
        kubepy("create", "cm", name, f"--from-literal=k={value}", "--from-literal=n=1.50")
    names = kubepy("get", "cm", "-o", "name").out.split()
    one_by_one, together = kubepy("get", "cm", "-o", output), kubepy("get", *names, "-o", output)
    assert (one_by_one, together.status) == (together, 0)
    assert kubepy("get", "cm", "-l", "a=b", "-o", output, "--ignore-not-found").out == ""


def test_objects_beyond_those_that_are_made_at_once_follow_without_gap(kubepy: Kubepy) -> None:
    items = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"s-{number:03}", "labels": {"odd": str(number % 2)}},
        }
        for number in range(201)
    ]
    manifest = {"apiVersion": "v1", "kind": "List", "items": items}
    assert kubepy("create", "-f", "-", stdin=json.dumps(manifest)).status == 0
    names = [item["metadata"]["name"] for item in items]
    table = [line.split()[0] for line in kubepy("get", "secrets").out.splitlines()]
    assert table == ["NAME", *names]
    odd = kubepy("get", "secrets", "-o", "name", "-l", "odd=1").out.split()
    assert odd == [f"secret/{name}" for name in names[1::2]]
    printed = json.loads(kubepy("get", "secrets", "-o", "json").out)["items"]
    assert [item["metadata"]["name"] for item in printed] == names


def test_types_that_cannot_be_listed_are_reported_after_the_others(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a")
    kubepy("create", "sa", "b")
    done = kubepy("get", "cm,events", "--field-selector=reason=x", "-o", "name")
    assert (done.out, done.status) == ("", 1)
    assert done.err.startswith(
        'Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match'
    )
    both = kubepy("get", "cm,nodes", "--field-selector=metadata.name=a", "-o", "name")
    assert (both.out, both.status) == ("configmap/a\n", 0)
    listed = kubepy("get", "sa,cm", "-o", "json", "--field-selector=metadata.name!=default")
    assert [item["kind"] for item in json.loads(listed.out)["items"]] == [
        "ServiceAccount",
        "ConfigMap",
    ]


def test_empty_list_is_printed_in_each_format(kubepy: Kubepy) -> None:
    empty = {"apiVersion": "v1", "items": [], "kind": "List", "metadata": {"resourceVersion": ""}}
    assert kubepy("get", "deploy", "-o", "json").out == json.dumps(empty, indent=4) + "\n"
    assert kubepy("get", "deploy", "-o", "yaml").out == (
        'apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: ""\n'
    )
    assert kubepy("get", "deploy", "-o", "name").out == ""


def test_numbers_of_what_cluster_gives_keep_their_type(kubepy: Kubepy) -> None:
    kubepy("create", "priorityclass", "high", "--value=2000000")
    assert kubepy("get", "priorityclass", "high", "-o", "jsonpath={.value}").out == "2000000"


def test_template_that_does_not_fit_shows_object_as_it_was_sent(kubepy: Kubepy) -> None:
    failed = kubepy(*PRIORITY, "go-template={{.value.x}}")
    assert (
        '\traw data was:\n\t\t{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1",'
        in failed.out
    )
    assert failed.err == (
        'error: error executing template "{{.value.x}}": template: output:1:8: executing "output" '
        "at "
        "<.value.x>: can't evaluate field x in type interface {}\n"
    )


def test_template_beside_format_that_takes_none_is_not_looked_at(kubepy: Kubepy) -> None:
    assert (
        kubepy(*PRIORITY, "name", "--template={{").out == "priorityclass.scheduling.k8s.io/high\n"
    )
    assert kubepy(*PRIORITY, "jsonpath", "--template={.value}").out == "2e+06"


# --- managedFields --------------------------------------------------------------------------------

SHOWING = [
    "jsonpath={.metadata}",
    "jsonpath={@}",
    "jsonpath={.metadata.*}",
    "jsonpath={..manager}",
    "jsonpath={.items[0]}",
    "jsonpath={range .items[*]}{@}{end}",
    "jsonpath={.items}",
    "jsonpath={.items[*].metadata}",
    "jsonpath={.*}",
    "jsonpath={.metadata['name','managedFields']}",
    "go-template={{.}}",
    "go-template={{.metadata}}",
    "go-template={{range .items}}{{.metadata}}{{end}}",
    "go-template={{with .metadata}}{{.managedFields}}{{end}}",
    "go-template={{range $i, $x := .items}}{{$x}}{{end}}",
    'go-template={{index .metadata "managedFields"}}',
    'go-template={{range .items}}{{template "x" .}}{{end}}{{define "x"}}{{.metadata}}{{end}}',
    "custom-columns=A:.metadata",
    "custom-columns=A:.metadata.managedFields",
]
HIDING = [
    "jsonpath={.metadata.name}",
    "jsonpath={.data}",
    'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}',
    'jsonpath={.items[?(@.metadata.name=="a")].data.x}',
    "jsonpath={.items[*]['metadata.name','kind']}",
    "go-template={{.metadata.name}}",
    "go-template={{range .items}}{{.metadata.labels}}{{end}}",
    "go-template={{with .metadata}}{{.name}}{{end}}",
    "go-template={{if .items}}{{.kind}}{{end}}",
    "custom-columns=A:.metadata.name,B:.data",
]


@pytest.mark.parametrize("output", SHOWING)
def test_template_shows_managed_fields_where_it_shows_all_of_object(
    kubepy: Kubepy, output: str
) -> None:
    kubepy("create", "cm", "a", "--from-literal=x=1")
    one = () if ".items" in output else ("a",)
    assert (
        "kubectl-create"
        in kubepy(
            "get",
            "cm",
            *one,
            "--field-selector=metadata.name=a" if not one else "--v=0",
            "-o",
            output,
        ).out
    )


@pytest.mark.parametrize("output", HIDING)
def test_template_of_single_fields_does_without_managed_fields(
    kubepy: Kubepy, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubepy.apiserver.client import Client

    kubepy("create", "cm", "a", "--from-literal=x=1")
    monkeypatch.delattr(Client, "with_managed_fields")
    assert kubepy("get", "cm", "-o", output).status == 0


def test_template_error_shows_managed_fields(kubepy: Kubepy) -> None:
    kubepy("create", "cm", "a", "--from-literal=x=1")
    failed = kubepy("get", "cm", "a", "-o", "jsonpath={.no}", "--allow-missing-template-keys=false")
    assert "kubectl-create" in failed.err
