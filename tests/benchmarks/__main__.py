"""Measure kubepy, as ratios to yardsticks that are measured in the same run, with what each is to
reach beside it.

    python -m tests.benchmarks                    # the table (`make bench`)
    python -m tests.benchmarks get label-large    # these rows only; --list names them
    python -m tests.benchmarks --short            # small; exit status 1 if a row is worse than recorded by a third
    python -m tests.benchmarks --record           # and write the figures to recorded.json, with --short its own
    python -m tests.benchmarks --page             # write the recorded table to docs/cost.md

Y is the time in which libyaml (PyYAML's CSafeDumper) writes the same 1000 pods, each to a file, and
one sync. Ratios are of CPU seconds, the best of several runs that alternate with the yardstick,
which a busy machine changes little; `--wall` compares seconds instead. Every cluster is checked
with `kubepy fsck` after it was changed.
"""  # noqa: E501

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.benchmarks.measuring import Bench, Clusters
from tests.benchmarks.table import FULL, KUBECTL, ROWS, SHORT, Figure, Row, Sizes

RECORDED = Path(__file__).with_name("recorded.json")
PAGE = Path(__file__).parents[2] / "docs" / "cost.md"
BEGIN, END = "<!-- make bench -->\n", "<!-- end of make bench -->\n"
# of a row of the short form that is worse than recorded: others may have kept the machine busy
TRIES = 3
# in seconds, before rows that stay worse are measured again: a busy machine stays so for a while
PAUSES = (15.0, 30.0)


def read_recorded() -> dict[str, dict[str, float]]:
    return dict(json.loads(RECORDED.read_text())) if RECORDED.exists() else {}


def write_recorded(form: str, values: dict[str, float]) -> None:
    """Replace the values of rows that were measured."""
    recorded = read_recorded()
    values = {**recorded.get(form, {}), **values}
    recorded[form] = {row.name: values[row.name] for row in ROWS if row.name in values}
    RECORDED.write_text(json.dumps(recorded, indent=2) + "\n")


def digits(value: float) -> str:
    """Return two significant digits, more of large numbers."""
    return (
        f"{value:.0f}"
        if value >= 10
        else f"{value:.1f}"
        if value >= 1 and value * 10 % 1 == 0
        else f"{value:.2f}"
    )


def is_worse(row: Row, value: float, recorded: float | None) -> bool:
    """Decide if a value is too much worse than the recorded one; less than 0.02 of a unit is
    noise."""
    return recorded is not None and value > recorded * row.slack + 0.02


def measure(row: Row, bench: Bench, sizes: Sizes, recorded: float | None) -> Figure:
    """Measure a row, again when it is worse than recorded; return the best."""
    figure = row.measure(bench, sizes)
    for _ in range(TRIES - 1):
        if not is_worse(row, figure.value, recorded):
            break
        figure = min(figure, row.measure(bench, sizes))
    return figure


def unit_of(row: Row, sizes: Sizes) -> str:
    return row.unit.format(small_pods=sizes.small.pods, base_pods=f"{sizes.base.pods:,}")


def line(row: Row, sizes: Sizes, figure: Figure, recorded: float | None) -> str:
    """Return the line of a row as it is printed: the short form with the recorded value, the other
    with the aim."""
    value, unit = digits(figure.value), unit_of(row, sizes)
    if sizes is SHORT:
        compared = "" if recorded is None else f"recorded {digits(recorded)}"
    else:
        compared = f"aim {digits(row.aim)}" + ("" if figure.value <= row.aim else ", not yet")
    seconds = [f"{seconds:.3f} s" for seconds in (figure.seconds, figure.yardstick) if seconds]
    text = f"{row.name:16} {row.title(sizes)}".replace("`", "")
    return (
        f"{text:72} {value:>6} {unit.replace('`', ''):27} {compared:18} {' / '.join(seconds)}"
    ).rstrip()


def run(
    rows: Iterable[Row], bench: Bench, sizes: Sizes, recorded: dict[str, float]
) -> tuple[dict[str, float], list[str]]:
    """Measure and print rows; return the values and the names of those that are worse than
    recorded, in the short form after pauses, too."""
    values: dict[str, float] = {}
    remaining = [row for row in rows if can_measure(row)]
    for pause in (0.0, *PAUSES):
        if pause:
            print(f"worse: {names(remaining)}; again in {pause:.0f} seconds", flush=True)
            time.sleep(pause)
        worse = []
        for row in remaining:
            before = recorded.get(row.name)
            figure = measure(row, bench, sizes, before if sizes is SHORT else None)
            values[row.name] = float(f"{figure.value:.3g}")
            print(line(row, sizes, figure, before), flush=True)
            if is_worse(row, figure.value, before):
                worse.append(row)
        remaining = worse
        if not remaining or sizes is not SHORT:
            break
    bench.clusters.check(*bench.clusters.working.values())
    return values, [row.name for row in remaining]


def can_measure(row: Row) -> bool:
    """Decide if the program that a row is compared with is here; say so where it isn't."""
    if row.name == "start" and not KUBECTL:
        print("start: no kubectl on the PATH to compare with")
        return False
    return True


def names(rows: Iterable[Row]) -> str:
    return ", ".join(row.name for row in rows)


def markdown(recorded: dict[str, float]) -> str:
    """Return the recorded table for docs/cost.md."""
    lines = ["| work | measured | to reach |", "| --- | --- | --- |"]
    for row in ROWS:
        value = digits(recorded[row.name]) if row.name in recorded else "–"
        lines.append(f"| {row.title(FULL)} | {value} {unit_of(row, FULL)} | {digits(row.aim)} |")
    return "\n".join(lines) + "\n"


def page_with_table(text: str) -> str:
    """Return the text of docs/cost.md with the recorded table between its marks."""
    table = markdown(read_recorded().get("full", {}))
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}{table}{END}", text, flags=re.S)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="names of rows (default: all)")
    parser.add_argument("--list", action="store_true", help="list the rows, and measure nothing")
    parser.add_argument(
        "--short", action="store_true", help="small clusters, and compare with the recorded figures"
    )
    parser.add_argument("--record", action="store_true", help="write the figures to recorded.json")
    parser.add_argument(
        "--page", action="store_true", help="write the recorded table to docs/cost.md"
    )
    parser.add_argument(
        "--wall", action="store_true", help="compare seconds instead of CPU seconds"
    )
    parser.add_argument("--rounds", type=int, default=0, help="runs of each work (default 3)")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="leave the clusters in DIR for the next run"
    )
    options = parser.parse_args()
    if unknown := set(options.rows) - {row.name for row in ROWS}:
        parser.error(f"no row named {', '.join(sorted(unknown))}; --list names them")
    form, sizes = ("short", SHORT) if options.short else ("full", FULL)
    rows = [
        row
        for row in ROWS
        if row.name in (options.rows or [row.name]) and (row.short or not options.short)
    ]
    if options.page:
        PAGE.write_text(page_with_table(PAGE.read_text()))
        return 0
    if options.list:
        print("\n".join(f"{row.name:16} {row.title(sizes)}" for row in rows))
        return 0
    recorded = read_recorded().get(form, {})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the clusters are removed
    with tempfile.TemporaryDirectory(prefix="kubepy-bench-") as folder:
        clusters = Clusters(Path(folder), options.keep)
        bench = Bench(clusters, sizes.base, options.rounds or 3, "wall" if options.wall else "cpu")
        values, worse = run(rows, bench, sizes, {} if options.record else recorded)
    if options.record:
        write_recorded(form, values)
    if worse:
        print(
            f"worse than recorded by more than a third: {', '.join(worse)}. If that is meant: "
            f"--record"
        )
    return 1 if worse and options.short else 0


if __name__ == "__main__":
    sys.exit(main())
