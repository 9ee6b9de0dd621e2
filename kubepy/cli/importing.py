"""``kubepy import``: make a cluster of somebody else's."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import duration_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.options import Options
from kubepy.cli.runtime.signals import ending_on_sigterm
from kubepy.controlplane.open import has_cluster, is_in_etcd, open_cluster
from kubepy.importing.documents import SourceContent, read_files
from kubepy.importing.errors import SourceError
from kubepy.importing.files import files_of
from kubepy.importing.live import LiveSource, files_of_cluster, find_kubectl
from kubepy.importing.making import ImportedCluster, ImportOptions, make_cluster
from kubepy.importing.merging import PODS, Changes, is_left_out, merge
from kubepy.importing.places import read_place
from kubepy.importing.report import summary_lines
from kubepy.importing.rulecomments import with_comments
from kubepy.importing.writing import comment_settings, write_cluster
from kubepy.quoting import printable, quote

if TYPE_CHECKING:
    from kubepy.importing.unread import UnreadResources

KEEP, REPLACE = "keep", "replace"
LEARNED, NONE = "learned", "none"
SHORTEST_INTERVAL = 1.0  # seconds between two looks at a running cluster


class ImportCommandOptions(Options):
    """The flags of ``import``."""

    secrets: str = string_flag(
        "secrets",
        default=REPLACE,
        help="'replace': the values of Secrets become placeholders. 'keep': they are kept.",
    )
    behaviour: str = string_flag(
        "behaviour",
        default=LEARNED,
        help="'learned': pods go on doing what they did, by rules in kubepy.yaml. 'none': they do "
        "what their manifests say.",
    )
    into: str = string_flag(
        "into",
        help="The state folder of a cluster that was imported earlier: it becomes what the source "
        "is now, as one change. What the source does not hold any more is removed.",
    )
    context: str = string_flag(
        "context",
        help="Import a running cluster: that of this context of your kubeconfig. It is only read.",
    )
    kubeconfig: str = string_flag("kubeconfig", help="The kubeconfig that has the context.")
    namespace: str = string_flag(
        "namespace", "n", help="Ask the running cluster for this namespace alone."
    )
    kinds: list[str] = string_slice_flag(
        "kinds", help="Ask the running cluster for these kinds alone: pods,deploy,nodes."
    )
    kubectl: str = string_flag(
        "kubectl", help="The kubectl that asks it. Default: the first on the PATH."
    )
    record: float = duration_flag(
        "record",
        help="Ask the running cluster again after each such time (30s), until Ctrl-C: the timeline "
        "shows what has happened.",
    )

    def import_options(self) -> ImportOptions:
        """Return the choices of the user. Raises CliError."""
        if self.secrets not in (KEEP, REPLACE):
            raise CliError(
                f"--secrets={printable(self.secrets)} is invalid: must be {REPLACE} or {KEEP}"
            )
        if self.behaviour not in (LEARNED, NONE):
            raise CliError(
                f"--behaviour={printable(self.behaviour)} is invalid: must be {LEARNED} or {NONE}"
            )
        return ImportOptions(keeps_secrets=self.secrets == KEEP, learns=self.behaviour == LEARNED)

    def live_source(self) -> LiveSource | None:
        """Return the running cluster that is asked, None without --context. Raises CliError,
        SourceError."""
        if not self.changed("context"):
            for flag in ("kubeconfig", "namespace", "kinds", "kubectl", "record"):
                if self.changed(flag):
                    raise CliError(f"--{flag} goes with --context: it is about a running cluster")
            return None
        if self.changed("record") and self.record < SHORTEST_INTERVAL:
            raise CliError(f"--record is too short: must be at least {SHORTEST_INTERVAL}s")
        return LiveSource(
            find_kubectl(self.kubectl),
            self.context,
            self.kubeconfig,
            self.namespace,
            tuple(self.kinds),
        )


@command(
    "import SOURCE...",
    ImportCommandOptions,
    examples="""
# Make a cluster in ./state of what kubectl prints
kubectl get all,cm,secret,node -A -o yaml | kubepy import -

# Of a dump of a whole cluster, in another folder
kubectl cluster-info dump -A --output-directory=dump
kubepy --state ./incident import dump

# Of a must-gather or a support bundle, of an etcd, of a running cluster
kubepy --state ./gathered import must-gather.tar.gz
kubepy --state ./restored import etcd://127.0.0.1
kubepy --state ./staging import --context staging

# Bring a later state of the same cluster into the folder, and see what is different
kubepy import --into ./incident later-dump
git -C ./incident diff
""",
)
def import_(factory: Factory, options: ImportCommandOptions) -> None:
    """Make a cluster of somebody else's, as it was: objects with their uids, status, owners and times.

    A SOURCE is a file with documents or Lists in YAML or JSON, "-" for standard input, a folder of any depth
    (kubectl cluster-info dump, must-gather, a support bundle, manifests), a tar archive of one, or an address of etcd.
    Several make one cluster together. With --context the source is a running cluster, which is asked through kubectl.

    The cluster's clock stands at the newest time in the source. What the source names and does not hold, and what cannot
    be taken, is listed."""  # noqa: E501
    choices = options.import_options()
    live = options.live_source()
    if live is not None and options.args:
        options.usage_error("--context is a source by itself: no SOURCE goes with it")
    if live is None and (not options.args or not all(options.args)):
        options.usage_error("at least one source is required: kubepy import SOURCE...")
    if factory.open_cluster:
        raise CliError("there is a cluster already: this command line works on one that is open")
    if options.into and options.changed("record"):
        options.usage_error("--record makes a new cluster, and --into changes one")
    if options.into:
        _require_folder(options.into)
    else:
        _require_new(factory)
    run = ImportRun(factory, options, choices, live)
    with ending_on_sigterm():
        with run.saying_that_nothing_is_made():
            if options.into:
                run.merge_into(options.into)
            else:
                run.make()
        if options.changed("record"):
            run.record(options.record)


class ImportRun:
    """One import: it reads a source, as often as it is asked to."""

    def __init__(
        self,
        factory: Factory,
        options: ImportCommandOptions,
        choices: ImportOptions,
        live: LiveSource | None,
    ) -> None:
        self._factory = factory
        self._sources = options.args
        self._choices = choices
        self._live = live
        self._is_recording = options.changed("record")
        self._is_done = False  # the cluster is in its place

    @contextmanager
    def saying_that_nothing_is_made(self) -> Iterator[None]:
        """Say so of a block that somebody ends before the cluster is in its place."""
        try:
            yield
        except (KeyboardInterrupt, SilentExit) as end:
            self._factory.progress.clear()
            if not self._is_done:
                self._factory.say("interrupted: nothing was made or changed")
            if isinstance(end, SilentExit):
                raise
            raise SilentExit(128 + signal.SIGINT) from None

    def make(self) -> None:
        """Make a new cluster, and report."""
        factory = self._factory
        imported, content = self._read()
        factory.progress.show("writing", len(imported.objects))
        write_cluster(
            imported.cluster, factory.place, lambda text: with_comments(text, imported.learned)
        )
        self._is_done = True
        factory.progress.clear()
        self._report(imported, content)
        factory.print(f"cluster created in {printable(factory.shown_place)}")

    def merge_into(self, folder: str) -> None:
        """Bring the source into a cluster that is there, and report."""
        imported, content = self._read()
        unread = content.unread_resources
        changes = self._merge(imported, folder, unread)
        self._is_done = True
        self._factory.progress.clear()
        self._report(imported, content)
        self._factory.print(f"{printable(folder)}: {changes}")
        if unread.are_others_unread and not unread.read:
            self._factory.print("nothing is removed: not all of the source could be read")
        elif unread:
            self._factory.print("what could not be read stays as it was")

    def record(self, seconds: float) -> None:
        """Bring the present state into the cluster again and again, until somebody ends it."""
        factory = self._factory
        factory.print(f"recording every {seconds:g}s: Ctrl-C ends it")
        factory.stdout.flush()
        while True:
            time.sleep(seconds)
            try:
                imported, content = self._read()
                changes = self._merge(imported, factory.place, content.unread_resources)
            except SourceError as error:  # the cluster may answer the next time
                factory.say(f"Warning: {error}")
                continue
            factory.progress.clear()
            for line in (*content.unread, *content.without_objects):
                factory.say(f"Warning: could not be read, and stays as it was: {line}")
            factory.print(f"{imported.settings['clock']}  {changes}")
            factory.stdout.flush()

    def _read(self) -> tuple[ImportedCluster, SourceContent]:
        """Read the source, and make a cluster in memory of it; return what was read as
        well."""
        progress = self._factory.progress
        content = SourceContent.empty()

        def count(number: int) -> None:
            progress.show("reading objects", number)

        if self._live is not None:
            read_files(
                files_of_cluster(self._live, progress.show),
                content,
                lambda number: None,
            )
        for source in self._sources:
            if is_in_etcd(source):
                read_place(source, content)
            else:
                read_files(files_of(source, self._factory.stdin), content, count)
        choices = self._choices
        if self._is_recording:
            choices = choices._replace(now=datetime.now(UTC).replace(microsecond=0))
        return make_cluster(content, choices, progress.show), content

    def _merge(self, imported: ImportedCluster, folder: str, unread: UnreadResources) -> Changes:
        with closing(open_cluster(folder)) as cluster:
            changes = merge(imported, cluster, unread)
        if not is_left_out(PODS, imported, unread):  # the rules are those of earlier, else
            comment_settings(folder, lambda text: with_comments(text, imported.learned))
        return changes

    def _report(self, imported: ImportedCluster, content: SourceContent) -> None:
        for line in summary_lines(imported, content):
            self._factory.print(line)


def _require_folder(folder: str) -> None:
    """Raise CliError where there is no cluster to change."""
    if is_in_etcd(folder):
        raise CliError("--into takes a state folder: an etcd cannot change as one")
    if not has_cluster(folder):
        raise CliError(f"there is no cluster in {quote(folder)}")


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
