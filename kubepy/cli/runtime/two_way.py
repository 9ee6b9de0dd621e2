"""The patch that turns one object into another, of the kind that its type is patched with."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.apiserver.request import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kubepy.cli.errors import CliError


def two_way_patch(before: Object, after: Object) -> tuple[Object, str]:
    """The patch (``{}``: nothing to do) and its type: strategic for built-in kinds, JSON merge for custom ones.

    Raises CliError where that cannot be compared.
    """
    from kubepy.api.patches.documents import create_merge_patch, two_way_strategic
    from kubepy.api.patches.errors import PatchError
    from kubepy.api.schema.openapi import schema_for

    schema = schema_for(after["apiVersion"], after["kind"])
    if schema is None:
        return create_merge_patch(before, after), MERGE_PATCH
    try:
        return two_way_strategic(before, after, schema), STRATEGIC_MERGE_PATCH
    except PatchError as error:
        raise CliError(str(error)) from None
