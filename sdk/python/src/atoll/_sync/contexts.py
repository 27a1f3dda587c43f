# Code generated from _async/contexts.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Code contexts: interpreters that stay in a named sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import types
from .._request import NDJSON, SLACK, given, milliseconds
from .._results import CodeResult
from .place import Place
from .stream import Events

if TYPE_CHECKING:
    import httpx

    from .._kinds import Position

CONTEXTS = "/v1/sandboxes/{}/contexts"
CONTEXT = "/v1/sandboxes/{}/contexts/{}"
USUAL = 30.0  # seconds that code may take if nothing is said


class CodeEvents(Events[types.CodeEvent]):
    """Output and values of code as they come; result is there after the last one."""

    result: CodeResult | None = None
    """With all output and values that came."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._output: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._values: list[dict[str, Any]] = []

    def _take(self, values: list[dict[str, Any]]) -> None:
        for value in values:
            if value.get("type") == "output":
                self._output.setdefault(value.get("stream", "stdout"), []).append(value.get("data", ""))
            elif value.get("type") == "value" and value.get("value"):
                self._values.append(value["value"])
        super()._take(values)

    def _note(self, value: dict[str, Any]) -> None:
        told = value["result"]
        self.result = CodeResult(
            {
                **told,
                "stdout": told.get("stdout") or "".join(self._output["stdout"]),
                "stderr": told.get("stderr") or "".join(self._output["stderr"]),
                "values": told.get("values") or self._values,
            }
        )


class Contexts:
    """The code contexts of a sandbox. python, node and bash name those that their first run makes."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def create(self, language: str = "python", *, working_dir: str | None = None) -> types.CodeContext:
        """Starts another context."""
        return self._place.one(
            types.CodeContext, "POST", CONTEXTS, body=given(language=language, working_dir=working_dir)
        )

    def list(self) -> list[types.CodeContext]:
        """Lists the contexts."""
        return (self._place.one(types.CodeContexts, "GET", CONTEXTS)).data

    def get(self, context: str) -> types.CodeContext:
        """Shows a context."""
        return self._place.one(types.CodeContext, "GET", CONTEXT, context)

    def run(self, code: str, *, context: str = "python", timeout: float | None = None) -> CodeResult:
        """Runs code in a context, and returns its output and values.

        Code that fails is no error: look at status and error. A caller that is cancelled
        interrupts it.
        """
        body = given(code=code, timeout_ms=milliseconds(timeout))
        return self._place.one(
            CodeResult, "POST", CONTEXT + "/run", context, body=body, timeout=(timeout or USUAL) + SLACK
        )

    def stream(self, code: str, *, context: str = "python", timeout: float | None = None) -> CodeEvents:
        """Runs code in a context, and returns what comes of it as it comes. Leaving it
        interrupts the code; so a stream whose connection broke raises StreamBroken."""

        def connect(last: Position | None) -> httpx.Response:
            body = given(code=code, timeout_ms=milliseconds(timeout))
            return self._place.send("POST", CONTEXT + "/run", context, body=body, accept=NDJSON, stream=True)

        return CodeEvents(
            types.CodeEvent,
            connect,
            ends=["result"],
            resumes=False,
        )

    def interrupt(self, context: str) -> None:
        """Interrupts what a context runs, as Ctrl-C does."""
        self._place.none("POST", CONTEXT + "/interrupt", context)

    def restart(self, context: str) -> types.CodeContext:
        """Starts a context anew, with nothing defined."""
        return self._place.one(types.CodeContext, "POST", CONTEXT + "/restart", context)

    def delete(self, context: str) -> None:
        """Ends a context."""
        self._place.none("DELETE", CONTEXT, context)
