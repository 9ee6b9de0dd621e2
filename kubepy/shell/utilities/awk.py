"""The program awk: rules are run over records."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import NoReturn

from kubepy.shell.files import FileError
from kubepy.shell.utilities.awkscript import AwkNode, AwkParser, AwkRule, unescape
from kubepy.shell.utilities.formats import format_text
from kubepy.shell.utilities.inputs import (
    absolute,
    from_argument,
    read_file,
    to_bytes,
    to_text,
)
from kubepy.shell.utilities.patterns import (
    BadPattern,
    Pattern,
    compile_pattern,
    matches,
)
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, complain, program
from kubepy.shell.utility import Execution, Unknown

NUMERIC = re.compile(r"[ \t\n]*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)[ \t\n]*")
LEADING_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
MOST_STEPS = 5_000_000
MOST_FIELDS = 10_000


class InputText(str):
    """Text from outside, which is compared as a number if it looks like one."""

    __slots__ = ()


Value = float | str
UNSET = InputText("")


class _Next(Exception):
    """Go on with the next record."""


class _Exit(Exception):
    """Go on with the END rules, or end."""


class _Break(Exception):
    """Leave a loop."""


class _Continue(Exception):
    """Go on with a loop."""


def number_of(value: Value) -> float:
    """Return a value as a number: what it begins with, or 0."""
    if not isinstance(value, str):
        return value
    match = LEADING_NUMBER.match(value)
    if match:
        return float(match[1])
    return 0.0


def number_text(number: float, conversion: str) -> str:
    """Return a number as text: whole ones as such, others by CONVFMT or OFMT."""
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        if number > 0:
            return "inf"
        return "-inf"
    if number == int(number) and abs(number) < 2**53:
        return str(int(number))
    return conversion % number


def looks_numeric(value: Value) -> bool:
    """Tell whether a value is compared as a number."""
    if not isinstance(value, str):
        return True
    return isinstance(value, InputText) and (not value or NUMERIC.fullmatch(value) is not None)


@lru_cache(maxsize=256)
def _compiled(source: str) -> Pattern:
    try:
        return compile_pattern(source, extended=True)
    except BadPattern as error:
        message = f"regular expression compile failed ({error})\n{source}"
        raise Failure(message, 2) from error


class AwkInterpreter:
    """One run of a program."""

    def __init__(self, call: Execution, rules: list[AwkRule]) -> None:
        self.call = call
        self.rules = rules
        self.variables: dict[str, Value] = {
            "FS": " ",
            "OFS": " ",
            "ORS": "\n",
            "RS": "\n",
            "NR": 0.0,
            "FNR": 0.0,
            "SUBSEP": "\x1c",
            "CONVFMT": "%.6g",
            "OFMT": "%.6g",
            "RSTART": 0.0,
            "RLENGTH": -1.0,
            "FILENAME": "",
        }
        self.arrays: dict[str, dict[str, Value]] = {}
        self.record = ""
        self.fields: list[Value] = []
        self.open_ranges: set[int] = set()
        self.status = 0
        self.steps = 0
        self.opened: set[str] = set()
        self.output: list[str] = []

    def run(self, operands: list[str]) -> int:
        """Run all rules; return the exit status."""
        with suppress(_Exit):
            self._run_special("BEGIN")
            if any(rule.kind != "BEGIN" for rule in self.rules):
                self._read(operands)
        with suppress(_Exit):
            self._run_special("END")
        return self.status

    def _run_special(self, kind: str) -> None:
        for rule in self.rules:
            if rule.kind == kind and rule.action:
                self.execute(rule.action)

    def _read(self, operands: list[str]) -> None:
        has_read = False
        for operand in operands:
            if assignment := ASSIGNMENT.fullmatch(operand):
                self.assign_from_outside(*assignment.groups())
                continue
            has_read = True
            self._read_file(operand)
        if not has_read:
            self._read_file("-")

    def _read_file(self, name: str) -> None:
        try:
            data = read_file(self.call, name)
        except FileError as error:
            message = f"cannot open {name} ({error.problem})"
            complain(self.call, message)
            self.status = 2
            raise _Exit from None
        self.variables["FILENAME"] = "" if name == "-" else name
        self.variables["FNR"] = 0.0
        for record in self._records(to_text(data)):
            self.variables["NR"] = number_of(self.variables["NR"]) + 1
            self.variables["FNR"] = number_of(self.variables["FNR"]) + 1
            self.set_record(record)
            try:
                self._run_rules()
            except _Next:
                continue

    def _records(self, text: str) -> list[str]:
        separator = self.text(self.variables["RS"])
        if separator == "":
            stripped = text.strip("\n")
            if stripped:
                return re.split(r"\n\n+", stripped)
            return []
        if len(separator) > 1:
            raise Unknown("awk: RS of several characters")
        records = text.split(separator)
        if records[-1] == "":
            records.pop()
        return records

    def assign_from_outside(self, name: str, text: str) -> None:
        """Set a variable as ``-v`` does."""
        self.set_variable(name, InputText(unescape(text)))

    def set_record(self, record: str) -> None:
        """Make a text the current record."""
        self.record = record
        self.fields = [InputText(field) for field in self.split(record)]

    def split(self, text: str, separator: str | None = None) -> list[str]:
        """Split a text at FS or at another separator."""
        if separator is None:
            separator = self.text(self.variables["FS"])
            if self.variables["RS"] == "" and separator != " ":
                separator = f"({separator})|\n"
        if separator == " ":
            return text.split()
        if not text:
            return []
        if separator == "":
            return list(text)
        if len(separator) == 1 and separator != "\\":
            return text.split(separator)
        pieces: list[str] = []
        position = 0
        for match in matches(_compiled(separator), text):
            if match.start == match.end:
                continue
            pieces.append(text[position : match.start])
            position = match.end
        return [*pieces, text[position:]]

    def _rebuild_record(self) -> None:
        separator = self.text(self.variables["OFS"])
        self.record = separator.join(self.text(field) for field in self.fields)

    def _run_rules(self) -> None:
        for index, rule in enumerate(self.rules):
            if not self._applies(rule, index):
                continue
            if rule.action:
                self.execute(rule.action)
            else:
                self._write("", "", self.record + self.text(self.variables["ORS"]))

    def _applies(self, rule: AwkRule, index: int) -> bool:
        if rule.kind == "always":
            return True
        if rule.kind == "pattern":
            return self.is_true(rule.patterns[0])
        if rule.kind != "range":
            return False
        if index not in self.open_ranges:
            if not self.is_true(rule.patterns[0]):
                return False
            self.open_ranges.add(index)
        if self.is_true(rule.patterns[1]):
            self.open_ranges.discard(index)
        return True

    def text(self, value: Value) -> str:
        """Return a value as text."""
        if isinstance(value, str):
            return value
        return number_text(value, str(self.variables["CONVFMT"]))

    def is_true(self, node: AwkNode) -> bool:
        """Evaluate a condition."""
        value = self.evaluate(node)
        if not isinstance(value, str):
            return value != 0
        if isinstance(value, InputText) and looks_numeric(value):
            return number_of(value) != 0
        return value != ""

    def execute(self, node: AwkNode) -> None:
        """Run a statement."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Unknown("awk program that does not end")
        STATEMENTS[node.kind](self, node)

    def _block(self, node: AwkNode) -> None:
        for statement in node.parts:
            self.execute(statement)

    def _nothing(self, node: AwkNode) -> None:
        return

    def _expression(self, node: AwkNode) -> None:
        self.evaluate(node.parts[0])

    def _if(self, node: AwkNode) -> None:
        condition, yes, no = node.parts
        self.execute(yes if self.is_true(condition) else no)

    def _body_ends(self, body: AwkNode) -> bool:
        """Run the body of a loop; tell whether it broke out."""
        try:
            self.execute(body)
        except _Break:
            return True
        except _Continue:
            return False
        return False

    def _while(self, node: AwkNode) -> None:
        condition, body = node.parts
        while self.is_true(condition):
            if self._body_ends(body):
                return

    def _do(self, node: AwkNode) -> None:
        body, condition = node.parts
        while not self._body_ends(body) and self.is_true(condition):
            continue

    def _for(self, node: AwkNode) -> None:
        first, condition, step, body = node.parts
        self.execute(first)
        while condition.kind == "empty" or self.is_true(condition):
            if self._body_ends(body):
                return
            self.execute(step)

    def _for_in(self, node: AwkNode) -> None:
        variable, body = node.parts
        array = self.arrays.setdefault(node.text, {})
        for key in list(array):
            self._store(variable, InputText(key))
            if self._body_ends(body):
                return

    def _next(self, node: AwkNode) -> NoReturn:
        raise _Next

    def _break(self, node: AwkNode) -> NoReturn:
        raise _Break

    def _continue(self, node: AwkNode) -> NoReturn:
        raise _Continue

    def _exit(self, node: AwkNode) -> NoReturn:
        if node.parts:
            self.status = int(number_of(self.evaluate(node.parts[0]))) & 255
        raise _Exit

    def _delete(self, node: AwkNode) -> None:
        array = self.arrays.setdefault(node.text, {})
        if node.parts:
            array.pop(self._subscript(node.parts), None)
        else:
            array.clear()

    def _print(self, node: AwkNode) -> None:
        target, *arguments = node.parts
        separator = self.text(self.variables["OFS"])
        texts = []
        for argument in arguments:
            texts.append(self._output_text(self.evaluate(argument)))
        line = self.record
        if arguments:
            line = separator.join(texts)
        name = self._target(target)
        end = self.text(self.variables["ORS"])
        self._write(node.text, name, line + end)

    def _printf(self, node: AwkNode) -> None:
        target, *arguments = node.parts
        values = [self.evaluate(argument) for argument in arguments]
        self._write(node.text, self._target(target), self._formatted(values))

    def _target(self, node: AwkNode) -> str:
        if node.kind == "empty":
            return ""
        return self.text(self.evaluate(node))

    def _output_text(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        return number_text(value, str(self.variables["OFMT"]))

    def _formatted(self, values: list[Value]) -> str:
        pattern = self.text(values[0])
        return format_text(pattern, values[1:], number_of, self.text)

    def _write(self, mode: str, name: str, text: str) -> None:
        if not mode or name in ("/dev/stdout", "-"):
            self.call.out(to_bytes(text))
        elif name == "/dev/stderr":
            self.call.err(to_bytes(text))
        else:
            appends = mode == ">>" or name in self.opened
            self.opened.add(name)
            path = absolute(self.call, name)
            try:
                self.call.files.write(
                    path,
                    to_bytes(text),
                    append=appends,
                    now=self.call.now,
                )
            except FileError as error:
                message = f"cannot open {name} ({error.problem})"
                raise Failure(message, 2) from error

    def evaluate(self, node: AwkNode) -> Value:
        """Return the value of an expression."""
        return EXPRESSIONS[node.kind](self, node)

    def _number(self, node: AwkNode) -> Value:
        if node.text[:2] in ("0x", "0X"):
            return float(int(node.text, 16))
        return float(node.text)

    def _string(self, node: AwkNode) -> Value:
        return node.text

    def _pattern(self, node: AwkNode) -> Value:
        return float(_compiled(node.text).search(self.record) is not None)

    def _parenthesis(self, node: AwkNode) -> Value:
        return self.evaluate(node.parts[0])

    def _grouping(self, node: AwkNode) -> Value:
        return self._subscript(node.parts)

    def _variable(self, node: AwkNode) -> Value:
        if node.text == "NF":
            return float(len(self.fields))
        return self.variables.get(node.text, UNSET)

    def _field(self, node: AwkNode) -> Value:
        number = self._field_number(node)
        if number == 0:
            return InputText(self.record)
        if number <= len(self.fields):
            return self.fields[number - 1]
        return UNSET

    def _field_number(self, node: AwkNode) -> int:
        number = int(number_of(self.evaluate(node.parts[0])))
        if number < 0:
            raise Failure(f"negative field index ${number}", 2)
        if number > MOST_FIELDS:
            raise Unknown("awk: field beyond 10000")
        return number

    def _element(self, node: AwkNode) -> Value:
        array = self.arrays.setdefault(node.text, {})
        return array.setdefault(self._subscript(node.parts), UNSET)

    def _subscript(self, parts: tuple[AwkNode, ...]) -> str:
        separator = self.text(self.variables["SUBSEP"])
        return separator.join(self.text(self.evaluate(part)) for part in parts)

    def _in(self, node: AwkNode) -> Value:
        return float(self._subscript(node.parts) in self.arrays.setdefault(node.text, {}))

    def _assign(self, node: AwkNode) -> Value:
        place, expression = node.parts
        value = self.evaluate(expression)
        if node.text:
            before = number_of(self.evaluate(place))
            value = _calculated(before, node.text, number_of(value))
        self._store(place, value)
        return value

    def _store(self, place: AwkNode, value: Value) -> None:
        if place.kind == "parenthesis":
            place = place.parts[0]
        if place.kind == "variable":
            self.set_variable(place.text, value)
        elif place.kind == "element":
            array = self.arrays.setdefault(place.text, {})
            array[self._subscript(place.parts)] = value
        elif place.kind == "field":
            self._set_field(self._field_number(place), value)
        else:
            raise Failure("syntax error: assignment to an expression", 2)

    def set_variable(self, name: str, value: Value) -> None:
        """Set a variable; NF cuts or extends the record."""
        if name == "NF":
            count = int(number_of(value))
            if count > MOST_FIELDS:
                raise Unknown("awk: more than 10000 fields")
            self.fields = (self.fields + [UNSET] * count)[:count]
            self._rebuild_record()
            return
        self.variables[name] = value

    def _set_field(self, number: int, value: Value) -> None:
        if number == 0:
            self.set_record(self.text(value))
            return
        missing = number - len(self.fields)
        self.fields += [UNSET] * max(missing, 0)
        is_text = isinstance(value, str)
        self.fields[number - 1] = value if is_text else InputText(self.text(value))
        self._rebuild_record()

    def _choice(self, node: AwkNode) -> Value:
        condition, yes, no = node.parts
        return self.evaluate(yes if self.is_true(condition) else no)

    def _or(self, node: AwkNode) -> Value:
        left, right = node.parts
        return float(self.is_true(left) or self.is_true(right))

    def _and(self, node: AwkNode) -> Value:
        left, right = node.parts
        return float(self.is_true(left) and self.is_true(right))

    def _match(self, node: AwkNode) -> Value:
        text, pattern = node.parts
        is_found = self.pattern_of(pattern).search(self.text(self.evaluate(text))) is not None
        return float(is_found == (node.text == "~"))

    def pattern_of(self, node: AwkNode) -> Pattern:
        """Return the pattern that an argument is: between slashes, or the text of a value."""
        return _compiled(node.text if node.kind == "pattern" else self.text(self.evaluate(node)))

    def _compare(self, node: AwkNode) -> Value:
        left, right = (self.evaluate(part) for part in node.parts)
        mine: Value
        other: Value
        if looks_numeric(left) and looks_numeric(right):
            mine = number_of(left)
            other = number_of(right)
            difference = (mine > other) - (mine < other)
        else:
            mine_text = self.text(left)
            other_text = self.text(right)
            difference = (mine_text > other_text) - (mine_text < other_text)
        outcomes = {
            "<": difference < 0,
            "<=": difference <= 0,
            "==": difference == 0,
            "!=": difference != 0,
            ">=": difference >= 0,
            ">": difference > 0,
        }
        return float(outcomes[node.text])

    def _concatenate(self, node: AwkNode) -> Value:
        left, right = node.parts
        return self.text(self.evaluate(left)) + self.text(self.evaluate(right))

    def _binary(self, node: AwkNode) -> Value:
        left, right = (number_of(self.evaluate(part)) for part in node.parts)
        return _calculated(left, node.text, right)

    def _unary(self, node: AwkNode) -> Value:
        operand = node.parts[0]
        if node.text == "!":
            return float(not self.is_true(operand))
        number = number_of(self.evaluate(operand))
        if node.text == "-":
            return -number
        return number

    def _before(self, node: AwkNode) -> Value:
        step = -1
        if node.text == "++":
            step = 1
        value = number_of(self.evaluate(node.parts[0])) + step
        self._store(node.parts[0], value)
        return value

    def _after(self, node: AwkNode) -> Value:
        step = -1
        if node.text == "++":
            step = 1
        value = number_of(self.evaluate(node.parts[0]))
        self._store(node.parts[0], value + step)
        return value

    def _call(self, node: AwkNode) -> Value:
        return CALLS[node.text](self, node.parts)

    def _texts(self, parts: tuple[AwkNode, ...]) -> list[str]:
        return [self.text(self.evaluate(part)) for part in parts]

    def _length(self, parts: tuple[AwkNode, ...]) -> Value:
        if not parts:
            return float(len(self.record))
        name = parts[0].text
        if parts[0].kind == "variable" and name in self.arrays and name not in self.variables:
            return float(len(self.arrays[name]))
        return float(len(self._texts(parts)[0]))

    def _substr(self, parts: tuple[AwkNode, ...]) -> Value:
        text = self.text(self.evaluate(parts[0]))
        start = _rounded(number_of(self.evaluate(parts[1])))
        if start < 1 and len(parts) > 2:
            raise Unknown("awk: substr that starts before a text")
        end = len(text) + 1
        if len(parts) > 2:
            length = _rounded(number_of(self.evaluate(parts[2])))
            end = min(end, start + length)
        first = max(start, 1) - 1
        stop = max(end, 1) - 1
        return text[first:stop]

    def _index(self, parts: tuple[AwkNode, ...]) -> Value:
        text, wanted = self._texts(parts)
        return float(text.find(wanted) + 1)

    def _split(self, parts: tuple[AwkNode, ...]) -> Value:
        text = self.text(self.evaluate(parts[0]))
        separator: str | None = None
        if len(parts) > 2:
            node = parts[2]
            if node.kind == "pattern":
                separator = f"({node.text})"
            else:
                separator = self.text(self.evaluate(node))
        pieces = self.split(text, separator)
        self.arrays[parts[1].text] = {
            str(place): InputText(piece) for place, piece in enumerate(pieces, 1)
        }
        return float(len(pieces))

    def _sub(self, parts: tuple[AwkNode, ...]) -> Value:
        return self._substitute(parts, is_global=False)

    def _gsub(self, parts: tuple[AwkNode, ...]) -> Value:
        return self._substitute(parts, is_global=True)

    def _substitute(self, parts: tuple[AwkNode, ...], *, is_global: bool) -> Value:
        pattern = self.pattern_of(parts[0])
        replacement = self.text(self.evaluate(parts[1]))
        zero = AwkNode("number", "0")
        place = AwkNode("field", parts=(zero,))
        if len(parts) > 2:
            place = parts[2]
        text = self.text(self.evaluate(place))
        pieces: list[str] = []
        position = 0
        for match in matches(pattern, text):
            pieces += [text[position : match.start], _replacement(replacement, match.group(0))]
            position = match.end
            if not is_global:
                break
        if pieces:
            self._store(place, "".join(pieces) + text[position:])
        return float(len(pieces) // 2)

    def _find(self, parts: tuple[AwkNode, ...]) -> Value:
        text = self.text(self.evaluate(parts[0]))
        match = self.pattern_of(parts[1]).search(text)
        start = 0.0
        if match:
            start = float(match.start + 1)
        self.variables["RSTART"] = start
        self.variables["RLENGTH"] = float(match.end - match.start) if match else -1.0
        return start

    def _sprintf(self, parts: tuple[AwkNode, ...]) -> Value:
        return self._formatted([self.evaluate(part) for part in parts])

    def _close(self, parts: tuple[AwkNode, ...]) -> Value:
        self.opened.difference_update(self._texts(parts))
        return 0.0

    def _lower(self, parts: tuple[AwkNode, ...]) -> Value:
        return _ascii_case(self._texts(parts)[0], str.lower)

    def _upper(self, parts: tuple[AwkNode, ...]) -> Value:
        return _ascii_case(self._texts(parts)[0], str.upper)


def _ascii_case(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(character) if character.isascii() else character for character in text)


def _rounded(number: float) -> int:
    if math.isfinite(number):
        return math.floor(number + 0.5)
    return 0


def _replacement(text: str, matched: str) -> str:
    pieces: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and text[position + 1 : position + 2] in ("&", "\\"):
            position += 1
            pieces.append(text[position])
        else:
            pieces.append(matched if character == "&" else character)
        position += 1
    return "".join(pieces)


def _calculated(left: float, operator: str, right: float) -> float:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "^":
        return _power(left, right)
    if right == 0:
        raise Failure("division by zero" if operator == "/" else "division by zero in %", 2)
    if operator == "/":
        return left / right
    return math.fmod(left, right)


def _power(left: float, right: float) -> float:
    try:
        return math.pow(left, right)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _mathematical(
    function: Callable[..., float],
) -> Callable[[AwkInterpreter, tuple[AwkNode, ...]], Value]:
    def calculate(interpreter: AwkInterpreter, parts: tuple[AwkNode, ...]) -> Value:
        numbers = [number_of(interpreter.evaluate(part)) for part in parts]
        try:
            return float(function(*numbers))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return calculate


STATEMENTS: dict[str, Callable[[AwkInterpreter, AwkNode], None]] = {
    "block": AwkInterpreter._block,
    "empty": AwkInterpreter._nothing,
    "expression": AwkInterpreter._expression,
    "if": AwkInterpreter._if,
    "while": AwkInterpreter._while,
    "do": AwkInterpreter._do,
    "for": AwkInterpreter._for,
    "for in": AwkInterpreter._for_in,
    "next": AwkInterpreter._next,
    "break": AwkInterpreter._break,
    "continue": AwkInterpreter._continue,
    "exit": AwkInterpreter._exit,
    "delete": AwkInterpreter._delete,
    "print": AwkInterpreter._print,
    "printf": AwkInterpreter._printf,
}
EXPRESSIONS: dict[str, Callable[[AwkInterpreter, AwkNode], Value]] = {
    "number": AwkInterpreter._number,
    "string": AwkInterpreter._string,
    "pattern": AwkInterpreter._pattern,
    "parenthesis": AwkInterpreter._parenthesis,
    "grouping": AwkInterpreter._grouping,
    "variable": AwkInterpreter._variable,
    "field": AwkInterpreter._field,
    "element": AwkInterpreter._element,
    "in": AwkInterpreter._in,
    "assign": AwkInterpreter._assign,
    "choice": AwkInterpreter._choice,
    "or": AwkInterpreter._or,
    "and": AwkInterpreter._and,
    "match": AwkInterpreter._match,
    "compare": AwkInterpreter._compare,
    "concatenate": AwkInterpreter._concatenate,
    "binary": AwkInterpreter._binary,
    "unary": AwkInterpreter._unary,
    "before": AwkInterpreter._before,
    "after": AwkInterpreter._after,
    "call": AwkInterpreter._call,
}
CALLS: dict[str, Callable[[AwkInterpreter, tuple[AwkNode, ...]], Value]] = {
    "length": AwkInterpreter._length,
    "substr": AwkInterpreter._substr,
    "index": AwkInterpreter._index,
    "split": AwkInterpreter._split,
    "sub": AwkInterpreter._sub,
    "gsub": AwkInterpreter._gsub,
    "match": AwkInterpreter._find,
    "sprintf": AwkInterpreter._sprintf,
    "close": AwkInterpreter._close,
    "fflush": lambda interpreter, parts: 0.0,
    "tolower": AwkInterpreter._lower,
    "toupper": AwkInterpreter._upper,
    "int": _mathematical(math.trunc),
    "sqrt": _mathematical(math.sqrt),
    "exp": _mathematical(math.exp),
    "log": _mathematical(math.log),
    "sin": _mathematical(math.sin),
    "cos": _mathematical(math.cos),
    "atan2": _mathematical(math.atan2),
}


@program(
    "-F=FS", "-v=NAME=VALUE", "-f=FILE", style=ArgumentStyle(is_permuted=False, usage_status=2)
)
def awk(call: Execution, options: Arguments) -> int:
    """Run a program over the fields of lines."""
    operands = list(options.operands)
    source = _source(call, options, operands)
    interpreter = AwkInterpreter(call, AwkParser(source).parse())
    environment: dict[str, Value] = {}
    for name, value in call.env.items():
        text = from_argument(value)
        environment[from_argument(name)] = InputText(text)
    interpreter.arrays["ENVIRON"] = environment
    words = [call.name, *operands]
    arguments: dict[str, Value] = {str(place): InputText(word) for place, word in enumerate(words)}
    interpreter.arrays["ARGV"] = arguments
    interpreter.variables["ARGC"] = float(len(arguments))
    for key, value in options.given:
        if key == "F":
            separator = "\t"
            if value != "t":
                separator = unescape(from_argument(value))
            interpreter.variables["FS"] = separator
        elif key == "v":
            match = ASSIGNMENT.fullmatch(from_argument(value))
            if match is None:
                raise Unknown(f"awk -v {value}")
            interpreter.assign_from_outside(*match.groups())
    return interpreter.run(operands)


def _source(call: Execution, options: Arguments, operands: list[str]) -> str:
    pieces: list[str] = []
    for name in options.all("f"):
        try:
            pieces.append(to_text(read_file(call, name)))
        except FileError as error:
            message = f"cannot open {name} ({error.problem})"
            raise Failure(message, 2) from error
    if pieces:
        return "\n".join(pieces)
    if not operands:
        raise Unknown("awk without a program")
    return from_argument(operands.pop(0))
