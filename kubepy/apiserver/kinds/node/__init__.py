"""The kinds of the group node.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.node import printers, strategy

KINDS: dict[str, ServedKind] = {
    "runtimeclasses": ServedKind(
        lambda: strategy.RuntimeClassStrategy, lambda: printers.print_runtime_class
    ),
}
