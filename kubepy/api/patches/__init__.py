"""Patches: JSON patches, merge patches and strategic merge patches, and computing them
(``apimachinery/pkg/util``).

Use :mod:`~kubepy.api.patches.documents`; ``json_patch``, ``strategic`` and ``strategic_diff`` do
its work.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import AnyObject
from kubepy.api.values.goformat import type_name
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.storage import yaml


class PatchError(Exception):
    """A patch that cannot be computed or applied.

    ``code``: the HTTP status that the server answers with. ``in_openapi`` and ``in_openapi_v3``:
    the message where types are known from OpenAPI documents instead of Go.
    """

    def __init__(
        self, message: str, code: int = 500, in_openapi: str = "", in_openapi_v3: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.in_openapi = in_openapi or message
        self.in_openapi_v3 = in_openapi_v3 or message


def conflict(patch: AnyObject, changed: AnyObject) -> PatchError:
    """Return the error of two changes of the same field (``mergepatch.NewErrConflict``)."""
    return PatchError(
        f"patch:\n{yaml.dump(patch)}\nconflicts with changes made from original to current:\n"
        f"{yaml.dump(changed)}\n"
    )


def bad_argument(expected: str, actual: Any) -> PatchError:
    """Return ``mergepatch.ErrBadArgType``; ``expected`` is a Go type."""
    return PatchError(f"expected a {expected}, but received a {type_name(actual)}")
