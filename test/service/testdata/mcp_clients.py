"""Independent clients of /mcp: those that are published for Python, in each version of the protocol."""
import asyncio
import os

import httpx2
from fastmcp import Client as FastClient
from fastmcp.client.transports import StreamableHttpTransport
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

URL, KEY = os.environ["ATOLL_URL"] + "/mcp", os.environ["ATOLL_API_KEY"]
HEADERS = {"Authorization": "Bearer " + KEY}
MANY = 262_144  # bytes, of which quotes make a message of more than the 1 MiB that these clients read of an event


async def converse(call, unknown):
    """Has a conversation by a function that calls a tool and returns the output."""
    assert (await call("shell", {"command": "echo $((6*7))"}))["stdout"] == "42\n"
    print_many = f"yes '\"' | head -c {MANY}"
    for _ in range(5):  # on a busy machine an answer may be late
        at_once = await call("shell", {"command": print_many})
        if "stdout_truncated" not in at_once:
            break
    assert len(at_once["stdout"]) == MANY and "stdout_truncated" not in at_once, len(at_once["stdout"])
    late = await call("shell", {"command": "sleep 1; " + print_many})
    assert 100_000 < len(late["stdout"]) < MANY and late["stdout_truncated"], len(late["stdout"])
    await unknown()
    assert (await call("shell", {"command": "echo still"}))["stdout"] == "still\n"


async def mcp(mode):
    http = httpx2.AsyncClient(headers=HEADERS, timeout=httpx2.Timeout(30, read=300))
    async with http, Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
        async def call(tool, args):
            result = await client.call_tool(tool, args)
            assert not result.is_error, result.content
            return result.structured_content

        async def unknown():
            for tool, args, codes in (("nothing", {}, [-32601, -32602]), ("shell", {"command": "#" * (9 << 20)}, [-32600])):
                try:
                    raise SystemExit(f"{tool} answered {await client.call_tool(tool, args)}")
                except MCPError as error:
                    assert error.code in codes, error

        await converse(call, unknown)
        assert ("?session=NAME" in client.instructions) == (client.protocol_version >= "2026-07-28"), client.instructions
        return client.protocol_version


async def fastmcp(mode):
    async with FastClient(StreamableHttpTransport(URL, headers=HEADERS), mode=mode) as client:
        async def call(tool, args):
            return (await client.call_tool(tool, args)).structured_content

        async def unknown():
            try:
                await client.call_tool("shell", {"commando": 1})
                raise SystemExit("an unknown field was taken")
            except Exception as error:
                assert "unknown field" in str(error), error

        await converse(call, unknown)
        return client.protocol_version


async def main():
    for client, mode in ((mcp, "legacy"), (mcp, "auto"), (fastmcp, "legacy"), (fastmcp, "auto")):
        print(client.__name__, mode, await asyncio.wait_for(client(mode), 120), flush=True)


asyncio.run(main())
