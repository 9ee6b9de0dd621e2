"""The parser of shell scripts."""

from __future__ import annotations

import pytest

from kubepy.shell.parser import parse
from kubepy.shell.syntax import Arithmetic, Parameter, Script, ShellCommand, Substitution, Text


def commands(script: Script) -> list[ShellCommand]:
    """Return the commands of the outermost list."""
    return [script.nodes[number] for number in script.nodes[script.main].children]


def only_command(text: str) -> ShellCommand:
    (command,) = commands(parse(text))
    return command


def words_of(text: str) -> list[str]:
    """Return the words of a simple command whose words are plain text."""
    words = []
    for word in only_command(text).words:
        texts = [part.text for part in word if isinstance(part, Text)]
        assert len(texts) == len(word)
        words.append("".join(texts))
    return words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo a  b\tc", ["echo", "a", "b", "c"]),
        ("echo 'a b'c\"d e\"", ["echo", "a bcd e"]),
        ("echo a\\ b \\$x \\\\", ["echo", "a b", "$x", "\\"]),
        ('echo "a\\"b" "\\q" \'\\\'', ["echo", 'a"b', "\\q", "\\"]),
        ("echo a\\\nb # comment", ["echo", "ab"]),
        ("echo a#b '#c'", ["echo", "a#b", "#c"]),
        ("echo if then { }", ["echo", "if", "then", "{", "}"]),
        ("echo '' \"\"", ["echo", "", ""]),
        ("echo $'a\\tb\\'c'", ["echo", "a\tb'c"]),
        ("echo a=b", ["echo", "a=b"]),
        ("echo $ $% 5$", ["echo", "$", "$%", "5$"]),
    ],
)
def test_simple_command_is_split_into_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_pipe_binds_tighter_than_and_or() -> None:
    command = only_command("a && b | c || ! d")
    script = parse("a && b | c || ! d")
    assert command.kind == "and_or"
    assert command.operators == ["&&", "||"]
    kinds = [script.nodes[number].kind for number in command.children]
    assert kinds == ["simple", "pipeline", "pipeline"]
    assert script.nodes[command.children[2]].operators == ["!"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("if a; then b; elif c; then d; else e; fi", "if"),
        ("while a; do b; done > f", "loop"),
        ("until a\ndo b\ndone", "loop"),
        ("for x in 1 2; do a; done", "for"),
        ("for x; do a; done", "for"),
        ("for x\nin 1\ndo a; done", "for"),
        ("for ((i = 0; i < 3; i++)); do a; done", "arithmetic_for"),
        ("case $x in a|b) c ;; (*) d; esac", "case"),
        ("case x in esac", "case"),
        ("f() { a; }", "function"),
        ("f () (a)", "function"),
        ("function f { a; }", "function"),
        ("{ a; }", "group"),
        ("(a; b)", "subshell"),
        ("((1 + 2))", "arithmetic"),
        ("((a) | (b))", "subshell"),
        ("[[ -n $x && $y == a* ]]", "condition"),
        ("a | b", "pipeline"),
        ("x=1", "simple"),
    ],
)
def test_compound_command_has_its_kind(text: str, kind: str) -> None:
    script = parse(text)
    assert script.error == ""
    assert only_command(text).kind == kind


def test_list_keeps_its_separators() -> None:
    script = parse("a; b & c\nd")
    assert script.nodes[script.main].operators == [";", "&", ";", ";"]


def test_assignments_before_a_command_are_apart_from_its_words() -> None:
    command = only_command("A=1 B+='x y' cmd C=3")
    names = [(each.name, each.is_appended) for each in command.assignments]
    assert names == [("A", False), ("B", True)]
    assert len(command.words) == 2


def test_redirects_have_descriptor_and_operator() -> None:
    command = only_command("cmd <in >out 2>>err 2>&1 &>all 3<&- <<<word >|x")
    redirects = [(each.descriptor, each.operator) for each in command.redirects]
    assert redirects == [
        (0, "<"), (1, ">"), (2, ">>"), (2, ">&"), (1, "&>"), (3, "<&"), (0, "<<<"), (1, ">|"),
    ]  # fmt: skip


def test_here_documents_of_one_line_are_read_in_their_order() -> None:
    script = parse("cat <<A <<-'B'\none $x\nA\n\ttwo $x\n\tB\necho end")
    first, second = commands(script)[0].redirects
    assert first.word == (
        Text("one ", is_quoted=True),
        Parameter("x", "", (), is_quoted=True),
        Text("\n", is_quoted=True),
    )
    assert second.word == (Text("two $x\n", is_quoted=True),)
    assert len(commands(script)) == 2


@pytest.mark.parametrize(
    ("text", "name", "operator"),
    [
        ("$x", "x", ""),
        ("${x}", "x", ""),
        ("${x:-a}", "x", ":-"),
        ("${x-a}", "x", "-"),
        ("${x%%.*}", "x", "%%"),
        ("${x#*/}", "x", "#"),
        ("${#x}", "x", "length"),
        ("${#}", "#", ""),
        ("$#", "#", ""),
        ("${10}", "10", ""),
        ("$1", "1", ""),
        ("${x//a/b}", "x", "//"),
        ("${x:1:2}", "x", ":"),
        ("${!x}", "x", "!"),
        ("${x^^}", "x", "^^"),
        ("$?", "?", ""),
    ],
)
def test_parameter_has_name_and_operator(text: str, name: str, operator: str) -> None:
    (part,) = only_command(f"echo {text}").words[1]
    assert isinstance(part, Parameter)
    assert (part.name, part.operator) == (name, operator)


def test_substitutions_nest_in_quotes_and_in_one_another() -> None:
    script = parse('echo "$(a "$(b \')\')" $((1 + $(c))))" `d \\`e\\``')
    assert script.error == ""
    (quoted,) = commands(script)[0].words[1]
    assert isinstance(quoted, Substitution)
    inner = script.nodes[script.nodes[quoted.body].children[0]]
    assert isinstance(inner.words[1][0], Substitution)
    assert isinstance(inner.words[2][0], Arithmetic)
    (backquoted,) = commands(script)[0].words[2]
    assert isinstance(backquoted, Substitution)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("if true; then echo", "end of file unexpected", 1),
        ("echo a\nfi", '"fi" unexpected', 2),
        ("echo 'abc", "Unterminated quoted string", 1),
        ('echo\n"abc', "Unterminated quoted string", 2),
        ("a || && b", '"&&" unexpected', 1),
        ("(a", "end of file unexpected", 1),
        ("a )", '")" unexpected', 1),
        ("while true; done", '"done" unexpected', 1),
        ("for 1x in a; do b; done", "Bad for loop variable", 1),
        ("echo ${x", "Missing '}'", 1),
        ("echo ${x!y}", "Bad substitution", 1),
        ("case x in a) b", "end of file unexpected", 1),
        ("cat <", "end of file unexpected", 1),
        ("; a", '";" unexpected', 1),
        ("echo $(a", "end of file unexpected", 1),
        ("{ a; ", "end of file unexpected", 1),
    ],
)
def test_script_that_is_wrong_has_an_error_with_its_line(
    text: str, message: str, line: int
) -> None:
    script = parse(text)
    assert (script.error, script.error_line) == (message, line)


def test_commands_before_an_error_are_kept() -> None:
    script = parse("echo one\necho two\nfi\necho three")
    assert len(commands(script)) == 2


@pytest.mark.parametrize(
    "text",
    ["echo > >(cat)", "select x in a; do b; done", "time ls", "echo ${!x[1]}"],
)
def test_construct_of_bash_that_is_not_known_is_unknown(text: str) -> None:
    script = parse(f"echo before\n{text}")
    assert script.error == ""
    assert [command.kind for command in commands(script)] == ["simple", "unknown"]


def test_commands_know_their_lines() -> None:
    script = parse("a\n\nb \\\n c\nif d\nthen e\nfi")
    assert [command.line for command in commands(script)] == [1, 3, 5]
