"""Patterns of the shell."""

from __future__ import annotations

import pytest

from kubepy.shell import globbing
from kubepy.shell.files import FileSystem, Tree

TREE = {
    "task/a.txt": "",
    "task/b.txt": "",
    "task/c.md": "",
    "task/.hidden": "",
    "task/d/x": "",
    "task/d/y.txt": "",
    "task/e/x": "",
    "etc/app.conf": "",
}


@pytest.mark.parametrize(
    ("text", "pattern", "is_match"),
    [
        ("abc", "a*", True),
        ("abc", "*c", True),
        ("abc", "b*", False),
        ("abc", "a?c", True),
        ("ac", "a?c", False),
        ("", "*", True),
        ("a\nb", "a*b", True),
        ("b", "[a-c]", True),
        ("d", "[!a-c]", True),
        ("d", "[^a-c]", True),
        ("-", "[a-]", True),
        ("]", "[]]", True),
        ("x", "[]x]", True),
        ("7", "[[:digit:]]", True),
        ("x7", "[[:alpha:]][[:digit:]]", True),
        ("_", "[[:alnum:]_]", True),
        (" ", "[![:space:]]", False),
        ("*", "\\*", True),
        ("a", "\\*", False),
        ("[", "[", True),
        ("[ab", "[ab", True),
        ("b", "[c-a]", False),
        ("^", "[\\^x]", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("a|b", "a|b", True),
    ],
)
def test_pattern_matches_as_in_a_shell(text: str, pattern: str, is_match: bool) -> None:
    assert globbing.matches(text, pattern) is is_match


def test_quoted_pattern_matches_only_itself() -> None:
    text = "a*?[b]\\"
    assert globbing.matches(text, globbing.quoted(text))
    assert not globbing.matches("axy", globbing.quoted("a*"))


@pytest.mark.parametrize(
    ("pattern", "shortest", "longest"),
    [
        ("*/", "b/c.tar.gz", "c.tar.gz"),
        ("x*", "a/b/c.tar.gz", "a/b/c.tar.gz"),
        ("?", "/b/c.tar.gz", "/b/c.tar.gz"),
    ],
)
def test_prefix_is_removed(pattern: str, shortest: str, longest: str) -> None:
    text = "a/b/c.tar.gz"
    assert globbing.remove_prefix(text, pattern, is_longest=False) == shortest
    assert globbing.remove_prefix(text, pattern, is_longest=True) == longest


def test_suffix_is_removed() -> None:
    text = "a/b/c.tar.gz"
    assert globbing.remove_suffix(text, ".*", is_longest=False) == "a/b/c.tar"
    assert globbing.remove_suffix(text, ".*", is_longest=True) == "a/b/c"
    assert globbing.remove_suffix(text, "z*", is_longest=True) == "a/b/c.tar.g"


def test_matches_are_replaced_once_or_everywhere() -> None:
    assert globbing.replace("banana", "a", "o", is_global=False) == "bonana"
    assert globbing.replace("banana", "a", "\\1", is_global=True) == "b\\1n\\1n\\1"
    assert globbing.replace("banana", "", "x", is_global=True) == "banana"


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.txt", ["a.txt", "b.txt"]),
        ("*", ["a.txt", "b.txt", "c.md", "d", "e"]),
        (".h*", [".hidden"]),
        ("*/x", ["d/x", "e/x"]),
        ("d/*", ["d/x", "d/y.txt"]),
        ("*/", ["d/", "e/"]),
        ("/etc/*.conf", ["/etc/app.conf"]),
        ("/*/app.conf", ["/etc/app.conf"]),
        ("./[ab].*", ["./a.txt", "./b.txt"]),
        ("../et*/*", ["../etc/app.conf"]),
        ("*.none", []),
        ("no/*", []),
    ],
)
def test_paths_of_a_pattern_are_sorted(pattern: str, paths: list[str]) -> None:
    files = FileSystem(Tree.of(TREE))
    assert globbing.paths(pattern, "/task", files) == paths
