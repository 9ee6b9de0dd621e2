"""Webhooks that a request meets, and how it goes on with their answers.

A request holds the lock of the folder while it runs, and a webhook may take its time, or run
``kubepy`` itself. So a request that meets a webhook is undone, the webhook is called while nothing
is locked, and the request runs again with the answer, until it has all of them: a *rehearsal*. Its
ids and its time stay the same from run to run, and so do the calls, unless another program has
changed the object meanwhile. Requests in a batch (the controllers') cannot be undone one by one:
there webhooks are called under the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kubepy.api.clock import Ids
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from kubepy.apiserver.webhookcalls import Answer, Endpoint, WebhookCall

    Silent = dict[Endpoint, Answer]

with lazy_imports():  # HTTP and TLS are loaded for the first call
    from kubepy.apiserver import webhookclient


class CallsPending(Exception):
    """The request cannot go on before these webhooks are called."""

    def __init__(self, calls: Sequence[WebhookCall]) -> None:
        super().__init__("webhooks must be called first")
        self.calls = calls


class WouldWait(Exception):
    """The request would wait for webhooks in a thread that others need: it must be made anew in one
    that may wait."""


class RecordedIds(Ids):
    """Ids that repeat from run to run of a rehearsal: the first draw for a subject counts."""

    def __init__(self, ids: Ids) -> None:
        super().__init__(ids.seed)
        self._ids = ids
        self._drawn: dict[tuple[str | int, ...], str] = {}

    def uid(self, *subject: str, revision: int) -> str:
        return self._repeat(("uid", *subject), lambda: self._ids.uid(*subject, revision=revision))

    def suffix(self, *subject: str, number: int, attempt: int = 0) -> str:
        return self._repeat(
            ("suffix", *subject, attempt),
            lambda: self._ids.suffix(*subject, number=number, attempt=attempt),
        )

    def _repeat(self, subject: tuple[str | int, ...], draw: Callable[[], str]) -> str:
        if subject not in self._drawn:
            self._drawn[subject] = draw()
        return self._drawn[subject]


class WebhookCalls:
    """The calls of webhooks by one server.

    :param services: the URLs of Services, by ``namespace/name`` or ``namespace/name:port``.
    :param may_wait: False: WouldWait is raised instead of a call.
    :param silent: endpoints that have timed out in this prediction or one before it, which are not
        tried again.
    :param refusal: returns why nothing may be called, "" where it may.
    """

    def __init__(
        self,
        services: Mapping[str, str],
        may_wait: bool = True,
        silent: Silent | None = None,
        refusal: Callable[[], str] = lambda: "",
    ) -> None:
        self.services = services
        self._refusal = refusal
        self._may_wait = may_wait
        self._silent = silent
        self._answers: dict[WebhookCall, Answer] | None = (
            None  # in a rehearsal, those that are known so far
        )
        self._timed_out: dict[Endpoint, Answer] | None = (
            None  # in a batch, those that are not tried again
        )

    def answers(self, calls: Sequence[WebhookCall], ids: Ids) -> list[Answer]:
        """Return the answers to calls. Raises CallsPending in a rehearsal that does not have all of
        them yet."""
        if self._answers is None:
            return self._send(calls, ids)
        if missing := [call for call in calls if call not in self._answers]:
            raise CallsPending(missing)
        return [self._answers[call] for call in calls]

    def _send(self, calls: Sequence[WebhookCall], ids: Ids) -> list[Answer]:
        """Send the calls, all at once. An endpoint that has timed out is not tried again in the
        same batch."""
        if not self._may_wait:
            raise WouldWait
        known = {**(self._timed_out or {}), **(self._silent or {})}
        answers = {call: known[call.endpoint] for call in calls if call.endpoint in known}
        if reason := self._refusal():
            answers |= {call: webhookclient.refused(call, reason) for call in calls}
        answers |= webhookclient.send([call for call in calls if call not in answers], ids)
        for silent in (self._timed_out, self._silent):
            if silent is not None:
                silent.update(
                    (call.endpoint, answer)
                    for call, answer in answers.items()
                    if answer.problem.endswith(webhookclient.TIMED_OUT)
                )
        return [answers[call] for call in calls]

    def begin_batch(self) -> None:
        self._timed_out = {}

    def end_batch(self) -> None:
        self._timed_out = None

    def begin_rehearsal(self) -> None:
        self._answers = {}

    def end_rehearsal(self) -> None:
        self._answers = None

    def rehearse(self, calls: Sequence[WebhookCall], ids: Ids) -> None:
        """Make the calls that a run of the request was waiting for. Raises WouldWait."""
        answers = self._send(calls, ids)
        if self._answers is not None:
            self._answers.update(zip(calls, answers, strict=True))
