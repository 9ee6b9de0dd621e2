"""Compare what kubepy prints with what a kube-apiserver prints."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
Objects = dict[tuple[str, str], Object]  # by namespace and name


def without_managers(objects: Objects) -> Objects:
    """Return objects as `-o json` shows them."""
    shown = {}
    for name, obj in objects.items():
        metadata = dict(obj["metadata"])
        metadata.pop("managedFields", None)
        shown[name] = {**obj, "metadata": metadata}
    return shown


def managers(obj: Object) -> set[tuple[str, ...]]:
    """Return the entries of managedFields without their fields: those of a server name fields
    that the object has no more."""
    return {
        (entry["manager"], entry["operation"], entry["time"], entry.get("subresource", ""))
        for entry in obj["metadata"].get("managedFields", ())
    }


def assert_same(there: Objects, here: Objects) -> None:
    """Compare objects whole. kubepy adds the managers that it infers for what controllers have
    written."""
    assert without_managers(here) == without_managers(there)
    for name, obj in there.items():
        inferred = {manager[0] for manager in managers(here[name]) - managers(obj)}
        assert inferred <= {"kubelet", "kube-controller-manager"}, name
        assert managers(obj) <= managers(here[name]), name
