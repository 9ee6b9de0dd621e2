"""The attempts at a request that meets webhooks, and their calls.

A request holds the lock of the folder in its transaction, and a webhook may take its time, or run
``kubepy`` itself. So an attempt that meets a webhook that has not answered ends, the webhook is
called while nothing is locked, and another attempt is made with the answer. The first ones are made
on a copy of what is stored, without a lock, as far as it is known that there are webhooks; then one
in the transaction. Ids and time stay the same from attempt to attempt, and so do the calls, unless
another program has changed the object meanwhile. A request in a batch (the controllers') writes
nothing before its webhooks have answered; what the batch has written before is committed, so that
there nothing is locked either while they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kubepy.api import errors
from kubepy.api.clock import Clock, Ids
from kubepy.apiserver.answers import Answers, CallsPending, WouldWait
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from kubepy.apiserver.answers import Silent
    from kubepy.apiserver.request import RequestContext
    from kubepy.apiserver.webhookcalls import Answer, WebhookCall

with lazy_imports():  # HTTP and TLS are loaded for the first call
    from kubepy.apiserver import webhookclient

MAX_ATTEMPTS = 200  # at one request: after each the webhooks that it has met are called


class RecordedIds(Ids):
    """Ids that repeat from attempt to attempt: the first draw for a subject counts."""

    def __init__(self, ids: Ids) -> None:
        super().__init__(ids.seed)
        self._ids = ids
        self._drawn: dict[tuple[str | int, ...], str] = {}

    def uid(self, *subject: str, number: int) -> str:
        return self._repeat(("uid", *subject), lambda: self._ids.uid(*subject, number=number))

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
    :param silent: endpoints that have timed out in a prediction, which other predictions do not try
        again.
    :param refusal: returns why nothing may be called, "" where it may.
    """

    def __init__(
        self, services: Mapping[str, str], silent: Silent, refusal: Callable[[], str]
    ) -> None:
        self.services = services
        self._silent = silent
        self._refusal = refusal

    def answers(self, calls: Sequence[WebhookCall], context: RequestContext) -> list[Answer]:
        """Return the answers to the calls of a request. Raises CallsPending in an attempt that
        does not have all of them yet."""
        if context.answers is None:
            return self.send(calls, context)
        return context.answers.of(calls)

    def send(self, calls: Sequence[WebhookCall], context: RequestContext) -> list[Answer]:
        """Send the calls, all at once, but to endpoints that have timed out before. Raises
        WouldWait."""
        if not context.may_wait:
            raise WouldWait
        timed_out = context.answers.timed_out if context.answers is not None else {}
        silent = self._silent if context.is_prediction else {}
        known = {**timed_out, **silent}
        answers = {call: known[call.endpoint] for call in calls if call.endpoint in known}
        if reason := self._refusal():
            answers |= {call: webhookclient.refused(call, reason) for call in calls}
        unanswered = [call for call in calls if call not in answers]
        answers |= webhookclient.send(unanswered, context.ids)
        for call, answer in answers.items():
            if answer.problem.endswith(webhookclient.TIMED_OUT):
                timed_out[call.endpoint] = silent[call.endpoint] = answer
        return [answers[call] for call in calls]


class Attempts:
    """The attempts at one request, until all webhooks that it meets have answered.

    Ids and time repeat from one to the next. The warnings of the last one are given in the end.

    :param context: that of the request.
    :param timed_out: endpoints that are not tried again, with their answers.
    """

    def __init__(
        self, webhooks: WebhookCalls, context: RequestContext, timed_out: Silent | None = None
    ) -> None:
        self._webhooks = webhooks
        self._context = context
        self._answers = Answers(timed_out)
        self._ids = RecordedIds(context.ids)
        self._clock: Clock | None = None
        self._warnings: list[str] = []
        self._number = 0

    def context(self) -> RequestContext:
        """Return the context of the next attempt, before its transaction."""
        return self._context._replace(
            warn=self._warnings.append, ids=self._ids, answers=self._answers
        )

    def begin(self, context: RequestContext) -> RequestContext:
        """Return the context of an attempt inside its transaction: time stands still from the
        first one on."""
        if self._clock is None:
            self._clock = Clock(self._context.clock.now())
        self._number += 1
        return context._replace(clock=self._clock)

    def call(self, pending: CallsPending) -> None:
        """Call the webhooks that an attempt was waiting for, outside its transaction. Raises
        Conflict after many attempts, and WouldWait."""
        if self._number > MAX_ATTEMPTS:
            raise errors.Conflict(
                "Operation cannot be fulfilled: the object keeps changing while webhooks are called"
            )
        context = self._context._replace(answers=self._answers)
        self._answers.learn(pending.calls, self._webhooks.send(pending.calls, context))
        self.forget_warnings()

    def forget_warnings(self) -> None:
        """Leave out the warnings of the runs so far: another one gives its own."""
        self._warnings.clear()

    def end(self) -> None:
        """Give the warnings of the last attempt, each once, as a server sends them."""
        for warning in dict.fromkeys(self._warnings):
            self._context.warn(warning)
