"""The search: which runs are made, round after round.

A round is ROUND seeds. When all of its runs are over, further ones are made near what was new in
them: *branches*, which take the choices of a run up to a state that no run before had seen, and one
more choice right behind it. Rounds are judged in the order of their seeds, so that nothing depends
on which process has made a run, or when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kubepy.api.clock import Ids
from kubepy.controlplane.disturbance import ALTERNATIVES
from kubepy.fuzz.run import RunRecord, Seen
from kubepy.runtime.oracle import RunName

ROUND = 256
BRANCHES = 64  # at most, after each round
RunMany = Callable[[Sequence[RunName]], Iterable[RunRecord]]


class Search:
    """The search over seeds.

    :param run_many: makes runs, and returns their records in the order of their names.
    :ivar states: the digests of all states that were seen.
    """

    def __init__(self, run_many: RunMany) -> None:
        self._run_many = run_many
        self.states: set[int] = set()

    def go(self, seeds: Sequence[int]) -> Iterator[RunRecord]:
        """Make the runs of seeds, and branches; yield their records, each round in the order of its
        seeds."""
        for begin in range(0, len(seeds), ROUND):
            names = [RunName(seed) for seed in seeds[begin : begin + ROUND]]
            branches: list[RunName] = []
            for record in self._run_many(names):
                branches += self._branches(record)
                yield record
            chosen = list(dict.fromkeys(map(str, branches)))
            by_text = {str(name): name for name in branches}
            for record in self._run_many([by_text[text] for text in _spread(chosen, BRANCHES)]):
                self.states.update(seen.digest for seen in record.seen)
                yield record

    def _branches(self, record: RunRecord) -> list[RunName]:
        """Return the branches near what is new in a run."""
        new = [seen for seen in record.seen if seen.digest not in self.states]
        self.states.update(seen.digest for seen in record.seen)
        if record.violation is not None:
            return []
        return [branch for seen in new if (branch := _branch(record, seen)) is not None]


def _branch(record: RunRecord, seen: Seen) -> RunName | None:
    """Return the run that does what another one did up to a state, and then is disturbed."""
    if not seen.near:
        return None
    ids = Ids(record.name.seed)
    number = int(ids.fraction("branch", seen.digest, unseeded="") * len(seen.near))
    point = seen.near[number]
    choices = {choice.key: choice.value for choice in record.choices[: seen.taken]}
    key = point.key()
    if key in choices:
        return None
    most = ALTERNATIVES[point.words[0]]
    value = 1 + int(ids.fraction("value", seen.digest, unseeded="") * most)
    return RunName(record.name.seed, {**choices, key: value})


def _spread(items: Sequence[str], most: int) -> list[str]:
    """Return at most so many of some items, from all parts of them."""
    if len(items) <= most:
        return list(items)
    return [items[number * len(items) // most] for number in range(most)]
