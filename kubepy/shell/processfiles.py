"""The files of ``/proc``: what a kernel tells of the processes of a container.

They are made when they are looked at, and are part of no layer. Of the kernel's files there are
those of processes that tell who a process is.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from kubepy.lazy import blake2b
from kubepy.shell.files import FOLDER, LINK, REGULAR, FileSystem, Node, Tree

if TYPE_CHECKING:
    from kubepy.shell.processes import Process

READABLE, SEARCHABLE, LINKED = 0o444, 0o555, 0o777
LONGEST_NAME = 15  # of a process, as the kernel keeps it
ALL_USERS = 4_294_967_295
NAMESPACE_USERS = 65_536
FIRST_NAMESPACE = 4_026_531_834  # the number of the first namespace of a node
NAMESPACES = ("time", "cgroup", "pid", "user", "uts", "ipc", "mnt", "net")


class ProcessTable(Protocol):
    """The processes of a container, with what they have in common."""

    running_pid: int
    pid_offset: int

    @property
    def neighbours(self) -> Sequence[ProcessTable]: ...
    @property
    def files(self) -> FileSystem: ...
    @property
    def processes(self) -> Mapping[int, Process]: ...
    @property
    def now(self) -> datetime: ...
    @property
    def hostname(self) -> str: ...
    @property
    def user(self) -> int: ...
    @property
    def group(self) -> int: ...
    @property
    def groups(self) -> tuple[int, ...]: ...
    @property
    def capabilities(self) -> int: ...
    @property
    def user_base(self) -> int: ...


class ProcessFiles(Tree):
    """The tree that is mounted at ``/proc``."""

    def __init__(self, machine: ProcessTable) -> None:
        self._machine = machine
        super().__init__()

    @property
    def root(self) -> Node:
        """The files as they are now."""
        root = Node(FOLDER, SEARCHABLE, self._machine.now)
        offset = self._machine.pid_offset
        for process in self._machine.processes.values():
            if process.is_alive:
                root.children[str(process.pid + offset)] = self._folder(process)
        root.children["mounts"] = self._link("self/mounts")
        root.children["self"] = self._link(str(self._machine.running_pid + offset))
        for neighbour in self._machine.neighbours:
            self._add_neighbour(root, neighbour)
        return root

    @root.setter
    def root(self, value: Node) -> None:
        """Ignore the root that every tree is made with."""

    def _add_neighbour(self, root: Node, neighbour: ProcessTable) -> None:
        """Add the processes of another container, with a way to its files."""
        files = ProcessFiles(neighbour)
        for process in neighbour.processes.values():
            if process.is_alive:
                folder = files._folder(process)
                folder.children["root"] = neighbour.files.root.root
                root.children[str(process.pid + neighbour.pid_offset)] = folder

    def _folder(self, process: Process) -> Node:
        machine = self._machine
        shell = process.shell
        variables = [f"{name}={shell.variables.get(name, '')}\0" for name in shell.exported]
        id_map = f"{0:10d} {machine.user_base:10d} {self._user_count():10d}\n"
        texts = {
            "cmdline": "".join(f"{word}\0" for word in process.argv),
            "comm": f"{_name_of(process)}\n",
            "environ": "".join(variables),
            "gid_map": id_map,
            "mounts": self._mounts(),
            "status": self._status(process),
            "uid_map": id_map,
        }
        folder = Node(FOLDER, SEARCHABLE, machine.now)
        for name, text in texts.items():
            data = text.encode("utf-8", "surrogateescape")
            folder.children[name] = Node(REGULAR, READABLE, machine.now, data=data)
        folder.children["cwd"] = self._link(process.cwd)
        folder.children["root"] = self._link("/")
        namespaces = Node(FOLDER, SEARCHABLE, machine.now)
        for name in NAMESPACES:
            namespaces.children[name] = self._link(f"{name}:[{self._namespace(name)}]")
        folder.children["ns"] = namespaces
        return folder

    def _mounts(self) -> str:
        lines = []
        for device, path, kind, access in mounted_systems(self._machine.files):
            lines.append(f"{device} {path} {kind} {access},relatime 0 0\n")
        return "".join(lines)

    def _link(self, target: str) -> Node:
        return Node(LINK, LINKED, self._machine.now, target=target)

    def _user_count(self) -> int:
        return NAMESPACE_USERS if self._machine.user_base else ALL_USERS

    def _namespace(self, name: str) -> int:
        """Return the number of a namespace: that of the node, or one of the pod's own."""
        place = FIRST_NAMESPACE + NAMESPACES.index(name)
        if name in ("time", "cgroup") or (name == "user" and not self._machine.user_base):
            return place
        digest = blake2b(f"{self._machine.hostname}/{name}".encode(), 2)
        return FIRST_NAMESPACE + 1_000 + int.from_bytes(digest, "big")

    def _status(self, process: Process) -> str:
        machine = self._machine
        bounding = machine.capabilities
        effective = 0 if machine.user else bounding
        groups = " ".join(map(str, machine.groups))
        lines = {
            "Name": _name_of(process),
            "Umask": f"{process.shell.umask:04o}",
            "State": "S (sleeping)",
            "Tgid": process.pid,
            "Pid": process.pid,
            "PPid": process.parent,
            "Uid": "\t".join([str(machine.user)] * 4),
            "Gid": "\t".join([str(machine.group)] * 4),
            "Groups": f"{groups} ",
            "Threads": 1,
            "CapInh": f"{0:016x}",
            "CapPrm": f"{effective:016x}",
            "CapEff": f"{effective:016x}",
            "CapBnd": f"{bounding:016x}",
            "CapAmb": f"{0:016x}",
        }
        return "".join(f"{name}:\t{value}\n" for name, value in lines.items())


def mounted_systems(files: FileSystem) -> list[tuple[str, str, str, str]]:
    """Return the file systems of a container: device, place, type, and ``rw`` or ``ro``."""
    systems = [("overlay", "/", "overlay", "rw")]
    for mount in files.mounts:
        access = "ro" if mount.read_only else "rw"
        device, kind = ("tmpfs", "tmpfs") if mount.is_in_memory else ("/dev/vda1", "ext4")
        systems.append((device, mount.path, kind, access))
    return systems


def system_of(files: FileSystem, path: str) -> str:
    """Return the type of the file system that an absolute path lies on."""
    real_path = f"{files.real_path(path).rstrip('/')}/"
    within = [
        (len(place), kind)
        for _, place, kind, _ in mounted_systems(files)
        if real_path.startswith(f"{place.rstrip('/')}/")
    ]
    return max(within)[1]


def _name_of(process: Process) -> str:
    word = process.argv[0] if process.argv else ""
    return posixpath.basename(word.rstrip(":"))[:LONGEST_NAME]
