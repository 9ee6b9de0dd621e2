"""How workloads stood against their bounds, and that all formats of a timeline say the same of
it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from io import StringIO
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from kubepy.api.meta import name_of
from kubepy.cli.timeline_text import TimelineText
from kubepy.insight import Bounds, Course, Numbers, Timeline
from kubepy.insight.availability import JOBS, extremes, judge
from kubepy.insight.picture.html import render_html
from kubepy.insight.picture.svg import render_svg
from kubepy.insight.picture.trace import render_trace
from kubepy.insight.timeline import read_timeline, timeline_document
from kubepy.storage import Key
from tests.insight import rollouts, timelines
from tests.insight.histories import history

WEB = Key("deployments.apps", "default", "web")
PACE = {"kubelet": {"readyAfter": "5s", "stopsAfter": "2s"}}


# --- what one course says


def course(*moments: tuple[int, int, int | None], pods: tuple[int, ...] = ()) -> Course:
    """Return a course of (desired, available, least available of the bounds) after each step."""
    numbers = [
        Numbers(desired, pods[step] if pods else available, available, available)
        for step, (desired, available, _) in enumerate(moments)
    ]
    return Course(
        WEB,
        tuple(enumerate(numbers)),
        tuple((step, Bounds(least, None, 1)) for step, (*_, least) in enumerate(moments)),
    )


def worst(course: Course) -> tuple[int, int, int | None]:
    """Return lowest availability, how many were desired then, and how many required."""
    lowest = extremes(judge(course)).lowest
    return lowest.numbers.available, lowest.numbers.desired, lowest.required


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([(3, 3, 2), (3, 2, 2), (3, 3, 2)], (2, 3, 2)),
        ([(5, 5, 4), (5, 2, 4), (2, 2, 2)], (2, 5, 4)),  # made smaller afterwards
        ([(5, 5, 4), (5, 2, 4), (8, 2, 6), (8, 8, 6)], (2, 5, 4)),  # made larger during a shortage
        ([(3, 3, 2), (5, 3, 4), (5, 4, 4), (5, 5, 4)], (3, 3, 2)),  # coming up to a larger size
        ([(3, 3, 2), (5, 3, 4), (5, 1, 4), (5, 5, 4)], (1, 5, 2)),  # meanwhile it loses what it had
        ([(0, 0, 0), (4, 0, 3), (4, 3, 3), (4, 4, 3)], (4, 4, 3)),  # made, and only coming up
        ([(0, 0, 0), (4, 0, 3), (4, 3, 3), (4, 4, 3), (4, 2, 3), (4, 4, 3)], (2, 4, 3)),
        ([(0, 0, 0), (4, 0, 3), (4, 1, 3), (4, 2, 3)], (2, 4, None)),  # it never came up
        ([(0, 0, 0), (4, 0, 0), (4, 3, 0), (4, 4, 0)], (4, 4, 0)),  # all may be away
        (
            [(2, 2, 2), (2, 2, None), (2, 1, None), (2, 2, 2)],
            (1, 2, None),
        ),  # evicted, without a budget
        ([(3, 3, 2), (0, 3, 0), (0, 0, 0)], (3, 3, 2)),
        ([(3, 1, 2), (3, 3, 2)], (1, 3, 2)),  # fewer than required from the beginning
    ],
)
def test_lowest_is_worst_moment_against_bound_of_that_moment(
    moments: list[tuple[int, int, int | None]], expected: tuple[int, int, int | None]
) -> None:
    assert worst(course(*moments)) == expected


def test_workload_that_is_deleted_is_not_judged() -> None:
    numbers = tuple(
        (step, Numbers(3, available, available, available))
        for step, available in enumerate((3, 2, 1, 0))
    )
    leaving = Course(WEB, numbers, ((0, Bounds(2, 1, 0)), (1, Bounds(is_leaving=True))))
    assert worst(leaving) == (3, 3, 2)
    assert extremes(judge(leaving)).most_unavailable == 0


def test_surge_is_not_what_is_too_much_after_scaling_down() -> None:
    shrunk = course((5, 5, 4), (2, 5, 2), (2, 3, 2), (2, 2, 2), pods=(5, 5, 3, 2))
    assert extremes(judge(shrunk)).most_surge == 0
    assert extremes(judge(course((3, 3, 3), (3, 3, 3), pods=(3, 5)))).most_surge == 2


# --- what the formats say


class Cells(HTMLParser):
    """The rows of the table of workloads, and the description of the picture."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows, self.description, self.data = list[list[str]](), "", ""
        self._target = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._target = values.get("id") or self._target
        if values.get("id") == "drawing":
            self.description = values["aria-label"] or ""
        if self._target == "workloads" and tag == "tr":
            self.rows.append([])
        if self._target == "workloads" and tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._target == "workloads" and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()
        if self._target == "data":
            self.data, self._target = data, ""


def worst_in_json(workload: Any) -> tuple[Any, ...]:
    bounds = workload["bounds"]
    return workload["minAvailable"], bounds["desired"], bounds["minAvailable"], bounds["budget"]


def lacks(workload: Any) -> bool:
    return any(
        entry["required"] is not None and entry["available"] < entry["required"]
        for entry in workload["numbers"]
    )


def blocks_of_text(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Yield each workload's name and its part of the text."""
    for block in "\n".join(TimelineText(StringIO(), timeline).lines()).split("\n\n"):
        head, _, rest = block.partition("\n")
        if match := re.fullmatch(r"(\S+/\S+) in (\S+)", head):
            yield f"{match[2]}/{match[1]}", rest


FACTS = re.compile(
    r"lowest\s+available\s+(\d+)(?:\s+of\s+(\d+))?(?:\s+\(allowed\s+(\d+)\s+by\s+"
    r"(?:maxUnavailable|budget\s+(\S+))\))?"
)
SURGE = re.compile(r"most\s+surge\s+(\d+)")
SUMMARY = re.compile(
    r"(?:at least (\d+) of (\d+) available(?: \((\d+) required(?: by budget (\S+))?\))?; )?"
    r"(\d+) of (\d+) available at the end, (\d+) updated"
)


def order_of(workload: Any) -> tuple[str, str, str]:
    return workload["resource"], workload["namespace"], workload["name"]


def compare_formats(timeline: Timeline) -> None:
    """Compare what text, svg, html and trace say with what the JSON has."""
    document = timeline_document(timeline)
    workloads = {
        f"{entry['namespace']}/{entry['resource']}/{entry['name']}": entry
        for entry in document["workloads"]
        if entry["numbers"]
    }
    for name, block in blocks_of_text(timeline):
        if (workload := workloads.get(name)) and workload["resource"] not in JOBS:
            available, desired, required, budget = worst_in_json(workload)
            sizes = {
                entry["desired"]
                for entry in workload["numbers"]
                if entry["desired"] or entry["pods"]
            }
            facts = FACTS.search(block)
            last = re.search(r"available\s+(\d+),\s+has\s+not\s+come\s+up", block)
            assert (facts is None) != (last is None), name
            assert last is None or (int(last[1]), required) == (available, None), name
            assert facts is None or facts.groups() == (
                str(available),
                str(desired) if len(sizes) > 1 else None,
                None if required is None else str(required),
                budget or None,
            ), name
            assert ("too few" in block) == lacks(workload), (name, block)
            surge = SURGE.search(block)
            assert int(surge[1] if surge else 0) == workload["maxSurge"], name
    page, svg = Cells(render_html(timeline)), render_svg(timeline)
    described = re.search(r"<desc[^>]*>(.*)</desc>", svg)
    assert described
    assert described[1] == page.description
    assert ('class="low"' in svg) == any(map(lacks, workloads.values()))
    for name, workload in workloads.items():
        namespace, _, rest = name.partition("/")
        if workload["resource"] not in JOBS:
            summary = SUMMARY.search(page.description.partition(f" {rest} in {namespace}: ")[2])
            assert summary
            available, desired, required, budget = worst_in_json(workload)
            if summary[1]:
                assert summary.groups()[:4] == (
                    str(available),
                    str(desired),
                    None if required is None else str(required),
                    budget or None,
                ), name
            last = workload["numbers"][-1]
            assert summary.groups()[4:] == tuple(
                str(last[field]) for field in ("available", "desired", "updated")
            )
        required = workload["bounds"]["minAvailable"]
        assert [
            rest,
            namespace,
            *(str(workload[field]) for field in ("desired", "minAvailable")),
            "" if required is None else str(required),
            *(str(workload[field]) for field in ("maxUnavailable", "maxSurge", "updated")),
        ] in page.rows, name
    counters = [
        event["args"]
        for event in json.loads(render_trace(timeline))["traceEvents"]
        if event["ph"] == "C"
    ]
    assert counters == [
        {
            field: entry[field]
            for field in ("available", "unavailable", "surge", "required")
            if entry[field] is not None
        }
        for name in sorted(workloads, key=lambda name: order_of(workloads[name]))
        for entry in workloads[name]["numbers"]
    ]
    fields = ("step", "desired", "pods", "ready", "available", "updated")
    for name, namespace, _, _, changes, order in json.loads(page.data)["courses"]:
        rows = list(
            accumulate(
                (changes[place] for place in order),
                lambda before, change: [a + b for a, b in zip(before, change, strict=True)],
            )
        )
        assert [[*row[:6], None if row[7] < 0 else row[7]] for row in rows] == [
            [*(entry[field] for field in fields), entry["required"]]
            for entry in workloads[f"{namespace}/{name}"]["numbers"]
        ]


@pytest.mark.parametrize("make", timelines.ALL.values(), ids=timelines.ALL)
def test_formats_agree_on_timeline_made_by_hand(make: Any) -> None:
    compare_formats(make())


@pytest.mark.parametrize("number", range(16))
def test_formats_agree_on_generated_scene(number: int) -> None:
    scenario = rollouts.scenario(300 + number)
    cluster = scenario.cluster()
    if scenario.command:
        cluster.run(scenario.command, stdin=scenario.stdin)
    cluster.settle("30m")
    with cluster._open() as local:
        compare_formats(read_timeline(local))
        compare_formats(read_timeline(local, timelines.START.replace(second=20)))


@pytest.mark.parametrize("seed", range(40, 46))
def test_formats_agree_on_random_history(seed: int) -> None:
    cluster = Cluster.temporary(nodes=3, seed=seed)
    for command, stdin, waits in history(seed)[1]:
        cluster.run(command, stdin=stdin)
        for seconds in waits:
            cluster.advance(seconds)
    with cluster._open() as local:
        compare_formats(read_timeline(local))


# --- whole scenes


def play(*commands: str, since: str = "") -> Any:
    """Play commands in a cluster with a Deployment of five pods; return its part of the JSON."""
    cluster = Cluster.temporary(nodes=3, seed=7, settings=PACE)
    for command in ("create deployment web --image=web:1 --replicas=5", *commands):
        if command.startswith("advance"):
            cluster.advance(command.split()[1])
        else:
            cluster.run(
                command.replace("SOME", "--field-selector=spec.nodeName=node-1"), check=True
            )
            cluster.settle()
    with cluster._open() as local:
        timeline = read_timeline(local)
        compare_formats(timeline)
    return next(
        entry for entry in timeline_document(timeline)["workloads"] if entry["name"] == "web"
    )


LOSS = "delete pods -l app=web SOME --wait=false"


@pytest.mark.parametrize(
    "later", [[], ["scale deploy web --replicas=2"], ["scale deploy web --replicas=8"]]
)
def test_shortage_stays_as_it_was_when_workload_is_scaled_later(later: list[str]) -> None:
    workload = play("advance 1m", LOSS, "advance 1m", *later, "advance 1m")
    assert worst_in_json(workload) == (3, 5, 4, "")
    assert lacks(workload)


def test_scaling_up_is_no_shortage() -> None:
    workload = play("advance 1m", "scale deploy web --replicas=7", "advance 1m")
    assert worst_in_json(workload) == (5, 5, 4, "")
    assert not lacks(workload)


def test_workload_that_only_comes_up_has_all_its_pods_as_lowest() -> None:
    assert worst_in_json(play("advance 1m"))[:2] == (5, 5)


def test_eviction_without_budget_has_no_bound_in_any_format() -> None:
    workload = play("advance 1m", "drain node-1", "uncordon node-1", "advance 1m")
    assert worst_in_json(workload)[1:] == (5, None, "")
    assert workload["minAvailable"] < 5
    assert not lacks(workload)
    assert workload["numbers"][-1]["required"] == 4


def test_since_changes_nothing_of_what_was_required() -> None:
    cluster = Cluster.temporary(
        nodes=3, seed=7, settings={"kubelet": {"readyAfter": "5s..20s", "stopsAfter": "2s"}}
    )
    commands = (
        "create deployment web --image=web:1 --replicas=5",
        LOSS,
        "scale deploy web --replicas=8",
        LOSS,
        "scale deploy web --replicas=3",
        "set image deploy/web web=web:2",
        "drain node-2 --timeout=1s",
    )
    for command in commands:
        cluster.run(command.replace("SOME", "--field-selector=spec.nodeName=node-1"))
        cluster.advance("30s" if command == LOSS else "11s")
    with cluster._open() as local:
        whole = read_timeline(local)
        expected = {moment.step: moment.required for moment in judge(whole.courses[-1])}
        times = sorted({step.at for step in whole.steps})
        for since in times[::3]:
            part = read_timeline(local, since)
            compare_formats(part)
            skipped = len(whole.steps) - len(part.steps)
            for moment in [
                entry for course in part.courses if course.key == WEB for entry in judge(course)
            ][1:]:
                if moment.step + skipped in expected:
                    assert moment.required == expected[moment.step + skipped], (since, moment)
    assert len(times) > 20


def test_budget_made_later_bounds_the_replica_set_that_is_asked_about() -> None:
    cluster = Cluster.temporary(nodes=3, seed=7, settings=PACE)
    cluster.run("create deployment web --image=web:1 --replicas=5", check=True)
    cluster.advance("1m")
    with cluster._open() as local:
        since = local.clock.now()
    cluster.advance("1s")
    cluster.run("create pdb web --selector=app=web --min-available=3", check=True)
    with cluster._open() as local:
        [replica_set] = local.client.list("replicasets.apps").items
        [course] = read_timeline(
            local, since, subject=Key("replicasets.apps", "default", name_of(replica_set))
        ).courses
    assert course.bounds[-1][1].budget == "web"


@pytest.mark.parametrize("cascade", ["orphan", "background", "foreground"])
def test_deletion_is_no_shortage(cascade: str) -> None:
    workload = play("advance 1m", f"delete deploy web --cascade={cascade}", "advance 1m")
    assert worst_in_json(workload) == (5, 5, 4, "")
    assert (workload["maxUnavailable"], workload["maxSurge"], lacks(workload)) == (0, 0, False)


@pytest.mark.parametrize("clock", ["2026-01-01T00:00:00Z", None])
def test_checkout_of_another_commit_is_one_change(clock: str | None, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            [
                "git",
                "-C",
                str(tmp_path / "state"),
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b.c",
                *words,
            ],
            check=True,
            capture_output=True,
        )

    with Cluster.create(tmp_path / "state", nodes=2, seed=7, clock=clock) as cluster:
        git("init", "-q")
        for command in (
            "create deployment web --image=web:1 --replicas=3",
            "set image deploy/web web=web:2",
        ):
            cluster.run(command, check=True)
            cluster.settle()
            git("add", "-A")
            git("commit", "-qm", command)
        cluster.run("get pods", check=True)
        git("checkout", "-q", "-f", "HEAD~1")
        cluster.run("get pods", check=True)
        git("checkout", "-q", "-f", "-")
        cluster.run("get pods", check=True)
        with cluster._open() as local:
            timeline = read_timeline(local, subject=WEB)
        compare_formats(timeline)
    [workload] = timeline_document(timeline)["workloads"]
    outside = {step.at for step in timeline.steps if "from outside" in step.reason}
    assert len(outside) == 1 or not clock  # two checkouts of the same moment are one change
    assert (worst_in_json(workload)[:2], workload["maxSurge"], lacks(workload)) == (
        (3, 3),
        1,
        False,
    )
