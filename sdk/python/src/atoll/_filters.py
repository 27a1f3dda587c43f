"""Filters of lists."""

from __future__ import annotations

from typing import Any

ACTIVITY_FILTERS = (
    "since",
    "before",
    "key",
    "agent",
    "session_id",
    "turn_id",
    "environment",
    "sandbox_id",
    "thread_id",
    "kind",
    "source",
    "status",
    "executed_code_hash",
    "limit",
    "page",
)


def activity_query(filters: dict[str, Any]) -> dict[str, Any]:
    """Checks the filters of a list of who ran what."""
    unknown = set(filters) - set(ACTIVITY_FILTERS)
    if unknown:
        raise TypeError(f"no filters of the activity: {', '.join(sorted(unknown))}; use {', '.join(ACTIVITY_FILTERS)}")
    return filters
