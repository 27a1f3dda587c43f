"""The Cloudflare client of openai-agents, unchanged, with a server of ours as its bridge."""

import asyncio
import io
import os
import tarfile

from agents.extensions.sandbox.cloudflare import CloudflareSandboxClient, CloudflareSandboxClientOptions
from agents.sandbox import Manifest
from agents.sandbox.errors import SandboxError
from agents.sandbox.entries import File
from pathlib import Path

URL, KEY = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"]


async def refused(call):
    try:
        await call
    except SandboxError as e:
        return e
    raise AssertionError("it was not refused")


async def main():
    client = CloudflareSandboxClient()
    options = CloudflareSandboxClientOptions(worker_url=URL, api_key=KEY)
    manifest = Manifest(entries={"given.txt": File(content=b"given")}, environment={"value": {"A": "b c"}})
    s = await client.create(manifest=manifest, options=options)
    await s.start()
    assert await s.running()

    # exec
    r = await s.exec("cat given.txt; echo err >&2; echo $A; exit 3")
    assert (r.stdout, r.stderr, r.exit_code) == (b"givenb c\n", b"err\n", 3), r
    r = await s.exec("/bin/no-such-program", shell=False)
    assert r.exit_code == 127, r
    late = await refused(s.exec("sleep 60", timeout=0.5))
    assert "did not end" in str(late.__cause__), late
    r = await s.exec("head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(r.stdout) == 3000000, len(r.stdout)

    # files
    await s.write(Path("dir/a.bin"), io.BytesIO(b"\x00\xff"))
    assert (await s.read(Path("dir/a.bin"))).read() == b"\x00\xff"
    assert (await s.exec("ls dir", shell=True)).stdout == b"a.bin\n"
    assert "not found" in str(await refused(s.read(Path("none")))).lower()
    await s.write(Path("gone/b"), io.BytesIO(b"b"))

    # terminals
    up = await s.pty_exec_start("read x; echo got-$x; exit 4", tty=True, yield_time_s=1)
    out = up.output
    while up.process_id is not None:
        up = await s.pty_write_stdin(session_id=up.process_id, chars="line\nexit 5\n", yield_time_s=1)
        out += up.output
    assert b"got-line" in out and up.exit_code == 5, (out, up)

    # what is kept, and brought back to another
    archive = (await s.persist_workspace()).read()
    names = [m.name.removeprefix("./") for m in tarfile.open(fileobj=io.BytesIO(archive)).getmembers()]
    assert "dir/a.bin" in names and "gone/b" in names, names
    s._inner.register_persist_workspace_skip_path(Path("gone"))
    archive = (await s.persist_workspace()).read()
    names = [m.name.removeprefix("./") for m in tarfile.open(fileobj=io.BytesIO(archive)).getmembers()]
    assert "dir/a.bin" in names and not [n for n in names if n.startswith("gone")], names
    other = await client.create(manifest=Manifest(), options=options)
    await other.start()
    await other.hydrate_workspace(io.BytesIO(archive))
    assert (await other.read(Path("dir/a.bin"))).read() == b"\x00\xff"
    await client.delete(other)

    # coming back to it
    os.environ["CLOUDFLARE_SANDBOX_API_KEY"] = KEY
    again = await client.resume(client.deserialize_session_state(client.serialize_session_state(s.state)))
    assert (await again.exec("cat given.txt")).stdout == b"given"
    await client.delete(s)
    assert not await s.running()
    await s._inner._close_http()
    await again._inner._close_http()
    print("cloudflare")


asyncio.run(main())
