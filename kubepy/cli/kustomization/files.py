"""Read the files of a kustomization, which must be in its folder; other kustomizations may be
anywhere.

A kustomization may be in a git repository, which is cloned, and a file at an HTTP address.
Upstream: ``kustomize/api/internal/loader``.
"""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import Any

from kubepy.cli import urls
from kubepy.cli.errors import CliError
from kubepy.cli.files import MAX_MANIFESTS, read_bytes
from kubepy.cli.kustomization.repositories import RepoSpec, clone, parse_repository, remove
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.storage import yaml

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


_boundary = ""  # the folder that kustomizations must not leave; "": they may name anything


def confine(folder: str) -> None:
    """Let kustomizations of this process name nothing outside of a folder: no other folder, no
    repository, no address."""
    global _boundary
    _boundary = os.path.realpath(folder)


class HttpStatusError(CliError):
    """A file at an HTTP address that cannot be had; it is not tried as a repository."""


class FileLoader:
    """A kustomization's folder (its real path), and the loader that led to it.

    :param restricted: files must be in the folder.
    :param repository: the repository that was cloned for this folder, and where the clone is.
    """

    def __init__(
        self,
        root: str,
        referrer: FileLoader | None = None,
        *,
        restricted: bool = True,
        repository: tuple[RepoSpec, str] | None = None,
    ) -> None:
        self.root = root
        self.restricted = restricted
        self._referrer = referrer
        self._repository = repository

    def enter(self, path: str) -> FileLoader:
        """Return the loader of another kustomization. Raises CliError for what is none, and for
        cycles."""
        if not path:
            raise CliError("new root cannot be empty")
        _require_inside(os.path.join(self.root, path))
        if spec := parse_repository(path):
            for loader in self._lineage():
                if loader._repository and loader._repository[0].raw.startswith(spec.raw):
                    raise CliError(
                        f"cycle detected: URI '{spec.raw}' referenced by previous URI "
                        f"'{loader._repository[0].raw}'"
                    )
            return _at_clone(spec, self)

        if os.path.isabs(path):
            raise CliError(printable(f"new root '{path}' cannot be absolute"))
        root = _confirmed(os.path.normpath(os.path.join(self.root, path)))
        for loader in self._lineage():
            if loader._repository:
                folder = loader._repository[1]
                if not is_in(root, folder):
                    raise CliError(
                        "security; bases in kustomizations found in cloned git repos must be "
                        "within the "
                        f"repo, but base '{root}' is outside '{folder}'"
                    )
                break

        for loader in self._lineage():
            if is_in(loader.root, root):
                raise CliError(
                    f"cycle detected: candidate root '{root}' contains visited root '{loader.root}'"
                )

        return FileLoader(root, self, restricted=self.restricted)

    def _lineage(self) -> list[FileLoader]:
        """Return this loader, the one that led to it, and so on."""
        return [self, *(self._referrer._lineage() if self._referrer else ())]

    def leave(self) -> None:
        """Remove the clone that was made for this loader."""
        if self._repository:
            remove(self._repository[1])

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises CliError."""
        _require_inside(os.path.join(self.root, path))
        if path.lower().startswith(("http:", "https:")):
            return _download(path)
        absolute = os.path.normpath(os.path.join(self.root, path))
        if not os.path.exists(absolute):
            raise CliError(_missing(absolute, absolute))
        real = os.path.realpath(absolute)
        if os.path.isdir(real):
            raise CliError(f"'{absolute}' must resolve to a file")
        if self.restricted and not is_in(real, self.root):
            raise CliError(f"security; file '{absolute}' is not in or below '{self.root}'")
        return read_bytes(real, MAX_MANIFESTS)

    def text(self, path: str) -> str:
        """Return the text of a file. Raises CliError."""
        return self.read(path).decode(errors="replace")

    def settings(self) -> tuple[str, str]:
        """Return the name and the text of the only kustomization file of the folder. Raises
        CliError."""
        names = [name for name in NAMES if os.path.isfile(os.path.join(self.root, name))]
        if not names:
            raise CliError(
                "unable to find one of 'kustomization.yaml', 'kustomization.yml' or "
                "'Kustomization' in "
                f"directory '{self.root}'"
            )
        if len(names) > 1:
            raise CliError(f"Found multiple kustomization files under: {self.root}\n")
        return names[0], self.text(names[0])


def open_folder(path: str, *, restricted: bool = True) -> FileLoader:
    """Return the loader of the folder or repository where a build begins. Raises CliError."""
    _require_inside(path)
    spec = parse_repository(path)
    if spec:
        return _at_clone(spec, None)
    return FileLoader(_confirmed(path), restricted=restricted)


def is_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder or in it."""
    return os.path.commonpath([path, folder]) == folder


def _require_inside(path: str) -> None:
    """Raise CliError for a path that leaves the folder which this process is confined to, or names
    something that is not there: a repository or an address, maybe."""
    if not _boundary:
        return
    real = os.path.realpath(path)
    if not is_in(real, _boundary) or not os.path.exists(real):
        name = os.path.relpath(path, _boundary)
        raise CliError(printable(f"'{name}': a kustomization can only use files that came with it"))


def _confirmed(path: str) -> str:
    """Return the real path of a folder. Raises CliError."""
    if not path:
        raise CliError("must build at directory: directory path cannot be empty")
    if not os.path.exists(path):
        missing = _missing(path, os.path.abspath(path))
        raise CliError(printable(f"must build at directory: not a valid directory: {missing}"))
    if not os.path.isdir(path):
        raise CliError(printable(f"must build at directory: '{path}': file is not directory"))
    return os.path.realpath(path)


def _at_clone(spec: RepoSpec, referrer: FileLoader | None) -> FileLoader:
    """Return the loader of a folder in a new clone. Raises CliError."""
    folder = clone(spec)
    try:
        path = os.path.normpath(os.path.join(folder, spec.path))
        if not os.path.exists(path):
            raise CliError(_missing(path, path))
        root = os.path.realpath(path)
        if not os.path.isdir(root):
            raise CliError(
                f"'{path}' refers to file '{os.path.basename(root)}'; expecting directory"
            )
        if not is_in(root, folder):
            raise CliError(f"{quote(path)} refers to directory outside of repo {quote(folder)}")
    except BaseException:
        remove(folder)
        raise

    return FileLoader(root, referrer, repository=(spec, folder))


def _download(url: str) -> bytes:
    """Return the file at an address. Raises CliError; HttpStatusError where no repository can be
    there."""
    try:
        response = urls.fetch(url)
    except urls.ConnectionFailure as failure:
        raise CliError(f"Get {quote(url)}: {failure.reason}") from None
    if 200 <= response.status <= 299:
        return response.body
    if parse_repository(url):
        raise CliError("URL is a git repository")
    texts = {status.value: status.phrase for status in HTTPStatus}
    raise HttpStatusError(
        f"HTTP Error: status code {response.status} ({texts.get(response.status, '')})"
    )


def _missing(shown: str, path: str) -> str:
    """Return Go's error about a path of which a part is missing: it names the first one."""
    while (parent := os.path.dirname(path)) not in ("", path) and not os.path.lexists(parent):
        path = parent
    return f"evalsymlink failure on '{shown}' : lstat {path}: no such file or directory"


def contents_of(text: str, *, old_booleans: bool = False, blank: str | None = None) -> list[Any]:
    """Return the documents of a text as kustomize reads objects. Raises CliError.

    :param blank: stands for nulls that are not written out, in objects, whose keys have to be
        unique.
    """
    try:
        return [
            document.object
            for document in yaml.load_all(
                text, old_booleans=old_booleans, blank=blank, unique_keys=blank is not None
            )
        ]
    except yaml.YamlError as error:
        raise CliError(str(error).removeprefix("error converting YAML to JSON: ")) from None
