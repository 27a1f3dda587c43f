"""Bodies of uploads: bytes, text, files, or pieces as they come, in constant memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import IO, Any

PIECE = 1 << 20

Content = bytes | bytearray | memoryview | str | IO[bytes] | os.PathLike[str] | Iterable[bytes]
AsyncContent = Content | AsyncIterable[bytes]


class Body:
    """A body that may be sent again if it can be read again."""

    def __init__(self, content: Any) -> None:
        self._open: IO[bytes] | None = None
        self._start = 0
        self.length: int | None = None
        self.repeatable = True
        if isinstance(content, str):
            content = content.encode()
        if isinstance(content, (bytearray, memoryview)):
            content = bytes(content)
        if isinstance(content, os.PathLike):
            content = self._open = open(content, "rb")
        if isinstance(content, bytes):
            self.length = len(content)
        elif hasattr(content, "read"):
            try:
                self._start = content.tell()
                self.length = content.seek(0, os.SEEK_END) - self._start
                content.seek(self._start)
            except (AttributeError, OSError, ValueError):
                self.repeatable = False
        else:
            self.repeatable = isinstance(content, (list, tuple))
        self.source: Any = content

    def headers(self) -> dict[str, str]:
        return {} if self.length is None else {"Content-Length": str(self.length)}

    def rewind(self) -> None:
        if self.repeatable and hasattr(self.source, "read"):
            self.source.seek(self._start)

    def close(self) -> None:
        if self._open:
            self._open.close()

    def read(self) -> Iterator[bytes]:
        while piece := self.source.read(PIECE):
            yield piece

    async def async_pieces(self) -> AsyncIterator[bytes]:
        if hasattr(self.source, "__aiter__"):
            async for piece in self.source:
                yield piece
        elif hasattr(self.source, "read"):
            import anyio.to_thread

            while piece := await anyio.to_thread.run_sync(self.source.read, PIECE):
                yield piece
        else:
            for piece in self.source:
                yield piece


def content_of(body: Body) -> bytes | Iterator[bytes]:
    """Body that a synchronous client sends."""
    if isinstance(body.source, bytes):
        return body.source
    return body.read() if hasattr(body.source, "read") else iter(body.source)


def async_content(body: Body) -> bytes | AsyncIterator[bytes]:
    """Body that an asynchronous client sends."""
    return body.source if isinstance(body.source, bytes) else body.async_pieces()
