"""Random YAML in the forms that people write: comments everywhere, every style, and for each line
the entry it shows."""

from __future__ import annotations

import copy
import json
import re
from random import Random
from typing import Any, NamedTuple

from kubepy.storage.yaml.emitter import quote
from kubepy.storage.yaml.roundtrip.matching import same

Path = tuple[str, ...]

WORDS = [
    "a",
    "web",
    "nginx:1.27",
    "true",
    "12",
    "0.5",
    "null",
    "it's",
    "x: y",
    "# no",
    "a #b",
    "",
    " lead",
    "trail ",
    "- a",
    "[x]",
    "{y}",
    "*z",
    "&q",
    "!t",
    "%p",
    "@",
    "`",
    "yes",
    "~",
    "2024-01-01",
    "ünï",
    "a\tb",
    "\U0001f680",
    "long " * 25,
    "wide" * 30,
]
TEXTS = [
    "one\ntwo\n",
    "one\n\ntwo",
    "  indented\nless\n",
    "# looks like\na comment\n",
    "tail\n\n\n",
    "\nhead\n",
    "a: b\nc\n",
    "space \nend\n",
    "tab\there\n",
    "\n",
]
NUMBERS = [0, 1, -7, 42, 1.5, 10**12, True, False, None]
KEYS = [
    "apiVersion",
    "args",
    "name",
    "image",
    "labels",
    "spec",
    "zone",
    "a.b/c",
    "y",
    "8080",
    "with space",
    "x: y",
    "é",
]


class Line(NamedTuple):
    """A line of a document; ``path`` leads to the entry that it shows ("" as the last part: a
    comment that belongs to no entry)."""

    text: str
    path: Path
    is_comment: bool = False
    is_flow: bool = False


def random_object(rng: Random, depth: int = 0, names: str = "pqrstuvw") -> dict[str, Any]:
    """Return a random object whose lists of objects have items with these ``names``."""
    keys = rng.sample(KEYS, rng.randint(1, 5))
    return {
        key: random_value(rng, depth + 1, names) for key in keys if key != "name" or not depth
    } or {"k": "v"}


def random_value(rng: Random, depth: int, names: str) -> Any:
    kind = rng.random()
    if depth > 4 or kind < 0.45:
        return random_scalar(rng)
    if kind < 0.7:
        return random_object(rng, depth, names) if rng.random() < 0.95 else {}
    if kind < 0.85:
        chosen = rng.sample(names, rng.randint(0, 4))
        return [
            _shuffled(rng, {"name": name, **random_object(rng, depth + 1, names)})
            for name in chosen
        ]
    words = [word for word in WORDS if word != "null"]
    if names == NEW_NAMES:  # a list that replaces another shares no item with it
        words = [f"{word}!" for word in words]
    return rng.sample(words, rng.randint(0, 4))


def random_scalar(rng: Random) -> Any:
    return rng.choice(rng.choice([WORDS, WORDS, TEXTS, NUMBERS]))


def _shuffled(rng: Random, value: dict[str, Any]) -> dict[str, Any]:
    keys = list(value)
    rng.shuffle(keys)
    return {key: value[key] for key in keys}


class Writer:
    """A writer of objects in a style chosen by a random generator."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.lines: list[Line] = []
        self.count = 0

    def document(self, obj: dict[str, Any]) -> None:
        if self.rng.random() < 0.3:
            self.comment("", ())
            self.blank()
            if self.rng.random() < 0.5:
                self.lines.append(Line("---" + self.end_comment(), ("",)))
        self.mapping(obj, 0, (), "")
        self.comment("", ("",), chance=0.4)
        if self.rng.random() < 0.1:
            self.lines.append(Line("...", ("",)))

    def new_comment(self) -> str:
        self.count += 1
        return f"# c{self.count}." + self.rng.choice(
            ["", " it's", ' "quoted', " {brace", " key: value", " - item"]
        )

    def end_comment(self) -> str:
        return (
            self.rng.choice([" ", "   ", "\t"]) + self.new_comment()
            if self.rng.random() < 0.3
            else ""
        )

    def comment(self, pad: str, path: Path, chance: float = 0.3) -> None:
        while self.rng.random() < chance:
            self.lines.append(Line(pad + self.new_comment(), path, True))

    def blank(self) -> None:
        after_kept_blank = bool(self.lines) and not self.lines[-1].text
        if self.rng.random() < 0.2 and not after_kept_blank:
            self.lines.append(Line("", ("",)))

    def mapping(self, obj: dict[str, Any], column: int, path: Path, lead: str) -> None:
        """Write a mapping; ``lead`` is the text before its first key on that line ("": only
        blanks)."""
        pad = " " * column
        for key, value in obj.items():
            own = (*path, key)
            if not lead:
                self.blank()
                self.comment(pad, own)
            text = (lead or pad) + self.key(key) + ":"
            lead = ""
            self.entry(text, value, column, own, is_item=False)
        self.comment(pad, (*path, ""), chance=0.15)

    def key(self, key: str) -> str:
        return json.dumps(key) if self.rng.random() < 0.2 else quote(key)

    def sequence(
        self, items: list[Any], column: int, path: Path, lead: str, is_flush: bool
    ) -> None:
        pad = " " * column
        for item in items:
            own = (*path, item["name"] if isinstance(item, dict) else f"={item}")
            if not lead:
                self.blank()
                self.comment(pad, own)
            self.entry((lead or pad) + "-", item, column, own, is_item=True)
            lead = ""
        if not is_flush:  # else it would stand before the next key of the outer mapping
            self.comment(pad, (*path, ""), chance=0.15)

    def entry(self, text: str, value: Any, column: int, path: Path, *, is_item: bool) -> None:
        if isinstance(value, dict | list) and value and self.rng.random() < 0.8:
            self.block(text, value, column, path, is_item=is_item)
        elif isinstance(value, dict | list):
            self.flow(text + " ", value, path)
        else:
            self.scalar(text, value, column, path)
            if (
                not isinstance(value, str) or "\n" not in value
            ):  # else it would be a line of the literal
                self.comment(" " * (column + 1), path, chance=0.05)

    def block(self, text: str, value: Any, column: int, path: Path, *, is_item: bool) -> None:
        is_list = isinstance(value, list)
        inner = column + self.rng.choice([0, 0, 2] if is_list and not is_item else [2, 2, 3, 4])
        shares_line = is_item and self.rng.random() < 0.8
        if not shares_line:
            anchor = self.rng.choice(["", "", "", f" &a{self.count}"])
            self.lines.append(Line(text + anchor + self.end_comment(), path))
        lead = text + " " * (inner - column - 1) if shares_line else ""
        if is_list:
            self.sequence(value, inner, path, lead, inner == column)
        else:
            self.mapping(value, inner, path, lead)

    def flow(self, text: str, value: Any, path: Path) -> None:
        if self.rng.random() < 0.5 or not value:
            self.lines.append(
                Line(text + self.inline(value) + self.end_comment(), path, is_flow=True)
            )
            return
        pad = " " * (len(text) - len(text.lstrip()) + self.rng.randint(3, 6))
        brackets = "[]" if isinstance(value, list) else "{}"
        self.lines.append(Line(text + brackets[0], path))
        entries = (
            value.items() if isinstance(value, dict) else ((f"={item}", item) for item in value)
        )
        for place, (key, item) in enumerate(entries):
            name = item["name"] if isinstance(value, list) and isinstance(item, dict) else key
            self.comment(pad, (*path, name))
            shown = f"{json.dumps(key)}: " if isinstance(value, dict) else ""
            comma = "," if place < len(value) - 1 else ""
            text = f"{pad}{shown}{self.inline(item)}{comma}{self.end_comment()}"
            self.lines.append(Line(text, (*path, name), is_flow=True))
        self.lines.append(Line(pad[2:] + brackets[1] + self.end_comment(), path))

    def inline(self, value: Any) -> str:
        if isinstance(value, dict):
            space = self.rng.choice(["", " "]) if value else ""
            inner = ", ".join(
                f"{json.dumps(key)}: {self.inline(item)}" for key, item in value.items()
            )
            return f"{{{space}{inner}{space}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.inline, value))}]"
        return _json(value)

    def scalar(self, text: str, value: Any, column: int, path: Path) -> None:
        if isinstance(value, str) and "\n" in value and value.strip() and self.rng.random() < 0.8:
            self.literal(text, value, column, path)
        elif value is None and self.rng.random() < 0.5:
            self.lines.append(Line(text + self.end_comment(), path))
        else:
            space = self.rng.choice([" ", "  "])
            self.lines.append(
                Line(f"{text}{space}{self.one_line(value)}{self.end_comment()}", path)
            )

    def one_line(self, value: Any) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        if self.rng.random() < 0.6 and "\n" not in value and "\t" not in value:
            return quote(value) if self.rng.random() < 0.6 else "'" + value.replace("'", "''") + "'"
        return _json(value)

    def literal(self, text: str, value: str, column: int, path: Path) -> None:
        steps = self.rng.choice([1, 2, 3, 4])
        hint = str(steps) if value[0] in " \n" else ""
        chomp = "+" if value.endswith("\n\n") else "" if value.endswith("\n") else "-"
        self.lines.append(Line(f"{text} |{hint}{chomp}{self.end_comment()}", path))
        for line in value.removesuffix("\n").split("\n"):
            self.lines.append(Line(" " * (column + steps) + line if line else "", path))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def write(rng: Random, obj: dict[str, Any]) -> list[Line]:
    """Return the lines of an object in a random style."""
    writer = Writer(rng)
    writer.document(obj)
    return writer.lines


# --- changes --------------------------------------------------------------------------------------


NEW_NAMES = "PQRSTUVW"  # no new item has the name of a removed one


def changed(rng: Random, obj: dict[str, Any], moves: bool = False) -> dict[str, Any]:
    """Return a copy of an object with a few random changes."""
    copied = copy.deepcopy(obj)
    for _ in range(rng.randint(1, 4)):
        _change(rng, rng.choice(_collections(copied)), moves)
    return copied


def _collections(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value
    inner = [
        found for item in items if isinstance(item, dict | list) for found in _collections(item)
    ]
    return [value, *inner]


def _change(rng: Random, value: Any, moves: bool) -> None:
    if isinstance(value, dict):
        _change_mapping(rng, value)
    else:
        _change_list(rng, value, moves)


def _change_mapping(rng: Random, value: dict[str, Any]) -> None:
    keys = [key for key in value if key != "name"]
    kind = rng.random()
    if kind < 0.4 and keys:
        value[rng.choice(keys)] = (
            random_value(rng, 3, NEW_NAMES) if rng.random() < 0.3 else random_scalar(rng)
        )
    elif kind < 0.6 and keys:
        del value[rng.choice(keys)]
    else:
        value[rng.choice([key for key in KEYS if key != "name"])] = random_value(rng, 3, NEW_NAMES)


def _change_list(rng: Random, value: list[Any], moves: bool) -> None:
    kind = rng.random()
    if moves and kind < 0.3:
        rng.shuffle(value)
    elif kind < 0.5 and value:
        del value[rng.randrange(len(value))]
    else:
        new: Any = {"name": f"new{rng.random()}", **random_object(rng, 3, NEW_NAMES)}
        if not value or not isinstance(value[0], dict):
            new = f"{rng.random()}"
        value.insert(rng.randint(0, len(value)), new)


# --- comments and lines that a change leaves ------------------------------------------------------

_MISSING = object()


def resolve(obj: Any, path: Path) -> Any:
    """Return the value at a path, ``_MISSING`` if there is none."""
    for part in path:
        if part == "":
            return obj
        if isinstance(obj, dict):
            obj = obj.get(part, _MISSING)
        elif isinstance(obj, list):
            obj = next(
                (
                    item
                    for item in obj
                    if part == (item.get("name") if isinstance(item, dict) else f"={item}")
                ),
                _MISSING,
            )
        else:
            return _MISSING
    return obj


def is_there(path: Path, old: Any, new: Any) -> bool:
    """Report whether the entry of a comment is in both objects, in collections of the same kind."""
    for length in range(len(path) + 1):
        a, b = resolve(old, path[:length]), resolve(new, path[:length])
        if b is _MISSING or (
            isinstance(a, dict | list) and type(a) is not type(b) and path[length:]
        ):
            return False
    return True


def stays(line: Line, old: Any, new: Any) -> bool:
    """Report whether the entry of a line is the same in both objects."""
    if not line.path or not is_there(line.path, old, new):
        return False
    if line.is_comment:
        return True
    return line.path[-1] != "" and same(resolve(old, line.path), resolve(new, line.path))


def essence(line: str) -> str:
    """Return a line without the parts that change with its neighbours: its ``-``, a comma."""
    return re.sub(r",(?=\s*(#.*)?$)", "", line.strip().lstrip("- "))
