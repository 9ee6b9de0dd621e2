"""The runs of a fuzz on a cluster of Dask distributed, which is the extra ``dask``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from kubepy import __version__
from kubepy.cli.errors import CliError
from kubepy.cli.installation import missing_extra
from kubepy.lazy import load
from kubepy.quoting import printable

SCHEME = "dask://"
PATIENCE = 30  # seconds for the scheduler to answer, and for a first worker to be there
LARGE = 10_000  # bytes from which on an argument is sent once, and not with each call
VERSION = "__import__('kubepy').__version__"  # what is asked of a worker, which may have no kubepy
Result = TypeVar("Result")


class DaskExecutor(Executor):
    """Lets the workers of a cluster of Dask call functions.

    :ivar workers: how many there are now; each makes one run at a time.

    Raises CliError where no scheduler answers, there is no worker, or one has another kubepy.
    """

    def __init__(self, address: str) -> None:
        host = address.removeprefix(SCHEME)
        if not address.startswith(SCHEME) or not host:
            raise CliError(f"--on={address}: must be {SCHEME}HOST:PORT")
        try:
            distributed = load("distributed")
        except ImportError:
            raise CliError(f"--on needs {missing_extra('dask')}") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are reported once
        self._address = address
        try:
            self._client = distributed.Client(
                f"tcp://{host}", timeout=PATIENCE, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise CliError(
                printable(f"--on={address}: no scheduler of Dask answers there: {error}")
            ) from None
        self._executor: Executor = self._client.get_executor(pure=False)
        self._sent: dict[bytes, Any] = {}
        try:
            self._check_workers()
        except BaseException:
            self._client.close()
            raise

    def _check_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise CliError(f"--on={self._address}: the scheduler has no workers") from None
        versions = self._client.run(eval, VERSION, on_error="return")
        self.workers = len(versions)
        for worker, version in sorted(versions.items()):
            if isinstance(version, Exception):
                problem = f"cannot import kubepy: {version}"
            elif version != __version__:
                problem = f"has kubepy {version}"
            else:
                continue
            message = f"--on={self._address}: the worker {worker} {problem}"
            raise CliError(printable(f"{message}; it needs kubepy {__version__}"))

    def submit(
        self, function: Callable[..., Result], /, *arguments: Any, **named: Any
    ) -> Future[Result]:
        """Let a worker call a function. A large argument in bytes goes to each worker once."""
        return self._executor.submit(function, *map(self._shared, arguments), **named)

    def _shared(self, argument: Any) -> Any:
        """Return what stands for an argument: the result of a task, which workers pass on to one
        another, and which is made again where it is lost."""
        if not isinstance(argument, bytes) or len(argument) < LARGE:
            return argument
        sent = self._sent.get(argument)
        if sent is None:
            sent = self._sent[argument] = self._client.submit(bytes, argument, pure=False)
        return sent

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is under way, and leave the cluster."""
        self._executor.shutdown(wait=wait and not cancel_futures)
        self._client.close()
