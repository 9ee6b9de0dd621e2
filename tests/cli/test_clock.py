"""``kubepy clock``, the ways of ``controller`` that move time, and commands that wait in the
cluster's own time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubepy.storage.folder import locks
from tests.cli.conftest import Done, Kubepy, run

START = "2026-01-01T00:00:00Z"
CRON = ("create", "cronjob", "tick", "--image=i", "--schedule=*/5 * * * *")
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  minReadySeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {kubepy.dev/ready-after: "10s"}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""


@pytest.fixture
def own(folder: Path) -> Kubepy:
    """A function that runs a command in a cluster with a time of its own."""
    assert run("init", "--nodes=2", f"--clock={START}", "--seed=7").status == 0
    return run


def now(folder: Path) -> str:
    found = re.search(r'^clock: "(.*)"$', (folder / "state/kubepy.yaml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def due(kubepy: Kubepy) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = json.loads(kubepy("clock", "-o", "json").out)["due"]
    return listed


# --- clock


def test_clock_shows_time_and_what_is_due(own: Kubepy) -> None:
    own(*CRON)
    assert own("clock").out == (
        f"{START}\nTIME                  CONTROLLER          OBJECT\n"
        "2026-01-01T00:05:00Z  cronjob-controller  cronjobs.batch/tick in default\n"
    )
    assert json.loads(own("clock", "-o", "json").out) == {
        "now": START,
        "due": [
            {
                "at": "2026-01-01T00:05:00Z",
                "controller": "cronjob-controller",
                "resource": "cronjobs.batch",
                "namespace": "default",
                "name": "tick",
            }
        ],
    }


def test_clock_of_quiet_cluster_shows_time_only(own: Kubepy) -> None:
    assert own("clock") == Done(f"{START}\n", "", 0)
    assert json.loads(own("clock", "-o", "json").out) == {"now": START, "due": []}


def test_clock_shows_time_of_the_system_too(kubepy: Kubepy) -> None:
    assert kubepy(*CRON).status == 0
    assert [entry["controller"] for entry in due(kubepy)] == ["cronjob-controller"]


@pytest.mark.parametrize(
    ("span", "end"),
    [
        ("30m", "2026-01-01T00:30:00Z"),
        ("1h30m", "2026-01-01T01:30:00Z"),
        ("90s", "2026-01-01T00:01:30Z"),
        ("7d", "2026-01-08T00:00:00Z"),
        ("1d12h", "2026-01-02T12:00:00Z"),
        ("1500ms", "2026-01-01T00:00:01.5Z"),
        ("0.1s2000ns", "2026-01-01T00:00:00.100002Z"),
        ("1d1.5us500ns", "2026-01-02T00:00:00.000002Z"),
        ("0s", START),
        ("0", START),
    ],
)
def test_advance_moves_time_by_a_duration(own: Kubepy, folder: Path, span: str, end: str) -> None:
    assert own("clock", "advance", span) == Done(f"{end}\n", "", 0)
    assert now(folder) == end


def test_advance_does_everything_on_the_way_at_its_moment(own: Kubepy) -> None:
    own(*CRON)
    own("clock", "advance", "12m")
    starts = own("get", "jobs", "-o", "jsonpath={.items[*].metadata.creationTimestamp}").out.split()
    assert starts == ["2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"]
    assert [entry["at"] for entry in due(own)] == ["2026-01-01T00:15:00Z"]


def test_advance_by_nothing_does_what_is_due_now(own: Kubepy) -> None:
    own("apply", "-f", "-", stdin=WEB)
    own("clock", "advance", "0s")
    assert own("get", "pods", "-o", "name", "--reconcile=never").out.count("pod/") == 2


def test_one_line_of_settings_changes(own: Kubepy, folder: Path) -> None:
    file = folder / "state/kubepy.yaml"
    file.write_text("# mine\n" + file.read_text() + "reconcile: auto  # as ever\n")
    before = file.read_text()
    others = {path: path.read_bytes() for path in (folder / "state/cluster").rglob("*.yaml")}
    own("clock", "advance", "30m")
    assert file.read_text() == before.replace(START, "2026-01-01T00:30:00Z")
    assert {
        path: path.read_bytes() for path in (folder / "state/cluster").rglob("*.yaml")
    } == others


def test_set_moves_time_to_a_moment_of_any_zone(own: Kubepy, folder: Path) -> None:
    assert own("clock", "set", "2026-01-01T06:00:00+02:00").out == "2026-01-01T04:00:00Z\n"
    assert own("clock", "set", "2026-01-01T04:00:00Z").status == 0
    assert now(folder) == "2026-01-01T04:00:00Z"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("advance",), "exactly one duration is required, such as 30m"),
        (("advance", "1h", "1h"), "exactly one duration is required, such as 30m"),
        (("advance", "soon"), 'time: invalid duration "soon"'),
        (("advance", "5"), 'time: missing unit in duration "5"'),
        (("advance", "5w"), 'time: unknown unit "w" in duration "5w"'),
        (("advance", "1dx"), 'time: invalid duration "x"'),
        (("advance", "--", "-5s"), "time cannot go back: -5s is negative"),
        (("advance", "--", "-1d"), "time cannot go back: -1d is negative"),
        (("advance", "-5s"), "time cannot go back: -5s is negative"),
        (("advance", "-.5h"), "time cannot go back: -.5h is negative"),
        (("advance", "-x"), "unknown shorthand flag: 'x' in -x"),
        (("advance", "1ns"), 'the duration "1ns" is too exact: time goes by microseconds'),
        (
            ("advance", "10000d0.0000015s"),
            'the duration "10000d0.0000015s" is too exact: time goes by microseconds',
        ),
        (
            ("set", "2026-01-02T00:00:00.123456789Z"),
            'the time "2026-01-02T00:00:00.123456789Z" is too exact: time goes by microseconds',
        ),
        (
            ("advance", "100000d"),
            "the clock must stay between the years 1678 and 2261, and that would be the year 2299",
        ),
        (("advance", "9999999999d"), "the clock must stay between the years 1678 and 2261"),
        (
            ("set", "2025-12-31T23:59:59Z"),
            f"time cannot go back: 2025-12-31T23:59:59Z is before {START}",
        ),
        (("set", "2026-01-02"), '"2026-01-02" is not a time such as 2026-11-20T10:13:48Z'),
        (
            ("set", "2026-01-02T00:00:00"),
            '"2026-01-02T00:00:00" is not a time such as 2026-11-20T10:13:48Z',
        ),
        (("set", "2262-01-01T00:00:00Z"), "the clock must stay between the years 1678 and 2261"),
        (("backwards",), 'unknown command "backwards"'),
        (("-o", "wide"), "unable to match a printer suitable"),
    ],
)
def test_bad_input_is_one_clear_line(
    own: Kubepy, folder: Path, words: tuple[str, ...], message: str
) -> None:
    done = own("clock", *words)
    assert done.status == 1
    assert done.err.startswith(f"error: {message}")
    assert now(folder) == START


@pytest.mark.parametrize("words", [("advance", "1m"), ("set", "2100-01-01T00:00:00Z")])
def test_time_of_the_system_cannot_be_moved(kubepy: Kubepy, words: tuple[str, ...]) -> None:
    done = kubepy("clock", *words)
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert done.err.startswith(
        "error: the time of this cluster is the system's, which cannot be moved: to give it a "
        "time of its own, add the line 'clock: \""
    )


# --- init


def test_init_gives_clock_and_seed(bare: Kubepy, folder: Path) -> None:
    assert bare("init", "--clock=2026-01-01T01:00:00+01:00", "--seed=lab").status == 0
    assert (
        (folder / "state/kubepy.yaml").read_text()
        == f'clock: "{START}"\nformatVersion: 1\nkubelet:\n  containers: modelled\nseed: lab\n'
    )
    assert (
        bare("get", "node", "node-1", "-o", "jsonpath={.metadata.creationTimestamp}").out == START
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--clock=noon", '"noon" is not a time'),
        ("--clock=", '"" is not a time'),
        ("--clock=1600-01-01T00:00:00Z", "the clock must stay between"),
        (
            "--clock=2026-01-01T00:00:00.1234567Z",
            'the time "2026-01-01T00:00:00.1234567Z" is too exact',
        ),
        ("--seed=", "--seed is empty: it must be a number or a text"),
    ],
)
def test_init_refuses_what_is_no_clock_or_seed(
    bare: Kubepy, folder: Path, flag: str, message: str
) -> None:
    done = bare("init", flag)
    assert (done.status, done.err.startswith(f"error: {message}")) == (1, True)
    assert not (folder / "state").exists()


# --- controller


def test_controller_for_prints_changes_and_stands_at_its_end(own: Kubepy, folder: Path) -> None:
    own("apply", "-f", "-", stdin=WEB)
    done = own("controller", "--for=5m")
    assert done.out.count("pod/web-") == 2
    assert (done.status, done.err, now(folder)) == (0, "", "2026-01-01T00:05:00Z")


def test_controller_until_moment(own: Kubepy, folder: Path) -> None:
    assert own("controller", "--until=2026-01-01T03:00:00+01:00", "-q") == Done("", "", 0)
    assert now(folder) == "2026-01-01T02:00:00Z"
    assert own("controller", f"--until={START}").err.startswith("error: time cannot go back")


def test_controller_until_settled_stands_at_last_thing_that_happens(
    own: Kubepy, folder: Path
) -> None:
    own("apply", "-f", "-", stdin=WEB)
    own("create", "cronjob", "nightly", "--image=i", "--schedule=0 3 * * *")
    assert own("controller", "--until-settled", "-q") == Done("", "", 0)
    assert now(folder) == "2026-01-01T00:00:40Z"
    assert own("controller", "--until-settled", "-q") == Done("", "", 0)
    assert now(folder) == "2026-01-01T00:00:40Z"


def test_controller_until_settled_says_that_it_reached_its_limit(own: Kubepy, folder: Path) -> None:
    own("apply", "-f", "-", stdin=WEB)
    done = own("controller", "--until-settled=20s", "-q")
    assert done == Done(
        "", "note: not settled after 20s: the clock stands at 2026-01-01T00:00:20Z\n", 0
    )


@pytest.mark.parametrize(
    "flags",
    [
        ("--for=-1s",),
        ("--until-settled=-1s",),
        ("--for=soon",),
        ("--until=soon",),
        ("--for=1m", "--quiet-for=1s"),
        ("--once", "--until-settled"),
        ("--for=100000d",),
    ],
)
def test_controller_refuses_what_makes_no_sense(
    own: Kubepy, folder: Path, flags: tuple[str, ...]
) -> None:
    done = own("controller", *flags)
    assert (done.status, done.err[:7], now(folder)) == (1, "error: ", START)


def test_controller_once_moves_nothing_unless_it_is_to_be_quiet(own: Kubepy, folder: Path) -> None:
    own("apply", "-f", "-", stdin=WEB)
    own("controller", "--once", "-q")
    assert now(folder) == START
    own("controller", "--once", "-q", "--quiet-for=10s")
    assert now(folder) == "2026-01-01T00:00:10Z"


def test_controller_for_passes_time_of_the_system(kubepy: Kubepy) -> None:
    start = time.monotonic()
    assert kubepy("controller", "--for=300ms").status == 0
    assert time.monotonic() - start >= 0.3


# --- waiting


def test_rollout_status_takes_as_much_time_as_the_rollout(own: Kubepy, folder: Path) -> None:
    own("apply", "-f", "-", stdin=WEB)
    done = own("rollout", "status", "deploy/web")
    assert done.out.endswith('deployment "web" successfully rolled out\n')
    assert now(folder) == "2026-01-01T00:00:40Z"


@pytest.mark.parametrize(
    "words",
    [
        ("rollout", "status", "deploy/web", "--timeout=25s"),
        ("wait", "--for=condition=Available", "deploy/web", "--timeout=25s"),
        ("wait", "--for=create", "cm/missing", "--timeout=25s"),
        ("delete", "cm", "held", "--timeout=25s"),
        ("wait", "--for=delete", "cm/held", "--timeout=25s"),
        ("drain", "node-1", "--force", "--timeout=25s"),
    ],
    ids=" ".join,
)
def test_time_limit_is_time_of_the_cluster(
    own: Kubepy, folder: Path, words: tuple[str, ...]
) -> None:
    _hold(own)
    start = time.monotonic()
    done = own(*words)
    assert (done.status, now(folder)) == (1, "2026-01-01T00:00:25Z"), done.err
    assert time.monotonic() - start < 20


def _hold(own: Kubepy) -> None:
    """Make a rollout that takes 40 s, a config map that stays, and pods that may not be evicted."""
    own("apply", "-f", "-", stdin=WEB)
    own("create", "cm", "held")
    own("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":["a/b"]}}')
    own("create", "poddisruptionbudget", "web", "--selector=app=held", "--min-available=1")
    pod = '{"spec":{"nodeName":"node-1","containers":[{"name":"c","image":"i"}]}}'
    own("run", "held", "--image=i", "--labels=app=held", f"--overrides={pod}")
    own("controller", "--once", "-q")


@pytest.mark.parametrize(
    "words",
    [("rollout", "status", "deploy/web"), ("delete", "cm", "held"), ("drain", "node-1", "--force")],
    ids=" ".join,
)
def test_wait_without_limit_ends_when_nothing_is_due(own: Kubepy, words: tuple[str, ...]) -> None:
    _hold(own)
    own("rollout", "pause", "deploy/web")
    own("set", "image", "deploy/web", "web=web:2")
    own(*CRON)  # repeats for ever, and brings nothing about
    done = own(*words)
    assert done.status == 1
    assert "this would wait for ever: nothing is due in the cluster's own time" in done.err


def test_drain_tries_again_until_the_budget_allows_it(own: Kubepy, folder: Path) -> None:
    own("cordon", "node-2")
    own("apply", "-f", "-", stdin=WEB)
    own("rollout", "status", "deploy/web")
    own("uncordon", "node-2")
    own("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
    done = own("drain", "node-1")
    assert (
        done.err.count("(will retry after 5s)") == 2
    )  # the pod in place of the first one is ready after 10 s
    assert (done.status, now(folder)) == (0, "2026-01-01T00:00:50Z")


def test_wait_that_must_not_run_controllers_ends(own: Kubepy, folder: Path) -> None:
    done = own("wait", "--for=create", "cm/missing", "--reconcile=never")
    assert done == Done(
        "",
        "error: no controller is running (--reconcile=never), so nothing moves the cluster's own "
        "time\n",
        1,
    )
    assert now(folder) == START


def test_read_moves_nothing(own: Kubepy, folder: Path) -> None:
    own("apply", "-f", "-", stdin=WEB)
    for words in (("get", "pods"), ("describe", "deploy/web"), ("events",), ("clock",)):
        assert own(*words).status == 0
    assert own("get", "pods", "-w", "--request-timeout=1s").status == 0
    assert now(folder) == START


# --- beside a process that runs the controllers


@contextmanager
def watcher(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", "kubepy", "controller", "--watch", "-q"]
    process = subprocess.Popen(
        words, cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    )
    try:
        for _ in range(400):
            if locks.Lock(str(folder / "state/.kubepy/manager.lock")).holder() is not None:
                break
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(20)


def test_advance_beside_a_watcher_lets_that_one_work(own: Kubepy, folder: Path) -> None:
    own(*CRON)
    with watcher(folder) as process:
        assert own("clock", "advance", "12m") == Done("2026-01-01T00:12:00Z\n", "", 0)
        own("apply", "-f", "-", stdin=WEB)
        assert own("rollout", "status", "deploy/web", "--timeout=2m").status == 0
        assert own("controller", "--until-settled=10m", "-q").status == 0
        assert process.poll() is None
    starts = own("get", "jobs", "-o", "jsonpath={.items[*].metadata.creationTimestamp}").out.split()
    assert starts == ["2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"]
    assert now(folder) == "2026-01-01T00:12:40Z"


def test_advance_takes_over_from_a_watcher_that_dies(own: Kubepy, folder: Path) -> None:
    own(*CRON)
    with watcher(folder) as process:
        words = [sys.executable, "-m", "kubepy", "clock", "advance", "3d"]
        advance = subprocess.Popen(
            words,
            cwd=folder,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        while now(folder) < "2026-01-01T01:00:00Z":
            time.sleep(0.01)
        process.kill()
        assert advance.communicate(timeout=120)[0] == b"2026-01-04T00:00:00Z\n"
    assert (
        own("get", "cronjob", "tick", "-o", "jsonpath={.status.lastScheduleTime}").out
        == "2026-01-04T00:00:00Z"
    )
