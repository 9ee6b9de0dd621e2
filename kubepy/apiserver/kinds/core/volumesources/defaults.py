"""Defaults of the sources of volumes that pods and PersistentVolumes have in common
(``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.defaults import fill

# The sources of volumes that a PersistentVolume and a volume of a pod have in common.
SOURCES: dict[str, dict[str, object]] = {
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_POINTERS = ("azureDisk", "hostPath")  # their fields are pointers in Go: an empty one is set


def default_source(kind: str, source: Object) -> None:
    """Set the defaults of a volume's source."""
    if kind not in _POINTERS:
        fill(source, SOURCES[kind])
        return
    for field, value in SOURCES[kind].items():
        if source.get(field) is None:
            source[field] = value
