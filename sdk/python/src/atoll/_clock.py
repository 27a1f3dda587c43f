"""Waiting, in both kinds of clients. The generated synchronous source calls the functions
whose names have no async_ in front."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

FIRST_PAUSE = 0.25  # seconds before the first retry
MOST_PAUSE = 8.0
WHOLE_TIME = 5.0  # seconds that a cancelled caller waits for what it has begun


def pause(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait before a retry: the server's Retry-After, or an increasing delay with jitter."""
    if retry_after is not None:
        return retry_after + random.uniform(0, 0.25)
    return min(FIRST_PAUSE * 2.0**attempt, MOST_PAUSE) * random.uniform(0.5, 1.0)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_sleep(seconds: float) -> None:
    import anyio

    await anyio.sleep(seconds)


# Seconds that each request gets at least, whatever its client's request_timeout.
least: ContextVar[float] = ContextVar("least", default=0.0)


@contextmanager
def shield(seconds: float) -> Iterator[None]:
    """Gives each request of a cleanup at least seconds, after a call was cancelled or timed out."""
    before = least.set(min(seconds, WHOLE_TIME))
    try:
        yield
    finally:
        least.reset(before)


@asynccontextmanager
async def async_shield(seconds: float) -> AsyncIterator[None]:
    import anyio

    with anyio.move_on_after(seconds, shield=True), shield(seconds):
        yield


def whole(begin: Callable[[], T]) -> T:
    """Completes a call even if the caller is interrupted, because ending the work of a request
    needs its answer. The interrupt follows after at most 5 s."""
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(begin())
        except BaseException as error:
            errors.append(error)
        done.set()

    try:
        threading.Thread(target=run, daemon=True).start()  # which an interrupt may end after its beginning
        done.wait()
    except BaseException:
        done.wait(WHOLE_TIME)
        raise
    if errors:
        raise errors[0]
    return results[0]


async def async_whole(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Does something to its end, even if the caller is cancelled. Cancellation follows then,
    after 5 s at most."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:  # not asyncio
        import anyio

        with anyio.CancelScope(shield=True):
            return await begin()
    task = asyncio.ensure_future(begin())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task], timeout=WHOLE_TIME)
            task.cancel()
        raise


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Bounds a call. The synchronous client has the time limits of its connection alone."""
    yield


@asynccontextmanager
async def async_deadline(seconds: float | None) -> AsyncIterator[None]:
    """Limits the time of a call; raises builtins.TimeoutError when it times out."""
    if seconds is None:
        yield
        return
    import anyio

    with anyio.fail_after(seconds):
        yield
