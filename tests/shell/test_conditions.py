"""The conditions of ``test`` and ``[[``."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta

import pytest

from kubepy.shell.conditions import Condition, ConditionError
from kubepy.shell.files import FileSystem, Mount, Tree

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def files() -> FileSystem:
    tree = Tree.of({"task/full": "text", "task/empty": "", "task/d/x": ""})
    box = FileSystem(tree, [Mount("/fixed", Tree.of({"f": "x"}), read_only=True)])
    box.symlink("full", "/task/link", now=NOW)
    box.set_mode("/task/full", 0o755)
    box.set_time("/task/empty", NOW)
    box.set_time("/task/full", NOW + timedelta(hours=1))
    return box


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("", False),
        ("word", True),
        ("''", False),
        ("-n", True),
        ("!", True),
        ("-n ''", False),
        ("-z ''", True),
        ("! -z x", True),
        ("! x", False),
        ("a = a", True),
        ("a != a", False),
        ("! = !", True),
        ("-n = -n", True),
        ("( = (", True),
        ("a = b -o c = c", True),
        ("a = a -a c = d", False),
        ("! a = b", True),
        ("! a = b -a x", True),
        ("'(' a = a ')'", True),
        ("'(' a = b ')' -o x", True),
        ("5 -gt 4", True),
        ("-3 -lt ' 2 '", True),
        ("007 -eq 7", True),
        ("5 -ge 6", False),
        ("-f full", True),
        ("-f d", False),
        ("-d d", True),
        ("-e none", False),
        ("-s full", True),
        ("-s empty", False),
        ("-x full", True),
        ("-x empty", False),
        ("-L link", True),
        ("-L full", False),
        ("-w full", True),
        ("-w /fixed/f", False),
        ("-r /fixed/f", True),
        ("full -nt empty", True),
        ("full -ot empty", False),
        ("full -nt none", True),
        ("link -ef full", True),
        ("-e ''", False),
        ("b '>' a", True),
    ],
)
def test_condition_holds_as_in_a_shell(condition: str, holds: bool, files: FileSystem) -> None:
    assert Condition(shlex.split(condition), files, "/task").holds() is holds


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a -eq 1", "Illegal number: a"),
        ("1.5 -gt 1", "Illegal number: 1.5"),
        ("a b c", "b: unexpected operator"),
        ("-q x", "-q: unexpected operator"),
        ("a = b c d e", "c: unexpected operator"),
    ],
)
def test_condition_that_is_wrong_is_an_error(
    condition: str, message: str, files: FileSystem
) -> None:
    with pytest.raises(ConditionError) as caught:
        Condition(shlex.split(condition), files, "/task").holds()
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("abc == a*", True),
        ("abc != *b*", False),
        ("abc = abc && -z ''", True),
        ("a == b || c == c", True),
        ("abc =~ ^a.c$", True),
        ("v1.20 =~ ^v[0-9]+", True),
        ("x =~ [[:digit:]]", False),
        ("! ( a == b )", True),
    ],
)
def test_extended_condition_knows_patterns(condition: str, holds: bool, files: FileSystem) -> None:
    words = shlex.split(condition)
    assert Condition(words, files, "/task", is_extended=True).holds() is holds
