"""Processes in a named sandbox."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _errors, types
from .._clock import async_shield, async_whole
from .._request import NDJSON, SLACK, STREAM_TIMEOUT, given, milliseconds
from .._results import CommandResult, Output
from .place import AsyncPlace
from .stream import CANCEL_TIME, AsyncEvents

if TYPE_CHECKING:
    import httpx

    from .._kinds import AsyncBegin, AsyncLeave, Position

PROCESSES = "/v1/sandboxes/{}/processes"
PROCESS = "/v1/sandboxes/{}/processes/{}"


def command_of(command: str | Sequence[str]) -> dict[str, Any]:
    return {"command": command} if isinstance(command, str) else {"argv": list(command)}


class AsyncProcessEvents(AsyncEvents[types.ProcessEvent]):
    """The output of a process as it comes, and last how it ended."""

    exit: types.ProcessEvent | None = None

    def _note(self, value: dict[str, Any]) -> None:
        if value["type"] == "exit":
            self.exit = types.ProcessEvent(value)


class AsyncProcess:
    """A process in a named sandbox. It goes on when its client leaves."""

    def __init__(self, place: AsyncPlace, process_id: str, info: types.SandboxProcess | None = None) -> None:
        self._place = place
        self.id = process_id
        self.info = info
        """The process as it was when it was last asked for."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def refresh(self) -> types.SandboxProcess:
        """Returns the process as it is now."""
        self.info = await self._place.one(types.SandboxProcess, "GET", PROCESS, self.id)
        return self.info

    def output(
        self, *, after: int = 0, follow: bool = True, encoding: str | None = None, reconnect: bool | None = None
    ) -> AsyncProcessEvents:
        """Returns output after a cursor, and what is to come, until the process has ended.

        encoding="base64" gives the bytes as they are. Without follow it ends with what there
        is now. Leaving it does not end the process.
        """

        async def begin() -> AsyncProcess:
            return self

        return output_of(self._place, begin, after=after, follow=follow, encoding=encoding, reconnect=reconnect)

    async def wait(self, timeout: float | None = None) -> types.SandboxProcess:
        """Waits until the process has ended, or for so many seconds, and returns it."""
        left = timeout
        while True:
            part = 30.0 if left is None else min(left, 30.0)
            self.info = await self._place.one(
                types.SandboxProcess,
                "GET",
                PROCESS + "/wait",
                self.id,
                query={"timeout_ms": milliseconds(part)},
                timeout=part + SLACK,
            )
            left = None if left is None else left - part
            if self.info.state == "exited" or (left is not None and left <= 0):
                return self.info

    async def write(self, data: str | bytes, *, close: bool = False) -> types.ProcessWritten:
        """Writes to the process's standard input, and closes it if asked to."""
        return await self._place.upload(
            types.ProcessWritten,
            "POST",
            PROCESS + "/stdin",
            self.id,
            content=data,
            query={"close": close or None},
            safe=False,
        )

    async def close_stdin(self) -> None:
        """Ends the process's standard input."""
        await self.write(b"", close=True)

    async def signal(self, name: str, *, group: bool | None = None) -> types.SandboxProcess:
        """Sends a signal, such as SIGINT."""
        self.info = await self._place.one(
            types.SandboxProcess, "POST", PROCESS + "/signal", self.id, body=given(signal=name, group=group)
        )
        return self.info

    async def kill(self) -> None:
        """Ends the process and all that it started, and forgets its output."""
        await self._place.none("DELETE", PROCESS, self.id)


def output_of(
    place: AsyncPlace,
    begin: AsyncBegin[AsyncProcess],
    *,
    after: int = 0,
    follow: bool = True,
    encoding: str | None = None,
    reconnect: bool | None = None,
    leave: AsyncLeave | None = None,
) -> AsyncProcessEvents:
    options = place.transport.options

    async def connect(last: Position | None) -> httpx.Response:
        process = await begin()
        query = {"after": last or None, "follow": follow, "encoding": encoding}
        return await place.send("GET", PROCESS + "/output", process.id, query=query, accept=NDJSON, stream=True)

    return AsyncProcessEvents(
        types.ProcessEvent,
        connect,
        key="cursor",
        ends=["exit", "stopped"],
        resumes=options.reconnect if reconnect is None else reconnect,
        endless=not follow,
        max_retries=options.max_retries,
        after=after,
        leave=leave,
        step=0,
    )


class AsyncProcesses:
    """The processes of a sandbox."""

    def __init__(self, place: AsyncPlace) -> None:
        self._place = place

    def __call__(self, process_id: str) -> AsyncProcess:
        """Names a process, without a request."""
        return AsyncProcess(self._place, process_id)

    async def kill_all(self) -> None:
        """Kills every program in the sandbox, code contexts too. Files stay."""
        await self._place.none("POST", PROCESSES + ":killall")

    def stream(
        self,
        command: str | Sequence[str],
        *,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AsyncProcessEvents:
        """Starts a command, and returns its output as it comes. Leaving it before its end
        ends the command; detach() lets it go on."""
        started: list[AsyncProcess] = []

        async def start() -> None:
            started.append(
                await self.start(
                    command, working_dir=working_dir, env_vars=env_vars, timeout=timeout, wait_for_reader=True
                )
            )

        async def begin() -> AsyncProcess:
            if not started:
                await async_whole(start)
            return started[0]

        async def leave() -> None:
            if started:
                await started[0].kill()

        return output_of(self._place, begin, leave=leave)

    async def start(
        self,
        command: str | Sequence[str],
        *,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        stdin: bool | None = None,
        timeout: float | None = None,
        terminal: tuple[int, int] | None = None,
        wait_for_reader: bool | None = None,
    ) -> AsyncProcess:
        """Starts a process in the background.

        command is run by the shell if it is a text, and as it is if it is a list. terminal is
        (rows, columns). With wait_for_reader the process waits for readers of its output
        rather than that any is lost.
        """
        body = command_of(command) | given(
            working_dir=working_dir,
            env_vars=None if env_vars is None else dict(env_vars),
            stdin=stdin,
            timeout_ms=milliseconds(timeout),
            terminal=None if terminal is None else {"rows": terminal[0], "columns": terminal[1]},
            wait_for_reader=wait_for_reader,
        )
        info = await self._place.one(types.SandboxProcess, "POST", PROCESSES, body=body)
        return AsyncProcess(self._place, info.process_id, info)

    async def get(self, process_id: str) -> AsyncProcess:
        """Returns a process by its id."""
        process = AsyncProcess(self._place, process_id)
        await process.refresh()
        return process

    async def list(self) -> list[types.SandboxProcess]:
        """Lists the processes that were started here."""
        return (await self._place.one(types.SandboxProcesses, "GET", PROCESSES)).data

    async def run(
        self,
        command: str | Sequence[str],
        *,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        timeout: float | None = None,
        on_output: Callable[[Output], object] | None = None,
    ) -> CommandResult:
        """Runs a command to its end, and returns what it wrote.

        A caller that is cancelled ends it. on_output is called with each piece of output as
        it comes.
        """
        started: list[AsyncProcess] = []

        async def start() -> None:
            started.append(
                await self.start(
                    command,
                    working_dir=working_dir,
                    env_vars=env_vars,
                    stdin=stdin is not None or None,
                    timeout=timeout,
                    wait_for_reader=True,
                )
            )

        pieces: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        try:
            await async_whole(start)
            process = started[0]
            if stdin is not None:
                await process.write(stdin, close=True)
            async with process.output(encoding="base64") as events:
                async for event in events:
                    if event.type == "output":
                        data = base64.b64decode(event.data or "")
                        pieces.setdefault(event.stream or "stdout", []).append(data)
                        if on_output:
                            on_output(Output(event.stream or "stdout", data))
        except BaseException:
            async with async_shield(CANCEL_TIME):
                try:
                    for one in started:
                        await one.kill()
                except _errors.AtollError:
                    pass  # it has ended, or the server is away
            raise
        end = events.exit
        if end is None:
            raise _errors.StreamBroken("the sandbox stopped before the command had ended", events.last)
        async with async_shield(STREAM_TIMEOUT):
            try:
                await process.kill()  # it has ended: only its output is let go
            except _errors.NotFound:
                pass
        return CommandResult(
            stdout=b"".join(pieces["stdout"]).decode("utf-8", "replace"),
            stderr=b"".join(pieces["stderr"]).decode("utf-8", "replace"),
            exit_code=end.exit_code if end.exit_code is not None else -1,
            timed_out=bool(end.timed_out),
            signal=end.signal,
            reason=end.reason or end.blocked,
        )
