import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.api.values.goformat import (
    format_duration,
    format_value,
    go_syntax,
    printable,
    quote,
    to_json,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (2.5, "2.5"),
        (-0.25, "-0.25"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (123456.789, "123456.789"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (1e21, "1e+21"),
        (10, "10"),
        (None, "<nil>"),
        (True, "true"),
        ("a b", "a b"),
        ({"b": [1, None], "a": {}}, "map[a:map[] b:[1 <nil>]]"),
    ],
)
def test_format_value_prints_as_go(value, text):
    assert format_value(value) == text


def test_go_syntax_prints_as_go():
    assert go_syntax({"a": ['x"y', 1, None, False]}) == (
        'map[string]interface {}{"a":[]interface {}{"x\\"y", 1, interface {}(nil), false}}'
    )


def test_quote_returns_go_string():
    assert quote('a"b\\\n\t\x01é') == '"a\\"b\\\\\\n\\t\\x01é"'


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a\x1b[31mb", r'"a\x1b[31mb"'),
        ("\x7f\x85", r'"\x7f\u0085"'),
        ("\u202e\u200b\ufeff", r'"\u202e\u200b\ufeff"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("\udcff", r'"\xff"'),
        ("\ud800", r'"\ufffd"'),
        ("日本 \ufffd", '"日本 \ufffd"'),
        ("\xa0", r'"\u00a0"'),
    ],
)
def test_quote_escapes_unprintable_characters(text, quoted):
    assert quote(text) == quoted


def test_printable_escapes_without_quotes():
    assert printable('a "b" \\ \n\x1b') == 'a "b" \\ \\n\\x1b'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": "<&>"}, '{"a":"\\u003c\\u0026\\u003e","b":1}'),
        ([1.0, 1e-7, 1e21, 0.5, "1.5"], '[1,1e-7,1e+21,0.5,"1.5"]'),
        ({"é": "\u2028"}, '{"é":"\\u2028"}'),
    ],
)
def test_to_json_writes_as_go(value, text):
    assert to_json(value) == text


def test_to_json_with_indent_is_indented():
    assert (
        to_json({"a": [1.0], "b": {}}, indent=4)
        == '{\n    "a": [\n        1\n    ],\n    "b": {}\n}'
    )


_TEXTS = st.text(st.sampled_from('ab"\\{}[],:<>&1.e \n\x01\u2028é'), max_size=8) | st.just(
    "10.0.0.1"
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(_TEXTS, values, max_size=4),
)


@given(_VALUES, st.sampled_from((2, 4)), st.booleans())
@settings(max_examples=300)
def test_to_json_with_indent_differs_from_python_in_html_characters_only(value, indent, sort_keys):
    expected = json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys)
    for character, escape in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
    ):
        expected = expected.replace(character, escape)
    assert to_json(value, indent, sort_keys=sort_keys) == expected


def test_to_json_of_nested_value_is_indented_by_its_depth():
    assert f"[\n  {to_json({'a': [1]}, 2, depth=1)}\n]" == to_json([{"a": [1]}], 2)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (2.5e-10, "2.5e-10"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (5e-324, "5e-324"),
        (1.5e300, "1.5e+300"),
        (10**30, "1" + "0" * 30),
        (-5, "-5"),
    ],
)
def test_to_json_writes_numbers_as_go_wherever_they_stand(number, text):
    assert (
        to_json({"a": number, "b": ["1.5", number, {}]})
        == f'{{"a":{text},"b":["1.5",{text},{{}}]}}'
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (1.5, "1.5s"),
        (0.3, "300ms"),
        (0.0000015, "1.5µs"),
        (1e-9, "1ns"),
        (60, "1m0s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (3661.25, "1h1m1.25s"),
        (-2, "-2s"),
    ],
)
def test_format_duration_prints_as_go(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
