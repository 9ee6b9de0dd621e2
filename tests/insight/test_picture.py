"""The pictures of timelines that are made by hand."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from datetime import timedelta
from itertools import combinations

import pytest

from kubepy import Cluster
from kubepy.insight import Bounds, Step, Timeline
from kubepy.insight.picture import AVAILABLE, READY, STARTING, TERMINATING, bars_of
from kubepy.insight.picture.charts import base_of
from kubepy.insight.picture.drawing import (
    COLOURS,
    PLOT,
    REVISIONS,
    Drawing,
    Mark,
    revision_classes,
)
from kubepy.insight.picture.html import render_html
from kubepy.insight.picture.rows import lanes_of
from kubepy.insight.picture.scale import Scale, shortest_break
from kubepy.insight.picture.svg import PATTERNS, colour_rules, draw, render_svg
from kubepy.insight.picture.trace import render_trace
from kubepy.insight.revisions import with_rollouts
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
    crowded = draw(timeline._replace(present=crowd), 0)
    assert [(fold.idle, len(crowded.bars)) for fold in crowded.folds if fold.idle] == [(101, 102)]


def test_bars_pod_is_replaced_by_one_of_its_own_replica_set() -> None:
    script = timelines.Script()
    web = timelines.Workload(
        script,
        "deployments.apps",
        "web",
        3,
        there=[("web-a1", "node-1"), ("web-a2", "node-2"), ("web-a3", "node-3")],
        revision="a",
    )
    web.pod("web-a1", "terminating", reason="EvictionByEvictionAPI")
    web.pod("web-a2", "terminating")
    web.revision = "b"
    web.pod("web-b1", "created")
    web.revision = "a"
    web.pod("web-a4", "created")
    bars = {bar.key.name: bar for bar in bars_of(script.timeline())}
    partners = {name: bar.successor.key.name for name, bar in bars.items() if bar.successor}
    assert partners == {"web-a1": "web-b1", "web-a2": "web-a4"}
    assert bars["web-a1"].replacement is None  # no pod of an older ReplicaSet replaces it
    assert bars["web-a2"].replacement is bars["web-a4"]


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
    assert [gap.text for gap in scale.gaps] == ["6h"] * 4
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
        ([2] * 9 + [60, 300, 400, 900], 60),
        ([60, 900] * 40, None),
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
    assert list(revision_classes(drawing.bars, drawing.places).values()) == ["r0", "r1"]
    assert revision_classes(bars_of(timelines.jobs()), Drawing(timelines.jobs()).places) == {}


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
    revisions = [colours[f"r{n}"] for n in range(REVISIONS)] + [colours["none"]]
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
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
LEAST_DISTANCE = 15  # of CIEDE2000, in which 1 is what trained eyes can just see
Lab = tuple[float, float, float]


def as_seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> Lab:
    """Return a colour in CIELAB under D65, as eyes see it."""
    red, green, blue = (
        min(max(sum(part * value for part, value in zip(row, linear(colour), strict=True)), 0), 1)
        for row in matrix
    )
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    x, y, z = (
        value ** (1 / 3) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116
        for value in (x, y, z)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(one: Lab, other: Lab) -> float:
    """Return the distance of two colours by CIEDE2000, as Sharma, Wu and Dalal write it down."""
    chroma = (math.hypot(*one[1:]) + math.hypot(*other[1:])) / 2
    more = 0.5 * (1 - math.sqrt(chroma**7 / (chroma**7 + 25**7)))
    chromas, hues = [], []
    for _, a, b in (one, other):
        chromas.append(math.hypot(a * (1 + more), b))
        hues.append(math.degrees(math.atan2(b, a * (1 + more))) % 360)
    turn = (hues[1] - hues[0] + 180) % 360 - 180
    light = (one[0] + other[0]) / 2 - 50
    chroma = sum(chromas) / 2
    hue = (hues[0] + turn / 2) % 360
    weight = (
        1
        - 0.17 * math.cos(math.radians(hue - 30))
        + 0.24 * math.cos(math.radians(2 * hue))
        + 0.32 * math.cos(math.radians(3 * hue + 6))
        - 0.20 * math.cos(math.radians(4 * hue - 63))
    )
    by_light = (other[0] - one[0]) / (1 + 0.015 * light**2 / math.sqrt(20 + light**2))
    by_chroma = (chromas[1] - chromas[0]) / (1 + 0.045 * chroma)
    by_hue = 2 * math.sqrt(chromas[0] * chromas[1]) * math.sin(math.radians(turn / 2))
    by_hue /= 1 + 0.015 * chroma * weight
    rotation = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7))
    rotation *= math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2))))
    return math.sqrt(by_light**2 + by_chroma**2 + by_hue**2 + rotation * by_chroma * by_hue)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.49, -0.001), (50, -2.49, 0.0009), 7.1792),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_ciede2000_is_that_of_the_published_pairs(one: Lab, other: Lab, distance: float) -> None:
    assert ciede2000(one, other) == pytest.approx(distance, abs=1e-4)


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_of_revisions_differ_for_all_eyes(theme: int, eyes: str) -> None:
    seen = [as_seen(COLOURS[f"r{n}"][theme], EYES[eyes]) for n in range(REVISIONS)]
    nearest = min(ciede2000(one, other) for one, other in combinations(seen, 2))
    assert nearest >= LEAST_DISTANCE


def test_patterns_of_revisions_differ() -> None:
    assert len(set(PATTERNS)) == REVISIONS
    rules = colour_rules()
    assert all(f".p{n} {{" in rules for n in range(1, REVISIONS))


# --- what is easy to see


def texts_of(timeline: Timeline, marks: tuple[Mark, ...] = ()) -> list[str]:
    """Return the texts of a svg; of one that is shortened the whole."""
    root = ElementTree.fromstring(render_svg(timeline, marks))
    name = "{http://www.w3.org/2000/svg}"
    return [(text.findtext(f"{name}title") or text.text or "") for text in root.iter(f"{name}text")]


def history(*commands: str, replicas: int = 2) -> Timeline:
    """Return what commands do to a Deployment, each with a minute behind it."""
    cluster = Cluster.temporary(nodes=3, seed=1)
    cluster.run(
        f"create deployment web --image=reg.example/shop/web:1 --replicas={replicas}", check=True
    )
    cluster.settle()
    cluster.advance("1h")
    start = cluster.now
    for command in commands:
        cluster.run(command, check=True)
        cluster.advance("1m")
    with cluster._open() as local:
        return with_rollouts(local, read_timeline(local, start))


def test_legend_and_diamonds_name_what_was_rolled_out() -> None:
    timeline = history(
        "set image deploy/web web=reg.example/shop/web:2",
        "set env deploy/web LEVEL=debug",
        "scale deploy/web --replicas=3",
    )
    texts = texts_of(timeline)
    first, second, third = (rollout.revision for rollout in timeline.rollouts)
    assert {f"web:1 {first}", f"web:2 {second}", f"web:2, env {third}"} <= set(texts)
    assert {"web:1 to web:2", "env changed", "scaled 2 to 3"} <= set(texts)


def test_legend_names_images_of_workload_that_is_deleted_by_now() -> None:
    timeline = history("set image deploy/web web=reg.example/shop/web:2", "delete deploy web")
    assert timeline.rollouts == ()
    revisions = sorted({step.revision for step in timeline.present})
    new = {step.revision for step in timeline.steps if step.revision} - set(revisions)
    assert {f"web:1 {revisions[0]}", f"web:2 {new.pop()}"} <= set(texts_of(timeline))


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_legend_names_images_of_controller_revisions(kind: str) -> None:
    cluster = Cluster.temporary(nodes=2, seed=1)
    manifest = f"""
    apiVersion: apps/v1
    kind: {kind}
    metadata: {{name: agent}}
    spec:
      {"serviceName: agent" if kind == "StatefulSet" else ""}
      selector: {{matchLabels: {{a: b}}}}
      template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [
        {{name: c, image: "agent:1"}}, {{name: side, image: "side:1"}}]}}}}
    """
    cluster.run("apply -f -", stdin=manifest, check=True)
    cluster.settle()
    cluster.run(f"set image {kind}/agent c=agent:2", check=True)
    cluster.settle()
    with cluster._open() as local:
        timeline = with_rollouts(local, read_timeline(local))
    pods = {step.revision for step in timeline.steps if step.key.resource == "pods"}
    labels = {
        text.partition(" ")[0]
        for text in texts_of(timeline)
        if text[-4:] in {revision[-4:] for revision in pods}
    }
    assert {"agent:1", "agent:2"} <= labels


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("template, from outside", "template changed, from outside"),
        ("reg.example/a/web:1 to reg.example/a/web:2", "web:1 to web:2"),
        ("minReadySeconds", "minReadySeconds changed"),
        ("web@sha256:0123456789abcdef to web:2", "web@0123456789ab to web:2"),
        ("from outside", "changed, from outside"),
    ],
)
def test_diamonds_say_in_words_what_changed(reason: str, words: str) -> None:
    script = timelines.Script()
    timelines.Workload(script, "deployments.apps", "web", 0).own("changed", reason)
    assert words in texts_of(script.timeline())


def test_failing_pod_has_its_name_and_reason() -> None:
    assert "agent-b1 CrashLoopBackOff" in texts_of(timelines.crash_loop())


def test_arrows_are_left_out_in_rollouts_and_where_they_are_many() -> None:
    assert "link" not in draw(timelines.rolling_deployment(), 0).plot
    few, many = (draw(evicted(pods), 0).plot["link"] for pods in (8, 9))
    assert [len([path for path in paths if "L" in path]) for paths in (few, many)] == [8, 0]


def evicted(pods: int) -> Timeline:
    """Return a timeline in which the pods of a ReplicaSet are evicted from their nodes."""
    script = timelines.Script()
    web = timelines.Workload(
        script,
        "replicasets.apps",
        "web",
        pods,
        there=[(f"web-a{n}", f"node-{n}") for n in range(pods)],
    )
    for n in range(pods):
        web.pod(f"web-a{n}", "terminating", "deleted")
        web.pod(f"web-b{n}", "created")
        web.pod(f"web-b{n}", "scheduled", node="node-last")
        script.wait(5)
    return script.timeline()


def test_axis_has_dates_beyond_a_day() -> None:
    texts = texts_of(timelines.jobs())
    assert {"Jan 1", "Jan 2", "06:00", "12:00"} <= set(texts)
    assert not {"Jan 1", "00:00"} & set(texts_of(timelines.rolling_deployment()))


def test_title_has_no_fractions_of_seconds() -> None:
    timeline = timelines.rolling_deployment(seconds=5.123456)
    timeline = timeline._replace(since=timelines.START.replace(microsecond=123456))
    for text in (render_svg(timeline), render_html(timeline)):
        title = text.partition("</title>")[0].rpartition(">")[2]
        assert title == "Timeline: 2026-01-01T00:00:00Z to 2026-01-01T00:00:25Z (25.49s)"


@pytest.mark.parametrize(
    ("least", "most", "base"), [(3, 5, 0), (11, 13, 10), (9, 12, 8), (2, 20, 0), (375, 625, 0)]
)
def test_curve_of_small_workload_shows_a_single_pod(least: int, most: int, base: int) -> None:
    assert base_of(least, most, 48) == base
    if most < 20:
        assert 48 / (most - base) >= 6


def test_workloads_are_ordered_by_what_happened_to_them() -> None:
    script = timelines.Script()
    bounds = Bounds(1, 1, 1)
    names = ("a-quiet", "b-changed", "c-lacking")
    workloads = [
        timelines.Workload(
            script, "deployments.apps", name, 2, bounds, [(f"{name}-{n}", "node-1") for n in "xy"]
        )
        for name in names
    ]
    workloads[0].pod("a-quiet-x", "terminating", "deleted")
    workloads[1].own("changed", "web:1 to web:2")
    workloads[2].pod("c-lacking-x", "terminating", "deleted")
    workloads[2].pod("c-lacking-y", "terminating", "deleted")
    workloads[0].pod("a-quiet-z", "created", *timelines.UP, node="node-1")
    drawing = Drawing(script.timeline())
    assert [key.name for key in drawing.workloads] == ["c-lacking", "b-changed", "a-quiet"]
    assert next(key.name for key in Drawing(timelines.jobs()).places) == "report-29454482"


def test_turns_of_crash_loop_and_runs_of_jobs_are_no_moments_beside_others() -> None:
    scale = Drawing(timelines.crash_loop()).scale
    assert [gap.text for gap in scale.gaps] == ["15m10s", "5m"]
    assert [moment.is_major for moment in scale.moments].count(True) == 4


# --- many pods


def test_more_than_sixty_pods_share_rows_by_node_and_revision() -> None:
    assert not draw(timelines.rolling_deployment(30), 0).folds
    drawing = draw(timelines.rolling_deployment(31), 0)
    assert [fold.text for fold in drawing.folds] == ["web:1", "web:2"] * 3
    texts = texts_of(timelines.rolling_deployment(31, nodes=2))
    assert {"16", "15", "node-1", "node-2"} <= set(texts)


def test_many_nodes_share_rows() -> None:
    drawing = draw(timelines.rolling_daemonset(1000), 0)
    assert len(drawing.folds) <= 40
    assert len(drawing.rows) == 2000
    assert drawing.height < 800
    names = [label.text for label in drawing.texts if label.classes == "node"]
    assert names[0] == "node-1 +49"


def test_failing_pods_keep_their_rows_among_many() -> None:
    script = timelines.Script()
    web = timelines.Workload(
        script,
        "deployments.apps",
        "web",
        100,
        there=[(f"web-a{n}", "node-1") for n in range(100)],
    )
    for n in range(100):
        web.pod(f"web-a{n}", "not-ready", "ready")
    web.pod("web-b", "created")
    web.pod("web-b", "scheduled", node="node-1")
    web.pod("web-b", "waiting", reason="ImagePullBackOff")
    assert "web-b ImagePullBackOff" in texts_of(script.timeline())


SCREEN = 1000  # pixels


def test_rollout_of_500_pods_is_one_screen() -> None:
    timeline = timelines.large(500)
    assert draw(timeline, 0).height < SCREEN
    assert len(render_svg(timeline)) < 75_000


def test_week_of_twenty_cron_jobs_beside_a_rollout_is_one_screen() -> None:
    timeline = timelines.week()
    drawing = draw(timeline, 0)
    assert drawing.height < SCREEN
    assert [key.name for key in drawing.workloads][:2] == ["job-00", "web"]
    web = [bar for bar in drawing.bars if bar.workload.name == "web"]
    first = min(bar.start for bar in web if bar.start >= 0)
    last = max(bar.last for bar in web)
    assert drawing.scale.x(last) - drawing.scale.x(first) > PLOT / 2  # of minutes in a week
    texts = texts_of(timeline)
    assert texts.count("28 ran") == 19
    assert "1 of 28 failed" in texts


# --- harms


def test_marks_point_out_harms_of_workloads_and_other_objects() -> None:
    web = Key("deployments.apps", "default", "web")
    service = Key("services", "default", "web")
    after = timelines.START + timedelta(seconds=5)
    marks = (
        Mark(web, timelines.START, "outage", after),
        Mark(web, timelines.START, "below-bound", after),
        Mark(service, after, "unreachable"),
    )
    texts = texts_of(timelines.rolling_deployment(), marks)
    assert {"outage, below-bound", "services/web", "unreachable", "harm"} <= set(texts)
    drawing = draw(timelines.rolling_deployment(), 0, marks)
    assert drawing.charts[web][0] < drawing.charts[service][0]
    page = render_html(timelines.rolling_deployment(), marks, "Plan: <set>")
    assert "<h1>Plan: &lt;set&gt;</h1>" in page
    assert "Plan: &lt;set&gt;" in render_svg(timelines.rolling_deployment(), marks, "Plan: <set>")


@pytest.mark.parametrize("make", [*timelines.ALL.values(), timelines.week, timelines.large])
def test_patterns_that_are_drawn_have_a_rule(make) -> None:
    svg = render_svg(make())
    words = {word for classes in re.findall('class="([^"]*)"', svg) for word in classes.split()}
    patterns = {word for word in words if word.startswith("p")} - {"plot", "pale"}
    assert patterns <= {f"p{number}" for number in range(1, REVISIONS)}


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


def test_workload_that_was_changed_stands_before_those_that_were_made() -> None:
    cluster = Cluster.temporary(nodes=2, clock="2026-01-01T00:00:00Z", seed=1)
    for name in ("a", "b", "z"):
        cluster.run(f"create deployment {name} --image=web:1 --replicas=2", check=True)
    cluster.run("set image deployment/z web=web:2", check=True)
    cluster.settle()
    with cluster._open() as local:
        drawing = Drawing(read_timeline(local, local.clock.now()))
    assert [key.name for key in drawing.workloads] == ["z", "a", "b"]
