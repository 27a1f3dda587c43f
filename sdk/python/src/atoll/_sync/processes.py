# Code generated from _async/processes.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Processes in a named sandbox."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _errors, types
from .._clock import shield, whole
from .._request import NDJSON, SLACK, STREAM_TIMEOUT, given, milliseconds
from .._results import CommandResult, Output
from .place import Place
from .stream import CANCEL_TIME, Events

if TYPE_CHECKING:
    import httpx

    from .._kinds import Begin, Leave, Position

PROCESSES = "/v1/sandboxes/{}/processes"
PROCESS = "/v1/sandboxes/{}/processes/{}"


def command_of(command: str | Sequence[str]) -> dict[str, Any]:
    return {"command": command} if isinstance(command, str) else {"argv": list(command)}


class ProcessEvents(Events[types.ProcessEvent]):
    """The output of a process as it comes, and last how it ended."""

    exit: types.ProcessEvent | None = None

    def _note(self, value: dict[str, Any]) -> None:
        if value["type"] == "exit":
            self.exit = types.ProcessEvent(value)


class Process:
    """A process in a named sandbox. It goes on when its client leaves."""

    def __init__(self, place: Place, process_id: str, info: types.SandboxProcess | None = None) -> None:
        self._place = place
        self.id = process_id
        self.info = info
        """The process as it was when it was last asked for."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    def refresh(self) -> types.SandboxProcess:
        """Returns the process as it is now."""
        self.info = self._place.one(types.SandboxProcess, "GET", PROCESS, self.id)
        return self.info

    def output(
        self, *, after: int = 0, follow: bool = True, encoding: str | None = None, reconnect: bool | None = None
    ) -> ProcessEvents:
        """Returns output after a cursor, and what is to come, until the process has ended.

        encoding="base64" gives the bytes as they are. Without follow it ends with what there
        is now. Leaving it does not end the process.
        """

        def begin() -> Process:
            return self

        return output_of(self._place, begin, after=after, follow=follow, encoding=encoding, reconnect=reconnect)

    def wait(self, timeout: float | None = None) -> types.SandboxProcess:
        """Waits until the process has ended, or for so many seconds, and returns it."""
        left = timeout
        while True:
            part = 30.0 if left is None else min(left, 30.0)
            self.info = self._place.one(
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

    def write(self, data: str | bytes, *, close: bool = False) -> types.ProcessWritten:
        """Writes to the process's standard input, and closes it if asked to."""
        return self._place.upload(
            types.ProcessWritten,
            "POST",
            PROCESS + "/stdin",
            self.id,
            content=data,
            query={"close": close or None},
            safe=False,
        )

    def close_stdin(self) -> None:
        """Ends the process's standard input."""
        self.write(b"", close=True)

    def signal(self, name: str, *, group: bool | None = None) -> types.SandboxProcess:
        """Sends a signal, such as SIGINT."""
        self.info = self._place.one(
            types.SandboxProcess, "POST", PROCESS + "/signal", self.id, body=given(signal=name, group=group)
        )
        return self.info

    def kill(self) -> None:
        """Ends the process and all that it started, and forgets its output."""
        self._place.none("DELETE", PROCESS, self.id)


def output_of(
    place: Place,
    begin: Begin[Process],
    *,
    after: int = 0,
    follow: bool = True,
    encoding: str | None = None,
    reconnect: bool | None = None,
    leave: Leave | None = None,
) -> ProcessEvents:
    options = place.transport.options

    def connect(last: Position | None) -> httpx.Response:
        process = begin()
        query = {"after": last or None, "follow": follow, "encoding": encoding}
        return place.send("GET", PROCESS + "/output", process.id, query=query, accept=NDJSON, stream=True)

    return ProcessEvents(
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


class Processes:
    """The processes of a sandbox."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def __call__(self, process_id: str) -> Process:
        """Names a process, without a request."""
        return Process(self._place, process_id)

    def kill_all(self) -> None:
        """Kills every program in the sandbox, code contexts too. Files stay."""
        self._place.none("POST", PROCESSES + ":killall")

    def stream(
        self,
        command: str | Sequence[str],
        *,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> ProcessEvents:
        """Starts a command, and returns its output as it comes. Leaving it before its end
        ends the command; detach() lets it go on."""
        started: list[Process] = []

        def start() -> None:
            started.append(
                self.start(
                    command, working_dir=working_dir, env_vars=env_vars, timeout=timeout, wait_for_reader=True
                )
            )

        def begin() -> Process:
            if not started:
                whole(start)
            return started[0]

        def leave() -> None:
            if started:
                started[0].kill()

        return output_of(self._place, begin, leave=leave)

    def start(
        self,
        command: str | Sequence[str],
        *,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        stdin: bool | None = None,
        timeout: float | None = None,
        terminal: tuple[int, int] | None = None,
        wait_for_reader: bool | None = None,
    ) -> Process:
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
        info = self._place.one(types.SandboxProcess, "POST", PROCESSES, body=body)
        return Process(self._place, info.process_id, info)

    def get(self, process_id: str) -> Process:
        """Returns a process by its id."""
        process = Process(self._place, process_id)
        process.refresh()
        return process

    def list(self) -> list[types.SandboxProcess]:
        """Lists the processes that were started here."""
        return (self._place.one(types.SandboxProcesses, "GET", PROCESSES)).data

    def run(
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
        started: list[Process] = []

        def start() -> None:
            started.append(
                self.start(
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
            whole(start)
            process = started[0]
            if stdin is not None:
                process.write(stdin, close=True)
            with process.output(encoding="base64") as events:
                for event in events:
                    if event.type == "output":
                        data = base64.b64decode(event.data or "")
                        pieces.setdefault(event.stream or "stdout", []).append(data)
                        if on_output:
                            on_output(Output(event.stream or "stdout", data))
        except BaseException:
            with shield(CANCEL_TIME):
                try:
                    for one in started:
                        one.kill()
                except _errors.AtollError:
                    pass  # it has ended, or the server is away
            raise
        end = events.exit
        if end is None:
            raise _errors.StreamBroken("the sandbox stopped before the command had ended", events.last)
        with shield(STREAM_TIMEOUT):
            try:
                process.kill()  # it has ended: only its output is let go
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
