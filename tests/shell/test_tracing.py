"""What ``set -x`` prints."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.shell.containers import run

TRACED = [
    'x=1; y="a b"; z="$y" echo "hi  you" "it\'s" ""; q=',
    "x=1 y=2; [ a = a ]; true",
    'n="a\nb"; echo "$n" "a*" {x',
]


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("script", [*TRACED, "[[ a-0 =~ -([0-9]+)$ ]] && [[ a == a* ]]"])
def test_trace_is_that_of_the_shell(script: str, shell: str) -> None:
    program = shutil.which(shell)
    if program is None or (shell == "dash" and "[[" in script):
        pytest.skip(f"there is no {shell} for this")
    traced = f"set -x; {script}"
    real = subprocess.run([program, "-c", traced], capture_output=True, text=True, check=False)
    result = run(traced, shell=shell)
    assert (result.stderr, result.stdout) == (real.stderr, real.stdout)
