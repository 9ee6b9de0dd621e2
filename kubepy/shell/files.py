"""The files that the processes of a container see: trees, and mounts of trees over one another."""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Self

from kubepy.api.clock import EPOCH, format_micro_time, parse_time

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
SET_GROUP = 0o2000  # of a directory: what is made in it belongs to its group
MAX_LINKS = 40  # that are followed from one path
FOLDER, REGULAR, LINK, DEVICE = "d", "f", "l", "c"

MISSING = "No such file or directory"
EXISTS = "File exists"
NOT_DIRECTORY = "Not a directory"
IS_DIRECTORY = "Is a directory"
NOT_EMPTY = "Directory not empty"
READ_ONLY = "Read-only file system"
NO_SPACE = "No space left on device"
BLOCK = 4096  # bytes of a disk that belong together
MOST_KEPT = 1024 * 1024  # bytes of a tree whose content is not zero bytes alone
TOO_MANY_LINKS = "Too many levels of symbolic links"
INVALID = "Invalid argument"
CROSS_DEVICE = "Invalid cross-device link"
BUSY = "Device or resource busy"
DENIED = "Permission denied"


class FileError(Exception):
    """A file operation that fails.

    :ivar problem: what ``strerror`` says of it.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class FileStat(NamedTuple):
    """The facts about a file beside its content.

    :ivar kind: ``f`` for a file, ``d`` for a directory, ``l`` for a symbolic link, ``c`` for a
        device.
    :ivar size: bytes; of a directory 4096, of a link the length of its target.
    """

    kind: str
    mode: int
    size: int
    modified: datetime
    target: str = ""
    user: int = 0
    group: int = 0


class Node:
    """An entry of a tree.

    :ivar data: the content of a file.
    :ivar is_draft: the content is made of the data when somebody reads it
        (:attr:`FileSystem.complete`).
    """

    __slots__ = (
        "children",
        "data",
        "group",
        "is_draft",
        "kind",
        "mode",
        "modified",
        "target",
        "user",
    )

    def __init__(
        self,
        kind: str,
        mode: int,
        modified: datetime = EPOCH,
        *,
        data: bytes = b"",
        target: str = "",
    ) -> None:
        self.kind = kind
        self.mode = mode
        self.modified = modified
        self.data = data
        self.is_draft = False
        self.target = target
        self.user = 0
        self.group = 0
        self.children: dict[str, Node] = {}

    def to_json(self) -> Any:
        """Return the entry as JSON; what is usual is left out."""
        value: dict[str, Any] = {"k": self.kind} if self.kind != REGULAR else {}
        if self.mode != (DIRECTORY_MODE if self.kind == FOLDER else FILE_MODE):
            value["m"] = self.mode
        if self.modified != EPOCH:
            value["t"] = format_micro_time(self.modified)
        if self.user or self.group:
            value["u"] = [self.user, self.group]
        if self.target:
            value["l"] = self.target
        if self.data:
            value |= _content_to_json(self.data)
        if self.is_draft:
            value["d"] = True
        if self.children:
            value["c"] = {name: child.to_json() for name, child in self.children.items()}
        return value

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read what :meth:`to_json` has returned."""
        kind = value.get("k", REGULAR)
        usual = DIRECTORY_MODE if kind == FOLDER else FILE_MODE
        node = cls(kind, value.get("m", usual), target=value.get("l", ""))
        if "t" in value:
            node.modified = parse_time(value["t"])
        if "u" in value:
            node.user, node.group = value["u"]
        if "s" in value:
            node.data = value["s"].encode("utf-8")
        elif "b" in value:
            node.data = base64.b64decode(value["b"])
        elif "z" in value:
            node.data = bytes(value["z"])
        node.is_draft = value.get("d", False)
        children = value.get("c") or {}
        node.children = {name: cls.from_json(child) for name, child in children.items()}
        return node


def is_hollow(data: bytes) -> bool:
    """Tell whether a content is nothing but many zero bytes, of which the number is kept alone."""
    return len(data) >= BLOCK and data.count(0) == len(data)


def _content_to_json(data: bytes) -> dict[str, str | int]:
    if is_hollow(data):
        return {"z": len(data)}
    try:
        return {"s": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"b": base64.b64encode(data).decode("ascii")}


class Tree:
    """The files of one layer or volume.

    :ivar version: a number that grows with every change.
    :ivar limit: the most bytes that its files may have; None: there is no limit.
    :ivar refused: the bytes that its files would have, where a write went beyond what is kept.
    """

    def __init__(self, root: Node | None = None, *, limit: int | None = None) -> None:
        self.root = root or Node(FOLDER, DIRECTORY_MODE)
        self.version = 0
        self.limit = limit
        self.refused = 0

    @classmethod
    def of(
        cls, files: Mapping[str, bytes | str], mode: int = FILE_MODE, modified: datetime = EPOCH
    ) -> Tree:
        """Return a tree with files at relative paths."""
        tree = cls()
        for path, content in files.items():
            data = content.encode("utf-8") if isinstance(content, str) else content
            tree.put(
                path,
                Node(
                    REGULAR,
                    mode,
                    modified,
                    data=data,
                ),
            )
        tree.version = 0
        return tree

    def put(self, path: str, node: Node) -> None:
        """Put an entry at a relative path; directories on the way are made."""
        parts = [part for part in path.split("/") if part]
        folder = self.root
        for part in parts[:-1]:
            child = folder.children.get(part)
            if child is None:
                child = Node(FOLDER, DIRECTORY_MODE, node.modified)
                folder.children[part] = child
            folder = child
        folder.children[parts[-1]] = node
        self.version += 1

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(len(node.data) for node in _walk(self.root))

    @property
    def usage(self) -> int:
        """The bytes that it takes on a disk: blocks of files and directories; or would take, had
        everything been kept."""
        blocks = sum(_blocks(node) for node in _walk(self.root))
        return max(blocks * BLOCK, self.refused)

    @property
    def kept_size(self) -> int:
        """The bytes of all files that are not hollow."""
        return sum(len(node.data) for node in _walk(self.root) if not is_hollow(node.data))

    def to_json(self) -> Any:
        """Return the tree as JSON."""
        value = {"root": self.root.to_json(), "version": self.version}
        if self.limit is not None:
            value["limit"] = self.limit
        if self.refused:
            value["refused"] = self.refused
        return value

    @classmethod
    def from_json(cls, value: Any) -> Tree:
        """Read what :meth:`to_json` has returned."""
        tree = cls(Node.from_json(value["root"]), limit=value.get("limit"))
        tree.version = value["version"]
        tree.refused = value.get("refused", 0)
        return tree


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children.values():
        yield from _walk(child)


class Mount(NamedTuple):
    """A tree, or a part of it, at a path of a container.

    :ivar is_in_memory: it is a file system in memory, which has another name.
    """

    path: str
    tree: Tree
    sub_path: str = ""
    read_only: bool = False
    is_in_memory: bool = False


class _Place(NamedTuple):
    """The end of a path: the entry, if it is there, and the directory that holds its name."""

    path: str
    tree: Tree
    parent: Node | None
    name: str
    node: Node | None
    read_only: bool
    is_mount: bool


def _blocks(node: Node) -> int:
    if node.kind == FOLDER:
        return 1
    return -(-len(node.data) // BLOCK)


def _check_room(tree: Tree, node: Node, content: bytes) -> None:
    """Raise FileError where a tree has no room for another content of a file."""
    growth = len(content) - len(node.data)
    if growth <= 0:
        return
    if tree.limit is not None and tree.size + growth > tree.limit:
        raise FileError(NO_SPACE)
    if is_hollow(content):
        return
    others = tree.kept_size
    if not is_hollow(node.data):
        others -= len(node.data)
    if others + len(content) > MOST_KEPT:
        tree.refused = max(tree.refused, tree.size + growth)
        tree.version += 1
        raise FileError(NO_SPACE)


class FileSystem:
    """The files of one container: its own layer with mounts over it.

    Paths are absolute; ``.`` and ``..`` and links are followed as the system does. Everything
    raises FileError.

    :ivar user: the owner of the files that are made …
    :ivar group: … and their group, where that is not the one of their directory.
    :ivar complete: makes the content of a file of which only a draft is kept.
    """

    def __init__(self, root: Tree, mounts: Sequence[Mount] = ()) -> None:
        self.root = root
        self.user = 0
        self.group = 0
        self.complete: Callable[[bytes], bytes] = bytes
        self.mounts = [mount._replace(path=posixpath.normpath(mount.path)) for mount in mounts]
        self.mounts.sort(key=lambda mount: mount.path.count("/"))
        self._by_path = {mount.path: mount for mount in self.mounts}
        for mount in self.mounts:
            self._make_mount_point(mount)

    def mount_aside(self, path: str, tree: Tree) -> None:
        """Mount a tree that is neither kept nor counted: what a kernel shows."""
        mount = Mount(
            path,
            tree,
            read_only=True,
        )
        self._by_path[path] = mount
        self._make_mount_point(mount)

    def _make_mount_point(self, mount: Mount) -> None:
        """Make the entry over which a tree is mounted; that changes nothing that counts."""
        entry = self._mounted(mount)
        kind = entry.kind if entry is not None else FOLDER
        folder = self.root.root
        parts = [part for part in mount.path.split("/") if part]
        for part in parts[:-1]:
            folder = folder.children.setdefault(part, Node(FOLDER, DIRECTORY_MODE))
        if not parts or parts[-1] in folder.children:
            return
        mode = DIRECTORY_MODE if kind == FOLDER else FILE_MODE
        folder.children[parts[-1]] = Node(kind if kind == FOLDER else REGULAR, mode)

    def _mounted(self, mount: Mount) -> Node | None:
        """Return the entry that is mounted, None where the sub path is not there."""
        node: Node | None = mount.tree.root
        for part in mount.sub_path.split("/"):
            if part and node is not None:
                node = node.children.get(part)
        return node

    @property
    def version(self) -> int:
        """A number that grows with every change of a file that can be seen."""
        trees = {id(mount.tree): mount.tree for mount in self.mounts}
        return self.root.version + sum(tree.version for tree in trees.values())

    @property
    def trees(self) -> Iterable[Tree]:
        """The container's layer and the mounted trees."""
        return (self.root, *(mount.tree for mount in self.mounts))

    # --- finding

    def _find(self, path: str, *, follow: bool = True) -> _Place:
        """Find where a path leads. Only the last name may be missing."""
        links = 0
        parts = [part for part in path.split("/") if part and part != "."]
        wants_folder = path.endswith(("/", "/."))
        stack = [self._top()]
        while parts:
            part = parts.pop(0)
            place = stack[-1]
            if part == "..":
                if len(stack) > 1:
                    stack.pop()
                continue
            node = place.node
            if node is None:
                raise FileError(MISSING)
            if node.kind != FOLDER:
                raise FileError(NOT_DIRECTORY)
            child = self._child(place, part)
            is_last = not parts
            is_link = child.node is not None and child.node.kind == LINK
            is_followed = not is_last or follow or wants_folder
            if child.node is not None and is_link and is_followed:
                links += 1
                if links > MAX_LINKS:
                    raise FileError(TOO_MANY_LINKS)
                target = child.node.target
                if target.startswith("/"):
                    stack = [self._top()]
                parts = [each for each in target.split("/") if each and each != "."] + parts
                continue
            if child.node is None and not is_last:
                raise FileError(MISSING)
            stack.append(child)
        place = stack[-1]
        if wants_folder and place.node is not None and place.node.kind != FOLDER:
            raise FileError(NOT_DIRECTORY)
        return place

    def _top(self) -> _Place:
        mount = self._by_path.get("/")
        if mount is not None:
            return _Place(
                "/",
                mount.tree,
                None,
                "",
                mount.tree.root,
                mount.read_only,
                True,
            )
        return _Place(
            "/",
            self.root,
            None,
            "",
            self.root.root,
            False,
            True,
        )

    def _child(self, place: _Place, name: str) -> _Place:
        path = f"{place.path.rstrip('/')}/{name}"
        mount = self._by_path.get(path)
        if mount is not None:
            node = self._mounted(mount)
            return _Place(
                path,
                mount.tree,
                None,
                name,
                node,
                mount.read_only,
                True,
            )
        parent = place.node
        node = parent.children.get(name) if parent is not None else None
        return _Place(
            path,
            place.tree,
            parent,
            name,
            node,
            place.read_only,
            False,
        )

    def _entry(self, path: str, *, follow: bool = True) -> _Place:
        """Find an entry that is there."""
        place = self._find(path, follow=follow)
        if place.node is None:
            raise FileError(MISSING)
        return place

    def _node(self, path: str, *, follow: bool = True) -> Node:
        node = self._entry(path, follow=follow).node
        if node is None:
            raise FileError(MISSING)
        return node

    def real_path(self, path: str) -> str:
        """Return the path without links; the last name may be missing."""
        return self._find(path).path

    def exists(self, path: str) -> bool:
        """Tell whether a path leads to something."""
        try:
            return self._find(path).node is not None
        except FileError:
            return False

    def is_dir(self, path: str) -> bool:
        """Tell whether a path leads to a directory."""
        try:
            return self._node(path).kind == FOLDER
        except FileError:
            return False

    def is_file(self, path: str) -> bool:
        """Tell whether a path leads to a regular file."""
        try:
            return self._node(path).kind == REGULAR
        except FileError:
            return False

    def is_link(self, path: str) -> bool:
        """Tell whether a path names a symbolic link."""
        try:
            return self._node(path, follow=False).kind == LINK
        except FileError:
            return False

    def stat(self, path: str, *, follow: bool = True) -> FileStat:
        """Return what is known of an entry."""
        node = self._node(path, follow=follow)
        if node.kind == FOLDER:
            size = 4096
        elif node.kind == LINK:
            size = len(node.target)
        else:
            size = len(self._content(node))
        return FileStat(
            node.kind, node.mode, size, node.modified, node.target, node.user, node.group
        )

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        place = self._entry(path)
        node = place.node
        if node is None or node.kind != FOLDER:
            raise FileError(NOT_DIRECTORY)
        mounted = [path for path in self._by_path if posixpath.dirname(path) == place.path]
        return sorted({*node.children, *map(posixpath.basename, mounted)} - {""})

    def read(self, path: str) -> bytes:
        """Return the content of a file; devices are empty."""
        node = self._node(path)
        if node.kind == FOLDER:
            raise FileError(IS_DIRECTORY)
        return self._content(node)

    def _content(self, node: Node) -> bytes:
        return self.complete(node.data) if node.is_draft else node.data

    def is_writable(self, path: str) -> bool:
        """Tell whether what is at a path, or would be, can be changed."""
        try:
            return not self._find(path).read_only
        except FileError:
            return False

    # --- changing

    def _changed(self, place: _Place) -> None:
        place.tree.version += 1

    def _require_writable(self, place: _Place) -> None:
        if place.read_only:
            raise FileError(READ_ONLY)

    def _add(self, place: _Place, node: Node, now: datetime) -> None:
        """Put a new entry where a path leads."""
        self._require_writable(place)
        if place.parent is None:
            raise FileError(MISSING)
        place.parent.children[place.name] = node
        place.parent.modified = now
        self._changed(place)

    def _make(self, place: _Place, node: Node, now: datetime) -> None:
        """Put an entry that did not exist where a path leads: it is the user's, and in a directory
        with that bit the directory's group's."""
        self._add(place, node, now)
        node.user = self.user
        node.group = self.group
        if place.parent is not None and place.parent.mode & SET_GROUP:
            node.group = place.parent.group
            if node.kind == FOLDER:
                node.mode |= SET_GROUP

    def write(
        self,
        path: str,
        data: bytes,
        *,
        now: datetime,
        append: bool = False,
        mode: int | None = None,
    ) -> None:
        """Write a file, which is made if it is missing."""
        if path.endswith("/"):
            raise FileError(IS_DIRECTORY if self.is_dir(path) else MISSING)
        place = self._find(path)
        node = place.node
        if node is not None and node.kind == FOLDER:
            raise FileError(IS_DIRECTORY)
        if node is not None and node.kind == DEVICE:
            return
        if node is None:
            node = Node(REGULAR, FILE_MODE if mode is None else mode, now)
            self._make(place, node, now)
        self._require_writable(place)
        content = node.data + data if append else data
        _check_room(place.tree, node, content)
        node.data = content
        node.modified = now
        if mode is not None:
            node.mode = mode
        self._changed(place)

    def touch(self, path: str, *, now: datetime) -> None:
        """Set the time of a file, which is made if it is missing."""
        place = self._find(path)
        if place.node is None:
            self.write(path, b"", now=now)
            return
        self.set_time(path, now)

    def set_time(self, path: str, modified: datetime) -> None:
        """Set the time of an entry."""
        place = self._entry(path)
        self._require_writable(place)
        if place.node is not None:
            place.node.modified = modified
        self._changed(place)

    def make_dir(
        self, path: str, *, now: datetime, parents: bool = False, mode: int = DIRECTORY_MODE
    ) -> None:
        """Make a directory; with ``parents`` also those on the way, and it may be there."""
        if parents:
            self._make_parents(path, now, mode)
            return
        place = self._find(path)
        if place.node is not None:
            raise FileError(EXISTS)
        self._make(place, Node(FOLDER, mode, now), now)

    def _make_parents(self, path: str, now: datetime, mode: int) -> None:
        parts = [part for part in path.split("/") if part]
        for count in range(1, len(parts) + 1):
            part = "/" + "/".join(parts[:count])
            place = self._find(part)
            if place.node is None:
                self._make(place, Node(FOLDER, mode, now), now)
            elif place.node.kind != FOLDER:
                raise FileError(EXISTS if count == len(parts) else NOT_DIRECTORY)

    def remove(self, path: str, *, now: datetime) -> None:
        """Remove a file or a link."""
        place = self._entry(path, follow=False)
        if place.node is not None and place.node.kind == FOLDER:
            raise FileError(IS_DIRECTORY)
        self._take_away(place, now)

    def remove_dir(self, path: str, *, now: datetime) -> None:
        """Remove an empty directory."""
        place = self._entry(path, follow=False)
        node = place.node
        if node is None or node.kind != FOLDER:
            raise FileError(NOT_DIRECTORY)
        if node.children:
            raise FileError(NOT_EMPTY)
        self._take_away(place, now)

    def _take_away(self, place: _Place, now: datetime) -> None:
        if place.is_mount or place.parent is None:
            raise FileError(BUSY)
        self._require_writable(place)
        del place.parent.children[place.name]
        place.parent.modified = now
        self._changed(place)

    def rename(self, old: str, new: str, *, now: datetime) -> None:
        """Give an entry another path, in place of what is there."""
        source = self._entry(old, follow=False)
        target = self._find(new, follow=False)
        if source.node is target.node:
            return
        if source.tree is not target.tree:
            raise FileError(CROSS_DEVICE)
        if f"{target.path}/".startswith(f"{source.path}/"):
            raise FileError(INVALID)
        self._check_replaced(source.node, target.node)
        node = source.node
        self._take_away(source, now)
        if node is not None:
            self._add(target, node, now)

    def _check_replaced(self, node: Node | None, replaced: Node | None) -> None:
        if node is None or replaced is None:
            return
        if replaced.kind == FOLDER and node.kind != FOLDER:
            raise FileError(IS_DIRECTORY)
        if replaced.kind != FOLDER and node.kind == FOLDER:
            raise FileError(NOT_DIRECTORY)
        if replaced.children:
            raise FileError(NOT_EMPTY)

    def symlink(self, target: str, path: str, *, now: datetime) -> None:
        """Make a symbolic link at a path."""
        place = self._find(path, follow=False)
        if place.node is not None:
            raise FileError(EXISTS)
        self._make(
            place,
            Node(
                LINK,
                0o777,
                now,
                target=target,
            ),
            now,
        )

    def link(self, old: str, new: str, *, now: datetime) -> None:
        """Give a file a second path."""
        source = self._entry(old)
        place = self._find(new, follow=False)
        if place.node is not None:
            raise FileError(EXISTS)
        if source.node is None or source.node.kind == FOLDER:
            raise FileError("Operation not permitted")
        if source.tree is not place.tree:
            raise FileError(CROSS_DEVICE)
        self._add(place, source.node, now)

    def set_mode(self, path: str, mode: int) -> None:
        """Set the mode of an entry."""
        place = self._entry(path)
        self._require_writable(place)
        if place.node is not None:
            place.node.mode = mode
        self._changed(place)

    def set_owner(self, path: str, user: int, group: int) -> None:
        """Set the owner of an entry."""
        place = self._entry(path)
        self._require_writable(place)
        if place.node is not None:
            place.node.user = user
            place.node.group = group
        self._changed(place)
