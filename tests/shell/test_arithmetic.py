"""Arithmetic of the shell."""

from __future__ import annotations

import re

import pytest

from kubepy.shell.arithmetic import ExpressionError, evaluate


def value_of(text: str, variables: dict[str, str] | None = None) -> int:
    values = {} if variables is None else variables
    return evaluate(text, lambda name: values.get(name, ""), values.__setitem__)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("  7 ", 7),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("2 ** 3 ** 2", 512),
        ("1 << 4 | 1", 17),
        ("6 & 3 ^ 1", 3),
        ("~5", -6),
        ("!0 + !7", 1),
        ("- -3", 3),
        ("1 < 2 == 1", 1),
        ("3 > 2 > 1", 0),
        ("0 || 2 && 3", 1),
        ("1 ? 2 : 3", 2),
        ("0 ? 2 : 0 ? 4 : 5", 5),
        ("1, 2, 3", 3),
        ("0x1F", 31),
        ("010", 8),
        ("2#101", 5),
        ("16#ff", 255),
        ("9223372036854775807 + 1", -9223372036854775808),
        ("1 << 63", -9223372036854775808),
    ],
)
def test_expression_has_the_value_that_c_gives_it(text: str, value: int) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "value", "a"),
    [
        ("a = 5", 5, "5"),
        ("a += 3", 5, "5"),
        ("a *= a + 1", 6, "6"),
        ("a++", 2, "3"),
        ("++a * 2", 6, "3"),
        ("a-- - 1", 1, "1"),
        ("a <<= 3", 16, "16"),
        ("0 && (a = 9)", 0, "2"),
        ("1 || (a = 9)", 1, "2"),
        ("1 ? 4 : (a = 9)", 4, "2"),
        ("(a = 3) + a", 6, "3"),
    ],
)
def test_assignment_takes_effect_only_where_it_is_reached(text: str, value: int, a: str) -> None:
    variables = {"a": "2"}
    assert value_of(text, variables) == value
    assert variables["a"] == a


def test_variable_that_names_another_has_its_value() -> None:
    assert value_of("a + c", {"a": "b", "b": "-4"}) == -4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "division by zero"),
        ("5 % (2 - 2)", "division by zero"),
        ("1 +", "expecting primary"),
        ("(1", 'expecting ")"'),
        ("1 2", 'expecting EOF: "2"'),
        ("1 ? 2", 'expecting ":"'),
        ("08", "expecting primary"),
        ("@", "expecting primary"),
        ("++3", "expecting primary"),
    ],
)
def test_expression_that_is_wrong_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(message)):
        value_of(text)


def test_division_by_zero_in_a_part_that_is_not_reached_is_no_error() -> None:
    assert value_of("1 || 1 / 0") == 1


def test_variable_that_names_itself_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="recursion"):
        value_of("a", {"a": "a"})
