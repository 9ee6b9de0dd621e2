"""``kubepy init``, ``fork`` and ``fsck``: make a state folder; copy one; find and repair problems
in one."""

from __future__ import annotations

import re
from contextlib import closing

from kubepy.api.clock import format_exact_time
from kubepy.apiserver.settings import FULL, MINIMAL
from kubepy.cli.clock import parse_moment
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, int_flag, string_flag
from kubepy.cli.runtime.options import Options
from kubepy.cli.runtime.signals import ending_on_sigterm
from kubepy.controlplane.furnishing import furnish
from kubepy.controlplane.open import MEMORY, begin_cluster, copy_cluster, open_cluster, shown
from kubepy.quoting import printable, quote


class InitOptions(Options):
    """The flags of ``init``."""

    nodes: int = int_flag("nodes", default=1, help="How many Ready nodes to make: node-1, node-2 …")
    bootstrap: str = string_flag(
        "bootstrap",
        help="'full': what every cluster has (ServiceAccounts, kube-root-ca.crt, "
        "the Service kubernetes, bootstrap roles) is made as files, and pods need their "
        "ServiceAccount. 'minimal', the default: it becomes files when it is changed.",
    )
    clock: str = string_flag(
        "clock",
        help="Give the cluster a time of its own, which begins then "
        "(2026-01-01T00:00:00Z), and moves only when a command moves it.",
    )
    seed: str = string_flag(
        "seed",
        help="A number or text that all random draws follow from: with a clock, the same "
        "commands make the same cluster.",
    )

    def settings(self) -> dict[str, str | int]:
        """Return the settings for ``kubepy.yaml``. Raises CliError."""
        if self.bootstrap not in ("", MINIMAL, FULL):
            raise CliError(
                f"--bootstrap={printable(self.bootstrap)} is invalid: must be {MINIMAL} or {FULL}"
            )

        if self.changed("seed") and not self.seed:
            raise CliError(
                "--seed is empty: it must be a number or a text; without --seed the cluster has "
                "none"
            )

        values = {
            "clock": format_exact_time(parse_moment(self.clock)) if self.changed("clock") else "",
            "seed": int(self.seed) if re.fullmatch("-?[0-9]{1,18}", self.seed) else self.seed,
            "bootstrap": self.bootstrap,
        }
        return {name: value for name, value in values.items() if value != ""}


@command(
    "init [--nodes=N] [--clock=TIME] [--seed=SEED] [--bootstrap=minimal|full]",
    InitOptions,
    creates=True,
    examples="""
# Make a cluster with one node in ./state
kubepy init

# Make one with three nodes, and with all the objects that a new cluster has
kubepy init --nodes=3 --bootstrap=full

# Make one with a time of its own, in which the same commands always give the same result
kubepy init --clock=2026-01-01T00:00:00Z --seed=7

# Make one in another folder, and nodes of your own
kubepy --state /tmp/lab init --nodes=0
kubepy --state /tmp/lab apply -f nodes.yaml
""",
)
def init(factory: Factory, options: InitOptions) -> None:
    """Make a cluster: a new state folder, or one in etcd, with one node, unless told otherwise, and a default StorageClass, "standard".

    With --nodes=0 it has neither: nodes and storage are yours to bring. A command that makes objects where there is no
    cluster makes one with a node, unless it brings nodes of its own.

    The folder, or the etcd, is --state, $KUBEPY_STATE or ./state; it must not hold a cluster yet, but a folder may hold a
    kubepy.yaml with a clock and a seed. If it was killed half way, run it again: it finishes what it began."""  # noqa: E501
    options.require_no_args()
    if options.nodes < 0:
        raise CliError(f"--nodes={options.nodes} is invalid: must be greater than or equal to 0")
    settings = options.settings()
    if factory.open_cluster:
        raise CliError("there is a cluster already: this command line works on one that is open")
    if factory.has_cluster:
        with closing(open_cluster(factory.place)) as cluster:
            is_unfinished = cluster.is_unfinished()
        if not is_unfinished:
            raise CliError(f"there is a cluster in {quote(factory.shown_place)} already")

    begin_cluster(factory.place, settings)
    factory.adds_node = False
    factory.may_create = True  # also with $KUBEPY_MUST_EXIST
    names = furnish(
        factory.cluster,
        options.nodes,
        lambda number: factory.progress.show("making nodes", number, options.nodes),
        with_storage=options.nodes > 0,
    )
    factory.cluster.finish()
    factory.print(f"cluster created in {printable(factory.shown_place)}")
    if names:
        factory.print("storageclass.storage.k8s.io/standard created")
    for name in names:
        factory.print(f"node/{name} created")
    if not names:
        factory.notes.missing_nodes(factory.client)


class ForkOptions(Options):
    """The flags of ``fork``: none of its own."""


@command(
    "fork [SOURCE] TARGET",
    ForkOptions,
    examples="""
# Copy the cluster to a new folder
kubepy fork what-if

# Try something in a copy; the cluster itself does not change
kubepy fork try
kubepy --state try set image ds/log-agent agent=fluent-bit:4.0
kubepy --state try rollout status ds/log-agent

# Copy a copy
kubepy fork first
kubepy fork first second
""",
)
def fork(factory: Factory, options: ForkOptions) -> None:
    """Copy a cluster: the one in use, or SOURCE. Both are a state folder or an address of etcd. Both clusters go on
    from there, rollouts under way included, and neither sees the changes of the other.

    A new state folder must not exist, or be empty; from folder to folder every file is copied as it is, with revisions,
    events, clock and seed. A .git folder and the contexts of "kubepy config" are not copied. An etcd must have no cluster
    there; objects get its revisions, and what a folder leaves out (bootstrap: minimal) is written out."""  # noqa: E501
    if len(options.args) not in (1, 2) or not all(options.args):
        options.usage_error("one or two places are required: kubepy fork [SOURCE] TARGET")
    *source, target = options.args
    if target == MEMORY:
        raise CliError(
            f'"{MEMORY}" is no place for a copy: a cluster in memory would be gone with the command'
        )
    if source:
        if factory.options.state:
            options.usage_error("the source is given twice: by --state and as SOURCE")
        factory.options.state = source[0]
        factory.use(factory.options, may_create=False)
    cluster = factory.cluster

    with ending_on_sigterm():
        copy_cluster(cluster, target)
    factory.print(printable(f"cluster forked to {shown(target)}"))


class FsckOptions(Options):
    """The flags of ``fsck``."""

    repair: bool = bool_flag(
        "repair", help="Repair what can be repaired safely, and list each repair."
    )
    v: int = int_flag(
        "v",
        "v",
        no_value="1",
        bits=32,
        help="List all other files in the folders of objects as well: "
        "notes, copies, what editors leave.",
    )


@command(
    "fsck [--repair] [-v]",
    FsckOptions,
    examples="""
# Check the folder after a merge
kubepy fsck

# List files that are no manifests as well
kubepy fsck -v

# Another folder
kubepy --state /srv/lab/state fsck

# Rebuild an index that disagrees with the files, make Secrets private, remove the leftovers of killed processes
kubepy fsck --repair
""",  # noqa: E501
)
def fsck(factory: Factory, options: FsckOptions) -> None:
    """Check the state folder: files that cannot be objects, folders without their namespace, and whether files and
    index agree.

    Every file below cluster/ and namespaces/ whose name ends in .yaml, .yml or .json must be that of an object. Exits
    with 1 if anything is wrong. Nothing is changed unless --repair is given. A file that cannot be an object is never
    changed: edit or remove it."""  # noqa: E501
    options.require_no_args()
    factory.require_folder()
    factory.tells_problems = False
    if options.repair:
        for line in factory.worktree.repair():
            factory.print(printable(line))
    worktree = factory.worktree
    problems = [*factory.cluster.problems(), *factory.cluster.folders_without_namespace()]
    manifests, others = worktree.other_files()
    lines = [
        *map(str, problems),
        *(f"{path}: is not read: it is no object's file" for path in manifests),
    ]
    for line in lines:
        factory.print(printable(line))
    for path in others if options.v else ():
        factory.print(printable(f"{path}: is not read"))
    disagreements = worktree.check()
    for line in disagreements:
        factory.print(printable(line))
    if disagreements and not options.repair:
        factory.say('run "kubepy fsck --repair" to repair what can be repaired safely')
    if lines or disagreements:
        raise SilentExit(1)
    factory.print(printable(f"{factory.folder}: no problems"))
