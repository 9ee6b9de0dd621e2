"""Read the files of a kustomization, which must be in its folder; other kustomizations may be anywhere.

Upstream: ``kustomize/api/internal/loader``.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.files import MAX_MANIFESTS, read_bytes
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable

with lazy_imports():
    from kubepy.storage import yaml

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class FileLoader(NamedTuple):
    """A kustomization's folder (its real path), and the folders that led to it.

    :param restricted: files must be in the folder.
    """

    root: str
    visited: tuple[str, ...] = ()
    restricted: bool = True

    def enter(self, path: str) -> FileLoader:
        """Return the loader of another kustomization's folder. Raises CliError for what is none, and for cycles."""
        _refuse_remote(path)
        absolute = os.path.normpath(os.path.join(self.root, path))
        if not os.path.exists(absolute):
            missing = _missing(absolute, absolute)
            raise CliError(printable(f"must build at directory: not a valid directory: {missing}"))
        root = os.path.realpath(absolute)
        if not os.path.isdir(root):
            raise CliError(printable(f"must build at directory: '{root}': file is not directory"))
        for visited in (*self.visited, self.root):
            if os.path.commonpath([root, visited]) == root:
                raise CliError(f"cycle detected: candidate root '{root}' contains visited root '{visited}'")
        return FileLoader(root, (*self.visited, self.root), self.restricted)

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises CliError."""
        _refuse_remote(path)
        absolute = os.path.normpath(os.path.join(self.root, path))
        if not os.path.exists(absolute):
            raise CliError(_missing(absolute, absolute))
        real = os.path.realpath(absolute)
        if os.path.isdir(real):
            raise CliError(f"'{real}' must resolve to a file")
        if self.restricted and os.path.commonpath([real, self.root]) != self.root:
            raise CliError(f"security; file '{real}' is not in or below '{self.root}'")
        return read_bytes(real, MAX_MANIFESTS)

    def documents(self, path: str) -> list[Object]:
        """Return the objects of a file, those of Lists one by one. Raises CliError."""
        text = self.read(path).decode(errors="replace")
        try:
            return parse(text)
        except CliError as error:
            raise CliError(f"MalformedYAMLError: {error} in File: {path}") from None


def open_folder(path: str, *, restricted: bool = True) -> FileLoader:
    """Return the loader of the folder where a build begins. Raises CliError."""
    _refuse_remote(path)
    if not os.path.lexists(path):
        missing = _missing(path, os.path.abspath(path))
        raise CliError(printable(f"must build at directory: not a valid directory: {missing}"))
    if not os.path.isdir(path):
        raise CliError(printable(f"must build at directory: '{path}': file is not directory"))
    return FileLoader(os.path.realpath(path), (), restricted)


def parse(text: str) -> list[Object]:
    """Return the objects of a text, those of Lists one by one. Raises CliError."""
    objects: list[Object] = []
    for content in contents_of(text):
        if isinstance(content, dict) and str(content.get("kind", "")).endswith("List") and "items" in content:
            objects += content["items"] or []
        elif content is not None:
            objects.append(content)
    return objects


def contents_of(text: str, *, old_booleans: bool = False) -> list[Any]:
    """Return the documents of a text as kustomize reads objects. Raises CliError."""
    try:
        return [document.object for document in yaml.load_all(text, old_booleans=old_booleans)]
    except yaml.YamlError as error:
        raise CliError(str(error).removeprefix("error converting YAML to JSON: ")) from None


def _refuse_remote(path: str) -> None:
    if "://" in path or path.startswith(("git@", "github.com/", "gitlab.com/")):
        raise CliError(f"remote kustomizations and files are not supported: {path}")


def _missing(shown: str, path: str) -> str:
    return f"evalsymlink failure on '{shown}' : lstat {path}: no such file or directory"


def settings_file(loader: FileLoader) -> str:
    """Return the text of the only kustomization file of a folder. Raises CliError."""
    names = [name for name in NAMES if os.path.isfile(os.path.join(loader.root, name))]
    if not names:
        raise CliError("unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in "
                       f"directory '{loader.root}'")
    if len(names) > 1:
        raise CliError(f"Found multiple kustomization files under: {loader.root}\n")
    return loader.read(names[0]).decode(errors="replace")
