"""Tools for LlamaIndex."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from llama_index.core.tools import FunctionTool, ToolMetadata

from . import _tools

if TYPE_CHECKING:
    from .._async.client import AsyncAtoll
    from .._sync.client import Atoll


class Metadata(ToolMetadata):
    """Description of a tool for the model, with the server's schema."""

    def __init__(self, one: _tools.Definition) -> None:
        super().__init__(description=one.description, name=one.name, fn_schema=None)
        self.schema = one.schema

    def get_parameters_dict(self) -> dict[str, Any]:
        """The schema of its input."""
        return self.schema


def tools(client: Atoll, session: str, *, names: Collection[str] | None = None) -> list[FunctionTool]:
    """The tools of a session, all or those with these names."""

    def tool(one: _tools.Definition) -> FunctionTool:
        def run(**arguments: Any) -> str:
            return _tools.call(client, session, one.name, arguments)

        return FunctionTool(run, metadata=Metadata(one))

    return [tool(one) for one in _tools.definitions(client, names)]


async def async_tools(client: AsyncAtoll, session: str, *, names: Collection[str] | None = None) -> list[FunctionTool]:
    """The tools of a session over an asynchronous client, all or those with these names."""

    def tool(one: _tools.Definition) -> FunctionTool:
        async def run(**arguments: Any) -> str:
            return await _tools.async_call(client, session, one.name, arguments)

        return FunctionTool(async_fn=run, metadata=Metadata(one))

    return [tool(one) for one in await _tools.async_definitions(client, names)]
