"""Nothing is made in a namespace that is absent or going (``apiserver/pkg/admission/plugin/namespace/lifecycle``)."""

from __future__ import annotations

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.apiserver.admission.request import refusal
from kubepy.apiserver.requests.server import Target
from kubepy.apiserver.requests.sessions import Session
from kubepy.storage import Key

IMMORTAL_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))


def admit_into_namespace(session: Session, target: Target, obj: Object) -> None:
    """Raises NotFound, Forbidden."""
    namespace = session.get(Key("namespaces", "", target.namespace))
    if namespace is None:
        raise errors.not_found("namespaces", target.namespace)
    if namespace.get("status", {}).get("phase") != "Terminating":
        return
    why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
    cause = errors.Cause("NamespaceTerminating", f"namespace {target.namespace} is being terminated",
                         "metadata.namespace")
    raise refusal(target, obj, why, [cause])
