"""What all workloads do with their pod templates (upstream: ``pkg/api/pod/util.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.validation.pods import warnings as validation


def template_of(obj: Object) -> Object:
    template: Object = obj["spec"].get("template") or {}
    return template


def drop_disabled_template_fields(obj: Object) -> None:
    drop_disabled_fields(template_of(obj).get("spec") or {})


def drop_disabled_fields(spec: Object) -> None:
    """Fields behind gates that are off in v1.36 are dropped without a word (``DropDisabledPodFields``)."""
    spec.pop("schedulingGroup", None)
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            if container.get("lifecycle") is not None:
                container["lifecycle"].pop("stopSignal", None)
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            source.pop("clusterTrustBundle", None)
            source.pop("podCertificate", None)


def template_warnings(obj: Object, path: str = "spec.template") -> list[str]:
    return validation.warnings_for_template(template_of(obj), path)
