"""An MCP server made with the published package, for those who have its token. It writes its
port to stdout, and a line for each call of order to stderr."""

import asyncio
import os
import socket
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shop")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def order(item: str) -> str:
    """Orders an item."""
    print("ordered", item, file=sys.stderr, flush=True)
    if item == "nothing":
        raise ValueError("there is nothing to order")
    return f"{item} is on its way"


app = server.streamable_http_app()


async def guarded(scope, receive, send):
    if scope["type"] == "http" and (b"authorization", b"Bearer " + os.environ["TOKEN"].encode()) not in scope["headers"]:
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"who are you?"})
        return
    await app(scope, receive, send)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
asyncio.run(uvicorn.Server(uvicorn.Config(guarded, log_level="error")).serve(sockets=[listener]))
