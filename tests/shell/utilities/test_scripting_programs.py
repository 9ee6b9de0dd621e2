"""Programs that carry out small scripts: python and perl; beside the python of this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubepy.kubelet.behaviours import Behaviour
from kubepy.kubelet.modelled.programs import program_of
from kubepy.shell.utilities.perl import digits_of_pi
from tests.shell.shells import new_machine, run_model

SCRIPTS = [
    'import os, sys\nindex = int(os.environ.get("HOME", "/0")[-1] == "t")\n'
    "if index == 0:\n  sys.exit(1)\nelif index == 1:\n  sys.exit(42)\nelse:\n  sys.exit(0)\n",
    "print('Hello', 'world', sep=', ', end='!\\n')",
    "for i in range(3):\n    print(i, i * 2, i / 2, i // 2, i % 2, -i)",
    "import sys\nprint('out')\nprint('err', file=sys.stderr)\nraise SystemExit(3)",
    "x = {'a': 1, 'b': [1, 2, (3, 4)]}\nprint(x, x['b'][2][0], x.get('c'), sorted(x.keys()))",
    "print(f'{3.14159:.2f} {1+1:>4} {\"a\"!r}')",
    "print('%s is %d' % ('one', 1), '{} {}'.format(1, 'b'), ' a,b '.strip().split(','))",
    "n = 0\nwhile True:\n  n += 1\n  if n % 2: continue\n  if n > 6: break\n  print(n)",
    "print([x * x for x in range(5) if x != 3], 2 < 3 <= 3 < 5, 1 if 0 else 2, not 0, 'a' in 'ab')",
    "a, b = 1, 2\na, b = b, a\nprint(a, b)\nvalues = [3, 1]\nvalues.append(2)\nvalues.sort()\n"
    "print(values, values[-1], values[1:], len(values), sum(values), max(values))",
    "import sys\nsys.exit('no way')",
    "import sys\nprint(sys.argv)",
    "import os\nprint(os.environ['HOME'], os.getenv('NO_SUCH'), os.path.exists('/no/such'))",
    "for name in ('a', 'b'):\n  pass\nelse:\n  print(name)",
    "print(1 / 0)",
    "print({}['a'])",
    "print(int('x'))",
    "print(nothing)",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_python_does_what_python_does(script: str) -> None:
    real = subprocess.run(
        [sys.executable, "-c", script, "one"],
        capture_output=True,
        check=False,
        env={"HOME": "/root"},
    )
    machine = new_machine()
    pid = machine.start(["python3", "-c", script, "one"])
    machine.run(machine.now)
    out = machine.take_output(pid)
    end = machine.exit_of(pid)
    assert end is not None
    assert end.code == real.returncode
    assert b"".join(part.data for part in out if part.stream == "stdout") == real.stdout
    errors = b"".join(part.data for part in out if part.stream == "stderr")
    assert errors.splitlines()[-1:] == real.stderr.splitlines()[-1:]
    assert not machine.unknowns


@pytest.mark.parametrize(
    "script",
    [
        "import socket",
        "class A: pass",
        "print(open('/etc/passwd').read())",
        "while True: pass",
        "print('a' * 10**9)",
        "print('%1000000000d' % 1)",
        "print('{:1000000000}'.format(1))",
        "().__class__",
        "print('{0.__class__}'.format(1))",
        "import os\nos.system('true')",
        "print(",
    ],
)
def test_python_program_beyond_the_model_is_unknown(script: str) -> None:
    machine = new_machine()
    pid = machine.start(["python3", "-c", script])
    machine.run(machine.now)
    assert machine.exit_of(pid) is None
    assert len(machine.unknowns) == 1


def test_python_file_of_the_model_is_carried_out() -> None:
    script = "echo 'print(6 * 7)' > /tmp/a.py; python /tmp/a.py; python3 /tmp/b.py"
    outcome = run_model(script)
    assert outcome.out == b"42\n"
    assert outcome.status == 2


def test_python_that_sleeps_prints_before_and_after() -> None:
    script = "python3 -c 'import time; print(1); time.sleep(2.5); print(2)'; date +%S"
    assert run_model(script).out == b"1\n2\n05\n"


def test_perl_prints_digits_of_pi() -> None:
    script = "perl -Mbignum=bpi -wle 'print bpi(20)'; perl -Mbignum=bpi -e 'print bpi(3)'"
    assert run_model(script).out == b"3.1415926535897932385\n3.14"
    assert digits_of_pi(2000).endswith("780275901")
    assert len(digits_of_pi(2000)) == 2001


@pytest.mark.parametrize(
    ("command", "is_opaque"),
    [
        (["python3", "-c", "print(1)"], False),
        (["python", "-u", "app.py"], True),
        (["python3", "-m", "http.server"], True),
        (["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"], False),
        (["perl", "app.pl"], True),
    ],
)
def test_interpreter_is_known_where_its_script_is_in_the_command(
    command: list[str], is_opaque: bool
) -> None:
    container = {"name": "c", "image": "python", "command": command}
    program = program_of(container, Behaviour())  # type: ignore[arg-type]
    assert program.is_opaque == is_opaque
