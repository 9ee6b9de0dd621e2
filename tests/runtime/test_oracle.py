"""The oracle: choices that follow from a seed, or are given."""

from __future__ import annotations

import pytest

from kubepy.runtime.oracle import Choice, Oracle, RunName, parse_run


def choices_of(run: RunName, rate: float = 0.3) -> list[int]:
    oracle = Oracle(run)
    return [oracle.choose("late", 5, rate, "worker", "pods", str(n % 7)) for n in range(200)]


def test_choices_follow_from_the_seed() -> None:
    values = choices_of(RunName(17))
    assert values == choices_of(RunName(17))
    assert values != choices_of(RunName(18))
    assert set(values) == {0, 1, 2, 3, 4, 5}
    assert 30 < sum(map(bool, values)) < 90  # of 200, at a rate of 0.3


def test_choice_does_not_depend_on_those_before() -> None:
    """A run that is made smaller keeps the choices that are left."""
    oracle, other = Oracle(RunName(17)), Oracle(RunName(17))
    for _ in range(50):
        other.choose("crash", 5, 0.5, "worker")
    subjects = [str(number) for number in range(50)]
    assert [oracle.choose("late", 5, 0.5, name) for name in subjects] == [
        other.choose("late", 5, 0.5, name) for name in subjects
    ]


def test_given_choices_are_the_only_ones() -> None:
    first = Oracle(RunName(17))
    for number in range(100):
        first.choose("late", 5, 0.2, "worker", str(number))
    given = {choice.key: choice.value for choice in first.taken[::2]}
    again = Oracle(RunName(17, given))
    for number in range(100):
        again.choose("late", 5, 0.2, "worker", str(number))
    assert again.taken == first.taken[::2]


def test_same_subject_is_chosen_for_again() -> None:
    oracle = Oracle(RunName(3))
    values = [oracle.choose("conflict", 1, 0.5, "worker", "a") for _ in range(64)]
    assert 0 < sum(values) < 64
    assert len({choice.key for choice in oracle.taken}) == sum(values)


def test_seed_disturbs_nothing_at_rate_zero() -> None:
    assert not any(choices_of(RunName(17), rate=0.0))


def test_note_is_told_of_what_is_taken() -> None:
    noted: list[Choice] = []
    oracle = Oracle(RunName(17), noted.append)
    for number in range(50):
        oracle.choose("late", 5, 0.3, str(number))
    assert noted == oracle.taken != []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("17", RunName(17)),
        ("17:none", RunName(17, {})),
        ("0:abcdefgh", RunName(0, {"abcdefgh": 1})),
        ("17:abcdefgh.4-zzzz2345", RunName(17, {"abcdefgh": 4, "zzzz2345": 1})),
    ],
)
def test_names_of_runs(text: str, name: RunName) -> None:
    assert parse_run(text) == name
    assert str(name) == text


@pytest.mark.parametrize("text", ["", "x", "-1", "17:", "17:abc", "17:abcdefgh.0", "17:abcdefgh-"])
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a seed|is no choice"):
        parse_run(text)
