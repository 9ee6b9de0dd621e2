"""What storage raises. The cluster turns the first group into API errors; the rest end in one line for the user.

    StorageError
    ├── MissingError        no object under that key
    ├── ExistsError         an object is already there
    ├── ConflictError       the object has another resource version than the caller expects
    ├── CompactedError      the change log no longer reaches back that far
    ├── LockTimeoutError    another writer kept the folder's lock for too long
    └── FolderError         the folder cannot be used, and why
        └── NoClusterError  there is no cluster in it
"""

from __future__ import annotations


class StorageError(Exception):
    """Anything storage refuses."""


class MissingError(StorageError):
    pass


class ExistsError(StorageError):
    pass


class ConflictError(StorageError):
    pass


class CompactedError(StorageError):
    pass


class LockTimeoutError(StorageError):
    pass


class FolderError(StorageError):
    pass


class NoClusterError(FolderError):
    pass
