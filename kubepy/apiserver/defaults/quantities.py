"""Resource amounts are kept in thousandths: what is finer is rounded up (``SetDefaults_ResourceList``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import quantity


def round_up_all(amounts: Object | None) -> None:
    """Amounts are canonical already, so only those in ``n`` and ``u`` can be finer than a thousandth."""
    for name, amount in (amounts or {}).items():
        if amount[-1:] in ("n", "u"):
            parsed = quantity.Quantity.parse(amount)
            amounts[name] = str(quantity.Quantity.of_milli(parsed.milli_value(), parsed.format))  # type: ignore[index]
