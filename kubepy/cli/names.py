"""Names: those that the program goes by, the language of its help, and the commands near to a
mistyped one.

``kubepy`` stands in all texts of the code, and becomes the name that the program was called by when
they are printed: ``kubectl`` through a link of that name, ``kubectl kubepy`` as a plugin of
kubectl. Upstream: cobra's ``command.go`` (SuggestionsFor), ``kubectl/pkg/util/i18n``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

KUBEPY = "kubepy"
KUBECTL = "kubectl"
PLUGIN = "kubectl kubepy"
# The commands that kubectl does not have, as help lists them.
OWN_COMMANDS = (
    "init",
    "import",
    "controller",
    "serve",
    "envtest-assets",
    "mcp",
    "clock",
    "plan",
    "why",
    "fuzz",
    "demo",
    "timeline",
    "fork",
    "fsck",
    "trust",
    "git",
)
_SUGGEST_FOR = {
    "delete": ("rm", "remove"),
    "describe": ("inspect",),
    "get": ("list", "ls"),
}  # cobra's SuggestFor
# The largest edit distance at which a command is suggested. kubectl has no "git", which is two
# edits away from "get".
_EDITS = {"git": 1}


def renamed(text: str, program: str) -> str:
    """Return a message or help with the name that the program was called by.

    Only the program itself is renamed ("kubepy get", "kubepy's", its file of completions, an alias
    of it), no path or setting (".kubepy/", "kubepy.dev/…"), and no object of that name: none in
    quotes, and no context.
    """
    if program == KUBEPY or KUBEPY not in text:
        return text
    import re

    # The program does not stand behind these.
    other = rf"(?<!{KUBECTL} )(?<!rename-context )(?<!The command )(?<!found in )(?<![\w./=-])"
    text = re.sub(rf"{other}{KUBEPY}(?= \S|'s|\))", program, text)
    if program == KUBECTL:  # the names in the scripts that it prints for shells
        places = (
            "alias k=",
            "completions/",
            r"completion\.d/",
            "/_",
            "__start_",
            "compdef _",
            "-w ",
        )
        text = re.sub("|".join(rf"(?<={place}){KUBEPY}" for place in places), program, text)

    return text


def translated(text: str) -> str:
    """Return what help says about a command in the language of the environment, if it is among the
    translations.

    Those are of kubectl's languages; of some they are few. A text that ends in a full stop is that
    of its sentence.
    """
    language = next(
        filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), ""
    ).partition(".")[0]
    if language not in ("de_DE", "fr_FR", "it_IT", "ja_JP", "ko_KR", "pt_BR", "zh_CN", "zh_TW"):
        return text
    texts = _translations(language)
    if text in texts:
        return texts[text]
    sentence = texts.get(text.removesuffix("."))
    if sentence is None:
        return text
    return sentence + ("。" if language[:2] in ("ja", "zh") else ".")


@cache
def _translations(language: str) -> dict[str, str]:
    import json

    with open(
        os.path.join(os.path.dirname(__file__), "translations.json"), encoding="utf-8"
    ) as file:
        texts: dict[str, str] = json.load(file)[language]
    return texts


def program_of(path: str) -> str:
    """Return the program's name in the path of a command: ``kubectl`` in
    ``kubectl rollout undo``."""
    if f"{path} ".startswith(f"{PLUGIN} "):
        return PLUGIN
    return path.partition(" ")[0]


def plugin_prefix(program: str) -> str:
    """Return what the names of plugins begin with: ``kubectl-`` for kubectl, else ``kubepy-``.

    kubepy as a plugin of kubectl keeps its own plugins.
    """
    return f"{KUBECTL if program == KUBECTL else KUBEPY}-"


def suggestions(word: str, commands: Iterable[str]) -> list[str]:
    """Return the commands to suggest for a word that names none, in their order.

    Their names are two edits away at most, or begin with the word, or it is another word for them.
    """
    return [
        name
        for name in commands
        if edit_distance(word.lower(), name) <= _EDITS.get(name, 2)
        or name.startswith(word.lower())
        or word.lower() in _SUGGEST_FOR.get(name, ())
    ]


def edit_distance(word: str, other: str) -> int:
    """Return Levenshtein's distance: how many letters to insert, remove or replace."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(word, 1):
        previous = row
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b)))
    return row[-1]
