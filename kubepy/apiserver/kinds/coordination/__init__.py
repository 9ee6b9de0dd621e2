"""The kinds of the group coordination.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.coordination import printers, strategy

KINDS: dict[str, ServedKind] = {
    "leases": ServedKind(lambda: strategy.LeaseStrategy, lambda: printers.print_lease),
}
