"""Claims, volumes and pods that mount them, with functions that read their state."""

from __future__ import annotations

from kubepy.api.meta import Object, name_of
from tests.controllers.conftest import Lab

CLAIMS, VOLUMES, CLASSES = (
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses.storage.k8s.io",
)


def claim(name: str = "data", size: str = "1Gi", **spec: object) -> Object:
    full = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": full,
    }


def volume(
    name: str = "pv", size: str = "1Gi", *, labels: dict[str, str] | None = None, **spec: object
) -> Object:
    source = {} if "csi" in spec or "nfs" in spec else {"hostPath": {"path": "/srv/data"}}
    full = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, **source, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": full,
    }


def pod(name: str = "p", claim_name: str = "data", **spec: object) -> Object:
    mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]
    full = {"containers": [{"name": "c", "image": "x"}], "volumes": mounted, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": full}


def make(lab: Lab, *objects: Object) -> None:
    plurals = {
        "PersistentVolumeClaim": CLAIMS,
        "PersistentVolume": VOLUMES,
        "StorageClass": CLASSES,
        "Pod": "pods",
    }
    for obj in objects:
        resource = plurals[obj["kind"]]
        lab.create(resource, obj, "default" if resource in (CLAIMS, "pods") else "")


def claims(lab: Lab) -> dict[str, tuple[str, str]]:
    """Return phase and volume of every claim."""
    return {
        name_of(one): (one["status"]["phase"], one["spec"].get("volumeName", ""))
        for one in lab.client.list(CLAIMS).items
    }


def phases(lab: Lab) -> dict[str, str]:
    return {name_of(one): one["status"]["phase"] for one in lab.client.list(VOLUMES).items}


def said(lab: Lab, name: str = "data") -> list[str]:
    """Return the events of objects with this name, in order."""
    return [
        f"{one['type']} {one['reason']}: {one['message']}"
        for one in lab.client.list("events").items
        if one["involvedObject"]["name"] == name
    ]
