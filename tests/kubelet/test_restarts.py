"""Pods that take time: the states that annotations lead to, and when."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubepy.api.clock import format_time
from kubepy.kubelet.lifetimes import NO_RULES, Rules, lifetime_of
from kubepy.kubelet.restarts import next_backoff
from kubepy.kubelet.stages import Expire, Refuse, Remove, Start, StepDue, next_due, next_step
from kubepy.kubelet.statuses import expired_status, pod_status
from tests.kubelet.objects import NOW, Object, check_golden, new_node, new_pod


class Life:
    """A pod that is played through time; ``seen`` has every state with its moment."""

    def __init__(
        self,
        restart: str = "Always",
        spec: Object | None = None,
        node: Object | None = None,
        rules: Rules = NO_RULES,
        **annotations: str,
    ) -> None:
        self.pod = new_pod(restartPolicy=restart, **(spec or {}))
        self.node, self.rules = node or new_node(), rules
        self.now, self.repeats = NOW, list[float]()
        self.seen: list[tuple[float, str]] = []
        self.is_over = False
        self.annotate(**annotations)

    @property
    def container(self) -> Object:
        return self.pod["status"]["containerStatuses"][0]

    @property
    def seconds(self) -> float:
        return (self.now - NOW).total_seconds()

    def annotate(self, **annotations: str) -> None:
        """Set the pod's annotations: ``ready_after="5s"`` is ``kubepy.dev/ready-after``."""
        named = {f"kubepy.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
        self.pod["metadata"]["annotations"] = named

    def act(self) -> None:
        """Do everything that is due now."""
        most = len(self.seen) + 5
        while (step := next_step(self.pod, self.node, self.now, rules=self.rules)) is not None:
            assert len(self.seen) < most
            if isinstance(step, Start):
                address = "" if step.obstacles.mounts else "10.244.0.1"
                status = pod_status(
                    self.pod, step.outcome, "192.168.0.1", address, self.now, step.obstacles
                )
                self.pod = {**self.pod, "status": status}
                self.seen.append((self.seconds, self.state()))
            elif isinstance(step, Expire):
                status = expired_status(self.pod, "192.168.0.1", "10.244.0.1", self.now)
                self.pod = {**self.pod, "status": status}
                self.seen.append((self.seconds, status["reason"]))
            else:
                self.seen.append((self.seconds, type(step).__name__))
                self.is_over = True
                return

    def state(self) -> str:
        """Return the state as ``get pods`` shows it: ``1/1 Running 0``, with the back-off."""
        [(kind, state)] = self.container["state"].items()
        ready, word = "1/1" if self.container["ready"] else "0/1", state.get("reason", "Running")
        backoff = state["message"].split()[1] if word == "CrashLoopBackOff" else ""
        assert kind in ("running", "waiting", "terminated")
        return f"{ready} {word} {backoff or self.container['restartCount']}"

    def due(self) -> StepDue | None:
        return next_due(self.pod, self.node, self.now, self.rules)

    def until(self, seconds: float) -> Life:
        """Go from one due moment to the next, up to a moment."""
        self.act()
        while (
            not self.is_over
            and (due := self.due()) is not None
            and due.at <= NOW + timedelta(seconds=seconds)
        ):
            assert due.at > self.now
            self.now = due.at
            if due.repeats:
                self.repeats.append(self.seconds)
            self.act()
        self.now = NOW + timedelta(seconds=seconds)
        return self


class Case(NamedTuple):
    """Annotations, and the states that they lead to by the second."""

    annotations: dict[str, str]
    states: list[tuple[float, str]]
    restart: str = "Always"


CASES = [
    Case({"ready_after": "5s"}, [(0, "0/1 Running 0"), (5, "1/1 Running 0")]),
    Case({"ready_after": "1m30s"}, [(0, "0/1 Running 0"), (90, "1/1 Running 0")]),
    Case({"ready_after": "0s"}, [(0, "1/1 Running 0")]),
    Case({"ready_after": "1500ms"}, [(0, "0/1 Running 0"), (1.5, "1/1 Running 0")]),
    Case({"ready_after": "5s", "outcome": "not-ready"}, [(0, "0/1 Running 0")]),
    Case({"ready_after": "5s", "outcome": "succeeded"}, [(0, "0/1 Completed 0")]),
    Case(
        {"ready_after": "2s", "runs_for": "5s"},
        [(0, "0/1 Running 0"), (2, "1/1 Running 0"), (5, "0/1 Completed 0")],
        "Never",
    ),
    Case(
        {"ready_after": "9s", "runs_for": "5s"},
        [(0, "0/1 Running 0"), (5, "0/1 Completed 0")],
        "Never",
    ),
    Case(
        {"ready_after": "5s", "runs_for": "5s"},
        [(0, "0/1 Running 0"), (5, "0/1 Completed 0")],
        "Never",
    ),
    Case(
        {"ready_after": "1s", "runs_for": "3s", "exit_code": "7"},
        [
            (0, "0/1 Running 0"),
            (1, "1/1 Running 0"),
            (3, "0/1 Running 1"),
            (4, "1/1 Running 1"),
            (6, "0/1 CrashLoopBackOff 10s"),
            (16, "0/1 Running 2"),
            (17, "1/1 Running 2"),
            (19, "0/1 CrashLoopBackOff 20s"),
            (39, "0/1 Running 3"),
            (40, "1/1 Running 3"),
        ],
        "OnFailure",
    ),
    Case(
        {"outcome": "crash-loop"},
        [
            (0, "0/1 CrashLoopBackOff 40s"),
            (40, "0/1 CrashLoopBackOff 1m20s"),
            (120, "0/1 CrashLoopBackOff 2m40s"),
            (280, "0/1 CrashLoopBackOff 5m0s"),
            (580, "0/1 CrashLoopBackOff 5m0s"),
            (880, "0/1 CrashLoopBackOff 5m0s"),
        ],
    ),
    Case({"outcome": "crash-loop"}, [(0, "0/1 Error 0")], "Never"),
    Case({"outcome": "crash-loop, ready"}, [(0, "1/1 Running 1")]),
    Case(
        {"outcome": "crash-loop*3, ready"},
        [(0, "0/1 CrashLoopBackOff 10s"), (10, "0/1 CrashLoopBackOff 20s"), (30, "1/1 Running 3")],
    ),
    Case(
        {"outcome": " crash-loop * 2 ,ready", "ready_after": "4s"},
        [(0, "0/1 CrashLoopBackOff 10s"), (10, "0/1 Running 2"), (14, "1/1 Running 2")],
    ),
    Case(
        {"outcome": "crash-loop*2, crash-loop"},
        [
            (0, "0/1 CrashLoopBackOff 10s"),
            (10, "0/1 CrashLoopBackOff 20s"),
            (30, "0/1 CrashLoopBackOff 40s"),
            (70, "0/1 CrashLoopBackOff 1m20s"),
            (150, "0/1 CrashLoopBackOff 2m40s"),
            (310, "0/1 CrashLoopBackOff 5m0s"),
            (610, "0/1 CrashLoopBackOff 5m0s"),
        ],
    ),
    Case(
        {"outcome": "crash-loop*2, succeeded"},
        [(0, "0/1 CrashLoopBackOff 10s"), (10, "0/1 Completed 2")],
        "OnFailure",
    ),
    Case(
        {"outcome": "crash-loop*2, failed", "exit_code": "4"},
        [(0, "0/1 CrashLoopBackOff 10s"), (10, "0/1 Error 2")],
    ),
    Case({"outcome": "crash-loop*2, succeeded"}, [(0, "0/1 Error 0")], "Never"),
    Case(
        {"outcome": "crash-loop, ready", "runs_for": "5s"},
        [(0, "1/1 Running 1"), (5, "0/1 Completed 1")],
        "OnFailure",
    ),
    Case(
        {"outcome": "image-pull-backoff"},
        [
            (0, "0/1 ImagePullBackOff 0"),
            (10, "0/1 ErrImagePull 0"),
            (20, "0/1 ImagePullBackOff 0"),
            (30, "0/1 ErrImagePull 0"),
            (40, "0/1 ImagePullBackOff 0"),
            (70, "0/1 ErrImagePull 0"),
            (80, "0/1 ImagePullBackOff 0"),
            (150, "0/1 ErrImagePull 0"),
            (160, "0/1 ImagePullBackOff 0"),
            (310, "0/1 ErrImagePull 0"),
            (320, "0/1 ImagePullBackOff 0"),
            (610, "0/1 ErrImagePull 0"),
            (620, "0/1 ImagePullBackOff 0"),
        ],
    ),
    Case(
        {"outcome": "image-pull-backoff*2, ready", "ready_after": "1s"},
        [
            (0, "0/1 ImagePullBackOff 0"),
            (10, "0/1 ErrImagePull 0"),
            (20, "0/1 ImagePullBackOff 0"),
            (30, "0/1 Running 0"),
            (31, "1/1 Running 0"),
        ],
    ),
    Case(
        {"outcome": "image-pull-backoff, image-pull-backoff, succeeded"},
        [
            (0, "0/1 ImagePullBackOff 0"),
            (10, "0/1 ErrImagePull 0"),
            (20, "0/1 ImagePullBackOff 0"),
            (30, "0/1 Completed 0"),
        ],
        "Never",
    ),
    Case(
        {"outcome": "image-pull-backoff, crash-loop*2, ready"},
        [(0, "0/1 ImagePullBackOff 0"), (10, "0/1 CrashLoopBackOff 10s"), (20, "1/1 Running 2")],
    ),
    Case(
        {"outcome": "crash-loop*2, image-pull-backoff*2, crash-loop, ready"},
        [
            (0, "0/1 CrashLoopBackOff 10s"),
            (10, "0/1 ImagePullBackOff 1"),
            (20, "0/1 ErrImagePull 1"),
            (30, "0/1 ImagePullBackOff 1"),
            (40, "0/1 CrashLoopBackOff 20s"),
            (60, "1/1 Running 3"),
        ],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.restart} {case.annotations}")
def test_annotations_lead_to_states_at_moments(case: Case) -> None:
    life = Life(case.restart, **case.annotations).until(case.states[-1][0])
    assert life.seen == case.states


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.restart} {case.annotations}")
def test_kubelet_that_looks_often_comes_to_the_same_states(case: Case) -> None:
    """The state follows from the pod alone, however often it is looked at."""
    often = Life(case.restart, **case.annotations)
    for tenth in range(int(case.states[-1][0] * 10) + 1):
        often.now = NOW + timedelta(seconds=tenth / 10)
        often.act()
    assert often.seen == case.states


@pytest.mark.parametrize(
    ("annotations", "first"),
    [
        ({"outcome": "crash-loop"}, 580),
        ({"outcome": "image-pull-backoff"}, 610),
        ({"outcome": "crash-loop, crash-loop"}, 610),
        ({"runs_for": "11m"}, 1320),
        ({"runs_for": "1s"}, 617),
        ({"outcome": "crash-loop*9, ready"}, None),
        ({"outcome": "image-pull-backoff*9, ready"}, None),
        ({"ready_after": "1h"}, None),
    ],
    ids=str,
)
def test_what_comes_again_for_ever_repeats_once_its_back_off_is_longest(
    annotations: dict[str, str], first: float | None
) -> None:
    assert next(iter(Life(**annotations).until(4000).repeats), None) == first


def test_deadline_of_pod_that_repeats_is_waited_for() -> None:
    life = Life(spec={"activeDeadlineSeconds": 1000}, outcome="crash-loop").until(1500)
    assert life.repeats == []
    assert life.seen[-1] == (1000, "DeadlineExceeded")


def test_deadline_ends_pod_that_is_not_ready_yet() -> None:
    assert Life(spec={"activeDeadlineSeconds": 3}, ready_after="5s").until(60).seen == [
        (0, "0/1 Running 0"),
        (3, "DeadlineExceeded"),
    ]


@pytest.mark.parametrize(
    ("restarts", "waited", "length", "delay"),
    [
        (0, 0, 0, 0),
        (1, 0, 0, 10),
        (2, 10, 0, 20),
        (3, 20, 5, 40),
        (6, 160, 0, 300),
        (7, 300, 0, 300),
        (99, 300, 600, 300),
        (99, 300, 601, 0),
        (100, 0, 0, 10),
        (101, 10, 0, 20),  # after a long run it begins anew
        (2, 3600, 0, 20),
        (1, 3600, 0, 10),
        (3, 21, 0, 40),
        (3, 19, 0, 40),  # a kubelet that was late, or rounded
    ],
)
def test_back_off_doubles_up_to_five_minutes_and_begins_anew_after_long_run(
    restarts: int, waited: int, length: float, delay: int
) -> None:
    assert next_backoff(restarts, waited, length) == delay


def test_start_and_readiness_have_their_moments() -> None:
    life = Life(ready_after="5s").until(0)
    conditions = {one["type"]: one for one in life.pod["status"]["conditions"]}
    assert (life.container["started"], life.container["state"]) == (
        True,
        {"running": {"startedAt": format_time(NOW)}},
    )
    assert (
        conditions["Ready"]["status"],
        conditions["Ready"]["reason"],
        conditions["Ready"]["message"],
    ) == ("False", "ContainersNotReady", "containers with unready status: [c d]")
    assert conditions["ContainersReady"]["status"] == "False"
    life.until(60)
    times = {
        one["type"]: (one["status"], one["lastTransitionTime"], one.get("reason"))
        for one in life.pod["status"]["conditions"]
    }
    then, ready = format_time(NOW), format_time(NOW + timedelta(seconds=5))
    assert times == {
        "Initialized": ("True", then, None),
        "Ready": ("True", ready, None),
        "ContainersReady": ("True", ready, None),
        "PodScheduled": ("True", "2026-11-20T11:59:59Z", None),
    }
    assert life.container["state"] == {"running": {"startedAt": then}}
    assert life.pod["status"]["startTime"] == then


def test_crash_is_last_state_of_container_that_waits() -> None:
    life = Life(outcome="crash-loop*3, ready", exit_code="137").until(10)
    moment = format_time(NOW + timedelta(seconds=10))
    assert life.container["lastState"] == {
        "terminated": {
            "exitCode": 137,
            "reason": "Error",
            "startedAt": moment,
            "finishedAt": moment,
        }
    }
    assert life.container["state"] == {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": ("back-off 20s restarting failed container=c pod=web_shop(0f1e)"),
        }
    }
    assert (life.pod["status"]["phase"], life.container["started"]) == ("Running", False)


@pytest.mark.parametrize(
    ("name", "outcome", "seconds"),
    [
        ("crash-loop-restarted", "crash-loop", 40),
        ("image-pull-error", "image-pull-backoff", 10),
        ("recovered", "crash-loop*2, ready", 30),
        ("image-pull-after-crash", "crash-loop*2, image-pull-backoff", 25),
    ],
)
def test_status_after_time_has_passed(name: str, outcome: str, seconds: float) -> None:
    check_golden(name, Life(outcome=outcome, ready_after="5s").until(seconds).pod["status"])


def test_gates_hold_back_pod_that_takes_time_to_be_ready() -> None:
    life = Life(spec={"readinessGates": [{"conditionType": "example.org/lb"}]}, ready_after="5s")
    life.until(2)
    life.pod["status"]["conditions"].append({"type": "example.org/lb", "status": "True"})
    ready = [
        (one["status"], one.get("reason"))
        for one in life.until(4).pod["status"]["conditions"]
        if one["type"] == "Ready"
    ]
    assert ready == [("False", "ContainersNotReady")]
    assert next(
        one["lastTransitionTime"]
        for one in life.until(9).pod["status"]["conditions"]
        if one["type"] == "Ready"
    ) == format_time(NOW + timedelta(seconds=5))


def test_sidecar_runs_on_while_container_crashes() -> None:
    sidecar = {"name": "mesh", "image": "m:1", "restartPolicy": "Always"}
    life = Life(spec={"initContainers": [sidecar]}, outcome="crash-loop*3, ready").until(60)
    [status] = life.pod["status"]["initContainerStatuses"]
    assert (status["ready"], status["restartCount"], status["state"]) == (
        True,
        0,
        {"running": {"startedAt": format_time(NOW)}},
    )


# --- what changes on a pod that lives -------------------------------------------------------------


def test_annotation_that_changes_takes_effect_on_live_pod() -> None:
    life = Life(outcome="crash-loop").until(100)
    life.annotate(outcome="ready")
    assert life.until(101).seen[-1] == (100, "1/1 Running 5")
    life.annotate(outcome="crash-loop*8, ready")
    assert life.until(102).seen[-1] == (101, "0/1 CrashLoopBackOff 1m20s")
    life.annotate(outcome="image-pull-backoff")
    assert life.until(103).seen[-1] == (102, "0/1 ImagePullBackOff 5")
    life.annotate()
    assert life.until(104).state() == "1/1 Running 6"


def test_ready_after_may_change_while_pod_is_on_its_way_and_never_takes_readiness_back() -> None:
    life = Life(ready_after="1h").until(10)
    life.annotate(ready_after="15s")
    assert life.until(60).seen[-1] == (15, "1/1 Running 0")
    life.annotate(ready_after="2h")
    assert life.until(90).seen[-1] == (15, "1/1 Running 0")
    life = Life(ready_after="1h").until(10)
    life.annotate(ready_after="5s")
    assert life.until(10).seen[-1] == (10, "1/1 Running 0")


def test_ready_pod_that_is_to_crash_keeps_its_end() -> None:
    life = Life().until(100)
    life.annotate(outcome="crash-loop")
    assert life.until(100).seen[-1] == (100, "0/1 CrashLoopBackOff 40s")
    assert life.container["lastState"]["terminated"]["finishedAt"] == format_time(
        NOW + timedelta(seconds=100)
    )
    assert life.until(140).seen[-1] == (140, "0/1 CrashLoopBackOff 1m20s")


@pytest.mark.parametrize(
    ("outcome", "started"), [("crash-loop, ready", 0), ("crash-loop*2, ready", 100)]
)
def test_last_run_of_several_that_crash_at_once_began_with_its_crash(
    outcome: str, started: float
) -> None:
    life = Life().until(100)
    life.annotate(outcome=outcome)
    life.act()
    assert life.container["lastState"]["terminated"]["startedAt"] == format_time(
        NOW + timedelta(seconds=started)
    )


def test_crash_is_last_state_of_pod_that_ends_at_once_after_it() -> None:
    life = Life("OnFailure").until(100)
    life.annotate(outcome="crash-loop, succeeded")
    life.act()
    now = format_time(NOW + timedelta(seconds=100))
    last, present = life.container["lastState"]["terminated"], life.container["state"]["terminated"]
    assert (last["exitCode"], last["startedAt"], last["finishedAt"]) == (1, now, now)
    assert (present["exitCode"], present["startedAt"], present["finishedAt"]) == (0, now, now)
    assert life.container["restartCount"] == 1


def test_status_set_by_hand_stays_until_next_change() -> None:
    life = Life(ready_after="1h").until(1)
    life.container["ready"] = True  # "it is ready already"
    assert life.until(7200).seen == [(0, "0/1 Running 0")]
    life = Life(outcome="crash-loop").until(0)
    life.container["state"]["waiting"]["message"] = "back-off 5s restarting failed container"
    assert life.until(20).seen[1] == (5, "0/1 CrashLoopBackOff 10s")
    life = Life(outcome="image-pull-backoff").until(0)
    life.container["state"]["waiting"] = {"reason": "InvalidImageName"}
    assert life.until(500).seen == [(0, "0/1 ImagePullBackOff 0")]


@pytest.mark.parametrize(
    "damage",
    [
        {"lastState": {}},
        {"lastState": None},
        {"restartCount": 0},
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"state": {"running": {}}, "lastState": {}},
        {"state": {}},
        {"state": {"terminated": {"exitCode": 1}}},
    ],
    ids=str,
)
def test_status_that_lacks_something_leads_on(damage: Object) -> None:
    life = Life(outcome="crash-loop*3, ready").until(12)
    life.container.update(damage)
    assert life.until(500).state().startswith("1/1 Running")


# --- deletion -------------------------------------------------------------------------------------


def deleted(life: Life, grace: int = 30) -> Life:
    life.pod["metadata"] |= {
        "deletionTimestamp": format_time(life.now + timedelta(seconds=grace)),
        "deletionGracePeriodSeconds": grace,
    }
    return life


@pytest.mark.parametrize(
    ("annotations", "grace", "gone"),
    [
        ({}, 30, 20),
        ({"stops_after": "5s"}, 30, 25),
        ({"stops_after": "1m"}, 30, 50),
        ({"stops_after": "5s"}, 2, 22),
        ({"stops_after": "0s"}, 30, 20),
        ({"stops_after": "soon"}, 30, 20),
        ({"stops_after": "5s"}, 0, None),
        ({"stops_after": "10s", "runs_for": "24s"}, 30, 24),
        ({"stops_after": "5s", "ready_after": "23s"}, 30, 25),
        ({"stops_after": "5s", "outcome": "crash-loop"}, 30, 20),
        ({"stops_after": "5s", "outcome": "succeeded"}, 30, 20),
        ({"stops_after": "5s", "outcome": "image-pull-backoff"}, 30, 20),
        ({"stops_after": "5s", "outcome": "pending"}, 30, 20),
        ({"stops_after": "5s", "termination": "stuck"}, 30, None),
        ({"stops_after": "2500000h"}, 30, 50),
    ],
    ids=str,
)
def test_deleted_pod_goes_when_its_containers_have_stopped(
    annotations: dict[str, str], grace: int, gone: float | None
) -> None:
    life = deleted(Life(**annotations).until(20), grace)
    before = len(life.seen)
    assert life.until(2000).seen[before:] == ([(gone, "Remove")] if gone is not None else [])


def test_grace_period_that_is_shortened_is_kept() -> None:
    life = deleted(Life(stops_after="20s").until(10)).until(15)
    life.pod["metadata"] |= {
        "deletionTimestamp": format_time(NOW + timedelta(seconds=17)),
        "deletionGracePeriodSeconds": 7,
    }
    assert life.until(60).seen[-1] == (17, "Remove")


def test_sidecar_that_runs_is_stopped_as_well() -> None:
    sidecar = {"name": "mesh", "image": "m:1", "restartPolicy": "Always"}
    life = Life(spec={"initContainers": [sidecar]}, outcome="crash-loop", stops_after="5s").until(
        20
    )
    assert deleted(life).until(60).seen[-1] == (25, "Remove")


# --- where the values come from -------------------------------------------------------------------


def with_owner(kind: str, **annotations: str) -> Object:
    life = Life("Never", **annotations)
    life.pod["metadata"]["ownerReferences"] = [
        {"kind": kind, "name": "x", "uid": "1", "controller": True}
    ]
    return life.pod


def test_value_of_pod_comes_before_value_of_node_and_that_before_default() -> None:
    rules = Rules(
        defaults={
            "kubepy.dev/ready-after": "1s",
            "kubepy.dev/stops-after": "2s",
            "kubepy.dev/runs-for": "3s",
            "kubepy.dev/exit-code": "4",
            "kubepy.dev/outcome": "crash-loop*5, ready",
        }
    )
    node = new_node(
        **{
            "kubepy.dev/ready-after": "10s",
            "kubepy.dev/pod-outcome": "not-ready",
            "kubepy.dev/outcome": "not-ready",
        }
    )
    of_default = lifetime_of(with_owner("Job"), new_node(), rules)
    assert (of_default.outcome, of_default.before) == ("ready", (("crash-loop", 5),))
    assert of_default.end.exit_code == 4
    assert (of_default.ready_after, of_default.stops_after, of_default.runs_for) == (1, 2, 3)
    of_node = lifetime_of(with_owner("Job"), node, rules)
    assert (of_node.outcome, of_node.ready_after, of_node.stops_after, of_node.runs_for) == (
        "not-ready",
        10,
        2,
        3,
    )
    of_pod = lifetime_of(
        with_owner("Job", ready_after="20s", outcome="ready", exit_code="0"), node, rules
    )
    assert (of_pod.outcome, of_pod.ready_after, of_pod.stops_after, of_pod.end.exit_code) == (
        "ready",
        20,
        2,
        0,
    )


def test_run_length_and_exit_code_of_node_or_default_count_for_pods_of_jobs_only() -> None:
    rules, node = (
        Rules(defaults={"kubepy.dev/runs-for": "3s"}),
        new_node(**{"kubepy.dev/exit-code": "4"}),
    )
    assert lifetime_of(with_owner("Job"), node, rules)[1:3] == (
        3,
        lifetime_of(with_owner("Job"), node, rules).end,
    )
    other = lifetime_of(with_owner("ReplicaSet"), node, rules)
    assert (other.runs_for, other.end.exit_code) == (None, 0)


@pytest.mark.parametrize(
    ("annotations", "reason", "message"),
    [
        (
            {"ready_after": "soon"},
            "InvalidAnnotation",
            'kubepy.dev/ready-after: "soon": it must be a duration',
        ),
        (
            {"stops_after": "9s..1s"},
            "InvalidAnnotation",
            'kubepy.dev/stops-after: "9s..1s": it must be a duration',
        ),
        (
            {"ready_after": "99999999h"},
            "InvalidAnnotation",
            'kubepy.dev/ready-after: "99999999h": it must be a duration',
        ),
        (
            {"outcome": "crash-loop*3"},
            "InvalidAnnotation",
            'kubepy.dev/outcome: "crash-loop*3": the last outcome lasts',
        ),
        (
            {"outcome": "crash-loop*0, ready"},
            "InvalidAnnotation",
            'kubepy.dev/outcome: "crash-loop*0, ready": the number',
        ),
        (
            {"outcome": "crash-loop*x, ready"},
            "InvalidAnnotation",
            'kubepy.dev/outcome: "crash-loop*x, ready": the number',
        ),
        (
            {"outcome": "ready, failed"},
            "InvalidAnnotation",
            'kubepy.dev/outcome: "ready, failed": only crash-loop, oom',
        ),
        (
            {"outcome": "crash-loop, pending"},
            "InvalidAnnotation",
            'kubepy.dev/outcome: "crash-loop, pending": a pod that',
        ),
        ({"outcome": "crash-loop, perfect"}, "UnknownOutcome", 'Outcome "perfect" is not known'),
        ({"outcome": "crash-loop,, ready"}, "UnknownOutcome", 'Outcome "" is not known'),
    ],
)
def test_value_that_cannot_be_read_is_refused(
    annotations: dict[str, str], reason: str, message: str
) -> None:
    step = next_step(Life(**annotations).pod, new_node(), NOW)
    assert isinstance(step, Refuse)
    assert step.reason == reason
    assert step.message.startswith(message)


@pytest.mark.parametrize(
    "annotations",
    [
        {"ready_after": "2500000h"},
        {"runs_for": "2500000h"},
        {"outcome": "crash-loop*999999999999999999, ready"},
        {"outcome": "image-pull-backoff*999999999999999999, ready"},
    ],
    ids=str,
)
def test_absurd_number_is_waited_for(annotations: dict[str, str]) -> None:
    life = Life(**annotations).until(100_000)
    assert life.due() is not None
    assert next_step(life.pod, life.node, life.now) is None


def test_removal_is_a_step_of_deleted_pod_only() -> None:
    life = Life(stops_after="5s").until(1)
    assert next_step(life.pod, life.node, life.now) is None
    assert next_step(deleted(life).pod, life.node, life.now + timedelta(seconds=5)) == Remove()


# --- whatever happens -----------------------------------------------------------------------------

OUTCOMES = (
    "ready",
    "not-ready",
    "pending",
    "crash-loop",
    "image-pull-backoff",
    "failed",
    "succeeded",
)
RECOVERABLE = st.sampled_from(
    ["crash-loop", "oom-killed", "image-pull-backoff", "crash-loop*2", "image-pull-backoff*3"]
)
SEQUENCES = st.builds(
    lambda before, last: ", ".join([*before, last]),
    st.lists(RECOVERABLE, max_size=3),
    st.sampled_from(OUTCOMES),
)
LENGTHS = st.sampled_from(["0s", "1s", "1500ms", "7s", "11m"])
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "outcome": SEQUENCES,
        "ready_after": LENGTHS,
        "runs_for": LENGTHS,
        "stops_after": LENGTHS,
        "exit_code": st.sampled_from(["0", "1", "143"]),
    },
)
EDITS = st.sampled_from(
    [
        {},
        {"lastState": {}},
        {"restartCount": 0},
        {"restartCount": 7},
        {"state": {}},
        {"ready": True},
        {"ready": False},
        {"state": {"running": {}}},
        {"state": {"terminated": {"exitCode": 0}}},
        {
            "state": {
                "waiting": {"reason": "CrashLoopBackOff", "message": "back-off soon restarting"}
            }
        },
        {"state": {"waiting": {"reason": "ErrImagePull"}}},
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ]
)


@given(
    restart=st.sampled_from(["Always", "OnFailure", "Never"]),
    acts=st.lists(
        st.tuples(ANNOTATIONS, EDITS, st.sampled_from([0, 0.5, 3, 10, 45, 700])),
        min_size=1,
        max_size=4,
    ),
)
def test_pod_never_spins_and_its_restarts_never_go_back(
    restart: str, acts: list[tuple[dict[str, str], Object, float]]
) -> None:
    """At each moment few steps are due, what is due next lies ahead, and the count of restarts only
    grows."""
    life = Life(restart)
    for texts, edit, seconds in acts:
        life.annotate(**texts)
        if life.pod["status"].get("containerStatuses"):
            life.container.update(copy.deepcopy(edit))
        end, steps, restarts = life.seconds + seconds, len(life.seen), 0
        while True:
            before = len(life.seen)
            life.act()
            assert len(life.seen) - before <= 3
            if life.pod["status"].get("containerStatuses"):
                assert life.container["restartCount"] >= restarts
                restarts = life.container["restartCount"]
            due = life.due()
            assert due is None or life.is_over or due.at > life.now
            if life.is_over or due is None or (due.at - NOW).total_seconds() > end:
                break
            life.now = due.at
        life.is_over = False
        life.now = NOW + timedelta(seconds=end)
        assert len(life.seen) - steps < 2 * seconds + 20


@given(
    before=st.lists(RECOVERABLE, max_size=3),
    last=st.sampled_from(["ready", "not-ready", "succeeded", "failed"]),
    looks=st.lists(st.integers(1, 400), max_size=20),
    ready_after=LENGTHS,
)
def test_sequence_comes_to_its_last_outcome_however_seldom_it_is_looked_at(
    before: list[str], last: str, looks: list[int], ready_after: str
) -> None:
    life = Life(outcome=", ".join([*before, last]), ready_after=ready_after)
    life.act()
    for seconds in [*looks, *[5000] * 30]:
        life.now += timedelta(seconds=seconds)
        life.act()
    crashes = sum(
        {"crash-loop": 1, "oom-killed": 1, "crash-loop*2": 2}.get(part, 0) for part in before
    )
    assert life.container["restartCount"] == crashes
    assert life.state().startswith(
        {
            "ready": "1/1 Running",
            "not-ready": "0/1 Running",
            "succeeded": "0/1 Completed",
            "failed": "0/1 Error",
        }[last]
    )
