"""What is wrong with a value that does not fit its Go type, in the words of Go's ``encoding/json``."""

from __future__ import annotations

from typing import Any

# The place of a value: (outer place, key or index, name of the Go struct that has the key, or ""); None at the root.
Where = tuple[Any, str | int, str] | None


class DecodeError(ValueError):
    """A value of the wrong type, in the server's words. ``value``, ``go_type`` and ``where`` where it is only that."""

    def __init__(self, message: str, value: Any = None, go_type: str = "", where: Where = None) -> None:
        super().__init__(message)
        self.value = value
        self.go_type = go_type
        self.where = where


def mismatch(value: Any, where: Where, go_type: str, *, exactly: bool = False) -> DecodeError:
    """``json: cannot unmarshal string into Go struct field DaemonSetSpec.spec.minReadySeconds of type int32``.

    ``exactly``: a number is shown, because another one would fit.
    """
    message = f"json: cannot unmarshal {_kind_of(value, exactly)} into Go {_target(where)} of type {go_type}"
    return DecodeError(message, value, go_type, where)


def _target(where: Where) -> str:
    keys: list[str] = []
    struct = ""
    while where is not None:
        outer, key, name = where
        if name:
            keys.append(str(key))
            struct = struct or name
        where = outer
    return f"struct field {struct}.{'.'.join(reversed(keys))}" if struct else "value"


def _kind_of(value: Any, exactly: bool) -> str:
    from kubepy.api.values.goformat import to_json

    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {to_json(value)}" if exactly else "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def path_of(where: Where) -> str:
    """A place as strict decoding names it: ``spec.containers[0].image``."""
    parts: list[str] = []
    while where is not None:
        outer, key, _ = where
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
        where = outer
    return "".join(reversed(parts)).lstrip(".")
