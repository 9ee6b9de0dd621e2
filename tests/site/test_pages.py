"""Pages of docs for a reader with an empty folder show what happens there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forkserver import ForkServer
from tests.site import player

DOCS = player.ROOT / "docs"
SEATS = sorted((DOCS / "seats").glob("*.md"))
PAGES = [DOCS / "index.md", *SEATS]
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", TROUBLESHOOTING, re.M | re.S))
# Sections about what cannot be brought about at will.
WITHOUT_COMMANDS = {"internal error: …", "this command needs the extra …"}


def check(text: str, folder: Path, fork_server: ForkServer) -> int:
    """Play a text; return how many commands it has."""
    count = 0
    for step, printed in player.play(text, folder, fork_server.program):
        count += 1
        assert player.is_as_shown(step.shown, printed), f"$ {step.command}\n{printed}"
    return count


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_shows_what_happens(page: Path, tmp_path: Path, fork_server: ForkServer) -> None:
    assert check(page.read_text(), tmp_path, fork_server) > 0


@pytest.mark.parametrize("title", SECTIONS)
def test_message_comes_and_remedy_helps(
    title: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    count = check(SECTIONS[title], tmp_path, fork_server)
    assert (count > 0) == (title not in WITHOUT_COMMANDS)


@pytest.mark.parametrize("title", SECTIONS)
def test_message_of_title_stands_in_output(title: str) -> None:
    shown = " ".join(lines_of(SECTIONS[title]))
    parts = [part.strip() for part in title.split("…") if part.strip()]
    for part in parts if title not in WITHOUT_COMMANDS else ():
        assert part.removesuffix(":") in shown or part in PARAPHRASED


# Parts of titles that are not the program's words: what stands between them differs.
PARAPHRASED = {
    "Conflict: the object has been modified",
    "another process",
    ": the controllers run there",
}


def lines_of(section: str) -> Iterator[str]:
    for block in player.BLOCK.finditer(section):
        if block["language"] == "console":
            for step in player.steps_of(block["text"]):
                yield from step.shown.splitlines()


@pytest.mark.parametrize("page", SEATS, ids=lambda page: page.stem)
def test_seat_opens_with_words_of_its_own(page: Path) -> None:
    """A page a seat: its title, a quotation, and before long a command."""
    text = page.read_text()
    assert re.match(r"# My [\w' ]+\n\n> \"", text)
    assert "\n## The way on\n" in text


def test_player_tells_other_output(tmp_path: Path) -> None:
    page = "```console\n$ echo two; echo lines\none\nlines\n$ printf 'a\\nb\\nc\\n'\na\n...\n```\n"
    played = list(player.play(page, tmp_path, "/usr/bin/true"))
    told = [player.is_as_shown(step.shown, printed) for step, printed in played]
    assert told == [False, True]
