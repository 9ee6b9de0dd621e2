"""Faults at the command line: the file of ``--faults``, the seed, and the command that repeats a
run that failed.

A command that lets time pass under faults keeps the cluster as it was before, as a fork in memory.
If the command fails, the fork is written to the state folder's own part, and the user is told how
to run the command again on a copy of it: the same cluster and the same seed have the same faults.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kubepy.apiserver.fault_settings import FaultSettings, parse_faults
from kubepy.cli.errors import CliError
from kubepy.cli.files import read_string
from kubepy.cli.names import KUBECTL, KUBEPY
from kubepy.controlplane.open import copy_cluster
from kubepy.quoting import printable
from kubepy.storage import FolderError, yaml

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

FAILED_RUN = os.path.join(
    ".kubepy", "failed-run"
)  # in a state folder: a copy of it from before the last failed run
PLACE_FLAGS = (
    "--state",
    "--context",
    "--cluster",
)  # they say which cluster, which is another one for a second run


def read_faults(path: str) -> FaultSettings:
    """Read a file of faults: what stands under ``faults:`` in ``kubepy.yaml``, with or without that
    word.

    Raises CliError, OSError, FolderError.
    """
    if path == "-":
        raise CliError("--faults cannot be standard input: it takes a file")
    return parse_faults_file(path, read_string(path))


def parse_faults_file(path: str, text: str) -> FaultSettings:
    """Read the text of a file of faults. Raises CliError, FolderError."""
    try:
        documents = yaml.load_all(text, unique_keys=True)
    except yaml.YamlError as error:
        raise CliError(f"{printable(path)}: {error}") from None
    if len(documents) != 1:
        raise CliError(f"{printable(path)}: must be one document with faults, not {len(documents)}")
    value = documents[0].object
    if isinstance(value, dict) and list(value) == ["faults"]:
        return parse_faults(f"{path}: faults", value["faults"])
    return parse_faults(f"{path}: ", value)


class FaultRun:
    """One command's run of a cluster with faults.

    :param folder: the state folder.
    :param words: the command line, without the program's name.
    """

    def __init__(
        self, cluster: LocalCluster, folder: str, words: Sequence[str], say: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self._words = words
        self._say = say
        self._before: LocalCluster | None = None

    @property
    def seed(self) -> int | str | None:
        faults = self._cluster.settings.faults
        if faults:
            return faults.seed
        return None

    def begin(self, drawn: int | None) -> None:
        """Say which seed was drawn, if one was."""
        if drawn is not None:
            self._say(
                f"note: faults: seed {drawn} was drawn; it stays the seed of this cluster's faults"
            )

    def keep(self) -> None:
        """Keep the cluster as it is, before its time goes on."""
        if self._before is None:
            self._before = self._cluster.fork()

    def failed(self) -> None:
        """Say how to repeat the run, if one was begun."""
        if self._before is None:
            return
        text = f"faults: seed {self.seed}"
        if (
            not self._folder
        ):  # a Python program has made this cluster in memory, and can make it again
            self._say(text)
            return

        try:
            command = self._save(self._before)
        except (FolderError, OSError) as error:
            self._say(
                f"{text}; the cluster from before could not be kept for a repetition: {error}"
            )
        else:
            reads = not {"-", "-f-", "--filename=-"}.isdisjoint(self._words)
            self._say(
                f"{text}; repeat{', giving it the same standard input,' if reads else ''} with: "
                f"{command}"
            )

    def _save(self, before: LocalCluster) -> str:
        """Write the cluster from before the run, and return the command that repeats the run on a
        copy of it."""
        import shutil  # a failed run is rare

        kept = os.path.join(self._folder, FAILED_RUN)
        shutil.rmtree(kept, ignore_errors=True)
        copy_cluster(before, kept)
        words = shlex.join(without_place(self._words))
        program = called_program()
        fork = f'{program} --state {shlex.quote(kept)} fork "$D"'
        return f'D=$(mktemp -d)/state; {fork} && {program} --state "$D" {words}'


def called_program() -> str:
    """Return what a shell calls this program by: its name, or its path where the name is that of
    another program."""
    import shutil

    path = sys.argv[0]
    name = os.path.basename(sys.argv[0])
    if name in (KUBECTL, KUBEPY) and os.path.exists(path):
        found = shutil.which(name)
        if found is None or not os.path.samefile(found, path):
            return shlex.quote(os.path.abspath(path))
    return KUBEPY


def without_place(words: Sequence[str]) -> list[str]:
    """Return a command line without the flags that say which cluster it is about."""
    kept: list[str] = []
    skips = False
    for position, word in enumerate(words):
        if word == "--":
            return [*kept, *words[position:]]
        if skips or word in PLACE_FLAGS:
            skips = not skips
        elif word.partition("=")[0] not in PLACE_FLAGS:
            kept.append(word)
    return kept
