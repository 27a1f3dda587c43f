"""A named sandbox as the backend of LangChain's deepagents."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deepagents.backends.composite import CompositeBackend
from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from .. import _errors

if TYPE_CHECKING:
    from .._results import Output
    from .._sync.sandboxes import Sandbox

MOST_OUTPUT = 8 << 20  # bytes of a command's output; one that writes more is ended

# What the server says of a path, and what deepagents knows it by.
MISTAKES = {
    "no such file or directory": "file_not_found",
    "is a directory": "is_directory",
    "permission denied": "permission_denied",
}


class TooMuchOutput(Exception):
    """A command has written more than is kept."""


class SandboxBackend(BaseSandbox):
    """Gives an agent the files and the shell of a sandbox, which its maker destroys."""

    enable_capture_offload = True  # the images have a shell and coreutils

    def __init__(self, sandbox: Sandbox, *, timeout: float = 120) -> None:
        """timeout is that of a command that does not say, in seconds."""
        self._sandbox = sandbox
        self._timeout = timeout

    @property
    def id(self) -> str:
        """The sandbox's name."""
        return self._sandbox.name

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a command in the shell. The exit code is 124 if the command times out, and 137 if it
        writes more than 8 MiB, which kills it."""
        written = bytearray()  # to both streams, in the order in which it came

        def keep(piece: Output) -> None:
            written.extend(piece.data)
            if len(written) > MOST_OUTPUT:
                raise TooMuchOutput

        ended, code = "", 137
        try:
            result = self._sandbox.run(command, timeout=self._timeout if timeout is None else timeout, on_output=keep)
            code = result.exit_code
            if result.timed_out:
                ended, code = "\nThe command took too long and was ended.\n", 124
        except TooMuchOutput:
            ended = f"\nThe command wrote more than {MOST_OUTPUT} bytes and was ended.\n"
        output = written[:MOST_OUTPUT].decode("utf-8", "replace") + ended
        return ExecuteResponse(output=output, exit_code=code, truncated=len(written) > MOST_OUTPUT)

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files, whose paths are absolute; an answer says what was wrong with one."""
        return [FileUploadResponse(path=path, error=self._write(path, content)) for path, content in files]

    def download_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        """Reads files, whose paths are absolute; an answer says what was wrong with one."""
        return [self._read(path) for path in paths]

    def _write(self, path: str, content: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        try:
            self._sandbox.files.write(path, content)
        except _errors.APIError as error:
            return mistake(error)
        return None

    def _read(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path=path, error="invalid_path")
        try:
            return FileDownloadResponse(path=path, content=self._sandbox.files.read(path))
        except _errors.APIError as error:
            return FileDownloadResponse(path=path, error=mistake(error))


def backend(sandbox: Sandbox, *, timeout: float = 120) -> CompositeBackend:
    """A sandbox as the backend of create_deep_agent. deepagents stores long output
    and other data outside the conversation in /tmp, because an agent may not write to the root."""
    return CompositeBackend(default=SandboxBackend(sandbox, timeout=timeout), routes={}, artifacts_root="/tmp")


def mistake(error: _errors.APIError) -> str:
    """Message for the agent about an unavailable file; raises errors that the agent cannot fix."""
    for words, known in MISTAKES.items():
        if words in error.message:
            return known
    if error.status in (400, 409, 413):
        return error.message
    raise error
