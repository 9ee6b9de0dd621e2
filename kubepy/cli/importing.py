"""``kubepy import``: make a cluster of somebody else's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag
from kubepy.cli.runtime.options import Options
from kubepy.controlplane.open import is_in_etcd
from kubepy.importing.documents import SourceContent, read_files
from kubepy.importing.files import files_of
from kubepy.importing.making import ImportOptions, make_cluster
from kubepy.importing.report import summary_lines
from kubepy.importing.writing import write_cluster
from kubepy.quoting import printable, quote

if TYPE_CHECKING:
    from types import FrameType

KEEP, REPLACE = "keep", "replace"
ALL, NONE = "all", "none"


class ImportCommandOptions(Options):
    """The flags of ``import``."""

    secrets: str = string_flag(
        "secrets",
        default=REPLACE,
        help="'replace': the values of Secrets become placeholders. 'keep': they are kept.",
    )

    def import_options(self) -> ImportOptions:
        """Return the choices of the user. Raises CliError."""
        if self.secrets not in (KEEP, REPLACE):
            raise CliError(
                f"--secrets={printable(self.secrets)} is invalid: must be {REPLACE} or {KEEP}"
            )
        return ImportOptions(keeps_secrets=self.secrets == KEEP)


@command(
    "import SOURCE...",
    ImportCommandOptions,
    examples="""
# Make a cluster in ./state of what kubectl prints
kubectl get all,cm,secret,node -A -o yaml | kubepy import -

# Of a dump of a whole cluster
kubectl cluster-info dump -A --output-directory=dump
kubepy import dump

# Of a must-gather, or a support bundle, in another folder
kubepy --state ./incident import must-gather.tar.gz
""",
)
def import_(factory: Factory, options: ImportCommandOptions) -> None:
    """Make a cluster of somebody else's, as it was: objects with their uids, status, owners and times.

    A SOURCE is a file with documents or Lists in YAML or JSON, "-" for standard input, a folder of any depth
    (kubectl cluster-info dump, must-gather, a support bundle, manifests), or a tar archive of one.

    The cluster's clock stands at the newest time in the source. What the source names and does not hold, and what cannot
    be taken, is listed."""  # noqa: E501
    if not options.args or not all(options.args):
        options.usage_error("at least one source is required: kubepy import SOURCE...")
    choices = options.import_options()
    if factory.open_cluster:
        raise CliError("there is a cluster already: this command line works on one that is open")
    _require_new(factory)
    with _ending_on_sigterm():
        content = SourceContent.empty()
        for source in options.args:
            read_files(
                files_of(source, factory.stdin),
                content,
                lambda number: factory.progress.show("reading objects", number),
            )
        imported = make_cluster(content, choices, factory.progress.show)
        factory.progress.show("writing", len(imported.objects))
        write_cluster(imported.cluster, factory.place)
    factory.progress.clear()
    for line in summary_lines(imported, content.unread):
        factory.print(line)
    factory.print(f"cluster created in {printable(factory.shown_place)}")


def _require_new(factory: Factory) -> None:
    """Raise CliError where there is a cluster, or anything else, in the place of the new one."""
    if factory.has_cluster:
        raise CliError(f"there is a cluster in {quote(factory.shown_place)} already")
    place = factory.place
    if is_in_etcd(place):
        return
    if os.path.lexists(place) and not os.path.isdir(place):
        raise CliError(f"{quote(place)} is there already, and is not a folder")
    if os.path.isdir(place) and os.listdir(place):
        raise CliError(f"{quote(place)} is not empty")


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the command as an error does for the length of a block, so that nothing is
    left half made."""

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # what is there is removed first
        raise SilentExit(128 + number)

    before = None
    try:
        with suppress(ValueError):  # not in the main thread: a Python program runs the command
            before = signal.signal(signal.SIGTERM, end)
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
