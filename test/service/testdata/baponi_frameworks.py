"""The published client's modules for openai-agents and CrewAI."""

import asyncio
import functools
import json
import os

import agents
from agents.tool_context import ToolContext

SETTINGS = {"api_key": os.environ["BAPONI_API_KEY"], "base_url": os.environ["BAPONI_BASE_URL"], "thread_id": "baponi-4", "metadata": {"who": "framework"}}
CALL = {"code": "print(6*7)", "language": "python"}

# No openai-agents that there is imports the module: its tool has a parameter that a strict
# schema cannot have, and all are strict unless they are told. So they are told here.
strict = agents.function_tool
agents.function_tool = functools.partial(strict, strict_mode=False)
import baponi.openai  # noqa: E402

agents.function_tool = strict


async def openai():
    tool = baponi.openai.create_code_sandbox(**SETTINGS)
    assert set(tool.params_json_schema["properties"]) == {"code", "language", "thread_id", "timeout", "metadata", "env_vars"}, tool

    async def call(**arguments):
        text = json.dumps(arguments)
        return await tool.on_invoke_tool(ToolContext(None, tool_name=tool.name, tool_call_id="call_1", tool_arguments=text), text)

    assert await call(**CALL) == "42\n"
    assert await call(code="exit 3", language="bash") == "[exit code: 3]"
    assert await call(code="echo $A", language="bash", env_vars={"A": "b"}, thread_id="baponi-5", timeout=5, metadata={"a": "b"}) == "b\n"
    print("openai")


def crewai():
    import baponi.crewai

    tool = baponi.crewai.create_code_sandbox(**SETTINGS)
    assert tool.run(**CALL) == "42\n"
    assert tool.run(code="exit 3", language="bash") == "[exit code: 3]"
    assert tool.run(code="echo $A", language="bash", env_vars={"A": "b"}, thread_id="baponi-5", timeout=5, metadata={"a": "b"}) == "b\n"
    assert tool.to_structured_tool().invoke({**CALL}) == "42\n"
    print("crewai")


asyncio.run(openai())
crewai()
