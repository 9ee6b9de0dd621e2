"""Reading what a store has recorded, at one revision after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kubepy.storage.errors import CompactedError, LostStateError

if TYPE_CHECKING:
    from kubepy.storage.state import State
    from kubepy.storage.store import Store

T = TypeVar("T")


class RecordedView:
    """All that a store has recorded at one revision, for whoever follows its change log: a state
    that is followed by another one at each :meth:`refresh`.

    No edit of a file shows before it is recorded. The objects that come out are shared or new:
    never change one.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._state: State | None = None

    @property
    def revision(self) -> int:
        """The revision of everything that is seen; 0 where nothing is."""
        if self._state is None or self._state.is_lost():
            return 0
        return self._state.revision

    def is_as_at(self, revision: int) -> bool:
        """Return whether no object was changed after a revision up to that of what is seen."""
        if revision == self.revision:
            return True
        try:
            return not self.read(lambda state: state.entries(revision))
        except CompactedError:
            return False

    def refresh(self) -> None:
        """Go on to the newest revision."""
        self.release()
        self._state = self._store.state()

    def release(self) -> None:
        """Let go of what is seen. Others may need to wait for that."""
        if self._state is not None:
            self._state.close()

    def read(self, query: Callable[[State], T]) -> T:
        """Run a query of the state; where that was lost, of the newest one."""
        if self._state is None:
            self.refresh()
        assert self._state is not None
        try:
            return query(self._state)
        except LostStateError:
            self.refresh()
        return query(self._state)


def read_recorded(store: Store, query: Callable[[State], T]) -> T:
    """Return what a query of the newest state of a store gives; no file is looked at."""
    view = RecordedView(store)
    try:
        return view.read(query)
    finally:
        view.release()
