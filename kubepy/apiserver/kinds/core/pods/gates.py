"""Fields of pods behind feature gates that are off in v1.36 (``pkg/api/pod/util.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, nested_list


def drop_disabled_fields(spec: Object) -> None:
    """Drop fields behind gates that are off in v1.36 without a warning
    (``DropDisabledPodFields``)."""
    spec.pop("schedulingGroup", None)
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            if container.get("lifecycle") is not None:
                container["lifecycle"].pop("stopSignal", None)
    for volume in spec.get("volumes") or ():
        for source in nested_list(volume, "projected", "sources"):
            source.pop("clusterTrustBundle", None)
            source.pop("podCertificate", None)
