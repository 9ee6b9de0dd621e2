"""A request to the API as one value: what is to be done, to which resource and object, with which
options.

A :class:`Request` goes through the Client and all of the API machinery; the body travels beside it.
Upstream: ``apiserver/pkg/endpoints/request`` (RequestInfo), ``apimachinery/pkg/apis/meta/v1``
(options).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kubepy.api.scheme import GroupVersionResource
from kubepy.lazy import NamedTuple
from kubepy.quoting import quote

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Patch(NamedTuple):
    """A change of an object: parsed JSON, and the media type that says how to apply it, such as
    ``MERGE_PATCH``."""

    type: str
    data: Any


class ListOptions(NamedTuple):
    """``metav1.ListOptions``: the selectors of a list, or of the deletion of a collection."""

    label_selector: str = ""
    field_selector: str = ""


class StrictErrors(NamedTuple):
    """The errors of strict decoding that are in the text of a body, and the places of its fields.

    ``repeated``: the errors about keys that a map has twice, with their places; ``places``: those
    of all paths.
    """

    repeated: tuple[tuple[int, str], ...] = ()
    places: Mapping[str, int] = MappingProxyType({})

    def texts(self, unknown_fields: Iterable[str] = ()) -> list[str]:
        """Return all errors, those about unknown fields among them, in the order of the text."""
        last = len(self.places)
        errors = [
            *self.repeated,
            *(
                (self.places.get(path, last), f"unknown field {quote(path)}")
                for path in unknown_fields
            ),
        ]
        return [text for _, text in sorted(errors, key=lambda error: error[0])]


NO_ERRORS = StrictErrors()


class WriteOptions(NamedTuple):
    """``metav1.CreateOptions``, ``UpdateOptions`` and ``PatchOptions``.

    ``field_manager`` is the client on whose behalf managedFields are kept; controllers name none,
    so that tracking costs them nothing. ``field_validation``: Strict, Warn or Ignore (unknown
    fields). ``force``, of patches: server-side apply takes fields over from others. ``strict``:
    what strict decoding has to say about the text of the body.
    """

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Ignore"
    force: bool = False
    strict: StrictErrors = NO_ERRORS


# One class under upstream's names: each further one would cost every command a quarter of a
# millisecond.
CreateOptions = WriteOptions
UpdateOptions = WriteOptions
PatchOptions = WriteOptions


class DeleteOptions(NamedTuple):
    """``metav1.DeleteOptions``. ``propagation_policy``: Background, Foreground, Orphan, or None for
    the kind's own."""

    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


class CollectionOptions(NamedTuple):
    """The options of the deletion of a collection: which objects, and how each is deleted."""

    list: ListOptions = ListOptions()
    delete: DeleteOptions = DeleteOptions()


Options = WriteOptions | DeleteOptions | ListOptions | CollectionOptions


class Request(NamedTuple):
    """One request.

    ``verb``: get, list, create, update, patch, delete or deletecollection. ``namespace`` is "" for
    all of them, or for a resource that has none; ``name`` is "" where there is none (yet). Without
    ``options`` the verb's defaults count.
    """

    verb: str
    resource: GroupVersionResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    options: Options | None = None

    @property
    def write_options(self) -> WriteOptions:
        """The options of a creation, update or patch; the defaults for other requests."""
        return self.options if isinstance(self.options, WriteOptions) else CreateOptions()

    @property
    def delete_options(self) -> DeleteOptions:
        """The options of a deletion; the defaults for other requests."""
        return self.options if isinstance(self.options, DeleteOptions) else DeleteOptions()

    @property
    def list_options(self) -> ListOptions:
        """The selectors of a list; none for other requests."""
        return self.options if isinstance(self.options, ListOptions) else ListOptions()
