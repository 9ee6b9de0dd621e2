"""The cluster's own time: the manager moves it from one due moment to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from kubepy.api.clock import Clock, format_exact_time, parse_time
from kubepy.controlplane import build_manager, manager
from kubepy.controlplane.manager import Horizon
from kubepy.controlplane.open import open_cluster
from kubepy.runtime.reconcile import Key
from tests.controllers.conftest import NOW, Lab
from tests.controllers.test_manager import CONFIG_MAPS, Toy
from tests.stores import disagreements

START = parse_time(NOW)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def key(name: str) -> Key:
    return Key(CONFIG_MAPS, "default", name)


class Diary:
    """A toy manager that writes down at which second it syncs which key."""

    def __init__(self, lab: Lab) -> None:
        self.toy = Toy(lab)
        self.entries: list[tuple[float, str]] = []
        self.clock = lab.cluster.clock
        self.queue, self.advance = self.toy.copier.queue, self.toy.manager.advance
        self.toy.copier.before_sync = self.write

    def write(self, name: str) -> None:
        self.entries.append(((self.clock.now() - START).total_seconds(), name))


@pytest.fixture
def diary(lab: Lab) -> Diary:
    return Diary(lab)


def setting(lab: Lab) -> object:
    return lab.cluster.store.settings()["clock"]


# --- the clock and the horizon


def test_clock_moves_forwards_only() -> None:
    clock = Clock(START)
    clock.move_to(after(0.5))
    assert (clock.now(), clock.monotonic()) == (after(0.5), after(0.5).timestamp())
    with pytest.raises(
        ValueError, match=r"cannot go back from 2026-11-20T10:00:00.5Z to 2026-11-20T10:00:00Z"
    ):
        clock.move_to(START)
    with pytest.raises(ValueError, match="the system's"):
        Clock().move_to(START)


def test_real_limits_pass_while_own_time_stands() -> None:
    clock = Clock(START)
    before = clock.real_monotonic()
    clock.sleep(0.01)
    assert clock.real_monotonic() - before >= 0.01
    assert clock.now() == START


@pytest.mark.parametrize(
    ("horizon", "due", "single", "moment"),
    [
        (Horizon(after(10)), after(5), None, after(5)),
        (Horizon(after(10)), after(20), after(20), after(10)),
        (Horizon(after(10)), None, None, after(10)),
        (Horizon(START), after(5), after(5), None),
        (Horizon(None, math.inf), after(5), after(9), after(5)),
        (Horizon(None, math.inf), after(5), None, None),
        (Horizon(after(3), math.inf), after(5), after(9), after(3)),
        (Horizon(after(3), math.inf), after(2), None, None),
        (Horizon(None, math.inf, 60.0), after(5), after(60), after(5)),
        (Horizon(None, math.inf, 60.0), after(5), after(61), None),
        (Horizon(None, math.inf, 60.0), after(61), after(61), after(61)),
        (Horizon(after(3), math.inf, 60.0), after(5), after(61), after(3)),
        (Horizon(None, 2.0), after(1), after(2), after(1)),
        (Horizon(None, 2.0), after(1), after(2.5), None),
    ],
)
def test_horizon_gives_next_moment(
    horizon: Horizon, due: datetime | None, single: datetime | None, moment: datetime | None
) -> None:
    assert horizon.next_moment(START, due, single) == moment


# --- the manager


def test_advance_stops_at_every_due_moment_in_order(lab: Lab, diary: Diary) -> None:
    for seconds, name in ((30, "c"), (10, "a"), (20.5, "b"), (10, "a2"), (61, "late")):
        diary.queue.add_after(key(name), seconds)
    summary = diary.advance(after(60))
    assert diary.entries == [(10, "a"), (10, "a2"), (20.5, "b"), (30, "c")]
    assert setting(lab) == format_exact_time(after(60)) == format_exact_time(lab.now)
    assert [(due.key.name, due.time) for due in summary.due] == [("late", after(61))]


def test_work_that_falls_due_on_the_way_is_done_at_its_moment(lab: Lab, diary: Diary) -> None:
    def again(name: str) -> None:
        diary.write(name)
        if name == "tick":
            diary.queue.add_after(key("tick"), 25)

    diary.toy.copier.before_sync = again
    diary.queue.add_after(key("tick"), 25)
    diary.advance(after(100))
    assert diary.entries == [(25, "tick"), (50, "tick"), (75, "tick"), (100, "tick")]


def test_advance_without_moment_does_what_is_due_now_and_moves_nothing(
    lab: Lab, diary: Diary
) -> None:
    diary.queue.add_after(key("later"), 1)
    lab.config_map("now")
    diary.advance()
    assert [name for _, name in diary.entries] == ["now", "copy-of-now"]
    assert lab.now == START
    assert setting(lab) == NOW


def test_settled_stops_at_last_thing_that_happens(lab: Lab, diary: Diary) -> None:
    diary.queue.add_after(key("once"), 40)
    diary.queue.add_after(key("repeats"), 15, repeating=True)
    diary.advance(after(3600), settled=True)
    assert diary.entries == [(15, "repeats"), (40, "once")]
    assert setting(lab) == format_exact_time(after(40))
    assert diary.toy.manager.is_settled()


def test_settled_stops_at_its_limit(lab: Lab, diary: Diary) -> None:
    diary.queue.add_after(key("far"), 7200)
    diary.advance(after(3600), settled=True)
    assert lab.now == after(3600)
    assert not diary.toy.manager.is_settled()


def test_condition_is_asked_at_end_of_each_moment_and_ends_the_way(lab: Lab, diary: Diary) -> None:
    for seconds in (10, 20, 30):
        diary.queue.add_after(key(f"at-{seconds}"), seconds)
    asked = []

    def done() -> bool:
        asked.append((lab.now - START).total_seconds())
        return len(diary.entries) == 2

    diary.advance(after(60), done=done)
    assert asked == [0, 10, 20]
    assert setting(lab) == format_exact_time(after(20))


def test_quiet_for_moves_time_to_what_falls_due_within(lab: Lab, diary: Diary) -> None:
    for seconds in (1, 2.5, 9):
        diary.queue.add_after(key(f"at-{seconds}"), seconds)
    diary.toy.manager.run_until_settled(quiet_for=2.0)
    assert diary.entries == [(1, "at-1"), (2.5, "at-2.5")]
    assert lab.now == after(2.5)


def test_failing_sync_is_tried_at_the_moments_of_its_back_off(lab: Lab, diary: Diary) -> None:
    def fail(name: str) -> None:
        diary.write(name)
        raise ValueError("never")

    diary.toy.copier.before_sync = fail
    diary.queue.add(key("a"))
    diary.advance(after(1))
    assert [seconds for seconds, _ in diary.entries] == [0] * 6 + [0.16, 0.48]


def test_back_off_goes_on_in_another_process(lab: Lab) -> None:
    for _ in range(2):
        diary = Diary(lab)

        def fail(name: str, diary: Diary = diary) -> None:
            diary.write(name)
            raise ValueError("never")

        diary.toy.copier.before_sync = fail
        if lab.now == START:
            diary.queue.add(key("a"))
        diary.advance(lab.now + timedelta(seconds=1))
    assert [seconds for seconds, _ in diary.entries] == [1.12]


def test_failed_transaction_leaves_clock_where_the_folder_has_it(lab: Lab, diary: Diary) -> None:
    def interrupt(name: str) -> None:
        if name == "second":
            raise KeyboardInterrupt

    diary.toy.copier.before_sync = interrupt
    diary.queue.add_after(key("first"), 10)
    diary.queue.add_after(key("second"), 20)
    with pytest.raises(KeyboardInterrupt):
        diary.advance(after(60))
    assert lab.now == START
    assert setting(lab) == NOW


def test_time_that_another_process_moves_is_noticed(lab: Lab, diary: Diary) -> None:
    diary.queue.add_after(key("a"), 10)
    diary.advance()
    other = open_cluster(lab.folder)
    other.client.move_time_to(after(15))
    other.close()
    diary.toy.manager.poll()
    assert diary.toy.manager.has_work()
    diary.advance()
    assert diary.entries == [(15, "a")]


def test_clock_that_is_set_back_by_hand_is_followed(lab: Lab, diary: Diary) -> None:
    diary.advance(after(600))
    file = lab.folder / "kubepy.yaml"
    file.write_text(
        file.read_text().replace(format_exact_time(after(600)), format_exact_time(after(60)))
    )
    diary.queue.add_at(key("a"), after(700))
    diary.advance()
    assert lab.now == after(60)
    diary.advance(after(800))
    assert diary.entries == [(700, "a")]


# --- all controllers


def scene(lab: Lab) -> None:
    """Make pods that take time, a rollout that has begun, crash loops, and CronJobs."""
    for number in range(1, 4):
        lab.node(f"node-{number}")
    lab.daemon_set(
        "agent", minReadySeconds=7, template_annotations={"kubepy.dev/ready-after": "1500ms"}
    )
    lab.daemon_set("broken", template_annotations={"kubepy.dev/outcome": "crash-loop"})
    container = {"name": "c", "image": "i"}
    template = {
        "metadata": {"annotations": {"kubepy.dev/runs-for": "20s..40s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    for name, schedule in (("tick", "*/5 * * * *"), ("tock", "*/7 * * * *")):
        job = {"spec": {"ttlSecondsAfterFinished": 300, "template": template}}
        lab.create(
            "cronjobs.batch",
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": {"name": name},
                "spec": {"schedule": schedule, "jobTemplate": job},
            },
            "default",
        )
    lab.settle()
    lab.change(
        "daemonsets.apps",
        "agent",
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image="agent:2"),
        "default",
    )


def files(lab: Lab) -> dict[str, str]:
    lab.cluster.store.sync()
    return {
        str(path.relative_to(lab.folder)): path.read_text()
        for path in sorted(lab.folder.rglob("*.yaml"))
        if ".kubepy" not in path.parts
    }


def state(lab: Lab, without: tuple[str, ...] = ()) -> dict[str, str]:
    events = {
        f"event {obj['metadata']['name']}": str(obj) for obj in lab.client.list("events").items
    }
    return {
        name: text
        for name, text in {**files(lab), **events}.items()
        if not name.startswith(without)
    }


def cut(seconds: Callable[[], float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "BATCH_SECONDS", seconds())
    monkeypatch.setattr(manager, "MAX_BATCH_SECONDS", seconds())


def test_result_does_not_depend_on_where_batches_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = []
    for name, seconds in (
        ("long", lambda: 1e9),
        ("short", lambda: 0.0),
        ("mixed", lambda: Random(7).random() / 50),
    ):
        lab = Lab(tmp_path / name)
        scene(lab)
        cut(seconds, monkeypatch)
        build_manager(lab.cluster).advance(after(5400))
        states.append(state(lab))
        lab.cluster.close()
    assert states[0] == states[1] == states[2]
    assert states[0]["kubepy.yaml"].startswith('clock: "2026-11-20T11:30:00Z"')


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("seed", range(4))
def test_advance_that_is_killed_goes_on_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Kill the process at random syncs: what was not committed is gone, and a new process goes
    on."""
    chance, ends = Random(seed), []
    for name in ("whole", "killed"):
        lab = Lab(tmp_path / name)
        scene(lab)
        cut(lambda: 0.0, monkeypatch)
        while True:
            made = build_manager(lab.cluster)
            if name == "killed":
                _kill_after(made, chance.randint(1, 60), monkeypatch)
            try:
                made.advance(after(1500))
                break
            except _Killed:
                stamps = [
                    obj["metadata"]["creationTimestamp"] for obj in lab.client.list("pods").items
                ]
                assert all(parse_time(stamp) <= lab.now for stamp in stamps)
                assert setting(lab) == format_exact_time(lab.now)
        ends.append(state(lab))
        assert disagreements(lab.cluster.store) == []
        lab.cluster.close()
    assert ends[0] == ends[1]


def _kill_after(made: manager.Manager, syncs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(range(syncs))
    sync = made._sync

    def sync_or_die(*picked: object) -> None:
        if next(left, None) is None:
            raise _Killed
        sync(*picked)  # type: ignore[arg-type]

    monkeypatch.setattr(made, "_sync", sync_or_die)
