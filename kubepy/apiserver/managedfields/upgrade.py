"""From apply on the client to apply on the server. Upstream: ``client-go/util/csaupgrade/upgrade.go``."""

from __future__ import annotations

from collections.abc import Iterable

from kubepy.api.meta import Object
from kubepy.apiserver.managedfields.entries import APPLY, UPDATE, Entry, Managers, decode, encode, manager_of
from kubepy.apiserver.managedfields.fieldpath import fields_path
from kubepy.apiserver.managedfields.updater import owners


def managers_of_field(obj: Object, names: tuple[str, ...], operation: str) -> list[str]:
    """The names of the managers that have a field; the object's entries must be complete."""
    managers = decode(obj["metadata"].get("managedFields") or [])
    return [one.name for one in owners(managers, fields_path(*names), operation)]


def upgrade_patch(obj: Object, clients: Iterable[str], applier: str) -> list[Entry] | None:
    """The JSON patch that gives an applier what managers that update had; None if there is nothing to give."""
    before = decode(obj["metadata"].get("managedFields") or [])
    after = before
    for name in clients:
        after = _upgraded(after, name, applier)
    if after == before:
        return None
    return [{"op": "replace", "path": "/metadata/managedFields", "value": encode(after)},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": obj["metadata"]["resourceVersion"]}]


def _upgraded(managers: Managers, client: str, applier: str) -> Managers:
    """Without the client's updates; those of the applier's version become the applier's own."""
    target = manager_of(applier, APPLY, "")
    updates = [one for one in managers if one.name == client and one.operation == UPDATE and not one.subresource]
    if not updates:
        return managers
    own = managers.get(target) or managers[updates[0]]
    same = [managers[one].fields for one in updates if one.api_version == own.api_version]
    kept = {one: managed for one, managed in managers.items() if one not in updates}
    return {**kept, target: own._replace(fields=own.fields.union(*same))}
