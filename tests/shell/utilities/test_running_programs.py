"""Programs that run others, with a small stand-in for the machine that runs them."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from kubepy.shell.utilities import find_utility
from kubepy.shell.utility import Unknown
from tests.shell.utilities.programs import Outcome, contents, invocation, run_real


def run_with_programs(
    command: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> Outcome:
    """Run a program of the model; those that it runs are the machine's own."""
    argv = shlex.split(command)
    call = invocation(argv, stdin=stdin, env=env)

    def run(inner: list[str], data: bytes) -> tuple[int, bytes, bytes]:
        variables = {"PATH": "/usr/bin:/bin", **call.env}
        done = subprocess.run(inner, input=data, capture_output=True, env=variables, check=False)
        return done.returncode, done.stdout, done.stderr

    call.run = run
    utility = find_utility(argv[0])
    assert utility is not None
    status = utility(call)
    return Outcome(status, bytes(call.stdout), bytes(call.stderr), contents(call.files))


@pytest.mark.parametrize(
    ("command", "stdin"),
    [
        ("xargs", "a b\nc\n"),
        ("xargs echo x", "a 'b c' \"d e\" f\\ g\n"),
        ("xargs -n 2", "a b c d e\n"),
        ("xargs -I {} echo [{}] {}", "a b\n  c\n\nd\n"),
        ("xargs -0 echo", "a b\0c\0"),
        ("xargs -d , echo", "a,b,c"),
        ("xargs -d '\\n' echo", "a b\nc\n"),
        ("xargs -r echo", ""),
        ("xargs echo", ""),
        ("xargs -L 1 echo", "a b\nc d\n"),
        ("xargs -t echo", "a\n"),
        ("xargs false", "a\n"),
        ("xargs -n 1 sh -c 'exit 255'", "a\nb\n"),
        ("xargs", "it's\n"),
        ("env true", ""),
        ("env A=1 sh -c 'echo $A'", ""),
        ("env A=x\\ y sh -c 'echo \"$A\"'", ""),
        ("env -u LC_ALL sh -c 'echo [$LC_ALL]'", ""),
        ("env cat", "input\n"),
        ("timeout 5 echo hi", ""),
        ("timeout 5s sh -c 'exit 3'", ""),
        ("timeout x true", ""),
        ("timeout 5", ""),
        ("nohup echo hi", ""),
        ("nohup", ""),
        ("nice -n 5 echo hi", ""),
        ("find . -name . -exec echo {} x {} ';'", ""),
        ("find . -maxdepth 0 -exec echo {} +", ""),
        ("find . -name . -exec false ';' -print", ""),
        ("find . -name . -exec echo", ""),
    ],
)
def test_program_that_runs_another_does_what_real_one_does(
    command: str, stdin: str, tmp_path: Path
) -> None:
    expected = run_real(shlex.split(command), tmp_path, stdin=stdin.encode())
    outcome = run_with_programs(command, stdin.encode())
    assert outcome._replace(err=b"") == expected._replace(err=b"")
    if not command.startswith("nohup"):
        assert outcome.err == expected.err


@pytest.mark.parametrize(
    ("command", "out", "status"),
    [
        ("env", "A=1\nB=x y\n", 0),
        ("env -i", "", 0),
        ("env -i C=3", "C=3\n", 0),
        ("env -u A", "B=x y\n", 0),
        ("env A=2", "A=2\nB=x y\n", 0),
        ("printenv", "A=1\nB=x y\n", 0),
        ("printenv A", "1\n", 0),
        ("printenv A NOPE", "1\n", 1),
        ("which cat", "/usr/bin/cat\n", 0),
        ("which nope", "", 1),
        ("nice", "0\n", 0),
    ],
)
def test_environment_is_printed(command: str, out: str, status: int) -> None:
    outcome = run_with_programs(command, env={"A": "1", "B": "x y"})
    assert (outcome.out.decode(), outcome.status) == (out, status)


def test_program_without_machine_is_unknown() -> None:
    call = invocation(["xargs", "echo"], stdin=b"a\n")
    utility = find_utility("xargs")
    assert utility is not None
    with pytest.raises(Unknown):
        utility(call)
