"""The addresses of pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.runtime.reconcile import Key

POD_NETWORK = "10.244.{}.{}"  # a /16


class PodAddresses:
    """Hands out pod addresses: each pod its own, the lowest free one above the last, so that a run repeats itself."""

    def __init__(self) -> None:
        self._used: dict[str, Key] = {}
        self._of: dict[Key, str] = {}
        self._last = 0

    def observe(self, key: Key, pod: Mapping[str, Any] | None) -> None:
        """Take in the address of a pod that has one; None: the pod is gone."""
        address = ((pod or {}).get("status") or {}).get("podIP", "")
        if self._of.get(key, "") == address:
            return
        if (before := self._of.pop(key, None)) and self._used.get(before) == key:
            del self._used[before]
        if address:
            self._of[key] = address
            self._used[address] = key

    def next(self) -> str:
        """An address that no pod has. Raises RuntimeError when the network is full."""
        for _ in range(0xFFFE):
            self._last = self._last % 0xFFFE + 1
            if (address := POD_NETWORK.format(self._last >> 8, self._last & 0xFF)) not in self._used:
                return address
        raise RuntimeError(f"every address of {POD_NETWORK.format(0, 0)}/16 belongs to a pod")
