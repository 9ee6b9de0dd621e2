"""Errors that a store raises. The API server turns the first four into API errors; the others end
in one line for the user.

    StorageError
    ├── MissingError        no object under that key
    ├── ExistsError         an object is already there
    ├── ConflictError       the object has another resource version than the caller expects
    ├── CompactedError      the change log no longer reaches back that far
    ├── LockTimeoutError    another writer kept the folder's lock for too long
    └── FolderError         the folder cannot be used, and why
        ├── NoClusterError  there is no cluster in it
        ├── LostStateError  a state cannot be read any more
        └── RemovedError    ``.kubepy/`` was removed at this very moment
            └── RemovedIndexError   … before anything was written
    EditError               a ValueError: an edited file gives a field a value that it cannot have
    YamlError               a text is neither YAML nor JSON
    └── NumberRangeError    a number in it is too large
    RepeatedKeyError        a mapping in it has a key twice
"""

from __future__ import annotations

import errno

from kubepy.quoting import quote

_SQLITE_FULL = (13, 4874)  # SQLITE_FULL, SQLITE_IOERR_SHMSIZE


class StorageError(Exception):
    """Base of the errors that a store raises."""


class MissingError(StorageError):
    """No object is stored under the key."""


class ExistsError(StorageError):
    """An object is stored under the key already."""


class ConflictError(StorageError):
    """The object has another resource version than the caller expects, or its file was edited in
    the meantime."""


class CompactedError(StorageError):
    """The change log no longer has the changes after a revision: list again."""


class LockTimeoutError(StorageError):
    """Another process holds the lock for too long."""


class FolderError(StorageError):
    """The state folder, or a file in it, cannot be used."""


class NoClusterError(FolderError):
    """The folder holds no cluster."""


class LostStateError(FolderError):
    """What a state lies over was let go of, or cannot be read any more."""


class RemovedError(FolderError):
    """``.kubepy/`` was removed while it was written to. It is made anew for whoever tries again."""


class RemovedIndexError(RemovedError):
    """``.kubepy/`` was removed during a transaction: nothing of it has been written, and it can be
    tried again."""


class EditError(ValueError):
    """A file gives a field of its object a value that the field cannot have or get.

    :ivar field: the path of the field, as the API server names it: ``spec.containers[0].image``.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


class YamlError(Exception):
    """A text cannot be read.

    :ivar message: kubectl's words (``error converting YAML to JSON: yaml: line 7: …``).
    :ivar line: the place in the text, counted from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class NumberRangeError(YamlError):
    """A number in JSON is too large for a float64; the message is that of Go's decoder."""

    def __init__(self, digits: str, line: int = 0) -> None:
        super().__init__(
            f"json: cannot unmarshal number {digits} into Go value of type float64", line
        )
        self.digits = digits


class RepeatedKeyError(Exception):
    """A mapping has a key twice; the message is for the user."""

    def __init__(self, key: str) -> None:
        super().__init__(f"has the key {quote(key)} more than once")


def is_disk_full(error: BaseException | None) -> bool:
    """Tell whether an error has come of a full disk, or of a user's share of it that is used up."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if (
            getattr(error, "sqlite_errorcode", None) in _SQLITE_FULL
            or str(error) == "database or disk is full"
        ):
            return True
        error = error.__cause__
    return False
