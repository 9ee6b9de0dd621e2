"""What an admission plugin is given, and how it refuses (``apiserver/pkg/admission``: ``Attributes``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.meta import Object, is_being_deleted
from kubepy.apiserver.requests.server import Server, Target
from kubepy.apiserver.requests.sessions import Session


class Request(NamedTuple):
    """One creation (``old`` is None) or update; ``obj`` belongs to it, and plugins that complete change it."""

    server: Server
    session: Session
    target: Target
    obj: Object
    old: Object | None = None
    subresource: str = ""

    @property
    def is_being_deleted(self) -> bool:
        return self.old is not None and is_being_deleted(self.old)

    def refuse(self, why: str, causes: Sequence[errors.Cause] = ()) -> errors.Status:
        """``pods "x" is forbidden: why`` (``admission.NewForbidden``)."""
        return refusal(self.target, self.obj, why, causes)


def refusal(target: Target, obj: Object, why: str, causes: Sequence[errors.Cause] = ()) -> errors.Status:
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata.get("generateName") or "Unknown"
    return errors.forbidden(target.resource.key, name, why, causes)
