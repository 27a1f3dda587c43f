"""Tools for the tool runner of Anthropic's package: client.beta.messages.tool_runner."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from anthropic import beta_async_tool, beta_tool

from . import _tools

if TYPE_CHECKING:
    from .._async.client import AsyncAtoll
    from .._sync.client import Atoll


def tools(client: Atoll, session: str, *, names: Collection[str] | None = None) -> list[Any]:
    """The tools of a session, all or those with these names."""

    def tool(one: _tools.Definition) -> Any:
        def run(**arguments: Any) -> str:
            return _tools.call(client, session, one.name, arguments)

        make: Any = beta_tool
        return make(run, name=one.name, description=one.description, input_schema=one.schema)

    return [tool(one) for one in _tools.definitions(client, names)]


async def async_tools(client: AsyncAtoll, session: str, *, names: Collection[str] | None = None) -> list[Any]:
    """The tools of a session for the asynchronous runner, all or those with these names."""

    def tool(one: _tools.Definition) -> Any:
        async def run(**arguments: Any) -> str:
            return await _tools.async_call(client, session, one.name, arguments)

        make: Any = beta_async_tool
        return make(run, name=one.name, description=one.description, input_schema=one.schema)

    return [tool(one) for one in await _tools.async_definitions(client, names)]
