"""The options of requests, and the media types of patches."""

from __future__ import annotations

from typing import NamedTuple


class DeleteOptions(NamedTuple):
    """``metav1.DeleteOptions``. ``propagation_policy``: Background, Foreground, Orphan, or None for the kind's own."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
