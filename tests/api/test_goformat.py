import pytest

from kubepy.api.values.goformat import format_duration, format_value, go_syntax, printable, quote, to_json


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0"), (1.0, "1"), (2.5, "2.5"), (-0.25, "-0.25"), (0.0001, "0.0001"), (0.00001, "1e-05"),
    (123456.789, "123456.789"), (100000.0, "100000"), (1e6, "1e+06"), (1234567.5, "1.2345675e+06"), (1e21, "1e+21"),
    (10, "10"), (None, "<nil>"), (True, "true"), ("a b", "a b"),
    ({"b": [1, None], "a": {}}, "map[a:map[] b:[1 <nil>]]"),
])
def test_format_value_prints_as_go(value, text):
    assert format_value(value) == text


def test_go_syntax_prints_as_go():
    assert go_syntax({"a": ['x"y', 1, None, False]}) == (
        'map[string]interface {}{"a":[]interface {}{"x\\"y", 1, interface {}(nil), false}}')


def test_quote_returns_go_string():
    assert quote('a"b\\\n\t\x01é') == '"a\\"b\\\\\\n\\t\\x01é"'


@pytest.mark.parametrize(("text", "quoted"), [
    ("a\x1b[31mb", r'"a\x1b[31mb"'), ("\x7f\x85", r'"\x7f\u0085"'), ("\u202e\u200b\ufeff", r'"\u202e\u200b\ufeff"'),
    ("\U000e0001", r'"\U000e0001"'), ("\udcff", r'"\xff"'), ("\ud800", r'"\ufffd"'), ("日本 \ufffd", '"日本 \ufffd"'),
    ("\xa0", r'"\u00a0"'),
])
def test_quote_escapes_unprintable_characters(text, quoted):
    assert quote(text) == quoted


def test_printable_escapes_without_quotes():
    assert printable('a "b" \\ \n\x1b') == 'a "b" \\ \\n\\x1b'


@pytest.mark.parametrize(("value", "text"), [
    ({"b": 1, "a": "<&>"}, '{"a":"\\u003c\\u0026\\u003e","b":1}'),
    ([1.0, 1e-7, 1e21, 0.5, "1.5"], '[1,1e-7,1e+21,0.5,"1.5"]'),
    ({"é": "\u2028"}, '{"é":"\\u2028"}'),
])
def test_to_json_writes_as_go(value, text):
    assert to_json(value) == text


def test_to_json_with_indent_is_indented():
    assert to_json({"a": [1.0], "b": {}}, indent=4) == '{\n    "a": [\n        1\n    ],\n    "b": {}\n}'


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "0s"), (1, "1s"), (1.5, "1.5s"), (0.3, "300ms"), (0.0000015, "1.5µs"), (1e-9, "1ns"), (60, "1m0s"),
    (90, "1m30s"), (3600, "1h0m0s"), (3661.25, "1h1m1.25s"), (-2, "-2s"),
])
def test_format_duration_prints_as_go(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
