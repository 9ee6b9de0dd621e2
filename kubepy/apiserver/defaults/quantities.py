"""Resource amounts are kept in thousandths: what is finer is rounded up (``SetDefaults_ResourceList``)."""

from __future__ import annotations

from kubepy.api.meta import Object


def round_up_all(amounts: Object | None) -> None:
    """Amounts are canonical already, so only those in ``n`` and ``u`` can be finer than a thousandth."""
    for name, amount in (amounts or {}).items():
        if amount[-1:] in ("n", "u"):
            from kubepy.api.values.quantity import Quantity

            parsed = Quantity.parse(amount)
            amounts[name] = str(Quantity.of_milli(parsed.milli_value(), parsed.format))  # type: ignore[index]
