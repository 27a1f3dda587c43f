"""Tools for OpenAI's Agents SDK."""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from agents import FunctionTool

from . import _tools

if TYPE_CHECKING:
    from .._async.client import AsyncAtoll


async def tools(client: AsyncAtoll, session: str, *, names: Collection[str] | None = None) -> list[FunctionTool]:
    """The tools of a session, all or those with these names."""

    def tool(one: _tools.Definition) -> FunctionTool:
        async def run(context: Any, arguments: str) -> str:
            return await _tools.async_call(client, session, one.name, json.loads(arguments or "{}"))

        return FunctionTool(
            name=one.name,
            description=one.description,
            params_json_schema=one.schema,
            on_invoke_tool=run,
            strict_json_schema=False,
        )

    return [tool(one) for one in await _tools.async_definitions(client, names)]
