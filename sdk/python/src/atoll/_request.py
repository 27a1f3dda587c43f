"""Request building for both clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from . import _errors
from ._idempotent import OPERATIONS
from ._version import __version__

DEFAULT_URL = "http://127.0.0.1:8080"
CALL_TIMEOUT = 60.0  # seconds for a call whose answer is one JSON value
LONG_TIMEOUT = 600.0  # seconds for a call that waits for a model or moves a sandbox
STREAM_TIMEOUT = 60.0  # seconds without a byte of a stream, which sends one each 15
SLACK = 30.0  # seconds beyond what a program may take
MOST_RETRY_AFTER = 60.0  # a caller is not kept waiting for longer
CONNECT_TIMEOUT = 10.0

JSON = "application/json"
NDJSON = "application/x-ndjson"
SSE = "text/event-stream"
BYTES = "application/octet-stream"

Query = Mapping[str, Any]


class Options(NamedTuple):
    """How a client calls."""

    base_url: str
    api_key: str
    request_timeout: float | None = None
    max_retries: int = 2
    reconnect: bool = True
    headers: Mapping[str, str] = {}

    def timeout(self, usual: float) -> float | None:
        """Seconds for a call that usually gets so many; None for no limit."""
        chosen = usual if self.request_timeout is None else self.request_timeout
        return None if chosen == float("inf") else chosen

    def all_headers(self) -> dict[str, str]:
        return {
            **({"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}),
            "User-Agent": f"atoll-python/{__version__}",
            "Accept-Encoding": "identity",
            **self.headers,
        }


def options(
    api_key: str | None,
    base_url: str | None,
    request_timeout: float | None,
    max_retries: int,
    reconnect: bool,
    headers: Mapping[str, str] | None,
) -> Options:
    key = os.environ.get("ATOLL_API_KEY") if api_key is None else api_key
    if key is None:
        raise _errors.ConfigurationError("no API key: give api_key=, or set ATOLL_API_KEY")
    if request_timeout is not None and request_timeout <= 0:
        raise _errors.ConfigurationError(f"request_timeout is {request_timeout}; it must be more than 0 seconds")
    if max_retries < 0:
        raise _errors.ConfigurationError(f"max_retries is {max_retries}; it must be at least 0")
    url = (base_url or os.environ.get("ATOLL_BASE_URL") or DEFAULT_URL).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise _errors.ConfigurationError(f"base_url is {url!r}; it must begin with http:// or https://")
    return Options(url, key, request_timeout, max_retries, reconnect, dict(headers or {}))


def fill(template: str, names: tuple[str, ...]) -> str:
    """A path: each {} is a name, each {/} one that may have slashes."""
    if not names:
        return template
    parts = template.split("{")
    path = parts[0]
    for part, name in zip(parts[1:], names, strict=True):
        if not name or name in (".", ".."):
            raise _errors.ConfigurationError(f"{name!r} is no name in the path {template}")
        rest = part.split("}", 1)
        path += quote(name.encode("utf-8", "surrogateescape"), safe="/" if rest[0] == "/" else "") + rest[1]
    return path


def encode_query(query: Query | None) -> str:
    """Query parameters without the ones that are None."""
    pairs = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        for one in value if isinstance(value, (list, tuple)) else [value]:
            text = one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogateescape")
            pairs.append(f"{quote_plus(name)}={quote_plus(text)}")
    return "?" + "&".join(pairs) if pairs else ""


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def new_key() -> str:
    """An Idempotency-Key of its own."""
    return os.urandom(18).hex()


def takes_key(method: str, template: str) -> bool:
    return (method, template) in OPERATIONS


def may_retry(error: _errors.APIError, safe: bool) -> bool:
    """Whether a refused request may be sent again. With 429, and with 503
    that says when to come back, nothing was begun; with 409 that says so, an
    earlier attempt is still being served."""
    if error.status == 429 or (error.status == 409 and safe):
        return error.retry_after is not None and error.retry_after <= MOST_RETRY_AFTER
    if error.status == 503:
        return error.retry_after <= MOST_RETRY_AFTER if error.retry_after is not None else safe
    return safe and (error.status == 502 or (error.status == 504 and not isinstance(error, _errors.ExecutionTimeout)))


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))
