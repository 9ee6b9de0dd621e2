"""The key that signs the tokens of a cluster's ServiceAccounts, and its source."""

from __future__ import annotations

from _thread import allocate_lock  # the module threading takes two milliseconds
from collections.abc import Callable
from contextlib import suppress

from kubepy.lazy import lazy_imports
from kubepy.storage import FolderError

with lazy_imports():
    from kubepy.apiserver import keyfiles  # imports `cryptography`

Say = Callable[[str], None]


def no_folder() -> str:
    """Return that a cluster has no folder of this machine's own."""
    return ""


class AccountKeys:
    """Finds the key of a cluster when it is first needed.

    A cluster in a folder has it in ``.kubepy/``, where it is made. A fork has that of its origin
    and writes nothing: where there is none yet, and in memory, the seed decides it; without a seed
    it is drawn, for as long as the cluster is open.

    :param folder: returns the folder of what is this machine's own; "" for none. It may raise
        FolderError.
    """

    def __init__(
        self, folder: Callable[[], str], seed: int | str | None, *, is_fork: bool = False
    ) -> None:
        self._folder = folder
        self._seed = seed
        self._is_fork = is_fork
        self._own = b""
        self._lock = allocate_lock()

    def of_fork(self, seed: int | str | None) -> AccountKeys:
        """Return what finds the key of a fork, which has another seed."""
        return AccountKeys(
            self._folder,
            seed,
            is_fork=True,
        )

    def known(self) -> bytes:
        """Return the key in PEM; nothing where it has yet to be made in a folder. Raises
        FolderError, ImportError without ``cryptography``."""
        if self._is_fork or not self._folder():
            return self._key_in_memory()
        return keyfiles.known_signing_key(self._folder())

    def made(self, say: Say) -> bytes:
        """Return the key in PEM, made where there is none. Raises FolderError, LockTimeoutError,
        ImportError without ``cryptography``.

        :param say: is told if one had to be made anew.
        """
        if self._is_fork or not self._folder():
            return self._key_in_memory()
        return keyfiles.signing_key(self._folder(), say)

    def _key_in_memory(self) -> bytes:
        with self._lock:
            if not self._own:
                self._own = self._key_of_origin() or self._drawn()
            return self._own

    def _key_of_origin(self) -> bytes:
        if not self._is_fork or not self._folder():
            return b""
        with suppress(FolderError):  # it is another user's, who alone can read it
            return keyfiles.known_signing_key(self._folder())
        return b""

    def _drawn(self) -> bytes:
        if self._seed is None:
            return keyfiles.new_key_pem()
        return keyfiles.key_of_seed(self._seed)
