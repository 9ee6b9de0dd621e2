"""The stage of a lesson: texts, command lines with what they print, and the key to go on."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import textwrap
from contextlib import chdir
from typing import TYPE_CHECKING, Any

from kubepy.cli.names import KUBEPY
from kubepy.demo import keys
from kubepy.terminal import WIDTH, Colour, Painter, Terminal, width_of

if TYPE_CHECKING:
    from kubepy.cli.runtime.factory import Factory

STATE_VARIABLE = "KUBEPY_STATE"
STATE = "state"  # the state folder, in the folder of the lesson
PROMPT = "Enter: go on   q: quit"


class Quit(Exception):
    """Somebody has seen enough."""


class LessonStage:
    """The folder and the streams of a lesson.

    :param folder: in which the commands run, as in a shell that has gone there.
    :param waits: for a key between two steps.
    """

    def __init__(self, factory: Factory, folder: str, *, waits: bool) -> None:
        self.folder = folder
        self._factory = factory
        self._waits = waits
        self._paint = Painter(factory.stdout)
        self._width = min(width_of(factory.stdout), WIDTH)

    def title(self, text: str) -> None:
        """Begin a step."""
        self._factory.print(f"\n{self._paint(text, Colour.BOLD, Colour.CYAN)}\n")

    def say(self, text: str) -> None:
        """Print a paragraph, as wide as the terminal, 80 columns at most."""
        self._factory.print(textwrap.fill(text, self._width, break_on_hyphens=False) + "\n")

    def list(self, lines: list[str]) -> None:
        """Print lines as they are, indented."""
        self._factory.print("".join(f"  {line}\n" for line in lines))

    def note_line(self, line: str) -> None:
        """Print a command line that concerns the shell alone."""
        self._factory.print(self._paint(f"$ {line}", Colour.BOLD))

    def show_file(self, name: str) -> None:
        """Print a file of the folder, as ``cat`` does."""
        self.note_line(f"cat {name}")
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            self._factory.print(file.read())

    def write_file(self, name: str, text: str) -> None:
        """Make a file in the folder."""
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, line: str) -> int:
        """Print a command line of kubepy and run it; returns its exit status."""
        self.note_line(line)
        status = self._run(line, self._factory.stdout, self._factory.stderr)
        self._factory.print()
        return status

    def document(self, line: str) -> Any:
        """Run a command line that prints JSON, without showing it; returns what it prints."""
        output = io.StringIO()
        self._run(line, output, io.StringIO())
        return json.loads(output.getvalue())

    def _run(self, line: str, stdout: Any, stderr: Any) -> int:
        program, *words = shlex.split(line)
        assert program == KUBEPY
        kept = os.environ.get(STATE_VARIABLE)
        os.environ[STATE_VARIABLE] = STATE
        try:
            with chdir(self.folder):
                return self._factory.main(words, stdin=io.StringIO(), stdout=stdout, stderr=stderr)
        finally:
            if kept is None:
                del os.environ[STATE_VARIABLE]
            else:
                os.environ[STATE_VARIABLE] = kept

    def pause(self) -> None:
        """Wait for a key, where somebody is there. Raises Quit."""
        if not self._waits:
            return
        terminal = Terminal.of(self._factory.stdout)
        with keys.single_keys(self._factory.stdin) as read_key:
            terminal.write(self._paint(PROMPT, Colour.DIM))
            terminal.flush()
            wants_more = keys.wait_to_go_on(read_key)
        back = terminal.controls("\r")
        terminal.write(f"{back}{'':<{len(PROMPT)}}{back}")
        terminal.flush()
        if not wants_more:
            raise Quit


def is_attended(factory: Factory) -> bool:
    """Return whether somebody sits at a terminal who can press a key."""
    return factory.stdout.isatty() and factory.stdin is sys.stdin and factory.stdin.isatty()
