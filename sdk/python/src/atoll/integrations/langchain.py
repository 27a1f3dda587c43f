"""Tools for LangChain."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from langchain_core.tools import StructuredTool

from . import _tools

if TYPE_CHECKING:
    from .._async.client import AsyncAtoll
    from .._sync.client import Atoll


def tools(client: Atoll, session: str, *, names: Collection[str] | None = None) -> list[StructuredTool]:
    """The tools of a session, all or those with these names."""

    def tool(one: _tools.Definition) -> StructuredTool:
        def run(**arguments: Any) -> str:
            return _tools.call(client, session, one.name, arguments)

        return StructuredTool.from_function(
            run, name=one.name, description=one.description, args_schema=one.schema, infer_schema=False
        )

    return [tool(one) for one in _tools.definitions(client, names)]


async def async_tools(
    client: AsyncAtoll, session: str, *, names: Collection[str] | None = None
) -> list[StructuredTool]:
    """The tools of a session for ainvoke, all or those with these names."""

    def tool(one: _tools.Definition) -> StructuredTool:
        async def run(**arguments: Any) -> str:
            return await _tools.async_call(client, session, one.name, arguments)

        return StructuredTool.from_function(
            coroutine=run, name=one.name, description=one.description, args_schema=one.schema, infer_schema=False
        )

    return [tool(one) for one in await _tools.async_definitions(client, names)]
