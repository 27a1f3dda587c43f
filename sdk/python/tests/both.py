"""One test for both kinds of clients: AsyncAtoll is driven as if it were Atoll."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import atoll


class Driven:
    """An asynchronous object whose methods wait for their results."""

    def __init__(self, loop: asyncio.AbstractEventLoop, inner: Any) -> None:
        self.__dict__.update(loop=loop, inner=inner)

    def __getattr__(self, name: str) -> Any:
        return self._wrap(getattr(self.inner, name))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        result = self.inner(*arguments, **named)
        return self._wrap(self._wait(result) if asyncio.iscoroutine(result) else result)

    def _wait(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    def _wrap(self, value: Any) -> Any:
        mine = type(value).__module__.startswith("atoll._async") or callable(value)
        return Driven(self.loop, value) if mine and not isinstance(value, type) else value

    def __iter__(self) -> Iterator[Any]:
        items = self.inner.__aiter__()
        while True:
            try:
                yield self._wait(_next(items))
            except StopAsyncIteration:
                return

    def __enter__(self) -> Any:
        return self._wrap(self._wait(self.inner.__aenter__()))

    def __exit__(self, *arguments: Any) -> Any:
        return self._wait(self.inner.__aexit__(*arguments))


async def _next(items: Any) -> Any:
    return await anext(items)


def both(test: Callable[[Any, Callable[..., Any]], None]) -> Callable[[Any], None]:
    """Runs a test with Atoll and with AsyncAtoll; it is given what makes a client."""

    def run(self: unittest.TestCase) -> None:
        with self.subTest("sync"):
            test(self, lambda server, **options: atoll.Atoll("key", base_url=server.url, **options))
        with self.subTest("async"):
            loop = asyncio.new_event_loop()
            try:
                test(
                    self,
                    lambda server, **options: Driven(loop, atoll.AsyncAtoll("key", base_url=server.url, **options)),
                )
            finally:
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.close()

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run
