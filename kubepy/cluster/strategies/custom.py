"""Custom resources (``apiextensions-apiserver/pkg/registry/customresource/strategy.go``)."""

from __future__ import annotations

from kubepy.cluster.meta import Object
from kubepy.cluster.strategy import Strategy


class CustomStrategy(Strategy):
    """A custom resource: generation rises with anything but metadata."""

    has_generation = True
    allow_unconditional_update = False

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return _content(obj) != _content(old)


class CustomWithStatusStrategy(CustomStrategy):
    """A custom resource with a status subresource: then status is no part of what generation counts."""

    has_status = True

    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Only status changes, and of metadata nothing but managedFields."""
        status = obj.get("status")
        obj.clear()
        obj.update({**old, "metadata": dict(old["metadata"])})
        obj.pop("status", None)
        if status is not None:
            obj["status"] = status

    def spec_changed(self, obj: Object, old: Object) -> bool:
        return {**_content(obj), "status": None} != {**_content(old), "status": None}


def _content(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key != "metadata"}
