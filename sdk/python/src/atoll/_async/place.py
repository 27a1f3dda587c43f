"""Which sandbox the operations of a handle are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from .._body import AsyncContent
from .._record import Record
from .resource import AsyncResource
from .stream import AsyncDownload
from .transport import AsyncTransport

if TYPE_CHECKING:
    import httpx

M = TypeVar("M", bound=Record)


class AsyncPlace(AsyncResource):
    """A sandbox by its name in a session, or by its id."""

    def __init__(self, transport: AsyncTransport, name: str, session: str | None) -> None:
        super().__init__(transport)
        self.transport = transport
        self.name = name
        self.session = session

    def query(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {"session": self.session, **(more or {})}

    async def send(
        self, method: str, template: str, *names: str, query: Mapping[str, Any] | None = None, **how: Any
    ) -> httpx.Response:
        return await self.transport.send(method, template, self.name, *names, query=self.query(query), **how)

    async def one(
        self, kind: type[M], method: str, template: str, *names: str, query: Mapping[str, Any] | None = None, **how: Any
    ) -> M:
        return await self._one(kind, method, template, self.name, *names, query=self.query(query), **how)

    async def none(
        self, method: str, template: str, *names: str, query: Mapping[str, Any] | None = None, **how: Any
    ) -> None:
        await self._none(method, template, self.name, *names, query=self.query(query), **how)

    async def upload(
        self,
        kind: type[M],
        method: str,
        template: str,
        *names: str,
        content: AsyncContent,
        query: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> M:
        return await self._upload(
            kind, method, template, self.name, *names, content=content, query=self.query(query), **how
        )

    def download(self, template: str, *names: str, query: Mapping[str, Any] | None = None) -> AsyncDownload:
        return self._download(template, self.name, *names, query=self.query(query))
