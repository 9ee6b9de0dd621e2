"""What files there are: the object files of every folder, and what stands in the way of one.

Where a folder of objects should be there may be a link, a file, or a folder that cannot be read. Nothing can be told of
the objects in it then: they are neither gone nor changed, and cannot be written. No symbolic link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubepy.storage.folder.database import Row, Stamp
from kubepy.storage.folder.files import MANAGED, Folder, parts_of, stamp_of
from kubepy.storage.folder.paths import CLUSTER, NAMESPACES, SUFFIX, decode, encode, folder_of, path_of
from kubepy.storage.model import Key

LINK = "is a symbolic link"
NO_FOLDER = "is not a folder"


class Directory(NamedTuple):
    """The folder of one resource in one namespace."""

    resource: str
    namespace: str
    path: str


class Found(NamedTuple):
    """A file at the place of an object, and the stamp of the file of managers beside it ("" without one)."""

    directory: Directory
    file: str
    stat: os.stat_result
    managers: str = ""

    @property
    def path(self) -> str:
        return f"{self.directory.path}/{self.file}"

    @property
    def stamp(self) -> Stamp:
        return stamp_of(self.stat)


class Listing(NamedTuple):
    """The object files of a folder by their names, and the files of managers by theirs."""

    directory: Directory
    files: dict[str, os.stat_result]
    managers: dict[str, os.stat_result]

    def managers_stamp(self, file: str) -> str:
        stat = self.managers.get(file)
        return str(stamp_of(stat)) if stat else ""

    def found(self, file: str, stat: os.stat_result) -> Found:
        return Found(self.directory, file, stat, self.managers_stamp(file))


class Obstacle(NamedTuple):
    """What is in the place of a folder, or keeps one from being read."""

    path: str
    why: str


class Obstacles:
    """All obstacles of a survey; false when there are none."""

    def __init__(self, found: Iterable[Obstacle] = ()) -> None:
        self._found = {one.path: one for one in found}
        self._before: dict[tuple[str, str], Obstacle | None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def before(self, resource: str, namespace: str) -> Obstacle | None:
        """What stands before the objects of a resource in a namespace."""
        place = resource, namespace
        if place not in self._before:
            parts = parts_of(folder_of(resource, namespace))
            self._before[place] = next((self._found[part] for part in parts if part in self._found), None)
        return self._before[place]

    def that_matter(self, rows: Iterable[Row]) -> list[Obstacle]:
        """Those to be told: any but files in the way of nothing that is known."""
        if not self._found:
            return []
        places = {(row.resource, row.namespace) for row in rows if row.json is not None}
        blocking = {self.before(*place) for place in places}
        return [one for one in self._found.values() if one.why != NO_FOLDER or one in blocking]


class Survey(NamedTuple):
    listings: list[Listing]
    obstacles: Obstacles


def survey(folder: Folder, resource: str | None = None, namespace: str | None = None) -> Survey:
    """The object files of a resource (None: of all) in a namespace (None: in all)."""
    surveyor = _Surveyor(folder)
    listings = list(surveyor.listings(resource, namespace))
    return Survey(listings, Obstacles(surveyor.obstacles))


def survey_of(folder: Folder, key: Key) -> Survey:
    """The file of one object, if there is one."""
    surveyor = _Surveyor(folder)
    directory = Directory(key.resource, key.namespace, folder_of(key.resource, key.namespace))
    found = surveyor.file(path_of(key)) if surveyor.has_folders(directory.path) else None
    file = encode(key.name) + SUFFIX
    files = {file: found} if found else {}
    managers = surveyor.managers_file(f"{directory.path}/{MANAGED}/{file}") if found else None
    listing = Listing(directory, files, {file: managers} if managers else {})
    return Survey([listing], Obstacles(surveyor.obstacles))


def obstacle_before(folder: Folder, path: str) -> Obstacle | None:
    """What keeps a file from being seen, if anything does."""
    surveyor = _Surveyor(folder)
    if surveyor.has_folders(path.rpartition("/")[0]):
        surveyor.file(path)
    return surveyor.obstacles[0] if surveyor.obstacles else None


class _Surveyor:
    """Looks, and notes the obstacles it meets."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.obstacles: list[Obstacle] = []

    def listings(self, resource: str | None, namespace: str | None) -> Iterator[Listing]:
        for directory in self._directories(resource, namespace):
            try:
                yield self._listing(directory)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._note(directory.path, error)

    def _listing(self, directory: Directory) -> Listing:
        listing = Listing(directory, {}, {})
        with os.scandir(self._folder.absolute(directory.path)) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and entry.name[0] != ".":
                    try:
                        listing.files[entry.name] = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                elif entry.name == MANAGED:
                    self._add_managers(listing)
        return listing

    def _add_managers(self, listing: Listing) -> None:
        path = f"{listing.directory.path}/{MANAGED}"
        try:
            names = os.listdir(self._folder.absolute(path)) if self._folder.is_directory(path) else []
        except OSError:  # they cost the managers, never the objects
            return
        for name in names:
            if name.endswith(SUFFIX) and name[0] != "." and (stat := self.managers_file(f"{path}/{name}")):
                listing.managers[name] = stat

    def managers_file(self, path: str) -> os.stat_result | None:
        """What is at the path of a file of managers; a folder, or what cannot be looked at, is as good as none."""
        try:
            found = os.lstat(self._folder.absolute(path))
        except OSError:
            return None
        return None if stat.S_ISDIR(found.st_mode) else found

    def _directories(self, resource: str | None, namespace: str | None) -> Iterator[Directory]:
        """The folders that may hold such objects."""
        if not namespace and self._is_folder(CLUSTER):
            yield from self._resources(CLUSTER, "", resource)
        if namespace != "" and self._is_folder(NAMESPACES):
            for each in self._namespaces(namespace):
                yield from self._resources(f"{NAMESPACES}/{encode(each)}", each, resource)

    def _namespaces(self, namespace: str | None) -> Iterator[str]:
        if namespace is None:
            yield from self._subfolders(NAMESPACES)
        elif self._is_folder(f"{NAMESPACES}/{encode(namespace)}"):
            yield namespace

    def _resources(self, parent: str, namespace: str, resource: str | None) -> Iterator[Directory]:
        volatile = self._folder.volatile
        if resource is None:
            for each in self._subfolders(parent):
                if each not in volatile:
                    yield Directory(each, namespace, f"{parent}/{encode(each)}")
        elif resource not in volatile and self._is_folder(path := folder_of(resource, namespace)):
            yield Directory(resource, namespace, path)

    def _subfolders(self, path: str) -> list[str]:
        """The names that the folders in a folder stand for."""
        names: list[str] = []
        try:
            with os.scandir(self._folder.absolute(path)) as entries:
                for entry in entries:
                    name = None if entry.name.startswith(".") else decode(entry.name)
                    if name is None:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        names.append(name)
                    else:
                        why = LINK if entry.is_symlink() else NO_FOLDER
                        self.obstacles.append(Obstacle(f"{path}/{entry.name}", why))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._note(path, error)
        return sorted(names)

    def has_folders(self, path: str) -> bool:
        """Whether a path leads through real folders only."""
        return all(self._is_folder(part) for part in parts_of(path))

    def _is_folder(self, path: str) -> bool:
        found = self.file(path)
        if found is None or stat.S_ISDIR(found.st_mode):
            return found is not None
        self.obstacles.append(Obstacle(path, LINK if stat.S_ISLNK(found.st_mode) else NO_FOLDER))
        return False

    def file(self, path: str) -> os.stat_result | None:
        """What is at a path; a folder that does not let us look is an obstacle."""
        try:
            return os.lstat(self._folder.absolute(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._note(path.rpartition("/")[0] or path, error)
            return None

    def _note(self, path: str, error: OSError) -> None:
        self.obstacles.append(Obstacle(path, f"cannot be read: {error.strerror}"))
