"""``--overrides``: JSON that changes what a generator made. Upstream: ``kubectl/pkg/cmd/util/override_options.go``."""

from __future__ import annotations

import json
from typing import Any

from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.errors import CliError
from kubepy.cli.runtime.flags import Flag, string
from kubepy.cluster.objects.meta import Object


def override_flags() -> list[Flag]:
    return [
        string("overrides", help="Inline JSON that overrides the generated object. It has to name its apiVersion."),
        string("override-type", default="merge", help="How to override the generated object: json, merge, or "
               "strategic."),
    ]


def overridden(given: Invocation, obj: Object) -> Object:
    """The object with ``--overrides``, its fields in Go's order. Raises CliError, and BadRequest for a wrong patch."""
    if not given.overrides:
        return obj
    patch = _parsed(given.overrides)
    return _decoded(_patched(obj, patch, given.override_type or "merge"))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise CliError("Invalid JSON Patch") from None


def _patched(obj: Object, patch: Any, kind: str) -> Object:
    from kubepy.cluster.patches import documents as patches
    from kubepy.cluster.schema.openapi import schema_for

    if kind == "json":
        return patches.json_patch(obj, patch)
    if kind == "merge":
        return patches.merge_patch(obj, patch)
    if kind == "strategic":
        return patches.strategic_merge_patch(obj, patch, schema_for(obj["apiVersion"], obj["kind"]))
    raise CliError(f"invalid override type: {kind}")


def _decoded(obj: Object) -> Object:
    """What the object's type keeps of it, since it goes through a Go struct."""
    from kubepy.cluster.types import DecodeError, decode, go_order

    try:
        kept = decode(obj).object
    except DecodeError as error:
        raise CliError(f"json: {error}" if "cannot unmarshal" in str(error) else str(error)) from None
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **go_order(f"core/v1.{obj['kind']}", kept)}
