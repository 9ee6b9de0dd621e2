"""The path of an object's file in the state folder, from its key and back.

A name becomes a path component byte for byte where every file system and git can hold it; what they
cannot (capitals, which some fold; colons; a leading dot; Windows' device names) is percent-encoded,
and what is too long for a file name is cut and ends in a hash. Each name has exactly one path, so a
file at another path is never taken for its object.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kubepy.quoting import quote
from kubepy.storage.model import Key

SUFFIX = ".yaml"
CLUSTER = "cluster"
NAMESPACES = "namespaces"
_FILE_DEPTHS = {CLUSTER: 2, NAMESPACES: 3}  # the number of folders above an object's file

# Bytes of a path component, the suffix not counted; every file system holds 255 and a temporary
# name needs a few.
MAX_COMPONENT = 240
_KEPT_OF_LONG = 200
_CUT = "%-"  # no percent-encoding contains it

_PLAIN = re.compile(r"[a-z0-9_-](?:[a-z0-9._-]{0,238}[a-z0-9_-])?").fullmatch
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?").fullmatch
_UNSAFE = re.compile(r"[^a-z0-9._-]")


@lru_cache(maxsize=1 << 16)
def encode(name: str) -> str:
    """Return the path component of a name. Raises ValueError for the empty name."""
    if _PLAIN(name) and not _DEVICE(name):
        return name
    if not name:
        raise ValueError("a name must not be empty")
    component = _UNSAFE.sub(lambda match: _percent_encode(match[0]), name)
    if component.startswith(".") or _DEVICE(component):
        component = _percent_encode(component[0]) + component[1:]
    if component.endswith("."):
        component = component[:-1] + _percent_encode(".")
    if len(component) <= MAX_COMPONENT:
        return component
    from hashlib import sha256

    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return component[:_KEPT_OF_LONG] + _CUT + digest


def _percent_encode(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def decode(component: str) -> str | None:
    """Return the name of a path component; None when only the object can tell (it was cut), or no
    name has it."""
    if _PLAIN(component) and not _DEVICE(component):
        return component
    from urllib.parse import unquote_to_bytes

    try:
        name = unquote_to_bytes(component).decode("utf-8")
    except UnicodeError:
        return None
    return name if name and encode(name) == component else None


def is_cut(component: str) -> bool:
    """Return whether a component stands for a name too long for it."""
    return _CUT in component


def folder_of(resource: str, namespace: str) -> str:
    """Return the folder of a resource's objects in one namespace ("" for cluster scope), relative
    to the state folder."""
    if namespace:
        return f"{NAMESPACES}/{encode(namespace)}/{encode(resource)}"
    return f"{CLUSTER}/{encode(resource)}"


def path_of(key: Key) -> str:
    """Return the file of an object, relative to the state folder."""
    return f"{folder_of(key.resource, key.namespace)}/{encode(key.name)}{SUFFIX}"


def is_folder_path(path: str) -> bool:
    """Return whether a path below ``cluster`` or ``namespaces`` is too short for an object's file:
    it is a folder's."""
    return path.count("/") < _FILE_DEPTHS.get(path.partition("/")[0], 0)


def parent_of(path: str) -> str:
    """Return the folder of a file, "" for one in the state folder itself."""
    return path.rpartition("/")[0]


def ancestors_of(path: str) -> list[str]:
    """Return ``a``, ``a/b``, ``a/b/c`` for ``a/b/c``."""
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names) + 1)]


def not_read(folder: str, parent: str) -> str:
    """Return the reason why the files of a folder are not read: no resource has its name; or no
    namespace, where the folder above it is that of the namespaces."""
    kind = "namespace" if parent == NAMESPACES else "resource"
    return f"is not read: {quote(folder)} is not the folder name of any {kind}"
