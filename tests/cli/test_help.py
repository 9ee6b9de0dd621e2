"""``--help``, ``help`` and ``options``: every command has examples that it can parse."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from kubepy.cli import names
from kubepy.cli.commands import COMMANDS, GROUPS
from kubepy.cli.main import Root
from kubepy.cli.names import OWN_COMMANDS
from kubepy.cli.runtime.command import Command, Entry, load, walk
from kubepy.cli.runtime.options import GLOBAL_FLAGS, Options
from tests.cli.conftest import Kubepy

DOCUMENTED = [(name, entry) for name, entry in walk(COMMANDS) if entry.summary]
SINGLE = ("alpha", "options")  # commands that can be called in one way only


@pytest.mark.parametrize(("name", "entry"), [pytest.param(*one, id=one[0]) for one in DOCUMENTED])
def test_help_shows_examples_that_command_can_read(bare: Kubepy, name: str, entry: Entry) -> None:
    command = load(name.split()[-1], entry)
    shown = bare(*name.split(), "--help")
    assert (shown.err, shown.status) == ("", 0)
    if command.help.startswith("Not supported"):
        return
    lines = [line.strip() for line in command.examples.splitlines() if line.strip()]
    assert len([line for line in lines if line.startswith("#")]) >= (1 if name in SINGLE else 2)
    assert all(line in shown.out for line in lines)
    for line in command.examples.replace("\\\n", " ").splitlines():
        for call in [] if line.strip().startswith("#") else calls(line.strip()):
            assert read_as_far_as_flags(call), call


def calls(line: str) -> list[list[str]]:
    """Return the arguments of each call of kubepy in a line of shell."""
    parts = re.split(r"\| |&& |<\(|\$\(", line.replace(")", " "))
    found = [
        shlex.split(part.partition(" > ")[0].replace('"', ""), comments=True) for part in parts
    ]
    return [words[1:] for words in found if words[:1] == ["kubepy"]]


def read_as_far_as_flags(words: list[str]) -> bool:
    """Report whether the words name a command and flags that it has."""
    command: Command = Root()
    while (at := command.parser().first_word(words)) is not None:
        name = command.canonical(words[at])
        if not name:
            break
        command, words = load(name, command.entries[name]), [*words[:at], *words[at + 1 :]]
    command.parser().parse(words)
    return command.run is not None


def test_option_names_do_not_hide_attributes_of_options() -> None:
    options = Options()
    for name, entry in walk(COMMANDS):
        command = load(name, entry)
        assert [flag.name for flag in command.flags if hasattr(options, flag.name)] == [], name


def test_help_shows_every_group(bare: Kubepy) -> None:
    done = bare("--help")
    assert (done.err, done.status) == ("", 0)
    for title in GROUPS:
        assert f"{title}:" in done.out
    assert bare("help") == done


def test_options_name_every_global_flag(bare: Kubepy) -> None:
    out = bare("options").out
    assert [flag.long for flag in GLOBAL_FLAGS if f"--{flag.long}" not in out] == []
    assert out.startswith("The following options can be passed to any command:\n\n    --as='':\n")
    assert "mean nothing here: --cache-dir," in out


def test_help_of_command_by_its_name(bare: Kubepy) -> None:
    assert bare("help", "get") == bare("get", "--help")
    assert bare("help", "create", "svc", "nodeport") == bare("create", "service", "nodeport", "-h")
    assert bare("help", "get", "pods") == bare("get", "--help")
    unknown = bare("help", "frobnicate")
    assert (unknown.out, unknown.status) == ("", 0)
    assert unknown.err.startswith("Unknown help topic [`frobnicate`]\n")


@pytest.mark.parametrize(
    ("variables", "summary", "sentence"),
    [
        ({"LANG": "C.UTF-8"}, "Modify kubeconfig files", "Mark node as schedulable."),
        (
            {"LANG": "de_DE.UTF8"},
            "Verändere kubeconfig Dateien",
            "Markiere Knoten als schedulable.",
        ),
        (
            {"LANG": "de_DE.UTF8", "LC_MESSAGES": "zh_CN.UTF-8"},
            "修改 kubeconfig 文件",
            "标记节点为可调度。",
        ),
        (
            {"LANG": "de_DE", "LC_MESSAGES": "zh_CN", "LC_ALL": "fr_FR"},
            "Modifier des fichiers kubeconfig",
            "Mark node as schedulable.",
        ),
        ({"LANG": "xx_YY"}, "Modify kubeconfig files", "Mark node as schedulable."),
    ],
)
def test_help_speaks_the_language_of_the_environment(
    bare: Kubepy,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    summary: str,
    sentence: str,
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert f" {summary}\n" in bare("--help").out
    assert bare("uncordon", "--help").out.startswith(f"{sentence}\n")


def test_translations_are_of_texts_that_help_has() -> None:
    texts = {entry.summary for _, entry in walk(COMMANDS)}
    path = Path(names.__file__).with_name("translations.json")
    for language, translations in json.loads(path.read_text(encoding="utf-8")).items():
        assert set(translations) <= texts, language


@pytest.mark.parametrize("name", OWN_COMMANDS)
def test_help_of_own_command_begins_with_an_example(bare: Kubepy, name: str) -> None:
    lines = bare(name, "--help").out.splitlines()
    assert lines[0] == "Examples:"
    assert lines[1].startswith("  # ")
