"""The kinds of the group discovery.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.discovery import printers, strategy

KINDS: dict[str, ServedKind] = {
    "endpointslices": ServedKind(
        lambda: strategy.EndpointSliceStrategy,
        lambda: printers.print_endpoint_slice,
    ),
}
