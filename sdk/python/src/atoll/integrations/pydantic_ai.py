"""Tools for Pydantic AI."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool

from . import _tools

if TYPE_CHECKING:
    from .._async.client import AsyncAtoll
    from .._sync.client import Atoll


def tools(client: Atoll, session: str, *, names: Collection[str] | None = None) -> list[Tool[Any]]:
    """The tools of a session, all or those with these names."""

    def tool(one: _tools.Definition) -> Tool[Any]:
        def run(**arguments: Any) -> str:
            return _tools.call(client, session, one.name, arguments)

        return Tool.from_schema(run, one.name, one.description, one.schema)

    return [tool(one) for one in _tools.definitions(client, names)]


async def async_tools(client: AsyncAtoll, session: str, *, names: Collection[str] | None = None) -> list[Tool[Any]]:
    """The tools of a session over an asynchronous client, all or those with these names."""

    def tool(one: _tools.Definition) -> Tool[Any]:
        async def run(**arguments: Any) -> str:
            return await _tools.async_call(client, session, one.name, arguments)

        return Tool.from_schema(run, one.name, one.description, one.schema)

    return [tool(one) for one in await _tools.async_definitions(client, names)]
