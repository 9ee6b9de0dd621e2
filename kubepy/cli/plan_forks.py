"""A command that ``kubepy plan`` tries, and the Factory that runs it on a fork of the cluster."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import takewhile
from typing import IO, TYPE_CHECKING, Any, cast

from kubepy.cli.errors import SilentExit, guarded
from kubepy.cli.runtime.dispatch import dispatch, root_command
from kubepy.cli.runtime.driver import ENDLESS
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag
from kubepy.cli.runtime.options import GLOBAL_FLAGS, GlobalOptions, KustomizeOptions, filename_flag
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.cli.plan_changes import AppliedChange
    from kubepy.insight.plans import Touched
    from kubepy.storage import Key

with lazy_imports():
    from kubepy.cli import plan_changes

GLOBAL_NAMES = frozenset(flag.long for flag in GLOBAL_FLAGS)
MAX_OUTPUT = 12  # lines of the command's own output
MAX_MESSAGES = 10  # lines that a command on a fork says on stderr
INTERRUPTED = 130  # the exit status after Ctrl-C


class RevisionOptions(KustomizeOptions):
    """The flags of ``plan`` that take the place of a command."""

    filename: list[str] = filename_flag("that --from and --to are about")
    kustomize: str = string_flag(
        "kustomize", "k", help="The kustomization that --from and --to are about."
    )
    recursive: bool = bool_flag(
        "recursive", "R", help="Take the manifests in the folders below that of -f, too."
    )
    from_: str = string_flag(
        "from",
        help="Plan what becomes of the manifests of this git revision, which are applied first, "
        "with those of --to; in place of a command.",
    )
    to: str = string_flag("to", help="The git revision after --from. Default, the working tree.")


@dataclass
class PlannedCommand:
    """A command line that is tried on forks.

    :ivar line: its words as they were given, without the program's name.
    :ivar words: those that are run, with the global flags before them; none: nothing is run.
    :ivar shows_changes: the objects that it writes are compared, before with after.
    :ivar output: what the first run has printed; ``messages``: and said on stderr.
    :ivar changes: the objects that the first run has written.
    :ivar base: the cluster on which it is tried, in place of the one in use.
    """

    line: tuple[str, ...]
    words: list[str]
    options: GlobalOptions
    stdin: Any
    shows_changes: bool = False
    output: str = ""
    messages: str = ""
    changes: tuple[AppliedChange, ...] | None = None
    base: LocalCluster | None = None

    def prepare(self, factory: Factory, stack: ExitStack) -> None:
        """Make the cluster on which it is tried, where that is not the one in use.

        :param stack: lets go of it in the end.
        """

    def document(self) -> Object:
        """Return what a plan's document says of the command beside its words."""
        if self.changes is None:
            return {}
        return {"changes": [change.document() for change in self.changes]}

    def run(self, inner: ForkFactory) -> int:
        """Run the command; returns its exit status. What it prints and says goes to the factory's
        streams."""
        return run_words(inner, self.words)

    def note(self, inner: ForkFactory, cluster: LocalCluster) -> None:
        """Keep what the first run has printed, said and changed.

        :param cluster: the cluster before.
        """
        self.output = self.output or distinct(inner.printed, MAX_OUTPUT)
        # Commands say in several ways that they have given up; the plan itself tells what they wait
        # for.
        lines = inner.said.splitlines(keepends=True)
        said = "".join(takewhile(lambda line: ENDLESS not in line, lines))
        self.messages = self.messages or distinct(said, MAX_MESSAGES)
        if self.shows_changes and self.changes is None:
            keys = inner.touched.keys
            self.changes = tuple(plan_changes.changes_of(cluster, inner.cluster, keys))


class Repeated(io.StringIO):
    """Standard input that each run reads anew; it is read when it is first asked for."""

    def __init__(self, stdin: IO[str]) -> None:
        super().__init__()
        self._stdin: IO[str] | None = stdin

    @property
    def text(self) -> str:
        """All of it; "" where nobody has asked for it."""
        return self.getvalue()

    def read(self, size: int | None = -1, /) -> str:
        self._fill()
        return super().read(size)

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        self._fill()
        return super().readline(size)

    def _fill(self) -> None:
        if self._stdin is not None:
            self.write(self._stdin.read())
            self.seek(0)
            self._stdin = None


class ForkFactory(Factory):
    """The Factory of a command on a fork: contexts and namespace are those of the command line that
    plans it.

    :ivar origin: the Factory of ``plan``.
    :ivar touched: the objects that the command writes.
    """

    def __init__(
        self,
        origin: Factory,
        fork: LocalCluster,
        planned: PlannedCommand,
        touched: Touched,
    ) -> None:
        super().__init__(planned.stdin, io.StringIO(), io.StringIO(), fork)
        self.program = origin.program
        self.words = planned.words
        self.main = origin.main
        self._target = origin._target._replace(place="")
        self.origin = origin
        self.touched = touched
        self._planned = planned

    def use(self, options: GlobalOptions, *, may_create: bool) -> None:
        """Work with the global flags of a command line from now on; they have chosen the cluster
        already."""
        options.state = ""
        options.reconcile = "auto"
        super().use(options, may_create=may_create)
        self.touched.watch(self.cluster)

    def renewed(self) -> ForkFactory:
        """Return another Factory on the same fork, with streams of its own."""
        assert self.open_cluster is not None
        return ForkFactory(self.origin, self.open_cluster, self._planned, self.touched)

    def note_subjects(self, keys: Iterable[Key]) -> None:
        self.touched.keys.update(dict.fromkeys(keys))

    def close(self) -> None:
        """Leave the fork as the command has left it."""

    @property
    def printed(self) -> str:
        """The output of the command so far."""
        return cast(io.StringIO, self.stdout).getvalue()

    @property
    def said(self) -> str:
        """What the command has said on stderr so far."""
        return cast(io.StringIO, self.stderr).getvalue()

    @property
    def has_given_up(self) -> bool:
        """Whether the command has waited for something that does not come."""
        return "driver" in self.__dict__ and self.driver.has_given_up


def run_words(inner: ForkFactory, words: Sequence[str]) -> int:
    """Run a command line on a fork; returns its exit status."""
    return guarded(lambda: dispatch(root_command(inner.origin), words, inner), inner.say)


def check(factory: Factory, inner: ForkFactory, status: int) -> None:
    """Raise SilentExit for a command that has failed, after its own message; one that waits in vain
    has not failed."""
    if status and not inner.has_given_up:
        factory.stderr.write(inner.said)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        raise SilentExit(1)


def global_words(flags_set: Sequence[tuple[str, str]]) -> list[str]:
    """Return the global ones of the flags that stand before a command, for the command itself."""
    return [f"--{name}={text}" for name, text in flags_set if name in GLOBAL_NAMES]


def distinct(text: str, most: int) -> str:
    """Return the first lines of a text, each once: a command that tries again and again says the
    same each time."""
    lines = list(dict.fromkeys(text.splitlines()))
    more = []
    if len(lines) > most:
        more = [f"... and {plan_changes.more_of(len(lines) - most, 'line')}"]
    return "".join(f"{line}\n" for line in [*lines[:most], *more])
