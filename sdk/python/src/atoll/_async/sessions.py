"""Sessions: conversations with an agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .. import _errors, types
from .._clock import async_shield
from .._lines import SSEReader
from .._request import LONG_TIMEOUT, SSE
from .._results import SessionStreamed
from .resource import AsyncPager, AsyncResource
from .stream import CANCEL_TIME, AsyncDownload, AsyncEvents
from .transport import decode

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from .. import params
    from .._kinds import AsyncConnect, Position

SESSIONS = "/v1/sessions"
SESSION = "/v1/sessions/{}"
THREAD = "/v1/sessions/{}/threads/{}"
ENDED = frozenset(["archived"])
THREAD_ENDED = frozenset(["idle", "terminated"])


class AsyncSessionEvents(AsyncEvents[SessionStreamed]):
    """Events of a session. With deltas there are pieces of those to come, of the type delta,
    with of, text and item_id."""


class AsyncTurnEvents(AsyncSessionEvents):
    """The events of one turn. Where no turn begins, as other calls wait for answers, too, or
    the message is queued, there are none, and turn says so."""

    turn: types.SessionTurn | None = None

    def _is_last(self, value: dict[str, Any]) -> bool:
        return value.get("status") != "running"


class AsyncSessions(AsyncResource):
    """Conversations with an agent."""

    async def create(self, **session: Unpack[params.NewSession]) -> types.Session:
        """Begins a session with an agent, by its id or slug."""
        return await self._one(types.Session, "POST", SESSIONS, body=session)

    def list(
        self,
        *,
        agent_id: str | None = None,
        include_archived: bool | None = None,
        limit: int | None = None,
        page: str | None = None,
    ) -> AsyncPager[types.Session]:
        """Lists sessions, the newest first."""
        return self._list(
            types.Session,
            SESSIONS,
            query={"agent_id": agent_id, "include_archived": include_archived, "limit": limit, "page": page},
        )

    async def get(self, session_id: str) -> types.Session:
        """Shows a session."""
        return await self._one(types.Session, "GET", SESSION, session_id)

    async def update(self, session_id: str, **change: Unpack[params.SessionChange]) -> types.Session:
        """Changes a session's title, metadata, or budget."""
        return await self._one(types.Session, "PATCH", SESSION, session_id, body=change)

    async def archive(self, session_id: str) -> types.Session:
        """Ends a session; it can be read from then on."""
        return await self._one(types.Session, "POST", SESSION + "/archive", session_id, timeout=LONG_TIMEOUT)

    async def delete(self, session_id: str) -> None:
        """Deletes a session with its events and sandboxes."""
        await self._none("DELETE", SESSION, session_id, timeout=LONG_TIMEOUT)

    async def interrupt(self, session_id: str) -> types.Session:
        """Ends the turn that is under way, or the wait for answers."""
        return await self._one(types.Session, "POST", SESSION + "/interrupt", session_id)

    async def context(self, session_id: str) -> types.SessionContext:
        """Shows what the model is told before the conversation."""
        return await self._one(types.SessionContext, "GET", SESSION + "/context", session_id)

    async def send(
        self, session_id: str, *, wait: bool = True, **event: Unpack[params.NewSessionEvent]
    ) -> types.SessionTurn:
        """Sends a message, an outcome, or an answer to a call; returns when the turn has ended,
        or at once without wait. A caller that is cancelled meanwhile, or whose request_timeout
        is over, interrupts the turn."""
        headers = None if wait else {"Prefer": "respond-async"}
        try:
            return await self._one(
                types.SessionTurn,
                "POST",
                SESSION + "/events",
                session_id,
                body=event,
                headers=headers,
                timeout=LONG_TIMEOUT,
            )
        except _errors.RequestTimeout:
            await self._abandon(session_id)
            raise
        except Exception:
            raise
        except BaseException:  # the caller was cancelled
            await self._abandon(session_id)
            raise

    async def _abandon(self, session_id: str) -> None:
        async with async_shield(CANCEL_TIME):
            try:
                await self._transport.send("POST", SESSION + "/interrupt", session_id, timeout=CANCEL_TIME)
            except _errors.AtollError:
                pass  # the turn has ended, or the server is away

    async def message(self, session_id: str, content: str, *, wait: bool = True) -> types.SessionTurn:
        """Sends a message: send with its type and role."""
        return await self.send(session_id, wait=wait, type="message", role="user", content=content)

    def stream(
        self,
        session_id: str,
        *,
        deltas: bool | None = None,
        reconnect: bool | None = None,
        **event: Unpack[params.NewSessionEvent],
    ) -> AsyncTurnEvents:
        """Sends a message, an outcome, or an answer to a call, and returns the events of its
        turn as they happen. Leaving them before the end interrupts the turn; detach() lets it
        go on."""

        async def connect(last: Position | None) -> httpx.Response:
            if last is not None:
                return await self._follow(SESSION + "/events/stream", (session_id,), last, deltas)
            response = await self._transport.send(
                "POST", SESSION + "/events", session_id, query={"deltas": deltas}, body=event, accept=SSE, stream=True
            )
            if response.headers.get("content-type", "").startswith("application/json"):
                events.turn = types.SessionTurn(json.loads(await response.aread()))
                events.ended = True
            return response

        async def leave() -> None:
            await self._abandon(session_id)

        options = self._transport.options
        events = AsyncTurnEvents(
            SessionStreamed,
            connect,
            key="id",
            ends=["status"],
            reader=SSEReader,
            resumes=options.reconnect if reconnect is None else reconnect,
            max_retries=options.max_retries,
            leave=leave,
        )
        return events

    def follow(
        self, session_id: str, *, after: str | None = None, deltas: bool | None = None, reconnect: bool | None = None
    ) -> AsyncSessionEvents:
        """Returns the events of a session after the one with an id, and those to come, until
        the session is archived or deleted."""

        async def connect(last: Position | None) -> httpx.Response:
            return await self._follow(SESSION + "/events/stream", (session_id,), last, deltas)

        return self._events(connect, reconnect, after, SESSION, (session_id,), ENDED)

    async def _follow(
        self, template: str, names: tuple[str, ...], last: Position | None, deltas: bool | None
    ) -> httpx.Response:
        return await self._transport.send(
            "GET", template, *names, query={"deltas": deltas, "after": last or None}, accept=SSE, stream=True
        )

    def _events(
        self,
        connect: AsyncConnect,
        reconnect: bool | None,
        after: str | None,
        template: str,
        names: tuple[str, ...],
        ended: frozenset[str],
    ) -> AsyncSessionEvents:
        options = self._transport.options

        async def over() -> bool:
            try:
                state = await self._transport.send("GET", template, *names)
            except _errors.NotFound:
                return True
            return decode(state).get("status") in ended

        return AsyncSessionEvents(
            SessionStreamed,
            connect,
            key="id",
            reader=SSEReader,
            resumes=options.reconnect if reconnect is None else reconnect,
            max_retries=options.max_retries,
            after=after,
            over=over,
        )

    def events(
        self,
        session_id: str,
        *,
        order: str | None = None,
        types_: str | None = None,
        limit: int | None = None,
        page: str | None = None,
    ) -> AsyncPager[types.SessionEvent]:
        """Lists the events of a session."""
        return self._list(
            types.SessionEvent,
            SESSION + "/events",
            session_id,
            query={"order": order, "types": types_, "limit": limit, "page": page},
        )

    def files(self, session_id: str, *, limit: int | None = None) -> AsyncPager[types.SessionFile]:
        """Lists what the agents of a session have shared."""
        return self._list(types.SessionFile, SESSION + "/files", session_id, query={"limit": limit})

    def file(self, session_id: str, file_id: str) -> AsyncDownload:
        """Returns the bytes of a shared file."""
        return self._download(SESSION + "/files/{}/content", session_id, file_id)

    def threads(self, session_id: str, *, limit: int | None = None) -> AsyncPager[types.SessionThread]:
        """Lists the work that was handed on."""
        return self._list(types.SessionThread, SESSION + "/threads", session_id, query={"limit": limit})

    async def thread(self, session_id: str, thread_id: str) -> types.SessionThread:
        """Shows work that was handed on."""
        return await self._one(types.SessionThread, "GET", THREAD, session_id, thread_id)

    def thread_events(
        self,
        session_id: str,
        thread_id: str,
        *,
        order: str | None = None,
        types_: str | None = None,
        limit: int | None = None,
    ) -> AsyncPager[types.SessionEvent]:
        """Lists the events of a thread."""
        return self._list(
            types.SessionEvent,
            THREAD + "/events",
            session_id,
            thread_id,
            query={"order": order, "types": types_, "limit": limit},
        )

    def follow_thread(
        self,
        session_id: str,
        thread_id: str,
        *,
        after: str | None = None,
        deltas: bool | None = None,
        reconnect: bool | None = None,
    ) -> AsyncSessionEvents:
        """Returns the events of a thread as they happen, until it has ended."""

        async def connect(last: Position | None) -> httpx.Response:
            return await self._follow(THREAD + "/events/stream", (session_id, thread_id), last, deltas)

        return self._events(connect, reconnect, after, THREAD, (session_id, thread_id), THREAD_ENDED)
