"""Reading events from the bytes of a stream, without doing any input itself."""

from __future__ import annotations

import json
from typing import Any

from ._errors import StreamBroken

MAX_EVENT = 64 << 20  # bytes


class Lines:
    """Splits bytes into lines; the rest after the last line feed waits for more bytes."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._size = 0

    def split(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._size += len(chunk)
            if self._size > MAX_EVENT:
                raise StreamBroken(f"an event has more than {MAX_EVENT} bytes")
            self._rest.append(chunk)
            return []
        self._rest.append(chunk)
        lines = b"".join(self._rest).split(b"\n")
        last = lines.pop()
        self._rest, self._size = [last] if last else [], len(last)
        return lines


class NDJSONReader:
    """Events that are one JSON object a line."""

    def __init__(self) -> None:
        self._lines = Lines()

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        # One call for all lines of a chunk takes half of the time of one for each.
        lines = [line for line in self._lines.split(chunk) if line.strip()]
        values: list[dict[str, Any]] = json.loads(b"[" + b",".join(lines) + b"]")
        return values


class SSEReader:
    """Server-sent events whose data is a JSON object."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for raw in self._lines.split(chunk):
            line = raw.rstrip(b"\r")
            if not line:
                if self._data:
                    data = b"\n".join(self._data)
                    if data != b"[DONE]":
                        found.append(json.loads(data))
                self._data = []
                continue
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
        return found


Reader = NDJSONReader | SSEReader
