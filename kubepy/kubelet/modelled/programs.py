"""The program that a container runs: its command, or what its image is known to run. Pure
functions."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from kubepy.apiserver.rule_settings import UNKNOWN
from kubepy.kubelet.reporting import reported_image
from kubepy.shell.words import is_known_command, names_program, program_name

if TYPE_CHECKING:
    from kubepy.api.typed import Container
    from kubepy.kubelet.behaviours import Behaviour


class ContainerProgram(NamedTuple):
    """The program of a container.

    :ivar command: the command line; empty for an image of which nothing is known.
    :ivar is_opaque: nothing can be said of what the program does: it runs until it is stopped.
    :ivar unknown: the image or program of which nothing is known, "" for none.
    """

    command: tuple[str, ...]
    is_opaque: bool
    unknown: str = ""


def program_of(container: Container, behaviour: Behaviour) -> ContainerProgram:
    """Return the program of a container: ``command`` takes the place of the image's entrypoint,
    ``args`` that of its command."""
    command = tuple(container.get("command") or ())
    arguments = tuple(container.get("args") or ())
    if behaviour.program == UNKNOWN:
        return ContainerProgram((*command, *arguments), is_opaque=True)
    if command:
        return _program((*command, *arguments), behaviour, container)
    if behaviour.entrypoint or behaviour.command:
        entrypoint = behaviour.entrypoint or ()
        words = (*entrypoint, *(arguments or behaviour.command or ()))
        return _program(words, behaviour, container)
    if arguments and is_known_command(arguments):
        return _program(arguments, behaviour, container)
    if behaviour.is_known and not arguments:
        return ContainerProgram(arguments, is_opaque=True)
    return ContainerProgram(arguments, is_opaque=True, unknown=container["image"])


def is_other_image(image: str, container: Container) -> bool:
    """Tell whether a container is to run another image than the one that a run of it was made
    from, as its kubelet or a status names that."""
    wanted = container["image"]
    return image not in (wanted, reported_image(wanted))


def mount_of(container: Container, path: str) -> str:
    """Return the name of the volume that a path of a container lies in, "" for none."""
    folder = container.get("workingDir") or "/"
    absolute = posixpath.normpath(posixpath.join(folder, path))
    longest, volume = "", ""
    for mount in container.get("volumeMounts") or ():
        mounted = posixpath.normpath(mount["mountPath"])
        is_within = absolute == mounted or absolute.startswith(f"{mounted.rstrip('/')}/")
        if is_within and len(mounted) >= len(longest):
            longest, volume = mounted, mount["name"]
    return volume


def _program(
    words: tuple[str, ...], behaviour: Behaviour, container: Container
) -> ContainerProgram:
    is_own = posixpath.basename(words[0]) in behaviour.programs
    is_missing = behaviour.is_bare and not is_own
    is_missing = is_missing or program_name(words[0]) in behaviour.lacks
    if is_missing or not names_program(words[0]) or is_known_command(words):
        return ContainerProgram(words, is_opaque=False)
    if "/" in words[0] and mount_of(container, words[0]):
        return ContainerProgram(words, is_opaque=False)
    if is_own:
        return ContainerProgram(words, is_opaque=True)
    return ContainerProgram(words, is_opaque=True, unknown=words[0])
