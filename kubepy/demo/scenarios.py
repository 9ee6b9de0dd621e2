"""The files of challenges: a broken cluster, a story, checks that say when it is repaired.

docs/challenges.md describes the form. Ten files come with the package, in ``challenges/``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from kubepy.api.values.goformat import parse_span
from kubepy.apiserver.strict_fields import (
    field_error,
    join_path,
    list_of,
    map_of,
    parse_fields,
    parse_text,
    shown,
)
from kubepy.cli.main import Root
from kubepy.cli.mcp.permitted import CHANGING, READING, RefusedError, permit
from kubepy.clusters import FIRST_MOMENT
from kubepy.demo.drawing import draw, fill, parse_draws
from kubepy.fuzz.checks import EVENTUALLY, Check, parse_check
from kubepy.quoting import printable
from kubepy.storage import FolderError, yaml

COMMAND, MANIFESTS, ADVANCE = "command", "manifests", "advance"
SUCCEEDS, FAILS = "succeeds", "fails"  # the kinds of checks that are command lines
PERMITTED = READING | CHANGING  # the commands of files, and of agents
BEGAN = "began"  # ${began}: the cluster's time at which the learner begins
DEFAULT_WITHIN = 600.0  # seconds
DEFAULT_NODES = 3
MOST_NODES = 50
FOLDER = os.path.join(os.path.dirname(__file__), "challenges")
ENDING = ".yaml"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class ChallengeStep(NamedTuple):
    """A step of the setup, or of a repair.

    :ivar kind: ``command``: a command line; ``manifests``: what is applied; ``advance``: a length
        of the cluster's time that goes by.
    :ivar path: of the field that it stands in, with its file.
    """

    kind: str
    text: str
    path: str


class Mistake(NamedTuple):
    """A wrong repair.

    :ivar breaks: the name of the check that tells it.
    """

    steps: tuple[ChallengeStep, ...]
    breaks: str


class Goal(NamedTuple):
    """A check of a challenge.

    :ivar check: in CEL, as ``kubepy fuzz`` judges it; for the kinds ``succeeds`` and ``fails`` its
        expression is a command line.
    """

    check: Check

    @property
    def name(self) -> str:
        return self.check.name

    @property
    def must_stay(self) -> bool:
        """True if it holds from the beginning, and must not be broken; otherwise it is to be
        reached."""
        return self.check.kind not in (EVENTUALLY, SUCCEEDS)

    @property
    def is_command(self) -> bool:
        return self.check.kind in (SUCCEEDS, FAILS)


class Scenario(NamedTuple):
    """A challenge with the values that a seed has drawn.

    :ivar settings: for ``kubepy.yaml``.
    :ivar within: the seconds of the cluster's time that go by before the goals must hold.
    """

    name: str
    seed: int
    title: str
    story: str
    nodes: int
    settings: Mapping[str, Any]
    setup: tuple[ChallengeStep, ...]
    within: float
    goals: tuple[Goal, ...]
    hints: tuple[str, ...]
    solution: tuple[ChallengeStep, ...]
    mistakes: tuple[Mistake, ...]


class ScenarioFile(NamedTuple):
    """A file of a challenge that was read.

    :ivar path: as errors name it.
    :ivar value: what stands in the file.
    :ivar draws: what the seed draws, and from what.
    """

    name: str
    path: str
    value: Mapping[str, Any]
    draws: Mapping[str, tuple[str, ...]]

    def drawn(self, seed: int, began: str = FIRST_MOMENT) -> Scenario:
        """Return the challenge with the values of a seed. Raises FolderError, which names the
        field.

        :param began: the cluster's time at which the learner begins, RFC 3339.
        """
        values = {**draw(f"{self.path}: draw", self.draws, seed), BEGAN: began}
        path = f"{self.path}: "
        texts = {name: entry for name, entry in self.value.items() if name != "draw"}
        filled = fill(path, texts, values)
        fields = parse_fields(path, filled, PARSERS, REQUIRED)
        scenario = Scenario(
            name=self.name,
            seed=seed,
            title=fields["title"],
            story=fields["story"],
            nodes=fields.get("nodes", DEFAULT_NODES),
            settings=fields.get("settings", {}),
            setup=fields["setup"],
            within=fields.get("within", DEFAULT_WITHIN),
            goals=fields["checks"],
            hints=fields.get("hints", ()),
            solution=fields.get("solution", ()),
            mistakes=fields.get("mistakes", ()),
        )
        _check_goals(path, scenario)
        return scenario


# --- reading --------------------------------------------------------------------------------------


def shipped_names() -> list[str]:
    """Return the names of the challenges that come with the package, sorted."""
    names = [name.removesuffix(ENDING) for name in os.listdir(FOLDER) if name.endswith(ENDING)]
    return sorted(names)


def read_shipped(name: str) -> ScenarioFile:
    """Read a challenge that comes with the package. Raises FolderError, which lists the names."""
    names = shipped_names()
    if name not in names:
        known = ", ".join(names)
        raise FolderError(f"{printable(name)}: is no challenge: must be one of {known}")
    return read_scenario(os.path.join(FOLDER, f"{name}{ENDING}"))


def read_scenario(path: str) -> ScenarioFile:
    """Read the file of a challenge, which is named by its file. Raises FolderError, which names the
    file, and the line or field."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError:
        raise FolderError(printable(f"{path}: not UTF-8")) from None
    except OSError as error:
        raise FolderError(printable(f"{path}: {error.strerror}")) from None
    name = os.path.basename(path)
    for ending in (ENDING, ".yml"):
        name = name.removesuffix(ending)
    if not _NAME.fullmatch(name):
        raise FolderError(
            printable(f"{path}: the file's name names the challenge: small letters, digits and -")
        )
    return parse_scenario(name, path, text)


def parse_scenario(name: str, path: str, text: str) -> ScenarioFile:
    """Read the text of the file of a challenge. Raises FolderError, which names the file, and the
    line or field."""
    try:
        documents = yaml.load_all(text, unique_keys=True)
    except yaml.YamlError as error:
        raise FolderError(f"{printable(path)}: {error}") from None
    if len(documents) != 1:
        count = len(documents)
        raise FolderError(f"{printable(path)}: must be one document, not {count}")
    return scenario_file(name, path, documents[0].object)


def scenario_file(name: str, path: str, value: Any) -> ScenarioFile:
    """Check what stands in the file of a challenge. Raises FolderError, which names the field."""
    if not isinstance(value, dict):
        raise field_error(path, f"must be a map of {', '.join(PARSERS)}")
    draws = parse_draws(f"{path}: draw", value.get("draw") or {})
    if BEGAN in draws:
        raise field_error(f"{path}: draw.{BEGAN}", "is the time at which the learner begins")
    file = ScenarioFile(name, path, value, draws)
    file.drawn(1)
    return file


def _check_goals(path: str, scenario: Scenario) -> None:
    """Raise FolderError for checks that cannot be told apart, or that say nothing of a repair."""
    names = [goal.name for goal in scenario.goals]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise field_error(f"{path}checks[{index}].name", f"{shown(name)} is there twice")
    if all(goal.must_stay for goal in scenario.goals):
        kinds = f"{EVENTUALLY} or {SUCCEEDS}"
        raise field_error(f"{path}checks", f"one at least must be {kinds}: the repair itself")
    lasting = [goal.name for goal in scenario.goals if goal.must_stay]
    for index, mistake in enumerate(scenario.mistakes):
        if mistake.breaks not in lasting:
            place = f"{path}mistakes[{index}].breaks"
            raise field_error(
                place, f"{shown(mistake.breaks)} is no check that is always, never or {FAILS}"
            )


# --- fields ---------------------------------------------------------------------------------------


def _parse_step(path: str, value: Any) -> ChallengeStep:
    if isinstance(value, str):
        return ChallengeStep(COMMAND, _parse_command(path, value), path)
    fields = parse_fields(path, value, {MANIFESTS: parse_text, ADVANCE: _parse_span_text})
    if len(fields) != 1:
        raise field_error(path, f"must be a command line, or have one of {MANIFESTS}, {ADVANCE}")
    [(kind, text)] = fields.items()
    return ChallengeStep(kind, text, join_path(path, kind))


def _parse_command(path: str, value: Any) -> str:
    """Check a command line: it must be one that concerns the cluster alone, whoever has written
    the file."""
    text = parse_text(path, value)
    try:
        permit(_root(), text, PERMITTED, ())
    except RefusedError as error:
        raise field_error(path, str(error)) from None
    return text


@cache
def _root() -> Root:
    """Return ``kubepy`` itself, among whose commands those of files are looked up."""
    return Root()


def _parse_span(path: str, value: Any) -> float:
    try:
        seconds = parse_span(value) if isinstance(value, str) else -1.0
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise field_error(path, f"{shown(value)} is not a duration such as 20m")
    return seconds


def _parse_span_text(path: str, value: Any) -> str:
    _parse_span(path, value)
    return str(value)


def _parse_nodes(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_NODES:
        raise field_error(path, f"{shown(value)} is not a number from 0 to {MOST_NODES}")
    return value


def _parse_settings(path: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise field_error(path, "must be a map of settings, as in kubepy.yaml")
    for name in ("formatVersion", "clock", "seed"):
        if name in value:
            raise field_error(join_path(path, name), "kubepy sets it")
    return value


def _parse_line(path: str, value: Any) -> str:
    text = parse_text(path, value).strip()
    if "\n" in text:
        raise field_error(path, "must be one line")
    return text


def _parse_paragraphs(path: str, value: Any) -> str:
    return parse_text(path, value).strip()


def _parse_goal(path: str, value: Any) -> Goal:
    kinds = [kind for kind in (SUCCEEDS, FAILS) if isinstance(value, dict) and kind in value]
    if not kinds:
        return Goal(parse_check(path, value))
    parsers = {"name": parse_text, **dict.fromkeys(kinds, _parse_command)}
    fields = parse_fields(path, value, parsers, ("name",))
    if len(kinds) > 1:
        raise field_error(path, f"must have only one of {SUCCEEDS}, {FAILS}")
    [kind] = kinds
    return Goal(Check(fields["name"], kind, fields[kind]))


_STEPS = list_of(_parse_step)
PARSERS = {
    "title": _parse_line,
    "story": _parse_paragraphs,
    "draw": parse_draws,
    "nodes": _parse_nodes,
    "settings": _parse_settings,
    "setup": _STEPS,
    "within": _parse_span,
    "checks": list_of(_parse_goal),
    "hints": list_of(_parse_paragraphs),
    "solution": _STEPS,
    "mistakes": list_of(
        map_of(Mistake, {"steps": _STEPS, "breaks": parse_text}, "steps", "breaks")
    ),
}
REQUIRED = ("title", "story", "setup", "checks")
