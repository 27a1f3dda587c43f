"""Requests: what is sent again and what is not, errors, time-outs, lists, uploads."""

from __future__ import annotations

import asyncio
import io
import tempfile
import threading
import time
import tracemalloc
import unittest
from typing import Any

from both import both
from server import Request, Server

import atoll

DONE = {
    "success": True,
    "stdout": "1\n",
    "stderr": "",
    "exit_code": 0,
    "error": None,
    "stdout_truncated": False,
    "stderr_truncated": False,
}
BUSY = {"error": "service_unavailable", "message": "no room"}
AGENT = {"name": "A", "model": {"name": "m"}}


class Requests(unittest.TestCase):
    @both
    def test_execute(self, client: Any) -> None:
        with Server(lambda r, n: r.answer(200, DONE, X_Trace_Id="trc_1")) as server, client(server) as c:
            result = c.execute("print(1)", timeout=5, metadata={"a": "b"})
            self.assertEqual((result.stdout, result.trace_id, result.files), ("1\n", "trc_1", None))
            sent = server.requests[0]
            self.assertEqual(sent.json(), {"code": "print(1)", "timeout": 5, "metadata": {"a": "b"}})
            self.assertEqual(sent.headers["authorization"], "Bearer key")
            self.assertEqual(len(sent.headers["idempotency-key"]), 36)

    @both
    def test_lost_answer_is_asked_for_with_the_same_key(self, client: Any) -> None:
        with Server(lambda r, n: r.cut() if n == 1 else r.answer(200, DONE)) as server, client(server) as c:
            self.assertTrue(c.execute("print(1)").success)
            keys = {request.headers["idempotency-key"] for request in server.requests}
            self.assertEqual((len(server.requests), len(keys)), (2, 1))

    @both
    def test_what_makes_something_is_sent_again_with_the_same_key(self, client: Any) -> None:
        served = {"error": "conflict", "message": "it is being worked on"}

        def handle(r: Request, n: int) -> None:
            if n == 1:
                r.cut()
            elif n == 2:
                r.answer(409, served, Retry_After="0")
            else:
                r.answer(201, AGENT)

        with Server(handle) as server, client(server) as c:
            self.assertEqual(c.agents.create(**AGENT).name, "A")
            keys = {request.headers["idempotency-key"] for request in server.requests}
            self.assertEqual((len(server.requests), len(keys)), (3, 1))
        with Server(lambda r, n: r.answer(409, served)) as server, client(server) as c:
            with self.assertRaises(atoll.Conflict):
                c.agents.create(**AGENT)
            self.assertEqual(len(server.requests), 1)

    @both
    def test_what_is_not_safe_is_sent_once(self, client: Any) -> None:
        with Server(lambda r, n: r.cut()) as server, client(server) as c:
            with self.assertRaises(atoll.ConnectionFailed):
                c.agents.archive("a")
            with self.assertRaises(atoll.ConnectionFailed):
                c.responses.create(input="x")
            self.assertEqual(len(server.requests), 2)
            self.assertFalse(any("idempotency-key" in request.headers for request in server.requests))

    @both
    def test_refusals_that_began_nothing(self, client: Any) -> None:
        with (
            Server(lambda r, n: r.answer(503, BUSY, Retry_After="0") if n < 3 else r.answer(201, AGENT)) as server,
            client(server) as c,
        ):
            self.assertEqual(c.agents.create(**AGENT).name, "A")
            self.assertEqual(len(server.requests), 3)
        with (
            Server(
                lambda r, n: r.answer(429, {"error": "rate_limited", "message": "wait", "dimension": "monthly_credits"})
            ) as server,
            client(server) as c,
        ):
            with self.assertRaises(atoll.RateLimited) as caught:
                c.agents.get("a")
            self.assertEqual((caught.exception.dimension, len(server.requests)), ("monthly_credits", 1))

    @both
    def test_retries_end(self, client: Any) -> None:
        with (
            Server(lambda r, n: r.answer(503, BUSY, Retry_After="0", X_Trace_Id="trc_9")) as server,
            client(server, max_retries=1) as c,
        ):
            with self.assertRaises(atoll.Unavailable) as caught:
                c.agents.get("a")
            self.assertEqual((len(server.requests), caught.exception.request_id), (2, "trc_9"))
            self.assertIn("try again later", str(caught.exception))

    @both
    def test_delete_that_was_done(self, client: Any) -> None:
        gone = {"error": "not_found", "message": "thread not found"}
        with Server(lambda r, n: r.cut() if n == 1 else r.answer(404, gone)) as server, client(server) as c:
            self.assertIsNone(c.threads.delete("t"))
            with self.assertRaises(atoll.NotFound):
                c.threads.delete("t")

    @both
    def test_errors_by_code(self, client: Any) -> None:
        late = {
            **DONE,
            "success": False,
            "stdout": "so far",
            "exit_code": -1,
            "message": "too long",
            "code": "gateway_timeout",
        }
        odd = {"error": {"message": "bad", "type": "invalid_request_error", "code": None}}
        for status, body, kind in (
            (400, {"error": "validation_error", "message": "no"}, atoll.ValidationError),
            (401, {"error": "unauthorized", "message": "no"}, atoll.AuthenticationError),
            (409, {"error": "conflict", "message": "no"}, atoll.Conflict),
            (400, odd, atoll.ValidationError),
            (418, b"<html>", atoll.APIError),
            (504, late, atoll.ExecutionTimeout),
        ):

            def handle(r: Request, n: int, status: int = status, body: Any = body) -> None:
                r.answer(status, body)

            with Server(handle) as server, client(server) as c, self.assertRaises(kind) as caught:
                c.execute("x")
            self.assertEqual(caught.exception.status, status)
            if isinstance(caught.exception, atoll.ExecutionTimeout):
                self.assertEqual(caught.exception.result.stdout, "so far")

    @both
    def test_time_out_of_the_caller_cancels(self, client: Any) -> None:
        for seconds in (1, 2, 4, 8):
            waits = threading.Event()

            def handle(r: Request, n: int, seconds: float = seconds, waits: threading.Event = waits) -> None:
                if "prefer" in r.headers:
                    time.sleep(1.2 * seconds)  # longer than the caller's time, which is not for this
                    r.answer(202, {"trace_id": "trc_7", "status": "running"}, X_Trace_Id="trc_7")
                elif r.path.endswith("/cancel"):
                    r.answer(200, {"trace_id": "trc_7", "status": "cancelled"})
                    waits.set()
                else:
                    waits.wait(20)

            with Server(handle) as server, client(server, request_timeout=seconds) as c:
                with self.assertRaises(atoll.RequestTimeout):
                    c.execute("while True: pass")
                if not server.requests or "prefer" in server.requests[0].headers:
                    continue  # on a busy machine, the time was over before it arrived
                self.assertEqual(server.paths()[1:], ["POST /v1/sandbox/execute", "POST /v1/executions/trc_7/cancel"])
                self.assertEqual(
                    server.requests[0].headers["idempotency-key"], server.requests[1].headers["idempotency-key"]
                )
                return
        self.fail("it does not arrive")

    def test_cancelled_task_cancels(self) -> None:
        begun, over = threading.Event(), threading.Event()

        def handle(r: Request, n: int) -> None:
            if n == 1:
                begun.set()
                over.wait(20)
            elif r.path.endswith("/cancel"):
                r.answer(200, {"trace_id": "trc_7", "status": "cancelled"})
                over.set()
            else:
                r.answer(202, {"trace_id": "trc_7", "status": "running"}, X_Trace_Id="trc_7")

        async def run(url: str) -> None:
            async with atoll.AsyncAtoll("key", base_url=url) as c:
                task = asyncio.create_task(c.execute("while True: pass"))
                await asyncio.to_thread(begun.wait, 20)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        with Server(handle) as server:
            asyncio.run(run(server.url))
            self.assertEqual(server.paths()[-1], "POST /v1/executions/trc_7/cancel")

    @both
    def test_lists(self, client: Any) -> None:
        def handle(r: Request, n: int) -> None:
            last = "page=2" in r.path
            r.answer(200, {"data": [{"thread_id": str(n)}], "next_page": None if last else "2"})

        with Server(handle) as server, client(server) as c:
            self.assertEqual([thread.thread_id for thread in c.threads.list(prefix="a b", limit=1)], ["1", "2"])
            self.assertEqual(server.paths()[1], "GET /v1/threads?prefix=a+b&limit=1&page=2")
            before = len(server.requests)
            self.assertEqual([thread.thread_id for thread in c.threads.list().all(1)], [str(before + 1)])
            self.assertEqual(c.threads.list().all(0), [])
            self.assertEqual(len(server.requests), before + 1)

    @both
    def test_upload_in_constant_memory(self, client: Any) -> None:
        """A file of 256 MiB is sent in pieces."""
        size = 256 << 20
        with (
            tempfile.TemporaryFile() as file,
            Server(lambda r, n: r.answer(200, {"size": r.received})) as server,
            client(server) as c,
        ):
            file.truncate(size)
            tracemalloc.start()
            try:
                self.assertEqual(c.sandbox("s").files.write("f", file).size, size)
                self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)
            finally:
                tracemalloc.stop()
            self.assertEqual(server.requests[0].headers["content-length"], str(size))

    @both
    def test_upload_is_read_again(self, client: Any) -> None:
        def handle(r: Request, n: int) -> None:
            r.cut() if n == 1 else r.answer(200, {"size": len(r.body)})

        source = io.BytesIO(b"..hello")
        source.read(2)
        with Server(handle) as server, client(server) as c:
            self.assertEqual(c.sandbox("s").files.write("f", source).size, 5)
            self.assertEqual([request.body for request in server.requests], [b"hello", b"hello"])
        with Server(handle) as server, client(server) as c, self.assertRaises(atoll.ConnectionFailed):
            c.sandbox("s").files.write("f", iter([b"once"]))
        with Server(handle) as server, client(server) as c:
            with self.assertRaises(atoll.ConnectionFailed):
                c.sandbox("s").files.write("f", b"more", append=True)
            self.assertEqual(len(server.requests), 1)

    def test_settings(self) -> None:
        settings: tuple[dict[str, Any], ...] = (
            {"base_url": "example.com"},
            {"request_timeout": 0},
            {"max_retries": -1},
        )
        for wrong in settings:
            with self.assertRaises(atoll.ConfigurationError):
                atoll.Atoll("key", **wrong)
        with (
            Server(lambda r, n: r.answer(200, {"data": []})) as server,
            atoll.Atoll("", base_url=server.url, headers={"X-A": "b"}) as c,
        ):
            c.models.list()
            self.assertEqual(
                (server.requests[0].headers.get("authorization"), server.requests[0].headers["x-a"]), (None, "b")
            )
            with self.assertRaises(atoll.ConfigurationError):
                c.agents.get("")


if __name__ == "__main__":
    unittest.main()
