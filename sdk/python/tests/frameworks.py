"""Drives each framework's published package through one task with the tools of a session: a
scripted model has a file written and read in a sandbox, and says what came of it.

    ATOLL_BASE_URL=… ATOLL_API_KEY=… python tests/frameworks.py [langchain openai_agents pydantic_ai anthropic crewai llama_index deepagents]
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
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "notes.txt", "content": "kept\n"}),
    ("shell", {"command": "cat notes.txt; exit 3"}),
    ("read_file", {"path": "none.txt"}),
]


def chat(r: Request, n: int, calls: list[tuple[str, dict[str, Any]]] = CALLS) -> list[str]:
    """The scripted model as a provider of Chat Completions. Returns what the calls have given."""
    asked = r.json()
    given = [text_of(one["content"]) for one in asked["messages"] if one["role"] == "tool"]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if len(given) < len(calls):
        name, arguments = calls[len(given)]
        known = {tool["function"]["name"]: tool["function"]["parameters"] for tool in asked["tools"]}
        assert set(arguments) <= set(known[name]["properties"]), known
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{n}", "type": "function", "function": function}]
    else:
        message["content"] = " ".join(given)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if message["content"] is None else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": f"chat_{n}", "object": "chat.completion", "created": 1, "model": "m"}
    r.answer(200, {**answer, "choices": [choice], "usage": usage})
    return given


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def langchain(client: atoll.Atoll, session: str) -> str:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    from atoll.integrations.langchain import async_tools, tools

    async def once() -> None:
        async with atoll.AsyncAtoll() as other:
            [tool] = await async_tools(other, session, names=["shell"])
            assert json.loads(await tool.ainvoke({"command": "cat notes.txt"}))["stdout"] == "kept\n"

    with Server(chat) as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key="k", max_retries=0)
        agent: Any = create_agent(model, tools(client, session, names=["write_file", "shell", "read_file"]))
        answer = agent.invoke({"messages": [{"role": "user", "content": "go"}]})
    asyncio.run(once())
    return str(answer["messages"][-1].content)


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


def crewai(client: atoll.Atoll, session: str) -> str:
    from crewai import LLM, Agent, Crew, Task

    from atoll.integrations.crewai import tools

    with Server(chat) as server:
        model = LLM(model="openai/m", base_url=server.url, api_key="k")
        agent = Agent(
            role="Keeper", goal="Keep notes", backstory="It keeps notes.", llm=model, tools=tools(client, session)
        )
        task = Task(description="Keep a note.", expected_output="What was kept.", agent=agent)
        return str(Crew(agents=[agent], tasks=[task]).kickoff().raw)


def llama_index(client: atoll.Atoll, session: str) -> str:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
    from llama_index.core.llms.mock import MockFunctionCallingLLM

    from atoll.integrations.llama_index import async_tools, tools

    def model(messages: Any, **_: Any) -> ChatMessage:
        given = [one.content for one in messages if one.role == "tool"]
        if len(given) == len(CALLS):
            return ChatMessage(role="assistant", blocks=[TextBlock(text=" ".join(given))])
        name, arguments = CALLS[len(given)]
        call = ToolCallBlock(tool_call_id=f"call_{len(given)}", tool_name=name, tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[call])

    async def run(given: Any) -> str:
        agent: Any = FunctionAgent(tools=given, llm=MockFunctionCallingLLM(response_generator=model))
        return str(await agent.run("go"))

    async def once() -> str:
        async with atoll.AsyncAtoll() as other:
            return await run(await async_tools(other, session))

    given = tools(client, session)
    [shell] = [tool for tool in given if tool.metadata.name == "shell"]
    told = shell.metadata.to_openai_tool()["function"]["parameters"]
    assert "command" in told["required"], told
    assert asyncio.run(once()) == (told := asyncio.run(run(given))), told
    return told


def deepagents(client: atoll.Atoll, session: str) -> None:
    from deepagents import create_deep_agent
    from langchain_openai import ChatOpenAI

    from atoll.integrations.deepagents import backend

    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"file_path": "/home/user/a/notes.txt", "content": "kept\n"}),
        ("edit_file", {"file_path": "/home/user/a/notes.txt", "old_string": "kept", "new_string": "mended"}),
        ("execute", {"command": "cd a; cat notes.txt; echo no >&2; seq 20000; exit 3"}),
        ("execute", {"command": "tail -n 1 /tmp/large_tool_results/call_3"}),
        ("grep", {"pattern": "mended", "path": "/home/user", "output_mode": "content"}),
        ("read_file", {"file_path": "/home/user/none.txt"}),
    ]
    given: list[str] = []

    def model(r: Request, n: int) -> None:
        given[:] = chat(r, n, calls)

    with client.sandbox("deep", session=session) as box, Server(model) as server:
        given_to = backend(box)
        provider = ChatOpenAI(model="m", base_url=server.url, api_key="k", max_retries=0)
        agent: Any = create_deep_agent(model=provider, backend=given_to)
        agent.invoke({"messages": [{"role": "user", "content": "go"}]})
        assert box.files.read_text("a/notes.txt") == "mended\n"
        assert "mended\nno\n1\n2\n" in given[2] and "exit code 3" in given[2], given[2]
        assert given[3].startswith("20000\n"), given[3]
        assert "notes.txt" in given[4] and "mended" in given[4], given[4]
        assert "none.txt" in given[5] and "not" in given[5], given[5]

        for seconds in (1, 2, 4, 8):  # longer, where its first word is late
            late = given_to.execute("echo begun; sleep 60", timeout=seconds)
            if late.output.startswith("begun\n"):
                break
        assert late.output.startswith("begun\n") and late.exit_code == 124, late
        flood = given_to.execute("yes", timeout=60)
        assert flood.truncated and flood.exit_code == 137 and flood.output.endswith("and was ended.\n"), len(
            flood.output
        )
        sent = given_to.upload_files([("/home/user/b/raw", b"\x00raw"), ("b", b""), ("/root/b", b"")])
        assert [one.error for one in sent] == [None, "invalid_path", "permission_denied"], sent
        got = given_to.download_files(["/home/user/b/raw", "/home/user/none", "/home/user/b", "b"])
        assert got[0].content == b"\x00raw", got
        assert [one.error for one in got] == [None, "file_not_found", "is_directory", "invalid_path"], got


# What each has a model say in the end, where that is what its calls gave.
FRAMEWORKS: dict[str, Callable[[atoll.Atoll, str], str | None]] = {
    f.__name__: f for f in (langchain, openai_agents, pydantic_ai, anthropic, crewai, llama_index, deepagents)
}

WANTED = ['"ok": true', '"stdout": "kept\\n"', '"exit_code": 3', '"error": "not_found"']


def main() -> int:
    failed = 0
    names = sys.argv[1:] or list(FRAMEWORKS)
    with atoll.Atoll() as client:
        for name in names:
            session = f"{name}-{uuid.uuid4().hex[:8]}"
            try:
                said = FRAMEWORKS[name](client, session)
                assert said is None or all(wanted in said for wanted in WANTED), said
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
