"""The resources that a source may hold and that could not be read."""

from __future__ import annotations


class UnreadResources:
    """The resources of which a source may hold more objects than could be read.

    What is not in a source is removed from a cluster that becomes what the source is. What could
    not be read is no such thing.

    :ivar names: those that a running cluster was asked for, and did not give.
    :ivar read: those that it gave.
    :ivar are_others_unread: others than these may be there: discovery was not complete, or a file
        could not be read, which may hold anything.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.read: set[str] = set()
        self.are_others_unread = False

    def __contains__(self, resource: str) -> bool:
        return resource in self.names or (self.are_others_unread and resource not in self.read)

    def __bool__(self) -> bool:
        return bool(self.names) or self.are_others_unread
