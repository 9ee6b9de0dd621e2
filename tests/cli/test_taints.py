"""Taints as words, and what they change."""

import pytest

from kubepy.cli.errors import CliError
from kubepy.cli.taint import ChangedTaints, TaintChanges, change_taints, parse_changes, require_no_conflict

OLD = [{"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]


@pytest.mark.parametrize(("words", "changes"), [
    (["a=1:NoSchedule"], TaintChanges([{"key": "a", "value": "1", "effect": "NoSchedule"}], [])),
    (["a:NoExecute"], TaintChanges([{"key": "a", "effect": "NoExecute"}], [])),
    (["a-"], TaintChanges([], [{"key": "a"}])),
    (["a=1:NoExecute-"], TaintChanges([], [{"key": "a", "effect": "NoExecute"}])),
])
def test_words_that_change_taints(words: list[str], changes: TaintChanges) -> None:
    assert parse_changes(words) == changes


@pytest.mark.parametrize(("word", "message"), [
    ("a=1", "invalid taint spec: a=1"),
    ("a=1:Sometimes", "invalid taint effect: Sometimes, unsupported taint effect"),
    ("a:b:c", "invalid taint spec: a:b:c"),
    ("a=1=2:NoSchedule", "invalid taint spec: a=1=2:NoSchedule"),
])
def test_words_that_are_no_taints(word: str, message: str) -> None:
    with pytest.raises(CliError, match=message):
        parse_changes([word])


def test_a_new_taint_goes_before_those_that_are_there() -> None:
    new = {"key": "c", "effect": "NoSchedule"}
    assert change_taints("n", OLD, TaintChanges([new], []), False) == ChangedTaints([new, *OLD], "tainted", [])


def test_a_taint_that_is_there_is_only_overwritten_on_demand() -> None:
    other = {"key": "a", "value": "2", "effect": "NoSchedule"}
    with pytest.raises(CliError, match="node n already has a taint"):
        change_taints("n", OLD, TaintChanges([other], []), False)
    assert change_taints("n", OLD, TaintChanges([other], []), True) == ChangedTaints([other, OLD[1]], "modified", [])


def test_taking_off_what_is_not_there_is_told() -> None:
    gone = [{"key": "a"}, {"key": "z", "effect": "NoExecute"}]
    assert change_taints("n", OLD, TaintChanges([], gone), False) == ChangedTaints(
        [OLD[1]], "untainted", ['taint "z:NoExecute" not found'])


def test_nothing_is_put_on_and_taken_off_at_once() -> None:
    with pytest.raises(CliError, match="can not both modify and remove"):
        require_no_conflict(parse_changes(["a=1:NoSchedule", "a-"]))
    require_no_conflict(parse_changes(["a=1:NoSchedule", "a:NoExecute-"]))
