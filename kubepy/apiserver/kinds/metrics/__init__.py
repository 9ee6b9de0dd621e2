"""The kinds of the group metrics.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.metrics import printers

KINDS: dict[str, ServedKind] = {
    "nodes": ServedKind(printer=lambda: printers.print_node_metrics),
    "pods": ServedKind(printer=lambda: printers.print_pod_metrics),
}
