"""The program dd."""

from __future__ import annotations

import re

from kubepy.shell.files import FileError
from kubepy.shell.utilities.endless import ENDLESS, endless_bytes
from kubepy.shell.utilities.inputs import absolute, read_file
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, Failure, program, usage_error
from kubepy.shell.utility import Execution, Unknown

SIZE = re.compile(r"(\d+)([a-zA-Z]*)")
UNITS = {
    "": 1,
    "c": 1,
    "w": 2,
    "b": 512,
    "k": 1024,
    "K": 1024,
    "kB": 1000,
    "M": 1024**2,
    "MB": 1000**2,
    "G": 1024**3,
    "GB": 1000**3,
}
KEYS = ("if", "of", "bs", "ibs", "obs", "count", "skip", "seek", "conv", "status", "iflag", "oflag")
SECONDS = "0.001"  # that a copy takes
HARMLESS = frozenset(["notrunc", "fsync", "fdatasync", "sync", "direct", "dsync", "noerror", ""])


def _size(text: str) -> int:
    match = SIZE.fullmatch(text)
    if match is None or match[2] not in UNITS:
        raise Failure(f"invalid number: '{text}'")
    return int(match[1]) * UNITS[match[2]]


def _settings(call: Execution) -> dict[str, str]:
    settings: dict[str, str] = {}
    for argument in call.args:
        key, separator, value = argument.partition("=")
        if not separator:
            raise usage_error(call.name, f"unrecognized operand '{argument}'")
        if key not in KEYS:
            raise Unknown(f"dd {argument}")
        settings[key] = value
    for key in ("conv", "iflag", "oflag"):
        if set(settings.get(key, "").split(",")) - HARMLESS:
            raise Unknown(f"dd {key}={settings[key]}")
    return settings


@program(*(f"{key}=" for key in KEYS), style=ArgumentStyle(is_raw=True))
def dd(call: Execution, options: Arguments) -> int:
    """Copy blocks of a file."""
    return _copy(call, _settings(call))


def _copy(call: Execution, settings: dict[str, str]) -> int:
    block = _size(settings.get("bs") or settings.get("ibs") or "512")
    if block == 0:
        raise Failure("invalid number: '0'")
    skipped = _size(settings.get("skip", "0")) * block
    data = _input(call, settings, block, skipped)
    _output(call, settings, data, block)
    if settings.get("status") != "none":
        _report(call, settings, data, block)
    return 0


def _input(call: Execution, settings: dict[str, str], block: int, skipped: int) -> bytes:
    name = settings.get("if", "-")
    count = settings.get("count")
    length = _size(count) * block if count else None
    if name in ENDLESS:
        if length is None:
            raise Unknown(f"dd of all of {name}")
        return endless_bytes(call, name, length)
    try:
        data = read_file(call, name)
    except FileError as error:
        message = f"failed to open '{name}': {error.problem}"
        raise Failure(message) from error
    if length is None:
        return data[skipped:]
    return data[skipped : skipped + length]


def _output(call: Execution, settings: dict[str, str], data: bytes, block: int) -> None:
    name = settings.get("of", "")
    if not name:
        call.out(data)
        return
    path = absolute(call, name)
    start = _size(settings.get("seek", "0")) * block
    keeps = "notrunc" in settings.get("conv", "").split(",")
    try:
        before = b""
        if call.files.is_file(path):
            before = call.files.read(path)
        rest = b""
        if keeps:
            rest = before[start + len(data) :]
        content = before[:start].ljust(start, b"\0") + data + rest
        call.files.write(path, content, now=call.now)
    except FileError as error:
        if error.problem == "No space left on device":
            message = f"error writing '{name}': {error.problem}"
            raise Failure(message) from error
        message = f"failed to open '{name}': {error.problem}"
        raise Failure(message) from error


def _report(call: Execution, settings: dict[str, str], data: bytes, block: int) -> None:
    size = len(data)
    out_text = settings.get("bs") or settings.get("obs") or "512"
    out_block = _size(out_text)
    call.err(f"{_records(size, block)} records in\n")
    call.err(f"{_records(size, out_block)} records out\n")
    if settings.get("status") == "noxfer":
        return
    plural = "s"
    if size == 1:
        plural = ""
    sizes = ""
    if size >= 1000:
        units = ", ".join(_units(size))
        sizes = f" ({units})"
    rate = _units(size * 1000)[0]
    message = f"{size} byte{plural}{sizes} copied, {SECONDS} s, {rate}/s\n"
    call.err(message)


def _records(size: int, block: int) -> str:
    """Return how many whole blocks and parts of one there are."""
    whole, rest = divmod(size, block)
    parts = 0
    if rest:
        parts = 1
    return f"{whole}+{parts}"


def _units(count: int) -> list[str]:
    """Return a size in units of thousands, then, if it is that large, in those of 1024."""
    texts: list[str] = []
    for base, names in ((1000, ("B", "kB", "MB", "GB", "TB")), (1024, ("", "KiB", "MiB", "GiB"))):
        size = float(count)
        place = 0
        while size >= base and place < len(names) - 1:
            size /= base
            place += 1
        if names[place]:
            texts.append(
                f"{size:.1f} {names[place]}" if size < 10 else f"{size:.0f} {names[place]}"
            )
    return texts
