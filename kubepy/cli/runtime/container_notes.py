"""Notes to the user about what is not known, or not acted on, of the containers that a command has
brought in."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import kubepy
from kubepy.api.objects.images import familiar_image
from kubepy.api.objects.unknowns import (
    CALLED,
    COMMANDS,
    HOOKS,
    IMAGE,
    PROBES,
    PROGRAM,
    TAG,
    VOLUME,
    UnknownPart,
)
from kubepy.apiserver.settings import MODELLED
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy import terminal
    from kubepy.kubelet import foreseen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kubepy.api.meta import Object
    from kubepy.apiserver.client import Client

VARIABLE = "KUBEPY_NOTES"
ALL, NONE = "all", "none"
PREFIX = "kubepy.dev/"  # of annotations that choose what pods do
OTHER_REGISTRY = "gcr.io/google"  # serves images under other names
HINT = "kubelet.rules can say more"
ENDS, RUNS = "end with 0 after a moment", "just run"
TRIVIAL_TAGS = ("", "latest", "stable", "alpine")
PULLED = 'it is pulled all the same ("pull: fails" in kubelet.rules says otherwise)'
MODELLED_HINT = '"kubelet: {containers: modelled}" in kubepy.yaml acts on them'


def notes_on(client: Client, objects: Sequence[Object], stderr: IO[str]) -> Iterator[str]:
    """Yield notes on what is not known of the containers of pods and workloads that a command has
    written.

    What everybody expects not to be known, such as what an image of one's own does, is said on a
    terminal only: a program that reads stderr has no use for it. ``KUBEPY_NOTES=all`` says it
    everywhere, ``KUBEPY_NOTES=none`` says nothing.
    """
    choice = os.environ.get(VARIABLE, "")
    if choice == NONE:
        return
    says_all = choice == ALL or stderr.isatty()
    if not any(map(_may_surprise, objects)) and client.settings.kubelet.rules is None:
        parts = _unknown_images(client, objects) if says_all else []
    else:
        parts = foreseen.unknowns_of(client, objects)
    for line in lines_of([part for part in parts if says_all or part.is_surprising]):
        yield _wrapped(line, stderr)


def _wrapped(line: str, stderr: IO[str]) -> str:
    """Return a line in lines that fit into the terminal."""
    if not stderr.isatty():
        return line
    width = terminal.width_of(stderr)
    return textwrap.fill(
        line,
        width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _unknown_images(client: Client, objects: Sequence[Object]) -> list[UnknownPart]:
    """Return the images of containers of which the manifest says nothing more, and which the table
    of well-known images does not have."""
    settings = client.settings.kubelet
    if settings.containers != MODELLED or settings.outcome:
        return []
    table = (Path(kubepy.__file__).parent / "kubelet" / "data" / "images.json").read_text()
    parts = []
    for obj in objects:
        for container in _spec_of(obj).get("containers") or ():
            image = container.get("image") or ""
            name = familiar_image(image).partition("@")[0]
            folder, slash, last = name.rpartition("/")
            repository = f"{folder}{slash}{last.partition(':')[0]}"
            if f'"{repository}"' not in table:
                ends = obj["kind"] in ("Job", "CronJob")
                parts.append(UnknownPart(IMAGE, image, ends, is_surprising=False))
    return parts


def _spec_of(obj: Object) -> Object:
    """Return the spec of a pod, or of the pods of a workload."""
    spec: Any = obj.get("spec") or {}
    if "jobTemplate" in spec:
        spec = spec["jobTemplate"].get("spec") or {}
    if "template" in spec:
        spec = spec["template"].get("spec") or {}
    return cast("Object", spec)


def _may_surprise(obj: Object) -> bool:
    """Tell whether there may be more to say of an object than that nothing is known of an image. It
    is told without the modules of the kubelet, which most commands need not load."""
    spec = _spec_of(obj)
    if spec.get("volumes") or spec.get("initContainers") or spec.get("ephemeralContainers"):
        return True
    if PREFIX in str(obj):
        return True
    return any(_is_special(container) for container in spec.get("containers") or ())


def _is_special(container: Object) -> bool:
    if any(field in container for field in ("command", "args", "lifecycle")):
        return True
    if any(field.endswith("Probe") for field in container):
        return True
    image = container.get("image") or ""
    if OTHER_REGISTRY in image:
        return True
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag not in TRIVIAL_TAGS and not any(map(str.isdigit, tag))


# --- the lines ------------------------------------------------------------------------------------


def lines_of(unknowns: Sequence[UnknownPart]) -> Iterator[str]:
    """Yield a note for each kind of what is not known."""
    for kind in (IMAGE, PROGRAM):
        for ends in (False, True):
            names = _named(unknowns, kind, ends=ends)
            if names:
                does = ENDS if ends else RUNS
                yield f"{_nothing_known(kind, names)} containers {does} ({HINT})"
    called = _named(unknowns, CALLED)
    if called:
        yield f"{_nothing_known(PROGRAM, called)} probes and hooks succeed ({HINT})"
    tags = _named(unknowns, TAG)
    if tags:
        verb = "exists" if len(tags) == 1 else "exist"
        listed = _listed(IMAGE, tags)
        yield f"note: nothing tells here whether {listed} {verb}: {PULLED}"
    volumes = _named(unknowns, VOLUME)
    if volumes:
        yield f"note: volumes of type {_joined(volumes)} are empty directories here"
    yield from _simple_lines(unknowns)


def _nothing_known(noun: str, names: Sequence[str]) -> str:
    """Return the beginning of a note about images or programs."""
    whose = "its" if len(names) == 1 else "their"
    return f"note: nothing is known of {_listed(noun, names)}: {whose}"


def _simple_lines(unknowns: Sequence[UnknownPart]) -> Iterator[str]:
    """Yield the note of a cluster that does not model containers."""
    kinds = [unknown.kind for unknown in unknowns]
    ordered = (COMMANDS, PROBES, HOOKS)
    subjects = [kind for kind in ordered if kind in kinds]
    if not subjects:
        return
    of_jobs = [unknown.ends for unknown in unknowns if unknown.kind in subjects]
    does = f"containers {RUNS}"
    if all(of_jobs):
        does = f"containers of Jobs {ENDS}"
    yield f"note: {_joined(subjects)} are not acted on: {does} ({MODELLED_HINT})"


def _named(unknowns: Sequence[UnknownPart], kind: str, *, ends: bool | None = None) -> list[str]:
    """Return the names of one kind, each once."""
    names: dict[str, None] = {}
    for unknown in unknowns:
        if unknown.kind == kind and ends in (None, unknown.ends):
            names[unknown.name] = None
    return list(names)


def _listed(noun: str, names: Sequence[str]) -> str:
    """Return ``image "a"``, or ``the images "a" and "b"``."""
    quoted = [quote(name) for name in names]
    if len(quoted) == 1:
        return f"{noun} {quoted[0]}"
    return f"the {noun}s {_joined(quoted)}"


def _joined(words: Sequence[str]) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} and {words[-1]}"
