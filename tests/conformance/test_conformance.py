"""Transcripts of a real v1.36 cluster hold for kubepy: once with ``controller --once``, once beside
``--watch``, and in clusters with time of their own, where nothing waits: ``sleep`` is
``kubepy clock advance`` there. Both in a folder and in etcd.

Beside a controller and in own time, where most cases are played, the commands are forks of a
process that has imported kubepy (``tests/forkserver.py``); ``controller --once`` is played with the
real program.

All begin in a cluster without nodes (``kubepy init --nodes=0``), those of the command line with
running controllers, as when they were recorded. ``pending.txt`` names the cases that do not hold
yet, one ``folder/name`` per line. A listed case that holds fails its test, so that the list can
only shrink.
"""

import argparse
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.etcd import EtcdServer, fresh_prefix
from tests.forkserver import ForkServer


def case_id(case: Path) -> str:
    return f"{case.parent.name}/{case.stem}"


HERE = Path(__file__).parent
PENDING = set((HERE / "pending.txt").read_text().split())
CASES = sorted((HERE / "cases").glob("*/*.txt"))
ONCE = {
    "daemonset",
    "deployment",
    "statefulset",
}  # folders whose cases run without a background controller
WATCHED = {"cli", "daemonset", "deployment", "statefulset"}  # folders whose cases run beside one

# All cases run beside a controller. Of the two other ways continuous integration has the time for a
# sample only; with ALL_CASES=1 in the environment they are all played.
IS_WHOLE = bool(os.environ.get("ALL_CASES"))
ONCE_CASES = [
    case
    for index, case in enumerate(case for case in CASES if case.parent.name in ONCE)
    if IS_WHOLE or index % 6 == 0
]
# kubectl compares what it has read with the answer to its patch: where a controller writes between
# the two, it says "patched", as upstream does. Beside a controller both answers are right, and
# chance decides which is given; in own time, where nothing happens between the two, these cases are
# always played, and the recorded answer is asked for.
NO_CHANGE = "patched (no change)"
# Which pod a ReplicaSet deletes follows from how old they are, on a logarithmic scale: on a busy
# machine the two seconds that were recorded between them become none.
OWN_TIME_ONLY = {"deployment/replicaset-adopts-and-releases"}
OWN_TIME = [
    case
    for index, case in enumerate(CASES)
    if IS_WHOLE
    or index % 60 == 0
    or re.search(r"^\$ .*\bsleep [0-9]", case.read_text(), re.MULTILINE)
    or NO_CHANGE in case.read_text()
    or case_id(case) in OWN_TIME_ONLY
]
# Likewise in etcd, where `make test-etcd` plays them all; these are always played: their commands
# come close after what the controllers work on. Not cli/node-operations: it reads a taint without
# having waited for the controller that sets it, 0.3 seconds after its cause on an idle machine.
CLOSE = {
    "deployment/recreate-strategy",
    "deployment/rollout-scaled-while-stuck",
}
IN_ETCD = [
    case
    for index, case in enumerate(CASES)
    if os.environ.get("LONG_ETCD_TESTS") or index % 30 == 0 or case_id(case) in CLOSE
]


# In clusters whose pods do what their manifests say (``kubelet.containers: modelled``) a sample is
# played too. The cases were recorded from kubelets that start anything. These do not hold, by
# design: their images end by themselves (busybox without a command, databases without a password),
# or what their pods refer to is missing.
NOT_IN_MODELLED = {
    "cli/get-tables",  # busybox without a command
    "daemonset/daemonset-automatic-tolerations",  # busybox without a command
    "daemonset/daemonset-describe",  # a ConfigMap that is missing
    "deployment/replicaset-adopts-and-releases",  # busybox without a command
    "statefulset/statefulset-describe",  # a ConfigMap that is missing
    "statefulset/statefulset-ordered-creation",  # mysql without a password
    "statefulset/statefulset-rolling-update-status",  # postgres without a password
}
MODELLED = [
    case
    for index, case in enumerate(CASES)
    if case.parent.name in WATCHED
    and (IS_WHOLE or index % 12 == 0)
    and case_id(case) not in NOT_IN_MODELLED
]


def load_runner():
    spec = importlib.util.spec_from_file_location("conformance_run", HERE / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNER = load_runner()
KUBEPY = shutil.which("kubepy", path=os.path.dirname(sys.executable)) or "kubepy"


def differences(
    case: Path,
    program: str,
    watch: str,
    clock: str,
    state: str = "",
    containers: str = "simple",
) -> str:
    write = f"printf 'formatVersion: 1\\nclock: {clock}\\n' > $KUBEPY_STATE/kubepy.yaml"
    setups = [f"mkdir $KUBEPY_STATE && {write}"] if clock else []
    setups.append(f"KUBEPY_CONTAINERS={containers} {program} init --nodes=0")
    args = argparse.Namespace(
        kubectl=program,
        settle="kubectl controller --once --quiet-for=1.5s",
        setup=" && ".join(setups),
        state=state,
        watch=watch and f"{program} controller --watch",
        sleep=clock and f"{program} clock advance",
        exact_hash=False,
        timeout=60,
    )
    _, wrong = RUNNER.run_case(case, args)
    if watch:
        wrong = [step for step in wrong if not is_race_of_patch(*step[1:])]
    return "\n".join(
        f"$ {command}\nrecorded:\n" + "\n".join(want) + "\nhere:\n" + "\n".join(got)
        for command, want, got in wrong
    )


def is_race_of_patch(want: list[str], got: list[str]) -> bool:
    """Say whether an answer differs only in that a controller wrote between kubectl's reading and
    its patch."""
    return len(got) == len(want) and all(
        line in (recorded, recorded.replace(NO_CHANGE, "patched"))
        for recorded, line in zip(want, got, strict=True)
    )


def check(case: Path, program: str, watch: str = "", clock: str = "", state: str = "") -> None:
    found = differences(case, program, watch, clock, state)
    if case_id(case) in PENDING:
        assert found, f"{case_id(case)} holds now: take it out of pending.txt"
        pytest.xfail("listed in pending.txt")
    assert not found, found


@pytest.mark.parametrize("case", ONCE_CASES, ids=case_id)
def test_recorded_case_holds(case: Path) -> None:
    check(case, KUBEPY)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.parent.name in WATCHED and case_id(case) not in OWN_TIME_ONLY],
    ids=case_id,
)
def test_recorded_case_holds_beside_background_controller(
    case: Path, fork_server: ForkServer
) -> None:
    check(case, str(fork_server.program), watch="watch")


@pytest.mark.parametrize("case", MODELLED, ids=case_id)
def test_recorded_case_holds_where_containers_are_modelled(
    case: Path, fork_server: ForkServer
) -> None:
    found = differences(case, str(fork_server.program), "watch", "", containers="modelled")
    assert not found, found


@pytest.mark.parametrize("case", OWN_TIME, ids=case_id)
def test_recorded_case_holds_in_clusters_own_time(case: Path, fork_server: ForkServer) -> None:
    check(case, str(fork_server.program), clock="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    "case", [case for case in IN_ETCD if case.parent.name in ONCE], ids=case_id
)
def test_recorded_case_holds_in_etcd(
    case: Path, fork_server: ForkServer, etcd_server: EtcdServer
) -> None:
    state = etcd_server.address(f"{fresh_prefix()}/{{}}")
    check(case, str(fork_server.program), state=state)


@pytest.mark.parametrize("case", IN_ETCD, ids=case_id)
def test_recorded_case_holds_in_etcd_beside_background_controller(
    case: Path, fork_server: ForkServer, etcd_server: EtcdServer
) -> None:
    state = etcd_server.address(f"{fresh_prefix()}/{{}}")
    check(case, str(fork_server.program), watch="watch", state=state)
