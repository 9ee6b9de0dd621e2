"""The table of the benchmarks: its rows, their page, and how a row is compared with what was
recorded."""

from pathlib import Path

import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks.measuring import Bench, Clusters, Run, launch
from tests.benchmarks.table import FULL, ROWS, SHORT, Figure, Row, Sizes


class Measurements:
    """Values that a row gives one after the other."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def __call__(self, bench: Bench, sizes: Sizes) -> Figure:
        return Figure(self.values.pop(0))

    def compared_with(self, recorded: float, tmp_path: Path) -> tuple[dict[str, float], list[str]]:
        row = Row("work", "some work on {base_pods} pods", "Y", 1.0, self)
        return benchmarks.run(
            [row], Bench(Clusters(tmp_path), SHORT.base), SHORT, {"work": recorded}
        )


def test_page_shows_the_recorded_figures() -> None:
    text = benchmarks.PAGE.read_text()
    assert benchmarks.page_with_table(text) == text, "run `python -m tests.benchmarks --page`"


def test_every_row_of_the_short_form_is_recorded() -> None:
    recorded = benchmarks.read_recorded()
    assert set(recorded["short"]) == {row.name for row in ROWS if row.short}
    assert set(recorded.get("full", ())) <= {row.name for row in ROWS}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list that the seconds of pauses between measurements are put down in."""
    seconds: list[float] = []
    monkeypatch.setattr("time.sleep", seconds.append)
    return seconds


def test_row_that_is_a_third_worse_fails(tmp_path: Path, pauses: list[float]) -> None:
    measurements = Measurements(*[1.4, 1.5, 1.4] * (1 + len(benchmarks.PAUSES)))
    assert measurements.compared_with(1.0, tmp_path) == ({"work": 1.4}, ["work"])
    assert tuple(pauses) == benchmarks.PAUSES


def test_row_worse_while_the_machine_is_busy_is_measured_after_a_pause(
    tmp_path: Path, pauses: list[float]
) -> None:
    measurements = Measurements(1.6, 1.5, 1.6, 1.1)
    assert measurements.compared_with(1.0, tmp_path) == ({"work": 1.1}, [])
    assert pauses == [benchmarks.PAUSES[0]]


def test_row_that_is_worse_by_chance_is_measured_again(tmp_path: Path) -> None:
    assert Measurements(1.9, 1.1).compared_with(1.0, tmp_path) == ({"work": 1.1}, [])


def test_row_that_is_a_quarter_worse_is_noise(tmp_path: Path) -> None:
    measurements = Measurements(1.25, 9.0)
    assert measurements.compared_with(1.0, tmp_path)[1] == []
    assert measurements.values == [9.0], "measured again without need"


def test_alternate_gives_the_best_run_of_each_work(tmp_path: Path) -> None:
    slow, fast = [Run(3.0, 4.0), Run(2.0, 5.0)], [Run(1.0, 1.0), Run(1.5, 0.5)]
    bench = Bench(Clusters(tmp_path), FULL.base, rounds=2)
    assert bench.alternate(lambda: slow.pop(), lambda: fast.pop()) == [Run(2.0, 4.0), Run(1.0, 0.5)]


def test_launch_counts_memory_of_the_command_only() -> None:
    ballast = bytearray(64 << 20)
    assert launch("true").megabytes < 20 < len(ballast)


def test_launch_of_a_command_that_fails_raises() -> None:
    with pytest.raises(RuntimeError, match="false: exit status 1"):
        launch("false")


@pytest.mark.parametrize("sizes", [FULL, SHORT])
def test_titles_of_rows_name_the_sizes(sizes: Sizes) -> None:
    titles = [row.title(sizes) for row in ROWS]
    assert not [title for title in titles if "{" in title]
    assert f"`get pods`, {sizes.large.pods:,}" in titles
