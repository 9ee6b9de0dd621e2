"""The pictures of timelines that are made by hand."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from itertools import pairwise

import pytest

from kubepy import Cluster
from kubepy.insight import Step, Timeline
from kubepy.insight.picture import AVAILABLE, READY, STARTING, TERMINATING, bars_of
from kubepy.insight.picture.html import render_html
from kubepy.insight.picture.scale import Scale, shortest_break
from kubepy.insight.picture.svg import COLOURS, Drawing, lanes_of, render_svg, revision_classes
from kubepy.insight.picture.trace import render_trace
from kubepy.insight.timeline import read_timeline
from kubepy.storage import Key
from tests.insight import rollouts, timelines

CASES = pytest.mark.parametrize("make", timelines.ALL.values(), ids=timelines.ALL)


# --- bars


def test_bars_of_rolling_daemonset_link_each_pod_to_that_on_its_node() -> None:
    bars = bars_of(timelines.rolling_daemonset(3))
    assert {bar.key.name: bar.successor.key.name for bar in bars if bar.successor} == {
        "agent-a1": "agent-b1",
        "agent-a2": "agent-b2",
        "agent-a3": "agent-b3",
    }
    assert [state for _, state in bars[0].states] == [AVAILABLE, TERMINATING]


@pytest.mark.parametrize("seconds", [0, 5])
def test_bars_of_deployment_with_surge_link_in_order(seconds: float) -> None:
    bars = bars_of(timelines.rolling_deployment(3, seconds))
    assert [(bar.key.name[-4:], bar.successor.key.name[-4:]) for bar in bars if bar.successor] == [
        ("0000", "0000"),
        ("0001", "0001"),
        ("0002", "0002"),
    ]
    assert {bar.workload for bar in bars} == {Key("deployments.apps", "default", "web")}


def test_bars_of_statefulset_pod_of_same_name_is_another_bar() -> None:
    bars = bars_of(timelines.stateful())
    assert [(bar.key.name, bar.start < 0) for bar in bars] == [
        ("db-2", True),
        ("db-1", True),
        ("db-0", True),
        ("db-2", False),
        ("db-1", False),
        ("db-0", False),
    ]
    assert all(bar.successor and bar.successor.key == bar.key for bar in bars[:3])


def test_bars_of_scaled_workload_have_no_successors() -> None:
    script = timelines.Script()
    web = timelines.Workload(
        script, "replicasets.apps", "web", 2, there=[("web-1", "node-1"), ("web-2", "node-2")]
    )
    web.desired = 1
    web.own("scaled", "2 to 1")
    web.pod("web-2", "terminating", "deleted")
    script.wait(9)
    web.desired = 2
    web.own("scaled", "1 to 2")
    web.pod("web-3", "created")
    assert [bar.successor for bar in bars_of(script.timeline())] == [None, None]


def test_bars_of_job_link_failed_pod_to_next_attempt_only() -> None:
    bars = bars_of(timelines.jobs())
    assert [bar.key.name for bar in bars if bar.successor] == ["report-29454482-x0"]


def test_bars_pod_that_becomes_unready_starts_again() -> None:
    bars = {bar.key.name: bar for bar in bars_of(timelines.crash_loop())}
    assert [state for _, state in bars["agent-a2"].states] == [AVAILABLE, STARTING, TERMINATING]


@pytest.mark.parametrize("number", range(8))
def test_bars_have_the_states_that_the_numbers_count(number: int) -> None:
    scenario = rollouts.scenario(number)
    cluster = scenario.cluster()
    if scenario.command:
        cluster.run(scenario.command, stdin=scenario.stdin)
    cluster.settle("30m")
    with cluster._open() as local:
        timeline = read_timeline(local)
    bars = bars_of(timeline)
    assert timeline.courses
    for course in timeline.courses:
        for after, numbers in course.numbers:
            states = Counter(
                max((place, state) for place, state in bar.states if place < after)[1]
                for bar in bars
                if bar.workload == course.key and bar.start < after <= bar.end
            )
            assert (states[AVAILABLE], states[READY] + states[AVAILABLE], states[TERMINATING]) == (
                numbers.available,
                numbers.ready,
                numbers.terminating,
            ), (course.key, after)


def test_pods_that_nothing_happened_to_are_drawn_with_those_of_their_workload() -> None:
    cluster = Cluster.temporary(nodes=3, seed=1)
    cluster.run("create deployment web --image=web:1 --replicas=3", check=True)
    cluster.run("create deployment other --image=other:1", check=True)
    cluster.settle()
    cluster.advance("1h")
    cluster.run("scale deployment web --replicas=4", check=True)
    cluster.settle()
    with cluster._open() as local:
        timeline = read_timeline(local, local.clock.now())
    drawing = Drawing(timeline)
    assert [(len(bar.key.name), bar.start, bar.states) for bar in drawing.bars if bar.last < 0] == [
        (19, -1, [(-1, AVAILABLE)])
    ] * 3
    assert {bar.workload.name for bar in drawing.bars} == {"web"}
    assert {bar.node for bar in drawing.bars} == {"node-1", "node-2", "node-3"}
    crowd = tuple(
        pod._replace(key=Key("pods", "default", f"web-{number}"))
        for number, pod in enumerate(timeline.present[-1:] * 101)
    )
    left_out = timeline._replace(present=crowd)
    assert len(Drawing(left_out).bars) == 1
    assert ", without 101 pods that stayed as they were" in render_svg(left_out)


# --- the time axis


@CASES
def test_scale_steps_stand_in_their_order_within_the_width(make) -> None:
    timeline = make()
    scale = Scale(timeline, 1000)
    places = [scale.x(number) for number in range(-1, len(timeline.steps) + 1)]
    assert places == sorted(set(places))
    assert (places[0], places[-1]) == (0, 1000)


def test_scale_moment_without_length_takes_most_of_the_width() -> None:
    timeline = timelines.rolling_deployment(seconds=0)
    scale = Scale(timeline, 1000)
    assert scale.x(len(timeline.steps) - 1) - scale.x(0) > 800


def test_scale_day_with_minutes_of_action_cuts_the_gaps_short() -> None:
    scale = Scale(timelines.jobs(), 1000)
    assert [gap.text for gap in scale.gaps] == ["6h0m0s"] * 4
    assert sum(gap.width for gap in scale.gaps) < 500


def test_scale_steps_of_the_systems_time_that_are_near_are_one_moment() -> None:
    script = timelines.Script()
    for number in range(40):
        script.step("created", Key("pods", "default", f"web-{number}"))
        script.wait(0.0001 if number % 10 else 2)
    scale = Scale(script.timeline(), 1000)
    assert [(moment.steps, moment.after) for moment in scale.moments] == [
        (1, "0s"),
        (10, "2s"),
        (10, "4s"),
        (10, "6s"),
        (9, "8s"),
    ]


def test_bars_pod_of_unknown_workload_is_not_its_own_successor() -> None:
    steps = [
        Step(
            timelines.START, action, Key("pods", "default", f"web-{number}"), "replicasets.apps/web"
        )
        for number in range(2)
        for action in ("created", "terminating", "deleted")
    ]
    bars = bars_of(Timeline(timelines.START, timelines.START, tuple(steps), ()))
    assert [bar.successor.key.name if bar.successor else "" for bar in bars] == ["web-1", ""]


@pytest.mark.parametrize(
    ("seconds", "shortest"),
    [
        ([], None),
        ([5, 5, 5], None),
        ([10, 20, 40, 80, 160, 300, 300], None),
        ([2, 3, 43200, 5], 43200),
        ([0.001, 4, 4, 4, 4], None),
        ([30, 30, 30, 3600, 86400], 3600),
        ([5, 36000], 36000),
    ],
)
def test_shortest_break_is_far_longer_than_the_rest(
    seconds: list[float], shortest: float | None
) -> None:
    assert shortest_break(seconds) == shortest


# --- svg


@CASES
def test_render_svg_is_valid_xml_with_title_and_description(make) -> None:
    root = ElementTree.fromstring(render_svg(make()))
    assert (root[0].tag, root[1].tag) == (
        "{http://www.w3.org/2000/svg}title",
        "{http://www.w3.org/2000/svg}desc",
    )
    assert root[0].text.startswith("Timeline: 2026-01-01T00:00:00Z to 2026-01-")


@CASES
@pytest.mark.parametrize("render", [render_svg, render_html, render_trace])
def test_render_same_timeline_same_bytes(make, render) -> None:
    assert render(make()) == render(make())


def test_render_svg_without_steps_is_an_empty_picture() -> None:
    timeline = Timeline(timelines.START, timelines.START, (), ())
    ElementTree.fromstring(render_svg(timeline))
    assert "0 steps" in render_html(timeline)
    assert json.loads(render_trace(timeline))["traceEvents"] == []


HOSTILE = '</script><img src=x onerror="alert(1)">&\x00]]>'


@pytest.mark.parametrize("render", [render_svg, render_html])
def test_render_names_from_outside_are_escaped(render) -> None:
    step = Step(
        timelines.START,
        "created",
        Key("pods", HOSTILE, HOSTILE),
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
    )
    text = render(Timeline(timelines.START, timelines.START, (step,), ()))
    assert "<img" not in text
    assert "\x00" not in text
    assert text.count("</script>") == (2 if render is render_html else 0)


def test_lanes_pod_follows_its_predecessor_in_the_same_row() -> None:
    lanes = lanes_of(Drawing(timelines.rolling_daemonset(12)))
    assert list(lanes) == [f"node-{n}" for n in range(1, 13)]
    assert [[bar.key.name for bar in row] for row in lanes["node-2"]] == [["agent-a2", "agent-b2"]]


def test_revision_classes_older_first_and_none_for_pods_without() -> None:
    drawing = Drawing(timelines.rolling_deployment())
    assert list(revision_classes(drawing.bars, drawing.workloads).values()) == ["r0", "r1"]
    assert revision_classes(bars_of(timelines.jobs()), Drawing(timelines.jobs()).workloads) == {}


def linear(colour: str) -> list[float]:
    values = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values
    ]


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_of_wcag_aa(theme: int) -> None:
    colours = {name: pair[theme] for name, pair in COLOURS.items()}
    revisions = [colours[f"r{n}"] for n in range(8)] + [colours["none"]]
    assert min(contrast(colours["inbar"], revision) for revision in revisions) >= 4.5
    assert (
        min(
            contrast(colours[text], colours[ground])
            for text in ("text", "faint", "fail")
            for ground in ("ground", "stripe")
        )
        >= 4.5
    )
    assert min(contrast(colours[line], colours["ground"]) for line in ("bound", "none")) >= 3


# Machado, Oliveira, Fernandes 2009: what linear red, green and blue are to eyes without one of the
# cones
BLIND_TO = {
    "red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def as_seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """Return a colour in CIELAB, as eyes see it."""
    red, green, blue = (
        sum(part * value for part, value in zip(row, linear(colour), strict=True)) for row in matrix
    )
    x = 0.4339 * red + 0.3763 * green + 0.1899 * blue
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = 0.0177 * red + 0.1095 * green + 0.8728 * blue
    x, y, z = (
        max(value, 0) ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (x, y, z)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("eyes", BLIND_TO)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_of_revisions_that_follow_each_other_differ_for_all_eyes(
    theme: int, eyes: str
) -> None:
    seen = [as_seen(COLOURS[f"r{n}"][theme], BLIND_TO[eyes]) for n in range(8)]
    assert min(math.dist(before, after) for before, after in pairwise(seen)) > 15


# --- sizes


@pytest.mark.parametrize(
    "make", [lambda: timelines.large(1000), lambda: timelines.rolling_daemonset(1000)]
)
def test_render_html_thousand_replaced_pods_take_at_most_500_kilobytes(make) -> None:
    timeline = make()
    assert len(bars_of(timeline)) == 2000
    assert len(render_html(timeline).encode()) <= 500_000


# --- trace


@CASES
def test_render_trace_pods_are_threads_of_their_nodes(make) -> None:
    timeline = make()
    events = json.loads(render_trace(timeline))["traceEvents"]
    processes = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    pods = [event for event in events if event.get("cat") == "pod"]
    assert {(event["name"], processes[event["pid"]]) for event in pods} == {
        (bar.key.name, f"node {bar.node}") for bar in bars_of(timeline)
    }
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_render_trace_counters_have_the_numbers_of_the_course() -> None:
    timeline = timelines.rolling_daemonset(2, 5)
    counters = [
        event for event in json.loads(render_trace(timeline))["traceEvents"] if event["ph"] == "C"
    ]
    assert [event["args"]["available"] for event in counters] == [
        numbers.available for _, numbers in timeline.courses[0].numbers
    ]
    assert counters[-1]["ts"] == 14_000_000
