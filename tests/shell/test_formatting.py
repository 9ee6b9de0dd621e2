"""The formats of ``printf`` and the escapes of ``echo``."""

from __future__ import annotations

import pytest

from kubepy.shell.formatting import FormatError, format_text, unescape


@pytest.mark.parametrize(
    ("pattern", "values", "text"),
    [
        ("plain\\n", [], "plain\n"),
        ("%s-%s\\n", ["a", "b"], "a-b\n"),
        ("%s\\n", ["a", "b"], "a\nb\n"),
        ("%s %d\\n", ["a"], "a 0\n"),
        ("none\\n", ["a", "b"], "none\n"),
        ("%5s|%-5s|%.2s", ["ab", "cd", "efg"], "   ab|cd   |ef"),
        ("%*d", ["5", "42"], "   42"),
        ("%-*s|", ["4", "a"], "a   |"),
        ("%.*s", ["2", "abc"], "ab"),
        ("%05d %+d % d", ["42", "7", "7"], "00042 +7  7"),
        ("%05d", ["-42"], "-0042"),
        ("%.3d", ["7"], "007"),
        ("%x %X %o %#x %#o", ["255", "255", "8", "255", "8"], "ff FF 10 0xff 010"),
        ("%x", ["-1"], "ffffffffffffffff"),
        ("%u", ["3"], "3"),
        ("%c%c", ["abc", "x"], "ax"),
        ("%d %d", ["0x10", "010"], "16 8"),
        ("%d", ["'A"], "65"),
        ("%.2f %5.1f", ["3.14159", "2"], "3.14   2.0"),
        ("%e", ["12345.678"], "1.234568e+04"),
        ("%g", ["0.0001"], "0.0001"),
        ("%07.2f", ["-1.5"], "-001.50"),
        ("100%%", [], "100%"),
        ("%b", ["a\\tb\\0101"], "a\tbA"),
        ("%b%s", ["a\\cb", "x"], "a"),
        ("%s", ["a\\tb"], "a\\tb"),
        ("\\101\\x42\\\\", [], "AB\\"),
        ("a\\cb%s", ["x"], "a"),
        ("%q", ["it's"], "'it'\\''s'"),
        ("%4s|", ["é"], "  é|"),
    ],
)
def test_format_prints_its_values(pattern: str, values: list[str], text: str) -> None:
    assert format_text(pattern, values) == (text, [])


def test_value_that_is_no_number_is_a_problem_and_counts_as_far_as_it_goes() -> None:
    assert format_text("%d %d\n", ["12ab", "x"]) == (
        "12 0\n",
        ["12ab: not completely converted", "x: expected numeric value"],
    )


@pytest.mark.parametrize("pattern", ["%", "a%z", "%5"])
def test_format_that_is_wrong_is_an_error(pattern: str) -> None:
    with pytest.raises(FormatError):
        format_text(pattern, ["1"])


@pytest.mark.parametrize(
    ("text", "unescaped", "is_cut"),
    [
        ("a\\nb\\t", "a\nb\t", False),
        ("a\\cb", "a", True),
        ("\\0101\\060", "A0", False),
        ("\\q\\", "\\q\\", False),
        ("\\\\n", "\\n", False),
        ("\\x41", "A", False),
        ("\\0303\\0251", "é", False),
    ],
)
def test_escapes_are_undone(text: str, unescaped: str, is_cut: bool) -> None:
    assert unescape(text) == (unescaped, is_cut)
