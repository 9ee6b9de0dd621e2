"""Answers that go on: their end, and waits that have one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any


async def first_ended(
    pieces: AsyncIterator[bytes], *jobs: Coroutine[Any, Any, object]
) -> Exception | None:
    """Run jobs until one of them ends; return the error of the first job, which sends the pieces.
    The other jobs are cancelled, and the pieces closed."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcome, *_ = await asyncio.gather(*tasks, return_exceptions=True)
        await close_pieces(pieces)
    return outcome if isinstance(outcome, Exception) else None


async def close_pieces(pieces: AsyncIterator[bytes]) -> None:
    """End an iterator in which a block may be open."""
    if close := getattr(pieces, "aclose", None):
        await close()


async def wait_for_disconnect(receive: Callable[[], Awaitable[Any]]) -> None:
    """Wait until a client has gone.

    :param receive: of ASGI.
    """
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_for(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for an event, at most so many seconds; None: for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
