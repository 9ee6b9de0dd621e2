"""Several runs of one plan, each with a seed of its own.

How their times spread, which of them fail, and which is the worst.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_duration
from kubepy.insight.harm import Harm, harm_document
from kubepy.insight.plans import Plan
from kubepy.insight.policy import (
    DOES_NOT_FINISH,
    PlanPolicy,
    counting_harm,
    status_of_plan,
    violations_of,
)
from kubepy.storage import Key

# The cause of a run whose command waits for something that never comes.
WAITS = "command-waits"


class WorkloadResult(NamedTuple):
    """A workload in one run.

    :ivar finished_after: seconds; None: it does not finish.
    :ivar lowest: the fewest available pods.
    """

    key: Key
    finished_after: float | None
    lowest: int


class RunResult(NamedTuple):
    """What is kept of one run.

    :ivar seed: its number; 0 is the run with the cluster's own seed.
    :ivar status: the exit status that it would have alone.
    :ivar cause: why it fails: a cause of ``why``, a kind of harm or a condition; "" if it does not.
    """

    seed: int
    finishes: bool
    finished_after: float
    workloads: tuple[WorkloadResult, ...]
    harm: tuple[Harm, ...]
    status: int
    cause: str

    @property
    def badness(self) -> tuple[bool, bool, int, float]:
        """Sort runs, the worst last: those that do not finish, those that fail, those with more
        harm, those that take longer."""
        return not self.finishes, self.status != 0, len(self.harm), self.finished_after


def result_of(seed: int, plan: Plan, policy: PlanPolicy) -> RunResult:
    """Return what is kept of a run. Raises FolderError for a condition that cannot be evaluated."""
    violations = violations_of(policy, plan)
    status = status_of_plan(policy, plan, violations)
    cause = ""
    if status == DOES_NOT_FINISH:
        never = [workload.why for workload in plan.workloads if workload.why is not None]
        cause = never[0].cause if never else WAITS
    elif status:
        counting = counting_harm(policy, plan)
        cause = counting[0].kind if counting else violations[0].condition
    return RunResult(
        seed,
        plan.finishes,
        plan.finished_after,
        tuple(
            WorkloadResult(workload.key, workload.finished_after, workload.lowest.numbers.available)
            for workload in plan.workloads
        ),
        plan.harm,
        status,
        cause,
    )


def worst_of(results: Sequence[RunResult]) -> RunResult:
    """Return the worst of some runs, the first of several."""
    return max(results, key=lambda result: result.badness)


class Spread(NamedTuple):
    """A number over several runs."""

    median: float
    percentile_95: float


def spread(values: Sequence[float]) -> Spread | None:
    """Return the median of values, and the smallest of them that 95 % do not exceed; None for no
    values."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(values)
    return Spread(
        (ordered[(count - 1) // 2] + ordered[count // 2]) / 2, ordered[math.ceil(0.95 * count) - 1]
    )


class WorkloadRuns(NamedTuple):
    """A workload in several runs of a plan.

    :ivar finished: in how many it finishes; ``after``: how long it takes in those, None where it
        never does.
    :ivar lowest: the fewest available pods of all runs.
    """

    key: Key
    finished: int
    after: Spread | None
    lowest: int


class Runs(NamedTuple):
    """Several runs of one plan, each with a seed of its own.

    :ivar finished: how many finish; ``after``: how long those take, None where none does.
    :ivar failed: those that make the plan fail.
    :ivar worst: the seed of the run that is shown.
    """

    runs: int
    finished: int
    after: Spread | None
    workloads: tuple[WorkloadRuns, ...]
    failed: tuple[RunResult, ...]
    worst: int


def summarise(results: Sequence[RunResult]) -> Runs:
    """Return the distribution of several runs of a plan."""
    workloads = []
    keys = dict.fromkeys(workload.key for result in results for workload in result.workloads)
    for key in keys:
        same = [
            workload for result in results for workload in result.workloads if workload.key == key
        ]
        times = [
            workload.finished_after for workload in same if workload.finished_after is not None
        ]
        lowest = min(workload.lowest for workload in same)
        workloads.append(WorkloadRuns(key, len(times), spread(times), lowest))
    finished = [result.finished_after for result in results if result.finishes]
    return Runs(
        len(results),
        len(finished),
        spread(finished),
        tuple(workloads),
        tuple(result for result in results if result.status),
        worst_of(results).seed,
    )


def runs_document(runs: Runs) -> Object:
    """Return the distribution of several runs as JSON data."""

    def described(after: Spread | None) -> Object | None:
        return after and {
            "median": format_duration(after.median),
            "p95": format_duration(after.percentile_95),
        }

    return {
        "count": runs.runs,
        "finished": runs.finished,
        "failed": [
            {
                "seed": result.seed,
                "cause": result.cause,
                "harm": [harm_document(harm) for harm in result.harm],
            }
            for result in runs.failed
        ],
        "worst": runs.worst,
        "finishedAfter": described(runs.after),
        "workloads": [
            {
                **workload.key._asdict(),
                "finished": workload.finished,
                "finishedAfter": described(workload.after),
                "minAvailable": workload.lowest,
            }
            for workload in runs.workloads
        ],
    }
