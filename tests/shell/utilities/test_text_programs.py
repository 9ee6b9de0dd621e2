"""Programs of text beside those of the machine: the same output, messages and exit status."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

from tests.shell.utilities.programs import run_model, run_real

TABLE = Path(__file__).with_name("text_commands.txt")
COMMANDS = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
LINES = [
    *(
        "alpha",
        "beta",
        "Gamma",
        "delta 10",
        "x,y,z",
        "a:b:c:d",
        "10",
        "9",
        "  7 lead",
        "",
        "",
        "3.5",
    ),
    *("-2", "foo bar  baz", "tab\tsep\there", "foo", "foobar", "Foo", "zz top", "1K", "2M"),
    *("v1.10", "v1.9"),
]
TRIES = 4


def some_text(chance: random.Random) -> str:
    """Return a few lines, the last mostly with an end."""
    text = "\n".join(chance.choice(LINES) for _ in range(chance.randrange(12)))
    return f"{text}\n" if text and chance.random() < 0.85 else text


def near_text(text: bytes | str) -> str:
    """Return a text with another first line, and one line more in the middle."""
    lines = str(text).splitlines()
    middle = len(lines) // 2
    return "\n".join(["first", *lines[1:middle], "in the middle", *lines[middle:]]) + "\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_text_program_prints_what_real_one_prints(command: str, tmp_path: Path) -> None:
    """Run one command over random texts, with messages compared, too."""
    argv = shlex.split(command)
    for attempt in range(TRIES):
        chance = random.Random(f"{command} {attempt}")
        files: dict[str, bytes | str] = {name: some_text(chance) for name in "abc"}
        files |= {"bin": bytes(range(256)), "d/e": "foo\nbar\n", "near": near_text(files["a"])}
        stdin = some_text(chance).encode()
        folder = tmp_path / str(attempt)
        folder.mkdir()
        expected = run_real(argv, folder, stdin=stdin, files=files)
        outcome = run_model(argv, stdin=stdin, files=files)
        assert outcome == expected
