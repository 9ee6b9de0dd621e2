"""A simulated disk: the calls that change a folder are recorded, and the folder is laid out as a
power cut would leave it.

Two models. ``order``: names are made, moved and removed in the order of the calls up to the cut (a
journal of metadata), while the content of a file that was not synced is lost. ``synced``: any part
of the changes without a sync may be lost (a sync of the file for its content, of its folder for its
name, or of the whole file system).

SQLite keeps its own promises: the index survives up to its last transaction with
``synchronous=FULL`` (or its last close), and may keep later ones.
"""

from __future__ import annotations

import builtins
import io
import os
import pickle
import random
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.storage.folder import renames
from kubepy.storage.folder.files import StateFolder

FOLDER = -1  # the node of all folders
BEFORE = -1  # the time of operations before the recording
ORDER, SYNCED = "order", "synced"
CONTENT_LOSSES = ("empty", "zeros", "half")
NOTHING_LOST, ALL_LOST = "all", "none"  # unsynced changes that survive


class Touch(NamedTuple):
    """A change of a file itself; None: unchanged."""

    node: int
    data: bytes | None
    mtime_ns: int
    ctime_ns: int
    mode: int


class Operation(NamedTuple):
    """One call.

    :param entries: names that it binds to a node, or removes (None).
    :param nodes: files whose content is durable after it; ``folders``: folders whose names are;
        ``everything``: all.
    """

    call: str
    entries: tuple[tuple[str, int | None], ...] = ()
    touch: Touch | None = None
    nodes: tuple[int, ...] = ()
    folders: tuple[str, ...] = ()
    everything: bool = False


class Node(NamedTuple):
    """A file by its inode number. ``is_index``: a database."""

    inode: int
    is_index: bool


class Recording(NamedTuple):
    """The disk at the start, the calls, and the number of calls before each acknowledgement."""

    nodes: list[Node]
    start: tuple[Operation, ...]
    operations: list[Operation]
    transactions: list[int]
    ends: list[int]


class Survivor(NamedTuple):
    """A file on the disk after a cut."""

    inode: int
    data: bytes
    mtime_ns: int
    ctime_ns: int
    mode: int


Disk = dict[str, Survivor | None]  # None: a folder


# --- recording ---


class Recorder:
    """A recorder of this process's calls below a folder; only used in a forked child."""

    def __init__(self, root: Path) -> None:
        self._prefix = f"{root}/"
        self._nodes: list[Node] = []
        self._tree: dict[str, int] = {}
        self._last: dict[int, Touch] = {}
        self._descriptors: dict[int, str] = {}
        self._operations: list[Operation] = []
        self._transactions: list[int] = []
        self._ends: list[int] = []
        self._start: tuple[Operation, ...] = ()
        self._lstat, self._open, self._scandir = os.lstat, builtins.open, os.scandir

    def recording(self) -> Recording:
        return Recording(self._nodes, self._start, self._operations, self._transactions, self._ends)

    def acknowledge_transaction(self) -> None:
        self._transactions.append(len(self._operations))

    def acknowledge_end(self) -> None:
        """Note that a command has ended."""
        self._ends.append(len(self._operations))

    def arm(self) -> None:
        """Note the current files, and replace the functions that change files by recording ones."""
        self._note_start()
        self._arm_names()
        self._arm_files()
        self._arm_open()
        self._arm_sqlite()
        self._arm_sync_all()

    def _note_start(self) -> None:
        for directory, folders, files in os.walk(self._prefix):
            for name in (*folders, *files):
                path = os.path.join(directory, name)
                if path.endswith(("-wal", "-shm")):
                    continue
                self._add(
                    os.path.relpath(path, self._prefix), f"start {name}", is_folder=name in folders
                )
        self._start, self._operations = tuple(self._operations), []

    def _add(
        self, path: str, call: str, *, is_folder: bool = False, is_index: bool = False
    ) -> None:
        """Record a new name, of a new node."""
        if is_folder:
            self._tree[path] = FOLDER
            self._record(Operation(call, ((path, FOLDER),)))
            return
        number = len(self._nodes)
        self._nodes.append(
            Node(self._lstat(self._prefix + path).st_ino, is_index or path.endswith("index.db"))
        )
        self._tree[path] = number
        self._record(Operation(call, ((path, number),), self._touch_of(path, number)))

    def _record(self, operation: Operation) -> None:
        self._operations.append(operation)
        if touch := operation.touch:
            before = self._last.get(touch.node)
            self._last[touch.node] = (
                touch._replace(data=before.data) if before and touch.data is None else touch
            )

    def _touch_of(
        self, path: str, node: int, data: bytes | None = None, *, with_data: bool = True
    ) -> Touch:
        found = self._lstat(self._prefix + path)
        if data is None and with_data:
            with self._open(self._prefix + path, "rb") as file:
                data = file.read()
        return Touch(node, data, found.st_mtime_ns, found.st_ctime_ns, stat.S_IMODE(found.st_mode))

    def _path(self, path: Any, directory: int | None = None) -> str | None:
        """Return a path relative to the folder, None outside of it. A descriptor stands for the
        path it was opened with."""
        if isinstance(path, int):
            return self._descriptors.get(path)
        text = os.fsdecode(path)
        if directory is not None:
            parent = self._descriptors.get(directory)
            return None if parent is None else os.path.normpath(f"{parent}/{text}")
        text = os.path.abspath(text)
        return text[len(self._prefix) :] if text.startswith(self._prefix) else None

    def _arm_names(self) -> None:
        self._wrap(
            "mkdir", lambda path, **options: self._on_made(self._path(path, options.get("dir_fd")))
        )
        for name in ("unlink", "remove", "rmdir"):
            self._wrap(
                name,
                lambda path, *, name=name, **options: self._on_gone(
                    name, self._path(path, options.get("dir_fd"))
                ),
            )
        for name in ("rename", "replace"):
            self._wrap(
                name,
                lambda source, target, *, name=name, **options: self._on_moved(
                    name,
                    self._path(source, options.get("src_dir_fd")),
                    self._path(target, options.get("dst_dir_fd")),
                ),
            )
        self._wrap(
            "link",
            lambda source, target, **options: self._on_linked(
                self._path(source, options.get("src_dir_fd")),
                self._path(target, options.get("dst_dir_fd")),
            ),
        )
        self._wrap_renameat2()

    def _wrap_renameat2(self) -> None:
        real = renames.renameat2

        def run(source: str, target: str, flags: int) -> None:
            real(source, target, flags)
            if flags == renames.EXCHANGE:
                self._on_exchanged(self._path(source), self._path(target))
            else:
                self._on_moved("rename", self._path(source), self._path(target))

        renames.renameat2 = run

    def _wrap(self, name: str, then: Callable[..., None]) -> None:
        real = getattr(os, name)

        def run(*arguments: Any, **options: Any) -> Any:
            done = real(*arguments, **options)
            places = 2 if name in ("rename", "replace", "link") else 1
            then(*arguments[:places], **options)
            return done

        setattr(os, name, run)

    def _on_made(self, path: str | None) -> None:
        if path is not None:
            self._add(path, f"mkdir {path}", is_folder=True)

    def _on_gone(self, call: str, path: str | None) -> None:
        if path is not None and self._tree.pop(path, None) is not None:
            self._record(Operation(f"{call} {path}", ((path, None),)))

    def _on_moved(self, call: str, source: str | None, target: str | None) -> None:
        if source is None or target is None or source not in self._tree:
            return
        node = self._tree.pop(source)
        self._tree[target] = node
        touch = None if node == FOLDER else self._touch_of(target, node, with_data=False)
        self._record(Operation(f"{call} {target}", ((source, None), (target, node)), touch))

    def _on_exchanged(self, source: str | None, target: str | None) -> None:
        """Record that two files have exchanged their names: one call, of which a power cut leaves
        all or nothing."""
        if source is None or target is None or source not in self._tree or target not in self._tree:
            return
        self._tree[source], self._tree[target] = self._tree[target], self._tree[source]
        entries = ((source, self._tree[source]), (target, self._tree[target]))
        self._record(
            Operation(
                f"exchange {target}",
                entries,
                self._touch_of(target, self._tree[target], with_data=False),
            )
        )
        self._on_touched("time of", source, False)

    def _on_linked(self, source: str | None, target: str | None) -> None:
        if source in self._tree and target is not None:
            node = self._tree[target] = self._tree[source]
            self._record(
                Operation(
                    f"link {target}",
                    ((target, node),),
                    self._touch_of(target, node, with_data=False),
                )
            )

    def _arm_files(self) -> None:
        for name in ("utime", "chmod", "fchmod"):
            self._wrap(
                name,
                lambda path, *, name=name, **options: self._on_touched(
                    name, self._path(path), False
                ),
            )
        for name in ("write", "truncate", "ftruncate"):
            self._wrap(
                name,
                lambda path, *, name=name, **options: self._on_touched(
                    name, self._path(path), True
                ),
            )
        for name in ("fsync", "fdatasync"):
            self._wrap(name, lambda descriptor: self._on_synced(self._path(descriptor)))

    def _on_touched(self, call: str, path: str | None, has_content: bool) -> None:
        node = self._tree.get(path) if path is not None else None
        if path is not None and node is not None and node != FOLDER:
            touch = self._touch_of(path, node, with_data=has_content)
            if touch != self._last.get(node):  # closing a flushed file writes nothing
                self._record(Operation(f"{call} {path}", touch=touch))

    def _on_synced(self, path: str | None) -> None:
        if path == ".":
            path = ""
        if path is None or (path and path not in self._tree):
            return
        if path == "" or self._tree[path] == FOLDER:
            self._record(Operation(f"fsync {path}/", folders=(path,)))
        else:
            self._record(Operation(f"fsync {path}", nodes=(self._tree[path],)))

    def _arm_open(self) -> None:
        real_os_open, real_open, real_close = os.open, builtins.open, os.close

        def os_open(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            descriptor = real_os_open(path, flags, *arguments, **options)
            self._on_opened(
                descriptor,
                self._path(path, options.get("dir_fd")),
                truncated=bool(flags & os.O_TRUNC),
            )
            return descriptor

        def close(descriptor: int) -> None:
            self._descriptors.pop(descriptor, None)
            real_close(descriptor)

        def open_file(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            opened = real_open(file, mode, *arguments, **options)
            path = self._path(file) if not isinstance(file, int) else None
            if path is None or not set(mode) & set("wax+"):
                return opened
            self._on_opened(opened.fileno(), path, truncated="w" in mode)
            return RecordedFile(
                opened,
                lambda: self._on_touched("write", path, True),
                lambda: self._descriptors.pop(opened.fileno(), None),
            )

        os.open, os.close = os_open, close  # type: ignore[assignment]
        builtins.open = io.open = open_file  # type: ignore[assignment]

    def _on_opened(self, descriptor: int, path: str | None, *, truncated: bool) -> None:
        """Remember the path of every descriptor, also of read-only ones: syncing needs no right to
        write."""
        if path is None:
            if self._prefix.rstrip("/") == os.path.realpath(f"/proc/self/fd/{descriptor}"):
                self._descriptors[descriptor] = ""
            return
        self._descriptors[descriptor] = path
        if path not in self._tree and os.path.exists(self._prefix + path):
            self._add(path, f"open {path}")
        elif truncated:
            self._on_touched("open, truncated,", path, True)

    def _arm_sync_all(self) -> None:
        recorder, real = self, StateFolder.sync_all

        def sync_all(folder: StateFolder) -> None:
            real(folder)
            recorder._record(Operation("syncfs", everything=True))

        StateFolder.sync_all = sync_all  # type: ignore[method-assign]

    # --- the index ---

    def _arm_sqlite(self) -> None:
        recorder, real = self, sqlite3.connect

        class Connection(sqlite3.Connection):
            path: str | None = None
            changes = 0
            has_synced = False

            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                done = super().execute(sql, *parameters)
                if sql.strip().rstrip(";").upper() in ("COMMIT", "END") or not self.in_transaction:
                    self.note()
                return done

            def executescript(self, sql: str) -> sqlite3.Cursor:
                done = super().executescript(sql)
                self.note(force="CREATE" in sql)
                return done

            def commit(self) -> None:
                super().commit()
                self.note()

            def note(self, *, force: bool = False) -> None:
                if self.path is not None and (force or self.total_changes != self.changes):
                    self.changes = self.total_changes
                    (level,) = super().execute("PRAGMA synchronous").fetchone()
                    is_durable = level >= 2
                    recorder.on_commit(
                        self.path, self.serialize(), is_durable, is_durable and not self.has_synced
                    )
                    self.has_synced = self.has_synced or is_durable

            def close(self) -> None:
                super().close()
                if self.path is not None:
                    recorder.on_index_closed(self.path)

        def connect(database: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = real(database, *arguments, **{"factory": Connection, **options})
            if isinstance(connection, Connection) and not str(database).startswith(
                (":memory:", "file:")
            ):
                connection.path = recorder._path(database)
            return connection

        sqlite3.connect = connect  # type: ignore[assignment]

    def on_commit(self, path: str, data: bytes, is_durable: bool, is_first_sync: bool) -> None:
        """Record a transaction. A connection that syncs its log for the first time syncs the log's
        folder, too (UNIXFILE_DIRSYNC in SQLite's ``os_unix.c``)."""
        if path not in self._tree:
            self._add(path, f"new index {path}", is_index=True)
        node = self._tree[path]
        self._nodes[node] = self._nodes[node]._replace(is_index=True)
        self._record(
            Operation(
                f"commit ({'FULL' if is_durable else 'NORMAL'})",
                touch=self._touch_of(path, node, data),
                nodes=(node,) if is_durable else (),
                folders=(path.rpartition("/")[0],) if is_first_sync else (),
            )
        )

    def on_index_closed(self, path: str) -> None:
        if (node := self._tree.get(path)) is not None:
            self._record(Operation("close of the index", nodes=(node,)))


class RecordedFile:
    """A file opened for writing by ``open``."""

    def __init__(
        self, file: Any, written: Callable[[], None], closed: Callable[[], object]
    ) -> None:
        self._file, self._written, self._closed = file, written, closed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> RecordedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def flush(self) -> None:
        self._file.flush()
        self._written()

    def close(self) -> None:
        if not self._file.closed:
            self._file.flush()
            self._closed()
            self._file.close()
            self._written()


def write_recording(recording: Recording, descriptor: int) -> None:
    with os.fdopen(descriptor, "wb") as pipe:
        pickle.dump(recording, pipe)


# --- the disk after a cut ---


def disk_after(recording: Recording, cut: int, model: str, choice: str) -> Disk:
    """Return the disk after a power cut at ``cut`` calls.

    :param choice: in the model ``order`` the fate of unsynced content (CONTENT_LOSSES); in
        ``synced`` the unsynced changes that survive: none, all, or random ones, for which it is the
        seed.
    """
    done = [*recording.start, *recording.operations[:cut]]
    durable = _durable(done, len(recording.start))
    survives = (
        durable
        if model == SYNCED and choice == ALL_LOST
        else _Kept([True] * len(done), [True] * len(done))
    )
    if model == SYNCED and choice not in (ALL_LOST, NOTHING_LOST):
        survives = _by_chance(durable, random.Random(choice))
    contents = _Contents(recording, done, durable, survives, choice)
    tree = _names(done, survives.names)
    return {
        path: None if node == FOLDER else contents.of(node, torn=model == ORDER)
        for path, node in tree.items()
    }


class _Kept(NamedTuple):
    """Flags of each call: its names are on the disk, its change of a file is on the disk."""

    names: list[bool]
    touches: list[bool]


def _durable(done: list[Operation], at_start: int) -> _Kept:
    """Return which calls later calls have synced; the state at the start is on the disk."""
    nodes: set[int] = set()
    folders: set[str] = set()
    everything = False
    names, touches = [True] * len(done), [True] * len(done)
    for index in range(len(done) - 1, at_start - 1, -1):
        operation = done[index]
        everything = everything or operation.everything
        nodes.update(operation.nodes)
        folders.update(operation.folders)
        if not everything:
            names[index] = all(path.rpartition("/")[0] in folders for path, _ in operation.entries)
            touches[index] = operation.touch is None or operation.touch.node in nodes
    return _Kept(names, touches)


def _by_chance(durable: _Kept, chance: random.Random) -> _Kept:
    return _Kept(*([kept or chance.random() < 0.5 for kept in each] for each in durable))


def _names(done: list[Operation], survives: list[bool]) -> dict[str, int]:
    """Return the names on the disk. The contents of a folder disappear with its name."""
    tree: dict[str, int] = {}
    for operation, is_there in zip(done, survives, strict=True):
        for path, node in operation.entries if is_there else ():
            if node is not None:
                if "/" not in path or tree.get(path.rpartition("/")[0]) == FOLDER:
                    tree[path] = node
            elif tree.pop(path, None) == FOLDER:
                for inside in [other for other in tree if other.startswith(f"{path}/")]:
                    del tree[inside]
    return tree


class _Contents:
    """The contents of files after a cut."""

    def __init__(
        self,
        recording: Recording,
        done: list[Operation],
        durable: _Kept,
        survives: _Kept,
        choice: str,
    ) -> None:
        self._nodes = recording.nodes
        self._choice = choice
        self._touches: dict[int, list[tuple[Touch, bool, bool]]] = {}
        for operation, *flags in zip(done, durable.touches, survives.touches, strict=True):
            if operation.touch:
                self._touches.setdefault(operation.touch.node, []).append((operation.touch, *flags))

    def of(self, node: int, *, torn: bool) -> Survivor:
        """Return the file after a cut. ``torn``: unsynced content is lost, whatever became of its
        name and times."""
        touches = self._touches[node]
        chance = random.Random(f"{self._choice} {node}")
        is_index = self._nodes[node].is_index
        data = self._transaction(touches, chance) if is_index else self._data(touches, chance, torn)
        last = [touch for touch, _, survives in touches if survives] or [touches[0][0]]
        return Survivor(
            self._nodes[node].inode, data, last[-1].mtime_ns, last[-1].ctime_ns, last[-1].mode
        )

    def _data(
        self, touches: list[tuple[Touch, bool, bool]], chance: random.Random, torn: bool
    ) -> bytes:
        written = [
            (touch.data, durable)
            for touch, durable, survives in touches
            if survives and touch.data is not None
        ]
        if not written:
            return b""
        data, durable = written[-1]
        if durable:
            return data
        if torn:
            return _torn(data, self._choice)
        if self._choice not in (ALL_LOST, NOTHING_LOST) and chance.random() < 0.3:
            return _torn(data, chance.choice(CONTENT_LOSSES))
        return data

    def _transaction(self, touches: list[tuple[Touch, bool, bool]], chance: random.Random) -> bytes:
        """Return an index after its last durable transaction, or after a later one."""
        written = [(touch.data, durable) for touch, durable, _ in touches if touch.data is not None]
        oldest = max((index for index, (_, durable) in enumerate(written) if durable), default=0)
        if self._choice in (ALL_LOST, "empty"):
            return written[oldest][0]
        if self._choice in (NOTHING_LOST, "zeros"):
            return written[-1][0]
        return written[chance.randint(oldest, len(written) - 1)][0]


def _torn(data: bytes, how: str) -> bytes:
    return {"empty": b"", "zeros": bytes(len(data)), "half": data[: len(data) // 2]}[how]


# --- laying out ---


class VirtualStamps:
    """Stamps of laid out files, replaced by the inode and ctime they had on the simulated disk.

    Other files get inodes that no simulated file can have. A file that was changed since has its
    real ctime.
    """

    OTHERS = 1 << 40

    def __init__(self) -> None:
        self._shown: dict[
            int, tuple[int, int, int]
        ] = {}  # real inode: inode and ctime shown, real ctime
        self._lstat = os.lstat

    def install(self) -> None:
        for name in ("stat", "lstat", "fstat"):
            self._wrap(name, getattr(os, name))
        real_scandir = os.scandir
        os.scandir = lambda *arguments: Entries(real_scandir(*arguments), self.shown)  # type: ignore[assignment,misc]

    def _wrap(self, name: str, real: Callable[..., os.stat_result]) -> None:
        setattr(os, name, lambda *arguments, **options: self.shown(real(*arguments, **options)))

    def clear(self) -> None:
        self._shown.clear()

    def add(self, path: str, inode: int, ctime_ns: int) -> None:
        real = self._lstat(path)
        self._shown[real.st_ino] = inode, ctime_ns, real.st_ctime_ns

    def shown(self, real: os.stat_result) -> os.stat_result:
        inode, ctime_ns, known = self._shown.get(real.st_ino, (0, 0, -1))
        if known != real.st_ctime_ns:
            ctime_ns = real.st_ctime_ns
        _, (fields, names) = real.__reduce__()  # type: ignore[misc]
        fields = (fields[0], inode or fields[1] + self.OTHERS, *fields[2:9], ctime_ns // 10**9)
        return os.stat_result(
            fields, {**names, "st_ctime": ctime_ns / 1e9, "st_ctime_ns": ctime_ns}
        )


class Entries:
    """The entries of ``os.scandir``, with the simulated stamps."""

    def __init__(self, real: Any, shown: Callable[[os.stat_result], os.stat_result]) -> None:
        self._real, self._shown = real, shown

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return Entry(next(self._real), self._shown)

    def close(self) -> None:
        self._real.close()


class Entry:
    """A DirEntry with its simulated stamp."""

    def __init__(
        self, real: os.DirEntry[str], shown: Callable[[os.stat_result], os.stat_result]
    ) -> None:
        self._real, self._shown = real, shown
        self.name, self.path = real.name, real.path
        self.is_dir, self.is_file, self.is_symlink = real.is_dir, real.is_file, real.is_symlink

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._shown(self._real.stat(follow_symlinks=follow_symlinks))

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def __fspath__(self) -> str:
        return self.path


def lay_out(disk: Disk, folder: Path, stamps: VirtualStamps) -> None:
    """Make a folder of a disk. A file with several names is laid out once."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, survivor in sorted(disk.items()):
        target = f"{folder}/{path}"
        if survivor is None:
            os.mkdir(target)
            continue
        with open(target, "xb") as file:
            file.write(survivor.data)
        os.chmod(target, survivor.mode)
        os.utime(target, ns=(survivor.mtime_ns, survivor.mtime_ns))
        stamps.add(target, survivor.inode, survivor.ctime_ns)
