# Code generated from _async/terminal.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Terminals of a named sandbox, over a WebSocket."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import _errors, _websocket
from .place import Place

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Self

READ = 64 << 10  # bytes


class Terminal:
    """A terminal. Iterate over it for what it shows, as bytes; it ends with its process.

    It outlives its connection: process_id and cursor bring back to it.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._stream: Any = response.extensions["network_stream"]
        self._frames = _websocket.Frames()
        self._ready: deque[tuple[int, bytes]] = deque()
        self._closed = False
        self.process_id: str | None = None
        self.cursor = 0
        """All up to here has come."""
        self.exit_code: int | None = None
        self.reason: str | None = None
        """Which bound of the sandbox ended it, if one did."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        while not self._closed:
            while self._ready:
                kind, body = self._ready.popleft()
                if kind == _websocket.BINARY:
                    return body
                if kind == _websocket.TEXT:
                    self._told(json.loads(body))
                elif kind == _websocket.PING:
                    self._send(_websocket.PONG, body)
                elif kind == _websocket.CLOSE:
                    self.close()
                    raise StopIteration
            self._fill()
        raise StopIteration

    def _told(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "started":
            self.process_id = message.get("process_id")
        elif kind == "cursor":
            self.cursor = message.get("cursor", self.cursor)
        elif kind == "exit":
            self.exit_code, self.reason = message.get("exit_code"), message.get("reason")

    def _fill(self) -> None:
        try:
            data = self._stream.read(READ, None)
        except Exception as error:
            self.close()
            raise _errors.StreamBroken(f"the terminal's connection broke: {error}", self.cursor) from error
        if not data:
            self.close()
            if self.exit_code is None:
                raise _errors.StreamBroken("the terminal's connection was closed", self.cursor)
            return
        self._ready.extend(self._frames.feed(data))

    def _send(self, kind: int, body: bytes) -> None:
        if self._closed:
            raise _errors.ConnectionFailed("the terminal is closed")
        self._stream.write(_websocket.frame(kind, body))

    def write(self, data: str | bytes) -> None:
        """Types something."""
        self._send(_websocket.BINARY, data.encode() if isinstance(data, str) else data)

    def resize(self, rows: int, columns: int) -> None:
        """Changes the terminal's size."""
        self._send(_websocket.TEXT, json.dumps({"type": "resize", "rows": rows, "columns": columns}).encode())

    def close(self) -> None:
        """Ends the connection; the terminal's process goes on."""
        if not self._closed:
            self._closed = True
            self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_terminal(place: Place, query: Mapping[str, Any]) -> Terminal:
    response = place.send(
        "GET", "/v1/sandboxes/{}/terminal", query=query, headers=_websocket.handshake(), stream=True, safe=False
    )
    return Terminal(response)
