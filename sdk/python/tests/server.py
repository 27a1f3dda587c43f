"""A real HTTP server that answers as a test says: it cuts, delays and repeats."""

from __future__ import annotations

import copy
import json
import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Request(BaseHTTPRequestHandler):
    """One request, and ways to answer it."""

    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        self.received = 0
        if self.headers.get("transfer-encoding") == "chunked":
            self.body = self._chunked()
        elif size > 1 << 20:
            self.body = b""
            while self.received < size:
                self.received += len(self.rfile.read(min(1 << 20, size - self.received)))
        else:
            self.body = self.rfile.read(size)
        self.received = self.received or len(self.body)
        server = self.server
        assert isinstance(server, Server)
        with server.lock:
            server.requests.append(copy.copy(self))  # one handler is for all of a connection
            number = len(server.requests)
        server.handle(self, number)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _chunked(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def json(self) -> Any:
        return json.loads(self.body)

    def answer(self, status: int, value: Any, **headers: str) -> None:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.begin(status, **{"Content-Length": str(len(raw)), "Content-Type": "application/json", **headers})
        self.wfile.write(raw)

    def begin(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def events(self, *values: Any, end: bool = True, **headers: str) -> None:
        """Streams lines of JSON; without an end the connection is reset after them."""
        self.begin(200, **{"Transfer-Encoding": "chunked", "Content-Type": "application/x-ndjson", **headers})
        for value in values:
            self.piece(value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n")
        if end:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.cut()

    def piece(self, raw: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(raw), raw))
        self.wfile.flush()

    def cut(self) -> None:
        """Resets the connection."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """A server for one test, at url."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handle: Callable[[Request, int], object]) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.handle = handle
        self.lock = threading.Lock()
        self.requests: list[Request] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that has gone

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *arguments: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def paths(self) -> list[str]:
        return [f"{request.command} {request.path}" for request in self.requests]
