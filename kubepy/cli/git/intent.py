"""``kubepy git filter`` and ``kubepy git refresh``: repositories that keep intent only.

The protocol is in gitattributes(5), "Long Running Filter Process".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import IO

from kubepy.apiserver.threeway import intent_of
from kubepy.cli.errors import CliError
from kubepy.cli.git.files import kind_of, read_object, render, state_file_at
from kubepy.cli.git.repository import Repository
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.options import Options
from kubepy.quoting import printable, quote
from kubepy.storage.manifests import ContentError

MAX_PACKET = 65516
_HEADER = 4
_FLUSH = b"0000"


@command(
    "filter",
    Options,
    examples="""
# As git calls it (filter.kubepy-intent.process)
kubepy git filter

# Print a file as git would store it
git show :state/namespaces/default/deployments.apps/web.yaml
""",
)
def filter_(factory: Factory, options: Options) -> None:
    """Answer git, which hands over files of objects to be cleaned: status, generation and everything else that the
    system writes is left out.

    It speaks the protocol of a filter process on stdin and stdout. A file that is no object stays as it is."""  # noqa: E501
    options.require_no_args()
    if sys.stdout.isatty():
        raise CliError("git runs this command, and talks to it through pipes")
    FilterProcess(sys.stdin.buffer, sys.stdout.buffer).serve()


def clean(path: str, text: bytes) -> bytes:
    """Return the text of an object's file without what the system writes; other files are left as
    they are."""
    file = state_file_at(path)
    if file is None or file.is_managers:
        return text
    try:
        obj = read_object(text)
    except ContentError:
        return text
    intent = intent_of(obj, has_status=kind_of(obj, file).has_status)
    if intent == obj:
        return text
    return render(text, intent)


class FilterProcess:
    """The filter's side of the protocol: packets begin with their length, lists of them end with a
    flush."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._stdin = stdin
        self._stdout = stdout

    def serve(self) -> None:
        """Clean files until git closes the stream. Raises CliError when the other side is not
        git."""
        if self._texts() != ["git-filter-client", "version=2"]:
            raise CliError("this is for git to call, as filter.kubepy-intent.process")
        self._answer(b"git-filter-server\n", b"version=2\n")
        self._texts()
        self._answer(b"capability=clean\n", b"capability=smudge\n")
        while request := self._texts():
            values = {key: value for key, _, value in (line.partition("=") for line in request)}
            if "command" not in values or "pathname" not in values:
                raise CliError(
                    f"the request {printable(' '.join(request))} of git names no command or no "
                    f"pathname"
                )
            text = b"".join(self._packets())
            if (
                values["command"] == "clean"
            ):  # on the way out (smudge) a file stays as the repository has it
                text = clean(values["pathname"], text)
            self._answer(b"status=success\n")
            self._answer(*(text[at : at + MAX_PACKET] for at in range(0, len(text), MAX_PACKET)))
            self._answer()

    def _texts(self) -> list[str]:
        return [
            packet.decode(errors="surrogateescape").removesuffix("\n") for packet in self._packets()
        ]

    def _packets(self) -> Iterator[bytes]:
        """Yield the packets up to the next flush, or the end of the stream. Raises CliError for
        what is no packet."""
        while (header := self._stdin.read(_HEADER)) not in (b"", _FLUSH):
            size = int(header, 16) - _HEADER if re.fullmatch(rb"[0-9a-fA-F]{4}", header) else -1
            packet = self._stdin.read(max(size, 0))
            if len(packet) != size:
                text = quote((header + packet).decode(errors="replace"))
                raise CliError(f"git's stream is not made of packets: {text}")
            yield packet

    def _answer(self, *packets: bytes) -> None:
        for packet in packets:
            self._stdout.write(b"%04x%s" % (len(packet) + _HEADER, packet))
        self._stdout.write(_FLUSH)
        self._stdout.flush()


@command(
    "refresh",
    Options,
    examples="""
# Before a merge in a repository that keeps intent only
kubepy git refresh && git merge feature

# Show which files are really modified
kubepy git refresh && git status
""",
)
def refresh(factory: Factory, options: Options) -> None:
    """Tell git of the files below the state folder that hold what is committed, with a status beside it.

    Where only intent is kept, git compares sizes before it looks at contents, calls such files modified and refuses to
    merge. Changes that `git diff` shows stay as they are, neither staged nor undone."""  # noqa: E501
    options.require_no_args()
    factory.require_folder()
    repository = Repository(factory.folder)
    suspected = _paths(repository, "ls-files", "-m")
    changed = {
        *_paths(repository, "diff", "--name-only", "--relative"),
        *_paths(repository, "ls-files", "-d"),
    }
    if same := [path for path in dict.fromkeys(suspected) if path not in changed]:
        repository.run(
            "--literal-pathspecs",
            "add",
            "-f",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
            stdin="\0".join(same),
        )

    factory.print(f"{len(same)} files refreshed")


def _paths(repository: Repository, *words: str) -> list[str]:
    return [path for path in repository.run(*words, "-z", "--", ".").split("\0") if path]
