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
        """Make the runs of seeds, and branches; yield their records without what only the search
        needs, each round in the order of its seeds."""
        for begin in range(0, len(seeds), ROUND):
            end = begin + ROUND
            names = [RunName(seed) for seed in seeds[begin:end]]
            branches: dict[str, RunName] = {}  # by their texts: each is made once
            for record in self._run_many(names):
                for branch in self._branches(record):
                    branches[str(branch)] = branch
                yield _slim(record)
            unique = list(branches.values())
            chosen = _spread(unique, BRANCHES)
            for record in self._run_many(chosen):
                self._note_states(record)
                yield _slim(record)

    def _branches(self, record: RunRecord) -> list[RunName]:
        """Return the branches near what is new in a run."""
        new = [seen for seen in record.seen if seen.digest not in self.states]
        self._note_states(record)
        if record.violation is not None:
            return []
        branches: list[RunName] = []
        for seen in new:
            branch = _branch(record, seen)
            if branch is not None:
                branches.append(branch)
        return branches

    def _note_states(self, record: RunRecord) -> None:
        self.states.update(seen.digest for seen in record.seen)


def _slim(record: RunRecord) -> RunRecord:
    """Return a record of which a million fit into memory: a run without a violation has no choices
    that anybody asks for."""
    choices = () if record.violation is None else record.choices
    return record._replace(seen=(), choices=choices)


def _branch(record: RunRecord, seen: Seen) -> RunName | None:
    """Return the run that does what another one did up to a state, and then is disturbed."""
    if not seen.near:
        return None
    seed = record.name.seed
    ids = Ids(seed)
    where = ids.fraction("branch", seen.digest, unseeded="")
    number = int(where * len(seen.near))
    point = seen.near[number]
    taken = record.choices[: seen.taken]
    choices = {choice.key: choice.value for choice in taken}
    key = point.key()
    if key in choices:
        return None
    purpose, *_ = point.words
    most = ALTERNATIVES[purpose]
    strength = ids.fraction("value", seen.digest, unseeded="")
    choices[key] = 1 + int(strength * most)
    return RunName(seed, choices)


def _spread(names: Sequence[RunName], most: int) -> list[RunName]:
    """Return at most so many of some names, from all parts of them."""
    count = len(names)
    if count <= most:
        return list(names)
    places = [number * count // most for number in range(most)]
    return [names[place] for place in places]
