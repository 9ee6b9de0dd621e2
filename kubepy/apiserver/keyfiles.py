"""The private keys in the ``.kubepy/`` of a state folder, each in a file of mode 0600.

They survive restarts. One that is missing, damaged or not kubepy's own is made anew. All are of the
curve P-256.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubepy import system
from kubepy.storage import FolderError, homes

SIGNING_KEY = "sa.key"  # signs the tokens of ServiceAccounts
LOCK, LOCK_SECONDS = "keys.lock", 10.0
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
DRAWN_BYTES = 40  # so many more than the order has that every key is about as likely

Say = Callable[[str], None]


@contextmanager
def keys_lock(folder: str) -> Iterator[None]:
    """Let no other process make keys for the length of a block. Make ``.kubepy/`` where it is
    missing. Raises FolderError, LockTimeoutError."""
    homes.make_own_folder(folder)
    lock = homes.lock_of(folder, LOCK)
    lock.acquire(LOCK_SECONDS)  # a server may be starting
    try:
        yield
    finally:
        lock.release()


class KeyFiles:
    """Files of keys in the ``.kubepy/`` of a state folder.

    :param say: is told what had to be made anew.
    :ivar contents: what the files hold that have been read or written, by their names.
    :cvar public: the names of files that are no secret.
    """

    public: Collection[str] = ()

    def __init__(self, folder: str, say: Say) -> None:
        self.folder = folder
        self.say = say
        self.contents: dict[str, bytes] = {}

    def restore(self) -> None:
        """Put files back that are gone: ``.kubepy/`` may be removed at any time, and clients trust
        its keys."""
        missing = [name for name in self.contents if not os.path.lexists(self.path(name))]
        if missing and os.path.exists(os.path.join(self.folder, "kubepy.yaml")):
            homes.make_own_folder(self.folder)
            for name in missing:
                self.write(name, self.contents[name])

    def path(self, name: str) -> str:
        return homes.own_path(self.folder, name)

    def read(self, name: str) -> bytes:
        """Return what a file holds; nothing if there is none, and it is no news that it is made.
        Raises FolderError."""
        try:
            descriptor = os.open(self.path(name), system.READ)
            with open(descriptor, "rb") as file:
                content = file.read()
                is_public = system.is_open_to_others(os.fstat(descriptor).st_mode)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise FolderError(f"{self.path(name)}: cannot be read: {error.strerror}") from error

        if is_public and name not in self.public:
            if homes.has_modes(self.path(name)):
                self.say(f"{self.path(name)} could be read by other users: made anew")
                return b""
            self.say(f"{self.path(name)} can be read by other users: its file system has no modes")

        self.contents[name] = content
        return content

    def write(self, name: str, content: bytes) -> None:
        """Put a file in place at once, which only its owner may read. Raises FolderError."""
        try:
            homes.write_content(self.folder, name, content)
            self.contents[name] = content
        except OSError as error:
            raise FolderError(f"{self.path(name)}: cannot be written: {error.strerror}") from error

    def is_own(self, name: str) -> bool:
        """Return whether a file that was read holds what was written to it here; if not, say that
        it is made anew."""
        is_own = homes.is_own_content(self.folder, name, self.contents[name])
        if not is_own:
            self.say(f"{self.path(name)} was not written by kubepy: made anew")
        return is_own

    def private_key(self, name: str) -> ec.EllipticCurvePrivateKey:
        """Return a private key, made if there is none. Raises FolderError."""
        key = self.known_private_key(name)
        if key is None:
            key = ec.generate_private_key(ec.SECP256R1())
            self.write(name, pem_of_key(key))
        return key

    def known_private_key(self, name: str) -> ec.EllipticCurvePrivateKey | None:
        """Return a private key that is there and good; None where it is to be made. Raises
        FolderError."""
        key = _parsed_key(self.read(name))
        if key is not None and self.is_own(name):
            return key
        if name in self.contents and key is None:
            self.say(f"{self.path(name)} is damaged: made anew")
        return None


# --- the key of ServiceAccounts -------------------------------------------------------------------


def signing_key(folder: str, say: Say) -> bytes:
    """Return the key that signs the tokens of ServiceAccounts, in PEM, made if there is none.
    Raises FolderError, LockTimeoutError."""
    with keys_lock(folder):
        return pem_of_key(KeyFiles(folder, say).private_key(SIGNING_KEY))


def known_signing_key(folder: str) -> bytes:
    """Return the key of :func:`signing_key` if it is there and good; nothing otherwise. Raises
    FolderError."""
    key = KeyFiles(folder, lambda line: None).known_private_key(SIGNING_KEY)
    return b"" if key is None else pem_of_key(key)


def key_of_seed(seed: int | str) -> bytes:
    """Return a private key that a seed alone decides, in PEM: whoever knows the seed has it, so it
    is for clusters that nobody else reaches."""
    digest = hashlib.shake_256(f"key of ServiceAccounts\0{seed}".encode()).digest(DRAWN_BYTES)
    number = 1 + int.from_bytes(digest) % (ORDER - 1)
    return pem_of_key(ec.derive_private_key(number, ec.SECP256R1()))


# --- PEM ------------------------------------------------------------------------------------------


def _parsed_key(content: bytes) -> ec.EllipticCurvePrivateKey | None:
    """Return the private key in PEM, None where it is none of the curve P-256."""
    try:
        key = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    return None


def pem_of_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def new_key_pem() -> bytes:
    """Make a private key; return it in PEM."""
    return pem_of_key(ec.generate_private_key(ec.SECP256R1()))
