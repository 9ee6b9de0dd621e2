"""The decorator ``@kubepy.cluster`` for tests that are written with unittest."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from kubepy.clusters import FIRST_MOMENT, Cluster

Test = TypeVar("Test", bound=Callable[..., Any])  # a class of tests, or one of its methods
ATTRIBUTE = "cluster"


def cluster(
    *,
    nodes: int = 1,
    clock: datetime | str | None = FIRST_MOMENT,
    seed: int | str | None = 1,
    settings: Mapping[str, Any] | None = None,
) -> Callable[[Test], Test]:
    """Return a decorator that gives each test of a class, or one test, a new cluster in memory as
    ``self.cluster``; that of a method goes before that of its class.

    The parameters are those of :meth:`Cluster.temporary <kubepy.Cluster.temporary>`.
    """

    def new() -> Cluster:
        return Cluster.temporary(nodes=nodes, clock=clock, seed=seed, settings=settings)

    def decorate(test: Test) -> Test:
        if isinstance(test, type):
            _decorate_class(test, new)
            return test
        if not callable(test):
            raise TypeError(f"@kubepy.cluster is for a class or a method, and not for {test!r}")
        decorated: Test = _decorated_method(test, new)
        return decorated

    return decorate


def _decorate_class(cls: Any, new: Callable[[], Cluster]) -> None:
    """Let each run of a test have a cluster, its ``setUp`` and ``tearDown`` included. Raises
    TypeError for a class that runs no tests."""
    run = getattr(cls, "run", None)
    if run is None:
        raise TypeError(f"@kubepy.cluster: {cls.__name__} is no unittest.TestCase")

    @functools.wraps(run)
    def run_with_cluster(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _provided(self, new):
            return run(self, *args, **kwargs)

    cls.run = run_with_cluster


def _decorated_method(method: Any, new: Callable[[], Cluster]) -> Any:
    if iscoroutinefunction(method):

        @functools.wraps(method)
        async def call_later(self: Any, *args: Any, **kwargs: Any) -> Any:
            with _provided(self, new):
                return await method(self, *args, **kwargs)

        return call_later

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _provided(self, new):
            return method(self, *args, **kwargs)

    return call


@contextmanager
def _provided(test: Any, new: Callable[[], Cluster]) -> Iterator[None]:
    """Give a test a new cluster for the length of a block, and then what it had before."""
    before = getattr(test, ATTRIBUTE, None)
    with new() as own_cluster:
        setattr(test, ATTRIBUTE, own_cluster)
        try:
            yield
        finally:
            setattr(test, ATTRIBUTE, before)
