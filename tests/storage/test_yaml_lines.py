"""The line of a field in a text."""

from __future__ import annotations

import pytest

from kubepy.storage.yaml.lines import line_of

TEXT = """apiVersion: v1
metadata:
  annotations:
    example.org/a.b: x
    example.org/a: y
spec:
  # a remark
  containers:
  - name: c
    image: nginx:1.27
  selector: {a: b,
   c: d}
"""


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("spec", 6),
        ("spec.containers", 8),
        ("spec.containers[0]", 9),
        ("spec.containers[0].image", 10),
        ("spec.selector.c", 12),
        ("metadata.annotations[example.org/a.b]", 4),
        ("metadata.annotations.example.org/a", 5),
        ("metadata.annotations.example.org/a.b", 4),
    ],
)
def test_line_of_field_is_that_of_its_name(field: str, line: int) -> None:
    assert line_of(TEXT, field) == line


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("spec.containers[7].image", 8),
        ("spec.missing.deeper", 6),
        ("status", 0),
        ("<nil>", 0),
        ("", 0),
    ],
)
def test_line_of_missing_field_is_that_of_what_should_hold_it(field: str, line: int) -> None:
    assert line_of(TEXT, field) == line


@pytest.mark.parametrize(
    "text",
    [
        "---\n" + TEXT,
        "# first\n" + TEXT,
        ("# first\n" + TEXT).replace("\n", "\r\n"),
        "\ufeff# first\n" + TEXT,
    ],
)
def test_lines_count_from_start_of_file(text: str) -> None:
    assert line_of(text, "spec.containers[0].image") == 11


def test_line_in_json_is_found() -> None:
    assert line_of('{"spec":\n {"a":\n  1}}', "spec.a") == 2


def test_text_that_ruamel_cannot_read_has_no_lines() -> None:
    assert line_of("a: [nginx:1.27, x]\nb: [", "a") == 0
