"""The kinds of the group policy."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.policy import printers, strategy

KINDS: dict[str, ServedKind] = {
    "poddisruptionbudgets": ServedKind(
        lambda: strategy.PodDisruptionBudgetStrategy,
        lambda: printers.print_disruption_budget,
    ),
}
