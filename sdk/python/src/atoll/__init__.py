"""The client of Atoll: `Atoll`, and `AsyncAtoll` with the same operations."""

from ._async.client import AsyncAtoll
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
from ._sync.client import Atoll
from ._version import __version__

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
