"""Integers in strings, parsed as Go's ``strconv`` does."""

from __future__ import annotations

import pytest

from kubepy.api.values.gonumbers import NumberError, atoi, int_or_none, parse_int, parse_uint

LONG = "1" * 5000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        ("0" * 5000 + "7", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_parse_int_reads_decimal_integers(text: str, value: int) -> None:
    assert parse_int(text) == value


@pytest.mark.parametrize(
    "text", ["", "-", "--1", "1_0", " 1", "1\n", "²", "٣", "0x1", "1.0", "1e3"]
)
def test_parse_int_anything_else_is_invalid_syntax(text: str) -> None:
    with pytest.raises(NumberError, match="invalid syntax"):
        parse_int(text)
    assert int_or_none(text) is None


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("9223372036854775808", 64),
        ("-9223372036854775809", 64),
        ("2147483648", 32),
        (LONG, 64),
        (f"-{LONG}", 32),
    ],
)
def test_parse_int_too_large_number_is_out_of_range(text: str, bits: int) -> None:
    with pytest.raises(NumberError, match="value out of range"):
        parse_int(text, bits)


def test_parse_uint_takes_no_sign() -> None:
    assert parse_uint("65535", 16) == 65535
    for text in ("-1", "+1"):
        with pytest.raises(NumberError, match="invalid syntax"):
            parse_uint(text)
    with pytest.raises(NumberError, match="value out of range"):
        parse_uint("65536", 16)


def test_error_names_function_and_quotes_text() -> None:
    with pytest.raises(NumberError) as error:
        atoi("a\x1b")
    assert str(error.value) == r'strconv.Atoi: parsing "a\x1b": invalid syntax'
