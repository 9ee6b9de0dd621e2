"""The files of a kustomization: nothing outside its folder is read, but for other kustomizations.

Upstream: ``kustomize/api/internal/loader``.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.files import MAX_MANIFESTS, read_bytes
from kubepy.quoting import printable

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class Folder(NamedTuple):
    """A folder (its real path), and those that led to it; ``restricted``: its files must be in it."""

    root: str
    visited: tuple[str, ...] = ()
    restricted: bool = True

    def folder(self, path: str) -> Folder:
        """Another kustomization's folder. Raises CliError for what is none, and for cycles."""
        _refuse_remote(path)
        root = _real(os.path.join(self.root, path), path)
        if not os.path.isdir(root):
            raise CliError(printable(f"must build at directory: '{root}': file is not directory"))
        for visited in (*self.visited, self.root):
            if os.path.commonpath([root, visited]) == root:
                raise CliError(f"cycle detected: candidate root '{root}' contains visited root '{visited}'")
        return Folder(root, (*self.visited, self.root), self.restricted)

    def read(self, path: str) -> bytes:
        """The content of a file. Raises CliError."""
        _refuse_remote(path)
        found = os.path.join(self.root, path)
        real = _real_file(found)
        if os.path.isdir(real):
            raise CliError(f"'{real}' must resolve to a file")
        if self.restricted and os.path.commonpath([real, self.root]) != self.root:
            raise CliError(f"security; file '{real}' is not in or below '{self.root}'")
        return read_bytes(real, MAX_MANIFESTS)

    def documents(self, path: str) -> list[Object]:
        """The objects of a file; Lists are taken apart. Raises CliError."""
        text = self.read(path).decode(errors="replace")
        try:
            return parse(text)
        except CliError as error:
            raise CliError(f"MalformedYAMLError: {error} in File: {path}") from None


def open_folder(path: str, *, restricted: bool = True) -> Folder:
    """Where a build begins. Raises CliError."""
    _refuse_remote(path)
    if not os.path.lexists(path):
        missing = _missing(path, os.path.abspath(path))
        raise CliError(printable(f"must build at directory: not a valid directory: {missing}"))
    if not os.path.isdir(path):
        raise CliError(printable(f"must build at directory: '{path}': file is not directory"))
    return Folder(os.path.realpath(path), (), restricted)


def parse(text: str) -> list[Object]:
    """The objects of a text. Raises CliError."""
    found: list[Object] = []
    for content in contents_of(text):
        if isinstance(content, dict) and str(content.get("kind", "")).endswith("List") and "items" in content:
            found += content["items"] or []
        elif content is not None:
            found.append(content)
    return found


def contents_of(text: str, *, old_booleans: bool = False) -> list[Any]:
    """The documents of a text, as kustomize reads objects. Raises CliError."""
    from kubepy.storage.yaml import YamlError, load_all

    try:
        return [document.object for document in load_all(text, old_booleans=old_booleans)]
    except YamlError as error:
        raise CliError(str(error).removeprefix("error converting YAML to JSON: ")) from None


def _refuse_remote(path: str) -> None:
    if "://" in path or path.startswith(("git@", "github.com/", "gitlab.com/")):
        raise CliError(f"remote kustomizations and files are not supported: {path}")


def _missing(shown: str, path: str) -> str:
    return f"evalsymlink failure on '{shown}' : lstat {path}: no such file or directory"


def _real(path: str, shown: str) -> str:
    absolute = os.path.normpath(path)
    if not os.path.exists(absolute):
        raise CliError(printable(f"must build at directory: not a valid directory: {_missing(absolute, absolute)}"))
    return os.path.realpath(absolute)


def _real_file(path: str) -> str:
    absolute = os.path.normpath(path)
    if not os.path.exists(absolute):
        raise CliError(_missing(absolute, absolute))
    return os.path.realpath(absolute)


def settings_file(folder: Folder) -> str:
    """The text of the one kustomization file of a folder. Raises CliError."""
    found = [name for name in NAMES if os.path.isfile(os.path.join(folder.root, name))]
    if not found:
        raise CliError("unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in "
                       f"directory '{folder.root}'")
    if len(found) > 1:
        raise CliError(f"Found multiple kustomization files under: {folder.root}\n")
    return folder.read(found[0]).decode(errors="replace")
