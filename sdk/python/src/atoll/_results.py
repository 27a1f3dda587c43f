"""Results that have more than what the server sent."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from . import types

if TYPE_CHECKING:
    import httpx


class Result(types.ExecuteResponse):
    """Output and exit status of a program."""

    __slots__ = ("trace_id",)
    trace_id: str

    @classmethod
    def of(cls, response: httpx.Response) -> Result:
        result = cls(json.loads(response.content))
        result.trace_id = response.headers.get("x-trace-id", "")
        return result

    def check(self) -> Result:
        """Returns the result itself, or raises ProgramFailed if the program failed."""
        if not self.success:
            raise ProgramFailed(self)
        return self


@dataclasses.dataclass(frozen=True)
class Output:
    """A piece of output of a command."""

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclasses.dataclass(frozen=True)
class CommandResult:
    """Output and exit status of a command in a sandbox."""

    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool = False
    signal: str | None = None
    """Signal that ended it, or None."""
    reason: str | None = None
    """Which bound of the sandbox ended it, if one did."""

    @property
    def success(self) -> bool:
        return self.exit_code == 0

    def check(self) -> CommandResult:
        """Returns the result itself, or raises ProgramFailed if the command failed."""
        if not self.success:
            raise ProgramFailed(self)
        return self


def _mime_bundle(value: types.CodeValue) -> tuple[dict[str, Any], dict[str, Any]]:
    metadata = value.to_dict().get("metadata")
    return dict(value.data), metadata if isinstance(metadata, dict) else {}


class Value(types.CodeValue):
    """A value of code, in all the forms there are of it; notebooks show it as it is."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return _mime_bundle(self)

    @property
    def text(self) -> str | None:
        """The value as plain text."""
        found = self.data.get("text/plain")
        return found if isinstance(found, str) else None

    def frame(self) -> Any:
        """The value as a data frame of pandas, of the rows that the server sent."""
        rows = self.data.get("application/json")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise TypeError("the value is no data frame: it has no records as application/json")
        import pandas  # type: ignore

        return pandas.DataFrame.from_records(rows)

    def is_frame(self) -> bool:
        """Whether the value is a data frame."""
        rows = self.data.get("application/json")
        return "text/html" in self.data and isinstance(rows, list) and all(isinstance(row, dict) for row in rows)

    def python(self) -> Any:
        """The value itself as far as it can be: a data frame of pandas if that is installed,
        what JSON says, or the text."""
        if self.is_frame():
            try:
                return self.frame()
            except ImportError:
                pass
        return self.data["application/json"] if "application/json" in self.data else self.text


class CodeResult(types.CodeResult):
    """Output and values of code in a context; notebooks show the last value."""

    __slots__ = ()

    @property
    def success(self) -> bool:
        return self.status == "ok"

    @property
    def displayed(self) -> list[Value]:
        """All values, in the order in which they came."""
        return [Value(value.to_dict()) for value in self.values]

    @property
    def value(self) -> Value | None:
        """The value of the last expression."""
        found = [value for value in self.displayed if value.result]
        return found[-1] if found else None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        shown = self.value or (self.displayed[-1] if self.displayed else None)
        if shown is not None:
            return _mime_bundle(shown)
        error = self.error
        told = self.stdout + self.stderr + (f"{error.name}: {error.value}" if error else "")
        return {"text/plain": told}, {}


class SessionStreamed(types.SessionEvent):
    """An event of a session, or with the type delta a piece of one that is to come."""

    __slots__ = ()
    of: str | None
    """Of a piece: the type of the event."""
    text: str | None
    """Of a piece."""


class ProgramFailed(Exception):
    """A program ended with another exit code than 0."""

    def __init__(self, result: Any) -> None:
        self.result = result
        last = (result.stderr or "").strip().splitlines()[-1:]
        super().__init__(f"exit code {result.exit_code}" + (f": {last[0]}" if last else ""))
