"""Commands that look inside containers whose programs are modelled, in the cluster's own time."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: ticks}
spec:
  containers:
  - {name: c, image: busybox, command: [sh, -c, 'while true; do echo tick; sleep 5; done']}
---
apiVersion: v1
kind: Pod
metadata: {name: few, labels: {app: few}}
spec:
  restartPolicy: Never
  initContainers:
  - {name: i, image: busybox, command: [sh, -c, echo first]}
  containers:
  - {name: c, image: busybox, command: [sh, -c, 'for i in 1 2 3; do echo line $i; sleep 2; done']}
  - {name: d, image: busybox, command: [sh, -c, 'sleep 3; printf part; sleep 1; echo ed']}
---
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  containers:
  - {name: c, image: busybox, command: [sh, -c, 'echo run; sleep 2; exit 1']}
---
apiVersion: v1
kind: Pod
metadata: {name: flag}
spec:
  containers:
  - name: c
    image: busybox
    command: [sleep, infinity]
    readinessProbe: {exec: {command: [test, -e, /tmp/flag]}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: nginx, ports: [{containerPort: 80}]}]}
"""
ATTACHED = (
    "All commands and output from this session will be recorded in container logs, including "
    "credentials and sensitive information passed through the command prompt.\n"
    "If you don't see a command prompt, try pressing enter.\n"
)


@pytest.fixture
def kubepy(bare: Kubepy, monkeypatch: pytest.MonkeyPatch) -> Kubepy:
    monkeypatch.setenv("KUBEPY_CONTAINERS", "modelled")
    bare("init", "--clock=2026-01-01T00:00:00Z", "--seed=7")
    assert bare("apply", "-f", "-", stdin=PODS).status == 0
    bare("controller", "--once", "-q")
    return bare


def test_exec_returns_output_and_exit_status(kubepy: Kubepy) -> None:
    done = kubepy("exec", "ticks", "--", "sh", "-c", "echo $((6 * 7)); hostname; exit 3")
    assert done == Done("42\nticks\n", "command terminated with exit code 3\n", 3)


def test_exec_reads_script_from_stdin(kubepy: Kubepy) -> None:
    script = "echo one\nword=two\necho got $word\n"
    done = kubepy("exec", "-i", "ticks", "--", "sh", stdin=script)
    assert done == Done("one\ngot two\n", "", 0)


def test_name_of_a_pod_that_was_removed_at_its_end_is_free_at_once(kubepy: Kubepy) -> None:
    run = ("run", "typed", "-i", "--rm", "--image=busybox", "--", "sh")
    assert kubepy(*run, stdin="echo one\n").status == 0
    assert kubepy("create", "configmap", "other").status == 0
    assert "two\n" in kubepy(*run, stdin="echo two\n").out


def test_shell_goes_on_after_a_program_that_is_not_known(kubepy: Kubepy) -> None:
    done = kubepy(
        *("run", "typed", "-i", "--rm", "--restart=Never", "--image=busybox"),
        stdin="ethtool eth0\necho still here\n",
    )
    assert (done.status, "still here\n" in done.out) == (0, True)


def test_exec_that_sleeps_beside_a_loop_ends_after_its_time(kubepy: Kubepy) -> None:
    before = int(kubepy("exec", "ticks", "--", "date", "+%s").out)
    assert kubepy("exec", "ticks", "--", "sleep", "12") == Done("", "", 0)
    after = int(kubepy("exec", "ticks", "--", "date", "+%s").out)
    assert after - before == 12


def test_file_that_exec_writes_makes_pod_ready(kubepy: Kubepy) -> None:
    assert "0/1" in kubepy("get", "pod", "flag").out
    assert kubepy("exec", "flag", "--", "touch", "/tmp/flag") == Done("", "", 0)
    done = kubepy("wait", "--for=condition=Ready", "pod/flag", "--timeout=10s")
    assert done == Done("pod/flag condition met\n", "", 0)


def test_cp_carries_file_both_ways(kubepy: Kubepy, folder: Path) -> None:
    (folder / "near").write_text("data\n")
    assert kubepy("cp", "near", "ticks:/tmp/far").status == 0
    assert kubepy("exec", "ticks", "--", "cat", "/tmp/far").out == "data\n"
    assert kubepy("cp", "ticks:/tmp/far", "back").status == 0
    assert (folder / "back").read_text() == "data\n"


def test_attach_prints_what_comes_until_the_container_ends(kubepy: Kubepy) -> None:
    assert kubepy("attach", "few", "-c", "c") == Done("line 2\nline 3\n", ATTACHED, 0)


def test_attach_feeds_container_whose_stdin_stays_open(kubepy: Kubepy) -> None:
    script = "while read x; do echo got $x; done; echo end"
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: reads}\nspec:\n  containers:\n"
        f"  - {{name: c, image: busybox, stdin: true, command: [sh, -c, '{script}']}}\n"
    )
    kubepy("apply", "-f", "-", stdin=pod)
    kubepy("controller", "--once", "-q")
    begin = kubepy("clock").out
    assert kubepy("attach", "-i", "reads", stdin="one\n") == Done("got one\n", ATTACHED, 0)
    assert kubepy("attach", "-i", "-q", "reads", stdin="two\n") == Done("got two\n", "", 0)
    assert kubepy("clock").out == begin
    assert kubepy("get", "pod", "reads", "--no-headers").out.split()[1:3] == ["1/1", "Running"]


@pytest.mark.parametrize(
    ("command", "stdin", "done"),
    [
        ("cat", "a line\n", Done("a line\n", ATTACHED, 0)),
        ("sh", "echo hello $HOSTNAME\n", Done("hello one\n", ATTACHED, 0)),
        ("sh -c 'sleep 3; echo later'", "", Done("later\n", ATTACHED, 0)),
    ],
)
def test_run_attached_prints_and_removes_pod(
    kubepy: Kubepy, command: str, stdin: str, done: Done
) -> None:
    words = ("run", "-i", "--rm", "--restart=Never", "one", "--image=busybox", "--")
    deleted = 'pod "one" deleted from default namespace\n'
    assert kubepy(*words, *shlex.split(command), stdin=stdin) == done._replace(
        out=done.out + deleted
    )
    assert kubepy("get", "pod", "one").status == 1


def test_run_attached_ends_with_status_of_pod(kubepy: Kubepy) -> None:
    words = ("run", "-i", "--rm", "--restart=Never", "one", "--image=busybox", "--")
    done = kubepy(*words, "sh", "-c", "echo done; exit 5")
    assert done.out == 'done\npod "one" deleted from default namespace\n'
    assert done.status == 5


def test_debug_container_shares_network_of_pod(kubepy: Kubepy) -> None:
    fetch = "echo inside; wget -qO- localhost:80"
    done = kubepy("debug", "web", "-i", "-c", "d", "--image=busybox", "--", "sh", "-c", fetch)
    assert done.status == 0
    assert done.out.startswith("inside\n<!DOCTYPE html>")


# --- logs


def test_logs_followed_print_what_comes(kubepy: Kubepy) -> None:
    assert kubepy("logs", "few", "-c", "c").out == "line 1\n"
    assert kubepy("logs", "-f", "few", "-c", "c") == Done("line 1\nline 2\nline 3\n", "", 0)


def test_logs_of_all_containers_followed_have_a_prefix_at_each_line(kubepy: Kubepy) -> None:
    done = kubepy("logs", "-f", "few", "--all-containers", "--prefix")
    assert sorted(done.out.splitlines()) == [
        "[pod/few/c] line 1",
        "[pod/few/c] line 2",
        "[pod/few/c] line 3",
        "[pod/few/d] parted",
        "[pod/few/i] first",
    ]


def test_logs_followed_with_tail_and_limit_end_there(kubepy: Kubepy) -> None:
    assert kubepy("logs", "-f", "few", "-c", "c", "--tail=0").out == "line 2\nline 3\n"
    assert kubepy("logs", "-f", "ticks", "--limit-bytes=12").out == "tick\ntick\nti"


def test_logs_followed_end_with_the_run(kubepy: Kubepy) -> None:
    assert kubepy("logs", "-f", "crash") == Done("run\n", "", 0)
    kubepy("clock", "advance", "1m")
    assert kubepy("logs", "crash", "--previous") == Done("run\n", "", 0)


def test_logs_are_chosen_by_their_times(kubepy: Kubepy) -> None:
    kubepy("logs", "-f", "few", "-c", "c")
    since = kubepy("logs", "few", "-c", "c", "--since=3s")
    assert since == Done("line 3\n", "", 0)
    last = kubepy("logs", "few", "-c", "c", "--timestamps", "--tail=1").out
    time, _, text = last.partition(" ")
    assert text == "line 3\n"
    assert kubepy("logs", "few", "-c", "c", f"--since-time={time}").out == "line 3\n"
    selected = kubepy("logs", "-l", "app=few", "--all-containers", "--tail=1")
    assert selected.out == "first\nline 3\nparted\n"


# --- what is not known


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (
            "strange --image=example/strange",
            'container "strange": the image "example/strange" is not known: it runs until it is '
            "stopped",
        ),
        (
            "strange --image=busybox --command -- mytool -x",
            'container "strange": "mytool" is not known: it runs until it is stopped',
        ),
        (
            "strange --image=busybox -- sh -c 'mytool; sleep 9'",
            'container "strange": "mytool" is not known: it runs until it is stopped',
        ),
    ],
)
def test_unknown_image_or_program_is_told_once(kubepy: Kubepy, words: str, note: str) -> None:
    kubepy("run", *shlex.split(words))
    kubepy("wait", "--for=condition=Ready", "pod/strange")
    described = kubepy("describe", "pod", "strange").out
    assert [line.split(None, 2)[2] for line in described.splitlines() if "Not Known" in line] == [
        note
    ]
    assert described.count("is not known") == 1
    asked = kubepy("why", "pod/strange").out
    assert asked.count(f"note: {note}\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        """--overrides='{"spec":{"nodeSelector":{"disk":"none"}}}'""",
        """--overrides='{"spec":{"schedulingGates":[{"name":"example.com/quota"}]}}'""",
        """--overrides='{"spec":{"volumes":[{"name":"v","configMap":{"name":"none"}}]}}'""",
    ],
)
def test_why_keeps_silent_on_unknown_image_that_has_not_run(kubepy: Kubepy, options: str) -> None:
    kubepy("run", *shlex.split(f"strange --image=example/strange {options}"))
    kubepy("clock", "advance", "1s")
    asked = kubepy("why", "pod/strange")
    assert asked.status == 2
    assert "note:" not in asked.out
    assert "is not known" in kubepy("describe", "pod", "strange").out


def test_why_keeps_silent_on_unknown_image_of_pod_that_goes(kubepy: Kubepy) -> None:
    options = "--image=example/strange --annotations=kubepy.dev/stops-after=20s"
    kubepy("run", "strange", *options.split())
    kubepy("wait", "--for=condition=Ready", "pod/strange")
    kubepy("delete", "pod", "strange", "--wait=false")
    assert "note:" not in kubepy("why", "pod/strange").out


def test_known_pod_has_no_note(kubepy: Kubepy) -> None:
    for name in ("web", "ticks", "few"):
        assert "Not Known" not in kubepy("describe", "pod", name).out
        assert "note:" not in kubepy("why", f"pod/{name}").out


def test_proxy_passes_request_on_to_pod_and_service(kubepy: Kubepy) -> None:
    kubepy("label", "pod", "web", "app=web")
    kubepy("expose", "pod", "web", "--port=8080", "--target-port=80")
    kubepy("controller", "--once", "-q")
    pods = "/api/v1/namespaces/default/pods"
    services = "/api/v1/namespaces/default/services"
    for path in (f"{pods}/web/proxy/", f"{pods}/web:80/proxy/", f"{services}/web:8080/proxy/"):
        assert kubepy("get", "--raw", path).out.startswith("<!DOCTYPE html>"), path
    refused = kubepy("get", "--raw", f"{pods}/web:81/proxy/")
    assert "error trying to reach service: dial tcp 10.244.0." in refused.err
    assert refused.err.endswith(":81: connect: connection refused\n")


def test_logs_limit_of_no_bytes_is_no_limit(kubepy: Kubepy) -> None:
    assert kubepy("logs", "ticks", "--limit-bytes=0").out == "tick\n"
    assert kubepy("logs", "ticks", "--limit-bytes=-1").err == (
        "error: --limit-bytes must be greater than 0\n"
    )


def test_logs_of_all_pods_do_not_name_default_containers(kubepy: Kubepy) -> None:
    kubepy("create", "deployment", "two", "--image=nginx", "--image=redis", "--replicas=2")
    kubepy("rollout", "status", "deployment/two")
    assert "Defaulted container" in kubepy("logs", "deployment/two").err
    assert kubepy("logs", "deployment/two", "--all-pods").err == ""
