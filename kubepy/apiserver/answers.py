"""The answers of webhooks that a request has so far, and what ends an attempt at it that needs more
of them (``kubepy.apiserver.attempts``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubepy.apiserver.webhookcalls import Answer, Endpoint, WebhookCall

    Silent = dict[Endpoint, Answer]


class CallsPending(Exception):
    """The request cannot go on before these webhooks are called."""

    def __init__(self, calls: Sequence[WebhookCall]) -> None:
        super().__init__("webhooks must be called first")
        self.calls = calls


class WouldWait(Exception):
    """The request would wait for webhooks in a thread that others need: it must be made anew in one
    that may wait."""


class Answers:
    """The answers of webhooks to one request, which is carried out anew with each of them.

    A call that has no answer yet ends the run.

    :param timed_out: endpoints that are not tried again, with their answers.
    """

    def __init__(self, timed_out: Silent | None = None) -> None:
        self.timed_out: Silent = {} if timed_out is None else timed_out
        self._known: dict[WebhookCall, Answer] = {}

    def of(self, calls: Sequence[WebhookCall]) -> list[Answer]:
        """Return the answers to calls. Raises CallsPending."""
        missing = [call for call in calls if call not in self._known]
        if missing:
            raise CallsPending(missing)
        return [self._known[call] for call in calls]

    def learn(self, calls: Sequence[WebhookCall], answers: Sequence[Answer]) -> None:
        """Take the answers to calls."""
        self._known.update(zip(calls, answers, strict=True))
