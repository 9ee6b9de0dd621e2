"""``-o``: what commands print of the objects they have."""

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
def test_numbers_of_what_a_generator_makes_have_lost_their_type_in_templates(
        kubepy: Kubepy, output: str, text: str) -> None:
    assert kubepy(*PRIORITY, output).out == text


def test_numbers_of_what_the_cluster_gives_keep_their_type(kubepy: Kubepy) -> None:
    kubepy("create", "priorityclass", "high", "--value=2000000")
    assert kubepy("get", "priorityclass", "high", "-o", "jsonpath={.value}").out == "2000000"


def test_a_template_that_does_not_fit_shows_the_object_as_it_was_sent(kubepy: Kubepy) -> None:
    failed = kubepy(*PRIORITY, "go-template={{.value.x}}")
    assert '\traw data was:\n\t\t{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1",' in failed.out
    assert failed.err == ('error: error executing template "{{.value.x}}": template: output:1:8: executing "output" at '
                          "<.value.x>: can't evaluate field x in type interface {}\n")


def test_a_template_beside_a_format_that_takes_none_is_not_looked_at(kubepy: Kubepy) -> None:
    assert kubepy(*PRIORITY, "name", "--template={{").out == "priorityclass.scheduling.k8s.io/high\n"
    assert kubepy(*PRIORITY, "jsonpath", "--template={.value}").out == "2e+06"
