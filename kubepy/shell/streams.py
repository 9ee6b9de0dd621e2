"""Programs that read while others write, or that go on for ever: ``cat`` and ``tee`` of a pipe,
``tail -f``, ``yes``, ``head`` that ends a pipeline early, ``nc -l``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kubepy.shell.files import FileError
from kubepy.shell.processes import PIPE_END, Block, Frame

if TYPE_CHECKING:
    from kubepy.shell.stack import Stack

STEP, DATA = 3, 4
STREAMING = 5  # the step of a program of this module that has begun
LINES = re.compile(r"-(?:n ?)?(\d+)")
BYTES = re.compile(r"(?:-c ?|--bytes[= ])(\d+)")


class NotAStream(Exception):
    """A call that is not one of these: the program is a plain one."""


def _input(stack: Stack) -> Any:
    """Return the pipe that is read. Raises NotAStream for another input."""
    handle = stack.machine.handle_of(stack.process, 0)
    if handle is None or handle.kind != PIPE_END:
        raise NotAStream
    return handle


def _copied(stack: Stack, copy: Callable[[bytes], object]) -> int | None:
    """Copy what has come. Return 0 at the end, None while more may come."""
    machine = stack.machine
    process = stack.process
    handle = _input(stack)
    data, is_over = machine.peek_input(handle)
    machine.take_input(handle, len(data))
    if not is_over:
        process.block = Block("read", handle=process.handles[0])
    if data:
        copy(data)
    if is_over and process.is_alive:
        return 0
    return None


def cat(stack: Stack, frame: Frame, args: list[str]) -> int | None:
    """Copy a pipe."""
    if any(arg not in ("-", "-u") for arg in args):
        raise NotAStream
    return _copied(stack, lambda data: stack.machine.write(stack.process, 1, data))


def tee(stack: Stack, frame: Frame, args: list[str]) -> int | None:
    """Copy a pipe into files too."""
    if any(arg.startswith("-") and arg != "-a" for arg in args):
        raise NotAStream
    _input(stack)
    machine = stack.machine
    process = stack.process
    paths = [machine.absolute(process, arg) for arg in args if arg != "-a"]
    if frame[STEP] == 0:
        frame[STEP] = STREAMING
        frame[DATA]["failed"] = []
        for path in paths:
            try:
                machine.files.write(
                    path,
                    b"",
                    now=machine.now,
                    append="-a" in args,
                )
            except FileError as error:
                frame[DATA]["failed"].append(path)
                machine.write(process, 2, f"tee: {path}: {error.problem}\n".encode())

    def copy(data: bytes) -> None:
        for path in paths:
            if path not in frame[DATA]["failed"]:
                machine.files.write(
                    path,
                    data,
                    now=machine.now,
                    append=True,
                )
        machine.write(process, 1, data)

    status = _copied(stack, copy)
    if status == 0 and frame[DATA]["failed"]:
        return 1
    return status


def head(stack: Stack, frame: Frame, args: list[str]) -> int | None:
    """Copy the first lines or bytes of a pipe, and end as soon as they are there."""
    bytes_wanted = BYTES.fullmatch(" ".join(args))
    if bytes_wanted is not None:
        return _head_bytes(stack, int(bytes_wanted[1]))
    count = _line_count(args)
    machine = stack.machine
    process = stack.process
    handle = _input(stack)
    data, is_over = machine.peek_input(handle)
    lines = data.split(b"\n")
    if len(lines) - 1 < count and not is_over:
        process.block = Block("read", handle=process.handles[0], version=len(data))
        return None
    kept = b"".join(line + b"\n" for line in lines[:-1][:count])
    if len(lines) - 1 < count:
        kept += lines[-1]
    machine.take_input(handle, len(kept))
    machine.write(process, 1, kept)
    return 0 if process.is_alive else None


def _head_bytes(stack: Stack, count: int) -> int | None:
    machine = stack.machine
    process = stack.process
    data, is_over = machine.peek_input(_input(stack))
    if len(data) < count and not is_over:
        process.block = Block("read", handle=process.handles[0], version=len(data))
        return None
    kept = data[:count]
    machine.take_input(_input(stack), len(kept))
    machine.write(process, 1, kept)
    return 0 if process.is_alive else None


def _line_count(args: list[str]) -> int:
    if not args:
        return 10
    found = LINES.fullmatch(" ".join(args))
    if found is None:
        raise NotAStream
    return int(found[1])


def tail(stack: Stack, frame: Frame, args: list[str]) -> int | None:
    """Follow a file: what is appended is printed."""
    is_following = any(arg in ("-f", "-F", "--follow", "--retry", "-fn", "-Fn") for arg in args)
    if not is_following and not any(
        re.fullmatch(r"-\d*[fF]|-[fF]\d*|-n\d+[fF]", arg) for arg in args
    ):
        raise NotAStream
    machine = stack.machine
    process = stack.process
    names, count = _tail_arguments(args)
    if not names:
        return _copied(stack, lambda data: machine.write(process, 1, data))
    if frame[STEP] == 0:
        frame[STEP] = STREAMING
        frame[DATA]["offsets"] = {}
    offsets: dict[str, int] = frame[DATA]["offsets"]
    process.is_unsteady = True
    is_missing = False
    for name in names:
        path = machine.absolute(process, name)
        if path.startswith("/dev/"):
            continue
        try:
            content = machine.files.read(path)
        except FileError as error:
            if name not in offsets:
                message = f"tail: cannot open '{name}' for reading: {error.problem}\n"
                machine.write(process, 2, machine.in_its_words("tail", message.encode()))
            is_missing = True
            offsets.setdefault(name, 0)
            continue
        begin = offsets.get(name)
        if begin is None:
            lines = content.splitlines(keepends=True)
            shown = b"".join(lines[-count:] if count else [])
        else:
            shown = content[begin:] if begin <= len(content) else content
        offsets[name] = len(content)
        if shown:
            machine.write(process, 1, shown)
    retries = any(arg in ("-F", "--retry") for arg in args)
    if is_missing and len(names) == 1 and not retries:
        machine.write(process, 2, b"tail: no files remaining\n")
        return 1
    if process.is_alive and process.block is None:
        process.block = Block("file", version=machine.files.version)
    return None


def _tail_arguments(args: list[str]) -> tuple[list[str], int]:
    """Return the files and the number of lines of ``tail``."""
    names = []
    count = 10
    words = list(args)
    while words:
        word = words.pop(0)
        if word in ("-n", "-fn", "-Fn") and words:
            word = f"-n{words.pop(0)}"
        found = re.fullmatch(r"-(?:n|[fF])?(\d+)[fF]?", word)
        if found:
            count = int(found[1])
        elif not word.startswith("-"):
            names.append(word)
    return names, count


def yes(stack: Stack, frame: Frame, args: list[str]) -> int | None:
    """Print a line again and again, as long as somebody reads it."""
    line = (" ".join(args) or "y").encode("utf-8", "surrogateescape") + b"\n"
    handle = stack.machine.handle_of(stack.process, 1)
    stack.machine.write(stack.process, 1, line * 100)
    if handle is None or handle.kind != "in":
        stack.process.block = Block("never")
    return None


def nc(stack: Stack, frame: Frame, args: list[str]) -> int | None:
    """Listen on a port."""
    if not any(re.fullmatch(r"-[a-z]*l[a-z]*", arg) for arg in args):
        raise NotAStream
    machine = stack.machine
    for arg in args:
        if arg.isdigit() and int(arg) not in machine.ports:
            machine.ports.append(int(arg))
    stack.process.block = Block("never")
    return None


Stream = Callable[["Stack", Frame, "list[str]"], "int | None"]
STREAMS: Mapping[str, Stream] = {
    "cat": cat,
    "head": head,
    "nc": nc,
    "tail": tail,
    "tee": tee,
    "yes": yes,
}
