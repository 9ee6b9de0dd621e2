"""A request to the API as one value: what is to be done, to which resource and object, with which
options, and in which context.

A :class:`Request` goes through the Client and all of the API machinery; the body travels beside it.
Upstream: ``apiserver/pkg/endpoints/request`` (RequestInfo, Context),
``apimachinery/pkg/apis/meta/v1`` (options).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import Clock, Ids
from kubepy.api.meta import Object
from kubepy.api.scheme import GroupVersionResource
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.apiserver.answers import Answers

with lazy_imports():
    from kubepy.storage import yaml

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
    """The errors of strict decoding that are in the text of a body, and that text.

    ``repeated``: the errors about keys that a map has twice, with their places; ``text``: the body,
    where it is JSON, whose fields have an order; else "".
    """

    repeated: tuple[tuple[int, str], ...] = ()
    text: str = ""

    def texts(self, unknown_fields: Sequence[str] = ()) -> list[str]:
        """Return all errors, those about unknown fields among them, in the order of the text."""
        places: dict[str, int] = {}
        if unknown_fields and self.text:
            for place, (path, _) in enumerate(yaml.key_paths(self.text)):
                places.setdefault(path, place)
        last = len(places)
        errors = [
            *self.repeated,
            *((places.get(path, last), f"unknown field {quote(path)}") for path in unknown_fields),
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


Warn = Callable[[str], None]
# Takes the key of a request that has written, the object, and the user.
OnWrite = Callable[[Key, Object | None, Object], None]


class RequestContext(NamedTuple):
    """The circumstances of a request, the same through all of the API machinery.

    :ivar user: who makes it, as a UserInfo (``authentication.k8s.io``).
    :ivar warn: takes each warning that a server would send.
    :ivar clock: its time.
    :ivar ids: draws its uids and generated names.
    :ivar may_wait: for webhooks; False: a request that meets one raises
        :class:`~kubepy.apiserver.answers.WouldWait`.
    :ivar is_prediction: admission webhooks are called as for a dry run: what happens is only
        predicted.
    :ivar component: the controller of kubepy's own that makes it, "" for everybody else: a field
        that the schema does not have is its error.
    :ivar answers: what webhooks have answered to this request so far; None: it was not undone for
        them, and calls them where it meets them.
    :ivar observers: are told of it after it has written, unless in a dry run.
    """

    user: Object
    warn: Warn
    clock: Clock
    ids: Ids
    may_wait: bool = True
    is_prediction: bool = False
    component: str = ""
    answers: Answers | None = None
    observers: tuple[OnWrite, ...] = ()

    def warn_all(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.warn(warning)


class Request(NamedTuple):
    """One request.

    ``verb``: get, list, create, update, patch, delete or deletecollection. ``namespace`` is "" for
    all of them, or for a resource that has none; ``name`` is "" where there is none (yet). Without
    ``options`` the verb's defaults count, without ``context`` that of the client that carries the
    request out.
    """

    verb: str
    resource: GroupVersionResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    options: Options | None = None
    context: RequestContext | None = None

    def require_context(self) -> RequestContext:
        """Return the context of a request that a client has taken."""
        assert self.context is not None
        return self.context

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
