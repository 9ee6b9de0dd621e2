"""What a command lets the controllers do is bounded, a cluster has a limit of pods, and reads may
move its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubepy.controlplane import manager
from tests.cli.conftest import Kubepy, run, set_kubelet

PHASE = ("get", "pod", "web", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")


@pytest.fixture
def own_time(folder: Path) -> Kubepy:
    """A function that runs a command in a folder with a cluster that has a time of its own."""
    assert run("init", "--clock=2026-01-01T00:00:00Z", "--seed=7").status == 0
    return run


def set_up(folder: Path, text: str) -> None:
    with open(folder / "state/kubepy.yaml", "a") as file:
        file.write(text)


# --- a count that is far too large ----------------------------------------------------------------


@pytest.mark.parametrize("has_clock", [True, False])
def test_command_after_a_count_too_large_does_its_own_work_first(
    folder: Path, has_clock: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "READ_WRITES", 500)
    run("init", *(["--clock=2026-01-01T00:00:00Z"] if has_clock else []))
    assert run("create", "deployment", "web", "--image=i", "--replicas=2147483647").status == 0
    read = run("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
    assert read == (
        "2147483647",
        "note: the controllers have written 500 times and are not done: the next command "
        'lets them go on, "kubepy controller --once" to the end\n',
        0,
    )
    made = len(run("get", "pods", "-o", "name", "--reconcile=never").out.splitlines())
    assert 0 < made <= 500
    assert run("scale", "deploy", "web", "--replicas=0") == ("deployment.apps/web scaled\n", "", 0)
    assert len(run("get", "pods", "-o", "name", "--reconcile=never").out.splitlines()) == made
    for _ in range(20):
        run("get", "pods")
    assert run("get", "pods", "-o", "name").out == ""


def test_wait_for_a_count_too_large_ends_at_once_and_says_why(folder: Path) -> None:
    run("init")
    run("create", "deployment", "web", "--image=i", "--replicas=2147483647")
    waited = run("rollout", "status", "deploy/web")
    assert waited.status == 1
    assert "this would wait for ever" in waited.err
    assert 'gets 500 of them for now: "kubepy controller --once" lets' in waited.err
    assert run("get", "deploy", "web").err == ""


def test_controller_goes_on_where_a_command_has_stopped(folder: Path) -> None:
    run("init")
    set_up(folder, "limits: {pods: 510}\n")
    run("create", "deployment", "web", "--image=i", "--replicas=2147483647")
    run("get", "pods")
    run("controller", "--once", "-q")
    assert len(run("get", "pods", "-o", "name").out.splitlines()) == 510


# --- the limit of pods ----------------------------------------------------------------------------


def test_pod_beyond_the_limit_is_refused_as_by_a_quota(kubepy: Kubepy, folder: Path) -> None:
    set_up(folder, "limits: {pods: 2}\n")
    for name in ("a", "b"):
        assert kubepy("run", name, "--image=i").status == 0
    refusal = kubepy("run", "c", "--image=i")
    assert refusal == (
        "",
        'Error from server (Forbidden): pods "c" is forbidden: exceeded limit: limits.pods of '
        "kubepy.yaml, requested: pods=1, used: pods=2, limited: pods=2\n",
        1,
    )
    kubepy("delete", "pod", "a", "--force")
    assert kubepy("run", "c", "--image=i").status == 0


def test_controllers_stop_at_the_limit_and_say_so(kubepy: Kubepy, folder: Path) -> None:
    set_up(folder, "limits: {pods: 3}\n")
    kubepy("create", "deployment", "web", "--image=i", "--replicas=5")
    assert len(kubepy("get", "pods", "-o", "name").out.splitlines()) == 3
    message = kubepy(
        "get",
        "deploy",
        "web",
        "-o",
        "jsonpath={.status.conditions[?(@.type=='ReplicaFailure')].message}",
    )
    assert "exceeded limit: limits.pods of kubepy.yaml" in message.out


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("3", "limits: must be a map of pods"),
        ("{pods: many}", 'limits.pods: "many" is not a number of objects such as 200000'),
        ("{nodes: 3}", "limits.nodes: unknown setting: must be pods"),
    ],
)
def test_limits_of_another_form_are_an_error(
    kubepy: Kubepy, folder: Path, value: str, reason: str
) -> None:
    set_up(folder, f"limits: {value}\n")
    done = kubepy("get", "pods")
    assert done.status == 1
    assert reason in done.err


# --- reads that move time -------------------------------------------------------------------------


def poll(kubepy: Kubepy, rounds: int) -> int:
    """Look until the pod is ready; return how often that took, 0 if it has not become so."""
    return next((number for number in range(1, rounds + 1) if kubepy(*PHASE).out == "True"), 0)


def test_polling_loop_ends_where_reads_move_time(own_time: Kubepy, folder: Path) -> None:
    set_kubelet(folder, "{containers: modelled, readyAfter: 5s}")
    own_time("run", "web", "--image=i")
    assert poll(own_time, 30) == 0
    set_up(folder, "tick: reads\n")
    assert 0 < poll(own_time, 30) <= 7


@pytest.mark.parametrize("command", ["plan run b --image=i", "why pod/web", "timeline", "clock"])
def test_commands_that_look_from_beside_move_no_time(
    own_time: Kubepy, folder: Path, command: str
) -> None:
    set_up(folder, "tick: reads\nkubelet: {readyAfter: 5s}\n")
    own_time("run", "web", "--image=i")
    before = (folder / "state/kubepy.yaml").read_text()
    own_time(*command.split())
    assert (folder / "state/kubepy.yaml").read_text() == before


def test_same_commands_give_the_same_bytes_where_reads_move_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = []
    for name in ("one", "two"):
        monkeypatch.setenv("KUBEPY_STATE", str(folder / name))
        run("init", "--clock=2026-01-01T00:00:00Z", "--seed=7")
        with open(folder / name / "kubepy.yaml", "a") as file:
            file.write("tick: reads\nkubelet: {readyAfter: 2s..8s}\n")
        run("create", "deployment", "web", "--image=i", "--replicas=3")
        for _ in range(12):
            run("get", "pods")
        contents.append(
            {
                str(path.relative_to(folder / name)): path.read_bytes()
                for path in sorted((folder / name).rglob("*.yaml"))
            }
        )
    assert contents[0] == contents[1]


def test_reads_cannot_move_the_time_of_the_system(kubepy: Kubepy, folder: Path) -> None:
    set_up(folder, "tick: reads\n")
    done = kubepy("get", "pods")
    assert done.status == 1
    assert "tick: reads goes with a clock" in done.err
