"""Go's regular expressions in Python: matches, and Go's errors for invalid patterns."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.apiserver.client import Client


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("^(?i)(Trace|Debug)?$", ["trace", "DEBUG", ""], ["trac", "trace\n"]),
        ("a(?i)b|c", ["aB", "C"], ["AB"]),
        ("(a(?i)b)c", ["aBc"], ["aBC"]),
        ("(?i:x)y", ["Xy"], ["XY"]),
        ("(?i-s:a.b)", ["A.B"], ["a\nb"]),
        ("^(?-s).$", ["a"], ["\n"]),
        ("(?s)^.$", ["\n"], [""]),
        ("(?m)^b$", ["a\nb\nc", "b"], ["ab"]),
        ("^a$", ["a"], ["a\n"]),
        ("(?U)a+", ["aa"], ["b"]),
        (r"^\(?=1\)?$", ["(=1)", "=1"], ["1"]),
        (r"^\Qa.b*\E+$", ["a.b***"], ["a.b", "aXb*"]),
        (r"^[[:alpha:]_][[:^digit:]]$", ["ab", "_-"], ["1b", "a1"]),
        (r"^[]a^-]+$", ["]a^-"], ["b"]),
        (r"^[a\]\-\d]+$", ["a]-7"], ["\\"]),
        (r"^[[a]$", ["[", "a"], ["[a"]),
        (r"^[^\S]$", [" ", "\t"], ["a", "\v"]),
        (r"^\pL\p{Lu}\P{L}$", ["äÄ1"], ["ääa"]),
        (r"^\x41\x{1F600}\101\t$", ["A😀A\t"], ["A"]),
        ("^a{2}b{1,}c{0,1}$", ["aab", "aabbc"], ["ab"]),
        ("^a{,2}$", ["a{,2}"], ["aa"]),
        ("^x{$", ["x{"], ["x"]),
        ("^(?P<year>[0-9]{4})-(?<month>[0-9]+)$", ["2026-11"], ["26-11"]),
        (r"^a+?b*?$", ["aab"], ["b"]),
        ("^[+--]$", ["+", ",", "-"], ["."]),
        (r"^\p{Greek}\p{Any}$", ["αb"], ["ab"]),
        ("^[(?<]>$", ["(>", "<>"], [">"]),
        (r"^\Q\C\E$", ["\\C"], ["C"]),
        ("^\ud800$", ["\udfff", "\ufffd"], ["?"]),
        (r"^\pL{1000}$", ["é" * 1000], ["é" * 999]),
    ],
)
def test_pattern_matches_as_in_go(pattern: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_go(pattern)
    assert [text for text in matching + other if compiled.search(text)] == matching


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[ab", "missing closing ]: `[ab`"),
        ("x[z-a]", "invalid character class range: `z-a`"),
        ("[[:word2:]]", "invalid character class range: `[:word2:]`"),
        (r"\p{Vowel}", r"invalid character class range: `\p{Vowel}`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|+", "missing argument to repetition operator: `+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}+?b", "invalid nested repetition operator: `{2}+?`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a(?!b)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("(?:a{100}){11}?", "invalid repeat count: `{11}?`"),
        ("a{1001}?", "invalid repeat count: `{1001}`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"a\x{", r"invalid escape sequence: `\x{`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        ("(?P<é>a)", "invalid named capture: `(?P<é>`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(" * 1000 + ")" * 1000, "expression nests too deeply: `" + "(" * 1000 + ")" * 1000 + "`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_pattern_refused_by_go_raises_gos_error(pattern: str, why: str) -> None:
    with pytest.raises(GoRegexError) as error:
        compile_go(pattern)
    assert str(error.value) == f"error parsing regexp: {why}"


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("[0-9]+", "a1b22c", ["1", "22"]),
        ("x*", "éxxé", ["", "xx", ""]),
        ("", "éa", ["", "", ""]),
        ("é|$", "aé", ["é"]),
        (".", "a\ud800", ["a", "\ufffd"]),
    ],
)
def test_find_all_returns_gos_matches(pattern: str, text: str, matches: list[str]) -> None:
    assert compile_go(pattern).find_all(text) == matches
    assert compile_go(pattern).find_all(text, 1) == matches[:1]
    assert compile_go(pattern).find_all(text, 0) == []
    assert compile_go(pattern).find(text) == matches[0]


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_matching_takes_time_linear_in_text(pattern: str) -> None:
    start = monotonic()
    assert not compile_go(pattern).search("a" * 1_000_000 + "b")
    assert monotonic() - start < 1


def test_definition_accepts_patterns_of_go(client: Client) -> None:
    def definition(pattern: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"level": {"type": "string", "pattern": pattern}}}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "logs.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "logs", "kind": "Log"},
                "versions": [version],
            },
        }

    with pytest.raises(
        Status,
        match=r"must be a valid regular expression, but isn't: error parsing regexp: invalid or "
        r"unsupported Perl syntax: `\(\?!`",
    ):
        client.create("customresourcedefinitions.apiextensions.k8s.io", definition("^(?!Trace)"))
    client.create(
        "customresourcedefinitions.apiextensions.k8s.io", definition("^(?i)(Trace|Debug)?$")
    )
