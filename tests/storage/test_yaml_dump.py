"""Output of ``dump``: go-yaml v2's bytes, and text that is always read back as the same value."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from kubepy.storage.yaml import dump, load_all

NASTY = st.sampled_from(
    [
        "",
        " ",
        "y",
        "No",
        "on",
        "~",
        "null",
        "<<",
        "0x1F",
        "0o17",
        "010",
        "08",
        "1_000",
        "1e3",
        "+1",
        ".5",
        ".inf",
        "12:30",
        "190:20:30.5",
        "2024-01-31",
        "2024-1-3",
        "2024-01-31T10:00:00Z",
        "2024-13-01",
        "---",
        "--- a",
        "...",
        "- a",
        "-",
        "?",
        ": ",
        "a:",
        "a: b",
        "a #b",
        "#",
        "'",
        '"',
        "\\",
        "\n",
        "\n\n",
        " \n",
        "\n ",
        "a\n b\n",
        "a\n\n",
        "\ta",
        "a\r\n",
        "\x7f",
        "\x85",
        "\xa0",
        "\u2028",
        "a\u2029b",
        "\ufeff",
        "\ufffe",
        "\U0001f680",
        "ż",
        "{a",
        "[",
        "a, b",
        "@a",
        "%a",
        "`a",
        "!a",
        "&a",
        "*a",
        "|",
        ">",
        "a" * 200,
        "ab " * 60,
        "ab  cd " * 30,
        "it's: " * 40,
        '\\"a " ' * 30,
    ]
)
TEXT = st.one_of(
    NASTY,
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(" ab:'\"\\#-\n\t", max_size=120),
)
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_dumped_value_loads_as_same(value: dict[str, Any]) -> None:
    documents = load_all(dump(value))
    assert [document.object for document in documents] == [value]


# Left out: texts that ruamel.yaml resolves to a type that it then cannot construct.
@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(TEXT, VALUES, max_size=4).filter(
        lambda value: not re.search("<<|=|2024-13", repr(value))
    )
)
def test_dumped_value_is_same_to_yaml_1_1_reader(value: dict[str, Any]) -> None:
    try:
        read = YAML(typ="safe", pure=False).load(io.StringIO("%YAML 1.1\n---\n" + dump(value)))
    except ValueError:
        # this reader takes ``._`` and ``0x_`` for numbers and fails; go-yaml leaves them plain
        reject()
    assert read == value


@given(st.dictionaries(TEXT, st.just(1), min_size=2, max_size=8))
def test_order_of_keys_does_not_depend_on_order_of_insertion(value: dict[str, int]) -> None:
    assert dump(value) == dump(dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("keys", "in_order"),
    [
        (["b", "a", "B", "A"], ["A", "B", "a", "b"]),
        (["a10", "a9", "a1"], ["a1", "a9", "a10"]),
        (["ab", "a-b", "a.b", "a"], ["a", "a-b", "a.b", "ab"]),
        (["a1b", "a01b", "a1"], ["a1", "a1b", "a01b"]),
        (["v1.10", "v1.9", "v1"], ["v1", "v1.9", "v1.10"]),
        (["app.kubernetes.io/name", "app", "app2"], ["app", "app.kubernetes.io/name", "app2"]),
    ],
)
def test_keys_stand_in_natural_order(keys: list[str], in_order: list[str]) -> None:
    assert [line.split(":")[0] for line in dump(dict.fromkeys(keys)).splitlines()] == in_order


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain text", "plain text"),
        ("", '""'),
        ("yes", '"yes"'),
        ("12:30", '"12:30"'),
        ("2024-01-31", '"2024-01-31"'),
        ("2024-13-01", "2024-13-01"),
        ("0x1F", '"0x1F"'),
        ("0xZZ", "0xZZ"),
        ("08", '"08"'),
        ("1.2.3", "1.2.3"),
        ("- a", "'- a'"),
        ("it's", "it's"),
        ("'", "''''"),
        ("---", "'---'"),
        ("...x", "'...x'"),
        ("a\tb", '"a\\tb"'),
        ("\U0001f680", '"\\U0001F680"'),
        ("a\nb", "|-\n  a\n  b"),
        ("a\nb\n", "|\n  a\n  b"),
        (" a\n", "|2\n   a"),
        ("a\n\n", "|+\n  a\n"),
        ("a \nb", '"a \\nb"'),
        (1, "1"),
        (1.0, "1"),
        (1.5, "1.5"),
        (1e21, "1e+21"),
        (1234567.5, "1.2345675e+06"),
        (0.00001, "1e-05"),
        (True, "true"),
        (None, "null"),
        ({}, "{}"),
        ([], "[]"),
        (2**64, "1.8446744073709552e+19"),
    ],
)
def test_value_is_written_in_go_yamls_style(value: Any, text: str) -> None:
    assert dump({"k": value}) == f"k: {text}\n"


def test_lists_stand_under_their_key_and_nested_ones_in_their_line() -> None:
    assert dump({"a": [{"b": 1, "c": ["x"]}, ["y", ["z"]], "w", {}]}) == (
        "a:\n- b: 1\n  c:\n  - x\n- - 'y'\n  - - z\n- w\n- {}\n".replace("'y'", '"y"')
    )


def test_long_scalar_folds_at_first_lone_space_past_column_80() -> None:
    words = "word " * 15 + "long  double  spaces do not break but this does"
    assert dump({"k": {"a": words}}) == (
        "k:\n  a: "
        + "word " * 15
        + "long  double\n".replace("long  double", "long  double  spaces")
        + "    do not break but this does\n"
    )


def test_quoted_scalars_fold_too_and_backslash_keeps_spaces_that_begin_line() -> None:
    assert dump({"k": "a: " + "x" * 80 + " y"}) == f"k: 'a: {'x' * 80}\n  y'\n"
    assert dump({"k": "\t" + "x" * 80 + "  y"}) == f'k: "\\t{"x" * 80}\n  \\ y"\n'


def test_key_too_long_for_line_gets_question_mark() -> None:
    key = "k" * 129
    assert dump({key: {"a": 1, "b": [2]}, "z": [3]}) == f"? {key}\n: a: 1\n  b:\n  - 2\nz:\n- 3\n"
    assert dump({"a\nb": "c"}) == "? |-\n  a\n  b\n: c\n"
    assert dump({"a\rb": "c"}) == '? "a\\rb"\n: c\n'


def test_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object is no JSON value"):
        dump({"a": object()})
    with pytest.raises(ValueError, match="unsupported value"):
        dump({"a": float("nan")})
