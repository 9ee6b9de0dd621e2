"""The program dd, and the devices that have no end."""

from __future__ import annotations

import re

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import absolute, read_file
from kubepy.shell.utilities.program import Failure, usage_error
from kubepy.shell.utility import Invocation, Unknown

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
HARMLESS = frozenset(["notrunc", "fsync", "fdatasync", "sync", "direct", "dsync", "noerror", ""])
MOST_BYTES = 256 * 1024**2
ENDLESS = ("/dev/zero", "/dev/random", "/dev/urandom")


def endless_bytes(call: Invocation, path: str, count: int) -> bytes:
    """Return the first bytes of /dev/zero or /dev/urandom. Raises Unknown for too many."""
    if count > MOST_BYTES:
        raise Unknown(f"{count} bytes of {path}")
    if path == "/dev/zero":
        return bytes(count)
    call.is_steady = False
    return bytes(int(call.random() * 256) for _ in range(count))


def _size(text: str) -> int:
    match = SIZE.fullmatch(text)
    if match is None or match[2] not in UNITS:
        raise Failure(f"invalid number: '{text}'")
    return int(match[1]) * UNITS[match[2]]


def _settings(call: Invocation) -> dict[str, str]:
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


def dd(call: Invocation) -> int:
    """Copy blocks of a file."""
    try:
        return _copy(call, _settings(call))
    except Failure as failure:
        call.err(f"{call.name}: {failure.message}\n")
        return failure.status


def _copy(call: Invocation, settings: dict[str, str]) -> int:
    block = _size(settings.get("bs") or settings.get("ibs") or "512")
    if block == 0:
        raise Failure("invalid number: '0'")
    skipped = _size(settings.get("skip", "0")) * block
    data = _input(call, settings, block, skipped)
    _output(call, settings, data, block)
    if settings.get("status") != "none":
        _report(call, settings, data, block)
    return 0


def _input(call: Invocation, settings: dict[str, str], block: int, skipped: int) -> bytes:
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
        raise Failure(f"failed to open '{name}': {error.problem}") from error
    return data[skipped:] if length is None else data[skipped : skipped + length]


def _output(call: Invocation, settings: dict[str, str], data: bytes, block: int) -> None:
    name = settings.get("of", "")
    if not name:
        call.out(data)
        return
    path = absolute(call, name)
    start = _size(settings.get("seek", "0")) * block
    keeps = "notrunc" in settings.get("conv", "").split(",")
    try:
        before = call.files.read(path) if call.files.is_file(path) else b""
        rest = before[start + len(data) :] if keeps else b""
        content = before[:start].ljust(start, b"\0") + data + rest
        call.files.write(path, content, now=call.now)
    except FileError as error:
        if error.problem == "No space left on device":
            raise Failure(f"error writing '{name}': {error.problem}") from error
        raise Failure(f"failed to open '{name}': {error.problem}") from error


def _report(call: Invocation, settings: dict[str, str], data: bytes, block: int) -> None:
    whole, rest = divmod(len(data), block)
    records = f"{whole}+{1 if rest else 0}"
    out_block = _size(settings.get("bs") or settings.get("obs") or "512")
    out_whole, out_rest = divmod(len(data), out_block)
    call.err(f"{records} records in\n{out_whole}+{1 if out_rest else 0} records out\n")
    if settings.get("status") != "noxfer":
        plural = "" if len(data) == 1 else "s"
        call.err(f"{len(data)} byte{plural} copied, 0.001 s, {len(data)} kB/s\n")
