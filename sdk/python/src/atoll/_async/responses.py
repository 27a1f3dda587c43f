"""Answers of models, which may run code and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _errors, types
from .._clock import async_shield
from .._lines import SSEReader
from .._request import LONG_TIMEOUT, SSE
from .resource import AsyncPager, AsyncResource
from .stream import CANCEL_TIME, AsyncDownload, AsyncEvents
from .transport import AsyncTransport

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from .. import params
    from .._kinds import AsyncConnect, AsyncLeave, Position

LAST = frozenset(f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled"))


class AsyncResponseEvents(AsyncEvents[types.ResponseEvent]):
    """The events of a response; response is the latest state that came of it."""

    response: types.Response | None = None

    def _take(self, values: list[dict[str, Any]]) -> None:
        super()._take(values)
        for value in values:
            if value.get("response"):
                self.response = types.Response(value["response"])


class AsyncResponses(AsyncResource):
    """Answers of models, which may run code and search."""

    def __init__(self, transport: AsyncTransport, path: str = "/v1/responses") -> None:
        super().__init__(transport)
        self._path = path
        self._each = path + "/{}"

    async def create(self, **request: Unpack[params.CreateResponse]) -> types.Response:
        """Asks a model, and returns its response when that has ended; with background at once.
        A caller that leaves cancels a response that is not in the background."""
        body: dict[str, Any] = {**request, "stream": False}
        return await self._one(types.Response, "POST", self._path, body=body, timeout=LONG_TIMEOUT)

    def stream(self, *, reconnect: bool | None = None, **request: Unpack[params.CreateResponse]) -> AsyncResponseEvents:
        """Asks a model, and returns the events of its response as they happen. Leaving them
        before the end cancels the response, unless it is in the background."""
        body: dict[str, Any] = {**request, "stream": True}

        async def connect(last: Position | None) -> httpx.Response:
            if last is not None and events.response is not None:
                return await self._follow(events.response.id, last)
            return await self._transport.send("POST", self._path, body=body, accept=SSE, stream=True)

        async def leave() -> None:
            if events.response is not None:
                async with async_shield(CANCEL_TIME):
                    await self.cancel(events.response.id)

        # What is not in the background ends when its connection does: there is nothing to resume.
        background = bool(request.get("background"))
        events = self._events(connect, reconnect, resumes=background, leave=None if background else leave)
        return events

    def follow(
        self, response_id: str, *, starting_after: int | None = None, reconnect: bool | None = None
    ) -> AsyncResponseEvents:
        """Returns the events of a response after the one with a sequence number, to its end."""

        async def connect(last: Position | None) -> httpx.Response:
            return await self._follow(response_id, last)

        return self._events(connect, reconnect, resumes=True, after=starting_after)

    async def _follow(self, response_id: str, last: Position | None) -> httpx.Response:
        return await self._transport.send(
            "GET", self._each, response_id, query={"stream": True, "starting_after": last}, accept=SSE, stream=True
        )

    def _events(
        self,
        connect: AsyncConnect,
        reconnect: bool | None,
        *,
        resumes: bool,
        after: int | None = None,
        leave: AsyncLeave | None = None,
    ) -> AsyncResponseEvents:
        options = self._transport.options
        return AsyncResponseEvents(
            types.ResponseEvent,
            connect,
            key="sequence_number",
            ends=LAST,
            reader=SSEReader,
            resumes=resumes and (options.reconnect if reconnect is None else reconnect),
            max_retries=options.max_retries,
            after=after,
            leave=leave,
        )

    async def get(self, response_id: str) -> types.Response:
        """Shows a response as it is now."""
        return await self._one(types.Response, "GET", self._each, response_id)

    async def wait(self, response_id: str) -> types.Response:
        """Waits until a response has ended, and returns it."""
        try:
            async with self.follow(response_id) as events:
                async for _ in events:
                    pass
        except _errors.ValidationError:  # one without events, which has ended
            pass
        return await self.get(response_id)

    async def cancel(self, response_id: str) -> types.CancelledResponse:
        """Ends a response that is under way."""
        return await self._one(types.CancelledResponse, "POST", self._each + "/cancel", response_id)

    async def delete(self, response_id: str) -> types.DeletedResponse:
        """Deletes a response that has ended."""
        return await self._one(types.DeletedResponse, "DELETE", self._each, response_id)

    def input_items(
        self, response_id: str, *, limit: int | None = None, order: str | None = None, after: str | None = None
    ) -> AsyncPager[types.ResponseItem]:
        """Lists what a response was asked."""
        return self._list(
            types.ResponseItem,
            self._each + "/input_items",
            response_id,
            query={"limit": limit, "order": order, "after": after},
            cursor="after",
        )

    def files(self, response_id: str) -> AsyncPager[types.ResponseFile]:
        """Lists the files that the model shared."""
        return self._list(types.ResponseFile, self._each + "/files", response_id)

    def file(self, response_id: str, file_id: str) -> AsyncDownload:
        """Returns the bytes of a file that the model shared."""
        return self._download(self._each + "/files/{}/content", response_id, file_id)
