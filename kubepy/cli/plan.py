"""``kubepy plan``: what a command would do, tried on a fork of the cluster with the real
controllers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from typing import IO, TYPE_CHECKING, Any

from kubepy.api.meta import nested_map
from kubepy.api.objects.outcomes import NO_TIME, parse_length
from kubepy.api.objects.usage import AnnotationError
from kubepy.api.values.goformat import parse_span
from kubepy.cli import kuberc, plan_seeds
from kubepy.cli.clock import DAY
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.names import KUBECTL, KUBEPY
from kubepy.cli.plan_forks import (
    GLOBAL_NAMES,
    ForkFactory,
    PlannedCommand,
    Repeated,
    RevisionOptions,
    check,
    global_words,
)
from kubepy.cli.runtime.command import command, in_memory, reading
from kubepy.cli.runtime.dispatch import Line, dispatch, line_of, root_command
from kubepy.cli.runtime.factory import IN_MEMORY, Factory
from kubepy.cli.runtime.flags import (
    FlagSyntaxError,
    HelpRequested,
    int_flag,
    string_array_flag,
    string_flag,
    string_slice_flag,
    typed_flag,
)
from kubepy.cli.runtime.options import (
    CommandLine,
    Options,
    output_flag,
)
from kubepy.cli.runtime.output import document
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.insight.plans import Plan
    from kubepy.insight.policy import PlanPolicy
    from kubepy.insight.prediction import Prediction
    from kubepy.insight.runs import RunResult
    from kubepy.insight.why.question import Run

with lazy_imports():  # a completion needs none of these
    from kubepy.apiserver import cluster as clusters
    from kubepy.cli import (
        files,
        plan_markdown,
        plan_pages,
        plan_policy,
        plan_processes,
        plan_report,
        plan_revisions,
        plan_text,
        why,
    )
    from kubepy.cli.parallel import commandfiles, daskcluster
    from kubepy.controlplane import furnishing, images
    from kubepy.controlplane import open as openings
    from kubepy.insight import plans as judgement
    from kubepy.insight import policy as policies
    from kubepy.insight import prediction as predictions
    from kubepy.insight import runs as several

FORMATS = ("text", "json", "markdown", "html", "svg")
ABOUT_ITSELF = "it is not about what happens in the cluster"
NEW_FOLDER = "it makes or checks a state folder, and a plan has none"
READS = "it only reads"
WAITS = "it goes on until it is interrupted"
# Commands that a plan refuses, by their first words, with the reason.
REFUSED = {
    "api-resources": ABOUT_ITSELF,
    "api-versions": ABOUT_ITSELF,
    "completion": ABOUT_ITSELF,
    "config": ABOUT_ITSELF,
    "diff": READS,
    "envtest-assets": NEW_FOLDER,
    "explain": ABOUT_ITSELF,
    "fork": NEW_FOLDER,
    "fsck": NEW_FOLDER,
    "fuzz": "it tries its workload on forks by itself",
    "git": NEW_FOLDER,
    "help": ABOUT_ITSELF,
    "import": NEW_FOLDER,
    "init": NEW_FOLDER,
    "kuberc": ABOUT_ITSELF,
    "kustomize": ABOUT_ITSELF,
    "logs": READS,
    "mcp": WAITS,
    "options": ABOUT_ITSELF,
    "plan": "it is a plan already",
    "plugin": ABOUT_ITSELF,
    "serve": WAITS,
    "timeline": "it only shows what has happened",
    "version": ABOUT_ITSELF,
    "why": "it tries its remedies on forks by itself",
    "__complete": ABOUT_ITSELF,
    "__completeNoDesc": ABOUT_ITSELF,
}
# Flags that a process which makes some of the runs is not told.
OF_ONE_PROCESS = frozenset(
    {"runs", "seeds", "seed", "shard", "jobs", "on", "output", "fail-on", "fail-if"}
)
FEW_PODS = 200  # so many pods may a cluster have for remedies to be tried


def parse_range(text: str) -> str:
    """Check a duration or a range of them. Raises ValueError."""
    try:
        parse_length("", text)
    except AnnotationError:
        raise ValueError(NO_TIME) from None
    return text


class PlanOptions(RevisionOptions):
    """The flags of ``plan``."""

    for_: float = typed_flag(
        "for",
        DAY,
        parse_span,
        help="Look so far ahead (30m, 7d); what has not finished by then does not finish.",
    )
    output: str = output_flag("text, json, markdown, html, svg", "text")
    ready_after: str = typed_flag(
        "ready-after",
        "",
        parse_range,
        help="The time from the start of a container to "
        "Ready, where no annotation says it: a duration (5s) or a range (5s..20s).",
    )
    stops_after: str = typed_flag(
        "stops-after",
        "",
        parse_range,
        help="How long a deleted pod terminates, where no annotation says it: likewise.",
    )
    runs: int = int_flag(
        "runs",
        default=1,
        help="Try it so many times, each time with another seed; show the worst run, and how the "
        "times that are ranges spread.",
    )
    seeds: range | None = typed_flag(
        "seeds",
        None,
        plan_seeds.parse_seeds,
        help="Try it with each of these seeds (0..99); 0 is the cluster's own.",
    )
    seed: int = int_flag(
        "seed", default=0, help="Repeat the run with this seed, as --runs and --seeds count them."
    )
    jobs: int = int_flag("jobs", default=1, help="Let so many processes share the runs.")
    on: str = string_flag(
        "on", help="Let a cluster of Dask make the runs: dask://HOST:PORT of its scheduler."
    )
    shard: tuple[int, int] | None = typed_flag(
        "shard",
        None,
        plan_seeds.parse_shard,
        help="Make only this part of the runs: 2/5 is the second of five.",
    )
    fail_on: list[str] = string_slice_flag(
        "fail-on",
        default=[],
        help="The kinds of harm that make the exit status 2 or 3, in place of all: "
        "never-finishes, outage, worse, below-bound, unreachable, blocked, data, stuck.",
    )
    fail_if: list[str] = string_array_flag(
        "fail-if",
        default=[],
        help="Exit with 3 where this expression (CEL) is true of a workload: 'available < 0.8', "
        "\"finishedAfter > duration('10m')\".",
    )


@in_memory
@reading
@command(
    "plan [--] [COMMAND...]",
    PlanOptions,
    interspersed=False,
    examples="""
# A rolling update: each step, and what is available meanwhile
kubepy plan set image ds/log-agent agent=fluent-bit:3.1

# What a changed folder of manifests would do
kubepy plan apply -f manifests/

# How long a drain takes, and whether a budget stops it
kubepy plan drain node-2 --ignore-daemonsets --force

# What is under way, and whether it finishes
kubepy plan

# How long a rollout takes when pods need 5 to 20 seconds, over 20 seeds
kubepy plan --ready-after=5s..20s --runs=20 rollout restart deploy/web

# For a program; the exit status is 2 if it does not finish, 3 if it hurts
kubepy plan -o json rollout undo ds/log-agent --to-revision=1

# What a pull request would do, for its comment
kubepy plan --from main --to HEAD -k overlays/production -o markdown

# Fail only where a workload has less than 80 % of its pods, or loses all of them
kubepy plan --fail-on=never-finishes,outage --fail-if='available < 0.8' rollout restart ds/log-agent
""",
)
def plan(factory: Factory, options: PlanOptions) -> None:
    """Show what a command would do, without doing it.

    The command runs on a fork of the cluster in memory, and the controllers work there until nothing is left to do, in
    the cluster's own time. The plan shows each step, with the pods that are available beside it, then how long each
    workload takes. Nothing in the cluster is changed. Without a command it is about what is under way.

    Flags before the command's name are those of plan, and global ones; all further words are the command's own.

    The plan also says which objects are worse off than before: harm. --fail-on and --fail-if, or the file
    kubepy-plan.yaml in the working directory or above it in its git repository, say what counts.

    With --from in place of a command it is about manifests in a git repository: those of one revision are applied and
    settle, and the plan says what becomes of them with those of another one, or of the working tree. "--state memory:"
    stands for an empty cluster with three nodes.

    The exit status is 0 if everything finishes and nothing is hurt, 2 if something does not finish, 3 if all of it
    finishes and hurts, 1 for an error."""  # noqa: E501
    if options.output not in FORMATS:
        raise CliError(
            f"unable to match a printer suitable for the output format {quote(options.output)}, "
            f"allowed "
            f"formats are: {','.join(FORMATS)}"
        )

    if options.for_ < 0:
        raise CliError("--for must not be negative")
    if options.jobs < 1:
        raise CliError("--jobs must be at least 1")
    if options.on and options.changed("from"):
        raise CliError("--on is for a command: other machines have no git repository for --from")
    wanted = wanted_runs(options)
    numbers = wanted.numbers()
    fail_on = options.fail_on if options.changed("fail-on") else None
    policy = plan_policy.policy_of(fail_on, options.fail_if)
    with ExitStack() as stack:
        planned = read_planned(factory, options, stack)
        if planned is not None:
            try_command(factory, options, planned, policy, numbers)


def read_planned(factory: Factory, options: PlanOptions, stack: ExitStack) -> PlannedCommand | None:
    """Read what is to be tried: a command, or the step from one revision to another. Raises
    CliError.

    :param stack: removes what is needed until the plan is shown.
    """
    planned: PlannedCommand | None
    if plan_revisions.is_about_revisions(options):
        planned = plan_revisions.read_revisions(factory, options, stack)
    else:
        planned = read_command(factory, options)
    if not factory.open_cluster and factory.home == IN_MEMORY:
        factory.open_cluster = plan_revisions.empty_cluster()
        factory.options.state = ""
    if planned is not None:
        planned.prepare(factory, stack)
    return planned


def try_command(
    factory: Factory,
    options: PlanOptions,
    planned: PlannedCommand,
    policy: PlanPolicy,
    numbers: Sequence[int],
) -> None:
    """Make the plan of a command, and show it. Raises SilentExit unless it finishes and hurts
    nothing."""
    if isinstance(factory, plan_processes.RunsFactory):
        runner = Runner(factory, planned, options, factory.policy, is_silent=True)
        factory.results = [runner.run(number) for number in factory.numbers]
        runner.close()
        return
    runner = Runner(factory, planned, options, policy)
    try:
        results = runner.run_all(numbers)
        show(factory, options, planned, runner, results)
    finally:
        runner.close()

    if status := exit_status(results):
        raise SilentExit(status)


def wanted_runs(options: PlanOptions) -> plan_seeds.WantedRuns:
    """Return what the flags say about runs."""
    return plan_seeds.WantedRuns(
        options.runs if options.changed("runs") else None,
        options.seeds,
        options.seed if options.changed("seed") else None,
        options.shard,
    )


def exit_status(results: Sequence[RunResult]) -> int:
    """Return the exit status of several runs: that of those that do not finish before that of those
    that hurt."""
    return min((result.status for result in results if result.status), default=0)


def show(
    factory: Factory,
    options: PlanOptions,
    planned: PlannedCommand,
    runner: Runner,
    results: Sequence[RunResult],
) -> None:
    """Print the plan; with several runs that of the worst, and how they spread."""
    plan = runner.plan
    violations = policies.violations_of(runner.policy, plan)
    runs = several.summarise(results) if wanted_runs(options).is_about_several else None
    factory.stderr.write(planned.messages)
    if options.output == "json":
        shown = {
            **judgement.plan_document(plan, why.program_of_remedies(factory)),
            **planned.document(),
            "failIf": [policies.violation_document(violation) for violation in violations],
            **({"runs": several.runs_document(runs)} if runs else {}),
        }
        factory.print(document("json", shown, typed=True), end="")
        return
    if options.output in RENDERERS:
        report = plan_report.Report(
            plan, planned, runner.policy, violations, runs, exit_status(results)
        )
        factory.print(RENDERERS[options.output](report), end="")
        return
    text = plan_text.PlanText(
        factory.stdout, plan, runner.policy, violations, plain=factory.options.ascii
    )
    factory.print(
        "\n".join(
            [
                *text.output(planned.output),
                *text.changes(planned.changes or ()),
                *text.lines(),
                *(text.runs(runs) if runs else ()),
            ]
        )
    )


RENDERERS: Mapping[str, Callable[[plan_report.Report], str]] = {
    "markdown": lambda report: plan_markdown.render_markdown(report),
    "html": lambda report: plan_pages.render_html(report),
    "svg": lambda report: plan_pages.render_svg(report),
}


# --- the command ----------------------------------------------------------------------------------


def read_command(factory: Factory, options: PlanOptions) -> PlannedCommand | None:
    """Read the command that is to be tried; None for one that has only shown its help. Raises
    CliError.

    The factory takes its global flags over: they say which cluster and namespace it is about.
    """
    own = own_words(options.args)
    flags = global_words(options.line.flags_set)
    stdin: IO[str] = Repeated(factory.stdin) if wanted_runs(options).vary else factory.stdin
    if not own:
        return PlannedCommand((), [], factory.options, stdin)
    words = [*flags, *own]
    if factory.has_preferences(words):
        words = kuberc.applied(root_command(factory), words, factory)
    line = line_of(root_command(factory), words)
    try:
        parsed = line.command.parser().parse(line.rest)
    except (HelpRequested, FlagSyntaxError):
        parsed = None

    if parsed is None or not line.path or line.command.run is None:  # it only gets help or an error
        dispatch(root_command(factory), words, factory)
        return None
    given = line.command.options_of(
        CommandLine("", parsed.args, parsed.dash, parsed.flags_set), parsed.values
    )
    if reason := refusal(factory, line, given):
        raise CliError(f"plan cannot try {quote(' '.join(line.path))}: {reason}")
    global_options = line.command.global_options_of(parsed.values)
    factory.use(global_options, may_create=line.command.creates)
    applies = line.path == ("apply",)
    return PlannedCommand(tuple(own), words, global_options, stdin, shows_changes=applies)


def refusal(factory: Factory, line: Line, options: Options) -> str:
    """Return why a command cannot be tried, "" if it can."""
    values = vars(options)
    if reason := REFUSED.get(line.path[0], ""):
        return reason
    if line.path[0] in ("controller", "get", "events") and (
        values.get("watch") or values.get("watch_only")
    ):
        return WAITS
    if (
        line.path[-1] in ("edit", "edit-last-applied") or values.get("edit")
    ) and not factory.stdin.isatty():
        return "an editor needs a terminal"
    if values.get("output_directory"):
        return "it writes files"
    return ""


def words_before(line: Line, word: str) -> list[str] | None:
    """Return the words of the command that is planned, before the one that is being typed, with
    global flags.

    None while that word belongs to ``plan`` itself.
    """
    parser = line.command.parser()
    position = parser.first_word(line.rest)
    begin = len(line.rest)
    if position is not None:
        begin = position
    elif "--" in line.rest:
        begin = line.rest.index("--")
    try:
        parsed = parser.parse(line.rest[:begin])
    except (FlagSyntaxError, HelpRequested):
        return None
    if begin == len(line.rest) and word.startswith("-"):
        return None
    return [*global_words(parsed.flags_set), *own_words(line.rest[begin:])]


def own_words(args: Sequence[str]) -> list[str]:
    """Return a command line without ``--`` and without the program's name."""
    words = list(args[1:] if args[:1] == ["--"] else args)
    if words[:2] == [KUBECTL, KUBEPY]:
        return words[2:]
    if words[:1] in ([KUBEPY], [KUBECTL]):
        return words[1:]
    return words


# --- the fork -------------------------------------------------------------------------------------


class Runner:
    """Makes the runs of a plan, and keeps the worst.

    :param is_silent: another process shows the runs: no remedies are sought, and nothing is said of
        progress.
    """

    def __init__(
        self,
        factory: Factory,
        planned: PlannedCommand,
        options: PlanOptions,
        policy: PlanPolicy,
        *,
        is_silent: bool = False,
    ) -> None:
        self.policy = policy
        self._factory = factory
        self._planned = planned
        self._options = options
        self._is_silent = is_silent
        self._varies = wanted_runs(options).vary
        self._is_new = factory.may_create and not factory.has_cluster
        self._cluster_of_line = cluster_of(factory)
        self._cluster = planned.base or self._cluster_of_line
        self._plan: Plan | None = None
        self._worst: RunResult | None = None
        self._has_begun = False
        factory.catch_up()

    @property
    def plan(self) -> Plan:
        """The plan that is shown."""
        assert self._plan is not None
        return self._plan

    def close(self) -> None:
        """Let go of what is kept."""
        if self._plan is not None:
            self._plan.prediction.close()
            self._plan = None

    def run_all(self, numbers: Sequence[int]) -> list[RunResult]:
        """Make the runs with these seeds. Raises SilentExit where the command fails, after what it
        says about that."""
        with ExitStack() as stack:
            workers = self._workers(stack)
            if workers is not None and len(numbers) > 1:
                results = self._run_elsewhere(numbers, workers)
            else:
                results = []
                for number in numbers:
                    self._factory.progress.show("trying", len(results) + 1, len(numbers))
                    results.append(self.run(number))
                self._factory.progress.clear()
        if self._varies and not self._is_silent:
            self._seek_remedies()
        return results

    def _workers(self, stack: ExitStack) -> plan_processes.RunWorkers | None:
        """Return those who make the runs; None: this process. Raises CliError."""
        if self._is_silent:
            return None
        if self._options.on:
            executor = daskcluster.DaskExecutor(self._options.on)
            stack.callback(executor.shutdown, cancel_futures=True)
            return plan_processes.RunWorkers(executor.workers, executor)
        given = plan_processes.executor.get()
        if given is not None:
            return plan_processes.RunWorkers(1, given)
        if self._options.jobs > 1:
            return plan_processes.RunWorkers(self._options.jobs)
        return None

    def _run_elsewhere(
        self, numbers: Sequence[int], workers: plan_processes.RunWorkers
    ) -> list[RunResult]:
        """Make the first run here, which shows what the command reads, and let workers make the
        others; then make the worst again, which is shown."""
        image = None if self._is_new else images.image_of(self._cluster_of_line)
        with files.noting_reads() as noted:
            first = self.run(numbers[0])
        case = plan_processes.case_of(self._factory, self._words_of_runs(), self.policy)
        stdin = self._planned.stdin
        if isinstance(stdin, Repeated):
            case = case._replace(stdin=stdin.text)
        if workers.executor is not None:
            case = case._replace(files=commandfiles.command_files(noted, self._planned.words))
        case = case._replace(image=image)
        others = plan_processes.make_runs(self._factory, case, numbers[1:], workers)
        results = [first, *others]
        worst = several.worst_of(results)
        if worst is not first:
            self.run(worst.seed)
        return results

    def _words_of_runs(self) -> list[str]:
        """Return the command line of a process that makes some of the runs."""
        left_out = OF_ONE_PROCESS
        if self._planned.words and not plan_revisions.is_about_revisions(self._options):
            own = ["--", *self._planned.words]
            left_out = left_out | GLOBAL_NAMES
        else:
            own = []
        flags = [
            f"--{name}={text}"
            for name, text in self._options.line.flags_set
            if name not in left_out
        ]
        return ["plan", "--seeds=0..0", *flags, *own]

    def run(self, number: int) -> RunResult:
        """Make the run with one seed."""
        if self._has_begun:
            self._planned.stdin.seek(0)
        self._has_begun = True
        settings = settings_of(self._cluster, self._options, number, varies=self._varies)
        plan = plan_of(
            self._factory,
            self._cluster,
            self._planned,
            self._options.for_,
            settings,
            with_remedies=not self._varies,
        )
        try:
            result = several.result_of(number, plan, self.policy)
        except BaseException:
            plan.prediction.close()
            raise
        if self._worst is None or result.badness > self._worst.badness:
            self.close()
            self._worst = result
            self._plan = plan
        else:
            plan.prediction.close()
        return result

    def _seek_remedies(self) -> None:
        """Try remedies for what does not finish in the plan that is shown."""
        run = runner_of_remedies(self._factory, self.plan.prediction)
        if run is not None:
            self._plan = judgement.with_remedies(self.plan, run)


def runner_of_remedies(factory: Factory, prediction: Prediction) -> Run | None:
    """Return what runs command lines on forks of the end of a prediction; None where that would
    take too long."""
    if prediction.cluster.client.count_recorded("pods") < FEW_PODS:
        return why.runner(factory)
    return None


def cluster_of(factory: Factory) -> clusters.LocalCluster:
    """Return the cluster that is asked about; a new one, elsewhere or in memory, where the command
    would make one."""
    if factory.may_create and not factory.has_cluster:
        if factory.loose_files():
            return factory.new_cluster_elsewhere()
        return openings.make_cluster("memory:")
    options = factory.options = copy(factory.options)
    options.faults, options.v, options.vmodule = "", 0, ""  # they are for the fork
    return factory.cluster


def settings_of(
    cluster: clusters.LocalCluster, options: PlanOptions, number: int, *, varies: bool
) -> dict[str, Any]:
    """Return the settings of the fork that differ from those of the cluster.

    :param number: that of the run; 0 has the cluster's own seed.
    :param varies: each run has a seed of its own.
    """
    times = {"readyAfter": options.ready_after, "stopsAfter": options.stops_after}
    present: Mapping[str, Any] = nested_map(cluster.store.settings(), "kubelet")
    settings: dict[str, Any] = {}
    if any(times.values()):
        settings["kubelet"] = {**present, **{name: text for name, text in times.items() if text}}
    if varies and (number or cluster.settings.seed is None):
        seed = cluster.settings.seed
        settings["seed"] = number if seed is None else f"{seed}-{number}"
    return settings


def plan_of(
    factory: Factory,
    cluster: clusters.LocalCluster,
    planned: PlannedCommand,
    limit: float,
    settings: Mapping[str, Any],
    *,
    with_remedies: bool,
) -> Plan:
    """Make the plan of one run."""
    touched = judgement.Touched()
    has_ended = not planned.words
    is_new = factory.may_create and not factory.has_cluster

    def act(fork: clusters.LocalCluster) -> None:
        nonlocal has_ended
        inner = ForkFactory(factory, fork, planned, touched)
        try:
            if planned.words:
                status = planned.run(inner)
                has_ended = not inner.has_given_up
                check(factory, inner, status)
            else:
                inner.use(planned.options, may_create=False)
        finally:
            if is_new:  # as the command itself would
                furnishing.add_first_node(fork.controller_client)
            planned.note(inner, cluster)

    prediction = predictions.predict(cluster, act, limit, settings, observe=touched.writes.observe)
    run = runner_of_remedies(factory, prediction) if with_remedies else None
    return judgement.make_plan(
        planned.line,
        cluster,
        prediction,
        touched,
        has_ended=has_ended,
        run=run,
    )
