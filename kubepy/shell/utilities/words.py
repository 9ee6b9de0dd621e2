"""Programs that compute from their arguments: basename, dirname, expr, seq."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from kubepy.shell.utilities.inputs import from_argument, to_bytes
from kubepy.shell.utilities.patterns import BadPattern, compile_pattern
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, program, usage_error
from kubepy.shell.utility import Execution, Unknown

FORMAT = re.compile(r"(?:[^%]|%%)*%[-+ 0#']*\d*(?:\.\d+)?[efgaEFGA](?:[^%]|%%)*")
INTEGER = re.compile(r"-?\d+")
COMPARISONS = ("<", "<=", "=", "==", "!=", ">=", ">")
MOST_NUMBERS = 10_000_000


def _usage(call: Execution, message: str, status: int = 1) -> Failure:
    return usage_error(call.name, message, status)


@program("-a,--multiple", "-s,--suffix=SUFFIX", "-z,--zero", style=ArgumentStyle(is_permuted=False))
def basename(call: Execution, options: Arguments) -> int:
    """Print names without their directories."""
    operands = options.operands
    if not operands:
        raise _usage(call, "missing operand")
    names = operands
    suffix = options.get("s")
    if not options.has("a", "s"):
        if len(operands) > 2:
            raise _usage(call, f"extra operand '{operands[2]}'")
        names = operands[:1]
        suffix = ""
        if len(operands) > 1:
            suffix = operands[1]
    for name in names:
        last = _last_part(name)
        if suffix and last != suffix:
            last = last.removesuffix(suffix)
        call.out(last + ("\0" if options.has("z") else "\n"))
    return 0


def _last_part(name: str) -> str:
    stripped = name.rstrip("/")
    if not stripped:
        return name[:1]
    return stripped.rsplit("/", 1)[-1]


@program("-z,--zero")
def dirname(call: Execution, options: Arguments) -> int:
    """Print names without their last part."""
    if not options.operands:
        raise _usage(call, "missing operand")
    for name in options.operands:
        call.out(_parent(name) + ("\0" if options.has("z") else "\n"))
    return 0


def _parent(name: str) -> str:
    stripped = name.rstrip("/")
    if not stripped:
        if name:
            return "/"
        return "."
    if "/" not in stripped:
        return "."
    return stripped.rsplit("/", 1)[0].rstrip("/") or "/"


def _with_numbers(arguments: list[str]) -> list[str]:
    """End the options before the first number: a negative one is no option."""
    place = 0
    while place < len(arguments) and re.match(r"-[^\d.]", arguments[place]):
        place += 2 if arguments[place] in ("-s", "-f") else 1
    return [*arguments[:place], "--", *arguments[place:]]


@program(
    "-s,--separator=STRING",
    "-w,--equal-width",
    "-f,--format=FORMAT",
    style=ArgumentStyle(rewrite=_with_numbers),
)
def seq(call: Execution, options: Arguments) -> int:
    """Print numbers."""
    operands = options.operands
    if not operands:
        raise _usage(call, "missing operand")
    if len(operands) > 3:
        raise _usage(call, f"extra operand '{operands[3]}'")
    numbers = [_decimal(call, text) for text in operands]
    first = Decimal(1)
    if len(numbers) > 1:
        first = numbers[0]
    step = Decimal(1)
    if len(numbers) > 2:
        step = numbers[1]
    if step == 0:
        raise _usage(call, f"invalid Zero increment value: '{operands[1]}'")
    last = numbers[-1]
    progression = _progression(first, step, last)
    texts = _formatted(call, progression, operands, options)
    separator = options.get("s", "\n")
    if texts:
        call.out(separator.join(texts) + "\n")
    return 0


def _decimal(call: Execution, text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _usage(call, f"invalid floating point argument: '{text}'") from None
    if not number.is_finite():
        raise Unknown(f"seq {text}")
    return number


def _progression(first: Decimal, step: Decimal, last: Decimal) -> list[Decimal]:
    count = 0
    if (last - first) / step >= 0:
        count = int((last - first) / step) + 1
    if count > MOST_NUMBERS:
        raise Unknown("seq of more than ten million numbers")
    return [first + step * index for index in range(count)]


def _formatted(
    call: Execution, numbers: list[Decimal], operands: list[str], options: Arguments
) -> list[str]:
    pattern = options.get("f")
    if pattern:
        if not FORMAT.fullmatch(pattern):
            raise Failure(
                f"format '{pattern}' has no % directive"
                if "%" not in pattern
                else f"format '{pattern}' has too many % directives"
            )
        return [pattern % float(number) for number in numbers]
    deciding = operands
    if len(operands) > 1:
        deciding = operands[:-1]
    digits = 0
    if len(operands) > 1:
        digits = max((_fraction_digits(text) for text in deciding), default=0)
    texts = [f"{number:.{digits}f}" for number in numbers]
    if options.has("w"):
        ends = [
            f"{_decimal(call, text):.{digits}f}"
            for text in (operands if len(operands) > 1 else ["1", *operands])
        ]
        if len(operands) == 3:
            del ends[1]
        width = max(len(text) for text in ends)
        texts = [text.zfill(width) for text in texts]
    return texts


def _fraction_digits(text: str) -> int:
    return len(text.partition(".")[2])


class _Expression:
    """The arguments of ``expr`` while they are evaluated, operators by their precedence."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> str | None:
        if self.position < len(self.tokens):
            return self.tokens[self.position]
        return None

    def take(self) -> str:
        token = self.peek()
        if token is None:
            after = self.tokens[-1]
            raise Failure(f"syntax error: missing argument after '{after}'", 2)
        self.position += 1
        return token

    def either(self) -> str:
        value = self.both()
        while self.peek() == "|":
            self.take()
            other = self.both()
            if _is_null(value):
                value = other
                if _is_null(other):
                    value = "0"
        return value

    def both(self) -> str:
        value = self.compared()
        while self.peek() == "&":
            self.take()
            other = self.compared()
            if _is_null(value) or _is_null(other):
                value = "0"
        return value

    def compared(self) -> str:
        value = self.summed()
        while self.peek() in COMPARISONS:
            operator = self.take()
            value = "1" if _holds(value, operator, self.summed()) else "0"
        return value

    def summed(self) -> str:
        value = self.multiplied()
        while self.peek() in ("+", "-"):
            operator = self.take()
            other = _integer(self.multiplied())
            mine = _integer(value)
            value = str(mine + other if operator == "+" else mine - other)
        return value

    def multiplied(self) -> str:
        value = self.matched()
        while self.peek() in ("*", "/", "%"):
            operator = self.take()
            value = _product(_integer(value), operator, _integer(self.matched()))
        return value

    def matched(self) -> str:
        value = self.single()
        while self.peek() == ":":
            self.take()
            value = _match(value, self.single())
        return value

    def single(self) -> str:
        token = self.take()
        if token == "+":
            return self.take()
        if token == "(":
            value = self.either()
            closing = self.peek()
            if closing is None:
                raise Failure(f"syntax error: expecting ')' after '{self.tokens[-1]}'", 2)
            if closing != ")":
                raise Failure(f"syntax error: expecting ')' instead of '{closing}'", 2)
            self.take()
            return value
        if token == ")":
            raise Failure("syntax error: unexpected ')'", 2)
        if self.peek() is None:
            return token
        if token == "length":
            return str(len(from_argument(self.single())))
        if token == "match":
            return _match(self.single(), self.single())
        if token == "index":
            text = from_argument(self.single())
            characters = from_argument(self.single())
            places = [place for place, character in enumerate(text, 1) if character in characters]
            return str(places[0] if places else 0)
        if token == "substr":
            return _substring(self.single(), self.single(), self.single())
        return token


def _is_null(value: str) -> bool:
    return not value or bool(re.fullmatch(r"-?0+", value))


def _integer(value: str) -> int:
    if not INTEGER.fullmatch(value):
        raise Failure("non-integer argument", 2)
    return int(value)


def _holds(left: str, operator: str, right: str) -> bool:
    if INTEGER.fullmatch(left) and INTEGER.fullmatch(right):
        difference = int(left) - int(right)
    else:
        difference = (left > right) - (left < right)
    return {
        "<": difference < 0,
        "<=": difference <= 0,
        "=": difference == 0,
        "==": difference == 0,
        "!=": difference != 0,
        ">=": difference >= 0,
        ">": difference > 0,
    }[operator]


def _product(left: int, operator: str, right: int) -> str:
    if operator == "*":
        return str(left * right)
    if right == 0:
        raise Failure("division by zero", 2)
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return str(quotient if operator == "/" else left - quotient * right)


def _match(text: str, source: str) -> str:
    try:
        pattern = compile_pattern(from_argument(source), extended=False)
    except BadPattern as error:
        raise Failure(str(error), 2) from error
    match = pattern.search(from_argument(text))
    if match and match.start > 0:
        match = None
    if pattern.groups:
        if match:
            return to_bytes(match.group(1)).decode("utf-8", "surrogateescape")
        return ""
    if match:
        return str(match.end)
    return "0"


def _substring(text: str, start: str, length: str) -> str:
    if not INTEGER.fullmatch(start) or not INTEGER.fullmatch(length):
        return ""
    first = int(start)
    count = int(length)
    if first < 1 or count < 1:
        return ""
    return text[first - 1 : first - 1 + count]


@program(style=ArgumentStyle(is_raw=True))
def expr(call: Execution, options: Arguments) -> int:
    """Evaluate an expression; no argument is an option."""
    if options.operands in (["--help"], ["--version"]):
        raise Unknown(f"expr {options.operands[0]}")
    if options.operands[:1] == ["--"]:
        options.operands.pop(0)
    if not options.operands:
        raise _usage(call, "missing operand", 2)
    expression = _Expression(options.operands)
    value = expression.either()
    if expression.peek() is not None:
        raise Failure(f"syntax error: unexpected argument '{expression.peek()}'", 2)
    call.out(f"{value}\n")
    if _is_null(value):
        return 1
    return 0
