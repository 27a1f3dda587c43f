"""Streams: cut, delayed, repeated and left; downloads that go on where they were."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import threading
import tracemalloc
import unittest
from pathlib import Path
from typing import Any

from both import both
from server import Request, Server

import atoll

RESULT = {
    "success": True,
    "stdout": "",
    "stderr": "",
    "exit_code": 0,
    "error": None,
    "stdout_truncated": False,
    "stderr_truncated": False,
}


def event(seq: int, last: int) -> dict[str, Any]:
    if seq == last:
        return {"type": "result", "status": "success", "trace_id": "trc_1", "seq": seq, "result": RESULT}
    return {"type": "output", "stream": "stdout", "data": f"{seq}\n", "seq": seq}


def execution(last: int, each: int, again: int = 0, keepalive: bool = False) -> Any:
    """A server of an execution with so many events, each connection of which is cut after
    some; again is how many of the last ones it sends once more."""

    def handle(r: Request, n: int) -> None:
        after = int(r.path.partition("after=")[2] or 0)
        first = max(after - again, 0) + 1
        events: list[Any] = [event(seq, last) for seq in range(first, min(after + each, last) + 1)]
        if keepalive:
            events.insert(0, {"type": "keepalive", "seq": 0})
        r.events(*events, end=after + each >= last, X_Trace_Id="trc_1")

    return handle


class Streams(unittest.TestCase):
    @both
    def test_goes_on_where_it_was_cut(self, client: Any) -> None:
        with Server(execution(10, 3, again=2, keepalive=True)) as server, client(server) as c:
            with c.executions.stream("x") as stream:
                self.assertEqual([e.seq for e in stream], list(range(1, 11)))
            self.assertEqual(server.paths()[1:], [f"GET /v1/executions/trc_1/output?after={n}" for n in (3, 6, 9)])
            self.assertEqual((stream.status, stream.result.exit_code), ("success", 0))

    @both
    def test_may_not_go_on(self, client: Any) -> None:
        with Server(execution(10, 3)) as server, client(server) as c:
            with self.assertRaises(atoll.StreamBroken) as caught:
                for _ in c.executions.follow("trc_1", reconnect=False):
                    pass
            self.assertEqual((caught.exception.last, len(server.requests)), (3, 1))

    @both
    def test_gives_up(self, client: Any) -> None:
        with Server(lambda r, n: r.events(end=False, X_Trace_Id="trc_1")) as server, client(server, max_retries=2) as c:
            with self.assertRaises(atoll.StreamBroken):
                list(c.executions.follow("trc_1"))
            self.assertEqual(len(server.requests), 3)

    @both
    def test_ends_without_a_result(self, client: Any) -> None:
        """A stream that ends in good order, but too early, was cut as well."""
        with (
            Server(
                lambda r, n: r.events(event(1, 9)) if n == 1 else r.events(*(event(s, 3) for s in (2, 3)))
            ) as server,
            client(server) as c,
        ):
            self.assertEqual([e.seq for e in c.executions.follow("trc_1")], [1, 2, 3])
            self.assertEqual(len(server.requests), 2)

    @both
    def test_nothing_left(self, client: Any) -> None:
        with Server(lambda r, n: r.begin(204, Content_Length="0")) as server, client(server) as c:
            self.assertEqual(list(c.executions.follow("trc_1", after=9)), [])
            self.assertEqual(server.paths(), ["GET /v1/executions/trc_1/output?after=9"])

    @both
    def test_pieces_of_any_size(self, client: Any) -> None:
        def handle(r: Request, n: int) -> None:
            raw = b"".join(json.dumps(event(seq, 4), ensure_ascii=False).encode() + b"\n" for seq in range(1, 5))
            r.events(*(raw[i : i + 7] for i in range(0, len(raw), 7)), X_Trace_Id="trc_1")

        with Server(handle) as server, client(server) as c:
            self.assertEqual([e.seq for e in c.executions.follow("trc_1")], [1, 2, 3, 4])
            del server

    @both
    def test_leaving_cancels(self, client: Any) -> None:
        for detach in (False, True):
            over = threading.Event()

            def handle(r: Request, n: int, over: threading.Event = over) -> None:
                if r.path.endswith("/cancel"):
                    r.answer(200, {"trace_id": "trc_1", "status": "cancelled"})
                    return
                r.begin(200, Transfer_Encoding="chunked", X_Trace_Id="trc_1")
                r.piece(json.dumps(event(1, 9)).encode() + b"\n")
                over.wait(20)

            with Server(handle) as server, client(server) as c:
                with c.executions.stream("x") as stream:
                    for _ in stream:
                        if detach:
                            stream.detach()
                        break
                over.set()
                cancelled = ["POST /v1/executions/trc_1/cancel"]
                self.assertEqual(server.paths()[1:], [] if detach else cancelled)

    def test_cancelled_task_cancels(self) -> None:
        over = threading.Event()

        def handle(r: Request, n: int) -> None:
            if r.path.endswith("/cancel"):
                r.answer(200, {"trace_id": "trc_1", "status": "cancelled"})
                return
            r.begin(200, Transfer_Encoding="chunked", X_Trace_Id="trc_1")
            r.piece(json.dumps(event(1, 9)).encode() + b"\n")
            over.wait(20)

        async def run(url: str) -> None:
            seen = asyncio.Event()

            async def read() -> None:
                async with atoll.AsyncAtoll("key", base_url=url) as c, c.executions.stream("x") as stream:
                    async for _ in stream:
                        seen.set()

            task = asyncio.create_task(read())
            await asyncio.wait_for(seen.wait(), 20)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        with Server(handle) as server:
            asyncio.run(run(server.url))
            over.set()
            self.assertEqual(server.paths()[-1], "POST /v1/executions/trc_1/cancel")

    @both
    def test_server_sent_events(self, client: Any) -> None:
        """The events of a session go on after the id of the last one."""

        def handle(r: Request, n: int) -> None:
            if r.path == "/v1/sessions/s":
                r.answer(200, {"status": "archived"})
                return
            one = b'id: e%d\r\nevent: message\r\ndata: {"type": "message",\r\ndata: "id": "e%d", "content": "\xc3\xa9"}\r\n\r\n'
            piece = b'event: delta\ndata: {"type": "delta", "of": "message", "text": "p"}\n\n: a comment\n\n'
            r.events(one % (n, n), piece, end=n == 3, Content_Type="text/event-stream")

        with Server(handle) as server, client(server) as c:
            told = [(e.type, e.content, e.text) for e in c.sessions.follow("s", deltas=True)]
            self.assertEqual(told, [("message", "é", None), ("delta", None, "p")] * 3)
            after = [f"GET /v1/sessions/s/events/stream?deltas=true&after=e{n}" for n in (1, 2)]
            self.assertEqual(server.paths()[1:3], after)

    @both
    def test_run_in_a_sandbox(self, client: Any) -> None:
        def handle(r: Request, n: int) -> None:
            if r.path.startswith("/v1/sandboxes/box/processes/p-1/output"):
                after = "after=" in r.path
                out = {
                    "type": "output",
                    "stream": "stdout",
                    "data": "Yg==" if after else "YQ==",
                    "cursor": 2 if after else 1,
                }
                r.events(out, *([{"type": "exit", "exit_code": 3, "cursor": 2}] if after else []), end=after)
            elif r.command == "DELETE":
                r.begin(204, Content_Length="0")
            else:
                r.answer(201, {"process_id": "p-1"})

        with Server(handle) as server, client(server) as c:
            result = c.sandbox("box", session="s").run("cmd", timeout=1.5)
            self.assertEqual((result.stdout, result.exit_code), ("ab", 3))
            self.assertEqual(server.requests[0].json(), {"command": "cmd", "timeout_ms": 1500, "wait_for_reader": True})
            self.assertEqual(server.paths()[-1], "DELETE /v1/sandboxes/box/processes/p-1?session=s")

    def test_cancelled_before_the_command_is_known(self) -> None:
        """Who is cancelled while the command is started learns of it, and ends it."""
        asked, over = threading.Event(), threading.Event()

        def handle(r: Request, n: int) -> None:
            if r.command == "POST":
                asked.set()
                over.wait(20)
                r.answer(201, {"process_id": "p-1"})
            else:
                r.begin(204, Content_Length="0")

        async def run(url: str) -> None:
            async with atoll.AsyncAtoll("key", base_url=url) as c:
                task = asyncio.create_task(c.sandbox("box").run("sleep 50"))
                await asyncio.to_thread(asked.wait, 20)
                task.cancel()
                await asyncio.sleep(0)
                over.set()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        with Server(handle) as server:
            asyncio.run(run(server.url))
            self.assertEqual(server.paths()[-1], "DELETE /v1/sandboxes/box/processes/p-1")

    @both
    def test_download_goes_on(self, client: Any) -> None:
        """96 MiB in pieces, cut twice; a file that has changed meanwhile is an error."""
        size, piece = 96 << 20, bytes(1 << 20)

        def handle(r: Request, n: int) -> None:
            start = int(r.headers.get("range", "bytes=0-")[6:-1])
            left = size - start
            headers = {"Content-Length": str(left), "ETag": '"one"'}
            r.begin(206 if start else 200, **headers)
            left = left if n >= 3 else 32 << 20
            while left:
                r.wfile.write(piece[:left])
                left -= min(left, len(piece))
            if n < 3:
                r.cut()

        with Server(handle) as server, client(server) as c, tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "file")
            tracemalloc.start()
            try:
                self.assertEqual(c.sandbox("s").files.download("f", target), size)
                self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)
            finally:
                tracemalloc.stop()
            self.assertEqual(target.stat().st_size, size)
            self.assertEqual(hashlib.sha256(target.read_bytes()).digest(), hashlib.sha256(bytes(size)).digest())
            self.assertEqual([r.headers.get("if-range") for r in server.requests], [None, '"one"', '"one"'])

        def changed(r: Request, n: int) -> None:
            r.begin(200, Content_Length="100", ETag=f'"{n}"')
            r.wfile.write(b"x" * 10)
            r.cut()

        with Server(changed) as server, client(server) as c, self.assertRaises(atoll.StreamBroken):
            c.sandbox("s").files.read("f")

    @both
    def test_slow_reader_holds_the_server_back(self, client: Any) -> None:
        """What is not read stays with the server: the library keeps no more than it was given."""
        sent = 0

        def handle(r: Request, n: int) -> None:
            nonlocal sent
            r.connection.settimeout(0.5)
            r.begin(200, Transfer_Encoding="chunked", X_Trace_Id="trc_1")
            line = json.dumps({**event(1, 9), "data": "x" * 60000}).encode() + b"\n"
            try:
                for _ in range(4000):
                    r.piece(line)
                    sent += len(line)
            except OSError:
                pass

        with Server(handle) as server, client(server, reconnect=False) as c:
            with c.executions.follow("trc_1") as stream:
                next(iter(stream))
                server.shutdown()
                threading.Event().wait(1.0)
            self.assertLess(sent, 64 << 20)


if __name__ == "__main__":
    unittest.main()
