"""Input of ``load_all``: kubectl's documents, go-yaml's scalars, and go-yaml's errors."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.storage.yaml import (
    Document,
    YamlError,
    indented_json,
    load_all,
    read_json,
    repeats_keys,
)

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"


def read(text: str) -> Any:
    (document,) = load_all(text)
    return document.object


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("010", 8),
        ("0x10", 16),
        ("0b11", 3),
        ("0o17", 15),
        ("1_000", 1000),
        ("08", 8),
        ("1e3", 1000),
        ("1.50", 1.5),
        ("1.0", 1),
        ("12:30", "12:30"),
        ("2024-01-31", "2024-01-31"),
        ("-0x1F", -31),
        ("+1", 1),
        ("18446744073709551615", 2.0**64),
        ("0x", "0x"),
        ("'yes'", "yes"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 3", 3),
        ("!thing 12", "12"),
        ("!!binary aGk=", "hi"),
        ("1e999", "1e999"),
        ("0xFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFF"),
        ("99999999999999999999", 1e20),
    ],
)
def test_scalar_has_value_of_go_yaml(text: str, value: Any) -> None:
    found = read(f"k: {text}")["k"]
    assert (found, type(found)) == (value, type(value))


def test_keys_without_quotes_become_strings_by_their_value() -> None:
    text = 'y: "1"\nNo: "2"\n"on": "3"\noff-: "4"\n1.0: "6"\n0x10: "7"\n2024-01-01: "8"\n'
    assert read(text) == {
        "true": "1",
        "false": "2",
        "on": "3",
        "off-": "4",
        "1": "6",
        "16": "7",
        "2024-01-01": "8",
    }


def test_duplicate_key_last_value_wins() -> None:
    assert read("a: 1\nb: 2\na: 3\n") == {"a": 3, "b": 2}
    assert read('{"a": 1, "a": 3}') == {"a": 3}


def test_aliases_are_copies_and_merges_take_their_place_among_keys() -> None:
    found = read("a: &x {k: [1]}\nb: *x\nc: {k: 0, <<: *x, l: 2}\nd: {<<: [{k: 1}, {k: 2}]}\n")
    assert found == {"a": {"k": [1]}, "b": {"k": [1]}, "c": {"k": [1], "l": 2}, "d": {"k": 1}}
    assert found["a"]["k"] is not found["b"]["k"]


def test_documents_carry_line_where_they_begin_and_empty_ones_are_left_out() -> None:
    assert load_all("# first\n\na: 1\n---\n---  # none\n\n--- \nb: 2\n") == [
        Document({"a": 1}, 3),
        Document({"b": 2}, 8),
    ]
    assert load_all("") == []


def test_json_is_stream_and_what_is_nearly_json_is_yaml() -> None:
    assert load_all('{"a": 1}\n{"b": "\\u017c"}') == [
        Document({"a": 1}, 1),
        Document({"b": "ż"}, 2),
    ]
    assert load_all('{"a": 1}\n---\n{b: 2,}\n') == [Document({"a": 1}, 1), Document({"b": 2}, 3)]
    assert read('{"n": 9223372036854775808, "s": "\\ud800"}') == {"n": 2.0**63, "s": "\ufffd"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            HEAD + '  name: "broken\ndata:\n  a: b\n',
            7,
            "yaml: line 7: found unexpected end of stream",
        ),
        (
            HEAD + "  name: b\n   labels:\n",
            5,
            "yaml: line 5: mapping values are not allowed in this context",
        ),
        (HEAD + "\tname: tabs\n", 4, "yaml: line 4: found character that cannot start any token"),
        ("a: 1\n---\nb: 2\nc: [\n", 5, "yaml: line 2: did not find expected node content"),
        (
            "a: {{ .x }}\n",
            1,
            'yaml: invalid map key: map[interface {}]interface {}{".x":interface {}(nil)}',
        ),
        ("a: *b\n", 1, "yaml: unknown anchor 'b' referenced"),
        ("a: &b [*b]\n", 1, "yaml: anchor 'b' value contains itself"),
        ("a: !!int x\n", 1, "yaml: cannot decode !!str `x` as a !!int"),
        ("a: .nan\n", 1, "json: unsupported value: NaN"),
        ("? ~\n: x\n", 1, 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "x"'),
        ("? ~\n: x\nb: 'x\n", 4, "yaml: line 4: found unexpected end of stream"),
        (
            "9223372036854775808: x",
            1,
            'unsupported map key of type: uint64, key: 0x8000000000000000, value: "x"',
        ),
        ("a: 1\nb: \x01\n", 2, "yaml: control characters are not allowed"),
        ("[" * 5000, 1, "yaml: exceeded max depth"),
    ],
)
def test_bad_yaml_has_kubectls_message_and_line(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        load_all(text)
    assert (caught.value.line, caught.value.message) == (
        line,
        f"error converting YAML to JSON: {message}",
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("--- a\n", 1, "invalid Yaml document separator: a"),
        ('{"a": {"b": 1}\n', 2, "unexpected EOF"),
        ('{"a": [1, "b" 2}', 1, "json: offset 15: invalid character '2' after array element"),
        ('{"a" 1, b: [}', 1, "json: offset 6: invalid character '1' after object key"),
    ],
)
def test_bad_json_has_gos_message(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        load_all(text)
    assert (caught.value.line, caught.value.message) == (line, message)


def test_alias_bomb_is_refused() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with pytest.raises(YamlError, match="document contains excessive aliasing"):
        load_all("l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + levels)


def test_duplicate_key_with_unique_keys_is_error() -> None:
    text = "a: {x: 1}\nb:\n  x: 1\n  z: 2\n  x: 3\n"
    assert read(text) == {"a": {"x": 1}, "b": {"x": 3, "z": 2}}
    with pytest.raises(YamlError, match='has the key "x" more than once') as caught:
        load_all("# first\n---\n" + text, unique_keys=True)
    assert caught.value.line == 7


def test_merged_key_may_be_overridden_with_unique_keys() -> None:
    text = (
        "base: &base {image: a, port: 1}\none:\n  <<: *base\n  image: b\ntwo:\n  image: c\n  "
        "<<: *base\n"
    )
    (document,) = load_all(text, unique_keys=True)
    assert (document.object["one"], document.object["two"]["image"]) == (
        {"image": "b", "port": 1},
        "a",
    )


# --- one JSON value -------------------------------------------------------------------------------


def test_indented_json_keeps_order_numbers_and_escapes():
    assert indented_json(' {"b":1.50, "a":["<x>\\u0041", {}, []],"c":{"d":null}} ') == (
        '{\n  "b": 1.50,\n  "a": [\n    "<x>\\u0041",\n    {},\n    []\n  ],\n  "c": {\n    "d": '
        "null\n  }\n}"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a":', "unexpected end of JSON input"),
        ("nojson", "invalid character 'o' in literal null (expecting 'u')"),
        ("[tru]", "invalid character ']' in literal true (expecting 'e')"),
        ('{"a":1 true}', "invalid character 't' after object key:value pair"),
        ('{"a":1} x', "invalid character 'x' after top-level value"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
    ],
)
def test_invalid_json_has_gos_message(text, why):
    with pytest.raises(YamlError) as failed:
        read_json(text)
    assert str(failed.value) == why


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{image: nginx:1.27, url: http://x/y}", {"image": "nginx:1.27", "url": "http://x/y"}),
        (
            "a: [b:c, 'd:e', \"f:g\", 12:30, h:, i]",
            {"a": ["b:c", "d:e", "f:g", "12:30", "h:", "i"]},
        ),
        ('{a:b: c, "d":e, f:1}', {"a:b": "c", "d": "e", "f:1": None}),
        ("a: [&x n:1, *x, !!str t:2] # c:d", {"a": ["n:1", "n:1", "t:2"]}),
        ("{é: ż:ó, \ue000: a:b}", {"é": "ż:ó", "\ue000": "a:b"}),
        ("{a: it's:me, b: c:d\n  e}", {"a": "it's:me", "b": "c:d e"}),
    ],
)
def test_colon_within_word_between_brackets_is_text(text: str, value: Any) -> None:
    assert [document.object for document in load_all(text)] == [value]


def test_error_beside_hidden_colon_has_its_line() -> None:
    with pytest.raises(YamlError) as refused:
        load_all("a: {b: c:d}\ne: [f:g\n")
    assert (
        refused.value.message
        == "error converting YAML to JSON: yaml: line 2: did not find expected ',' or ']'"
    )
    with pytest.raises(YamlError) as refused:
        load_all("a: [b:c]\nd: {e: 1, e: 2}\n", unique_keys=True)
    assert (refused.value.message, refused.value.line) == ('has the key "e" more than once', 2)


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ('{"a": 1, "b": {"a": 1}}', False),
        ('{"a": 1, "a": 1}', True),
        ('[{"b": [{"c": 1, "d": 2, "c": 3}]}]', True),
        ("12", False),
    ],
)
def test_repeated_keys_of_json_are_noticed(text, repeats):
    assert repeats_keys(text) is repeats


def test_lone_surrogates_of_json_are_replaced():
    text = r'{"\ud800": ["\uDfff", "\ud83d\ude00"]}'
    assert read_json(text) == {"\ufffd": ["\ufffd", "\U0001f600"]}
