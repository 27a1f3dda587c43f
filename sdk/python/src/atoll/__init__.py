"""The client of Atoll: `Atoll`, and `AsyncAtoll` with the same operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._errors import (
    APIError,
    AtollError,
    AuthenticationError,
    BadGateway,
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    ExecutionTimeout,
    InternalError,
    NotFound,
    PermissionDenied,
    RateLimited,
    RequestTimeout,
    SignatureError,
    StreamBroken,
    TooLarge,
    Unavailable,
    ValidationError,
)
from ._results import ProgramFailed, Result
from ._version import __version__

if TYPE_CHECKING:
    from ._async.client import AsyncAtoll
    from ._sync.client import Atoll

__all__ = [
    "APIError",
    "AsyncAtoll",
    "Atoll",
    "AtollError",
    "AuthenticationError",
    "BadGateway",
    "ConfigurationError",
    "Conflict",
    "ConnectionFailed",
    "ExecutionTimeout",
    "InternalError",
    "NotFound",
    "PermissionDenied",
    "ProgramFailed",
    "RateLimited",
    "RequestTimeout",
    "Result",
    "SignatureError",
    "StreamBroken",
    "TooLarge",
    "Unavailable",
    "ValidationError",
    "__version__",
]

_CLIENTS = {"Atoll": "_sync", "AsyncAtoll": "_async"}


def __getattr__(name: str) -> object:
    """Imports a client when it is first asked for: most programs use one of the two."""
    if name not in _CLIENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    client: object = getattr(importlib.import_module(f".{_CLIENTS[name]}.client", __name__), name)
    globals()[name] = client
    return client
