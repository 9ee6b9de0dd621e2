"""Whose ``.kubepy/`` it is: made on this machine by this user, or brought along by a clone, a
tarball, a copy.

What lies in ``.kubepy/`` has power: contexts send commands to other folders, keys open a server,
and the index writes objects. So nothing in it counts unless this user has made it here. The user
has a key, in the state directory of XDG. When ``.kubepy/`` is made, it gets two files:

    origin   a random word, never written again; nobody can give another file its inode and its
             times
    marks    codes made with the user's key: of the origin with its inode and times and the inode of
             the folder (a copy of hard links has another folder), of the index with its inode, and
             of the content of each file that has power (contexts, keys)

A rename of the state folder, a reboot and a remount keep these; no copy does. What is not the
user's own is renamed to ``.kubepy.untrusted`` and never read. The folder of an earlier version has
no marks: it is the user's where it is private, where git does not have it, and where its index
knows the files around it by their inodes and times.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from kubepy import system
from kubepy.lazy import blake2b, lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import FolderError, LockTimeoutError

with lazy_imports():
    from kubepy.storage import processes
    from kubepy.storage.folder import evidence, files, locks

OWN = ".kubepy"  # the folder of what is this machine's own
UNTRUSTED = ".kubepy.untrusted"
ORIGIN, MARKS = "origin", "marks"
INDEX = "index.db"
JOURNAL = f"{INDEX}-journal"
LOG = f"{INDEX}-wal"
MARKED = ("config", "token", "ca.key", "apiserver.key", "sa.key")
ORIGIN_VALUE = "origin"  # in the index: its codes
NETWORK = "network"  # the mark of a folder whose webhooks may be called

TRUST = "KUBEPY_TRUST"
YES = ("1", "true", "yes", "on")  # values of it; no other trusts anything
KEY_BYTES, CODE_BYTES = 32, 16
MOST_CODES = 8  # of other keys that are kept
LOCK_SECONDS = 10.0

Marks = dict[str, list[str]]

_NOT_YOURS = "was not made by you on this machine"
_trusted: set[str] = set()  # the folders that this process was told to trust
# By device and inode: each `.kubepy/` and each index that this process found to be the user's, and
# the state folders whose webhooks it may call. So nothing changes for it while somebody removes
# `.kubepy/`, file by file.
_known: set[tuple[int, int]] = set()
_known_indexes: set[tuple[int, int]] = set()
_networked: set[tuple[int, int]] = set()
_keys: dict[str, bytes] = {}  # the user's key, by its path


# --- what the user says ---------------------------------------------------------------------------


def is_trusted_by_request(root: str) -> bool:
    """Return whether the user has said that whatever is in a state folder is to be trusted,
    by --trust or in the environment."""
    return os.environ.get(TRUST, "").lower() in YES or os.path.realpath(root) in _trusted


def trust_in_this_process(root: str) -> None:
    """Trust whatever is in a state folder as long as this process runs (``--trust``)."""
    _trusted.add(os.path.realpath(root))


# --- the user's key -------------------------------------------------------------------------------


def user_directory() -> str:
    """Return the directory of what kubepy keeps for this user: the one of XDG, or in ``/var/tmp``
    without a home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~")
        base = os.path.join(home, ".local", "state") if os.path.isabs(home) else ""
    if base and _is_writable(base):
        return os.path.join(base, "kubepy")
    return f"{_temporary_folder()}/kubepy-{system.user_id()}"


def _temporary_folder() -> str:
    """Return a folder in which every user may keep files."""
    return "/var/tmp" if os.path.isdir("/var/tmp") else os.environ.get("TEMP", "/tmp")


def _is_writable(path: str) -> bool:
    """Return whether a folder can be made in a path, of which the last parts may be missing."""
    while not os.path.isdir(path):
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return system.is_usable_folder(path)


def user_key() -> bytes:
    """Return the key of this user, made when it is first asked for. Raises FolderError where it
    cannot be kept."""
    path = os.path.join(user_directory(), "key")
    key = _keys.get(path)
    if key is None:
        key = _keys[path] = _read_key(path) or _make_key(path)
    return key


def _read_key(path: str) -> bytes:
    """Return the key in a file; nothing where there is none, where it is another user's, or others
    can read it."""
    try:
        descriptor = os.open(path, system.READ)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise FolderError(f"{printable(path)}: cannot be read: {error.strerror}") from error
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if status.st_uid != system.user_id():
            return b""
        if system.is_open_to_others(status.st_mode) and evidence.has_modes(path):
            return b""
        key = file.read(KEY_BYTES + 1)
    return key if len(key) == KEY_BYTES else b""


def _make_key(path: str) -> bytes:
    """Make the key; of processes that do so at once, one makes it for all. Raises FolderError."""
    directory, temporary = os.path.dirname(path), f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        if os.stat(directory).st_uid != system.user_id():
            raise FolderError(
                f"{printable(directory)} belongs to another user: set $XDG_STATE_HOME"
            )
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        descriptor = os.open(temporary, system.WRITE_NEW, 0o600)
        with open(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(descriptor)
        try:
            system.name_new(temporary, path)
        except FileExistsError:
            if not _read_key(path):  # damaged, or others can read it
                system.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise FolderError(
            f"{printable(path)}: cannot be made: {error.strerror}; kubepy keeps a key there, by "
            f"which it "
            f"knows its folders: set $XDG_STATE_HOME, or {TRUST}=1"
        ) from error

    return _read_key(path)


# --- codes ----------------------------------------------------------------------------------------


def _code(word: str, subject: str, content: bytes) -> str:
    """Return the code of a content under a name in the ``.kubepy/`` whose origin has a word. Raises
    FolderError."""
    return blake2b(user_key() + f"{word}\0{subject}\0".encode() + content, CODE_BYTES).hex()


class OriginFile(NamedTuple):
    """The origin of a ``.kubepy/``: its word, and the codes of its file, by its inode and by its
    birth."""

    word: str
    codes: list[str]


def _read_origin(own: str) -> OriginFile | None:
    """Read the origin in a folder, None without one."""
    path = os.path.join(own, ORIGIN)
    try:
        descriptor = os.open(path, system.READ | system.READ_AT_ONCE)
        with open(descriptor, encoding="ascii", errors="replace") as file:
            status = os.fstat(descriptor)
            word = file.read(2 * KEY_BYTES + 1)
        folder = os.stat(own).st_ino
    except OSError:
        return None
    if len(word) != 2 * KEY_BYTES or not stat.S_ISREG(status.st_mode):
        return None
    content = f"{folder}:{status.st_ino}:{status.st_ctime_ns}"
    return OriginFile(word, [_code(word, ORIGIN, content.encode())])


def _origin_birth_codes(own: str, word: str) -> list[str]:
    """Return the code of the times of birth of a ``.kubepy/`` and its origin."""
    return _birth_codes(word, ORIGIN, os.path.join(own, ORIGIN), own)


def _birth_codes(word: str, subject: str, *paths: str) -> list[str]:
    """Return the code of the times of birth of files, which a change of mode or owner keeps, and a
    file system that gives files new inodes; none where the system does not tell them."""
    born = [evidence.birth_ns(path) for path in paths]
    if not all(born):
        return []
    return [_code(word, subject, f"born:{':'.join(map(str, born))}".encode())]


def _read_marks(own: str) -> Marks:
    """Return the marks in a folder, none where they cannot be read."""
    try:
        descriptor = os.open(os.path.join(own, MARKS), system.READ | system.READ_AT_ONCE)
        with open(descriptor, encoding="utf-8") as file:
            marks = json.loads(file.read(1 << 16))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(marks, dict):
        return {}
    return {name: codes for name, codes in marks.items() if isinstance(codes, list)}


class OwnMarks(NamedTuple):
    """The word and the marks of a ``.kubepy/`` that is this user's."""

    word: str
    marks: Marks


def _read_own(own: str) -> OwnMarks | None:
    """Return the word and the marks of a folder, None where it is not this user's. Raises
    FolderError."""
    found = _read_origin(own)
    if found is None:
        return None
    marks = _read_marks(own)
    known = marks.get(ORIGIN, [])
    if any(code in known for code in found.codes):
        return OwnMarks(found.word, marks)
    if known and any(code in known for code in _origin_birth_codes(own, found.word)):
        return OwnMarks(found.word, marks)
    return None


# --- asking ---------------------------------------------------------------------------------------


def own_link(root: str) -> str:
    """Return the path of a symbolic link that is ``.kubepy/`` or lies in it, "" without one."""
    return link_in(os.path.join(root, OWN))


def link_in(folder: str) -> str:
    """Return the path of a symbolic link that is a folder or lies in it, "" without one."""
    if os.path.islink(folder):
        return folder
    try:
        with os.scandir(folder) as entries:
            return next(
                (os.path.join(folder, entry.name) for entry in entries if entry.is_symlink()), ""
            )
    except OSError:  # not there, or not ours: then nothing in it is used
        return ""


def is_own(root: str) -> bool:
    """Return whether there is a ``.kubepy/`` in a state folder that this user has made here, or was
    told to trust."""
    own = os.path.join(root, OWN)
    if own_link(root) or not os.path.isdir(own):
        return False
    if is_trusted_by_request(root):
        return True
    identity = _identify(own)
    try:
        found = _read_own(own)
    except FolderError:
        return False
    if identity is not None and found is not None:
        _known.add(identity)
        return True
    return identity in _known and not _has_marks(own)


def _identify(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_marks(own: str) -> bool:
    return all(os.path.lexists(os.path.join(own, name)) for name in (ORIGIN, MARKS))


def is_own_content(root: str, name: str, content: bytes) -> bool:
    """Return whether a file of ``.kubepy/`` has the content that kubepy has given it here."""
    if is_trusted_by_request(root):
        return True
    try:
        found = _read_own(os.path.join(root, OWN))
        return found is not None and _code(found.word, name, content) in found.marks.get(name, [])
    except FolderError:
        return False


def may_use_network(root: str) -> bool:
    """Return whether the webhooks of a state folder may be called: it was made here, or trusted
    later."""
    if not is_own_content(root, NETWORK, b""):
        return False
    if identity := _identify(root):
        _networked.add(identity)
    return True


# --- the index ------------------------------------------------------------------------------------


def index_codes(own: str, path: str) -> str:
    """Return the codes that a new index has in it as the one of a ``.kubepy/``: of its file's inode
    and time of birth.

    "" where nothing tells whose the folder is. Raises FolderError, OSError.
    """
    found = _read_own(own)
    if found is None and _identify(own) in _known and not _has_marks(own):
        _write_origin(own, network=_identify(os.path.dirname(own)) in _networked)
        found = _read_own(own)
    if identity := _identify(path):
        _known_indexes.add(identity)
    return (
        " ".join([_inode_code(found.word, path), *_birth_codes(found.word, INDEX, path)])
        if found
        else ""
    )


def _inode_code(word: str, path: str) -> str:
    return _code(word, INDEX, str(os.lstat(path).st_ino).encode())


def is_own_index(root: str, codes: str) -> bool:
    """Return whether an index that has some codes in it was made for its state folder, and not put
    there since."""
    own = os.path.join(root, OWN)
    path = os.path.join(own, INDEX)
    identity = _identify(path)
    if is_trusted_by_request(root) or identity in _known_indexes:
        return True
    try:
        found = _read_own(own)
        if found is None or identity is None:
            return False
        known = codes.split()
        is_own = _inode_code(found.word, path) in known or any(
            code in known for code in _birth_codes(found.word, INDEX, path)
        )
    except (FolderError, OSError):
        return False

    if is_own:
        _known_indexes.add(identity)
    return is_own


def has_strange_log(root: str) -> bool:
    """Return whether somebody has put a log beside the index, which SQLite would carry out: a
    journal, which an index of ours never has, or a log that git or an archive has brought."""
    own = os.path.join(root, OWN)
    if is_trusted_by_request(root):
        return False
    if os.path.lexists(os.path.join(own, JOURNAL)):
        return True
    log = os.path.join(own, LOG)
    if not os.path.lexists(log):
        return False
    if not os.path.isfile(log):  # a pipe, for example, on which SQLite fails
        return True
    return evidence.has_set_times(log) or evidence.is_written_by_git(own, LOG)


# --- making ---------------------------------------------------------------------------------------


def make(root: str, *, network: bool = False) -> bool:
    """Make ``.kubepy/`` with its marks at once, so that no process meets it without; return False
    if there is one.

    ``network``: its webhooks may be called. Raises OSError, FolderError.
    """
    own = os.path.join(root, OWN)
    remove_left_by_the_dead(root)
    unfinished = f"{own}.{os.getpid()}-{get_ident()}.tmp"
    os.mkdir(unfinished, 0o700)  # a state folder that is gone must not come back empty
    try:
        if _has_key() or not is_trusted_by_request(root):
            _write_origin(unfinished, network=network or _identify(root) in _networked)
        sync_folder(unfinished)
        os.rename(unfinished, own)
    except OSError as error:
        _remove_unfinished(unfinished)
        if error.errno not in (
            errno.ENOTEMPTY,
            errno.EEXIST,
            errno.ENOTDIR,
        ):  # another process was first
            raise
        return False
    except BaseException:
        _remove_unfinished(unfinished)
        raise

    sync_folder(root)
    return True


def sync_folder(path: str) -> None:
    """Make the entries of a folder durable. Raises OSError."""
    system.sync_folder(path)


def remove_left_by_the_dead(root: str) -> None:
    """Remove every ``.kubepy/`` that a process had begun to make when it died. Raises OSError."""
    for name in os.listdir(root):
        unfinished = re.fullmatch(rf"{re.escape(OWN)}\.(\d+)-(\d+)\.tmp", name)
        if unfinished and not processes.is_alive(unfinished[1]):
            _remove_unfinished(os.path.join(root, name))


def _remove_unfinished(path: str) -> None:
    """Remove a ``.kubepy/`` that was not finished, if there is one. Raises OSError."""
    with suppress(FileNotFoundError):
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)


def _has_key() -> bool:
    try:
        return bool(user_key())
    except FolderError:
        return False


def _write_origin(own: str, *, network: bool) -> None:
    """Write the origin and the marks of a folder. Raises OSError, FolderError."""
    word = os.urandom(KEY_BYTES).hex()
    path = os.path.join(own, ORIGIN)
    with suppress(FileNotFoundError):
        os.unlink(path)
    with open(os.open(path, system.WRITE_NEW, 0o600), "w") as file:
        file.write(word)
        file.flush()
        os.fsync(file.fileno())

    found = _read_origin(own)
    assert found is not None
    marks = {ORIGIN: [*found.codes, *_origin_birth_codes(own, word)]}
    if network:
        marks[NETWORK] = [_code(word, NETWORK, b"")]
    _write_marks(own, marks)


def _write_marks(own: str, marks: Marks) -> None:
    """Replace the marks of a folder. Raises OSError."""
    path = os.path.join(own, MARKS)
    write_private(path, json.dumps(marks).encode())


def write_private(path: str, content: bytes) -> None:
    """Replace a file, which only its owner may read, in one step. Raises OSError."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)  # of a process that died
    try:  # a new file: in /tmp one that is there might be another user's
        with open(os.open(temporary, system.WRITE_NEW, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        system.replace(temporary, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_content(root: str, name: str, content: bytes) -> None:
    """Write a file of ``.kubepy/`` that has power, and its mark. Raises OSError, FolderError,
    LockTimeoutError."""
    own = os.path.join(root, OWN)
    path = os.path.join(own, name)
    with _marks_lock(own):
        found = _read_own(own)
        if found is None:  # only trusted by request
            write_private(path, content)
            return
        code = _code(found.word, name, content)
        _write_marks(own, {**found.marks, name: [*found.marks.get(name, []), code]})
        write_private(path, content)
        _write_marks(own, {**found.marks, name: [code]})


@contextmanager
def _marks_lock(own: str) -> Iterator[None]:
    with _hold(os.path.join(own, f"{MARKS}.lock")):
        yield


@contextmanager
def _hold(path: str) -> Iterator[None]:
    lock = locks.Lock(path)
    lock.acquire(LOCK_SECONDS)
    try:
        yield
    finally:
        lock.release()


# --- strangers ------------------------------------------------------------------------------------


def examine(root: str) -> str:
    """Put a ``.kubepy/`` aside that is not this user's, or adopt that of an earlier version.

    Return a line about it for the user, "" where there is nothing to tell. After it ``.kubepy/`` is
    the user's, or there is none, or the line says why it is not used.
    """
    own = os.path.join(root, OWN)
    if not os.path.lexists(own) or is_own(root):
        return ""
    try:
        with _user_lock():
            if not os.path.lexists(own) or is_own(root):  # another process was first
                return ""
            if own_link(root) and not os.path.islink(own) and _read_own(own) is not None:
                # somebody has put a link into it, which whoever would write through it refuses
                return ""
            if _is_made_here(root):
                has_origin = os.path.lexists(os.path.join(own, ORIGIN))
                _mark_as_own(root, network=not has_origin or NETWORK in _read_marks(own))
                if has_origin:  # the user has another key: another $HOME, for example
                    return ""
                return (
                    f"{printable(own)} is of an earlier version of kubepy, and yours: it is adopted"
                )
            return _set_aside(root)
    except FileNotFoundError:  # somebody removes it just now
        return ""
    except OSError as error:
        return (
            f"{printable(own)} {_NOT_YOURS}: it is not used, and cannot be renamed: "
            f"{error.strerror}"
        )
    except (FolderError, LockTimeoutError) as error:
        return f"{printable(own)} is not used: {error}"


@contextmanager
def _user_lock() -> Iterator[None]:
    """Hold the lock of all that is put aside by this user."""
    user_key()  # makes the directory
    with _hold(os.path.join(user_directory(), "lock")):
        yield


def _is_made_here(root: str) -> bool:
    """Return whether a ``.kubepy/`` without marks of this user's key is this user's: private, not
    known to git, and with an index that knows the files around it by what no copy keeps."""
    own = os.path.join(root, OWN)
    if own_link(root) or has_strange_log(root):
        return False
    status = os.lstat(own)
    if (
        status.st_uid != system.user_id()
        or system.is_open_to_others(stat.S_IMODE(status.st_mode))
        or evidence.is_known_to_git(own)
    ):
        return False
    return evidence.knows_its_files(root, os.path.join(own, INDEX))


def is_anothers(root: str) -> bool:
    """Return whether a state folder and its ``.kubepy/`` belong to another user, who may be working
    with it."""
    try:
        owner = os.lstat(os.path.join(root, OWN)).st_uid
        return owner != system.user_id() and os.stat(root).st_uid == owner
    except OSError:
        return False


def _set_aside(root: str) -> str:
    """Rename a ``.kubepy/`` that is not this user's, so that nobody reads it; return a line for the
    user. Raises OSError."""
    own = os.path.join(root, OWN)
    if is_anothers(root):
        return (
            f'{printable(own)} belongs to another user, and is not used ("kubepy trust", or '
            f"{TRUST}=1, uses it)"
        )

    target = _free_name(root)
    os.rename(own, target)
    if not os.path.islink(target):
        with suppress(OSError):
            write_private(os.path.join(target, ".gitignore"), b"*\n")
    return (
        f"{printable(own)} {_NOT_YOURS}: it is {os.path.basename(target)} now and not used; "
        f"index, keys and "
        'contexts are made anew ("kubepy trust" takes it back)'
    )


def _free_name(root: str) -> str:
    number, target = 1, os.path.join(root, UNTRUSTED)
    while os.path.lexists(target):
        number += 1
        target = os.path.join(root, f"{UNTRUSTED}.{number}")
    return target


def untrusted(root: str) -> list[str]:
    """Return the names of what was put aside in a state folder, the latest first."""
    try:
        names = [
            name
            for name in os.listdir(root)
            if name == UNTRUSTED or name.startswith(f"{UNTRUSTED}.")
        ]
    except OSError:
        return []
    numbers = {name: name.removeprefix(UNTRUSTED).removeprefix(".") or "1" for name in names}
    return sorted(
        (name for name in names if numbers[name].isdigit()), key=lambda name: -int(numbers[name])
    )


def trust(root: str) -> list[str]:
    """Trust a state folder from now on: what was put aside is taken back, and webhooks may be
    called.

    Return what was done, a line each. Raises FolderError, OSError, LockTimeoutError.
    """
    lines = []
    with _user_lock():
        own, aside = os.path.join(root, OWN), untrusted(root)
        if aside and (is_own(root) or not os.path.lexists(own)):
            lines.append(_take_back(root, aside[0]))
        if not os.path.lexists(own):
            make(root, network=True)
        if link := own_link(root):
            raise FolderError(f"{printable(link)} is a symbolic link")
        _mark_as_own(root, network=True)
    return lines


def _take_back(root: str, name: str) -> str:
    """Exchange ``.kubepy/`` and what was put aside; return a line about it. Raises OSError."""
    own, aside = os.path.join(root, OWN), os.path.join(root, name)
    if link := link_in(aside):
        raise FolderError(f"{printable(link)} is a symbolic link")
    replaced = ""
    if os.path.lexists(own):
        replaced = _free_name(root)
        os.rename(own, replaced)
        with suppress(OSError):
            write_private(os.path.join(replaced, ".gitignore"), b"*\n")
    os.rename(aside, own)
    if replaced:
        os.rename(replaced, aside)
        return f"{name} is {OWN} again, and what was made in its place is {name}"
    return f"{name} is {OWN} again"


def _mark_as_own(root: str, *, network: bool) -> None:
    """Mark a ``.kubepy/`` and all that is in it now as this user's. Marks made with other keys
    stay: the user may have one for each of several home directories. Raises OSError,
    FolderError."""
    own = os.path.join(root, OWN)
    os.chmod(own, 0o700)
    if os.path.lexists(os.path.join(own, JOURNAL)):
        raise FolderError(f"{printable(os.path.join(own, JOURNAL))} is not kubepy's: remove it")
    found = _read_origin(own)
    if found is None:
        _write_origin(own, network=network)
        found = _read_origin(own)
    assert found is not None
    word, marks = found.word, _read_marks(own)
    codes = {ORIGIN: [*found.codes, *_origin_birth_codes(own, word)]}
    if network:
        codes[NETWORK] = [_code(word, NETWORK, b"")]
    for name in MARKED:
        with suppress(FileNotFoundError):
            codes[name] = [_code(word, name, files.read_file(os.path.join(own, name)))]
    for name, added in codes.items():
        present = [code for code in marks.get(name, []) if code not in added]
        marks[name] = [*present[-MOST_CODES:], *added]
    _write_marks(own, marks)
    path = os.path.join(own, INDEX)
    if os.path.exists(path):
        evidence.note_in_index(path, ORIGIN_VALUE, index_codes(own, path), most=MOST_CODES)
