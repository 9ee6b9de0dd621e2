"""The kinds of the group autoscaling."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.autoscaling import printers, strategy

KINDS: dict[str, ServedKind] = {
    "scales": ServedKind(printer=lambda: printers.print_scale),
    "horizontalpodautoscalers": ServedKind(
        lambda: strategy.HorizontalPodAutoscalerStrategy,
        lambda: printers.print_autoscaler,
    ),
}
