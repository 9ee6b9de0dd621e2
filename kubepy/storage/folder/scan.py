"""Scan the folder: list the object files that there are, and what stands where their folders should
be.

Where a folder of objects should be there may be a link, a file, or a folder that cannot be read: an
obstacle. Its objects are then taken for neither removed nor changed, and cannot be written. No
symbolic link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubepy import system
from kubepy.storage.folder.database import (
    Database,
    Place,
    Row,
    Stamp,
    file_hash,
    managers_hash,
    sum_of,
    sum_of_rows,
)
from kubepy.storage.folder.files import MANAGED, StateFolder, stamp_of
from kubepy.storage.folder.paths import (
    CLUSTER,
    NAMESPACES,
    SUFFIX,
    ancestors_of,
    decode,
    encode,
    folder_of,
    is_cut,
    not_read,
    parent_of,
    path_of,
)
from kubepy.storage.model import Key

LINK = "is a symbolic link"
NO_FOLDER = "is not a folder"
NO_PLACE = (
    f"is not where an object's file can be ({CLUSTER}/RESOURCE/ or "
    f"{NAMESPACES}/NAMESPACE/RESOURCE/)"
)
HIDDEN = "is not read: its name begins with a dot"
NOT_YAML = f"is not read: the name of an object's file ends in {SUFFIX}"
MANIFEST_SUFFIXES = (SUFFIX, ".yml", ".json")


class ResourceDirectory(NamedTuple):
    """The folder of one resource in one namespace."""

    resource: str
    namespace: str
    path: str


class ScannedFile(NamedTuple):
    """A file at the place of an object, and the stamp of the file of managers beside it ("" without
    one)."""

    directory: ResourceDirectory
    name: str
    status: os.stat_result
    managers: str = ""

    @property
    def path(self) -> str:
        return f"{self.directory.path}/{self.name}"

    @property
    def stamp(self) -> Stamp:
        return stamp_of(self.status)


class Listing(NamedTuple):
    """The object files of a folder by their names, and the files of managers by theirs."""

    directory: ResourceDirectory
    files: dict[str, os.stat_result]
    managers: dict[str, os.stat_result]
    is_part: bool = False  # one object alone was looked for

    def object_file(self, name: str, status: os.stat_result) -> ScannedFile:
        """Return a file of the folder with the stamp of its managers' file."""
        managers = self.managers.get(name)
        return ScannedFile(
            self.directory, name, status, str(stamp_of(managers)) if managers else ""
        )

    @property
    def place(self) -> Place:
        return self.directory.resource, self.directory.namespace

    def sum(self) -> int:
        """Return the sum of the hashes of the files, which is that of the rows where nothing was
        edited."""
        return sum_of(
            [
                *(
                    file_hash(
                        name,
                        (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns),
                    )
                    for name, status in self.files.items()
                ),
                *(
                    managers_hash(name, str(stamp_of(status)))
                    for name, status in self.managers.items()
                ),
            ]
        )


class Obstacle(NamedTuple):
    """A link or file in the place of a folder, or a folder that cannot be read: its path, and the
    reason."""

    path: str
    reason: str


class Stray(NamedTuple):
    """A file that may be meant for an object and is not where one is looked for: its path, the
    reason, its stamp."""

    path: str
    reason: str
    stamp: Stamp


class Obstacles:
    """All obstacles of a scan; false when there are none."""

    def __init__(self, obstacles: Iterable[Obstacle] = ()) -> None:
        self._by_path = {obstacle.path: obstacle for obstacle in obstacles}
        self._by_place: dict[tuple[str, str], Obstacle | None] = {}  # by resource and namespace

    def __bool__(self) -> bool:
        return bool(self._by_path)

    def __iter__(self) -> Iterator[Obstacle]:
        return iter(self._by_path.values())

    def before(self, resource: str, namespace: str) -> Obstacle | None:
        """Return the obstacle that hides the objects of a resource in a namespace, None without
        one."""
        place = resource, namespace
        if place not in self._by_place:
            parts = ancestors_of(folder_of(resource, namespace))
            self._by_place[place] = next(
                (self._by_path[part] for part in parts if part in self._by_path), None
            )
        return self._by_place[place]

    def to_report(self, rows: Iterable[Row]) -> list[Obstacle]:
        """Return the obstacles that the user is to see: all but files that hide no known object."""
        if not self._by_path:
            return []
        places = {(row.resource, row.namespace) for row in rows if row.json is not None}
        hiding = {self.before(*place) for place in places}
        return [
            obstacle
            for obstacle in self._by_path.values()
            if obstacle.reason != NO_FOLDER or obstacle in hiding
        ]


class FolderScan(NamedTuple):
    """The object files of the folders that were scanned, and the obstacles and strays that were
    met."""

    listings: list[Listing]
    obstacles: Obstacles
    strays: Sequence[Stray] = ()


class Extent(NamedTuple):
    """The part of a folder that is looked at.

    :ivar resource: None: of every resource.
    :ivar namespace: None: in every namespace.
    :ivar name: one object alone; None: all of them.
    """

    resource: str | None = None
    namespace: str | None = None
    name: str | None = None

    @property
    def key(self) -> Key | None:
        """The key of the object where the extent is one alone."""
        if self.resource is None or self.namespace is None or self.name is None:
            return None
        return Key(self.resource, self.namespace, self.name)

    @property
    def directory(self) -> str:
        """The folder of its objects, "" where it has several."""
        return (
            ""
            if self.resource is None or self.namespace is None
            else folder_of(self.resource, self.namespace)
        )

    def has(self, path: str) -> bool:
        """Return whether the file at a path is in the extent, or below a folder of it."""
        if self.key:
            return path == path_of(self.key)
        if self.directory:
            return path.startswith(f"{self.directory}/")
        if self.resource is None:
            return True
        place = extent_of("/".join(path.split("/")[: _depth_of(path)]))
        return place is not None and place.resource == self.resource


def extent_of(path: str) -> Extent | None:
    """Return the extent of a folder of objects, None for a folder above such a one, and for one of
    no resource."""
    parent, *names = path.split("/")
    decoded = [name for name in map(decode, names) if name is not None]
    if (
        parent not in (CLUSTER, NAMESPACES)
        or len(names) + 1 != _depth_of(path)
        or len(decoded) < len(names)
    ):
        return None
    return Extent(decoded[-1], decoded[0] if len(decoded) == 2 else "")


def extent_at(path: str) -> Extent:
    """Return the extent of the file of an object; that of its folder where only the object can tell
    its name, and everything for a file that is in no folder of objects."""
    directory, _, file = path.rpartition("/")
    place = extent_of(directory)
    if place is None or not file.endswith(SUFFIX):
        return place or Extent()
    component = file.removesuffix(SUFFIX)
    return place._replace(name=None if is_cut(component) else decode(component))


def is_hidden_manifest(name: str) -> bool:
    """Return whether a hidden file has the ending of a manifest, so that somebody may take it for
    an object's. Those of commits under way end otherwise."""
    return name.startswith(".") and name.endswith(MANIFEST_SUFFIXES)


def without_overlaps(extents: set[Extent]) -> list[Extent]:
    """Return extents without the objects of folders that are among them."""
    return sorted(
        (
            extent
            for extent in extents
            if extent.name is None or extent._replace(name=None) not in extents
        ),
        key=str,
    )


def _depth_of(path: str) -> int:
    """Return the number of names in the path of a folder of objects, the first of which a path
    has."""
    return 3 if path.startswith(f"{NAMESPACES}/") else 2


EVERYTHING = (Extent(),)
Extents = Sequence[Extent]


def scan_extents(folder: StateFolder, extents: Extents) -> FolderScan:
    """List the object files of several extents, which have no folder in common."""
    scans = [
        scan_objects(folder, extent.resource, extent.namespace)
        for extent in extents
        if not extent.key
    ]
    if keys := [extent.key for extent in extents if extent.key]:
        scans.append(scan_keys(folder, keys))
    if len(scans) == 1:
        return scans[0]
    return FolderScan(
        [listing for scan in scans for listing in scan.listings],
        Obstacles(obstacle for scan in scans for obstacle in scan.obstacles),
        [stray for scan in scans for stray in scan.strays],
    )


def read_summaries(
    database: Database,
    folder: StateFolder,
    extents: Extents,
    without: frozenset[Place] = frozenset(),
) -> list[Row]:
    """Return the rows with files of some extents; ``without``: places of which only racy rows
    count. ``json`` is "" where there is some, but for objects that are extents of their own."""
    rows = [row for row in database.racy_summaries() if row[:2] in without] if without else []
    for extent in extents:
        if extent.key:
            rows += [row] if (row := database.row(extent.key)) else []
        else:
            for place in database.places(extent.resource, extent.namespace):
                if place not in without and place[0] not in folder.volatile:
                    rows += database.row_summaries(*place)
    return rows


def find_unchanged(database: Database, scan: FolderScan) -> frozenset[Place]:
    """Return the places in which the files are as the index has them: nothing there need be
    compared."""
    listings = {listing.place: listing for listing in scan.listings if not listing.is_part}
    sums = database.sums(listings)
    return frozenset(place for place, known in sums.items() if known == listings[place].sum())


def leave_out(
    unchanged: frozenset[Place], rows: list[Row], scan: FolderScan
) -> tuple[list[Row], FolderScan]:
    """Return the rows and files without those of places with the sums that the index has; racy rows
    stay, since an edit may hide behind their stamps, and sums."""
    if not unchanged:
        return rows, scan
    rows = [row for row in rows if row.racy or row[:2] not in unchanged]
    racy: dict[Place, set[str]] = {}
    for row in rows:
        if row[:2] in unchanged:
            racy.setdefault(row[:2], set()).add(encode(row.name) + SUFFIX)
    listings = [
        listing
        if listing.place not in unchanged
        else listing._replace(
            files={
                name: status
                for name, status in listing.files.items()
                if name in racy[listing.place]
            },
            is_part=True,
        )
        for listing in scan.listings
        if listing.place not in unchanged or listing.place in racy
    ]
    return rows, scan._replace(listings=listings)


def sums_of(rows: Iterable[Row], scan: FolderScan) -> dict[Place, int]:
    """Return the sums of the files of the folders that were listed, as their rows have them, where
    that can be told."""
    by_place: dict[Place, list[Row]] = {
        listing.place: [] for listing in scan.listings if not listing.is_part
    }
    for row in rows:
        if row[:2] in by_place:
            by_place[row[:2]].append(row)
    return {
        place: total
        for place, of_place in by_place.items()
        if (total := sum_of_rows(of_place)) is not None
    }


def scan_objects(
    folder: StateFolder, resource: str | None = None, namespace: str | None = None
) -> FolderScan:
    """List the object files of a resource (None: of all) in a namespace (None: in all)."""
    scanner = _Scanner(folder)
    listings = list(scanner.listings(resource, namespace))
    return FolderScan(listings, Obstacles(scanner.obstacles), scanner.strays)


def scan_object(folder: StateFolder, key: Key) -> FolderScan:
    """Look for the file of one object."""
    return scan_keys(folder, (key,))


def scan_keys(folder: StateFolder, keys: Iterable[Key]) -> FolderScan:
    """Look for the files of some objects."""
    scanner = _Scanner(folder)
    listings: dict[Place, Listing | None] = {}  # None: there is no such folder
    for key in keys:
        place = key.resource, key.namespace
        if place not in listings:
            directory = ResourceDirectory(*place, folder_of(*place))
            listings[place] = (
                Listing(directory, {}, {}, is_part=True)
                if scanner.has_folders(directory.path)
                else None
            )
        listing, name = listings[place], encode(key.name) + SUFFIX
        if listing and (status := scanner.status(f"{listing.directory.path}/{name}")):
            listing.files[name] = status
            if managers := scanner.managers_status(f"{listing.directory.path}/{MANAGED}/{name}"):
                listing.managers[name] = managers

    return FolderScan(
        [
            listing or Listing(ResourceDirectory(*place, folder_of(*place)), {}, {}, is_part=True)
            for place, listing in listings.items()
        ],
        Obstacles(scanner.obstacles),
    )


def find_obstacle(folder: StateFolder, path: str) -> Obstacle | None:
    """Return what hides a file, None if nothing does."""
    scanner = _Scanner(folder)
    if scanner.has_folders(parent_of(path)):
        scanner.status(path)
    return scanner.obstacles[0] if scanner.obstacles else None


class _OpenFolder:
    """A folder that stays the same one while its files are looked at, where the system can hold it
    open.

    Listing it and asking for each ``stat`` takes half the time of ``os.scandir``.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> _OpenFolder:
        if os.stat in os.supports_dir_fd and os.listdir in os.supports_fd:
            self._descriptor = os.open(self._path, system.READ_FOLDER)
        elif os.path.islink(self._path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self._path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def names(self) -> list[str]:
        """Return the names in the folder. Raises OSError."""
        return os.listdir(self._path if self._descriptor is None else self._descriptor)

    def status(self, name: str) -> os.stat_result:
        """Return the ``stat`` of a file in the folder. Raises OSError."""
        if self._descriptor is None:
            return os.lstat(os.path.join(self._path, name))
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)


class _Scanner:
    """Lists folders, and notes the obstacles and strays that it meets."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._is_of_all = False  # strays above the folders of objects count
        self.obstacles: list[Obstacle] = []
        self.strays: list[Stray] = []

    def listings(self, resource: str | None, namespace: str | None) -> Iterator[Listing]:
        """List the folders of a resource (None: of all) in a namespace (None: in all)."""
        self._is_of_all = resource is None
        for directory in self._directories(resource, namespace):
            listing = Listing(directory, {}, {})
            try:
                self._list(listing)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._note(directory.path, error)
                continue
            yield listing

    def _list(self, listing: Listing) -> None:
        """List the files of a folder. Raises OSError."""
        others: list[str] = []
        with _OpenFolder(self._folder.absolute(listing.directory.path)) as opened:
            for name in opened.names():
                if name.endswith(SUFFIX) and name[0] != ".":
                    try:
                        listing.files[name] = opened.status(name)
                    except FileNotFoundError:
                        continue
                elif name == MANAGED:
                    self._add_managers(listing)
                elif name[0] != "." or is_hidden_manifest(name):
                    others.append(name)

        for name in others:
            reason = HIDDEN if name.startswith(".") else NOT_YAML
            self._note_stray(f"{listing.directory.path}/{name}", reason)

    def _add_managers(self, listing: Listing) -> None:
        path = f"{listing.directory.path}/{MANAGED}"
        if not self._folder.is_directory(path) and (stamp := self._folder.stamp(path)):
            self.strays.append(Stray(path, NO_FOLDER, stamp))
        try:
            names = (
                os.listdir(self._folder.absolute(path)) if self._folder.is_directory(path) else []
            )
        except OSError:  # unreadable managers must not hide the objects
            return

        for name in names:
            if (
                name.endswith(SUFFIX)
                and name[0] != "."
                and (status := self.managers_status(f"{path}/{name}"))
            ):
                listing.managers[name] = status

    def managers_status(self, path: str) -> os.stat_result | None:
        """Return the ``stat`` of a file of managers; None for a folder and for what cannot be
        looked at."""
        try:
            status = os.lstat(self._folder.absolute(path))
        except OSError:
            return None
        return None if stat.S_ISDIR(status.st_mode) else status

    def _directories(
        self, resource: str | None, namespace: str | None
    ) -> Iterator[ResourceDirectory]:
        """Yield the folders that may hold objects of a resource in a namespace."""
        if not namespace and self._is_folder(CLUSTER):
            yield from self._resource_directories(CLUSTER, "", resource)
        if namespace != "" and self._is_folder(NAMESPACES):
            if namespace is None:
                namespaces = self._subfolder_names(NAMESPACES)
            else:
                namespaces = (
                    [namespace] if self._is_folder(f"{NAMESPACES}/{encode(namespace)}") else []
                )
            for name in namespaces:
                yield from self._resource_directories(
                    f"{NAMESPACES}/{encode(name)}", name, resource
                )

    def _resource_directories(
        self, parent: str, namespace: str, resource: str | None
    ) -> Iterator[ResourceDirectory]:
        volatile = self._folder.volatile
        if resource is None:
            for name in self._subfolder_names(parent):
                path = f"{parent}/{encode(name)}"
                if name not in volatile:
                    yield ResourceDirectory(name, namespace, path)
                else:
                    self._note_strays_below(path, f"is not read: {name} are not kept in files")
        elif resource not in volatile and self._is_folder(path := folder_of(resource, namespace)):
            yield ResourceDirectory(resource, namespace, path)

    def _subfolder_names(self, path: str) -> list[str]:
        """Return the names that the folders in a folder stand for."""
        names: list[str] = []
        try:
            with os.scandir(self._folder.absolute(path)) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        if self._is_of_all and is_hidden_manifest(entry.name):
                            self._note_stray(f"{path}/{entry.name}", HIDDEN)
                        continue
                    name, place = decode(entry.name), f"{path}/{entry.name}"
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if name is not None and is_folder:
                        names.append(name)
                    elif is_folder and self._is_of_all:
                        self._note_strays_below(place, not_read(entry.name, path))
                    elif (
                        not is_folder
                        and entry.name.endswith(MANIFEST_SUFFIXES)
                        and not entry.is_symlink()
                    ):
                        if self._is_of_all:
                            self._note_stray(place, NO_PLACE)
                    elif name is not None:
                        self.obstacles.append(
                            Obstacle(place, LINK if entry.is_symlink() else NO_FOLDER)
                        )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._note(path, error)

        return sorted(names)

    def _note_stray(self, path: str, reason: str) -> None:
        """Note what may be meant for an object at a path where none is looked for, or below."""
        status = self.status(path)
        is_hidden = path.rpartition("/")[2].startswith(".")
        if is_hidden and (status is None or not stat.S_ISREG(status.st_mode)):
            return  # such as the link by which an editor locks a file
        if status is not None and stat.S_ISDIR(status.st_mode):
            self._note_strays_below(path, NO_PLACE)
        elif status is not None and path.endswith(MANIFEST_SUFFIXES):
            self.strays.append(Stray(path, reason, stamp_of(status)))

    def _note_strays_below(self, path: str, reason: str) -> None:
        """Note the strays in a folder of no objects and below, but for those in hidden folders."""
        for directory, folders, files in os.walk(self._folder.absolute(path)):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            relative = path + directory[len(self._folder.absolute(path)) :]
            for name in sorted(files):
                if name.endswith(MANIFEST_SUFFIXES):
                    self._note_stray(f"{relative}/{name}", reason)

    def has_folders(self, path: str) -> bool:
        """Return whether a path leads through real folders only."""
        return all(self._is_folder(part) for part in ancestors_of(path))

    def _is_folder(self, path: str) -> bool:
        status = self.status(path)
        if status is None or stat.S_ISDIR(status.st_mode):
            return status is not None
        self.obstacles.append(Obstacle(path, LINK if stat.S_ISLNK(status.st_mode) else NO_FOLDER))
        return False

    def status(self, path: str) -> os.stat_result | None:
        """Return the ``stat`` of what is at a path; a folder that may not be searched is an
        obstacle."""
        try:
            return os.lstat(self._folder.absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._note(parent_of(path) or path, error)
            return None

    def _note(self, path: str, error: OSError) -> None:
        self.obstacles.append(Obstacle(path, f"cannot be read: {error.strerror}"))
