"""Shared steps of the defaults that the server sets in fields that an object leaves out.

The defaults of a kind are in ``kubepy.apiserver.kinds``, in its ``defaults`` module or its strategy
(``pkg/apis/*/v1/defaults.go``). Each function changes the object, which has been decoded already:
zero values of fields that Go leaves out are absent, and values of the wrong type have been refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.meta import Object
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import quantity


def fill(target: Object, defaults: Mapping[str, object]) -> None:
    """Set fields that are absent or zero values."""
    for key, value in defaults.items():
        if not target.get(key):
            target[key] = value


def round_up_all(amounts: Object | None) -> None:
    """Round amounts up to thousandths (``SetDefaults_ResourceList``).

    They are canonical already, so only amounts in ``n`` and ``u`` can be finer than that.
    """
    for name, amount in (amounts or {}).items():
        if amount[-1:] in ("n", "u"):
            parsed = quantity.Quantity.parse(amount)
            amounts[name] = str(quantity.Quantity.of_milli(parsed.milli_value(), parsed.format))  # type: ignore[index]
