# Code generated from _async/tools.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""The tools of agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .. import types
from .._request import LONG_TIMEOUT, SLACK
from .resource import Resource
from .transport import Transport, decode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params

TOOL = "/v1/sessions/{}/tools/{}"


class SessionTools(Resource):
    """The tools that an agent of one session is given."""

    def __init__(self, transport: Transport, session: str) -> None:
        super().__init__(transport)
        self.session = session

    def call(
        self, tool: str, arguments: dict[str, Any], *, agent: str | None = None, template: str | None = None
    ) -> dict[str, Any]:
        """Calls a tool by its name, as a model asks for it, and returns what it gave."""
        if tool == "execute_code":
            wait = float(arguments.get("timeout") or 60) + SLACK
        else:
            wait = float(arguments.get("timeout_ms") or 30000) / 1000 + SLACK if tool == "shell" else LONG_TIMEOUT
        query = {"agent": agent, "template": template}
        return decode(
            self._transport.send("POST", TOOL, self.session, tool, body=arguments, query=query, timeout=wait)
        )

    def shell(self, **arguments: Unpack[params.ShellInput]) -> types.ShellOutput:
        """Runs a command."""
        return types.ShellOutput(self.call("shell", {**arguments}))

    def read_file(self, **arguments: Unpack[params.ReadFileInput]) -> types.ReadFileOutput:
        """Reads a file."""
        return types.ReadFileOutput(self.call("read_file", {**arguments}))

    def write_file(self, **arguments: Unpack[params.WriteFileInput]) -> types.WriteFileOutput:
        """Writes a file."""
        return types.WriteFileOutput(self.call("write_file", {**arguments}))

    def glob(self, **arguments: Unpack[params.GlobInput]) -> types.GlobOutput:
        """Finds files by a pattern."""
        return types.GlobOutput(self.call("glob", {**arguments}))

    def browse(self, **arguments: Unpack[params.BrowseInput]) -> types.BrowseOutput:
        """Returns the URL at which browsers reach a port."""
        return types.BrowseOutput(self.call("browse", {**arguments}))

    def sandbox_create(self, **arguments: Unpack[params.SandboxCreateInput]) -> types.SandboxCreateOutput:
        """Makes a sandbox."""
        return types.SandboxCreateOutput(self.call("sandbox_create", {**arguments}))

    def sandbox_list(self) -> types.SandboxListOutput:
        """Lists the session's sandboxes."""
        return types.SandboxListOutput(self.call("sandbox_list", {}))

    def transfer(self, **arguments: Unpack[params.TransferInput]) -> types.TransferOutput:
        """Copies files from one sandbox to another."""
        return types.TransferOutput(self.call("transfer", {**arguments}))

    def execute_code(
        self, *, agent: str | None = None, template: str | None = None, **arguments: Unpack[params.CodeInput]
    ) -> types.CodeOutput:
        """Runs code in a sandbox of the session that its calls share."""
        return types.CodeOutput(self.call("execute_code", {**arguments}, agent=agent, template=template))


class Tools(Resource):
    """The tools of agents."""

    def __call__(self, session: str) -> SessionTools:
        """The tools of one session, which their first call makes."""
        return SessionTools(self._transport, session)

    def list(self, *, format: str | None = None, strict: bool | None = None) -> list[dict[str, Any]]:
        """Returns what a model is given: format is mcp, anthropic, openai or openai-responses."""
        response = self._transport.send("GET", "/v1/tools", query={"format": format, "strict": strict})
        found: list[dict[str, Any]] = json.loads(response.content)
        return found

    def execute_code(self, **request: Unpack[params.ExecuteCodeRequest]) -> types.CodeOutput:
        """Runs code for an agent's turn, under its template's policy."""
        wait = float(request.get("timeout") or 60) + SLACK
        return self._one(types.CodeOutput, "POST", "/v1/tools/execute_code", body=request, timeout=wait)

    def end_turn(self, turn: str, *, agent: str) -> None:
        """Ends the sandbox of a turn."""
        self._none("DELETE", "/v1/tools/turns/{}", turn, query={"agent": agent})
