"""The processes of a container: signals, jobs, pipes, time, and that all of it survives JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import pytest

from kubepy.shell.machine import Machine, Output, StartError
from tests.shell.shells import NOW, new_machine, read_back

INT, KILL, TERM = 2, 9, 15
Act = Callable[[Machine], object]


class Story(NamedTuple):
    """A script and what happens to it.

    :ivar acts: what is done to the machine after so many seconds.
    """

    script: str
    seconds: float = 60
    acts: tuple[tuple[float, Act], ...] = ()
    stdin: bytes | None = b""
    shell: str = "sh"


class Ending(NamedTuple):
    """What came of a story: lines with the second at which each was printed, and its end."""

    lines: list[str]
    end: tuple[int, float] | None
    errors: str = ""


def _tell(story: Story, step: Callable[[Machine], Machine]) -> Ending:
    machine = new_machine()
    pid = machine.start([story.shell, "-c", story.script], is_main=True, stdin=story.stdin)
    parts: list[Output] = []
    acts = [(NOW + timedelta(seconds=seconds), act) for seconds, act in story.acts]
    for moment, act in [*acts, (NOW + timedelta(seconds=story.seconds), lambda machine: None)]:
        machine = _run(machine, moment, step)
        act(machine)
        machine = step(machine)
        machine.run(moment)
    parts = machine.take_output(pid)
    end = machine.exit_of(pid)
    lines = [
        f"{_second(part.time)}: {line}"
        for part in parts
        if part.stream == "stdout"
        for line in part.data.decode().splitlines()
    ]
    errors = "".join(part.data.decode() for part in parts if part.stream == "stderr")
    return Ending(lines, (end.code, _second(end.time)) if end else None, errors)


def _run(machine: Machine, until: datetime, step: Callable[[Machine], Machine]) -> Machine:
    """Run from one moment at which something happens to the next one."""
    while True:
        moment = machine.next_time()
        if moment is None or moment > until:
            machine.run(until)
            return machine
        machine.run(moment)
        machine = step(machine)


def _second(moment: datetime) -> float:
    return round((moment - NOW).total_seconds(), 3)


def tell(story: Story) -> Ending:
    """Run a story as it is, and once more through JSON at every event: both come out the same."""
    ending = _tell(story, lambda machine: machine)
    assert _tell(story, read_back) == ending
    return ending


def signal(number: int, pid: int = 1) -> Act:
    return lambda machine: machine.signal(pid, number)


def feed(data: bytes | None, pid: int = 1) -> Act:
    return lambda machine: machine.write_stdin(pid, data)


def run(script: str, seconds: float = 60, shell: str = "sh") -> Ending:
    return tell(Story(script, seconds, shell=shell))


# --- time


def test_sleep_passes_the_time_of_the_machine() -> None:
    ending = run("echo a; sleep 2.5; echo b; sleep 1m; echo c; exit 4", seconds=100)
    assert ending == Ending(["0.0: a", "2.5: b", "62.5: c"], (4, 62.5))


def test_endless_loop_with_sleep_goes_on() -> None:
    ending = run("i=0; while true; do echo $i; i=$((i+1)); sleep 20; done")
    assert ending == Ending(["0.0: 0", "20.0: 1", "40.0: 2", "60.0: 3"], None)


def test_busy_loop_does_not_stop_the_world_and_is_alive_later() -> None:
    machine = new_machine()
    machine.start(["sh", "-c", "while :; do :; done"], is_main=True)
    machine.run(NOW + timedelta(days=1))
    assert machine.exit_of(1) is None
    assert machine.now == NOW + timedelta(days=1)
    moment = machine.next_time()
    assert moment is not None
    assert moment > machine.now


def test_long_computation_ends_after_some_time() -> None:
    ending = run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $i")
    assert ending.end is not None
    assert [line.partition(": ")[2] for line in ending.lines] == ["20000"]
    assert 0 < ending.end[1] < 10


def test_date_says_the_time_of_the_machine() -> None:
    ending = run("date +%H:%M:%S; sleep 60; date +%H:%M:%S", seconds=61)
    assert ending.lines == ["0.0: 09:07:03", "60.0: 09:08:03"]


def test_sleep_for_ever_has_no_next_time() -> None:
    machine = new_machine()
    machine.start(["sleep", "infinity"], is_main=True)
    machine.run(NOW)
    assert machine.next_time() is None
    assert machine.exit_of(1) is None


def test_sleep_with_a_wrong_time_fails() -> None:
    ending = run("sleep soon; echo $?; sleep; echo $?")
    assert ending.lines == ["0.0: 1", "0.0: 1"]


# --- signals


def test_first_process_ends_by_a_signal_from_outside_that_it_does_not_handle() -> None:
    story = Story("sleep 10; echo done", acts=((1, signal(TERM)), (2, signal(INT))))
    assert tell(story) == Ending([], (143, 1.0))


def test_first_process_ignores_a_signal_for_which_its_trap_is_empty() -> None:
    story = Story("trap '' TERM INT; sleep 10; echo done", acts=((1, signal(TERM)),))
    assert tell(story) == Ending(["10.0: done"], (0, 10.0))


def test_kill_ends_the_first_process_at_once() -> None:
    story = Story("sleep 10; echo done", acts=((3, signal(KILL)),))
    assert tell(story) == Ending([], (137, 3.0))


def test_trap_is_carried_out_after_the_command_that_runs() -> None:
    story = Story("trap 'echo bye; exit 3' TERM; sleep 10; echo on", acts=((4, signal(TERM)),))
    assert tell(story) == Ending(["10.0: bye"], (3, 10.0))


def test_trap_interrupts_wait() -> None:
    script = "trap 'echo bye; exit 0' TERM INT; sleep 100 & wait $!"
    assert tell(Story(script, acts=((4, signal(TERM)),))) == Ending(["4.0: bye"], (0, 4.0))


def test_wait_that_a_trap_interrupts_has_the_status_of_the_signal() -> None:
    script = "trap 'echo got' USR1; sleep 9 & wait $!; echo $?; wait $!; echo $?"
    ending = tell(Story(script, acts=((2, signal(10)),)))
    assert ending == Ending(["2.0: got", "2.0: 138", "9.0: 0"], (0, 9.0))


def test_trap_of_exit_runs_once_at_the_end() -> None:
    assert run("trap 'echo end $?' EXIT; echo a; exit 5").lines == ["0.0: a", "0.0: end 5"]
    assert run("trap 'echo end' EXIT; echo a; false").lines == ["0.0: a", "0.0: end"]
    assert run("trap 'exit 9' EXIT; exit 5").end == (9, 0.0)


def test_trap_that_is_empty_ignores_a_signal_in_children_too() -> None:
    script = "trap '' TERM; (sh -c 'kill -TERM $$; echo alive'); trap - TERM; echo end"
    assert run(script).lines == ["0.0: alive", "0.0: end"]


def test_child_ends_by_a_signal_that_it_does_not_handle() -> None:
    ending = run("sleep 100 & kill $!; wait $!; echo $?; sleep 50 & kill -9 $!; wait $!; echo $?")
    assert ending == Ending(["0.0: 143", "0.0: 137"], (0, 0.0))


def test_kill_of_a_process_that_is_not_there_fails() -> None:
    ending = run("kill -0 $$ && echo me; kill 999; echo $?; kill -s NONE $$; echo $?")
    assert ending.lines == ["0.0: me", "0.0: 1", "0.0: 1"]


def test_process_that_ends_by_a_signal_has_its_number() -> None:
    machine = new_machine()
    machine.start(["sleep", "9"], is_main=True)
    pid = machine.start(["sh", "-c", "sleep 9"])
    machine.run(NOW)
    machine.signal(pid, TERM)
    end = machine.exit_of(pid)
    assert end is not None
    assert (end.code, end.signal) == (143, TERM)
    assert machine.exit_of(1) is None


def test_all_processes_end_with_the_first_one() -> None:
    machine = new_machine()
    machine.start(["sh", "-c", "sleep 100 & sleep 5"], is_main=True)
    pid = machine.start(["sleep", "1000"])
    machine.run(NOW + timedelta(seconds=6))
    end = machine.exit_of(pid)
    assert end is not None
    assert (end.code, end.signal) == (137, KILL)
    assert machine.next_time() is None


# --- jobs


def test_jobs_run_beside_one_another() -> None:
    script = "(sleep 2; echo two) & (sleep 1; echo one) & echo zero; wait; echo end"
    assert run(script) == Ending(["0.0: zero", "1.0: one", "2.0: two", "2.0: end"], (0, 2.0))


def test_wait_gives_the_status_of_the_job_it_names() -> None:
    script = (
        "(sleep 2; exit 3) & a=$!; (exit 4) & wait $!; echo $?; wait $a; echo $?; wait 99; echo $?"
    )
    assert run(script).lines == ["0.0: 4", "2.0: 3", "2.0: 127"]


def test_job_reads_nothing() -> None:
    assert run("cat & wait; echo $?").lines == ["0.0: 0"]


def test_shell_that_ends_leaves_its_jobs_behind() -> None:
    ending = run("sh -c '(sleep 3; echo late) & echo early'; sleep 5")
    assert ending == Ending(["0.0: early", "3.0: late"], (0, 5.0))


# --- pipes


def test_pipeline_runs_while_it_is_read() -> None:
    script = "while true; do echo tick; sleep 1; done | head -n 3; echo $?"
    assert run(script).lines == ["2.0: tick", "2.0: tick", "2.0: tick", "3.0: 0"]


def test_pipe_that_is_full_makes_its_writer_wait() -> None:
    writer = "while [ $i -lt 40 ]; do head -c 4096 f; i=$((i+1)); done; date +%S > when"
    script = f"i=0; ({writer}) | (sleep 7; wc -c)"
    machine = new_machine({"f": "x" * 4096})
    machine.start(["sh", "-c", script], is_main=True)
    machine.run(NOW + timedelta(seconds=60))
    assert b"".join(part.data for part in machine.take_output(1)).strip() == b"163840"
    assert machine.files.read("/task/when") == b"10\n"


def test_writer_to_a_closed_pipe_ends_by_sigpipe() -> None:
    ending = run("(yes; echo never) | head -n 1; (trap '' PIPE; exit 0); echo end")
    assert ending.lines == ["0.0: y", "0.0: end"]


def test_pipefail_is_the_last_status_that_failed() -> None:
    script = "set -o pipefail; (exit 3) | (exit 4) | true; echo $?; true | true; echo $?"
    assert run(script, shell="bash").lines == ["0.0: 4", "0.0: 0"]


def test_variable_that_a_part_of_a_pipeline_sets_is_lost() -> None:
    assert run("x=1; echo 2 | read x; echo $x; echo 3 | { read x; echo $x; }").lines == [
        "0.0: 1",
        "0.0: 3",
    ]


def test_tee_and_cat_hand_on_what_comes_while_it_comes() -> None:
    script = "(echo a; sleep 2; echo b) | cat | tee copy; cat copy"
    assert run(script).lines == ["0.0: a", "2.0: b", "2.0: a", "2.0: b"]


def test_tail_follows_a_file() -> None:
    script = "echo 1 > log; (sleep 1; echo 2 >> log; sleep 1; echo 3 >> log) & tail -f log"
    ending = run(script)
    assert ending == Ending(["0.0: 1", "1.0: 2", "2.0: 3"], None)


def test_tail_of_a_file_that_comes_later_waits_with_big_f_only() -> None:
    script = "(sleep 1; echo new > log) & tail -F log 2>/dev/null"
    assert run(script).lines == ["1.0: new"]
    assert run("tail -f none 2>/dev/null; echo $?").lines == ["0.0: 1"]


# --- input


def test_input_that_comes_later_is_read_line_by_line() -> None:
    story = Story(
        'while read -r line; do echo "got $line"; done; echo end',
        acts=((1, feed(b"one\ntw")), (2, feed(b"o\n")), (3, feed(None))),
        stdin=None,
    )
    assert tell(story) == Ending(["1.0: got one", "2.0: got two", "3.0: end"], (0, 3.0))


def test_program_that_needs_all_of_its_input_waits_for_its_end() -> None:
    story = Story("sort", acts=((1, feed(b"b\n")), (2, feed(b"a\n")), (5, feed(None))), stdin=None)
    assert tell(story) == Ending(["5.0: a", "5.0: b"], (0, 5.0))


def test_shell_without_a_script_reads_its_input() -> None:
    machine = new_machine()
    machine.start(["sleep", "infinity"], is_main=True)
    pid = machine.start(["sh"], stdin=None)
    machine.run(NOW)
    assert machine.waits_for_input(pid)
    outputs = []
    for data in (b"x=3\n", b"if true; then\n", b"echo $x\nfi\n", b"exit 6\n"):
        machine.write_stdin(pid, data)
        machine.run(machine.now + timedelta(seconds=1))
        outputs.append(b"".join(part.data for part in machine.take_output(pid)))
        machine = read_back(machine)
    assert outputs == [b"", b"", b"3\n", b""]
    end = machine.exit_of(pid)
    assert end is not None
    assert end.code == 6


def test_terminal_has_one_stream() -> None:
    machine = new_machine()
    pid = machine.start(["sh", "-c", "echo out; echo err >&2"], tty=True, is_main=True)
    machine.run(NOW)
    assert [(part.stream, part.data) for part in machine.take_output(pid)] == [
        ("stdout", b"out\nerr\n")
    ]
    assert machine.take_output(pid) == []


# --- scripts


@pytest.mark.parametrize(
    ("script", "lines", "code"),
    [
        ("set -e; echo a; false; echo b", ["a"], 1),
        ("set -e; f() { false; echo in; }; f || echo or; f; echo b", ["in"], 1),
        ("set -e; if false; then :; fi; ! true; false || true; echo b", ["b"], 0),
        ("set -e; (exit 3); echo b", [], 3),
        ("set -e; x=$(false); echo b", [], 1),
        ("set -e; false | true; echo b; true | false; echo c", ["b"], 1),
        ("set -e; while false; do :; done; until true; do :; done; echo b", ["b"], 0),
        ("set -u; echo ${x:-a}; echo $x; echo b", ["a"], 2),
        ("echo ${x:?is missing}; echo b", [], 2),
        ("f() { local x=2; echo $x; }; x=1; f; echo $x", ["2", "1"], 0),
        ("f() { [ $1 -gt 0 ] || return 7; echo $1; f $(($1 - 1)); }; f 2", ["2", "1"], 7),
        ("f() { echo $# $1; }; f 'a b' c; set -- x y; f; echo $#", ["2 a b", "0", "2"], 0),
        (
            "while getopts 'a:b' o -a 1 -b rest; do echo $o$OPTARG; done; echo $OPTIND",
            ["a1", "b", "4"],
            0,
        ),
        ("exec echo replaced; echo never", ["replaced"], 0),
        ("exec > log; echo in file; cat log >&2", [], 0),
        ("x=1; (x=2; cd /; exit 3); echo $? $x; pwd", ["3 1", "/task"], 0),
        ("echo 'echo $0 $1; return 4; echo no' > s; . ./s; echo $?", ["sh", "4"], 0),
        ("printf '#!/bin/sh\\necho $1 $0' > s; chmod +x s; ./s a; sh s b", ["a ./s", "b s"], 0),
        ("echo echo > s; ./s; echo $?; ./none; echo $?", ["126", "127"], 0),
        (
            "printf '#!/usr/bin/env bash\\n[[ a == a* ]] && echo yes' > s; chmod +x s; ./s",
            ["yes"],
            0,
        ),
        ("alias ll='echo listed'; eval ll; unalias ll", ["listed"], 0),
        (
            'cat <<E | while read -r l; do echo "<$l>"; done\na $((1 + 1))\nb\nE',
            ["<a 2>", "<b>"],
            0,
        ),
        ("echo a; echo b; fi; echo c", ["a", "b"], 2),
        ("f() { f; }; f", [], 139),
        ("readonly r=1; r=2; echo no", [], 2),
        ("A=1 B=2 sh -c 'echo $A$B'; echo \"[$A]\"", ["12", "[]"], 0),
        ("command -v sh; type none >/dev/null; echo $?", ["/bin/sh", "127"], 0),
        ("trap; trap 'echo x' INT; trap", ["trap -- 'echo x' INT"], 0),
        ("echo $((1 / 0)); echo no", [], 2),
        ("exit 300", [], 44),
    ],
)
def test_script_does_what_a_shell_does(script: str, lines: list[str], code: int) -> None:
    ending = run(script)
    assert [line.partition(": ")[2] for line in ending.lines] == lines
    assert ending.end == (code, 0.0)


def test_message_of_an_error_names_shell_and_line() -> None:
    assert run("true\ncd /none").errors == "sh: 2: cd: can't cd to /none\n"
    assert run("echo a\nif").errors == "sh: 2: Syntax error: end of file unexpected\n"
    assert run("cd /none", shell="bash").errors == (
        "bash: line 1: cd: /none: No such file or directory\n"
    )
    assert run("cat < none").errors == "sh: 1: cannot open none: No such file\n"


# --- what is not known


def test_program_that_is_not_known_runs_until_a_signal_ends_it() -> None:
    machine = new_machine()
    machine.start(["java", "-jar", "app.jar"], is_main=True)
    machine.run(NOW + timedelta(seconds=30))
    assert machine.exit_of(1) is None
    assert machine.unknowns == ["java"]
    machine.signal(1, TERM)
    end = machine.exit_of(1)
    assert end is not None
    assert (end.code, end.time) == (0, NOW + timedelta(seconds=30))


def test_program_that_is_not_known_ends_where_it_is_to() -> None:
    machine = new_machine()
    pid = machine.start(["sh", "-c", "java; echo $?; ls > >(cat); echo no"], unknown_ends=2.0)
    machine.run(NOW + timedelta(seconds=10))
    end = machine.exit_of(pid)
    assert end is not None
    assert (end.code, end.time) == (0, NOW + timedelta(seconds=4))
    assert machine.unknowns == ["java", "a construct in line 1 of a script"]


def test_script_in_the_root_of_an_image_is_not_known() -> None:
    machine = new_machine()
    machine.start(["sh", "-c", "/ready-probe.sh && /tmp/none"], unknown_ends=0.0, is_main=True)
    machine.run(NOW)
    end = machine.exit_of(1)
    assert end is not None
    assert (end.code, machine.unknowns) == (127, ["/ready-probe.sh"])


def test_unknowns_are_named_once() -> None:
    machine = new_machine()
    machine.start(["sh", "-c", "java; java; ruby"], unknown_ends=0.0)
    machine.run(NOW)
    assert machine.unknowns == ["java", "ruby"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no command specified"),
        ([""], 'exec: "": executable file not found in $PATH'),
        (["cd", "/"], 'exec: "cd": executable file not found in $PATH'),
        (["/task"], 'exec: "/task": is a directory'),
        (["/task/f1"], 'exec: "/task/f1": permission denied'),
        (["/task/none"], 'exec: "/task/none": stat /task/none: no such file or directory'),
    ],
)
def test_command_that_no_runtime_can_start_is_an_error(argv: list[str], message: str) -> None:
    machine = new_machine()
    with pytest.raises(StartError) as caught:
        machine.start(argv, is_main=True)
    assert (caught.value.code, caught.value.message) == (128, message)
    assert machine.exit_of(1) is None


# --- steadiness


@pytest.mark.parametrize(
    ("script", "is_steady"),
    [
        ("cat f1", True),
        ("test -f f1 && echo yes", True),
        ("exit 1", True),
        ("date", False),
        ("echo x > new", False),
        ("curl http://web", False),
    ],
)
def test_process_is_steady_if_it_would_do_the_same_again(script: str, is_steady: bool) -> None:
    machine = new_machine()
    machine.start(["sleep", "infinity"], is_main=True)
    pid = machine.start(["sh", "-c", script])
    machine.run(NOW + timedelta(seconds=1))
    assert machine.is_steady(pid) is is_steady


def test_steady_process_is_no_more_so_when_a_file_changes() -> None:
    machine = new_machine()
    pid = machine.start(["cat", "f1"])
    machine.run(NOW)
    assert machine.is_steady(pid)
    machine.files.write("/task/f1", b"new", now=NOW)
    assert not machine.is_steady(pid)


def test_process_that_is_forgotten_is_gone() -> None:
    machine = new_machine()
    machine.start(["sleep", "infinity"], is_main=True)
    pid = machine.start(["true"])
    machine.run(NOW)
    machine.forget(pid)
    assert machine.exit_of(pid) is None
    assert pid not in machine.processes


def test_machine_does_not_grow_with_a_loop_that_goes_on() -> None:
    machine = new_machine()
    script = "while true; do x=$(echo a | cat); (true); sleep 1 & wait; echo $x > f; sleep 60; done"
    machine.start(["sh", "-c", script], is_main=True)
    sizes = []
    for hours in (1, 2, 12):
        machine.run(NOW + timedelta(hours=hours))
        sizes.append(len(str(machine.to_json())))
    assert max(sizes) - min(sizes) < 200


def test_killall_ends_processes_by_their_names() -> None:
    script = (
        "sleep 100 & first=$!; sleep 200 & yes > /dev/null & third=$!; sleep 1; killall sleep; "
        "wait $first; echo $?; killall -q nothing; echo $?; killall -s KILL yes; "
        "wait $third; echo $?"
    )
    machine = new_machine()
    pid = machine.start(["sh", "-c", script], is_main=True)
    machine.run(NOW + timedelta(seconds=2))
    printed = b"".join(part.data for part in machine.take_output(pid))
    assert printed == b"143\n1\n137\n"


def test_jobs_have_the_names_of_their_programs() -> None:
    machine = new_machine()
    pid = machine.start(["sh", "-c", "sleep 100 & (sleep 50) & sleep 1; ps"], is_main=True)
    machine.run(NOW + timedelta(seconds=2))
    lines = b"".join(part.data for part in machine.take_output(pid)).decode().splitlines()
    assert [line.split(maxsplit=3)[3] for line in lines[2:]] == ["sleep 100", "sleep 50"]
