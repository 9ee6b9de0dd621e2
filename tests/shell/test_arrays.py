"""Arrays of bash."""

from __future__ import annotations

import shutil
import subprocess
from datetime import timedelta

import pytest

from tests.shell.containers import BEGIN, new_machine, result_of

BASH = shutil.which("bash")
SCRIPTS = [
    'items=(foo bar baz qux xyz); i=2; echo "${items[$i]}" ${items[i+1]} $items',
    'a=(x "y z"); for e in "${a[@]}"; do echo "<$e>"; done; echo ${#a[@]} ${#a[1]}',
    'a=(1 2); a+=(3 4); a[1]=two; echo "${a[*]}" ${a[9]:-none}',
    "a=($(echo p q) r); echo ${#a[@]} ${a[-0]}",
    "a=(\n one # a comment\n two\n)\necho ${a[1]}",
    'a=(1 2 3); a=(only); echo "${a[@]}"; unset a; echo "[${a[*]}]"',
    'IFS=,; a=(1 2); echo "${a[*]}"',
    "[[ web-12 =~ -([0-9]+)$ ]] && echo ${BASH_REMATCH[1]} ${BASH_REMATCH[0]}",
    '[[ "f1 2" =~ ^(.*)[[:space:]](x?)(.*)$ ]]; echo "${#BASH_REMATCH[@]}:${BASH_REMATCH[2]}:"',
    "[[ ab =~ a(b) ]]; [[ ab =~ x(y) ]]; echo $? ${#BASH_REMATCH[@]}",
]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_array_is_what_bash_makes_of_it(script: str) -> None:
    assert BASH is not None
    real = subprocess.run([BASH, "-c", script], capture_output=True, text=True, check=False)
    machine = new_machine(script, shell="bash")
    machine.run(BEGIN + timedelta(seconds=1))
    result = result_of(machine)
    assert (result.stdout, result.status) == (real.stdout, real.returncode)
