"""Rename files as plain ``rename`` cannot: exchange two of them, or take a name only if it is free
(``renameat2``).

Linux has it, on most file systems. It is reached through ctypes, whose import takes a millisecond:
commands that only read never load this module.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from kubepy import system

# As the kernel defines them (rename(2)).
NO_REPLACE, EXCHANGE = 1, 2
AT_FDCWD = -100
_LACKING = frozenset(
    (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
)  # this file system, kernel, or C library has it not


class UnsupportedRename(Exception):
    """There are no such renames here."""


def renameat2(source: str, target: str, flags: int) -> None:
    """Rename a file in one step, with flags.

    Raises UnsupportedRename, FileNotFoundError where one of the files that change places is not
    there, FileExistsError for a name that is not free, OSError.
    """
    function = _function()
    if function is None:
        raise UnsupportedRename
    if function(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), flags) == 0:
        return
    number = ctypes.get_errno()
    if number in _LACKING:
        raise UnsupportedRename
    raise OSError(number, os.strerror(number), source, None, target)


@cache
def _function() -> Callable[..., Any] | None:
    """Return the function of the C library, None where it has none."""
    library = system.c_library()
    if library is None or not hasattr(library, "renameat2"):
        return None
    function: Callable[..., Any] = library.renameat2
    function.argtypes = (  # type: ignore[attr-defined]
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )
    return function
