"""Types that the two kinds of clients have otherwise: the generated synchronous source has
the names without Async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import httpx

    T = TypeVar("T")
    Position = int | str
    AsyncConnect = Callable[[Position | None], Awaitable[httpx.Response]]
    Connect = Callable[[Position | None], httpx.Response]
    AsyncConnectRange = Callable[[dict[str, str]], Awaitable[httpx.Response]]
    ConnectRange = Callable[[dict[str, str]], httpx.Response]
    AsyncLeave = Callable[[], Awaitable[object]]
    Leave = Callable[[], object]
    AsyncBegin = Callable[[], Awaitable[T]]
    Begin = Callable[[], T]
    AsyncOver = Callable[[], Awaitable[bool]]
    Over = Callable[[], bool]
