"""Encodings and digests: base64, md5sum, sha1sum, sha256sum, sha512sum."""

from __future__ import annotations

import base64 as encoding
import binascii
import hashlib
import re

from kubepy.shell.files import FileError
from kubepy.shell.utilities.inputs import Inputs, lines_of, read_file, whole_number
from kubepy.shell.utilities.program import Arguments, Failure, complain, program
from kubepy.shell.utility import Execution

ALPHABET = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
CHECK_LINE = re.compile(r"([0-9a-fA-F]+) [ *](.+)")


@program("-d,-D,--decode", "-i,--ignore-garbage", "-w,--wrap=COLS")
def base64(call: Execution, options: Arguments) -> int:
    """Encode or decode base64."""
    width = whole_number(options.get("w", "76"), f"invalid wrap size: '{options.get('w')}'")
    if len(options.operands) > 1:
        extra = f"extra operand '{options.operands[1]}'"
        raise Failure(f"{extra}\nTry 'base64 --help' for more information.")
    name = "-"
    if options.operands:
        name = options.operands[0]
    try:
        data = read_file(call, name)
    except FileError as error:
        is_directory = error.problem == "Is a directory"
        subject = name
        if is_directory:
            subject = "read error"
        message = f"{subject}: {error.problem}"
        raise Failure(message) from error
    if options.has("d"):
        return _decode(call, data, options)
    encoded = encoding.b64encode(data).decode()
    if not width:
        call.out(encoded)
        return 0
    for start in range(0, len(encoded), width):
        call.out(encoded[start : start + width] + "\n")
    return 0


def _decode(call: Execution, data: bytes, options: Arguments) -> int:
    if options.has("i"):
        data = re.sub(rb"[^A-Za-z0-9+/=]", b"", data)
    text = data.replace(b"\n", b"")
    good = ALPHABET.match(text)
    assert good is not None
    end = good.end()
    is_whole = end == len(text) and end % 4 == 0
    usable_length = end // 4 * 4
    usable = text[:usable_length]
    try:
        call.out(encoding.b64decode(usable))
    except binascii.Error:
        is_whole = False
    rest = text[usable_length:end].rstrip(b"=")
    if not is_whole and len(rest) > 1:
        padded = rest.ljust(4, b"A")
        decoded = encoding.b64decode(padded)
        call.out(decoded[: len(rest) - 1])
    if is_whole:
        return 0
    raise Failure("invalid input")


def _digest(call: Execution, options: Arguments, algorithm: str) -> int:
    if options.has("c"):
        return _check(call, options, algorithm)
    inputs = Inputs(call, options.operands)
    for name, data in inputs:
        digest = hashlib.new(algorithm, data).hexdigest()
        mark = " "
        if options.has("b"):
            mark = "*"
        line = f"{digest} {mark}{name}\n"
        call.out(line)
    return inputs.status


def _check(call: Execution, options: Arguments, algorithm: str) -> int:
    inputs = Inputs(call, options.operands)
    failures = 0
    unread = 0
    checked = 0
    for name, data in inputs:
        for line in lines_of(data):
            match = CHECK_LINE.fullmatch(line.decode("utf-8", "replace"))
            if match is None:
                continue
            checked += 1
            digest, file = match.groups()
            try:
                content = read_file(call, file)
            except FileError as error:
                unread += 1
                message = f"{file}: {error.problem}"
                complain(call, message)
                call.out(f"{file}: FAILED open or read\n")
                continue
            is_same = hashlib.new(algorithm, content).hexdigest() == digest.lower()
            failures += not is_same
            _report(call, file, options, is_same=is_same)
        if not checked:
            raise Failure(f"{name}: no properly formatted checksum lines found")
    _summarize(call, unread, "listed file{} could not be read")
    _summarize(call, failures, "computed checksum{} did NOT match")
    if failures or unread:
        return 1
    return inputs.status


def _report(call: Execution, file: str, options: Arguments, *, is_same: bool) -> None:
    if options.has("status") or (is_same and options.has("quiet", "s")):
        return
    line = f"{file}: {'OK' if is_same else 'FAILED'}\n"
    call.out(line)


def _summarize(call: Execution, count: int, text: str) -> None:
    if count:
        message = f"WARNING: {count} {text.format('' if count == 1 else 's')}"
        complain(call, message)


DIGEST_OPTIONS = ("-b,--binary", "-c,--check", "-t,--text", "-s", "--quiet", "--status")


@program(*DIGEST_OPTIONS)
def md5sum(call: Execution, options: Arguments) -> int:
    """Print or check MD5 digests."""
    return _digest(call, options, "md5")


@program(*DIGEST_OPTIONS)
def sha1sum(call: Execution, options: Arguments) -> int:
    """Print or check SHA-1 digests."""
    return _digest(call, options, "sha1")


@program(*DIGEST_OPTIONS)
def sha256sum(call: Execution, options: Arguments) -> int:
    """Print or check SHA-256 digests."""
    return _digest(call, options, "sha256")


@program(*DIGEST_OPTIONS)
def sha512sum(call: Execution, options: Arguments) -> int:
    """Print or check SHA-512 digests."""
    return _digest(call, options, "sha512")
