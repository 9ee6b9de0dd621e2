"""The one program in Perl that the documentation of Kubernetes uses: it prints digits of pi."""

from __future__ import annotations

import re

from kubepy.shell.utilities.program import Arguments, ArgumentStyle, program
from kubepy.shell.utility import Delay, Execution, Unknown

PRINT_PI = re.compile(r"\s*print\s+bpi\(\s*(\d{1,5})\s*\)\s*;?\s*")
MODULES = ("-Mbignum=bpi", "-Mbigint=bpi", "-Mbigrat=bpi", "-Mbigfloat=bpi")
MOST_DIGITS = 10_000
SECONDS_A_DIGIT = 0.005  # the documentation: 2,000 digits take around ten seconds


@program("-M=MODULE", "-w", "-l", "-e=PROGRAM", style=ArgumentStyle(is_raw=True))
def perl(call: Execution, options: Arguments) -> int:
    """Print digits of pi, after the time that this takes."""
    words = list(options.operands)
    has_module = False
    while words[:1] and words[0] in MODULES:
        words.pop(0)
        has_module = True
    flags = words[0] if words else ""
    if not has_module or len(words) != 2 or not re.fullmatch(r"-[wl]*e", flags):
        raise Unknown("another program than print bpi(N)")
    match = PRINT_PI.fullmatch(words[1])
    if match is None or not 0 < int(match[1]) <= MOST_DIGITS:
        raise Unknown("another program than print bpi(N)")
    count = int(match[1])
    end = "\n" if "l" in flags else ""
    text = f"{digits_of_pi(count)}{end}"
    raise Delay(count * SECONDS_A_DIGIT, 0, out=text.encode())


def digits_of_pi(count: int) -> str:
    """Return pi with so many digits, the last one rounded (``Math::BigFloat->bpi``)."""
    guard = 10
    unit = 10 ** (count + guard)
    pi = 4 * (4 * _inverse_tangent(5, unit) - _inverse_tangent(239, unit))
    scale = 10 ** (guard + 1)
    rounded = str((pi + scale // 2) // scale)
    if count == 1:
        return rounded
    return f"{rounded[0]}.{rounded[1:]}"


def _inverse_tangent(denominator: int, unit: int) -> int:
    """Return ``unit * arctan(1 / denominator)`` by its series."""
    power = unit // denominator
    total = power
    divisor = 1
    square = denominator * denominator
    sign = -1
    while power:
        power //= square
        divisor += 2
        total += sign * (power // divisor)
        sign = -sign
    return total
