# Code generated from _async/place.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Which sandbox the operations of a handle are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from .._body import Content
from .._record import Record
from .resource import Resource
from .stream import Download
from .transport import Transport

if TYPE_CHECKING:
    import httpx

M = TypeVar("M", bound=Record)


class Place(Resource):
    """A sandbox by its name in a session, or by its id."""

    def __init__(self, transport: Transport, name: str, session: str | None) -> None:
        super().__init__(transport)
        self.transport = transport
        self.name = name
        self.session = session

    def query(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {"session": self.session, **(more or {})}

    def send(
        self, method: str, template: str, *names: str, query: Mapping[str, Any] | None = None, **how: Any
    ) -> httpx.Response:
        return self.transport.send(method, template, self.name, *names, query=self.query(query), **how)

    def one(
        self, kind: type[M], method: str, template: str, *names: str, query: Mapping[str, Any] | None = None, **how: Any
    ) -> M:
        return self._one(kind, method, template, self.name, *names, query=self.query(query), **how)

    def none(
        self, method: str, template: str, *names: str, query: Mapping[str, Any] | None = None, **how: Any
    ) -> None:
        self._none(method, template, self.name, *names, query=self.query(query), **how)

    def upload(
        self,
        kind: type[M],
        method: str,
        template: str,
        *names: str,
        content: Content,
        query: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> M:
        return self._upload(
            kind, method, template, self.name, *names, content=content, query=self.query(query), **how
        )

    def download(self, template: str, *names: str, query: Mapping[str, Any] | None = None) -> Download:
        return self._download(template, self.name, *names, query=self.query(query))
