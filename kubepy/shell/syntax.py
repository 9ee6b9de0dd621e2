"""The syntax tree of a shell script: plain data, every node with a number in its script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Text(NamedTuple):
    """Characters that stand for themselves; where they are not quoted, patterns in them are
    expanded."""

    text: str
    is_quoted: bool


class Parameter(NamedTuple):
    """``$name``, or ``${name}`` with an operator and a word.

    :ivar operator: ``""``, ``-`` ``=`` ``?`` ``+`` (with ``:`` before it where unset and empty are
        alike), ``#`` ``##`` ``%`` ``%%``, ``/`` ``//``, ``:`` (a part), ``length``, ``^`` ``^^``
        ``,`` ``,,``, ``!`` (the variable that it names).
    :ivar subscript: of an element of an array its number; ``@`` or ``*`` for all of them.
    """

    name: str
    operator: str
    word: Word
    is_quoted: bool
    subscript: Word = ()


class Substitution(NamedTuple):
    """``$(…)``: the number of the list whose output takes its place.

    :ivar is_file: ``<(…)``: the path of a file with the output takes its place.
    """

    body: int
    is_quoted: bool
    is_file: bool = False


class Arithmetic(NamedTuple):
    """``$((…))``."""

    expression: Word
    is_quoted: bool


Part = Text | Parameter | Substitution | Arithmetic
Word = tuple[Part, ...]


class Assignment(NamedTuple):
    """``name=word``, or ``name+=word``.

    :ivar subscript: of an element of an array its number.
    :ivar elements: the words of ``name=(word …)``; None for another assignment.
    """

    name: str
    word: Word
    is_appended: bool = False
    subscript: Word = ()
    elements: tuple[Word, ...] | None = None


class Redirect(NamedTuple):
    """``2> word``: a descriptor, an operator, and what it leads to.

    :ivar operator: ``<`` ``>`` ``>>`` ``>|`` ``<>`` ``<&`` ``>&`` ``&>`` ``&>>``, ``<<`` for a
        here-document whose text is the word, ``<<<`` for a word as input.
    """

    descriptor: int
    operator: str
    word: Word


class CaseItem(NamedTuple):
    """``a|b) list ;;``"""

    patterns: tuple[Word, ...]
    body: int
    falls_through: bool


@dataclass(slots=True)
class ShellCommand:
    """A command.

    :ivar kind: ``list``, ``and_or``, ``pipeline``, ``simple``, ``subshell``, ``group``, ``if``,
        ``loop``, ``for``, ``case``, ``function``, ``arithmetic``, ``condition`` or ``unknown``.
    :ivar children: the numbers of nodes: of a list its commands, of ``if`` conditions and bodies in
        turn, the last one alone for ``else``; of a loop its condition and its body.
    :ivar operators: of a list the separators, of ``and_or`` ``&&`` and ``||`` before all but the
        first; of a pipeline ``!`` where it is negated; of a loop ``until``.
    """

    kind: str
    children: list[int] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    items: list[CaseItem] = field(default_factory=list)
    name: str = ""
    line: int = 1


class Script(NamedTuple):
    """A parsed script.

    :ivar nodes: all commands; ``main`` is the number of the outermost list.
    :ivar error: what is wrong with it, in a shell's words; "" for nothing.
    :ivar is_open: it ends within a here-document.
    :ivar error_line: the line of the error. What comes before it is in ``nodes`` all the same.
    """

    nodes: list[ShellCommand]
    main: int
    error: str = ""
    error_line: int = 0
    is_open: bool = False
