"""The checkpoint of a manager, as it is written and taken up: see ``kubepy.runtime.checkpoint``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.apiserver.client import Client
from kubepy.controlplane.queues import Queues
from kubepy.runtime.checkpoint import CONTENTION, EVENTS, PACING, Checkpoint, dump, parse
from kubepy.runtime.contention import Contention
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Remembering


class CheckpointStore(NamedTuple):
    """Loads and saves the text of a checkpoint; ``build_manager`` connects it to the state folder.

    ``identity``: what a checkpoint must be of: the names of the reconcilers, and the settings that
    they go by.
    """

    load: Callable[[], str | None]
    save: Callable[[str], None]
    identity: Sequence[str] = ()


class Checkpoints:
    """Puts together what a checkpoint holds, and gives it back to whom it belongs.

    :param store: None: nothing is kept.
    :ivar saved: the text that was loaded or saved last.
    """

    def __init__(
        self,
        store: CheckpointStore | None,
        queues: Queues,
        client: Client,
        contention: Contention,
        pacing: Pacing,
    ) -> None:
        self.saved: str | None = None
        self._store = store
        self._queues = queues
        self._client = client
        self._contention = contention
        self._pacing = pacing
        self._remembering = [
            reconciler for reconciler in queues.reconcilers if isinstance(reconciler, Remembering)
        ]

    def load(self) -> str | None:
        """Return the text of the checkpoint that this process or another one has saved last."""
        if self._store is None:
            return None
        return self._store.load()

    def parse(self, text: str | None) -> Checkpoint | None:
        """Read a text that was loaded; None where it is no checkpoint of such a manager."""
        self.saved = text
        if self._store is None:
            return None
        return parse(text, self._store.identity)

    def restore(self, checkpoint: Checkpoint, now: datetime) -> None:
        """Give queues, reconcilers and recorders what they had when a checkpoint was saved."""
        self._queues.restore(checkpoint.pending, checkpoint.turn, now)
        memories = checkpoint.memories
        for reconciler in self._remembering:
            memory = memories.get(reconciler.name)
            if memory:
                reconciler.recall(memory)
        self._contention.recall(memories.get(CONTENTION, {}))
        self._pacing.recall(memories.get(PACING, ()))
        for component, recorder in self._client.event_memories.items():
            recorder.recall(memories.get(EVENTS, {}).get(component))

    def save(self, revision: int, now: datetime, *, is_cut: bool) -> None:
        """Save a checkpoint, if it is another one than the last.

        :param revision: all changes up to it have been delivered.
        :param is_cut: the run ends at the bound of its writes, with work left to be done.
        """
        if self._store is None:
            return
        memories = self._memories(now)
        checkpoint = Checkpoint(
            revision,
            tuple(self._queues.pending()),
            memories,
            self._queues.position(),
            is_cut,
            PACING in memories,
        )
        text = dump(checkpoint, self._store.identity)
        if text != self.saved:
            self._store.save(text)
            self.saved = text

    def _memories(self, now: datetime) -> dict[str, Any]:
        memories: dict[str, Any] = {}
        for reconciler in self._remembering:
            memory = reconciler.remember()
            if memory:
                memories[reconciler.name] = memory

        of_recorders: dict[str, Any] = {}
        for component, recorder in self._client.event_memories.items():
            memory = recorder.remember(now)
            if memory:
                of_recorders[component] = memory

        memories[EVENTS] = of_recorders
        of_contention = self._contention.remember()
        if of_contention:
            memories[CONTENTION] = of_contention
        of_pacing = self._pacing.remember()
        if of_pacing:
            memories[PACING] = of_pacing
        return memories
