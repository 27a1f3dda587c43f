"""Measures what this library costs: the time of print(1) beyond that of httpx alone, the rate of
a stream of 100,000 lines beyond reading its bytes, and the time of an import.

The server is one in a process of its own that answers at once, so that what is measured is
the client's. Calls of the two kinds alternate; medians are compared.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx

import atoll

CALLS = 1500
LINES = 100_000
BODY = json.dumps(
    {
        "success": True,
        "stdout": "1\n",
        "stderr": "",
        "exit_code": 0,
        "error": None,
        "stdout_truncated": False,
        "stderr_truncated": False,
        "start": "warm",
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Trace-Id: trc_aaaaaaaaaaaaaaaaaaaa\r\n"
END = (
    json.dumps(
        {"type": "result", "trace_id": "trc_a", "status": "success", "seq": LINES + 1, "result": json.loads(BODY)}
    ).encode()
    + b"\n"
)
STREAM = (
    b"".join(b'{"type":"output","stream":"stdout","data":"%d\\n","seq":%d}\n' % (n, n) for n in range(1, LINES + 1))
    + END
)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            await reader.readexactly(size)
            body = STREAM if b"ndjson" in head else BODY
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def serve(pipe: Any) -> None:
    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def milliseconds(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000


def compare(name: str, one: Callable[[], Any], other: Callable[[], Any]) -> None:
    times: tuple[list[float], list[float]] = ([], [])
    for n in range(CALLS + 100):
        a, b = milliseconds(one), milliseconds(other)
        if n >= 100:
            times[0].append(a)
            times[1].append(b)
    bare, ours = map(statistics.median, times)
    print(f"{name}: httpx {bare:.3f} ms, atoll {ours:.3f} ms, overhead {ours - bare:.3f} ms")


def main() -> None:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{here.recv()}"
    target, headers = url + "/v1/sandbox/execute", {"Authorization": "Bearer key", "Idempotency-Key": "k"}
    with httpx.Client() as bare, atoll.Atoll("key", base_url=url) as ours:
        compare(
            "print(1), Atoll",
            lambda: bare.post(target, json={"code": "print(1)"}, headers=headers).json()["stdout"],
            lambda: ours.execute("print(1)").stdout,
        )

        def read_bytes() -> None:
            with bare.stream(
                "POST", target, json={"code": "x"}, headers={**headers, "Accept": "application/x-ndjson"}
            ) as response:
                for _ in response.iter_raw():
                    pass

        def read_events() -> None:
            with ours.executions.stream("x") as events:
                for _ in events:
                    pass

        raw = min(milliseconds(read_bytes) for _ in range(5))
        read = min(milliseconds(read_events) for _ in range(5))
        print(
            f"{LINES} lines: bytes alone {raw:.0f} ms, events {read:.0f} ms, {LINES / read * 1000:.0f} lines a second"
        )
    loop = asyncio.new_event_loop()
    wait = loop.run_until_complete
    bare_async, ours_async = httpx.AsyncClient(), atoll.AsyncAtoll("key", base_url=url)

    async def one() -> Any:
        return (await bare_async.post(target, json={"code": "print(1)"}, headers=headers)).json()["stdout"]

    async def other() -> Any:
        return (await ours_async.execute("print(1)")).stdout

    compare("print(1), AsyncAtoll", lambda: wait(one()), lambda: wait(other()))
    wait(bare_async.aclose())
    wait(ours_async.aclose())
    loop.close()
    process.terminate()
    for name, code in (
        ("import atoll", "import atoll; atoll.Atoll"),
        ("and a client", "import atoll; atoll.Atoll('k')"),
        ("nothing", "pass"),
    ):
        times = [milliseconds(lambda c=code: subprocess.run([sys.executable, "-c", c], check=True)) for _ in range(9)]  # type: ignore[misc]
        print(f"python -c, {name}: {statistics.median(times):.0f} ms")


if __name__ == "__main__":
    main()
