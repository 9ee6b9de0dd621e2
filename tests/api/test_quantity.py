"""Quantities are parsed, compared and printed as upstream does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubepy.api.values.quantity import Quantity, QuantityError, is_quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Mi", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("5.0", "5"),
        ("-5m", "-5m"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1e4", "10e3"),
        ("5e-3", "5e-3"),
        ("1.5Gi", "1536Mi"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("100Ki", "100Ki"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("0.5Mi", "512Ki"),
        ("0.0001Ki", "102400u"),
        ("0.1m", "100u"),
        ("0.1n", "1n"),
        ("9Ei", "9223372036854775807"),
        ("1E", "1E"),
        ("100E", "100E"),
        ("128Mi", "128Mi"),
        ("1024Mi", "1Gi"),
        ("2000k", "2M"),
    ],
)
def test_quantity_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


@pytest.mark.parametrize("text", ["+5", "01", "5.", "1e0", "1.500", "1.234k", "1E3", "+12Mi"])
def test_text_canonical_for_upstream_is_kept(text: str) -> None:
    assert str(Quantity.parse(text)) == text


def test_json_numbers_are_quantities_too() -> None:
    assert [str(Quantity.parse(number)) for number in (2, 0.5, 1e-7, 100000000000000000000.0)] == [
        "2", "500m", "100e-9", "100e18",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "lots",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            " 1",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "1 Gi",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "1.2.3",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("1ki", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("1e999999999", "unable to parse quantity's suffix"),
        ("1e" + "1" * 5000, "unable to parse quantity's suffix"),
        ("1" * 5000, "unable to parse numeric part of quantity"),
    ],
)
def test_invalid_quantity_raises_upstreams_error(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert str(caught.value) == message
    assert not is_quantity(text)


def test_quantities_of_different_suffixes_compare_by_amount() -> None:
    assert Quantity.parse("1Gi") == Quantity.parse("1073741824")
    assert Quantity.parse("100m") < Quantity.parse("0.2") < Quantity.parse("1")
    assert {Quantity.parse("1k"), Quantity.parse("1000")} == {Quantity.parse("1e3")}


def test_sums_keep_family_of_first_amount_that_is_not_zero() -> None:
    assert str(Quantity.parse("1Gi") + Quantity.parse("1M")) == "1074741824"
    assert str(Quantity.parse("512Mi") + Quantity.parse("512Mi")) == "1Gi"
    assert str(Quantity(0) + Quantity.parse("512Mi")) == "512Mi"
    assert str(Quantity.parse("1") - Quantity.parse("250m")) == "750m"
    assert str(Quantity.parse("1") - Quantity.parse("2")) == "-1"


def test_values_are_rounded_up() -> None:
    assert (Quantity.parse("1500m").value(), Quantity.parse("1500u").milli_value()) == (2, 2)
    assert (Quantity.parse("-1500m").value(), Quantity.of(3).milli_value()) == (-1, 3000)


def test_values_are_at_most_int64() -> None:
    assert (Quantity.parse("1e400").value(), Quantity.parse("-1e400").milli_value()) == (
        2**63 - 1,
        -(2**63),
    )


@given(
    st.integers(0, 10**6),
    st.integers(0, 999),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "e3", "e-3"]),
)
def test_canonical_form_parses_to_same_amount_and_form(whole: int, part: int, suffix: str) -> None:
    factors = {
        "": 1,
        "m": Fraction(1, 1000),
        "k": 1000,
        "M": 10**6,
        "Ki": 1024,
        "Mi": 2**20,
        "e3": 1000,
        "e-3": Fraction(1, 1000),
    }
    quantity = Quantity.parse(f"{whole}.{part:03d}{suffix}")
    assert quantity.nanos == (whole + Fraction(part, 1000)) * factors[suffix] * 10**9
    assert Quantity.parse(str(quantity)) == quantity
    assert str(Quantity.parse(str(quantity))) == str(quantity)
