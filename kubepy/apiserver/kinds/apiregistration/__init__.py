"""The kinds of the group apiregistration.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.apiregistration import printers

KINDS: dict[str, ServedKind] = {
    "apiservices": ServedKind(printer=lambda: printers.print_api_service),
}
