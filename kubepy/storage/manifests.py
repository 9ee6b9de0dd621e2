"""Objects as files: the path of an object's file, and what its text holds. It is for programs that
deal with such files wherever they are: git's merge and diff drivers, ``fsck``, changes on paper."""

from __future__ import annotations

from kubepy.storage.folder.files import MANAGED
from kubepy.storage.folder.manifest import ContentError, parse
from kubepy.storage.folder.paths import (
    CLUSTER,
    NAMESPACES,
    SUFFIX,
    decode,
    encode,
    folder_of,
    not_read,
    path_of,
)

__all__ = [
    "CLUSTER",
    "MANAGED",
    "NAMESPACES",
    "SUFFIX",
    "ContentError",
    "decode",
    "encode",
    "folder_of",
    "not_read",
    "parse",
    "path_of",
]
