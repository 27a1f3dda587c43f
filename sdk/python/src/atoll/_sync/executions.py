# Code generated from _async/executions.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Programs that run in sandboxes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _errors, types
from .._clock import shield
from .._request import NDJSON, SLACK, new_key
from .._results import Result
from .resource import Pager, Resource
from .stream import CANCEL_TIME, Download, Events

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from .._kinds import Connect, Leave, Position
    from .._program import Program

EXECUTE = "/v1/sandbox/execute"
OUTPUT = "/v1/executions/{}/output"
ASYNC = {"Prefer": "respond-async"}


class ExecutionEvents(Events[types.Event]):
    """The events of an execution; result is there after the last one."""

    trace_id: str | None = None
    result: types.ExecuteResponse | None = None
    status: str | None = None
    """How the execution ended: success, failed, timeout or cancelled."""

    def _note(self, value: dict[str, Any]) -> None:
        self.result, self.status = types.ExecuteResponse(value["result"]), value["status"]

    def wait(self) -> types.ExecuteResponse:
        """Reads to the end, and returns the result."""
        for _ in self:
            pass
        if self.result is None:
            raise _errors.StreamBroken("the stream has no result left to tell; ask for the record", self.last)
        return self.result


class Executions(Resource):
    """Programs that run in sandboxes of their own."""

    def create(self, code: str, *, idempotency_key: str | None = None, **program: Unpack[Program]) -> Result:
        """Runs code and returns its result when it has ended.

        A program that fails is no error: look at success and exit_code. A program that runs
        longer than its timeout raises ExecutionTimeout. A caller that is cancelled, or whose
        request_timeout is over, ends the program.
        """
        key = idempotency_key or new_key()
        body = {"code": code, **program}
        timeout = float(program.get("timeout") or 60) + SLACK
        try:
            response = self._transport.send("POST", EXECUTE, body=body, key=key, timeout=timeout)
        except _errors.RequestTimeout:
            self._abandon(body, key)
            raise
        except Exception:
            raise
        except BaseException:  # the caller was cancelled
            self._abandon(body, key)
            raise
        return Result.of(response)

    def _abandon(self, body: dict[str, Any], key: str) -> None:
        """Cancels the execution that was asked for with a key: the same request names it."""
        with shield(CANCEL_TIME):
            try:
                try:
                    response = self._transport.send(
                        "POST", EXECUTE, body=body, key=key, headers=ASYNC, timeout=CANCEL_TIME
                    )
                except _errors.RateLimited:  # a plan without asynchronous delivery
                    response = self._transport.send(
                        "POST", EXECUTE, body=body, key=key, accept=NDJSON, stream=True
                    )
                    response.close()
                self._transport.send(
                    "POST", "/v1/executions/{}/cancel", response.headers["x-trace-id"], timeout=CANCEL_TIME
                )
            except (_errors.AtollError, KeyError):
                pass  # it has ended, or the server is away

    def stream(
        self,
        code: str,
        *,
        idempotency_key: str | None = None,
        reconnect: bool | None = None,
        **program: Unpack[Program],
    ) -> ExecutionEvents:
        """Runs code and returns its events as they happen.

        Leaving the stream before its end cancels the execution; detach() lets it go on.
        """
        key = idempotency_key or new_key()
        body = {"code": code, **program}

        def begin(last: Position | None) -> httpx.Response:
            if last is not None and events.trace_id is not None:
                return self._follow(events.trace_id, last)
            return self._transport.send("POST", EXECUTE, body=body, key=key, accept=NDJSON, stream=True)

        def leave() -> None:
            if events.trace_id is None:
                self._abandon(body, key)
            else:
                self.cancel(events.trace_id)

        events = self._events(begin, reconnect, leave=leave)
        return events

    def follow(self, trace_id: str, *, after: int = 0, reconnect: bool | None = None) -> ExecutionEvents:
        """Returns the events of an execution after the one with a seq, and those to come.
        Leaving them ends nothing."""

        def begin(last: Position | None) -> httpx.Response:
            return self._follow(trace_id, last)

        events = self._events(begin, reconnect, after=after)
        events.trace_id = trace_id
        return events

    def _follow(self, trace_id: str, last: Position | None) -> httpx.Response:
        return self._transport.send(
            "GET", OUTPUT, trace_id, query={"after": last or None}, accept=NDJSON, stream=True
        )

    def _events(
        self, begin: Connect, reconnect: bool | None, leave: Leave | None = None, after: int | None = None
    ) -> ExecutionEvents:
        options = self._transport.options

        def opened(response: httpx.Response) -> None:
            if events.trace_id is None:
                events.trace_id = response.headers.get("x-trace-id")

        events = ExecutionEvents(
            types.Event,
            begin,
            key="seq",
            ends=["result"],
            resumes=options.reconnect if reconnect is None else reconnect,
            max_retries=options.max_retries,
            opened=opened,
            leave=leave,
            after=after,
        )
        return events

    def start(
        self,
        code: str,
        *,
        webhook_url: str | None = None,
        idempotency_key: str | None = None,
        **program: Unpack[Program],
    ) -> types.AcceptedResponse:
        """Begins to run code, and returns at once. Its end is told to webhook_url, and by
        wait, follow and get."""
        body = {"code": code, **program}
        if webhook_url is not None:
            body["webhook_url"] = webhook_url
        return self._one(types.AcceptedResponse, "POST", EXECUTE, body=body, key=idempotency_key, headers=ASYNC)

    def wait(self, trace_id: str) -> types.Execution:
        """Waits for the end of an execution, and returns its record."""
        with self.follow(trace_id) as events:
            for _ in events:
                pass
        return self.get(trace_id)

    def get(self, trace_id: str) -> types.Execution:
        """Returns the record of an execution, with its output."""
        return self._one(types.Execution, "GET", "/v1/executions/{}", trace_id)

    def list(
        self,
        *,
        status: str | None = None,
        language: str | None = None,
        thread_id: str | None = None,
        key: str | None = None,
        metadata: dict[str, str] | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        page: str | None = None,
    ) -> Pager[types.ExecutionSummary]:
        """Lists executions, the newest first. All filters must match."""
        query: dict[str, Any] = {"status": status, "language": language, "thread_id": thread_id, "key": key}
        query.update({f"metadata.{name}": value for name, value in (metadata or {}).items()})
        query.update(since=since, before=before, limit=limit, page=page)
        return self._list(types.ExecutionSummary, "/v1/executions", query=query)

    def cancel(self, trace_id: str) -> types.Execution:
        """Ends a running execution, and returns its record."""
        return self._one(types.Execution, "POST", "/v1/executions/{}/cancel", trace_id)

    def delete(self, trace_id: str) -> None:
        """Deletes an execution that has ended, with its output and files."""
        self._none("DELETE", "/v1/executions/{}", trace_id)

    def output(self, trace_id: str, stream: str = "stdout") -> Download:
        """Returns the whole of stdout or stderr of an execution that has ended."""
        return self._download(OUTPUT, trace_id, query={"stream": stream})

    def file(self, trace_id: str, path: str) -> Download:
        """Returns a file that an execution gave back."""
        return self._download("/v1/executions/{}/file", trace_id, query={"path": path})
