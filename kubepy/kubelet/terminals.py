"""The line discipline of a terminal whose other end sends keys as they are pressed.

A client with a terminal leaves echo, editing of a line and interrupts to the far end, where a real
node has a pseudo-terminal (``man 4 termios``, in its canonical mode).
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy import system

ERASE = (0x08, 0x7F)
KILL_LINE = 0x15
END_OF_FILE = 0x04
RETURN = (0x0A, 0x0D)
SIGNALS = {0x03: system.SIGINT, 0x1C: system.SIGQUIT}


class Typed(NamedTuple):
    """What keys have brought.

    :ivar echo: what the terminal shows for them.
    :ivar input: whole lines for the process; None: the end of its input.
    """

    echo: bytes = b""
    input: tuple[bytes | None, ...] = ()
    signals: tuple[int, ...] = ()


class LineDiscipline:
    """Makes lines of keys."""

    def __init__(self) -> None:
        self._line = bytearray()

    def type(self, keys: bytes) -> Typed:
        """Take keys; return what they bring."""
        echo = bytearray()
        lines: list[bytes | None] = []
        signals: list[int] = []
        for key in keys:
            if key in RETURN:
                echo += b"\r\n"
                lines.append(bytes(self._line) + b"\n")
                self._line.clear()
            elif key in SIGNALS:
                echo += b"^" + bytes([key + 64])
                signals.append(SIGNALS[key])
                self._line.clear()
            elif key == END_OF_FILE:
                lines.append(bytes(self._line) or None)
                self._line.clear()
            elif key in ERASE or key == KILL_LINE:
                echo += self._erase(everything=key == KILL_LINE)
            else:
                self._line.append(key)
                echo.append(key)
        return Typed(bytes(echo), tuple(lines), tuple(signals))

    def _erase(self, *, everything: bool) -> bytes:
        """Remove the last character of the line, or all of them."""
        text = self._line.decode(errors="replace")
        count = len(text) if everything else min(1, len(text))
        left = text[: len(text) - count]
        self._line[:] = left.encode()
        return b"\b \b" * count

    @staticmethod
    def show(output: bytes) -> bytes:
        """Return output as the terminal shows it."""
        return output.replace(b"\n", b"\r\n")
