"""The seeds of the runs of ``kubepy plan``, by its flags."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubepy.cli.errors import CliError

MAX_RUNS = 10_000


def parse_seeds(text: str) -> range:
    """Read ``A..B``, both included. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", text)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError("must be a range of seeds such as 0..99")
    return range(int(match[1]), int(match[2]) + 1)


def parse_shard(text: str) -> tuple[int, int]:
    """Read ``i/n``: the i-th of n parts. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError("must be a part such as 2/5: the second of five")
    return int(match[1]), int(match[2])


class WantedRuns(NamedTuple):
    """The flags about runs.

    :ivar runs: of ``--runs``; None: not given.
    """

    runs: int | None
    seeds: range | None
    seed: int | None
    shard: tuple[int, int] | None

    @property
    def vary(self) -> bool:
        """Whether each run has a seed of its own."""
        return self.seeds is not None or self.seed is not None or (self.runs or 1) > 1

    @property
    def is_about_several(self) -> bool:
        """Whether the runs are summed up."""
        return self.vary and self.seed is None

    def numbers(self) -> list[int]:
        """Return the seeds of the runs. Raises CliError."""
        if self.runs is not None and not 1 <= self.runs <= MAX_RUNS:
            raise CliError(f"--runs must be a number from 1 to {MAX_RUNS}")
        if self.seed is not None:
            if self.seed < 0:
                raise CliError("--seed must not be negative")
            if self.runs is not None or self.seeds is not None or self.shard is not None:
                raise CliError(
                    "--seed repeats one run: --runs, --seeds and --shard are for several"
                )
            return [self.seed]
        numbers = self.seeds if self.seeds is not None else range(self.runs or 1)
        if len(numbers) > MAX_RUNS:
            raise CliError(f"--seeds must be at most {MAX_RUNS} seeds")
        if self.runs is not None and self.runs > len(numbers):
            raise CliError(f"--runs={self.runs} are more than the {len(numbers)} --seeds")
        chosen = list(numbers[: self.runs] if self.runs is not None else numbers)
        if self.shard is not None:
            part, parts = self.shard
            chosen = chosen[part - 1 :: parts]
            if not chosen:
                raise CliError(f"--shard={part}/{parts} has no seed of {len(numbers)}")
        return chosen
