# Code generated from _async/resource.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""The base of all groups of operations: calls, lists, streams and downloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._body import Content, Body
from .._record import Record
from .._request import BYTES, CALL_TIMEOUT
from .stream import Download
from .transport import Transport, decode

if TYPE_CHECKING:
    import httpx

M = TypeVar("M", bound=Record)


class Page(Generic[M]):
    """A part of a list."""

    def __init__(self, kind: type[M], value: dict[str, Any], member: str = "data") -> None:
        self._value = value
        self.data = [kind(one) for one in value.get(member) or []]

    @property
    def next_page(self) -> str | None:
        """Cursor of the next part; None at the end."""
        value = self._value
        found = value["next_page"] if "next_page" in value else value.get("last_id") if value.get("has_more") else None
        return found if isinstance(found, str) else None

    def to_dict(self) -> dict[str, Any]:
        """The part as the server sent it."""
        return dict(self._value)


class Pager(Generic[M]):
    """A list. Iterate over it for all items; they are asked for a part at a time."""

    def __init__(
        self,
        transport: Transport,
        kind: type[M],
        template: str,
        names: tuple[str, ...],
        query: Mapping[str, Any],
        cursor: str,
        member: str,
        body: Mapping[str, Any] | None,
    ) -> None:
        self._transport = transport
        self._kind = kind
        self._template = template
        self._names = names
        self._query = dict(query)
        self._cursor = cursor
        self._member = member
        self._body = body

    def page(self, after: str | None = None) -> Page[M]:
        """One part: the first, or the one that next_page of another names."""
        query = self._query if after is None else {**self._query, self._cursor: after}
        if self._body is None:
            answer = self._transport.send("GET", self._template, *self._names, query=query)
        else:
            answer = self._transport.send("POST", self._template, *self._names, body=self._body, safe=True)
        return Page(self._kind, decode(answer), self._member)

    def all(self, limit: int | None = None) -> list[M]:
        """All items, or at most limit of them."""
        items: list[M] = []
        if limit is not None and limit <= 0:
            return items
        for item in self:
            items.append(item)
            if len(items) == limit:
                break
        return items

    def __iter__(self) -> Iterator[M]:
        page = self.page()
        while True:
            for item in page.data:
                yield item
            if page.next_page is None:
                return
            page = self.page(page.next_page)


class Resource:
    """A group of operations."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _one(self, kind: type[M], method: str, template: str, *names: str, **how: Any) -> M:
        return self._transport.one(kind, method, template, *names, **how)

    def _none(self, method: str, template: str, *names: str, **how: Any) -> None:
        self._transport.send(method, template, *names, **how)

    def _list(
        self,
        kind: type[M],
        template: str,
        *names: str,
        query: Mapping[str, Any] | None = None,
        cursor: str = "page",
        member: str = "data",
        body: Mapping[str, Any] | None = None,
    ) -> Pager[M]:
        """A list that is read by GET, or by POST where the request has a body."""
        return Pager(self._transport, kind, template, names, query or {}, cursor, member, body)

    def _download(
        self, template: str, *names: str, query: Mapping[str, Any] | None = None, accept: str = "*/*"
    ) -> Download:
        def connect(headers: dict[str, str]) -> httpx.Response:
            return self._transport.send(
                "GET", template, *names, query=query, headers=headers, accept=accept, stream=True
            )

        return Download(connect, self._transport.options.max_retries)

    def _upload(
        self,
        kind: type[M],
        method: str,
        template: str,
        *names: str,
        content: Content,
        query: Mapping[str, Any] | None = None,
        media: str = BYTES,
        safe: bool | None = None,
    ) -> M:
        body = Body(content)
        try:
            return self._transport.one(
                kind,
                method,
                template,
                *names,
                query=query,
                upload=body,
                headers={"Content-Type": media},
                timeout=CALL_TIMEOUT,
                safe=safe,
            )
        finally:
            body.close()
