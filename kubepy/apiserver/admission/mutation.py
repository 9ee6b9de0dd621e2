"""Changes of an object on its way into storage, by webhooks and by policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubepy.api.meta import Object, clone
from kubepy.api.patches.documents import MAX_COPIED_BYTES
from kubepy.api.patches.json_patch import OperationError, Patcher
from kubepy.api.scheme import Resource
from kubepy.apiserver.server import Attributes
from kubepy.apiserver.strategy import restore


class Reinvocation:
    """Who asked to be called again if something changes after them, and whether something has.

    :ivar has_changed: the mutating plugins are to run once more.
    :ivar due: those that are called again then.
    """

    def __init__(self) -> None:
        self.has_changed = False
        self.due: set[object] = set()
        self._invoked: set[object] = set()
        self._last: Object = {}  # the object at the end of the first pass

    def add(self, invoked: object) -> None:
        """Note who was called, and wants to be called again (``IfNeeded``)."""
        self._invoked.add(invoked)

    def note_change(self) -> None:
        """Note that those who are called have changed the object."""
        self.has_changed = True
        self._require()

    def end_pass(self, obj: Object) -> None:
        """Remember the object as it is after the first pass."""
        self._last = clone(obj)

    def begin_again(self, obj: Object) -> None:
        """Begin the second pass: others may have changed the object since the first one."""
        if obj != self._last:
            self._require()

    def _require(self) -> None:
        """Call again who was called before something has changed."""
        self.due |= self._invoked
        self._invoked.clear()


def patched_document(obj: Object, patch: Iterable[Mapping[str, Any]]) -> Object:
    """Return what a JSON patch makes of an object. Raises OperationError."""
    patcher = Patcher(clone(obj), MAX_COPIED_BYTES)
    for operation in patch:
        patcher.apply(operation)
    if not isinstance(patcher.document, dict):
        raise OperationError(
            "json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    return patcher.document


def take_over(changed: Object, attributes: Attributes, resource: Resource) -> bool:
    """Decode and default a changed object, and make it that of the request; tell whether that
    changed it. Raises DecodeError.

    :param resource: in the version in which the object was changed.
    """
    strategy = attributes.server.strategy(attributes.body or resource)
    changed = strategy.decode(changed).object
    changed.setdefault("metadata", {})
    strategy.default(changed)
    if attributes.body is None and attributes.resource.custom:
        [changed] = attributes.server.in_version(
            attributes.resource, [changed], attributes.transaction.get, attributes.context
        )

    obj = attributes.obj
    restore(changed["metadata"], obj["metadata"], "managedFields")
    if changed == obj:
        return False
    obj.clear()
    obj.update(changed)
    return True
