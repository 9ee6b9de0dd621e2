"""Programs that run another program in their place."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.shell.containers import BEGIN, new_machine, result_of


@pytest.mark.parametrize(
    ("script", "stdout", "status"),
    [
        ("echo a b | xargs echo x", "x a b\n", 0),
        ("env X=1 sh -c 'echo $X'", "1\n", 0),
        ("X=1; export X; env -u X sh -c 'echo [$X]'", "[]\n", 0),
        ("env -i A=2 env", "A=2\n", 0),
        ("timeout 5 echo hi", "hi\n", 0),
        ("echo q | timeout 1 cat", "q\n", 0),
        ("timeout 5 sh -c 'exit 3'", "", 3),
        ("timeout 5 sleep 10", "", 124),
        ("timeout -s KILL 5 sleep 10", "", 124),
        ("nohup echo n", "n\n", 0),
        ("nice -n 5 echo n", "n\n", 0),
    ],
)
def test_wrapper_runs_its_command(script: str, stdout: str, status: int) -> None:
    machine = new_machine(script)
    machine.run(BEGIN + timedelta(minutes=1))
    result = result_of(machine)
    assert (result.stdout, result.status) == (stdout, status)


def test_timeout_ends_its_command_at_its_moment() -> None:
    machine = new_machine("timeout 5 sleep 10; sleep 1000")
    machine.run(BEGIN + timedelta(seconds=4))
    assert machine.next_time() == BEGIN + timedelta(seconds=5)
