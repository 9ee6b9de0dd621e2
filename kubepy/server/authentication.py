"""Who makes a request."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.cluster import LocalCluster
from kubepy.server.messages import HttpRequest

HEALTH = ("/healthz", "/livez", "/readyz")


def authenticate(request: HttpRequest, application: object, cluster: LocalCluster) -> Object:
    """Return the user of a request, a UserInfo. Raises Unauthorized."""
    if request.path in HEALTH:
        return {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
    raise errors.Unauthorized("Unauthorized")
