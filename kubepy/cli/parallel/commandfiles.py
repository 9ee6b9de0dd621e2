"""The files that commands read, which go with them to other machines.

The first run is made here, and notes which files its commands read. A worker writes them below a
folder of its own, under the same paths, and works there.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from typing import NamedTuple

from kubepy.cli.errors import CliError
from kubepy.quoting import quote


class CommandFiles(NamedTuple):
    """Files, and the working directory from which commands name them.

    :ivar folder: the working directory; it and all paths begin at the root of the file system.
    :ivar contents: by paths.
    :ivar process: the one that has noted them: the name of its machine, and its number there.
    """

    folder: str
    contents: Mapping[str, bytes]
    process: tuple[str, int]

    @contextmanager
    def unpacked(self) -> Iterator[None]:
        """Work in a copy of these files, in a folder that is removed in the end; in the process
        that has noted them, with the files themselves."""
        if not self.contents or self.process == _this_process():
            yield
            return
        with tempfile.TemporaryDirectory() as root:
            for path, content in self.contents.items():
                place = _below(root, path)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "wb") as file:
                    file.write(content)
            place = _below(root, self.folder)
            os.makedirs(place, exist_ok=True)
            with chdir(place):
                yield


def command_files(noted: Mapping[str, bytes], words: Sequence[str]) -> CommandFiles:
    """Return the files that commands have read, as the working directory is now.

    :param noted: their contents, by the paths under which they were opened.
    :param words: those of the commands. Raises CliError for one that names such a file by an
        absolute path, which would be another file on another machine.
    """
    folder = os.path.realpath(os.curdir)
    contents: dict[str, bytes] = {}
    for path, content in noted.items():
        contents[os.path.realpath(path)] = content
        contents[os.path.normpath(os.path.join(folder, path))] = content  # where it is a link
    for word in words:
        path = word.rpartition("=")[2]
        if os.path.isabs(path) and _has_some(path, contents):
            raise CliError(
                f"{quote(path)}: other machines get copies of files: name it by a relative path"
            )
    return CommandFiles(folder, contents, _this_process())


def _has_some(path: str, contents: Mapping[str, bytes]) -> bool:
    """Return whether a path is one of some files, or a folder with one."""
    real = os.path.realpath(path)
    return any(os.path.commonpath([real, other]) == real for other in contents)


def _this_process() -> tuple[str, int]:
    return platform.node(), os.getpid()


def _below(root: str, path: str) -> str:
    return os.path.join(root, os.path.splitdrive(path)[1].lstrip(os.sep))
