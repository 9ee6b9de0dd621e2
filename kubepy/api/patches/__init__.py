"""Patches as documents: JSON patches, merge patches, strategic merge patches, and how such patches are made."""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import Object
from kubepy.api.values.goformat import type_name


class PatchError(Exception):
    """A patch that cannot be computed or applied.

    ``code``: the HTTP status that the server answers with. ``in_openapi`` and ``in_openapi_v3``: what is said where
    types are known from OpenAPI documents rather than from Go.
    """

    def __init__(self, message: str, code: int = 500, in_openapi: str = "", in_openapi_v3: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.in_openapi = in_openapi or message
        self.in_openapi_v3 = in_openapi_v3 or message


def conflict(patch: Object, changed: Object) -> PatchError:
    from kubepy.storage import yaml

    return PatchError(f"patch:\n{yaml.dump(patch)}\nconflicts with changes made from original to current:\n"
                      f"{yaml.dump(changed)}\n")


def bad_argument(expected: str, actual: Any) -> PatchError:
    """``mergepatch.ErrBadArgType``; ``expected`` is a Go type."""
    return PatchError(f"expected a {expected}, but received a {type_name(actual)}")
