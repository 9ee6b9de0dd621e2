"""Scripts of the model by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.shell.containers import BEGIN, new_machine, result_of, run, run_in_steps

SCRIPTS = {
    "a=x/y.tar.gz; echo \"${a##*/}\" \"${a%.*}\" ${a%%.*}": "y.tar.gz x/y.tar x/y\n",
    'set --; echo a "$@"; for x in "$@"; do echo never; done': "a\n",
    'set -- "b c" d; for x in "$@"; do echo "<$x>"; done': "<b c>\n<d>\n",
    'false; echo $(true) $?': "1\n",
    'x=$(exit 3); echo $?': "3\n",
    "for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done": "1\n3\n",
    "i=0; until [ $i -ge 2 ]; do i=$((i + 1)); done; echo $i": "2\n",
    "case abc in x) echo x;; a*) echo a;; esac": "a\n",
    "f() { local v=1; echo $v $1; return 4; }; f z; echo $?": "1 z\n4\n",
    "echo one > f; echo two >> f; while read l; do echo \"$l!\"; done < f": "one!\ntwo!\n",
    "{ echo out; echo err >&2; } 2>&1": "out\nerr\n",
    "v=1; cat <<E\nv=$v\nE": "v=1\n",
    "cat <<'E'\n$v\nE": "$v\n",
    "(exit 3) || echo $?": "3\n",
    "! false && echo yes": "yes\n",
    "yes | head -n 2": "y\ny\n",
    "(trap 'echo bye' EXIT; exit 2); echo $?": "bye\n2\n",
    "eval 'a=5'; echo $a": "5\n",
    "set -e; if false; then :; fi; false || true; echo on": "on\n",
    "sleep 1 & wait $!; echo $?": "0\n",
    "printf '%s-%03d\\n' a 7": "a-007\n",
    "while getopts ab: o -a -b v; do echo $o$OPTARG; done": "a\nbv\n",
    "(trap 'echo t; exit 9' TERM; sleep 2; echo no) & sleep 1; kill $!; wait $!; echo $?": "t\n9\n",
    "sh -c 'trap \"echo \\$?\" EXIT; exit 300'; echo $?": "300\n44\n",
    "umask 077; command -v echo >/dev/null && echo found": "found\n",
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_of_known_words_prints_what_a_shell_prints(script: str) -> None:
    result = run(script)
    assert (result.stdout, result.status, result.stderr) == (SCRIPTS[script], 0, "")


BASH_SCRIPTS = {
    "printf 'read x\\nline\\necho got $x\\ncat\\nrest\\n' | bash": "got line\nrest\n",
    "bash <<'A'\ncat <<B\ndoc\nB\nif true; then\nread y\nfi\nl2\necho \\\n $y\nA": "doc\nl2\n",
    "cat <(echo 1) <(echo 2)": "1\n2\n",
    "diff <(seq 2) <(echo 1; echo 3) | tail -n 1": "> 3\n",
    "n=0; while read x; do n=$((n + x)); done < <(seq 3); echo $n": "6\n",
    "f() { cat <(echo in); }; cat <(f) <(f; echo two)": "in\nin\ntwo\n",
    "true; echo $?$(false)$?$(exit 3)$?": "013\n",
    'set -u; X=; echo "[${X%$nothing}]"': "[]\n",
}


@pytest.mark.parametrize("script", BASH_SCRIPTS)
def test_script_of_bash_prints_what_bash_prints(script: str) -> None:
    result = run(script, shell="bash")
    assert (result.stdout, result.status, result.stderr) == (BASH_SCRIPTS[script], 0, "")


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 7", 7),
        ("set -e; false; exit 0", 1),
        ("./missing.sh", 127),
        ("echo 'abc", 2),
        ("if true; then echo", 2),
        ("set -u; echo $nothing", 2),
        ("false | true", 0),
        ("sh -c 'kill -9 $$'", 137),
    ],
)
def test_script_that_fails_ends_with_its_status(script: str, status: int) -> None:
    assert run(script).status == status


def test_exit_after_a_substitution_that_waits_forgets_its_output() -> None:
    machine = new_machine("trap 'echo end $(echo new)' EXIT; trap 'exit 3' TERM; echo $(sleep 9)")
    machine.run(BEGIN + timedelta(seconds=1))
    machine.signal(1, 15)
    machine.run(BEGIN + timedelta(seconds=20))
    result = result_of(machine)
    assert (result.stdout, result.status) == ("end new\n", 3)


def test_main_process_that_ignores_term_ends_by_kill_only() -> None:
    machine = new_machine("trap '' TERM; sleep 1000")
    machine.run(BEGIN)
    machine.signal(1, 15)
    machine.run(BEGIN + timedelta(seconds=5))
    assert machine.exit_of(1) is None
    machine.signal(1, 9)
    assert result_of(machine).status == 137


def test_main_process_without_a_trap_ends_by_term_from_outside() -> None:
    machine = new_machine("sleep 1000")
    machine.signal(1, 15)
    machine.run(BEGIN + timedelta(seconds=5))
    assert result_of(machine).status == 143


def test_main_process_without_a_trap_keeps_a_signal_from_inside_away() -> None:
    machine = new_machine("kill $$; echo still here")
    machine.run(BEGIN)
    assert result_of(machine).stdout == "still here\n"


def test_trap_while_a_foreground_child_runs_waits_for_the_child() -> None:
    machine = new_machine("trap 'echo got; exit 3' TERM; sleep 10")
    machine.run(BEGIN + timedelta(seconds=1))
    machine.signal(1, 15)
    machine.run(BEGIN + timedelta(seconds=30))
    result = result_of(machine)
    assert (result.stdout, result.status, result.seconds) == ("got\n", 3, 10.0)


def test_trap_while_wait_waits_runs_at_once() -> None:
    machine = new_machine("trap 'echo got; exit 3' TERM; sleep 10 & wait")
    machine.run(BEGIN + timedelta(seconds=1))
    machine.signal(1, 15)
    machine.run(BEGIN + timedelta(seconds=30))
    result = result_of(machine)
    assert (result.stdout, result.status, result.seconds) == ("got\n", 3, 1.0)


def test_unknown_program_runs_on_and_is_named_once() -> None:
    machine = new_machine("my-server --port 80; echo never")
    machine.run(BEGIN + timedelta(days=1))
    assert (machine.unknowns, machine.exit_of(1)) == (["my-server"], None)


def test_loop_that_takes_no_time_runs_on() -> None:
    machine = new_machine("while :; do :; done")
    machine.run(BEGIN + timedelta(days=1))
    assert (machine.now, machine.exit_of(1)) == (BEGIN + timedelta(days=1), None)


@pytest.mark.parametrize(
    "script",
    [
        "for i in 1 2 3; do echo $i; sleep 1; done",
        "{ for i in 1 2; do echo $i; sleep 2; done; } | while read l; do echo got $l; done",
        "x=$(sleep 1; echo a); f() { sleep 0.5; echo $1 $x; }; f b; (sleep 1; exit 4); echo $?",
        "sleep 3 & sleep 1; echo first; wait; echo last; trap 'echo bye' EXIT; exit 5",
        "while read a b; do sleep 1; echo $b; done <<E\n1 2\n3 4\nE",
    ],
)
def test_script_that_goes_through_json_does_the_same(script: str) -> None:
    assert run_in_steps(script) == run(script)


def test_endless_loop_goes_on_from_json() -> None:
    script = "while true; do echo tick; sleep 1; done"
    assert run_in_steps(script, seconds=9.5).stdout == "tick\n" * 10


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_errexit_does_not_end_a_subshell_within_a_condition(shell: str) -> None:
    script = (
        "f() { (set -e; false; echo no); echo $?; }; f || echo bad; set -e; "
        "if false | (false; echo p); then echo q; fi; (false; echo never)"
    )
    result = run(script, shell=shell)
    assert (result.stdout, result.status) == ("no\n0\np\nq\n", 1)
