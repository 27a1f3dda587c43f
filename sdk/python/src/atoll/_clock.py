"""Waiting, in both kinds of clients. The generated synchronous source calls the functions
whose names have no async_ in front."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

FIRST_PAUSE = 0.25  # seconds before the first retry
MOST_PAUSE = 8.0


def pause(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait before a retry: what the server said, or longer each time, with jitter."""
    if retry_after is not None:
        return retry_after + random.uniform(0, 0.25)
    return min(FIRST_PAUSE * 2.0**attempt, MOST_PAUSE) * random.uniform(0.5, 1.0)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_sleep(seconds: float) -> None:
    import anyio

    await anyio.sleep(seconds)


@contextmanager
def shield(seconds: float) -> Iterator[None]:
    """Bounds what is done for a call that was cancelled."""
    yield


@asynccontextmanager
async def async_shield(seconds: float) -> AsyncIterator[None]:
    import anyio

    with anyio.move_on_after(seconds, shield=True):
        yield


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Bounds a call. The synchronous client has the time limits of its connection alone."""
    yield


@asynccontextmanager
async def async_deadline(seconds: float | None) -> AsyncIterator[None]:
    """Bounds a call: builtins.TimeoutError when the time is over."""
    if seconds is None:
        yield
        return
    import anyio

    with anyio.fail_after(seconds):
        yield
