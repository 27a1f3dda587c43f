"""The contract's published client, unchanged, through its whole surface."""

import asyncio
import os
import re

import httpx
import baponi
from baponi import AsyncBaponi, Baponi

URL, KEY = os.environ["BAPONI_BASE_URL"], os.environ["BAPONI_API_KEY"]
TRACE = re.compile(r"^trc_[a-zA-Z0-9_-]{1,20}$")


def refused(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as e:
        return e
    raise AssertionError(f"{call} was not refused with {kind}")


def sync():
    with Baponi(KEY, base_url=URL) as c:
        r = c.execute("print('hello')")
        assert (r.success, r.stdout, r.stderr, r.exit_code, r.error) == (True, "hello\n", "", 0, None), r
        r = c.execute("console.log(1+1); process.exit(3)", language="node")
        assert (r.success, r.stdout, r.exit_code, r.error) == (False, "2\n", 3, None), r
        r = c.execute("echo $A; pwd -P; cd /home/baponi && pwd", language="bash", env_vars={"A": "b"}, metadata={"who": "sync"}, timeout=10)
        assert r.stdout == "b\n/home/user\n/home/baponi\n", r
        r = c.execute("x = bytearray(10**10)\n" * 2 + "print(len(x))", timeout=30)
        assert r.error in ("memory_limit_exceeded", None) and not r.success, r
        late = refused(baponi.APITimeoutError, c.execute, "import time; time.sleep(9)", timeout=1)
        assert (late.status_code, late.error_type) == (504, "gateway_timeout"), late

        # threads
        assert c.execute("open('/home/baponi/kept', 'w').write('1')", thread_id="baponi-1").success
        assert c.execute("print(open('kept').read())", thread_id="baponi-1").stdout == "1\n"
        with c.execute_stream("import time; print('has it', flush=True); time.sleep(30)", thread_id="baponi-1") as s:
            for e in s:
                if isinstance(e, baponi.OutputEvent):
                    break
            refused(baponi.ThreadBusyError, c.execute, "1", thread_id="baponi-1")
            got = c.get_execution(s.trace_id)
            assert got.status == "running" and got.exit_code is None and got.completed_at is None and got.duration_ms >= 0, got
            assert s.cancel().status == "cancelled"
            end = s.until_done()
            assert not end.success and end.error == "Cancelled by user", end
        refused(baponi.ThreadBusyError, c.cancel_execution, s.trace_id)  # it has ended: 409

        # streams, and going on with one
        with c.execute_stream("import sys\nfor i in range(3): print('step', i)\nprint('e', file=sys.stderr)") as s:
            events = list(s)
            assert TRACE.match(s.trace_id), s.trace_id
            assert isinstance(events[0], baponi.StatusEvent) and isinstance(events[-1], baponi.ResultEvent)
            assert s.get_final_result().stdout == "step 0\nstep 1\nstep 2\n" and events[-1].output_truncated is False
        with c.reconnect_stream(s.trace_id) as again:
            assert [e.seq for e in again] == [e.seq for e in events]
        with c.reconnect_stream(s.trace_id, after_seq=3) as rest:
            left = list(rest)
            assert [e.seq for e in left] == [e.seq for e in events if e.seq > 3], left
            assert rest.get_final_result().success
        with c.execute_stream("while True: pass", timeout=1) as s:
            assert s.until_done().error == "timeout"
        got = c.get_execution(s.trace_id)
        assert (got.status, got.error, got.delivery_mode) == ("timeout", "timeout", "streaming"), got

        # in the background
        h = c.execute_webhook("print('later')", metadata={"who": "webhook"})
        assert TRACE.match(h.trace_id)
        got = h.wait(poll_interval=0.05, timeout=30)
        assert (got.status, got.stdout, got.exit_code, got.delivery_mode) == ("success", "later\n", 0, "webhook"), got
        h = c.execute_webhook("import time; time.sleep(60)")
        assert h.poll().status == "running" and h.cancel().status == "cancelled"
        assert c.get_execution(h.trace_id).status == "cancelled"
        refused(baponi.APIValidationError, c.execute_webhook, "1", webhook_url="https://127.0.0.1/hook")

        # files
        up = c.upload_url(path="dir/in.txt", content_length=5, id="baponi-1", content_type="text/plain")
        assert httpx.put(up.url, content=b"hello", headers={h.name: h.value for h in up.headers}).is_success
        down = c.download_url(path="dir/in.txt", id="baponi-1")
        assert (down.method, httpx.get(down.url).content) == ("GET", b"hello"), down
        assert [(f.path, f.size) for f in c.list_files(id="baponi-1", path="dir")] == [("dir/in.txt", 5)]
        assert refused(baponi.BaponiError, c.download_url, path="none", id="baponi-1").status_code == 404
        assert c.execute("print(open('dir/in.txt').read())", thread_id="baponi-1").stdout == "hello\n"

        # refusals
        assert refused(baponi.BaponiError, c.get_execution, "trc_none").status_code == 404
        assert refused(baponi.APIValidationError, c.execute, "1", sub_paths=["/data/none/a"]).error_type == "validation_error"
    with Baponi("sk-us-none", base_url=URL) as c:
        assert refused(baponi.AuthenticationError, c.execute, "1").error_type == "unauthorized"
    print("sync")


async def asynchronous():
    async with AsyncBaponi(KEY, base_url=URL) as c:
        r = await c.execute("print('hello')", env_vars={"A": "b"})
        assert r.stdout == "hello\n", r
        async with await c.execute_stream("for i in range(3): print(i)") as s:
            events = [e async for e in s]
            assert s.get_final_result().stdout == "0\n1\n2\n"
        async with await c.reconnect_stream(s.trace_id, after_seq=2) as rest:
            assert (await rest.until_done()).success
        h = await c.execute_webhook("print('later')")
        assert (await h.wait(poll_interval=0.05)).stdout == "later\n"
        h = await c.execute_webhook("import time; time.sleep(60)")
        assert (await c.get_execution(h.trace_id)).status == "running"
        assert (await c.cancel_execution(h.trace_id)).status == "cancelled"
        up = await c.upload_url(path="b", content_length=1, id="baponi-2")
        assert httpx.put(up.url, content=b"b").is_success
        down = await c.download_url(path="b", id="baponi-2")
        assert httpx.get(down.url).content == b"b"
        assert [f.path for f in await c.list_files(id="baponi-2")] == ["b"]
    print("async")


CALL = {"code": "print(6*7)", "language": "python"}


async def frameworks():
    settings = {"api_key": KEY, "base_url": URL, "thread_id": "baponi-3", "metadata": {"who": "framework"}}
    import baponi.anthropic

    tool, handle = baponi.anthropic.create_code_sandbox(**settings)
    assert handle(tool["name"], CALL) == "42\n"

    import baponi.langchain

    tool = baponi.langchain.create_code_sandbox(**settings)
    assert tool.invoke(CALL) == "42\n" and await tool.ainvoke(CALL) == "42\n"
    assert tool.invoke({"code": "exit 3", "language": "bash"}) == "[exit code: 3]"

    import baponi.google

    assert baponi.google.create_code_sandbox(**settings)(**CALL) == "42\n"

    # baponi.openai and baponi.crewai are in baponi_frameworks.py.
    import baponi.deepagents

    with baponi.deepagents.create_sandbox(api_key=KEY, base_url=URL, thread_id="baponi-deep") as s:
        assert s.execute("echo hi > out.txt; pwd").output == "/home/baponi\n"
        assert s.upload_files([("/home/baponi/up.bin", b"\x00up"), ("/tmp/x", b"")])[0].error is None
        assert s.download_files(["/home/baponi/up.bin"])[0].content == b"\x00up"
        assert s.download_files(["/home/baponi/none"])[0].error == "file_not_found"
        assert s.write("/home/baponi/new.txt", "line one\nline two\n").error is None
        assert s.edit("/home/baponi/new.txt", "two", "2").error is None
        assert "line 2" in str(s.read("/home/baponi/new.txt"))
        found = s.ls("/home/baponi")
        assert {os.path.basename(f["path"]) for f in found.entries} >= {"new.txt", "out.txt", "up.bin"}, found
        found = s.grep("line", path="/home/baponi")
        assert [m["line"] for m in found.matches if m["path"].endswith("new.txt")] == [1, 2], found
        assert s.glob("*.txt", path="/home/baponi").matches
        with s.execute_stream("cat out.txt") as stream:
            assert stream.until_done().stdout == "hi\n"
    print("frameworks")


sync()
asyncio.run(asynchronous())
asyncio.run(frameworks())
