"""The tools: their descriptions and arguments, and the command lines that they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kubepy.cli.mcp.messages import Call
from kubepy.cli.mcp.permitted import RefusedError
from kubepy.insight.harm import KINDS

Schema = dict[str, Any]
Arguments = Mapping[str, Any]

MAX_COMMAND = 64 * 1024  # characters
MAX_COMMANDS = 50
MAX_FILES = 200
MAX_GIVEN = 4 * 1024 * 1024  # characters of all files and of the standard input together
MAX_RUNS = 50
ROOM, MAX_ROOM = 30_000, 500_000  # characters of output
FILE_NAME = r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){0,5}"
READ, PLAN, WHY, TIMELINE = "read", "plan", "why", "timeline"
RUN_ON_FORK, DROP_FORK, RUN = "run_on_fork", "drop_fork", "run"


# --- arguments ------------------------------------------------------------------------------------

_WORDS: Schema = {
    "anyOf": [
        {"type": "string", "maxLength": MAX_COMMAND},
        {"type": "array", "items": {"type": "string", "maxLength": MAX_COMMAND}, "maxItems": 1000},
    ]
}
_FORK: Schema = {
    "type": "string",
    "maxLength": 40,
    "description": "The id of a fork that run_on_fork has kept; without it, the cluster in use.",
}
_ROOM: Schema = {
    "type": "integer",
    "minimum": 100,
    "maximum": MAX_ROOM,
    "description": f"How many characters to answer with at most (default {ROOM}).",
}
_OBJECTS: Schema = {
    "type": "array",
    "items": {"type": "string", "maxLength": 1000},
    "maxItems": 100,
    "description": "The objects, each as TYPE/NAME.",
}
_NAMESPACE: Schema = {"type": "string", "maxLength": 63, "description": "As -n."}
_SELECTOR: Schema = {"type": "string", "maxLength": 2000, "description": "As -l: app=web."}
_ALL_NAMESPACES: Schema = {"type": "boolean", "description": "As -A."}
_GIVEN: Schema = {
    "files": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "maxProperties": MAX_FILES,
        "description": (
            "Texts by the names under which commands find them, as in apply -f web.yaml, or "
            "apply -k overlay with overlay/kustomization.yaml."
        ),
    },
    "stdin": {"type": "string", "description": "The standard input, as of apply -f -."},
}


def _command(text: str) -> Schema:
    return {**_WORDS, "description": text}


def _object(properties: Schema, *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


class ToolDescription(NamedTuple):
    """A tool as a client is told of it.

    :ivar changes: it changes the cluster itself.
    """

    name: str
    text: str
    schema: Schema
    changes: bool = False


READING_TOOLS = (
    ToolDescription(
        READ,
        "Read the cluster with one of kubectl's commands: get, describe, logs, events, "
        "explain, top, rollout history, auth can-i, api-resources … Nothing is changed.",
        _object(
            {
                "command": _command("As on a command line: get pods -o wide -n shop"),
                "fork": _FORK,
                "max_output": _ROOM,
            },
            "command",
        ),
    ),
    ToolDescription(
        PLAN,
        "Say what a command would do, without doing it: each step, what is available "
        "meanwhile, how long it takes, whether it finishes and whether it hurts. Exit status "
        "0: it finishes; 2: it does not; 3: it hurts; 1: an error. Without a command it is "
        "about what is under way.",
        _object(
            {
                "command": _command("As on a command line: set image deploy/web web=web:2"),
                **_GIVEN,
                "output": {"enum": ["text", "json", "markdown"], "description": "Default: text."},
                "for": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "How far to look ahead: 30m, 7d.",
                },
                "ready_after": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "How long pods take to be ready: 5s, or 5s..20s.",
                },
                "stops_after": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "How long pods take to stop: likewise.",
                },
                "runs": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_RUNS,
                    "description": "Try it with so many seeds.",
                },
                "seeds": {
                    "type": "string",
                    "maxLength": 40,
                    "pattern": r"^[0-9]+\.\.[0-9]+$",
                    "description": f"Try it with these seeds, at most {MAX_RUNS}: 0..19.",
                },
                "fail_on": {
                    "type": "array",
                    "items": {"enum": list(KINDS)},
                    "description": "The kinds of harm that count; none: no harm does.",
                },
                "fail_if": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 2000},
                    "maxItems": 20,
                    "description": "Conditions in CEL of which none may hold: available < 0.5",
                },
                "fork": _FORK,
                "max_output": _ROOM,
            }
        ),
    ),
    ToolDescription(
        WHY,
        "Say whether objects are done, on their way or stuck, what is to blame, and which "
        "commands would help; each of these was tried on a fork. Without objects it is about "
        "whatever is not done, in all namespaces. Exit status 0: done; 2: stuck; 3: on its "
        "way; 1: an error.",
        _object(
            {
                "objects": _OBJECTS,
                "namespace": _NAMESPACE,
                "output": {"enum": ["text", "json"], "description": "Default: text."},
                "fork": _FORK,
                "max_output": _ROOM,
            }
        ),
    ),
    ToolDescription(
        TIMELINE,
        "Show what happened in the cluster, or to objects and what they own.",
        _object(
            {
                "objects": _OBJECTS,
                "namespace": _NAMESPACE,
                "all_namespaces": _ALL_NAMESPACES,
                "selector": _SELECTOR,
                "since": {
                    "type": "string",
                    "maxLength": 60,
                    "description": "From then on: 10m, or 2026-01-01T12:00:00Z.",
                },
                "output": {"enum": ["text", "json"], "description": "Default: text."},
                "fork": _FORK,
                "max_output": _ROOM,
            }
        ),
    ),
    ToolDescription(
        RUN_ON_FORK,
        "Rehearse: run commands one after another on a fork of the cluster in memory, with "
        "the real controllers. The cluster stays as it is. Waiting takes no time: the fork's "
        "clock moves on (rollout status, wait, clock advance 10m, controller --until-settled). "
        "The fork is dropped afterwards, or kept for more calls.",
        _object(
            {
                "commands": {
                    "type": "array",
                    "items": _WORDS,
                    "minItems": 1,
                    "maxItems": MAX_COMMANDS,
                    "description": "Each as on a command line: apply -f web.yaml",
                },
                **_GIVEN,
                "fork": {
                    **_FORK,
                    "description": "Go on with this fork; without it, a new one is made.",
                },
                "keep": {
                    "type": "boolean",
                    "description": "Keep a new fork; the answer has its id.",
                },
                "max_output": _ROOM,
            },
            "commands",
        ),
    ),
    ToolDescription(
        DROP_FORK,
        "Drop a fork that run_on_fork has kept.",
        _object({"fork": {**_FORK, "description": "Its id."}}, "fork"),
    ),
)
WRITING_TOOL = ToolDescription(
    RUN,
    "Run a command on the cluster itself, which changes it. Plan it before.",
    _object(
        {
            "command": _command("As on a command line: scale deploy/web --replicas=3"),
            **_GIVEN,
            "max_output": _ROOM,
        },
        "command",
    ),
    changes=True,
)


def descriptions(*, writes: bool) -> list[ToolDescription]:
    """Return the tools of a server; with ``writes`` also the one that changes the cluster."""
    return [*READING_TOOLS, *([WRITING_TOOL] if writes else [])]


# --- calls ----------------------------------------------------------------------------------------


def files_of(arguments: Arguments) -> dict[str, str]:
    """Return the files that came with a call. Raises RefusedError for names that are no plain ones,
    and for too much."""
    files: dict[str, str] = arguments.get("files", {})
    for name in files:
        if not re.fullmatch(FILE_NAME, name):
            raise RefusedError(
                f"a file is named {name[:100]!r}: letters, digits, dots, dashes and underscores, "
                "in folders divided by slashes, are what a name may have"
            )
    folders = {name.rpartition("/")[0] for name in files}
    for name in files:
        if any(folder == name or folder.startswith(f"{name}/") for folder in folders):
            raise RefusedError(f"{name!r} is the name of a file and of a folder")
    size = sum(map(len, files.values())) + len(arguments.get("stdin", ""))
    if size > MAX_GIVEN:
        raise RefusedError(
            f"files and standard input have {size:,} characters: {MAX_GIVEN:,} are allowed"
        )
    return files


def call_of(tool: str, arguments: Arguments, seconds: float) -> Call:
    """Return the command lines that a call of a tool stands for.

    :param seconds: of CPU that it may take.
    """
    commands, kind = _commands_of(tool, arguments)
    return Call(
        commands,
        kind,
        list(arguments.get("files", {})),
        arguments.get("stdin", ""),
        _plan_flags(arguments) if tool == PLAN else [],
        arguments.get("max_output", ROOM),
        seconds,
    )


def _commands_of(tool: str, arguments: Arguments) -> tuple[list[str | list[str]], str]:
    """Return the command lines of a tool, and which commands it allows."""
    if tool == PLAN:
        return [arguments.get("command", "")], "plan"
    if tool == WHY:
        objects = arguments.get("objects", [])
        if "namespace" in arguments and not objects:
            raise RefusedError("why: name objects of that namespace, or a type: deployments")
        words = [WHY, *objects, *_flags(arguments, "namespace", "output")]
        return [words if objects else [*words, "--all-namespaces"]], "read"
    if tool == TIMELINE:
        flags = _flags(arguments, "namespace", "all_namespaces", "selector", "since", "output")
        return [[TIMELINE, *arguments.get("objects", []), *flags]], "read"
    if tool == RUN_ON_FORK:
        return list(arguments["commands"]), "change"
    return [arguments["command"]], "read" if tool == READ else "change"


def _plan_flags(arguments: Arguments) -> list[str]:
    flags = _flags(arguments, "output", "for", "ready_after", "stops_after", "runs", "seeds")
    first, _, last = arguments.get("seeds", "0..0").partition("..")
    if int(last) - int(first) >= MAX_RUNS:
        raise RefusedError(f"seeds: at most {MAX_RUNS} of them")
    if "fail_on" in arguments:
        flags.append(f"--fail-on={','.join(arguments['fail_on'])}")
    return [*flags, *(f"--fail-if={condition}" for condition in arguments.get("fail_if", []))]


def _flags(arguments: Arguments, *names: str) -> list[str]:
    """Return arguments as flags of the same names."""
    flags = []
    for name in names:
        value = arguments.get(name)
        if isinstance(value, bool):
            value = str(value).lower()
        if value is not None:
            flags.append(f"--{name.replace('_', '-')}={value}")
    return flags
