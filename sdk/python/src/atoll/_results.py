"""Results that have more than what the server sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import types

if TYPE_CHECKING:
    import httpx


class Result(types.ExecuteResponse):
    """What a program that has ended wrote, and how it ended."""

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


class ProgramFailed(Exception):
    """A program ended with another exit code than 0."""

    def __init__(self, result: Any) -> None:
        self.result = result
        last = (result.stderr or "").strip().splitlines()[-1:]
        super().__init__(f"exit code {result.exit_code}" + (f": {last[0]}" if last else ""))
