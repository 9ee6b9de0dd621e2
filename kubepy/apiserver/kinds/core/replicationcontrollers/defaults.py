"""Defaults of ReplicationControllers (``core/v1/defaults.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.kinds.core.pods.defaults import default_pod_template


def default_replication_controller(controller: Object) -> None:
    """Take selector and labels from the template where they are left out."""
    spec = controller.setdefault("spec", {})
    template = spec.get("template")
    if template is not None:
        default_pod_template(template)
        if labels := template["metadata"].get("labels"):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not controller["metadata"].get("labels"):
                controller["metadata"]["labels"] = dict(labels)
    spec.setdefault("replicas", 1)
