"""The token of a pod's ServiceAccount, as its file keeps it until somebody reads it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import Object

LONGEST_LIFE = 24 * 3600  # seconds after which a kubelet renews any token
RENEWED_AFTER = 0.8  # of its life
SYNC_SECONDS = 60  # a kubelet looks at each pod so often


class PodToken(NamedTuple):
    """A token that a kubelet has asked for.

    :ivar audience: "" for the API server.
    :ivar seconds: its life.
    :ivar pod, node: their names and uids, to which it is bound.
    :ivar issued: when it was first asked for, in seconds since the epoch.
    :ivar is_renewed: the kubelet renews it in time; not so the copy of a ``subPath``.
    """

    namespace: str
    account: str
    audience: str
    seconds: int
    pod: Object
    node: Object
    issued: int
    is_renewed: bool = True

    def to_bytes(self) -> bytes:
        return json.dumps(self._asdict(), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> PodToken:
        """Read what :meth:`to_bytes` has returned. Raises ValueError."""
        try:
            return cls(**json.loads(content))
        except TypeError as error:
            raise ValueError(str(error)) from None

    def last_issued(self, now: datetime) -> int:
        """Return when the token was issued that the file has now, in seconds since the epoch.

        A kubelet renews it after 80 % of its life, or a day, when it next looks at the pod
        (``requiresRefresh``).
        """
        if not self.is_renewed:
            return self.issued
        life = min(self.seconds * RENEWED_AFTER, LONGEST_LIFE)
        period = (int(life // SYNC_SECONDS) + 1) * SYNC_SECONDS
        age = max(0, int(now.timestamp()) - self.issued)
        return self.issued + age // period * period
