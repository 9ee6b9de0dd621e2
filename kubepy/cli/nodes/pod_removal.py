"""Removing the pods of a node: evicting or deleting each, and waiting until all are gone.

Upstream: ``evictPods``, ``deletePods`` and ``waitForDelete`` of ``k8s.io/kubectl/pkg/drain/drain.go``. It evicts every
pod in a thread of its own; here one loop looks after all of them, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kubepy.api.errors import Status
from kubepy.api.meta import Object, is_being_deleted, name_of, namespace_of, uid_of
from kubepy.api.values.goformat import format_duration
from kubepy.apiserver.client import DeleteOptions
from kubepy.cli.errors import CliError, raise_all, unless_missing
from kubepy.cli.nodes.eviction import was_deleted_long_ago
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import SERVER
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api import errors as api_errors

RETRY_DELAY = 5.0  # seconds between tries to evict a pod that may not go yet
NAMESPACE_TERMINATING = "NamespaceTerminating"
OVERDUE = "context deadline exceeded"


@dataclass
class Eviction:
    """The eviction of one pod. ``due``: when to try next, in monotonic seconds; ``accepted``: it only has to go now."""

    pod: Object
    due: float = 0.0
    accepted: bool = False


class PodRemoval:
    """``given`` holds the flags of drain; ``strategy`` is its dry run."""

    def __init__(self, factory: Factory, given: Invocation, strategy: str) -> None:
        self.factory = factory
        self.given = given
        self.strategy = strategy

    def run(self, pods: Sequence[Object]) -> None:
        """Raises CliError, AggregateError, Status."""
        if self.given.disable_eviction:
            self._delete(pods)
        else:
            self._evict(pods)

    # --- deleting

    def _delete(self, pods: Sequence[Object]) -> None:
        """Raises Status for the first pod that may not be deleted; the pods before it go all the same."""
        for pod in pods:
            with suppress(api_errors.NotFound):
                self.factory.client.delete("pods", name_of(pod), namespace=namespace_of(pod), options=self._options())
        left = [] if self.strategy == SERVER else list(pods)

        def look() -> bool:
            left[:] = [pod for pod in left if not self._is_gone(pod)]
            return not left

        if not self._wait_until(look):
            raise CliError(OVERDUE)

    # --- evicting

    def _evict(self, pods: Sequence[Object]) -> None:
        left = [Eviction(pod) for pod in pods]
        errors: list[Exception] = []

        def look() -> bool:
            left[:] = [one for one in left if not self._is_done(one, errors)]
            return not left

        if not self._wait_until(look):
            errors += [self._overdue(one) for one in sorted(left, key=lambda one: not one.accepted)]
        raise_all(errors)

    def _is_done(self, eviction: Eviction, errors: list[Exception]) -> bool:
        """Go on with one eviction; whether it is over, well or not."""
        if not eviction.accepted:
            if eviction.due > self.factory.cluster.clock.monotonic():
                return False
            self._say_evicting(eviction.pod)
            try:
                self.factory.client.evict(name_of(eviction.pod), namespace=namespace_of(eviction.pod),
                                          options=self._options())
            except Status as error:
                return self._is_given_up(eviction, error, errors)
            eviction.accepted = True
        return self.strategy == SERVER or self._is_gone(eviction.pod)

    def _is_given_up(self, eviction: Eviction, error: Status, errors: list[Exception]) -> bool:
        """What a refusal means: the pod is gone, it is tried again later, or there is no hope."""
        pod = eviction.pod
        if isinstance(error, api_errors.NotFound):
            return True
        subject = f"pods/{quote(name_of(pod))} -n {quote(namespace_of(pod))}"
        if isinstance(error, api_errors.TooManyRequests):
            self.factory.say(f"error when evicting {subject} (will retry after 5s): {error}")
        elif not any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes):
            errors.append(CliError(f"error when evicting {subject}: {error}"))
            return True
        elif is_being_deleted(pod):
            eviction.accepted = True  # no eviction will be admitted any more, and none is needed
            return False
        else:
            self.factory.say(f"error when evicting pod {quote(name_of(pod))} from terminating namespace "
                             f"{quote(namespace_of(pod))} (will retry after 5s): {error}")
        eviction.due = self.factory.cluster.clock.monotonic() + RETRY_DELAY
        eviction.pod = self._fresh(pod) or pod
        return False

    def _overdue(self, eviction: Eviction) -> CliError:
        """What is said of a pod that is still there when the time is up."""
        name, namespace = name_of(eviction.pod), namespace_of(eviction.pod)
        if eviction.accepted:
            return CliError(f"error when waiting for pod {quote(name)} in namespace {quote(namespace)} to terminate: "
                            f"{OVERDUE}")
        self._say_evicting(eviction.pod)
        return CliError(f"error when evicting pods/{quote(name)} -n {quote(namespace)}: global timeout reached: "
                        f"{format_duration(self.given.timeout)}")

    def _say_evicting(self, pod: Object) -> None:
        suffix = " (server dry run)" if self.strategy == SERVER else ""
        self.factory.print(printable(f"evicting pod {namespace_of(pod)}/{name_of(pod)}{suffix}"))

    # --- both

    def _options(self) -> DeleteOptions:
        grace = self.given.grace_period if self.given.grace_period >= 0 else None
        return DeleteOptions(grace_period_seconds=grace, dry_run=self.strategy == SERVER)

    def _wait_until(self, look: Callable[[], bool]) -> bool:
        return look() or self.factory.driver.wait_until(look, float(self.given.timeout) or None, "until pods are gone")

    def _fresh(self, pod: Object) -> Object | None:
        return unless_missing(self.factory.client.get, "pods", name_of(pod), namespace=namespace_of(pod))

    def _is_gone(self, pod: Object) -> bool:
        """Whether the pod is gone (which is said), or has been going for so long that it is not waited for."""
        found = self._fresh(pod)
        if found is None or uid_of(found) != uid_of(pod):
            word = "deleted" if self.given.disable_eviction else "evicted"
            printer_for(self.factory, self.given, word, self.strategy)(pod)
            return True
        limit = self.given.skip_wait_for_delete_timeout
        if was_deleted_long_ago(found, limit, self.factory.cluster.clock.now()):
            self.factory.print(f"pod {quote(name_of(pod))} has DeletionTimestamp older than {limit} seconds, skipping")
            return True
        return False
