"""What is not known of the containers of a manifest."""

from __future__ import annotations

from typing import NamedTuple

IMAGE, PROGRAM, CALLED, TAG, VOLUME = "image", "program", "called", "tag", "volume"
COMMANDS, PROBES, HOOKS = "commands", "probes", "hooks"


class UnknownPart(NamedTuple):
    """Something that is not known of the containers of a manifest, or that is not acted on.

    :ivar kind: ``image``: what it does; ``program``: what a container's program, or a construct of
        its script, does; ``called``: what a program does that a probe or a hook calls; ``tag``:
        whether the image exists; ``volume``: what is in volumes of a type. In a cluster that does
        not model containers ``commands``, ``probes`` or ``hooks``.
    :ivar name: the image, the program … "" where the kind says all.
    :ivar ends: the containers are those of Jobs, and end by themselves.
    :ivar is_surprising: nobody would expect that it is not known, as of a program in a well-known
        image.
    """

    kind: str
    name: str
    ends: bool = False
    is_surprising: bool = True
