"""Taints on the command line, and their changes of a node."""

import pytest

from kubepy.cli.errors import CliError
from kubepy.cli.taint import (
    ChangedTaints,
    TaintChanges,
    change_taints,
    parse_changes,
    require_no_conflict,
)

OLD = [{"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (
            ["a=1:NoSchedule"],
            TaintChanges([{"key": "a", "value": "1", "effect": "NoSchedule"}], []),
        ),
        (["a:NoExecute"], TaintChanges([{"key": "a", "effect": "NoExecute"}], [])),
        (["a-"], TaintChanges([], [{"key": "a"}])),
        (["a=1:NoExecute-"], TaintChanges([], [{"key": "a", "effect": "NoExecute"}])),
    ],
)
def test_parse_changes_valid_args(words: list[str], changes: TaintChanges) -> None:
    assert parse_changes(words) == changes


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a=1", "invalid taint spec: a=1"),
        ("a=1:Sometimes", "invalid taint effect: Sometimes, unsupported taint effect"),
        ("a:b:c", "invalid taint spec: a:b:c"),
        ("a=1=2:NoSchedule", "invalid taint spec: a=1=2:NoSchedule"),
    ],
)
def test_parse_changes_invalid_args_fail(word: str, message: str) -> None:
    with pytest.raises(CliError, match=message):
        parse_changes([word])


def test_new_taint_comes_first() -> None:
    new = {"key": "c", "effect": "NoSchedule"}
    assert change_taints("n", OLD, TaintChanges([new], []), False) == ChangedTaints(
        [new, *OLD], "tainted", []
    )


def test_present_taint_needs_overwrite() -> None:
    other = {"key": "a", "value": "2", "effect": "NoSchedule"}
    with pytest.raises(CliError, match="node n already has a taint"):
        change_taints("n", OLD, TaintChanges([other], []), False)
    assert change_taints("n", OLD, TaintChanges([other], []), True) == ChangedTaints(
        [other, OLD[1]], "modified", []
    )


def test_removing_missing_taint_is_error() -> None:
    gone = [{"key": "a"}, {"key": "z", "effect": "NoExecute"}]
    assert change_taints("n", OLD, TaintChanges([], gone), False) == ChangedTaints(
        [OLD[1]], "untainted", ['taint "z:NoExecute" not found']
    )


def test_adding_and_removing_same_taint_fails() -> None:
    with pytest.raises(CliError, match="can not both modify and remove"):
        require_no_conflict(parse_changes(["a=1:NoSchedule", "a-"]))
    require_no_conflict(parse_changes(["a=1:NoSchedule", "a:NoExecute-"]))
