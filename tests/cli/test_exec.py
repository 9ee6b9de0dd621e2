"""``exec`` and ``attach`` in containers that are fakes (``tests/kubelet/fakemachine.py``)."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Done, Kubepy
from tests.kubelet import fakemachine
from tests.kubelet.fakemachine import FakeContainers

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, image: nginx, stdin: true}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, annotations: {kubepy.dev/log.b: "from b"}}
spec:
  containers: [{name: a, image: nginx}, {name: b, image: nginx}]
  initContainers: [{name: i, image: i}]
---
apiVersion: v1
kind: Pod
metadata: {name: done, annotations: {kubepy.dev/outcome: succeeded}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: chosen, annotations: {kubectl.kubernetes.io/default-container: b}}
spec: {containers: [{name: a, image: nginx}, {name: b, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pull, annotations: {kubepy.dev/outcome: image-pull-backoff}}
spec: {containers: [{name: c, image: nginx}]}
"""
HELP = "See 'kubepy exec -h' for help and examples"
OLD_FORM = "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead"
DEFAULTED = 'Defaulted container "a" out of: a, b, i (init)\n'


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> FakeContainers:
    return fakemachine.install(monkeypatch)


@pytest.fixture
def kubepy(bare: Kubepy, containers: FakeContainers) -> Kubepy:
    bare("init", "--nodes=1", "--clock=2026-01-01T00:00:00Z")
    assert bare("apply", "-f", "-", stdin=PODS).status == 0
    assert bare("controller", "--once", "-q").status == 0
    return bare


@pytest.mark.parametrize(
    ("words", "done"),
    [
        ("web -- echo hello", Done("hello\n", "", 0)),
        ("pod/web -- echo hello", Done("hello\n", "", 0)),
        ("two -- echo hello", Done("hello\n", DEFAULTED, 0)),
        ("two -q -- echo hello", Done("hello\n", "", 0)),
        ("two -c b -- echo hello", Done("hello\n", "", 0)),
        ("chosen -- echo hello", Done("hello\n", "", 0)),
        ("web -- echo -n -c", Done("-n -c\n", "", 0)),
        ("web -- fail 3", Done("", "failed\ncommand terminated with exit code 3\n", 3)),
        ("web -- sleep 3600", Done("", "", 0)),
        ("web -- strange", Done("", "note: strange: not known here, so it does nothing\n", 0)),
        (
            "web -- missing",
            Done(
                "",
                "error: Internal error occurred: error executing "
                'command in container: failed to exec in container: exec: "missing": executable '
                "file not found in $PATH\n",
                1,
            ),
        ),
        ("web echo hello", Done("", f"error: {OLD_FORM}\n{HELP}\n", 1)),
        ("web", Done("", "error: you must specify at least one command for the container\n", 1)),
        ("-- ls", Done("", "error: pod, type/name or --filename must be specified\n", 1)),
        (
            "web -c x -- ls",
            Done("", "error: container x is not valid for pod web out of: c\n", 1),
        ),
        (
            "two -c x -- ls",
            Done("", "error: container x is not valid for pod two out of: a, b, i (init)\n", 1),
        ),
        (
            "done -- ls",
            Done(
                "",
                "error: cannot exec into a container in a completed pod; current phase is "
                "Succeeded\n",
                1,
            ),
        ),
        ("none -- ls", Done("", 'Error from server (NotFound): pods "none" not found\n', 1)),
        (
            "pull -- ls",
            Done(
                "",
                "error: Internal error occurred: unable to upgrade "
                'connection: container not found ("c")\n',
                1,
            ),
        ),
    ],
)
def test_exec_prints_what_command_prints(kubepy: Kubepy, words: str, done: Done) -> None:
    assert kubepy("exec", *words.split()) == done


def test_exec_with_stdin_feeds_command(kubepy: Kubepy) -> None:
    assert kubepy("exec", "-i", "web", "--", "cat", stdin="one\ntwo\n") == Done("one\ntwo\n", "", 0)
    assert kubepy("exec", "web", "--", "cat", stdin="one\n") == Done("", "", 0)


def test_exec_with_tty_but_no_terminal_says_so(kubepy: Kubepy) -> None:
    done = kubepy("exec", "-it", "web", "--", "echo", "x")
    assert done.err == ("Unable to use a TTY - input is not a terminal or the right kind of file\n")
    assert done.out == "x\n"


def test_exec_of_sleep_moves_own_clock(kubepy: Kubepy) -> None:
    before = kubepy("clock").out
    assert kubepy("exec", "web", "--", "sleep", "3600").status == 0
    assert before.startswith("2026-01-01T00:0")
    assert kubepy("clock").out.startswith("2026-01-01T01:0")


def test_exec_in_workload_takes_its_pod(kubepy: Kubepy, containers: FakeContainers) -> None:
    kubepy("create", "deployment", "app", "--image=app")
    kubepy("expose", "deployment", "app", "--port=80")
    kubepy("controller", "--once", "-q")
    assert kubepy("exec", "deploy/app", "--", "echo", "x") == Done("x\n", "", 0)
    assert kubepy("exec", "svc/app", "--", "echo", "y") == Done("y\n", "", 0)
    machines = [key for key in containers.machines if key[0].startswith("app-")]
    assert len(machines) == 1


def test_exec_in_pod_that_is_deleted_ends_as_killed(
    kubepy: Kubepy, containers: FakeContainers
) -> None:
    kubepy("annotate", "pod", "web", "kubepy.dev/runs-for=30s")
    done = kubepy("exec", "web", "--", "sleep", "100")
    assert done == Done("", "command terminated with exit code 137\n", 137)


def test_attach_prints_until_container_ends(kubepy: Kubepy) -> None:
    kubepy("annotate", "pod", "web", "kubepy.dev/runs-for=30s")
    done = kubepy("attach", "web")
    assert (done.out, done.status) == ("", 0)
    assert done.err.endswith("If you don't see a command prompt, try pressing enter.\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", "at least 1 argument is required for attach"),
        ("a b c", "expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw 3: [a b c]"),
        ("web --pod-running-timeout=0", "--pod-running-timeout must be higher than zero"),
        (
            "done",
            "cannot attach a container in a completed pod; current phase is Succeeded",
        ),
        (
            "two -c x",
            "cannot attach to the container: container x is not valid for pod two out of: "
            "a, b, i (init)",
        ),
    ],
)
def test_attach_to_what_cannot_be_attached_is_error(kubepy: Kubepy, words: str, error: str) -> None:
    assert kubepy("attach", *words.split()) == Done("", f"error: {error}\n", 1)
