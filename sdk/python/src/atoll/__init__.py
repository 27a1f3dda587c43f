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
from ._version import __version__

if TYPE_CHECKING:
    from ._async.client import AsyncAtoll
    from ._results import ProgramFailed, Result
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

_LATER = {
    "Atoll": "._sync.client",
    "AsyncAtoll": "._async.client",
    "ProgramFailed": "._results",
    "Result": "._results",
}


def __getattr__(name: str) -> object:
    """Imports what is first asked for: most programs use one of the two clients."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found: object = getattr(importlib.import_module(_LATER[name], __name__), name)
    globals()[name] = found
    return found
