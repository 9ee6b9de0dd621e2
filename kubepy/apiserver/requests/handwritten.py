"""Objects that an editor, git or another program wrote into the state folder: made complete, or
refused.

Everything here is a pure function of the files, and of the cluster's own time if it has one, so
that every reader of the folder sees the same object. The file itself stays as it was written until
the object next changes. An edit of a known object passes what an update through the API passes
(``registry/rest/update.go``), except that the file has the last word on status and deletion, and
that a field that the kind does not have is an error.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from kubepy.api import errors
from kubepy.api.clock import format_time
from kubepy.api.errors import FieldError
from kubepy.api.meta import Object, clone, is_being_deleted
from kubepy.api.types.special import DecodeError, path_of
from kubepy.apiserver.request import DeleteOptions, WriteOptions
from kubepy.apiserver.requests.admission import IMMORTAL_NAMESPACES
from kubepy.apiserver.requests.decoding import decode
from kubepy.apiserver.requests.other_objects import NO_OTHERS, OtherObjects
from kubepy.apiserver.strategy import Strategy, restore
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.lazy import lazy_imports
from kubepy.storage import EditError, Key

if TYPE_CHECKING:
    from kubepy.api.scheme import Resource
    from kubepy.apiserver.server import Server

with lazy_imports():
    from kubepy.apiserver.managedfields import tracking
    from kubepy.apiserver.requests import creation, deletion, unknown_fields, updating

# The uid of an object whose file has none is made from its key within this space: the same on every
# machine.
_UIDS = uuid.UUID("6f0f2f6c-5f1d-5f59-9b1c-6b1f0e2f7a01")
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")


def complete(
    server: Server,
    key: Key,
    obj: Object,
    modified: float,
    old: Object | None,
    others: OtherObjects = NO_OTHERS,
) -> Object:
    """Return the object of a file.

    :param modified: the file's mtime in seconds: when the object was made, unless time is the
        cluster's own.
    :param old: the object known under the key before.
    :param others: the objects by which it is checked.

    Raises ValueError if the file cannot hold the object, EditError if the old object cannot become
    it.
    """
    created = server.clock.own or datetime.fromtimestamp(modified, UTC)
    is_manifest = not (obj.get("metadata") or {}).get("uid")
    obj = _with_readable_managers(_with_metadata(key, obj, created), old)
    resource = server.scheme.built_in(key.resource)
    if resource is None:
        return _complete_custom(key, obj, old, others, is_manifest=is_manifest)
    _check_place(key, obj, resource)
    strategy, has_status = server.strategy(resource), bool(obj.get("status"))
    unknown: list[str] = []
    try:
        completed = decode(
            server, resource, obj, WriteOptions(), lambda text: others.warn(key, text), unknown
        )
        _refuse_unknown(key, unknown, others, is_new=old is None and not is_manifest)
        if not has_status and not completed["metadata"].get("generation"):
            strategy.prepare_for_create(completed)  # it was never created through the API
            if strategy.has_generation and strategy.first_generation:
                completed["metadata"]["generation"] = strategy.first_generation
    except errors.Status as status:
        if isinstance(status.__cause__, DecodeError):
            raise EditError(path_of(status.__cause__.where), status.message) from None
        raise ValueError(status.message) from None

    if old is None:
        if is_manifest:
            _validate_new(strategy, completed, others)
        return completed

    if _is_another(completed, old):
        if (
            strategy.has_observer
        ):  # the existing pods belong to the old object, and the status does not count them
            _lower_observed_generation(completed)
        return completed

    try:
        return _edited(strategy, completed, old, others, has_status=has_status)
    except errors.Status as status:
        raise _edit_error(status) from None


def _edit_error(status: errors.Status) -> EditError:
    """Return the refusal of a request as that of an edit: the first field that is to blame, and all
    causes."""
    causes = dict.fromkeys(f"{cause.field}: {cause.message}" for cause in status.causes)
    field = next((cause.field for cause in status.causes), "")
    return EditError(field, "; ".join(causes) or status.message)


def claims_observation(server: Server, key: Key, obj: Object, old: Object) -> bool:
    """Tell whether the file of an edited object says that its controller has observed it.

    An edit of the spec alone does not: no controller can have observed that.
    """
    metadata = obj.get("metadata") or {}
    generation, observed = _number(metadata.get("generation")), _number(_observed(obj))
    resource = server.scheme.built_in(key.resource)
    if (
        generation == 0
        or generation != observed
        or resource is None
        or not server.strategy(resource).has_observer
    ):
        return False

    is_spec_alone = (generation, obj["status"]) == (
        old["metadata"].get("generation"),
        old.get("status"),
    )
    return not is_spec_alone or metadata.get("uid") != old["metadata"].get("uid")


def _check_place(key: Key, obj: Object, resource: Resource) -> None:
    """Raise ValueError for an object that is not of the kind of its folder, or in a namespace that
    it cannot have."""
    if (kind := obj.get("kind", resource.kind)) != resource.kind:
        raise ValueError(f"a {kind} is not of the kind of its folder, {resource.qualified_kind}")
    if bool(key.namespace) != resource.namespaced:
        raise ValueError(
            f"a {kind} belongs {'into a namespace' if resource.namespaced else 'into no namespace'}"
        )


def _refuse_unknown(key: Key, fields: list[str], others: OtherObjects, *, is_new: bool) -> None:
    """Refuse fields that the kind does not have, and warn of those of the status. Raises EditError.

    :param is_new: the object has come from another cluster, where its status was written.
    """
    problems, of_status = unknown_fields.split(fields) if fields else ([], [])
    unknown_fields.refuse(problems)
    if of_status and not is_new:
        others.warn(key, f"{unknown_fields.words(of_status)}: left out")


def _validate_new(strategy: Strategy, obj: Object, others: OtherObjects) -> None:
    """Check a manifest that never went through the API as its creation would. Raises EditError."""
    try:
        creation.validate_new(strategy, _begun(strategy, obj, others))
    except errors.Status as status:
        raise _edit_error(status) from None


def _begun(strategy: Strategy, obj: Object, others: OtherObjects) -> Object:
    """Return an object as a creation would validate it, where that begins with what depends on
    other objects: it would get an address, or its names accepted. Raises Status."""
    if type(strategy).begin_create is Strategy.begin_create:
        return obj
    begun: Object = clone(obj)
    strategy.begin_create(begun, others.list)
    strategy.prepare_for_create(begun)
    return begun


def removed(key: Key, obj: Object, now: float) -> Object | None:
    """Return the object to keep after its file was removed, or None to delete it.

    A namespace that still holds objects is deleted as by a request: it is Terminating until the
    namespace controller has deleted its content. Namespaces that may not be deleted come back, as a
    kube-apiserver creates them again.
    """
    if key.resource != "namespaces":
        return None
    if key.name in IMMORTAL_NAMESPACES:
        return obj
    return deletion.namespace_kept(obj, DeleteOptions(), datetime.fromtimestamp(now, UTC))


def _with_metadata(key: Key, obj: Object, created: datetime) -> Object:
    metadata = obj.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ValueError("metadata is not a map")
    system: Object = {"name": key.name}
    if key.namespace:
        system["namespace"] = key.namespace
    if not metadata.get("uid"):
        system["uid"] = _uid(key)
    if not metadata.get("creationTimestamp"):
        system["creationTimestamp"] = format_time(created)
    return {**obj, "metadata": {**metadata, **system}}


def _with_readable_managers(obj: Object, old: Object | None) -> Object:
    """Return the object with readable managedFields: its own, else those of the old object, else
    none."""
    managers = obj["metadata"].get("managedFields")
    if not isinstance(managers, list):  # none, or for the decoder to refuse
        return obj
    if tracking.are_readable(managers):
        return obj
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    if old and "managedFields" in old["metadata"]:
        metadata["managedFields"] = old["metadata"]["managedFields"]
    return {**obj, "metadata": metadata}


def is_handwritten(key: Key, obj: Object) -> bool:
    """Tell whether an object was first seen in a file without a uid: no request has made it."""
    return bool(obj["metadata"]["uid"] == _uid(key))


def _uid(key: Key) -> str:
    return str(uuid.uuid5(_UIDS, "/".join(key)))


def _is_another(new: Object, old: Object) -> bool:
    """Tell whether two states belong to different objects: an object never changes its uid."""
    return bool(new["metadata"]["uid"] != old["metadata"].get("uid"))


# --- edits ----------------------------------------------------------------------------------------


def _edited(
    strategy: Strategy, new: Object, old: Object, others: OtherObjects, *, has_status: bool
) -> Object:
    """Return the object of an edited file; ``new`` belongs to this call. Raises EditError, Status.

    ``has_status``: the file has a status of its own, which is taken; without one the old status
    stays, except where the edit brings back an object that was being deleted.
    """
    is_brought_back = is_being_deleted(old) and not is_being_deleted(new)
    if "status" in strategy.resource.subresources and not has_status and not is_brought_back:
        restore(new, old, "status")
    if _without(new, "managedFields") == _without(old, "managedFields"):
        return new
    before = dict(old)
    restore(before, new, "status")
    strategy.prepare_for_edit(new, before)
    if _without(new, "generation", "managedFields", status=False) != _without(
        old, "generation", "managedFields", status=False
    ):
        if type(strategy).begin_update is not Strategy.begin_update and new.get("spec") != old.get(
            "spec"
        ):
            strategy.begin_update(clone(new), clone(old), others.list)
        _validate(strategy, new, old)

    if strategy.has_generation:
        _raise_generation(new, old, spec_changed=strategy.spec_changed(new, old))
    if strategy.has_observer and new.get("status") != old.get("status"):
        _lower_observed_generation(new)
    return new


def _complete_custom(
    key: Key, obj: Object, old: Object | None, others: OtherObjects, *, is_manifest: bool
) -> Object:
    """Return the custom resource of a file. It stays as it is written, and is checked where its
    definition is there.

    One that came from another cluster is not checked: its definition may have been another when it
    was written. Raises ValueError, EditError.
    """
    known = old if old is not None and not _is_another(obj, old) else None
    if (known is not None or is_manifest) and (
        strategy := others.custom_strategy(key, obj.get("apiVersion"))
    ):
        _check_place(key, obj, strategy.resource)
        _check_custom(strategy, key, obj, known, others)
    return obj if known is None else _edited_custom(obj, known)


def _check_custom(
    strategy: Strategy, key: Key, obj: Object, old: Object | None, others: OtherObjects
) -> None:
    """Check a custom resource by the schema of its version: all of a new one, of another what was
    edited."""
    before: Object | None = None
    known_before: list[str] = []
    try:
        new, unknown = strategy.decode(obj)
        if old is not None and old.get("apiVersion") == obj.get("apiVersion"):
            before, known_before = strategy.decode(old)
    except DecodeError as error:
        raise EditError(path_of(error.where), str(error)) from None

    _refuse_unknown(
        key, [field for field in unknown if field not in known_before], others, is_new=False
    )
    strategy.default(new)
    if before is None:
        _validate_new(strategy, new, others)
        return
    strategy.default(before)
    if _without(new, "generation", "managedFields") != _without(
        before, "generation", "managedFields"
    ):
        _validate(strategy, new, before)


def _edited_custom(new: Object, old: Object) -> Object:
    """Return the edited custom resource; without its definition everything but metadata and status
    counts as spec."""
    if not new.get("status"):
        restore(new, old, "status")
    contents = ({**obj, "metadata": None, "status": None} for obj in (new, old))
    _raise_generation(new, old, spec_changed=next(contents) != next(contents))
    return new


def _without(obj: Object, *fields: str, status: bool = True) -> Object:
    """Return an object without some fields of its metadata, and without its status."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in fields}
    return {
        name: value
        for name, value in {**obj, "metadata": metadata}.items()
        if status or name != "status"
    }


def _raise_generation(new: Object, old: Object, *, spec_changed: bool) -> None:
    """Keep generation from falling, and raise it if the spec changed.

    The file may come from another branch, so a changed spec gets a number above every generation
    and observedGeneration of both states: no controller can have observed it.
    """
    known = [_number(obj["metadata"].get("generation")) for obj in (new, old)]
    if spec_changed:
        known += [_number(_observed(obj)) for obj in (new, old)]
    if generation := max(known) + spec_changed:
        new["metadata"]["generation"] = generation


def _observed(obj: Object) -> Any:
    status = obj.get("status")
    return status.get("observedGeneration") if isinstance(status, dict) else None


def _number(value: Any) -> int:
    return value if type(value) is int else 0


def _lower_observed_generation(obj: Object) -> None:
    """Lower observedGeneration below generation, so that controllers compute the status again.

    A status that was written by hand or copied from another cluster does not describe the pods of
    this one.
    """
    if (observed := _number(_observed(obj))) == 0:
        return
    status = {name: value for name, value in obj["status"].items() if name != "observedGeneration"}
    if (observed := min(observed, obj["metadata"].get("generation", 0) - 1)) > 0:
        status["observedGeneration"] = observed
    obj["status"] = status


# --- validation -----------------------------------------------------------------------------------


def _validate(strategy: Strategy, new: Object, old: Object) -> None:
    """Validate an edit. Raises EditError."""
    before = {**old, "metadata": dict(old["metadata"])}
    for field in (*_DELETION, "creationTimestamp"):
        restore(before["metadata"], new["metadata"], field)
    if strategy.assigned and old.get("spec"):
        taken_back = set(strategy.assigned) - (new.get("spec") or {}).keys()
        before["spec"] = {
            name: value for name, value in old["spec"].items() if name not in taken_back
        }
    if wrong := updating.validation_errors(strategy, new, before):
        words = dict.fromkeys(str(error).partition("\n")[0] for error in wrong)
        raise EditError(_edited_field(wrong, new, before), "; ".join(words))


def _edited_field(wrong: list[FieldError], new: Object, old: Object) -> str:
    """Return the field to blame: the first with an error that was edited itself.

    Where an error is about the whole spec, it is the place in it that was edited.
    """
    edits = list(_edits(new, old, ""))
    error = next(
        (problem for problem in wrong if any(edit.startswith(problem.field) for edit in edits)),
        wrong[0],
    )
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if error.field != "spec" or not isinstance(spec, dict) or not isinstance(old_spec, dict):
        return error.field
    # Upstream's words name the fields that may change.
    fixed = {name for name in spec.keys() | old_spec.keys() if f"'{name}'" not in error.text}
    return _difference(
        {name: spec.get(name) for name in fixed},
        {name: old_spec.get(name) for name in fixed},
        "spec",
    )


def _edits(new: Any, old: Any, path: str) -> Iterator[str]:
    """Yield the paths of all values that differ and hold no others."""
    steps = _steps(new, old, path)
    if not steps and not semantically_equal(new, old):
        yield path.removeprefix(".")
    for step in steps:
        yield from _edits(step[1], step[2], step[0])


def _steps(new: Any, old: Any, path: str) -> list[tuple[str, Any, Any]]:
    """Return the paths of the values in two containers of one type, and the values."""
    if isinstance(new, dict) and isinstance(old, dict):
        return [
            (f"{path}.{name}", new.get(name), old.get(name))
            for name in sorted(new.keys() | old.keys())
        ]
    if isinstance(new, list) and isinstance(old, list):
        return [(f"{path}[{index}]", *pair) for index, pair in enumerate(zip_longest(new, old))]
    return []


def _difference(new: Any, old: Any, path: str) -> str:
    """Return the path of the innermost value that holds all differences of two values."""
    edited = [step for step in _steps(new, old, path) if not semantically_equal(step[1], step[2])]
    return _difference(edited[0][1], edited[0][2], edited[0][0]) if len(edited) == 1 else path
