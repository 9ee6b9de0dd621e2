"""The kinds of the group scheduling.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import CHECK_ONE_DEFAULT, ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.scheduling import printers, strategy

KINDS: dict[str, ServedKind] = {
    "priorityclasses": ServedKind(
        lambda: strategy.PriorityClassStrategy,
        lambda: printers.print_priority_class,
        validating=(CHECK_ONE_DEFAULT,),
    ),
}
