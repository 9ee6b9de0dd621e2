"""The three-way patch of ``apply``: from what was applied last and the live object to the manifest.

Upstream: ``kubectl/pkg/cmd/apply/patcher.go``.
"""

from __future__ import annotations

from typing import NamedTuple

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
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.cli.runtime.options import CLIENT, SERVER
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api import patches
    from kubepy.api.patches import documents as patch_documents
    from kubepy.api.schema import openapi
    from kubepy.storage import yaml


class ApplyRequest(NamedTuple):
    """The settings that an object is applied with, read from the flags of apply or diff.

    :param manager: the field manager.
    :param deletion: how --force deletes an object that cannot be patched.
    :param timeout: the seconds that --force waits for the deletion.
    """

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
    """The patch that was sent, {} for none, and the object with it."""

    patch: Object
    object: Object


class _PatchingError(Exception):
    """An error with the text of the patch that was to be applied ("" if there was none)."""

    def __init__(self, error: Exception, patch: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.patch = patch


def patch_to(
    factory: Factory, info: Info, current: Object, modified: Object, request: ApplyRequest
) -> Patched:
    """Patch the current object to the configuration. Raises with patch, object and file in the
    message."""
    try:
        if request.dry_run == CLIENT:
            return _patched_locally(factory, info, current, modified, request)
        return _patched(factory, info, current, modified, request)
    except _PatchingError as failed:
        action = f"applying patch:\n{failed.patch}\nto:\n{info}\nfor:"
        raise with_source(failed.error, action, info.source) from None


def warn_if_deleting(factory: Factory, info: Info) -> None:
    if info.object is not None and is_being_deleted(info.object):
        factory.say(
            f"Warning: Detected changes to resource {info.name} which is currently being deleted."
        )


# --- the patch ------------------------------------------------------------------------------------


def _patch(
    factory: Factory, info: Info, current: Object, modified: Object, request: ApplyRequest
) -> Patch:
    """Return the patch to the configuration. Raises CliError."""
    if info.resource.custom:
        schema = None
    else:
        schema = openapi.schema_for(info.resource.api_version, info.resource.kind)

    original = annotations_of(current).get(LAST_APPLIED, "")
    try:
        return _three_way(original, modified, current, schema, overwrite=request.overwrite)
    except patches.PatchError as error:
        # Messages show the object with all its managers, so the patch is tried again with those.
        live = factory.client.with_managed_fields(current)
        shown = error
        try:
            _three_way(original, modified, live, schema, overwrite=request.overwrite)
        except patches.PatchError as with_managers:
            shown = with_managers
        if schema and request.openapi_patch:
            factory.say(
                f"warning: error calculating patch from openapi v3 spec: {shown.in_openapi_v3}"
            )
            factory.say(f"warning: error calculating patch from openapi spec: {shown.in_openapi}")
        raise CliError(
            f"creating patch "
            f"with:\noriginal:\n{original}\nmodified:\n{to_json(modified)}\n\ncurrent:\n"
            f"{to_json(live)}\n\nfor: {shown}"
        ) from None


def _three_way(
    original: str, modified: Object, current: Object, schema: Schema | None, *, overwrite: bool
) -> Patch:
    """Return the patch, strategic if there is a schema. Raises PatchError, also for an annotation
    that is no object."""
    invalid = "Invalid JSON Document" if schema is None else "invalid JSON document"
    try:
        last = yaml.read_json(original or "null")
    except yaml.YamlError:
        raise patches.PatchError(invalid) from None
    if not isinstance(last, dict | None):
        raise patches.PatchError(invalid)
    if schema is None:
        return Patch(MERGE_PATCH, patch_documents.three_way_json_merge(last, modified, current))
    data = patch_documents.three_way_strategic(last, modified, current, schema, overwrite=overwrite)
    return Patch(STRATEGIC_MERGE_PATCH, data)


# --- patching -------------------------------------------------------------------------------------


def _patched_locally(
    factory: Factory, info: Info, current: Object, modified: Object, request: ApplyRequest
) -> Patched:
    patch = Patch("", {})
    try:
        patch = _patch(factory, info, current, modified, request)
        if patch.type == MERGE_PATCH or not patch.data:
            return Patched(patch.data, patch_documents.merge_patch(current, patch.data))
        schema = openapi.schema_for(info.resource.api_version, info.resource.kind)
        return Patched(
            patch.data, patch_documents.strategic_merge_patch(current, patch.data, schema)
        )
    except Exception as error:
        raise _with_patch(error, patch) from None


def _with_patch(error: Exception, patch: Patch) -> Exception:
    if is_expected(error):
        return _PatchingError(error, to_json(patch.data) if patch.type else "")
    return error


def _patched(
    factory: Factory, info: Info, current: Object, modified: Object, request: ApplyRequest
) -> Patched:
    patch = Patch("", {})
    try:
        patch = _patch(factory, info, current, modified, request)
        if not patch.data:
            return Patched(patch.data, current)
        obj = factory.client.patch(
            info.resource.gvr,
            info.name,
            patch,
            namespace=info.namespace,
            options=PatchOptions(
                dry_run=request.dry_run == SERVER,
                field_manager=request.manager,
                field_validation=request.validation,
            ),
        )
        return Patched(patch.data, obj)
    except Exception as error:
        if request.force and isinstance(error, (api_errors.Conflict, api_errors.Invalid)):
            return _replaced(factory, info, current, modified, request)
        raise _with_patch(with_source(error, "patching", info.source), patch) from None


def _replaced(
    factory: Factory, info: Info, current: Object, modified: Object, request: ApplyRequest
) -> Patched:
    """Delete an object that cannot be patched and create it again (``--force``); if that fails,
    restore it.

    Raises _PatchingError, also if the object is still there after --timeout: without the flag that
    is at once.
    """

    def create(obj: Object) -> Object:
        return factory.client.create(
            info.resource.gvr,
            obj,
            namespace=info.namespace,
            options=CreateOptions(
                field_manager=request.manager, field_validation=request.validation
            ),
        )

    try:
        factory.client.delete(
            info.resource.key, info.name, namespace=info.namespace, options=request.deletion
        )
        if not is_gone(factory, info, request.timeout):
            raise CliError("context deadline exceeded")
        try:
            return Patched(modified, create(modified))
        except Exception as error:
            try:
                create(current)
            except Exception as second:
                raise CliError(
                    "An error occurred force-replacing the existing object with the newly "
                    "provided one:\n\n"
                    f"{error}.\n\nAdditionally, an error occurred attempting to restore the "
                    f"original "
                    f"object:\n\n{second}"
                ) from None
            raise
    except Exception as error:
        if not is_expected(error):
            raise
        raise _PatchingError(error, to_json(modified) + "\n") from None
