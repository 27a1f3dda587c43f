"""Drives each framework's published package through one task with the tools of a session: a
scripted model has a file written and read in a sandbox, and says what came of it.

    ATOLL_BASE_URL=… ATOLL_API_KEY=… python tests/frameworks.py [langchain openai_agents pydantic_ai anthropic]
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from server import Request, Server

import atoll

# What the scripted model asks for, one call a turn; then it says what the last call gave.
CALLS = [
    ("write_file", {"path": "notes.txt", "content": "kept\n"}),
    ("shell", {"command": "cat notes.txt; exit 3"}),
    ("read_file", {"path": "none.txt"}),
]


def langchain(client: atoll.Atoll, session: str) -> str:
    from atoll.integrations.langchain import async_tools, tools

    given = {tool.name: tool for tool in tools(client, session, names=["write_file", "shell", "read_file"])}
    said = [
        given[name].invoke({"type": "tool_call", "id": "1", "name": name, "args": arguments}).content
        for name, arguments in CALLS
    ]

    async def once() -> None:
        async with atoll.AsyncAtoll() as other:
            [tool] = await async_tools(other, session, names=["shell"])
            assert json.loads(await tool.ainvoke({"command": "cat notes.txt"}))["stdout"] == "kept\n"

    asyncio.run(once())
    return " ".join(said)


def openai_agents(client: atoll.Atoll, session: str) -> str:
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    from atoll.integrations.openai_agents import tools

    def model(r: Request, n: int) -> None:
        given = [one for one in r.json()["input"] if one.get("type") == "function_call_output"]
        if len(given) < len(CALLS):
            name, arguments = CALLS[len(given)]
            item: dict[str, Any] = {
                "type": "function_call",
                "id": f"fc_{n}",
                "call_id": f"call_{n}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
        else:
            text = " ".join(one["output"] for one in given)
            item = {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        usage = {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        answer = {
            "id": f"resp_{n}",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": "completed",
            "output": [item],
            "usage": usage,
        }
        r.answer(200, {**answer, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []})

    async def run(url: str) -> str:
        set_tracing_disabled(True)
        async with atoll.AsyncAtoll() as other:
            provider = AsyncOpenAI(base_url=url, api_key="k")
            agent: Any = Agent(
                name="A", model=OpenAIResponsesModel("m", provider), tools=[*await tools(other, session)]
            )
            return str((await Runner.run(agent, "go")).final_output)

    with Server(model) as server:
        return asyncio.run(run(server.url))


def pydantic_ai(client: atoll.Atoll, session: str) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from atoll.integrations.pydantic_ai import async_tools, tools

    def model(messages: Any, info: Any) -> ModelResponse:
        given = [part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if len(given) < len(CALLS):
            return ModelResponse(parts=[ToolCallPart(*CALLS[len(given)])])
        return ModelResponse(parts=[TextPart(" ".join(map(str, given)))])

    async def run() -> str:
        async with atoll.AsyncAtoll() as other:
            agent: Any = Agent(FunctionModel(model), tools=await async_tools(other, session))
            return str((await agent.run("go")).output)

    agent: Any = Agent(FunctionModel(model), tools=tools(client, session))
    assert asyncio.run(run()) == (said := str(agent.run_sync("go").output)), said
    return said


def anthropic(client: atoll.Atoll, session: str) -> str:
    from anthropic import Anthropic

    from atoll.integrations.anthropic import tools

    given: list[str] = []

    def model(r: Request, n: int) -> None:
        for part in r.json()["messages"][-1]["content"]:
            if isinstance(part, dict) and part["type"] == "tool_result":
                given.append(part["content"] if isinstance(part["content"], str) else part["content"][0]["text"])
        if n <= len(CALLS):
            name, arguments = CALLS[n - 1]
            content: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": arguments}
        else:
            content = {"type": "text", "text": " ".join(given)}
        stop = "tool_use" if content["type"] == "tool_use" else "end_turn"
        answer = {
            "id": f"msg_{n}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [content],
            "stop_reason": stop,
            "stop_sequence": None,
        }
        r.answer(200, {**answer, "usage": {"input_tokens": 1, "output_tokens": 1}})

    with Server(model) as server:
        provider = Anthropic(base_url=server.url, api_key="k")
        runner = provider.beta.messages.tool_runner(
            model="m", max_tokens=100, messages=[{"role": "user", "content": "go"}], tools=tools(client, session)
        )
        last: Any = runner.until_done()
        return str(last.content[0].text)


FRAMEWORKS: dict[str, Callable[[atoll.Atoll, str], str]] = {
    f.__name__: f for f in (langchain, openai_agents, pydantic_ai, anthropic)
}


def main() -> int:
    failed = 0
    names = sys.argv[1:] or list(FRAMEWORKS)
    with atoll.Atoll() as client:
        for name in names:
            session = f"{name}-{uuid.uuid4().hex[:8]}"
            try:
                said = FRAMEWORKS[name](client, session)
                for wanted in ('"ok": true', '"stdout": "kept\\n"', '"exit_code": 3', '"error": "not_found"'):
                    assert wanted in said, said
                print(f"{name}: ok")
            except Exception as error:
                failed += 1
                print(f"{name}: {error!r}")
            finally:
                for box in client.sandboxes.list(session=session):
                    client.sandbox(box.sandbox_id).delete()
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
