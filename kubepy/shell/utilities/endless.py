"""The devices that have no end."""

from __future__ import annotations

from kubepy.shell.utility import Execution, Unknown

ENDLESS = ("/dev/zero", "/dev/random", "/dev/urandom")
READ_AT_MOST = 16_384  # bytes of one that is read to its end, as in front of ``| head -c 8``
MOST_BYTES = 256 * 1024**2


def endless_bytes(call: Execution, path: str, count: int) -> bytes:
    """Return the first bytes of /dev/zero or /dev/urandom. Raises Unknown for too many."""
    if count > MOST_BYTES:
        raise Unknown(f"{count} bytes of {path}")
    if path == "/dev/zero":
        return bytes(count)
    call.is_steady = False
    return bytes(int(call.random() * 256) for _ in range(count))
