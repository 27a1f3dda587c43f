"""Errors, by kind.

Every error of this package is an AtollError. An answer of the server that is no success is
an APIError, of the class of its code; its request_id names the request in the server's log,
and advice says what to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._record import parse_time

if TYPE_CHECKING:
    from .types import ExecuteResponse


class AtollError(Exception):
    """Any error of this package."""

    code = "error"
    advice = ""


class ConfigurationError(AtollError):
    """The client was made with settings that cannot work."""

    code = "configuration"


class ConnectionFailed(AtollError):
    """The server gave no answer, or its answer was cut off."""

    code = "connection"
    advice = "Check the server's address and that it is up; what was asked for may have been done."


class RequestTimeout(ConnectionFailed):
    """The call took longer than its request_timeout."""

    code = "timeout"
    advice = "Raise request_timeout (with_options); what was asked for may have been done."


class StreamBroken(ConnectionFailed):
    """A stream ended before its last event, and could not be resumed."""

    code = "connection"
    advice = "Read the record of what it was about; or open the stream again from the last event."

    def __init__(self, message: str, last: int | str | None = None) -> None:
        super().__init__(message)
        self.last = last
        """The last event that came: its seq, cursor, sequence number or id."""


class SignatureError(AtollError):
    """A message does not come from the server, or is too old."""

    code = "invalid_signature"
    advice = "Answer 401; if messages of your own server fail, check the secret and the clock."


class APIError(AtollError):
    """An answer of the server that says why there is no success."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        request_id: str | None = None,
        dimension: str | None = None,
        resets_at: datetime | None = None,
        retry_after: float | None = None,
        body: Any = None,
    ) -> None:
        self.status = status
        self.code = code
        """For programs, such as not_found."""
        self.message = message
        self.request_id = request_id
        """Names the request in the server's log."""
        self.dimension = dimension
        """Which limit, of rate_limited."""
        self.resets_at = resets_at
        """When that limit starts anew, if it does."""
        self.retry_after = retry_after
        """Seconds to wait, if the server said so."""
        self.body = body
        """The answer, as it came."""
        super().__init__(status, code, message)

    def __str__(self) -> str:
        told = f"{self.message} ({self.status} {self.code}, {self.request_id or 'no request id'})"
        return f"{told}. {self.advice}" if self.advice else told


class ValidationError(APIError):
    advice = "Change what the message names."


class AuthenticationError(APIError):
    advice = "Give a valid key: Atoll(api_key=...) or ATOLL_API_KEY."


class PermissionDenied(APIError):
    advice = "Use a key with the scope that the operation needs, or have the operator change the rule."


class NotFound(APIError):
    advice = "Check the id, and that the key belongs to the same tenant and environment."


class Conflict(APIError):
    advice = "Look at the state as it is now, then decide."


class TooLarge(APIError):
    advice = "Send less, or in parts."


class RateLimited(APIError):
    advice = "Wait for retry_after or resets_at, do less at a time, or get another plan; dimension names the limit."


class InternalError(APIError):
    advice = "Give the request id to the operator."


class BadGateway(APIError):
    advice = "It was begun: ask for its record."


class Unavailable(APIError):
    advice = "Nothing was started: try again later."


class ExecutionTimeout(APIError):
    """A program ran longer than its timeout."""

    advice = "Give the program a higher timeout, or less to do; result has its output until then."

    @property
    def result(self) -> ExecuteResponse:
        """Output of the program until it was stopped."""
        from .types import ExecuteResponse

        return ExecuteResponse(self.body if isinstance(self.body, dict) else {})


CLASSES: dict[str, type[APIError]] = {
    "validation_error": ValidationError,
    "invalid_request_error": ValidationError,
    "unsupported_media_type": ValidationError,
    "unauthorized": AuthenticationError,
    "forbidden": PermissionDenied,
    "not_found": NotFound,
    "conflict": Conflict,
    "payload_too_large": TooLarge,
    "rate_limited": RateLimited,
    "internal_error": InternalError,
    "bad_gateway": BadGateway,
    "service_unavailable": Unavailable,
    "gateway_timeout": ExecutionTimeout,
}
# Of answers with a code that this version does not know.
BY_STATUS: dict[int, type[APIError]] = {
    400: ValidationError,
    401: AuthenticationError,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    429: RateLimited,
    500: InternalError,
    502: BadGateway,
    503: Unavailable,
}


def seconds(headers: Mapping[str, str]) -> float | None:
    """Retry-After, in seconds."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isdigit() else None


def refusal(status: int, headers: Mapping[str, str], content: bytes) -> APIError:
    """The error in an answer."""
    try:
        body: Any = json.loads(content)
    except ValueError:
        body = None
    told = body if isinstance(body, dict) else {}
    code, message = told.get("error"), told.get("message")
    if isinstance(code, dict):  # of responses
        message, code = code.get("message"), code.get("code") or code.get("type")
    if "code" in told and "exit_code" in told:  # of a program that ran too long
        code = told["code"]
    if not isinstance(code, str):
        code = "http_error"
    resets = told.get("resets_at")
    if code == "gateway_timeout" and "exit_code" not in told:
        code = "http_error"  # of a proxy
    kind = CLASSES.get(code) or BY_STATUS.get(status) or APIError
    return kind(
        status,
        code,
        message if isinstance(message, str) and message else f"the server answered {status}",
        request_id=headers.get("x-trace-id"),
        dimension=told.get("dimension"),
        resets_at=parse_time(resets) if isinstance(resets, str) else None,
        retry_after=seconds(headers),
        body=body,
    )
