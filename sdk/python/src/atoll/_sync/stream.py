# Code generated from _async/stream.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Streams of events, which resume where they were cut, and downloads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import _errors
from .._clock import shield, sleep, pause
from .._lines import NDJSONReader, Reader
from .._record import Record

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Self

    from .._kinds import Connect, ConnectRange, Leave, Over, Position

E = TypeVar("E", bound=Record)


CANCEL_TIME = 5.0  # seconds in which the server is told that a caller has left


class Events(Generic[E]):
    """The events of one thing, in order, each once.

    Iterate over it, inside a `with` block if you may leave before its end. When the
    connection breaks, it goes on after the last event that came, unless the client or the
    call says reconnect=False; what cannot go on raises StreamBroken.
    """

    def __init__(
        self,
        kind: type[E],
        connect: Connect,
        *,
        key: str = "",
        ends: Iterable[str] = (),
        reader: Callable[[], Reader] = NDJSONReader,
        resumes: bool = True,
        endless: bool = False,
        max_retries: int = 2,
        opened: Callable[[httpx.Response], None] | None = None,
        leave: Leave | None = None,
        after: Position | None = None,
        over: Over | None = None,
        step: int = 1,
    ) -> None:
        self.last: Position | None = after
        """The last event that came: its seq, cursor, sequence number or id."""
        self.ended = False
        """Whether the last event has come."""
        self._kind = kind
        self._connect = connect
        self._key = key  # the field that says where in the stream an event is
        self._special = frozenset(["keepalive", *ends])  # with the types of last events
        self._new_reader = reader
        self._resumes = resumes
        self._endless = endless
        self._max_retries = max(max_retries, 1)
        self._opened = opened
        self._leave = leave
        self._over = over
        self._step = step  # 0 where events may share a position
        self._reader = reader()
        self._ready: deque[dict[str, Any]] = deque()
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] | None = None
        self._failures = 0
        self._closed = False

    def __iter__(self) -> Iterator[E]:
        kind, ready = self._kind, self._ready
        while True:
            while ready:
                yield kind(ready.popleft())
            if self.ended or self._closed:
                self.close()
                return
            self._fill()

    def _fill(self) -> None:
        import httpx

        try:
            if self._chunks is None:
                self._open()
                if self._chunks is None:
                    return
            try:
                chunk = next(self._chunks)
            except StopIteration:
                if self._endless or (self._over is not None and self._over()):
                    self.ended = True
                    return
                self._broken(None)
                return
            except (httpx.TransportError, httpx.StreamError, TimeoutError) as error:
                self._broken(error)
                return
            self._failures = 0
            try:
                self._take(self._reader.feed(chunk))
            except ValueError as error:
                raise _errors.StreamBroken(f"an event is no JSON: {error}", self.last) from error
        except BaseException:
            self.close()
            raise

    def _take(self, values: list[dict[str, Any]]) -> None:
        """Keeps what is new of events that came together. It is all that is done for each
        event before its reader has it, so it is short."""
        key, step, special, keep = self._key, self._step, self._special, self._ready.append
        last = self.last
        after = last + step if isinstance(last, int) else 0
        for value in values:
            if value.get("type") in special:
                if value["type"] == "keepalive":
                    continue
                if self._is_last(value):
                    self.ended = True
                    self._note(value)
            position = value.get(key)
            if position is not None:
                if position.__class__ is int:
                    if position < after:
                        continue  # it was sent again
                    after = position + step
                last = position
            keep(value)
        self.last = last

    def _is_last(self, value: dict[str, Any]) -> bool:
        """Whether an event of one of the last types is the last."""
        return True

    def _note(self, value: dict[str, Any]) -> None:
        """Receives the last event."""

    def _open(self) -> None:
        try:
            response = self._connect(self.last)
        except _errors.ConnectionFailed as error:
            if self._failures == 0:
                raise
            self._broken(error)
            return
        if self._opened:
            self._opened(response)
        if response.status_code == 204 or self.ended:
            response.close()
            self.ended = True
            return
        self._reader = self._new_reader()
        self._response, self._chunks = response, response.iter_raw()

    def _broken(self, error: BaseException | None) -> None:
        """Makes ready to connect anew, or raises."""
        self._disconnect()
        self._failures += 1
        if not self._resumes or self._failures > self._max_retries:
            why = f"{type(error).__name__}: {error}" if error else "the connection was closed"
            raise _errors.StreamBroken(f"the stream ended before its last event: {why}", self.last) from error
        sleep(pause(self._failures - 1, 0 if self._failures == 1 else None))

    def _disconnect(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            with shield(CANCEL_TIME):
                response.close()

    def close(self) -> None:
        """Ends the stream, and what it is the stream of if that was begun by it."""
        if self._closed:
            return
        self._closed = True
        self._disconnect()
        if self._leave and not self.ended:
            with shield(CANCEL_TIME):
                try:
                    self._leave()
                except _errors.AtollError:
                    pass  # it has ended, or the server is away

    def detach(self) -> None:
        """Lets what the stream is of go on when the stream is left."""
        self._leave = None

    def __enter__(self) -> Self:
        try:
            if self._chunks is None and not self.ended:
                self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Download:
    """Bytes that are read as they come. A download that is cut goes on where it was if the
    server still has the same file."""

    def __init__(self, connect: ConnectRange, max_retries: int) -> None:
        self._connect = connect
        self._max_retries = max_retries
        self._response: httpx.Response | None = None
        self.received = 0

    def _open(self) -> httpx.Response:
        if self._response is None:
            self._response = self._connect({})
        return self._response

    def size(self) -> int | None:
        """The number of bytes, if the server says so."""
        text = (self._open()).headers.get("content-length")
        return int(text) if text else None

    def __iter__(self) -> Iterator[bytes]:
        import httpx

        response = self._open()
        failures = 0
        try:
            while True:
                try:
                    for chunk in response.iter_raw():
                        failures = 0
                        self.received += len(chunk)
                        yield chunk
                    return
                except (httpx.TransportError, httpx.StreamError) as error:
                    tag = response.headers.get("etag")
                    failures += 1
                    if not tag or tag.startswith("W/") or failures > self._max_retries:
                        raise _errors.StreamBroken(
                            f"the download was cut after {self.received} bytes: {error}", self.received
                        ) from error
                    response.close()
                    sleep(pause(failures - 1, None))
                    response = self._response = self._connect(
                        {"Range": f"bytes={self.received}-", "If-Range": tag}
                    )
                    if response.status_code != 206:
                        raise _errors.StreamBroken(
                            f"the download was cut after {self.received} bytes, and the file has changed", self.received
                        ) from error
        finally:
            self.close()

    def read(self) -> bytes:
        """All of it, in memory."""
        return b"".join([chunk for chunk in self])

    def text(self) -> str:
        """All of it as UTF-8, with U+FFFD for what is not."""
        return (self.read()).decode("utf-8", "replace")

    def save(self, path: str | os.PathLike[str]) -> int:
        """Writes it to a file, and returns the number of bytes."""
        with open(path, "wb") as file:
            for chunk in self:
                file.write(chunk)
        return self.received

    def close(self) -> None:
        """Ends the download."""
        response, self._response = self._response, None
        if response is not None:
            with shield(CANCEL_TIME):
                response.close()

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
