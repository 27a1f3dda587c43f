"""The server's tools for all frameworks, and the results of their calls."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _errors

if TYPE_CHECKING:
    from .._async.client import AsyncAtoll
    from .._sync.client import Atoll


class Definition(NamedTuple):
    """A tool as a model sees it."""

    name: str
    description: str
    schema: dict[str, Any]


def chosen(told: list[dict[str, Any]], names: Collection[str] | None) -> list[Definition]:
    found = [Definition(one["name"], one["description"], one["inputSchema"]) for one in told]
    unknown = set(names or ()) - {one.name for one in found}
    if unknown:
        raise _errors.ConfigurationError(f"the server has no tools {', '.join(sorted(unknown))}")
    return [one for one in found if names is None or one.name in names]


def definitions(client: Atoll, names: Collection[str] | None, *, strict: bool | None = None) -> list[Definition]:
    return chosen(client.tools.list(format="mcp", strict=strict), names)


async def async_definitions(client: AsyncAtoll, names: Collection[str] | None) -> list[Definition]:
    return chosen(await client.tools.list(format="mcp"), names)


def mistake(error: _errors.APIError) -> str:
    """Message for the model about a rejected call; raises errors that the model cannot fix."""
    if error.status in (400, 404, 409, 413, 422):
        return json.dumps({"error": error.code, "message": error.message})
    raise error


def call(client: Atoll, session: str, name: str, arguments: dict[str, Any]) -> str:
    """Calls a tool, and returns its result as JSON."""
    try:
        return json.dumps(client.tools(session).call(name, arguments), ensure_ascii=False)
    except _errors.APIError as error:
        return mistake(error)


async def async_call(client: AsyncAtoll, session: str, name: str, arguments: dict[str, Any]) -> str:
    """Calls a tool, and returns its result as JSON."""
    try:
        return json.dumps(await client.tools(session).call(name, arguments), ensure_ascii=False)
    except _errors.APIError as error:
        return mistake(error)
