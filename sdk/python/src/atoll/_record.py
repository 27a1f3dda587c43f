"""Answers of the server: a JSON object with typed attributes.

A Record holds the object as it came and converts a field when it is first asked for, so an
answer costs what is read of it. A field that the server left out is None. A field that this
version does not know can be read, too: by its name, as it came.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar

Convert = Callable[[Any], Any]
M = TypeVar("M", bound="Record")

_fields: dict[type, dict[str, Convert | None]] = {}


def parse_time(text: str) -> datetime:
    """Parses an RFC 3339 time, truncated to microseconds."""
    text = text.replace("Z", "+00:00") if text.endswith("Z") else text
    whole, dot, rest = text.partition(".")
    if dot:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        text = f"{whole}.{rest[:digits][:6].ljust(6, '0')}{rest[digits:]}"
    return datetime.fromisoformat(text)


def _converter(hint: Any) -> Convert | None:
    """Returns the function that converts a JSON value to a hint's type; None if none is needed."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        found = [c for c in map(_converter, typing.get_args(hint)) if c]
        return found[0] if found else None
    if origin is list:
        one = _converter(typing.get_args(hint)[0])
        return (lambda value: [one(v) for v in value] if isinstance(value, list) else value) if one else None
    if origin is dict:
        each = _converter(typing.get_args(hint)[1])
        return (
            (lambda value: {k: each(v) for k, v in value.items()} if isinstance(value, dict) else value)
            if each
            else None
        )
    if hint is datetime:
        return lambda value: parse_time(value) if isinstance(value, str) else value
    if isinstance(hint, type) and issubclass(hint, Record):
        kind: type[Record] = hint
        return lambda value: kind(value) if isinstance(value, dict) else value
    return None


def _known(cls: type[Record]) -> dict[str, Convert | None]:
    known = _fields.get(cls)
    if known is None:
        known = {}
        for base in reversed(cls.__mro__):
            if issubclass(base, Record) and base is not Record:
                space = vars(sys.modules[base.__module__])
                for name, hint in base.__annotations__.items():
                    if not name.startswith("_") and name not in vars(base):
                        known[name] = _converter(eval(hint, space) if isinstance(hint, str) else hint)
        _fields[cls] = known
    return known


class Record:
    """A JSON object of the server."""

    __slots__ = ("_data", "_read")
    _renamed: ClassVar[dict[str, str]] = {}
    _data: Mapping[str, Any]
    _read: dict[str, Any] | None

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._read = None

    if not typing.TYPE_CHECKING:  # so that a name that is not there is an error of type checkers

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            read = self._read
            if read is None:
                read = self._read = {}
            elif name in read:
                return read[name]
            known = _known(type(self))
            key = self._renamed.get(name, name)
            if name not in known and key not in self._data:
                raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(known)}")
            value = self._data.get(key)
            convert = known.get(name)
            if convert is not None and value is not None:
                value = convert(value)
            read[name] = value
            return value

    def to_dict(self) -> dict[str, Any]:
        """The object as the server sent it."""
        return dict(self._data)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._data,)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._data, self._read = state[0], None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._data == other._data

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self) -> Iterator[str]:
        return iter({*object.__dir__(self), *_known(type(self)), *self._data})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._data.items())})"
