# Code generated from _async/responses.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Answers of models, which may run code and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _errors, types
from .._clock import shield
from .._lines import SSEReader
from .._request import LONG_TIMEOUT, SSE
from .resource import Pager, Resource
from .stream import CANCEL_TIME, Download, Events
from .transport import Transport

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from .. import params
    from .._kinds import Connect, Leave, Position

LAST = frozenset(f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled"))


class ResponseEvents(Events[types.ResponseEvent]):
    """The events of a response; response is the latest state that came of it."""

    response: types.Response | None = None

    def _take(self, values: list[dict[str, Any]]) -> None:
        super()._take(values)
        for value in values:
            if value.get("response"):
                self.response = types.Response(value["response"])


class Responses(Resource):
    """Answers of models, which may run code and search."""

    def __init__(self, transport: Transport, path: str = "/v1/responses") -> None:
        super().__init__(transport)
        self._path = path
        self._each = path + "/{}"

    def create(self, **request: Unpack[params.CreateResponse]) -> types.Response:
        """Asks a model, and returns its response when that has ended; with background at once.
        A caller that leaves cancels a response that is not in the background."""
        body: dict[str, Any] = {**request, "stream": False}
        return self._one(types.Response, "POST", self._path, body=body, timeout=LONG_TIMEOUT)

    def stream(self, *, reconnect: bool | None = None, **request: Unpack[params.CreateResponse]) -> ResponseEvents:
        """Asks a model, and returns the events of its response as they happen. Leaving them
        before the end cancels the response, unless it is in the background."""
        body: dict[str, Any] = {**request, "stream": True}

        def connect(last: Position | None) -> httpx.Response:
            if last is not None and events.response is not None:
                return self._follow(events.response.id, last)
            return self._transport.send("POST", self._path, body=body, accept=SSE, stream=True)

        def leave() -> None:
            if events.response is not None:
                with shield(CANCEL_TIME):
                    self.cancel(events.response.id)

        # What is not in the background ends when its connection does: there is nothing to resume.
        background = bool(request.get("background"))
        events = self._events(connect, reconnect, resumes=background, leave=None if background else leave)
        return events

    def follow(
        self, response_id: str, *, starting_after: int | None = None, reconnect: bool | None = None
    ) -> ResponseEvents:
        """Returns the events of a response after the one with a sequence number, to its end."""

        def connect(last: Position | None) -> httpx.Response:
            return self._follow(response_id, last)

        return self._events(connect, reconnect, resumes=True, after=starting_after)

    def _follow(self, response_id: str, last: Position | None) -> httpx.Response:
        return self._transport.send(
            "GET", self._each, response_id, query={"stream": True, "starting_after": last}, accept=SSE, stream=True
        )

    def _events(
        self,
        connect: Connect,
        reconnect: bool | None,
        *,
        resumes: bool,
        after: int | None = None,
        leave: Leave | None = None,
    ) -> ResponseEvents:
        options = self._transport.options
        return ResponseEvents(
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

    def get(self, response_id: str) -> types.Response:
        """Shows a response as it is now."""
        return self._one(types.Response, "GET", self._each, response_id)

    def wait(self, response_id: str) -> types.Response:
        """Waits until a response has ended, and returns it."""
        try:
            with self.follow(response_id) as events:
                for _ in events:
                    pass
        except _errors.ValidationError:  # one without events, which has ended
            pass
        return self.get(response_id)

    def cancel(self, response_id: str) -> types.CancelledResponse:
        """Ends a response that is under way."""
        return self._one(types.CancelledResponse, "POST", self._each + "/cancel", response_id)

    def delete(self, response_id: str) -> types.DeletedResponse:
        """Deletes a response that has ended."""
        return self._one(types.DeletedResponse, "DELETE", self._each, response_id)

    def input_items(
        self, response_id: str, *, limit: int | None = None, order: str | None = None, after: str | None = None
    ) -> Pager[types.ResponseItem]:
        """Lists what a response was asked."""
        return self._list(
            types.ResponseItem,
            self._each + "/input_items",
            response_id,
            query={"limit": limit, "order": order, "after": after},
            cursor="after",
        )

    def files(self, response_id: str) -> Pager[types.ResponseFile]:
        """Lists the files that the model shared."""
        return self._list(types.ResponseFile, self._each + "/files", response_id)

    def file(self, response_id: str, file_id: str) -> Download:
        """Returns the bytes of a file that the model shared."""
        return self._download(self._each + "/files/{}/content", response_id, file_id)
