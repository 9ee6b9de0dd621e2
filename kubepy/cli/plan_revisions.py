"""``kubepy plan --from REV --to REV``: what becomes of manifests between two revisions of git.

The manifests of the first revision are applied on a fork of the cluster, without what was there
under their names, and settle. The plan is about the second step alone: those of the other revision
are applied, and what is not among them any more is pruned.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.request import MERGE_PATCH, DeleteOptions, Patch
from kubepy.cli.errors import (
    AggregateError,
    CliError,
    SilentExit,
    guarded,
    raise_all,
    unless_missing,
)
from kubepy.cli.files import create_folder
from kubepy.cli.git.repository import Repository
from kubepy.cli.git.trees import commit_of, write_tree
from kubepy.cli.plan_changes import more_of
from kubepy.cli.plan_forks import (
    INTERRUPTED,
    ForkFactory,
    PlannedCommand,
    RevisionOptions,
    global_words,
    run_words,
)
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.dispatch import line_of, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import CommandLine, KustomizeOptions
from kubepy.controlplane.furnishing import furnish
from kubepy.controlplane.open import MEMORY, make_cluster
from kubepy.insight.plans import Touched
from kubepy.insight.prediction import Prediction, predict
from kubepy.quoting import printable, quote
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

# A cluster in memory: the same each time, so that the same manifests make the same plan.
NODES = 3
SETTINGS = {"clock": "2026-01-01T00:00:00Z", "seed": 1}
WORKING_TREE = "the working tree"
MOST_ROUNDS = 10
# Kinds that stay when the objects of the first revision's manifests go: others are in them, or of
# them, which the manifests do not name.
HOLDERS = ("customresourcedefinitions.apiextensions.k8s.io", "namespaces", "nodes")
BACKGROUND = DeleteOptions(propagation_policy="Background")
SHORT_HASH = 10


def empty_cluster() -> LocalCluster:
    """Return the cluster that ``--state memory:`` names: an empty one with three nodes."""
    cluster = make_cluster(MEMORY, SETTINGS)
    furnish(cluster, NODES)
    return cluster


# --- the command line -----------------------------------------------------------------------------


class Side(NamedTuple):
    """The manifests of one revision.

    :ivar name: the revision as messages name it: ``main``, ``the working tree``.
    :ivar words: the flags of ``apply`` that name those that it has.
    :ivar missing: the paths, as they were given, that it does not have.
    :ivar folder: that with the files of the revision; "" for the working tree.
    """

    name: str
    words: tuple[str, ...]
    missing: tuple[str, ...]
    folder: str = ""

    @property
    def is_there(self) -> bool:
        """Whether the revision has any of the paths."""
        return any(word in ("-f", "-k") for word in self.words)

    def named(self, text: str) -> str:
        """Return a message with the revision in place of the folder: ``main:web.yaml``."""
        if not self.folder:
            return text
        return text.replace(f"{self.folder}/", f"{self.name}:").replace(self.folder, self.name)


class ManifestPath(NamedTuple):
    """A path that ``-f`` or ``-k`` names.

    :ivar flag: ``-f`` or ``-k``.
    :ivar path: as it was given; ``inner``: from the root of the repository.
    """

    flag: str
    path: str
    inner: str


def is_about_revisions(options: RevisionOptions) -> bool:
    """Return whether a plan is about revisions in place of a command. Raises CliError for flags
    that do not go together."""
    if options.changed("from"):
        if options.args:
            raise CliError("plan takes a command or --from, not both")
        if options.filename and options.kustomize:
            raise CliError("only one of -f or -k can be specified")
        options.require_files()
        return True
    if options.changed("to"):
        raise CliError("--to goes with --from")
    if options.filename or options.kustomize or options.recursive:
        raise CliError('-f, -k and -R go with --from; to plan an apply: "kubepy plan apply -f"')
    return False


def read_revisions(
    factory: Factory, options: RevisionOptions, stack: ExitStack
) -> RevisionsCommand:
    """Read both revisions. Raises CliError.

    :param stack: removes the files of the revisions in the end.
    """
    given = [("-k", options.kustomize)] if options.kustomize else []
    given += [("-f", path) for path in options.filename]
    repository = repository_of([path for _, path in given])
    targets = [ManifestPath(flag, path, inner_path(repository, path)) for flag, path in given]
    common = ("--recursive",) if options.recursive else ()
    sides = []
    for revision in (options.from_, options.to if options.changed("to") else None):
        if revision is None:
            side = working_tree(targets, common)
        else:
            side = side_of(factory, repository, revision, targets, common, stack)
        sides.append(side)
    before, after = sides
    if not before.is_there and not after.is_there:
        paths = ", ".join(quote(target.path) for target in targets)
        raise CliError(f"neither {before.name} nor {after.name} has {paths}")
    for side in sides:
        for path in side.missing:
            factory.say(f"note: {side.name} has no {path}")
    line = ("apply", *common, *(word for flag, path, _ in targets for word in (flag, path)))
    words = [*global_words(options.line.flags_set), "apply", *after.words]
    return RevisionsCommand(
        line, words, factory.options, io.StringIO(), shows_changes=True, before=before, after=after
    )


def repository_of(paths: Sequence[str]) -> Repository:
    """Return the repository that holds all of some paths. Raises CliError."""
    for path in paths:
        if path == "-" or "://" in path:
            raise CliError(f"--from needs paths in a git repository, not {quote(path)}")
    repositories = {found.root: found for found in map(repository_at, paths)}
    if len(repositories) > 1:
        raise CliError("all paths must be in the same git repository")
    [repository] = repositories.values()
    return repository


def repository_at(path: str) -> Repository:
    """Return the repository that holds a path. Raises CliError."""
    return Repository(os.path.realpath(nearest_folder(path)))


def nearest_folder(path: str) -> str:
    """Return the nearest folder of a path that is there; a link at its end is not followed."""
    folder = os.path.abspath(path)
    if os.path.islink(folder):
        folder = os.path.dirname(folder)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def inner_path(repository: Repository, path: str) -> str:
    """Return a path from the root of the repository."""
    above = nearest_folder(path)
    rest = os.path.relpath(os.path.abspath(path), above)
    return os.path.relpath(os.path.join(os.path.realpath(above), rest), repository.root)


def working_tree(targets: Sequence[ManifestPath], common: Sequence[str]) -> Side:
    """Return the manifests as they are in the working tree."""
    paths = [target.path for target in targets]
    return Side(WORKING_TREE, *words_and_missing(targets, paths, common))


def side_of(
    factory: Factory,
    repository: Repository,
    revision: str,
    targets: Sequence[ManifestPath],
    common: Sequence[str],
    stack: ExitStack,
) -> Side:
    """Return the manifests of a revision, in a folder of their own. Raises CliError."""
    commit = commit_of(repository, revision)
    name = revision[:SHORT_HASH] if revision == commit else printable(revision)
    folder = os.path.realpath(create_folder("kubepy-plan-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    for path in write_tree(repository, commit, folder):
        factory.warn(f"{name}: {printable(path)} leads out of the repository, and is left out")
    paths = [os.path.normpath(os.path.join(folder, target.inner)) for target in targets]
    return Side(name, *words_and_missing(targets, paths, common), folder)


def words_and_missing(
    targets: Sequence[ManifestPath], paths: Sequence[str], common: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the flags of ``apply`` for the paths that are there, and the others as they were
    given.

    :param paths: the place of each path in one revision.
    """
    words = [*common]
    missing: list[str] = []
    for target, path in zip(targets, paths, strict=True):
        if is_something(path):
            words += [target.flag, path]
        else:
            missing.append(target.path)
    return tuple(words), tuple(missing)


def is_something(path: str) -> bool:
    """Return whether there is a file or folder, or whether a pattern may match some."""
    above = os.path.dirname(path.rstrip("/"))
    return os.path.lexists(path) or (any(sign in path for sign in "*?[") and os.path.isdir(above))


# --- applying -------------------------------------------------------------------------------------


@dataclass
class RevisionsCommand(PlannedCommand):
    """The step from the manifests of one revision to those of another.

    :ivar applied: the objects of the first one's, in the order in which they were applied.
    """

    before: Side = field(kw_only=True)
    after: Side = field(kw_only=True)
    applied: dict[Key, Info] = field(default_factory=dict)

    def prepare(self, factory: Factory, stack: ExitStack) -> None:
        """Make the cluster in which the manifests of the first revision are applied, and settled.
        Raises SilentExit, after the reason, where they cannot be applied."""
        factory.catch_up()
        cluster = factory.cluster
        steps = [self._clear, self._begin] if self.before.is_there else [self._begin]
        for step in steps:
            cluster = self._settled(factory, cluster, step, stack)
        self.base = cluster

    def run(self, inner: ForkFactory) -> int:
        """Apply the manifests of the second revision, and prune what is not among them."""
        inner.use(copy(self.options), may_create=False)
        objects: dict[Key, Info] = {}
        if self.after.is_there:
            status = apply_in_rounds(inner, self.words, self.after)
            if status:
                tell_first(inner, self.after)
                return status
            objects = objects_of(inner, self.after)
        return guarded(lambda: self._prune(inner, objects), inner.say)

    def document(self) -> Object:
        return {**super().document(), "from": self.before.name, "to": self.after.name}

    def _settled(
        self,
        factory: Factory,
        cluster: LocalCluster,
        step: Callable[[ForkFactory], None],
        stack: ExitStack,
    ) -> LocalCluster:
        """Return a fork on which something has been done, once nothing more happens there."""

        def act(fork: LocalCluster) -> None:
            inner = ForkFactory(factory, fork, self, Touched())
            inner.use(copy(self.options), may_create=False)
            step(inner)

        prediction: Prediction = predict(cluster, act)
        stack.callback(prediction.close)
        return prediction.cluster

    def _clear(self, inner: ForkFactory) -> None:
        """Delete what is there under the names of the first revision's manifests."""
        infos, _ = read_manifests(inner, self.before)
        for info in infos:
            if info.resource.storage_key not in HOLDERS:
                delete_if_there(inner, info)

    def _begin(self, inner: ForkFactory) -> None:
        """Apply the manifests of the first revision. Raises SilentExit, after the reason."""
        if not self.before.is_there:
            return
        self._release(inner)
        words = [*self.words[: self.words.index("apply") + 1], *self.before.words]
        status = apply_in_rounds(inner, words, self.before)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            tell_first(inner, self.before)
            inner.origin.stderr.write(inner.said)
            raise SilentExit(1)
        self.applied = objects_of(inner, self.before)

    def _release(self, inner: ForkFactory) -> None:
        """Let go of what finalizers hold, for which no controller works here."""
        infos, _ = read_manifests(inner, self.before)
        for info in infos:
            current = unless_missing(info.get, inner)
            if current is not None and current["metadata"].get("deletionTimestamp"):
                inner.client.patch(
                    info.resource.gvr,
                    info.name,
                    Patch(MERGE_PATCH, {"metadata": {"finalizers": None}}),
                    namespace=info.namespace,
                )

    def _prune(self, inner: ForkFactory, objects: dict[Key, Info]) -> None:
        """Delete what was in the first revision's manifests and is not among these objects, in
        the reverse order: custom resources before their definition."""
        for key, info in reversed(self.applied.items()):
            if key in objects:
                continue
            if delete_if_there(inner, info):
                inner.print(f"{info.printed_name} pruned")


def delete_if_there(inner: ForkFactory, info: Info) -> bool:
    """Delete the object that a manifest names; tell whether it was there."""
    deleted = unless_missing(
        inner.client.delete,
        info.resource.gvr,
        info.name,
        namespace=info.namespace,
        options=BACKGROUND,
    )
    return deleted is not None


def apply_in_rounds(inner: ForkFactory, words: Sequence[str], side: Side) -> int:
    """Run ``apply`` again as long as it fails and gets on: a definition may stand in a file behind
    its objects, a namespace behind what is in it. Returns the exit status of the last round; what
    that says goes to stderr, what all print to stdout.
    """
    printed: dict[str, str] = {}
    for _ in range(MOST_ROUNDS):
        written = len(inner.touched.keys)
        attempt = inner.renewed()
        status = run_words(attempt, words)
        for line in attempt.printed.splitlines():
            name, _, operation = line.rpartition(" ")
            printed.setdefault(name, operation)
        if status in (0, INTERRUPTED) or len(inner.touched.keys) == written:
            break
    inner.stdout.write("".join(f"{name} {text}\n" for name, text in printed.items()))
    inner.stderr.write(side.named(attempt.said))
    return status


def tell_first(inner: ForkFactory, side: Side) -> None:
    """Leave one line of what has been said on stderr: the first error, with the revision."""
    lines = [line for line in inner.said.splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith(("Warning:", "note:"))] or lines
    more = f" (and {more_of(len(errors) - 1, 'line')})" if len(errors) > 1 else ""
    text = errors[0].removeprefix("error: ") if errors else "apply has failed"
    inner.stderr.seek(0)
    inner.stderr.truncate()
    inner.say(f"error: {side.name}: the manifests cannot be applied: {text}{more}")


def objects_of(inner: ForkFactory, side: Side) -> dict[Key, Info]:
    """Return the objects that manifests name, by their keys. Raises what reading them raises."""
    infos, errors = read_manifests(inner, side)
    raise_all(errors)
    return {Key(info.resource.storage_key, info.namespace, info.name): info for info in infos}


def read_manifests(inner: ForkFactory, side: Side) -> tuple[list[Info], list[Exception]]:
    """Return the objects that manifests name, and what else there is in them: kinds without a
    definition, files that cannot be read."""
    infos: list[Info] = []
    try:
        errors = Builder(inner, apply_options(inner, side)).do().errors_of(infos.append)
    except (CliError, AggregateError) as error:
        errors = [error]
    return [info for info in infos if info.name], errors


def apply_options(inner: ForkFactory, side: Side) -> KustomizeOptions:
    """Return the options of ``apply`` for manifests."""
    line = line_of(root_command(inner.origin), ["apply", *side.words])
    parsed = line.command.parser().parse(line.rest)
    options = line.command.options_of(
        CommandLine("", parsed.args, parsed.dash, parsed.flags_set), parsed.values
    )
    assert isinstance(options, KustomizeOptions)
    return options
