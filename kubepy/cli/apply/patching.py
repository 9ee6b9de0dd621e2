"""The patch that makes the cluster as a manifest says, and what is done with it.

Upstream: ``kubectl/pkg/cmd/apply/patcher.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import Object, annotations_of, is_being_deleted
from kubepy.api.schema.openapi import Schema
from kubepy.api.values.goformat import to_json
from kubepy.apiserver.request import (
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    CreateOptions,
    DeleteOptions,
    Patch,
    PatchOptions,
)
from kubepy.cli.delete import is_gone
from kubepy.cli.errors import CliError, is_expected, with_source
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import CLIENT, SERVER
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

if TYPE_CHECKING:
    from kubepy.api.patches import PatchError


class Options(NamedTuple):
    """What the flags of apply ask for."""

    dry_run: str
    validation: str
    manager: str
    overwrite: bool
    force: bool
    deletion: DeleteOptions
    timeout: float
    openapi_patch: bool = True
    server_side: bool = False
    force_conflicts: bool = False
    subresource: str = ""


class Patched(NamedTuple):
    """What was sent, {} for nothing, and the object as it is now."""

    patch: Object
    object: Object


class _PatchingError(Exception):
    """What went wrong, and the text of the patch that was to be applied ("" if there was none)."""

    def __init__(self, error: Exception, patch: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.patch = patch


def patch_to(factory: Factory, info: Info, current: Object, modified: Object, options: Options) -> Patched:
    """Patch the current object to the configuration. Raises with patch, object and file in the message."""
    try:
        if options.dry_run == CLIENT:
            return _patched_locally(factory, info, current, modified, options)
        return _patched(factory, info, current, modified, options)
    except _PatchingError as failed:
        action = f"applying patch:\n{failed.patch}\nto:\n{info}\nfor:"
        raise with_source(failed.error, action, info.source) from None


def warn_if_deleting(factory: Factory, info: Info) -> None:
    if info.object is not None and is_being_deleted(info.object):
        factory.say(f"Warning: Detected changes to resource {info.name} which is currently being deleted.")


# --- the patch ----------------------------------------------------------------------------------------------------


def _patch(factory: Factory, info: Info, current: Object, modified: Object, options: Options) -> Patch:
    """The patch from what was applied last and is there now to the configuration. Raises CliError."""
    from kubepy.api.patches import PatchError
    from kubepy.api.schema.openapi import schema_for

    schema = None if info.resource.custom else schema_for(info.resource.api_version, info.resource.kind)
    original = annotations_of(current).get(LAST_APPLIED, "")
    try:
        return _three_way(original, modified, current, schema, overwrite=options.overwrite)
    except PatchError as error:
        live = factory.client.with_managed_fields(current)
        told = _told(error, lambda: _three_way(original, modified, live, schema, overwrite=options.overwrite))
        if schema and options.openapi_patch:
            factory.say(f"warning: error calculating patch from openapi v3 spec: {told.in_openapi_v3}")
            factory.say(f"warning: error calculating patch from openapi spec: {told.in_openapi}")
        raise CliError(f"creating patch with:\noriginal:\n{original}\nmodified:\n{to_json(modified)}\n\ncurrent:\n"
                       f"{to_json(live)}\n\nfor: {told}") from None


def _told(error: PatchError, again: Callable[[], Patch]) -> PatchError:
    """The same error where the object has all its managers, which messages show."""
    from kubepy.api.patches import PatchError

    try:
        again()
    except PatchError as found:
        return found
    return error


def _three_way(original: str, modified: Object, current: Object, schema: Schema | None, *, overwrite: bool) -> Patch:
    """Raises PatchError."""
    from kubepy.api.patches.documents import three_way_json_merge, three_way_strategic

    last = _parsed(original, "Invalid JSON Document" if schema is None else "invalid JSON document")
    if schema is None:
        return Patch(MERGE_PATCH, three_way_json_merge(last, modified, current))
    return Patch(STRATEGIC_MERGE_PATCH, three_way_strategic(last, modified, current, schema, overwrite=overwrite))


def _parsed(original: str, invalid: str) -> Object | None:
    """The configuration in an annotation, None if there is none. Raises PatchError for what is no JSON object."""
    from kubepy.api.patches import PatchError
    from kubepy.storage.yaml import YamlError, read_json

    try:
        found = read_json(original or "null")
    except YamlError:
        raise PatchError(invalid) from None
    if not isinstance(found, dict | None):
        raise PatchError(invalid)
    return found


# --- patching -----------------------------------------------------------------------------------------------------


def _patched_locally(factory: Factory, info: Info, current: Object, modified: Object, options: Options) -> Patched:
    from kubepy.api.patches.documents import merge_patch, strategic_merge_patch
    from kubepy.api.schema.openapi import schema_for

    patch = Patch("", {})
    try:
        patch = _patch(factory, info, current, modified, options)
        if patch.type == MERGE_PATCH or not patch.data:
            return Patched(patch.data, merge_patch(current, patch.data))
        schema = schema_for(info.resource.api_version, info.resource.kind)
        return Patched(patch.data, strategic_merge_patch(current, patch.data, schema))
    except Exception as error:
        raise _failed(error, patch) from None


def _failed(error: Exception, patch: Patch) -> Exception:
    return _PatchingError(error, to_json(patch.data) if patch.type else "") if is_expected(error) else error


def _patched(factory: Factory, info: Info, current: Object, modified: Object, options: Options) -> Patched:
    patch = Patch("", {})
    try:
        patch = _patch(factory, info, current, modified, options)
        return Patched(patch.data, _send(factory, info, patch, options) if patch.data else current)
    except Exception as error:
        if options.force and isinstance(error, (api_errors.Conflict, api_errors.Invalid)):
            return _replaced(factory, info, current, modified, options)
        raise _failed(with_source(error, "patching", info.source), patch) from None


def _send(factory: Factory, info: Info, patch: Patch, options: Options) -> Object:
    return factory.client.patch(info.resource.gvr, info.name, patch,
                                namespace=info.namespace,
                                options=PatchOptions(dry_run=options.dry_run == SERVER,
                                                     field_manager=options.manager,
                                                     field_validation=options.validation))


def _replaced(factory: Factory, info: Info, current: Object, modified: Object, options: Options) -> Patched:
    """``--force``: what cannot be changed is made anew; if that fails, what was there is."""

    def create(obj: Object) -> Object:
        return factory.client.create(info.resource.gvr, obj, namespace=info.namespace,
                                     options=CreateOptions(field_manager=options.manager,
                                                           field_validation=options.validation))

    try:
        _delete(factory, info, options)
        return Patched(modified, _created_or_restored(create, modified, current))
    except Exception as error:
        if not is_expected(error):
            raise
        raise _PatchingError(error, to_json(modified) + "\n") from None


def _delete(factory: Factory, info: Info, options: Options) -> None:
    """Raises CliError if the object is still there when the time is over: without --timeout that is at once."""
    factory.client.delete(info.resource.key, info.name, namespace=info.namespace, options=options.deletion)
    if not is_gone(factory, info, options.timeout):
        raise CliError("context deadline exceeded")


def _created_or_restored(create: Callable[[Object], Object], wanted: Object, before: Object) -> Object:
    try:
        return create(wanted)
    except Exception as error:
        try:
            create(before)
        except Exception as second:
            raise CliError("An error occurred force-replacing the existing object with the newly provided one:\n\n"
                           f"{error}.\n\nAdditionally, an error occurred attempting to restore the original object:"
                           f"\n\n{second}") from None
        raise
