"""The kinds of the group events.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.core import strategy as core_strategy
    from kubepy.apiserver.kinds.events import printers

KINDS: dict[str, ServedKind] = {
    "events": ServedKind(lambda: core_strategy.EventStrategy, lambda: printers.print_new_event),
}
