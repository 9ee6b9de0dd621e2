"""The order in which objects of one transaction are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.storage.model import Key, Object


def _neither(key: Key, obj: Object) -> str:
    return ""


class WriteOrder(NamedTuple):
    """The objects for which it matters in which order a transaction writes them, and how much.

    :ivar is_unordered: tells of an object whether others may be written before it that the
        transaction has written later.
    :ivar is_record: tells of a key whether its object is a record of what happened to others, by
        which these are changed next: what was written before it must be there before it. The status
        of a Job has the pods that it has counted before they lose their finalizers.
    :ivar side: tells of an unordered object on which side it is, "" for none: objects of different
        sides keep their order. A pod goes because others are there, and those that come after it
        take its place.
    """

    is_unordered: Callable[[Key, Object], bool]
    is_record: Callable[[Key], bool]
    side: Callable[[Key, Object], str] = _neither


IN_ORDER = WriteOrder(lambda key, obj: False, lambda key: False)
