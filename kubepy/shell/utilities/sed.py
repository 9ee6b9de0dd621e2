"""The program sed: scripts are run over lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import (
    Inputs,
    absolute,
    from_argument,
    read_file,
    to_bytes,
    to_text,
)
from kubepy.shell.utilities.patterns import Pattern, PatternMatch, matches
from kubepy.shell.utilities.program import Arguments, Failure, program
from kubepy.shell.utilities.sedscript import SedAddress, SedCommand, SedParser, SedSubstitution
from kubepy.shell.utility import Execution, Unknown

MOST_STEPS = 5_000_000


class _EndCycle(Exception):
    """Start with the next line."""


class _Quit(Exception):
    """End the program."""


class _Editor:
    """One run of a script over a sequence of lines."""

    def __init__(self, call: Execution, commands: list[SedCommand], options: Arguments) -> None:
        self.call = call
        self.commands = commands
        self.is_quiet = options.has("n")
        self.terminator = "\n"
        if options.has("z"):
            self.terminator = "\0"
        self.lines: list[str] = []
        self.number = 0
        self.index = 0
        self.space = ""
        self.hold = ""
        self.has_end = True  # the pattern space ends with a newline when it is printed
        self.has_hold_end = True
        self.is_end_missing = False
        self.is_replaced = False
        self.appended: list[str] = []
        self.output: list[str] = []
        self.status = 0
        self.last_pattern: Pattern | None = None
        self.has_last_end = True
        self.steps = 0
        self.written: dict[str, list[str]] = {}

    def edit(self, text: str, *, restarts: bool = False) -> None:
        """Run the script over a text. Raises _Quit."""
        self.lines = text.split(self.terminator)
        self.has_last_end = self.lines[-1] == ""
        if self.has_last_end:
            self.lines.pop()
        self.index = 0
        if restarts:
            self.number = 0
        while self._next_line():
            try:
                self._run()
            except _EndCycle:
                continue
            except _Quit:
                self._finish_cycle()
                raise
            self._finish_cycle()

    def _next_line(self) -> bool:
        if self.index >= len(self.lines):
            return False
        self.space = self.lines[self.index]
        self.index += 1
        self.number += 1
        self.has_end = self.index < len(self.lines) or self.has_last_end
        self.is_replaced = False
        return True

    def _finish_cycle(self) -> None:
        if not self.is_quiet:
            self._print(self.space, has_end=self.has_end)
        self._flush()

    def _print(self, text: str, *, has_end: bool = True) -> None:
        """Print a line; a last one that had no end gets it when another follows."""
        if self.is_end_missing:
            self.output.append(self.terminator)
        self.output.append(text + self.terminator if has_end else text)
        self.is_end_missing = not has_end

    def _write_text(self, text: str) -> None:
        self._print(text.removesuffix(self.terminator))

    def _flush(self) -> None:
        for text in self.appended:
            if self.is_end_missing:
                self.output.append(self.terminator)
                self.is_end_missing = False
            self.output.append(text)
        self.appended.clear()

    def _run(self) -> None:
        place = 0
        while place < len(self.commands):
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Unknown("sed script that does not end")
            command = self.commands[place]
            is_chosen = self._selects(command) != command.is_negated
            place = self._execute(command, place) if is_chosen else self._passed(command, place)

    def _passed(self, command: SedCommand, place: int) -> int:
        if command.name == "{":
            return command.number
        return place + 1

    def _selects(self, command: SedCommand) -> bool:
        if not command.addresses:
            return True
        if len(command.addresses) == 1:
            return self._matches(command.addresses[0])
        return self._in_range(command)

    def _in_range(self, command: SedCommand) -> bool:
        first, second = command.addresses
        if command.active_until:
            return self._goes_on(command, second)
        begins_before = first == SedAddress("line", 0) and self.number == 1
        if not begins_before and not self._matches(first):
            return False
        if begins_before and self._matches(second):
            return True
        command.active_until = self._range_end(second)
        if command.active_until in range(1, self.number + 1):
            command.active_until = 0
        return True

    def _range_end(self, second: SedAddress) -> int:
        """Return the last line of a range that begins; -1 where it is not known yet."""
        if second.kind == "line":
            return second.number or self.number
        if second.kind == "plus":
            return self.number + second.number
        if second.kind == "multiple":
            step = second.number
            if step:
                return -(-self.number // step) * step
            return self.number
        if not (second.kind == "last" and self._is_last()):
            return -1
        return self.number

    def _goes_on(self, command: SedCommand, second: SedAddress) -> bool:
        if command.active_until > 0:
            is_inside = self.number <= command.active_until
            if self.number >= command.active_until:
                command.active_until = 0
            return is_inside or self._matches(command.addresses[0])
        if self._matches(second):
            command.active_until = 0
        return True

    def _is_last(self) -> bool:
        return self.index >= len(self.lines)

    def _matches(self, address: SedAddress) -> bool:
        if address.kind == "line":
            return self.number == address.number
        if address.kind == "last":
            return self._is_last()
        if address.kind == "step":
            if address.step == 0:
                return self.number == address.number
            distance = self.number - address.number
            return distance >= 0 and distance % address.step == 0
        return self._used(address.pattern).search(self.space) is not None

    def _used(self, pattern: Pattern | None) -> Pattern:
        if pattern is None:
            pattern = self.last_pattern
        if pattern is None:
            raise Failure("no previous regular expression")
        self.last_pattern = pattern
        return pattern

    def _execute(self, command: SedCommand, place: int) -> int:
        name = command.name
        if name == "b":
            return command.number
        if name in ("t", "T"):
            jumps = self.is_replaced == (name == "t")
            self.is_replaced = False
            if jumps:
                return command.number
            return place + 1
        if name == "D" and "\n" in self.space:
            self._flush()
            self.space = self.space.partition("\n")[2]
            return 0
        action = ACTIONS.get(name)
        if action:
            action(self, command)
        return place + 1

    def _append(self, command: SedCommand) -> None:
        self.appended.append(command.text)

    def _insert(self, command: SedCommand) -> None:
        self._write_text(command.text)

    def _change(self, command: SedCommand) -> None:
        is_range_open = len(command.addresses) == 2 and command.active_until
        if not is_range_open or command.is_negated:
            self._write_text(command.text)
        self._delete(command)

    def _delete(self, command: SedCommand) -> NoReturn:
        self._flush()
        raise _EndCycle

    def _equals(self, command: SedCommand) -> None:
        self._print(str(self.number))

    def _get(self, command: SedCommand) -> None:
        self.space = self.hold
        self.has_end = self.has_hold_end

    def _get_appended(self, command: SedCommand) -> None:
        self.space += "\n" + self.hold
        self.has_end |= self.has_hold_end

    def _hold(self, command: SedCommand) -> None:
        self.hold = self.space
        self.has_hold_end = self.has_end

    def _hold_appended(self, command: SedCommand) -> None:
        self.hold += "\n" + self.space
        self.has_hold_end |= self.has_end

    def _exchange(self, command: SedCommand) -> None:
        self.space, self.hold = self.hold, self.space
        self.has_end, self.has_hold_end = self.has_hold_end, self.has_end

    def _list(self, command: SedCommand) -> None:
        shown = "".join(_unambiguous(character) for character in self.space) + "$"
        width = (command.number or 70) - 1
        if command.number == 1:
            width = len(shown)
        while len(shown) > width + 1:
            cut = _line_cut(shown, width)
            self._print(shown[:cut] + "\\")
            shown = shown[cut:]
        self._print(shown)

    def _next(self, command: SedCommand) -> None:
        if self._is_last():
            raise _Quit
        self._finish_cycle()
        self._advance()

    def _next_appended(self, command: SedCommand) -> None:
        if self._is_last():
            raise _Quit
        self._flush()
        before = self.space
        self._advance()
        self.space = f"{before}\n{self.space}"

    def _advance(self) -> None:
        is_replaced = self.is_replaced
        self._next_line()
        self.is_replaced = is_replaced

    def _print_space(self, command: SedCommand) -> None:
        self._print(self.space, has_end=self.has_end)

    def _print_first(self, command: SedCommand) -> None:
        first, newline, _ = self.space.partition("\n")
        self._print(first, has_end=bool(newline) or self.has_end)

    def _quit(self, command: SedCommand) -> NoReturn:
        self.status = command.number
        self.has_end = True
        raise _Quit

    def _quit_silently(self, command: SedCommand) -> NoReturn:
        self.is_quiet = True
        self.appended.clear()
        self._quit(command)

    def _read(self, command: SedCommand) -> None:
        try:
            self.appended.append(to_text(read_file(self.call, command.text)))
        except FileError:
            return  # a file that cannot be read is passed over

    def _write(self, command: SedCommand) -> None:
        self._write_to(command.text)

    def _write_to(self, name: str) -> None:
        if name == "/dev/stdout":
            self._print(self.space, has_end=self.has_end)
        else:
            self.written.setdefault(name, []).append(self.space + "\n")

    def _translate(self, command: SedCommand) -> None:
        self.space = self.space.translate(command.translation)

    def _substitute(self, command: SedCommand) -> None:
        substitution = command.substitution
        assert substitution is not None
        pattern = self._used(substitution.pattern)
        pieces: list[str] = []
        position = 0
        count = 0
        for match in matches(pattern, self.space):
            count += 1
            if count < substitution.number:
                continue
            pieces += [self.space[position : match.start], _replaced(match, substitution)]
            position = match.end
            if not substitution.is_global:
                break
        if not pieces:
            return
        self.space = "".join(pieces) + self.space[position:]
        self.is_replaced = True
        if substitution.is_printed:
            self._print(self.space, has_end=self.has_end)
        if substitution.file:
            self._write_to(substitution.file)


ACTIONS: dict[str, Callable[[_Editor, SedCommand], None]] = {
    "a": _Editor._append,
    "i": _Editor._insert,
    "c": _Editor._change,
    "d": _Editor._delete,
    "D": _Editor._delete,
    "=": _Editor._equals,
    "g": _Editor._get,
    "G": _Editor._get_appended,
    "h": _Editor._hold,
    "H": _Editor._hold_appended,
    "x": _Editor._exchange,
    "l": _Editor._list,
    "n": _Editor._next,
    "N": _Editor._next_appended,
    "p": _Editor._print_space,
    "P": _Editor._print_first,
    "q": _Editor._quit,
    "Q": _Editor._quit_silently,
    "r": _Editor._read,
    "w": _Editor._write,
    "y": _Editor._translate,
    "s": _Editor._substitute,
}


def _replaced(match: PatternMatch, substitution: SedSubstitution) -> str:
    pieces: list[str] = []
    case = ""
    next_case = ""
    for part in substitution.replacement:
        if isinstance(part, str) and part.startswith("\\") and len(part) == 2:
            if part[1] in "ul":
                next_case = part[1]
            else:
                case = part[1].replace("E", "")
                next_case = ""
            continue
        text = match.group(part) if isinstance(part, int) else part
        if case:
            text = text.upper() if case == "U" else text.lower()
        if next_case and text:
            first = text[0].upper() if next_case == "u" else text[0].lower()
            text = first + text[1:]
            next_case = ""
        pieces.append(text)
    return "".join(pieces)


def _unambiguous(character: str) -> str:
    named = {
        "\\": "\\\\",
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
    }
    named |= {"\t": "\\t", "\v": "\\v"}
    if character in named:
        return named[character]
    if 32 <= ord(character) < 127:
        return character
    return f"\\{ord(character):03o}"


def _line_cut(shown: str, width: int) -> int:
    """Return where a line of ``l`` is broken: not within an escape."""
    cut = 0
    while cut < len(shown):
        length = 1
        if shown[cut] == "\\":
            length = 2
            if shown[cut + 1].isdigit():
                length = 4
        if cut + length > width:
            break
        cut += length
    return cut


@program(
    "-n,--quiet,--silent",
    "-e,--expression=SCRIPT",
    "-f,--file=FILE",
    "-E,-r,--regexp-extended",
    "-i,--in-place[=SUFFIX]",
    "-s,--separate",
    "-u,--unbuffered",
    "-z,--null-data",
)
def sed(call: Execution, options: Arguments) -> int:
    """Edit lines by a script."""
    operands = list(options.operands)
    script = _script(call, options, operands)
    if script.startswith("#n\n"):
        options.given.append(("n", ""))
    commands = SedParser(script, extended=options.has("E")).parse()
    editor = _Editor(call, commands, options)
    inputs = Inputs(
        call,
        operands,
        message="can't read {name}: {problem}",
        directory="couldn't edit {name}: not a regular file"
        if options.has("i")
        else "read error on {name}: {problem}",
        status=2,
    )
    if options.has("i", "s"):
        _edit_each(call, editor, inputs, options)
    else:
        _edit_all(editor, inputs)
        call.out(to_bytes("".join(editor.output)))
    for name, lines in editor.written.items():
        _save(call, name, to_bytes("".join(lines)))
    return editor.status or inputs.status


def _script(call: Execution, options: Arguments, operands: list[str]) -> str:
    pieces: list[str] = []
    for key, value in options.given:
        if key == "e":
            pieces.append(from_argument(value))
        elif key == "f":
            try:
                pieces.append(to_text(read_file(call, value)).removesuffix("\n"))
            except FileError as error:
                message = f"couldn't open file {value}: {error.problem}"
                raise Failure(message) from error
    if pieces:
        return "\n".join(pieces)
    if not operands:
        raise Unknown("sed without a script")
    return from_argument(operands.pop(0))


def _edit_all(editor: _Editor, inputs: Inputs) -> None:
    pieces: list[str] = []
    for _, data in inputs:
        if pieces and not pieces[-1].endswith(editor.terminator):
            pieces.append(editor.terminator)
        if data:
            pieces.append(to_text(data))
    try:
        editor.edit("".join(pieces))
    except _Quit:
        return


def _edit_each(call: Execution, editor: _Editor, inputs: Inputs, options: Arguments) -> None:
    suffix = options.get("i")
    for name, data in inputs:
        has_quit = False
        try:
            editor.edit(to_text(data), restarts=True)
        except _Quit:
            has_quit = True
        content = to_bytes("".join(editor.output))
        editor.output.clear()
        editor.is_end_missing = False
        if not options.has("i"):
            call.out(content)
        else:
            if suffix:
                backup = suffix.replace("*", name) if "*" in suffix else name + suffix
                _save(call, backup, data)
            _save(call, name, content)
        if has_quit:
            return


def _save(call: Execution, name: str, content: bytes) -> None:
    try:
        path = absolute(call, name)
        call.files.write(path, content, now=call.now)
    except FileError as error:
        message = f"couldn't open file {name}: {error.problem}"
        raise Failure(message, 4) from error
