"""The frames of a client's WebSocket (RFC 6455), without doing any input itself."""

from __future__ import annotations

import base64
import os
import struct
from itertools import cycle

from ._errors import StreamBroken

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAX_MESSAGE = 16 << 20  # bytes


def handshake() -> dict[str, str]:
    """The headers that ask for a WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    return {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}


def frame(kind: int, data: bytes) -> bytes:
    """One message of a client."""
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
    mask = os.urandom(4)
    return head + mask + bytes(a ^ b for a, b in zip(data, cycle(mask), strict=False))


class Frames:
    """Joins bytes to the messages of a server."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._kind = 0
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        self._bytes += data
        found = []
        while (one := self._next()) is not None:
            final, kind, body = one
            if kind in (CLOSE, PING, PONG):
                found.append((kind, body))
                continue
            self._kind = kind or self._kind
            self._parts.append(body)
            if sum(map(len, self._parts)) > MAX_MESSAGE:
                raise StreamBroken(f"a message has more than {MAX_MESSAGE} bytes")
            if final:
                found.append((self._kind, b"".join(self._parts)))
                self._parts = []
        return found

    def _next(self) -> tuple[bool, int, bytes] | None:
        have = self._bytes
        if len(have) < 2:
            return None
        size, start = have[1] & 0x7F, 2
        if have[1] & 0x80:
            raise StreamBroken("a frame of the server is masked")
        if size == 126:
            start, size = 4, struct.unpack_from("!H", have, 2)[0] if len(have) >= 4 else 0
        elif size == 127:
            start, size = 10, struct.unpack_from("!Q", have, 2)[0] if len(have) >= 10 else 0
        if size > MAX_MESSAGE:
            raise StreamBroken(f"a message has more than {MAX_MESSAGE} bytes")
        if len(have) < start + size:
            return None
        one = bool(have[0] & 0x80), have[0] & 0x0F, bytes(have[start : start + size])
        del have[: start + size]
        return one
