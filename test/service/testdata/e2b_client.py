"""Drives E2B's published packages for Python against a server that has their door."""

import asyncio
import http.client
import os
import time
import urllib.parse

from e2b import (
    AuthenticationException,
    CommandExitException,
    FileNotFoundException,
    FilesystemEventType,
    InvalidArgumentException,
    NotFoundException,
    PtySize,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)
from e2b_code_interpreter import AsyncSandbox, Sandbox


def refused(kind, says, call):
    try:
        call()
    except kind as e:
        assert says in str(e), f"{e!r} does not say {says!r}"
        return e
    raise AssertionError(f"not refused: {says}")


def until(says, ready):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if found := ready():
            return found
        time.sleep(0.02)
    raise AssertionError("never: " + says)


def fetch(url, body=None, headers={}):
    """Asks a host below localhost, which resolvers of machines need not know."""
    u = urllib.parse.urlsplit(url)
    c = http.client.HTTPConnection("127.0.0.1", u.port, timeout=60)
    c.request("GET" if body is None else "POST", f"{u.path}?{u.query}", body, {"Host": u.netloc, **headers})
    r = c.getresponse()
    return r.status, r.read()


def commands(s):
    r = s.commands.run("echo out; echo err >&2; pwd", cwd="/tmp", envs={"X": "1"})
    assert (r.stdout, r.stderr, r.exit_code) == ("out\n/tmp\n", "err\n", 0), r
    assert s.commands.run("echo $GIVEN").stdout == "to the sandbox\n"
    failed = refused(CommandExitException, "", lambda: s.commands.run("echo no >&2; exit 7"))
    assert (failed.exit_code, failed.stderr) == (7, "no\n"), failed
    seen = []
    s.commands.run("printf a; printf b >&2", on_stdout=seen.append, on_stderr=seen.append)
    assert sorted(seen) == ["a", "b"], seen

    cat = s.commands.run("cat; echo ended", background=True, stdin=True)
    assert any(p.pid == cat.pid for p in s.commands.list())
    s.commands.send_stdin(cat.pid, "hello\n")
    other = s.commands.connect(cat.pid)
    assert other.pid == cat.pid
    other.disconnect()
    cat.close_stdin()
    assert cat.wait().stdout == "hello\nended\n"
    sleep = s.commands.run("sleep 100", background=True)
    assert sleep.kill()
    refused(CommandExitException, "", sleep.wait)
    assert not s.commands.kill(sleep.pid)
    refused(TimeoutException, "", lambda: s.commands.run("sleep 100", timeout=0.2))
    refused(InvalidArgumentException, "root", lambda: s.commands.run("id", user="root"))


def terminal(s):
    pty = s.pty.create(PtySize(rows=24, cols=80), cwd="/tmp")
    s.pty.send_stdin(pty.pid, b"stty size; exit 3\n")
    shown = b""
    try:
        for _, _, data in pty:
            shown += data or b""
    except CommandExitException:
        pass
    assert b"24 80" in shown, shown
    pty = s.pty.create(PtySize(rows=24, cols=80))
    s.pty.resize(pty.pid, PtySize(rows=30, cols=90))
    s.pty.send_stdin(pty.pid, b"stty size\n")
    shown = b""
    for _, _, data in pty:
        shown += data or b""
        if b"30 90" in shown:
            break
    assert s.pty.kill(pty.pid)


def files(s):
    f = s.files
    assert f.make_dir("/home/user/d/e") and not f.make_dir("/home/user/d/e")
    watch = f.watch_dir("/home/user/d", recursive=True)
    written = f.write("/home/user/d/a.txt", "text \u20ac")
    assert (written.name, written.path) == ("a.txt", "/home/user/d/a.txt"), written
    f.write_files([{"path": "d/e/one", "data": b"\x00\xff"}, {"path": "~/d/e/two", "data": "2"}])
    assert f.read("d/a.txt") == "text \u20ac" and bytes(f.read("/home/user/d/e/one", format="bytes")) == b"\x00\xff"
    assert b"".join(f.read("d/a.txt", format="stream")).decode() == "text \u20ac"
    assert sorted(e.name for e in f.list("/home/user/d")) == ["a.txt", "e"]
    assert len(f.list("/home/user/d", depth=2)) == 4
    info = f.get_info("d/a.txt")
    assert (info.size, info.owner, info.path) == (8, "user", "/home/user/d/a.txt"), info
    assert f.rename("d/a.txt", "d/b.txt").path == "/home/user/d/b.txt"
    assert f.exists("d/b.txt") and not f.exists("d/a.txt")
    f.remove("d/b.txt")
    refused(FileNotFoundException, "b.txt", lambda: f.read("d/b.txt"))
    refused(FileNotFoundException, "nowhere", lambda: f.list("/nowhere"))
    seen = []

    def told():
        seen.extend((e.name, e.type) for e in watch.get_new_events())
        return {("a.txt", FilesystemEventType.CREATE), ("e/one", FilesystemEventType.CREATE)} <= set(seen)

    until(f"events of files: {seen}", told)
    watch.stop()
    assert f.write("empty", "").name == "empty" and f.read("empty") == ""


def hosts(s):
    # The URL of a sandbox's services by its host, for URLs of files that need no token.
    here = Sandbox.connect(s.sandbox_id, sandbox_url="http://" + s.get_host(49983))
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nup \xe2\x82\xac\r\n--b--\r\n'
    up = here.upload_url("/home/user/a b+\u20ac.txt", use_signature_expiration=60)
    status, said = fetch(up, part, form)
    assert status == 200, (status, said)
    assert s.files.read("/home/user/a b+\u20ac.txt") == "up \u20ac"
    assert fetch(here.upload_url("plain.txt"), b"plain", {"Content-Type": "application/octet-stream"})[0] == 200
    down = here.download_url("/home/user/a b+\u20ac.txt", user="user", use_signature_expiration=60)
    assert fetch(down) == (200, "up \u20ac".encode()), fetch(down)
    assert fetch(here.download_url("plain.txt")) == (200, b"plain")
    assert fetch(here.download_url("plain.txt", use_signature_expiration=-1))[0] == 401
    assert fetch(down.replace("signature_expiration=", "signature_expiration=1"))[0] == 401
    assert fetch(up)[0] == 401 and fetch(down, part, form)[0] == 401
    assert fetch(down.replace("49983", "49982"))[0] == 502  # an ordinary port
    # A port of the sandbox, for browsers.
    server = s.commands.run("python3 -m http.server 8000 --bind 127.0.0.1 --directory /home/user", background=True)
    assert fetch(f"http://{s.get_host(8000)}/plain.txt") == (200, b"plain")
    assert fetch(f"http://{s.get_host(8000)}/plain.txt".replace(s.sandbox_id, s.sandbox_id[:19]))[0] == 404
    server.kill()
    private = Sandbox.create(timeout=60, network={"allow_public_traffic": False})
    try:
        private.commands.run("python3 -m http.server 8000 --bind 127.0.0.1", background=True)
        assert fetch(f"http://{private.get_host(8000)}/")[0] == 403
        assert fetch(f"http://{private.get_host(8000)}/", headers={"e2b-traffic-access-token": private.traffic_access_token})[0] == 200
    finally:
        private.kill()


def code(s):
    lines = []
    r = s.run_code("x = 20\nprint('said')\nx + 1", on_stdout=lambda m: lines.append(m.line))
    assert r.text == "21" and "".join(r.logs.stdout) == "said\n" and lines == r.logs.stdout and r.error is None, r
    assert s.run_code("x").text == "20"
    r = s.run_code("1 / 0")
    assert (r.error.name, r.error.value) == ("ZeroDivisionError", "division by zero"), r.error
    assert "ZeroDivisionError" in r.error.traceback
    other = s.create_code_context(cwd="/tmp")
    assert s.run_code("import os; os.getcwd()", context=other).text == "/tmp"
    assert "NameError" == s.run_code("x", context=other).error.name
    assert other.id in [c.id for c in s.list_code_contexts()]
    s.restart_code_context(other)
    s.remove_code_context(other)
    refused(Exception, "context", lambda: s.run_code("1", context=other))
    r = s.run_code("class P:\n  def _repr_html_(self): return '<b>'\nP()")
    assert r.results[0].html == "<b>", r
    assert "".join(s.run_code("echo shell", language="bash").logs.stdout) == "shell\n"
    refused(Exception, "language", lambda: s.run_code("1", language="cobol"))


def life(s):
    assert s.is_running()
    info = s.get_info()
    assert (info.sandbox_id, info.metadata, info.state) == (s.sandbox_id, {"of": "sync & co"}, SandboxState.RUNNING), info
    s.set_timeout(600)
    left = (s.get_info().end_at - info.started_at).total_seconds()
    assert left > 590, left
    listed = Sandbox.list(query=SandboxQuery(metadata={"of": "sync & co"}, state=[SandboxState.RUNNING])).next_items()
    assert [one.sandbox_id for one in listed] == [s.sandbox_id], listed
    assert not Sandbox.list(query=SandboxQuery(metadata={"of": "none"})).next_items()
    m = s.get_metrics()[0]
    assert m.mem_total > 0 and m.mem_used > 0 and m.cpu_count >= 1, m

    s.run_code("kept = 42")
    s.files.watch_dir("/tmp")  # which does not keep the sandbox from being paused
    s.pause()
    assert not s.is_running() and s.get_info().state == SandboxState.PAUSED
    refused(TimeoutException, "not found", lambda: s.commands.run("true"))
    s.connect(timeout=120)
    assert s.is_running() and s.run_code("kept").text == "42"

    (copy,) = s.fork(timeout=60)
    assert copy.sandbox_id != s.sandbox_id and copy.run_code("kept").text == "42"
    copy.kill()

    kept = s.create_snapshot()
    assert kept.snapshot_id in [n.snapshot_id for n in s.list_snapshots().next_items()]
    again = Sandbox.create(kept.snapshot_id, timeout=60)
    assert again.files.exists("empty")
    assert again.kill() and not again.kill()
    assert Sandbox.delete_snapshot(kept.snapshot_id) and not Sandbox.delete_snapshot(kept.snapshot_id)

    s.update_network({"allow_out": [], "deny_out": ["0.0.0.0/0"]})
    assert s.get_info().network


def refusals(s):
    refused(AuthenticationException, "", lambda: Sandbox.create(api_key="sk-atoll-none"))
    refused(NotFoundException, "not found", lambda: Sandbox.connect("sb_none"))
    refused(Exception, "volumeMounts", lambda: Sandbox.create(volume_mounts={"/v": "v"}))
    refused(Exception, "image", lambda: Sandbox.create("no/such-image"))
    refused(Exception, "denyOut", lambda: Sandbox.create(network={"deny_out": ["10.0.0.0/8"]}))


async def asynchronous():
    s = await AsyncSandbox.create(timeout=120)
    try:
        assert (await s.commands.run("echo async")).stdout == "async\n"
        assert (await s.run_code("6 * 7")).text == "42"
        seen = asyncio.Queue()
        await s.files.make_dir("/tmp/d")
        watch = await s.files.watch_dir("/tmp/d", on_event=seen.put_nowait)
        await s.files.write("/tmp/d/new", "x")
        assert (await asyncio.wait_for(seen.get(), 30)).name == "new"
        await watch.stop()
        cat = await s.commands.run("cat", background=True, stdin=True)
        await s.commands.send_stdin(cat.pid, "typed")
        await s.commands.close_stdin(cat.pid)
        assert (await cat.wait()).stdout == "typed"
    finally:
        await s.kill()


def main():
    s = Sandbox.create(timeout=300, metadata={"of": "sync & co"}, envs={"GIVEN": "to the sandbox"})
    try:
        for part in (commands, terminal, files, hosts, code, life, refusals):
            part(s)
            print(part.__name__, flush=True)
    finally:
        assert s.kill()
    asyncio.run(asynchronous())
    print("asynchronous", flush=True)


main()
# The client's transport, pyqwest, may abort an interpreter that winds down while one of
# its threads calls back: curioswitch/pyqwest#164.
os._exit(0)
