"""The table of well-known images (``data/images.json``): what each runs, what it listens on, what
it answers, whether it ends by itself, as its public documentation says.

An entry is much like a rule of ``kubelet.rules``: a match, fields, and ``documented``: where that
is said. Of several entries of one image the first that sets a field counts. ``{--flag:default}`` in
a value stands for what a flag of the container's command line says, ``{$NAME:default}`` for one of
its environment variables.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.objects.images import image_repository
from kubepy.api.values.gonumbers import int_or_none
from kubepy.apiserver.rule_settings import FIELDS, Glob, parse_glob, parse_string, value_or_none
from kubepy.apiserver.strict_fields import (
    Parser,
    field_error,
    list_of,
    parse_fields,
    parse_text,
    python_name,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Container

_DATA = Path(__file__).parent / "data" / "images.json"
# The words that the tags of official images have ever had: letters between digits and punctuation.
_TAG_WORDS = Path(__file__).parent / "data" / "tags.json"
OFFICIAL = "docker.io/library/"
OFFICIAL_TAGS = "https://github.com/docker-library/official-images/tree/master/library"
PLACEHOLDER = re.compile(r"\{(?P<name>-[\w-]+|\$\w+):(?P<default>[^}]*)\}")
COMMAND_WORD_ENDS = re.compile(r"[\s;&|(){}<>`'\"]+")
# The registries that serve what registry.k8s.io does.
SAME_REGISTRIES = {
    "k8s.gcr.io/": "registry.k8s.io/",
    "gcr.io/google_containers/": "registry.k8s.io/",
    "gcr.io/google-containers/": "registry.k8s.io/",
}
# Images whose programs are those of busybox, as all that are built on Alpine Linux: by the last
# part of the repository …
BUSYBOX_IMAGES = frozenset({"agnhost", "alpine", "bash", "busybox", "curl"})
BUSYBOX_TAGS = ("alpine", "busybox")  # … and by what the tag speaks of


class ImageEntry(NamedTuple):
    """An entry of the table.

    :param images: repositories, with registry and group.
    :param tags: a pattern of the tags; None: all.
    :param args: a pattern of the container's command and args.
    :param without_env: none of these variables may be set.
    :param runs_arguments: the entrypoint is a script that runs its arguments; those that begin with
        a - are for the program of ``cmd``.
    :param serves: the folder whose files a web server gives.
    :param processes: the processes of the image's own program as ``ps`` shows them: each a user and
        a title, the main one first.
    :param is_bare: the image has its own program and no others, not even a shell.
    :param lacks: programs that the image does not have.
    :param writes: empty files that the program makes when it starts.
    :param user: as whom the image's program runs: a name or a number, and a group after a colon.
    :param programs: names of the programs of which the entry speaks, besides the first of
        entrypoint and cmd.
    :param values: what it says, by the names of the fields of rules, as they are written.
    """

    images: tuple[str, ...]
    documented: tuple[str, ...]
    tags: Glob | None = None
    args: Glob | None = None
    without_env: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    runs_arguments: bool = False
    programs: tuple[str, ...] = ()
    serves: str = ""
    processes: tuple[str, ...] = ()
    is_bare: bool = False
    writes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    user: str = ""
    values: Mapping[str, Any] = {}

    def holds(self, line: str, variables: Sequence[str]) -> bool:
        """Return whether the entry speaks of a container with this command line and
        environment."""
        if self.args is not None and not self.args.matches(line):
            return False
        return set(self.without_env).isdisjoint(variables)

    @property
    def reads_input(self) -> bool:
        """Tell whether the program ends because its input is empty."""
        return self.args is not None and not self.args.text

    def entrypoint_of(self, container: Container) -> tuple[str, ...]:
        """Return what the image puts before the args of a container."""
        if not self.runs_arguments:
            return self.entrypoint or ()
        args = container.get("args") or ()
        if args and self.command and args[0].startswith("-"):
            return self.command[:1]
        return ()


MISSING_TAG = ImageEntry((), (OFFICIAL_TAGS,), values={"pull": "fails"})


class ImageFacts:
    """The facts that are known of one image."""

    def __init__(self, repository: str, entries: Sequence[ImageEntry]) -> None:
        self._repository = repository
        self._entries = entries
        self._entrypoint: tuple[str, ...] = ()
        self._runs_arguments = any(entry.runs_arguments for entry in entries)
        self.sees_environment = False
        programs: dict[str, None] = {}
        for entry in entries:
            programs.update(dict.fromkeys(entry.programs))
            self._entrypoint = self._entrypoint or entry.entrypoint or ()
            text = json.dumps(dict(entry.values))
            if entry.without_env or "{$" in text or '"$' in text:
                self.sees_environment = True
        self.programs = tuple(programs)

    @property
    def user(self) -> str:
        """The user as whom the image's program runs, "" where that is not known."""
        for entry in self._entries:
            if entry.user:
                return entry.user
        return ""

    @property
    def files(self) -> Mapping[str, str]:
        """The files that the image has, by path, whatever a container of it runs."""
        for entry in self._entries:
            files = entry.values.get("files")
            if files and entry.args is None:
                known: Mapping[str, str] = files
                return known
        return {}

    def processes_of(self, container: Container) -> Sequence[str]:
        """Return the processes of a container as ``ps`` shows them, each a user and a title; none
        where that is not known."""
        if not self.runs_program(container):
            return ()
        for entry in self._entries:
            if entry.processes:
                return entry.processes
        return ()

    def runs_program(self, container: Container) -> bool:
        """Return whether a container runs the image's own program: as the image says it, with other
        arguments, or because its command names it."""
        command = container.get("command") or ()
        args = container.get("args") or ()
        if not command and not args:
            return True
        first = "".join(args[:1])
        takes_args = first.startswith("-") or not self._runs_arguments
        if not command and self._entrypoint and takes_args:
            return True
        line = " ".join((*command, *args))
        names = {os.path.basename(word) for word in COMMAND_WORD_ENDS.split(line)}
        return not names.isdisjoint(self.programs)

    def fields(
        self, container: Container, variables: Sequence[str]
    ) -> Iterator[tuple[str, Any, str]]:
        """Yield what is known of a container: a field, its value, and where that is documented."""
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        line = " ".join(words)
        values: dict[str, str] = {}
        for variable in container.get("env") or ():
            name = variable["name"]
            values[f"${name}"] = variable.get("value", "")
        for entry in self._entries:
            if not entry.holds(line, variables):
                continue
            source = f"{self._repository} ({entry.documented[0]})"
            for field, text in entry.values.items():
                if field == "runsFor" and entry.reads_input and container.get("stdin"):
                    continue
                value = _value_of(
                    field,
                    text,
                    words,
                    values,
                )
                if value is not None:
                    yield python_name(field), value, source
            entrypoint = entry.entrypoint_of(container)
            if entrypoint:
                yield "entrypoint", entrypoint, source
            if entry.serves:
                yield "serves", entry.serves, source
            if entry.is_bare:
                yield "is_bare", True, source
            if entry.writes:
                yield "writes", entry.writes, source
            if entry.lacks:
                yield "lacks", entry.lacks, source
            if entry.user:
                yield "user", entry.user, source
            if entry.command is not None:
                yield "command", entry.command, source
        if self.programs:
            yield "programs", self.programs, self._repository


def files_of(image: str) -> Mapping[str, str]:
    """Return the files of an image that are known, by path."""
    facts = facts_of(image)
    return {} if facts is None else facts.files


def has_busybox(image: str) -> bool:
    """Tell whether the programs of an image, such as ``cat`` and ``ls``, are those of busybox."""
    repository, tag = image_repository(image)
    if repository.rpartition("/")[2] in BUSYBOX_IMAGES:
        return True
    return any(word in tag for word in BUSYBOX_TAGS)


@lru_cache(maxsize=1024)
def facts_of(image: str) -> ImageFacts | None:
    """Return what is known of an image, None where the table does not have it."""
    repository, tag = image_repository(image)
    for registry, same in SAME_REGISTRIES.items():
        if repository.startswith(registry):
            path = repository.removeprefix(registry)
            repository = f"{same}{path}"
    entries: list[ImageEntry] = []
    for entry in table().get(repository, ()):
        if entry.tags is None or entry.tags.matches(tag):
            entries.append(entry)
    if not entries:
        return None
    if not _has_tag(repository, tag):
        entries.insert(0, MISSING_TAG)
    return ImageFacts(
        repository,
        entries,
    )


def _has_tag(repository: str, tag: str) -> bool:
    """Tell whether an image may have a tag. An official image has none with a word that none of its
    tags has ever had; every number is believed."""
    if not repository.startswith(OFFICIAL):
        return True
    words = _tag_words().get(repository.removeprefix(OFFICIAL))
    return words is None or words.issuperset(re.findall("[A-Za-z]+", tag))


@cache
def _tag_words() -> dict[str, frozenset[str]]:
    text = _TAG_WORDS.read_bytes()
    words: dict[str, str] = json.loads(text)
    return {name: frozenset(line.split()) for name, line in words.items()}


@cache
def table() -> dict[str, list[ImageEntry]]:
    """Return the entries by repository. Raises FolderError for one that is wrong."""
    by_repository: dict[str, list[ImageEntry]] = {}
    text = _DATA.read_bytes()
    values = json.loads(text)
    for index, value in enumerate(values):
        entry = _entry(f"images.json[{index}]", value)
        for repository in entry.images:
            entries = by_repository.setdefault(repository, [])
            entries.append(entry)
    return by_repository


def _entry(path: str, value: Any) -> ImageEntry:
    fields = parse_fields(
        path,
        value,
        ENTRY,
        ("images", "documented"),
    )
    values = {field: value[field] for field in FIELDS if field in value}
    for field in values:
        del fields[python_name(field)]
    fields["command"] = fields.pop("cmd", None)
    fields["is_bare"] = fields.pop("bare", False)
    images = tuple(image_repository(image)[0] for image in fields.pop("images"))
    programs = dict.fromkeys(fields.pop("programs", ()))
    for words in (fields.get("entrypoint"), fields["command"]):
        if words:
            programs[os.path.basename(words[0])] = None
    fields["programs"] = tuple(programs)
    fields["values"] = values
    return ImageEntry(images=images, **fields)


def _value_of(field: str, text: Any, words: Sequence[str], variables: Mapping[str, str]) -> Any:
    """Return the value of a field, its placeholders replaced; None where that is no value, as where
    a flag refers to a variable."""
    value = _replaced(text, words, variables)
    times = "1"
    if field == "listens":
        value = _ports(value, variables)
    elif field == "memory":
        value, _, factor = str(value).partition(" * ")
        times = factor or "1"
    parsed = value_or_none(field, value)
    if field == "memory" and parsed is not None and times.isdigit():
        return parsed * int(times)
    return parsed


def _ports(texts: Sequence[Any], variables: Mapping[str, str]) -> list[int | None]:
    """Return the ports of a list: numbers, addresses (``:8080``), and those that the names of
    variables end with (``$SERVE_PORT_*``)."""
    ports: list[int | None] = []
    for text in map(str, texts):
        if text.endswith("*"):
            prefix = text.removesuffix("*")
            names = [name for name in variables if name.startswith(prefix)]
            ports += [int_or_none(name.removeprefix(prefix)) for name in names]
        else:
            port = text.rpartition(":")[2]
            ports.append(int_or_none(port))
    return ports


def _replaced(value: Any, words: Sequence[str], variables: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_replaced(entry, words, variables) for entry in value]
    if isinstance(value, dict):
        replaced: dict[str, Any] = {}
        for key, entry in value.items():
            replaced[key] = _replaced(entry, words, variables)
        return replaced
    if not isinstance(value, str):
        return value

    def said(match: re.Match[str]) -> str:
        text = _flag(
            match["name"],
            words,
            variables,
        )
        return text or match["default"]

    return PLACEHOLDER.sub(said, value)


def _flag(name: str, words: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return the value of a flag of a command line, or of a variable; "" without one."""
    if name.startswith("$"):
        return variables.get(name, "")
    is_next = False
    for word in words:
        if is_next:
            return word
        flag, _, value = word.partition("=")
        if flag == name and value:
            return value
        is_next = word == name
    return ""


def _unparsed(path: str, value: Any) -> Any:
    """Leave a value as it is: it may have placeholders."""
    return value


def parse_pattern(path: str, value: Any) -> Glob:
    """Read a pattern; an empty one matches where there are neither command nor args."""
    return Glob(parse_string(path, value))


def _parse_flag(path: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise field_error(
            path,
            "must be true or false",
        )
    return value


ENTRY: Mapping[str, Parser] = {
    "images": list_of(parse_text),
    "documented": list_of(parse_text),
    "tags": parse_glob,
    "args": parse_pattern,
    "withoutEnv": list_of(parse_text),
    "entrypoint": list_of(parse_text),
    "cmd": list_of(parse_text),
    "programs": list_of(parse_text),
    "runsArguments": _parse_flag,
    "serves": parse_text,
    "processes": list_of(parse_text),
    "bare": _parse_flag,
    "writes": list_of(parse_text),
    "lacks": list_of(parse_text),
    "user": parse_text,
    **dict.fromkeys(FIELDS, _unparsed),
}
