"""Fields of edited files that their kind does not have.

In a request they are dropped, with a warning for whoever sent it. Of a file they are a problem: who
has written ``replicaz: 4`` would see the line vanish with the next write, and the workload scaled
down. Not so

- fields that Kubernetes had in an earlier version, in the apiVersions that are still served: they
  are dropped, as they were when that version's objects were read by the next one;
- fields of the status, which is written by the system: another version may know more of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubepy.quoting import quote
from kubepy.storage import EditError

# By the path at which they can be. Compared were the types of v1.16 to v1.36.
_FORMER = re.compile(
    r"(?:.*\.)?metadata\.(?:clusterName|initializers)"  # until v1.24, v1.15
    r"|spec\.(?:ipFamily|topologyKeys)"  # of Services, until v1.19, v1.21
    r"|.*\.ephemeral\.readOnly"  # until v1.20
    r"|(?:.*\.)?spec\.resourceClaims\[\d+\]\.source"  # until v1.30
    r"|(?:.*\.)?spec\.resources\.claims"  # of claims, until v1.28
    r"|(?:.*\.)?spec\.workloadRef"  # v1.35
    r"|spec\.volumeClaimTemplates\[\d+\]\.status\.resizeStatus"  # until v1.27
).fullmatch
_STATUS = re.compile(r"status(?:[.\[].*)?").fullmatch


def split(fields: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the unknown fields that are a problem, and those of the status."""
    status = [field for field in fields if _STATUS(field)]
    others = [field for field in fields if not _STATUS(field) and not _FORMER(field)]
    return others, status


def refuse(fields: Sequence[str]) -> None:
    """Raise EditError for fields that are a problem, if there are any."""
    if fields:
        raise EditError(fields[0], words(fields))


def words(fields: Sequence[str]) -> str:
    """Name unknown fields as strict decoding does."""
    return ", ".join(f"unknown field {quote(field)}" for field in fields)
