"""The capabilities of a container's processes (``capabilities(7)``): a runtime's usual ones, with
what the security context adds and drops. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.meta import nested_map

if TYPE_CHECKING:
    from kubepy.api.typed import Container

# In the order of their numbers (include/uapi/linux/capability.h).
ORDER = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT
SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE
AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ
PERFMON BPF CHECKPOINT_RESTORE
"""
NAMES = ORDER.split()
ALL = (1 << len(NAMES)) - 1
USUAL = 0xA80425FB  # what containerd and CRI-O give


def capabilities_of(container: Container) -> int:
    """Return the capabilities of a container as a mask."""
    context = nested_map(container, "securityContext")
    if context.get("privileged"):
        return ALL
    changes = context.get("capabilities") or {}
    mask = USUAL
    drops = [_mask_of(name) for name in changes.get("drop") or ()]
    adds = [_mask_of(name) for name in changes.get("add") or ()]
    if ALL in adds:
        mask = ALL
    for bits in drops:
        mask &= ~bits
    for bits in adds:
        if bits != ALL:
            mask |= bits
    return mask


def _mask_of(name: str) -> int:
    name = name.upper().removeprefix("CAP_")
    if name == "ALL":
        return ALL
    if name not in NAMES:
        return 0
    return 1 << NAMES.index(name)
