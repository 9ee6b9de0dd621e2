"""The kinds of the group resource.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.resource import printers, strategy

KINDS: dict[str, ServedKind] = {
    "deviceclasses": ServedKind(lambda: strategy.DeviceClassStrategy, lambda: printers.print_named),
    "resourceclaims": ServedKind(
        lambda: strategy.ResourceClaimStrategy,
        lambda: printers.print_resource_claim,
    ),
    "resourceclaimtemplates": ServedKind(
        lambda: strategy.ResourceClaimTemplateStrategy,
        lambda: printers.print_named,
    ),
    "resourceslices": ServedKind(
        lambda: strategy.ResourceSliceStrategy,
        lambda: printers.print_resource_slice,
    ),
}
