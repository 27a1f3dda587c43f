# Code generated from _async/sandboxes.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Named sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import types
from .._request import LONG_TIMEOUT, given, milliseconds
from .._results import CodeResult, CommandResult, Output
from .contexts import Contexts
from .place import Place
from .processes import Process, Processes
from .resource import Pager, Resource
from .sandbox_files import SandboxFiles
from .terminal import Terminal, open_terminal
from .transport import Transport, decode

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .. import params
    from .._program import SandboxSettings

SANDBOX = "/v1/sandboxes/{}"


def new_sandbox(name: str, session: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    body = dict(settings)
    for field in ("sleep_after", "timeout"):
        if field in body:
            body[f"{field}_ms"] = milliseconds(body.pop(field))
    return given(name=name, session=session, **body)


class Sandbox:
    """A named sandbox. Its name is one in a session, or its id.

    As a context manager it makes the sandbox if there is none, and at the end destroys the
    one that it made; one that was there stays.
    """

    def __init__(
        self,
        transport: Transport,
        name: str,
        session: str | None,
        settings: Mapping[str, Any] | None = None,
        info: types.Sandbox | None = None,
    ) -> None:
        self._place = Place(transport, name, session)
        self._settings = dict(settings or {})
        self.info = info
        """The sandbox as it was when it was last asked for."""
        self.created = False
        """Whether create has made it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """Name or id of the sandbox."""
        return self._place.name

    @cached_property
    def files(self) -> SandboxFiles:
        """Its files."""
        return SandboxFiles(self._place)

    @cached_property
    def processes(self) -> Processes:
        """Its processes."""
        return Processes(self._place)

    @cached_property
    def contexts(self) -> Contexts:
        """Its code contexts."""
        return Contexts(self._place)

    def create(self) -> types.Sandbox:
        """Makes it, or finds the one that has the name."""
        body = new_sandbox(self.name, self._place.session, self._settings)
        response = self._place.transport.send("POST", "/v1/sandboxes", body=body, timeout=LONG_TIMEOUT, safe=True)
        self.created = response.status_code == 201
        self.info = types.Sandbox(decode(response))
        return self.info

    def __enter__(self) -> Self:
        self.create()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.created:
            self.delete()

    def refresh(self) -> types.Sandbox:
        """Returns the sandbox as it is now, without waking it."""
        return self._changed("GET", SANDBOX)

    def _changed(self, method: str, template: str, **how: Any) -> types.Sandbox:
        self.info = self._place.one(types.Sandbox, method, template, **how)
        return self.info

    def delete(self) -> None:
        """Destroys it."""
        self._place.none("DELETE", SANDBOX, timeout=LONG_TIMEOUT)

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
        """Runs a command to its end: processes.run."""
        return self.processes.run(
            command, working_dir=working_dir, env_vars=env_vars, stdin=stdin, timeout=timeout, on_output=on_output
        )

    def start(
        self,
        command: str | Sequence[str],
        *,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        stdin: bool | None = None,
        timeout: float | None = None,
        wait_for_reader: bool | None = None,
    ) -> Process:
        """Starts a process in the background: processes.start."""
        return self.processes.start(
            command,
            working_dir=working_dir,
            env_vars=env_vars,
            stdin=stdin,
            timeout=timeout,
            wait_for_reader=wait_for_reader,
        )

    def run_code(self, code: str, *, language: str = "python", timeout: float | None = None) -> CodeResult:
        """Runs code in the context of a language: contexts.run."""
        return self.contexts.run(code, context=language, timeout=timeout)

    def sleep(self) -> types.Sandbox:
        """Puts it to sleep at once; its next use wakes it."""
        return self._changed("POST", SANDBOX + "/sleep", timeout=LONG_TIMEOUT)

    def restart(self) -> types.Sandbox:
        """Ends the sandbox's processes and restarts it with its files.

        The sandbox gets its environment's current image, limits and network.
        """
        return self._changed("POST", SANDBOX + "/restart", timeout=LONG_TIMEOUT)

    def fork(self, count: int = 1) -> list[Sandbox]:
        """Copies it, with its processes."""
        made = self._place.one(
            types.SandboxList, "POST", SANDBOX + "/fork", query={"count": count}, timeout=LONG_TIMEOUT
        )
        return [Sandbox(self._place.transport, one.sandbox_id, None, info=one) for one in made.data]

    def snapshot(self, *, keep: float | None = None) -> types.Snapshot:
        """Keeps it as it is now, for so many seconds."""
        return self._place.one(
            types.Snapshot, "POST", SANDBOX + "/snapshots", query={"keep_ms": milliseconds(keep)}, timeout=LONG_TIMEOUT
        )

    def set_timeout(self, *, timeout: float | None = None, sleep_after: float | None = None) -> types.Sandbox:
        """Says when it is destroyed, in seconds from now, and when it sleeps."""
        return self._changed(
            "PUT",
            SANDBOX + "/timeout",
            body=given(timeout_ms=milliseconds(timeout), sleep_after_ms=milliseconds(sleep_after)),
        )

    def set_network(self, **network: Unpack[params.NetworkChange]) -> types.Sandbox:
        """Changes what it may connect to."""
        return self._changed("PUT", SANDBOX + "/network", body=network)

    def metrics(self) -> types.SandboxMetrics:
        """Returns what it uses now."""
        return self._place.one(types.SandboxMetrics, "GET", SANDBOX + "/metrics")

    def ports(self) -> list[types.SandboxPort]:
        """Lists the ports that something in it listens on."""
        return (self._place.one(types.SandboxPorts, "GET", SANDBOX + "/ports")).data

    def previews(self) -> list[types.Preview]:
        """Lists the URLs at which browsers reach its servers."""
        return (self._place.one(types.PreviewList, "GET", SANDBOX + "/previews")).data

    def open_preview(self, port: int) -> types.Preview:
        """Returns the URL at which browsers reach a port."""
        return self._place.one(types.Preview, "PUT", SANDBOX + "/previews/{}", str(port))

    def close_preview(self, port: int) -> None:
        """Closes the URL of a port for good."""
        self._place.none("DELETE", SANDBOX + "/previews/{}", str(port))

    def terminal(
        self,
        *,
        rows: int = 24,
        columns: int = 80,
        command: str | None = None,
        working_dir: str | None = None,
        process: str | None = None,
        after: int | None = None,
    ) -> Terminal:
        """Opens a terminal, or with process comes back to one."""
        query = {
            "rows": rows,
            "columns": columns,
            "command": command,
            "working_dir": working_dir,
            "process": process,
            "after": after,
        }
        return open_terminal(self._place, query)

    def terminal_ticket(self) -> types.TerminalTicket:
        """Returns what a browser opens a terminal with, once."""
        return self._place.one(types.TerminalTicket, "POST", SANDBOX + "/terminal/ticket")


class Sandboxes(Resource):
    """Named sandboxes."""

    def __call__(self, name: str, *, session: str | None = None, **settings: Unpack[SandboxSettings]) -> Sandbox:
        """Names a sandbox, without a request."""
        return Sandbox(self._transport, name, session, settings)

    def create(
        self, name: str, *, session: str | None = None, **settings: Unpack[SandboxSettings]
    ) -> Sandbox:
        """Makes a sandbox, or finds the one that has the name."""
        box = Sandbox(self._transport, name, session, settings)
        box.create()
        return box

    def get(self, name: str, *, session: str | None = None) -> Sandbox:
        """Finds a sandbox by its name in a session, or by its id."""
        box = Sandbox(self._transport, name, session)
        box.refresh()
        return box

    def list(self, *, session: str | None = None) -> list[types.Sandbox]:
        """Lists sandboxes, those of one session or of all."""
        return (self._one(types.SandboxList, "GET", "/v1/sandboxes", query={"session": session})).data


class Snapshots(Resource):
    """Sandboxes as they were at one moment."""

    def list(self, *, limit: int | None = None) -> Pager[types.Snapshot]:
        """Lists snapshots."""
        return self._list(types.Snapshot, "/v1/snapshots", query={"limit": limit})

    def get(self, snapshot_id: str) -> types.Snapshot:
        """Shows a snapshot."""
        return self._one(types.Snapshot, "GET", "/v1/snapshots/{}", snapshot_id)

    def delete(self, snapshot_id: str) -> None:
        """Deletes a snapshot."""
        self._none("DELETE", "/v1/snapshots/{}", snapshot_id)
