"""The kinds of the group storage.k8s.io."""

from __future__ import annotations

from kubepy.apiserver.kinds.served import ServedKind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.kinds.storage import printers, strategy

KINDS: dict[str, ServedKind] = {
    "csidrivers": ServedKind(lambda: strategy.CSIDriverStrategy, lambda: printers.print_csi_driver),
    "csinodes": ServedKind(lambda: strategy.CSINodeStrategy, lambda: printers.print_csi_node),
    "csistoragecapacities": ServedKind(lambda: strategy.CSIStorageCapacityStrategy),
    "storageclasses": ServedKind(
        lambda: strategy.StorageClassStrategy, lambda: printers.print_storage_class
    ),
    "volumeattachments": ServedKind(
        lambda: strategy.VolumeAttachmentStrategy,
        lambda: printers.print_volume_attachment,
    ),
    "volumeattributesclasses": ServedKind(
        lambda: strategy.VolumeAttributesClassStrategy,
        lambda: printers.print_volume_attributes_class,
    ),
}
