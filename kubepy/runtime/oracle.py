"""The oracle of a run: it decides what a cluster leaves open, and notes what it has decided.

What is left open is which of several ready keys is synced next, when a watch event reaches a
controller, whether a write meets a conflict, and where a controller ends and begins anew. Each
decision is a *choice* among a few alternatives, of which the first, 0, disturbs nothing. In a run
of a seed it is a function of the seed, the object and the purpose alone; in a run of *given*
choices all others are 0. So a run can be repeated, and made smaller, choice by choice.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubepy.api.clock import Ids
from kubepy.lazy import blake2b

KEY_BYTES = 5  # of the digest that names a choice: eight characters
SEPARATOR = ":"
BETWEEN = "-"
MOST_POINTS = 5_000
VALUE = "."
NOTHING = "none"  # stands for no choices: ``17:none``
_CHOICE = re.compile(r"([a-z2-7]{8})(?:\.(\d{1,3}))?")
_RUN = re.compile(r"(\d{1,9})(?::(.*))?", re.DOTALL)


class Point(NamedTuple):
    """A place in a run at which something is chosen.

    :ivar number: how often the same words came before.
    """

    words: tuple[str, ...]
    number: int

    def key(self) -> str:
        """Return the name of what is chosen here."""
        text = "\0".join((*self.words, str(self.number)))
        encoded = text.encode("utf-8", "surrogatepass")
        digest = blake2b(encoded, KEY_BYTES)
        name = base64.b32encode(digest).decode()
        return name.lower()


class Choice(NamedTuple):
    """A decision that has disturbed a run.

    :ivar key: names it within its run: a digest of purpose, subject, and how often both came
        before.
    :ivar value: from 1 on; the greater, the more it disturbs.
    :ivar purpose: ``order``, ``late``, ``conflict``, ``crash``.
    """

    key: str
    value: int
    purpose: str
    subject: tuple[str, ...]


class RunName(NamedTuple):
    """The name of a run, by which it can be repeated: ``17``, or ``17:abcdefgh.2-…``.

    :ivar choices: the values of the choices by their keys; None: those of the seed.
    """

    seed: int
    choices: Mapping[str, int] | None = None

    def __str__(self) -> str:
        if self.choices is None:
            return str(self.seed)
        words: list[str] = []
        for key, value in sorted(self.choices.items()):
            if value == 1:
                words.append(key)
            else:
                words.append(f"{key}{VALUE}{value}")
        text = BETWEEN.join(words) or NOTHING
        return f"{self.seed}{SEPARATOR}{text}"


def parse_run(text: str) -> RunName:
    """Read the name of a run. Raises ValueError."""
    match = _RUN.fullmatch(text)
    if match is None:
        raise ValueError("must be a seed such as 17, or what a report calls a replay: 17:…")
    seed = int(match[1])
    text = match[2]
    if text is None:
        return RunName(seed)
    choices: dict[str, int] = {}
    if text == NOTHING:
        return RunName(seed, choices)
    for word in text.split(BETWEEN):
        choice = _CHOICE.fullmatch(word)
        if choice is None or choice[2] in ("0", ""):
            raise ValueError(f"{word!r} is no choice of a run: its name was cut, or mistyped")
        key, value = choice.groups()
        choices[key] = int(value or 1)
    return RunName(seed, choices)


class Oracle:
    """Decides what one run leaves open.

    :param run: its name: the choices that it gives are taken, and else those of its seed.
    :param note: is told of each choice that disturbs the run.
    :ivar taken: the choices that have disturbed the run so far, in their order.
    :ivar points: where something was chosen so far, at most MOST_POINTS of them.
    """

    def __init__(self, run: RunName, note: Callable[[Choice], object] | None = None) -> None:
        self.run = run
        self.taken: list[Choice] = []
        self.points: list[Point] = []
        self._note = note
        self._ids = Ids(run.seed)
        self._given = run.choices
        self._times: Counter[tuple[str, ...]] = Counter()

    def fraction(self, *subject: str | int) -> float:
        """Draw a number from 0 up to but not including 1 that the seed and a subject decide: what
        is so for all of a run. It is no choice, and stays when the run is made smaller."""
        return self._ids.fraction("fuzz", *subject, unseeded="")

    def choose(self, purpose: str, alternatives: int, rate: float, *subject: str) -> int:
        """Return a number from 0 to ``alternatives``: 0 disturbs nothing.

        :param rate: the share of such choices that a seed lets be another than 0.
        :param subject: what it is about, in words that stay the same when the run is made smaller:
            names, and neither versions nor times.
        """
        words = (purpose, *subject)
        number = self._times[words]
        self._times[words] = number + 1
        point = Point(words, number)
        if len(self.points) < MOST_POINTS:
            self.points.append(point)
        if self._given is None:
            value = self._drawn(point, alternatives, rate) if rate > 0 else 0
        elif self._given:
            value = min(self._given.get(point.key(), 0), alternatives)
        else:
            value = 0
        if value:
            choice = Choice(point.key(), value, purpose, subject)
            self.taken.append(choice)
            if self._note is not None:
                self._note(choice)
        return value

    def _drawn(self, point: Point, alternatives: int, rate: float) -> int:
        drawn = self._ids.fraction("choice", *point.words, point.number, unseeded="")
        if drawn >= rate:
            return 0
        # Below the rate, the number is spread evenly over the alternatives.
        share = drawn / rate
        return 1 + int(share * alternatives)
