"""`timeline`: which steps it shows, and how they look as text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from kubepy import Cluster
from kubepy.cli.timeline_text import TimelineText, filled, level_text, short_duration
from kubepy.insight import Timeline
from kubepy.terminal import guard
from tests.insight import timelines

PACE = {"kubelet": {"readyAfter": "5s", "stopsAfter": "3s"}}


class Stream(io.StringIO):
    """A stream with an encoding, maybe a terminal of 80 columns."""

    def __init__(self, encoding: str = "utf-8", is_terminal: bool = False) -> None:
        super().__init__()
        self._encoding, self._is_terminal = encoding, is_terminal

    @property
    def encoding(self) -> str:
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal


def text_of(timeline: Timeline, stream: Stream | None = None) -> list[str]:
    return TimelineText(stream or Stream(), timeline).lines()


def pods_of(lines: Iterable[str]) -> dict[str, str]:
    """Return the characters of each row that has a node, by the name of the pod."""
    rows = (line.split(maxsplit=2) for line in lines if line.startswith("  ") and " node-" in line)
    return {row[0]: row[2] for row in rows if len(row) == 3}


@pytest.fixture
def cluster() -> Cluster:
    """A cluster in which a Deployment has been updated, and another one is in a namespace of its
    own."""
    cluster = Cluster.temporary(nodes=3, settings=PACE)
    for command in (
        "create deployment web --image=nginx:1.15 --replicas=2",
        "set image deploy/web nginx=nginx:1.16",
        "create ns shop",
        "create deployment api -n shop --image=api",
        "cordon node-2",
    ):
        cluster.run(command, check=True)
        cluster.settle()
    return cluster


def steps_of(cluster: Cluster, words: str = "") -> list[dict[str, str]]:
    steps: list[dict[str, str]] = json.loads(
        cluster.run(f"timeline -o json {words}", check=True).stdout
    )["steps"]
    return steps


# --- which steps


def test_timeline_without_object_has_all_steps_of_the_cluster(cluster: Cluster) -> None:
    steps = steps_of(cluster)
    assert {step["namespace"] for step in steps} == {"", "default", "shop"}
    assert [step["action"] for step in steps if step["name"] == "node-2"] == [
        "created",
        "ready",
        "cordoned",
    ]
    assert steps_of(cluster, "-A") == steps


def test_timeline_of_namespace_has_what_is_in_it(cluster: Cluster) -> None:
    keys = {
        (step["resource"], step["namespace"] or step["name"])
        for step in steps_of(cluster, "-n shop")
    }
    assert keys == {
        ("namespaces", "shop"),
        ("deployments.apps", "shop"),
        ("replicasets.apps", "shop"),
        ("pods", "shop"),
    }
    assert steps_of(cluster, "namespace/shop") == steps_of(cluster, "-n shop")


def test_timeline_of_objects_has_what_they_own(cluster: Cluster) -> None:
    web = steps_of(cluster, "deploy/web")
    assert {step["name"].partition("-")[0] for step in web} == {"web"}
    assert steps_of(cluster, "deploy web") == steps_of(cluster, "deploy") == web
    assert steps_of(cluster, "deploy/api -n shop") == steps_of(cluster, "deploy -n shop") != []
    both = steps_of(cluster, "deploy/web node/node-2")
    assert [step for step in both if step["name"].startswith("web")] == web
    assert [step["action"] for step in both if step["resource"] == "nodes"] == [
        "created",
        "ready",
        "cordoned",
    ]


@pytest.mark.parametrize("words", ["rs", "replicaset/web-8d74df84f"])
def test_timeline_of_replica_sets_tells_their_steps(cluster: Cluster, words: str) -> None:
    text = cluster.run(f"timeline {words}", check=True).stdout
    assert "  0s  replicasets.apps/web-8d74df84f " in text
    assert (
        "\nreplicasets.apps/web-8d74df84f in default\ndesired 2 to 0, lowest available 1 of 1"
        in text
    )
    assert " replicasets.apps/web-8d74df84f scaled: 1 to 0" in text


def test_timeline_of_deleted_object_is_still_there(cluster: Cluster) -> None:
    before = len(steps_of(cluster, "deploy/web"))
    cluster.run("delete deploy web", check=True)
    cluster.settle()
    assert len(steps_of(cluster, "deploy/web")) > before
    assert "deployments.apps/web deleted" in cluster.run("timeline deploy/web").stdout


@pytest.mark.parametrize("since", ["2026-01-01T00:00:05Z", "2026-01-01T01:00:05+01:00", "ago"])
def test_timeline_since_is_inclusive(cluster: Cluster, since: str) -> None:
    if since == "ago":
        since = f"{(cluster.now - timelines.START - timedelta(seconds=5)).total_seconds():g}s"
    steps = steps_of(cluster, f"--since={since}")
    assert [step for step in steps_of(cluster) if step["at"] >= "2026-01-01T00:00:05Z"] == [
        {**step, "after": f"{5 + float(step['after'][:-1]):g}s"} for step in steps
    ]
    assert (steps[0]["at"], steps[0]["after"]) == ("2026-01-01T00:00:05Z", "0s")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("deploy/none", 'Error from server (NotFound): deployments.apps "none" not found'),
        ("deploy/web -n shop", 'Error from server (NotFound): deployments.apps "web" not found'),
        ("deploy/web -A", "error: a resource cannot be retrieved by name across all namespaces"),
        ("nonsense/x", 'error: the server doesn\'t have a resource type "nonsense"'),
        (
            "--since=yesterday",
            "error: --since=yesterday is neither a time such as 2026-01-01T12:00:00Z nor a "
            "duration such "
            "as 30m or 2d",
        ),
        (
            "--since=",
            "error: --since= is neither a time such as 2026-01-01T12:00:00Z nor a duration such "
            "as 30m or 2d",
        ),
        ("--since=-5s", "error: --since must not be negative: -5s"),
        (
            "--since=2026-01-01",
            "error: --since=2026-01-01 is neither a time such as 2026-01-01T12:00:00Z nor a "
            "duration "
            "such as 30m or 2d",
        ),
        (
            "--since=0001-01-01T00:00:00Z",
            "error: --since=0001-01-01T00:00:00Z is neither a time such as "
            "2026-01-01T12:00:00Z nor a duration such as 30m or 2d",
        ),
        (
            "-o yaml",
            'error: unable to match a printer suitable for the output format "yaml", allowed '
            "formats are: "
            "text,json,html,svg,trace",
        ),
    ],
)
def test_timeline_refuses_wrong_words(cluster: Cluster, words: str, message: str) -> None:
    result = cluster.run(f"timeline {words}")
    assert (result.stdout, result.stderr, result.status) == ("", f"{message}\n", 1)


def test_timeline_without_steps_says_so(cluster: Cluster) -> None:
    result = cluster.run("timeline --since=2026-01-02T00:00:00Z")
    assert (result.stdout, result.stderr, result.status) == (
        "",
        "Nothing has happened since 2026-01-02T00:00:00Z.\n",
        0,
    )
    assert steps_of(cluster, "--since=2026-01-02T00:00:00Z") == []
    assert cluster.run("timeline ds").stderr == "No resources found in default namespace.\n"
    forgetful = Cluster.temporary(settings={"timeline": {"keep": "0s"}})
    assert (
        forgetful.run("timeline").stderr
        == "No history is kept: timeline.keep in kubepy.yaml is 0.\n"
    )


def test_timeline_far_back_begins_with_what_is_kept(cluster: Cluster) -> None:
    assert [step["at"] for step in steps_of(cluster, "--since=99999d")] == [
        step["at"] for step in steps_of(cluster)
    ]


@pytest.mark.parametrize(("style", "start"), [("html", "<!"), ("svg", "<svg"), ("trace", "{")])
def test_timeline_pictures_are_the_same_each_time(cluster: Cluster, style: str, start: str) -> None:
    result = cluster.run(f"timeline deploy/web -o {style}", check=True)
    assert result.stdout.lstrip().lower().startswith(start)
    assert cluster.run(f"timeline deploy/web -o {style}").stdout == result.stdout


# --- the text


def test_text_shows_each_pod_with_its_revision_and_node(cluster: Cluster) -> None:
    result = cluster.run("timeline deploy/web", check=True)
    rows = list(pods_of(result.stdout.splitlines()).values())
    assert [row.lstrip()[0] + row[-1] for row in rows] == [":-", ":B", ":-", ":B"]
    assert "A = 8d74df84f, B = 897468dd6" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("make", timelines.ALL.values(), ids=timelines.ALL)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_text_fits_in_80_columns_and_its_encoding(make, encoding: str) -> None:
    lines = text_of(make(), Stream(encoding))
    assert max(map(len, lines)) <= 80
    "\n".join(lines).encode(encoding)


def test_text_of_one_moment_shows_pods_in_their_order() -> None:
    rows = pods_of(text_of(timelines.rolling_deployment(4, 0)))
    assert list(rows.values()) == ["A-", "BBBBB", "AA-", "BBBB", "AAA-", "BBB", "AAAA-", "BB"]


def test_text_marks_where_too_few_are_available() -> None:
    lines = text_of(timelines.crash_loop())
    available = next(line for line in lines if line.startswith("  available"))
    too_few = next(line for line in lines if "too few" in line)
    assert {available[place] for place, mark in enumerate(too_few) if mark == "^"} == {"1"}
    assert not any("too few" in line for line in text_of(timelines.rolling_daemonset()))


def test_text_of_new_workload_is_not_too_few_before_it_has_come_up() -> None:
    script = timelines.Script()
    web = timelines.Workload(script, "replicasets.apps", "web", 0, timelines.Bounds(2, 1, 1))
    web.desired = 2
    web.own("created")
    for pod in ("web-1", "web-2"):
        web.pod(pod, "created")
        web.pod(pod, "scheduled", node="node-1")
        script.wait(5)
        web.pod(pod, "ready", "available")
    assert "too few" not in "\n".join(text_of(script.timeline()))
    script.wait(5)
    web.pod("web-1", "unavailable")
    assert "too few" in "\n".join(text_of(script.timeline(until=5)))


def test_text_of_larger_workload_is_not_too_few_before_it_has_come_up() -> None:
    script = timelines.Script()
    web = timelines.Workload(
        script, "replicasets.apps", "web", 1, timelines.Bounds(1, 0, 1), [("web-1", "node-1")]
    )
    web.desired, web.bounds = 5, timelines.Bounds(4, 1, 1)
    web.own("scaled", "1 to 5")
    for number in range(2, 6):
        web.pod(f"web-{number}", "created", "scheduled", "ready", "available")
        script.wait(5)
    text = "\n".join(text_of(script.timeline()))
    assert "too few" not in text
    assert "desired 1 to 5, lowest available 1 of 1 (allowed 1 by maxUnavailable)" in text


def test_text_of_events_tells_what_an_owner_does_again_and_again_in_one_line() -> None:
    cluster = Cluster.temporary(nodes=1)
    cluster.run("create cronjob tick --image=b --schedule='0 * * * *'", check=True)
    cluster.advance("5h30m")
    lines = [
        line for line in cluster.run("timeline").stdout.splitlines() if "jobs.batch/tick-" in line
    ]
    assert [line.split("tick-")[1].partition(" ")[2][:26] for line in lines] == [
        "and 4 more created (5 time",
        "and 4 more completed: Comp",
        "and 1 more deleted (2 time",
    ]


@pytest.mark.parametrize("width", [20, 40, 200])
def test_text_on_any_terminal_is_as_wide_as_it(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubepy.cli.timeline_text.width_of", lambda stream: width)
    for make in timelines.ALL.values():
        lines = text_of(make(), Stream())
        assert max(map(len, lines)) <= max(width, 60)
        assert pods_of(lines)


def test_text_of_failing_pod_says_why_once() -> None:
    lines = text_of(timelines.crash_loop())
    assert [line for line in lines if "CrashLoopBackOff" in line] == [
        "  0s     pods/agent-b1 waiting: CrashLoopBackOff (7 times, last at 10m10s)"
    ]
    assert "!" in pods_of(lines)["agent-b1"]


def test_text_of_thousand_pods_folds_rows_and_columns() -> None:
    lines = text_of(timelines.large(300))
    rows = [line for line in lines if " pods " in line and " nodes " in line]
    assert len(rows) == 24
    assert sum(int(row.split()[0]) for row in rows) == 600
    starts = [row.split()[-1].index("B") for row in rows]
    assert starts == sorted(starts)
    assert any("a column is up to" in line for line in lines)


def test_text_of_many_workloads_names_the_largest_and_counts_the_rest() -> None:
    script = timelines.Script()
    for number in range(30):
        web = timelines.Workload(script, "replicasets.apps", f"web-{number}", 1)
        for pod in range(1 + (number < 20)):
            web.pod(f"web-{number}-{pod}", "created", "scheduled", "ready", "available")
    lines = text_of(script.timeline())
    assert "... and 10 pods of 10 more workloads: name one to see it" in lines
    assert sum(line.startswith("replicasets.apps/") for line in lines) == 20


def test_text_of_events_leaves_out_the_middle_of_many() -> None:
    script = timelines.Script()
    for number in range(50):
        script.step("cordoned", timelines.Key("nodes", "", f"node-{number}"))
        script.wait(1)
    lines = [line for line in text_of(script.timeline()) if line.startswith("  ")]
    assert len(lines) == 21
    assert (lines[0], lines[12], lines[-1]) == (
        "  0s  nodes/node-0 cordoned",
        "  ... 30 more",
        "  49s nodes/node-49 cordoned",
    )


def test_text_on_terminal_is_coloured_by_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Stream(is_terminal=True)
    terminal = guard(screen)
    terminal.write("\n".join(TimelineText(terminal, timelines.rolling_daemonset(2)).lines()))
    assert "\033[34;7mA" in screen.getvalue()
    assert "\033[33;7mB" in screen.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    assert text_of(timelines.rolling_daemonset(2), Stream(is_terminal=True)) == text_of(
        timelines.rolling_daemonset(2)
    )


def test_text_names_from_outside_cannot_steer_the_terminal() -> None:
    step = timelines.Step(
        timelines.START,
        "failed",
        timelines.Key("pods", "a\033[1m", "b\nc"),
        "x/\033",
        "n\033[2J",
        "r\r",
        "bad\033[31m",
    )
    text = "\n".join(text_of(Timeline(timelines.START, timelines.START, (step,), ())))
    assert "\033" not in text
    assert "\r" not in text


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ((3, 4), "3"),
        ((0, 0), " "),
        ((0, 20), "0"),
        ((1, 1000), "1"),
        ((19, 20), "9"),
        ((20, 20), "#"),
        ((25, 20), "#"),
        ((10, 20), "5"),
    ],
)
def test_level_text_is_a_number_or_a_share(level: tuple[int, int], text: str) -> None:
    assert level_text(*level, "0123456789#") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1.5, "1.5s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (3660, "1h1m"),
        (3601, "1h0m1s"),
        (36000, "10h"),
        (86400, "24h"),
        (0.000121, "0s"),
        (0.044909, "45ms"),
        (1.444475, "1.44s"),
        (61.2, "1m1s"),
    ],
)
def test_short_duration_leaves_out_zeros_at_its_end(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text


def test_filled_breaks_between_parts_only() -> None:
    assert filled(["aa bb", "cc", "dd"], ", ", 10) == ["aa bb, cc,", "dd"]
    assert filled(["a" * 12, "b"], ", ", 10) == ["a" * 12 + ",", "b"]


def test_timeline_changes_no_byte_of_the_folder(tmp_path: Path) -> None:
    def contents() -> dict[Path, tuple[bytes, int]]:  # but for SQLite's list of readers
        return {
            path: (path.read_bytes(), path.stat().st_mtime_ns)
            for path in tmp_path.rglob("*")
            if path.is_file() and not path.name.endswith("-shm")
        }

    with Cluster.create(
        tmp_path / "state", nodes=1, clock="2026-01-01T00:00:00Z", seed=1, settings=PACE
    ) as cluster:
        cluster.run("create deployment web --image=web:1", check=True)
        cluster.settle()
        cluster.run("set image deploy/web web=web:2", check=True)
        cluster.settle()
        cluster.run("get pods", check=True)  # like every read it does what is due now
        before = contents()
        for words in (
            "timeline",
            "timeline deploy/web -o json --since=1h",
            "timeline -o html",
            "rollout diff deploy/web",
            "rollout history deploy/web -o wide",
        ):
            assert cluster.run(words, check=True).stdout
            after = contents()
            assert [
                path for path in after.keys() | before if after.get(path) != before.get(path)
            ] == [], words


@pytest.mark.parametrize("form", ["html", "svg"])
def test_pictures_name_what_revisions_brought(form: str) -> None:
    cluster = Cluster.temporary(nodes=1, settings=PACE)
    for words in ("create deployment web --image=web:1", "set env deploy/web LEVEL=debug"):
        cluster.run(words, check=True)
        cluster.settle()
    assert ">web:1, env " in cluster.run(f"timeline -o {form}", check=True).stdout


def test_text_with_long_names_fits_and_keeps_what_happened() -> None:
    name = "crashing-with-a-very-long-name-that-goes-on-and-on-for-ever"
    cluster = Cluster.temporary(nodes=1, settings=PACE)
    cluster.run(f"create deployment {name} --image=c:1", check=True)
    cluster.run(
        f"run {name}-pod --image=c:1 --annotations=kubepy.dev/outcome=crash-loop", check=True
    )
    cluster.advance("1m")
    lines = cluster.run("timeline", check=True).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(
        line.startswith("deployments.apps/crashing") and line.endswith("ever in default")
        for line in lines
    )
    assert any(
        " pods/crash" in line and "ever-pod waiting: CrashLoopBackOff" in line for line in lines
    ), lines
