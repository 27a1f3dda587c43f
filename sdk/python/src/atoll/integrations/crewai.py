"""Tools for CrewAI."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from crewai.tools import BaseTool
from pydantic import BaseModel, ConfigDict, PrivateAttr

from . import _tools

if TYPE_CHECKING:
    from .._sync.client import Atoll


def never(_arguments: Any = None, _result: Any = None) -> bool:
    """Keeps CrewAI from answering a second call from what the first one gave."""
    return False


class SessionTool(BaseTool):
    """A tool of a session."""

    _call: Callable[[dict[str, Any]], str] = PrivateAttr()

    def _run(self, **arguments: Any) -> str:
        return self._call(arguments)

    async def _arun(self, **arguments: Any) -> str:
        return await asyncio.to_thread(self._call, arguments)


def arguments_of(one: _tools.Definition) -> type[BaseModel]:
    """A model of pydantic with the server's schema; the server checks the arguments."""

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return dict(one.schema)

    return Arguments


def tools(client: Atoll, session: str, *, names: Collection[str] | None = None) -> list[BaseTool]:
    """The tools of a session, all or those with these names."""

    def tool(one: _tools.Definition) -> BaseTool:
        made = SessionTool(
            name=one.name, description=one.description, args_schema=arguments_of(one), cache_function=never
        )
        made._call = lambda arguments: _tools.call(client, session, one.name, arguments)
        return made

    # CrewAI asks models for every argument: the strict schemas say where null is one.
    return [tool(one) for one in _tools.definitions(client, names, strict=True)]
