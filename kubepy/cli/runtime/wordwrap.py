"""Wrapping at words as ``github.com/mitchellh/go-wordwrap`` does, which kubectl uses."""

from __future__ import annotations


def wrap(text: str, limit: int) -> str:
    """Lines of at most ``limit`` characters. Lines stay apart; words that are too long stay whole."""
    return "\n".join(_wrap_line(line, limit) for line in text.split("\n"))


def _wrap_line(line: str, limit: int) -> str:
    done, width = "", 0
    space, word = "", ""
    for char in line:
        if char.isspace() and char != "\N{NO-BREAK SPACE}":
            if not space or word:
                done, width = done + space + word, width + len(space) + len(word)
                space, word = "", ""
            space += char
            continue
        word += char
        if width + len(space) + len(word) > limit and len(word) < limit:
            done, width, space = done + "\n", 0, ""
    if word or width + len(space) <= limit:
        done += space + word
    return done
