"""What a scenario's expectations mean: see sdk/scenarios/README.md."""

from __future__ import annotations

import re
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "…"


def match(want: Any, got: Any) -> str:
    """Says how a value is not as wanted; "" if it is."""
    if isinstance(want, dict):
        if len(want) == 1 and next(iter(want)).startswith("$"):
            kind = next(iter(want))
            return special(kind, want[kind], got)
        if not isinstance(got, dict):
            return f"want an object, got {short(got)}"
        for name, wanted in want.items():
            if name not in got and wanted != {"$any": True}:
                return f"{name}: it is not there, in {short(got)}"
            if why := match(wanted, got.get(name)):
                return f"{name}: {why}"
        return ""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"want {len(want)} elements, got {short(got)}"
        return next((f"{i}: {why}" for i, (w, g) in enumerate(zip(want, got, strict=True)) if (why := match(w, g))), "")
    same = want == got and isinstance(want, bool) == isinstance(got, bool)
    return "" if same else f"want {short(want)}, got {short(got)}"


def special(kind: str, want: Any, got: Any) -> str:
    if kind == "$any":
        return ""
    if kind == "$match":
        ok = isinstance(got, str) and re.search(want, got) is not None
    elif kind == "$type":
        ok = isinstance(got, TYPES[want]) and (want == "boolean" or not isinstance(got, bool))
    elif kind == "$length":
        ok = isinstance(got, (str, list)) and len(got) == want
    elif kind == "$contains":
        ok = want in got if isinstance(got, str) else isinstance(got, list) and any(not match(want, one) for one in got)
    elif kind == "$each":
        if not isinstance(got, list):
            return f"want an array, got {short(got)}"
        return next((f"{i}: {why}" for i, one in enumerate(got) if (why := match(want, one))), "")
    else:
        return f"there is no matcher {kind}"
    return "" if ok else f"want {kind} {short(want)}, got {short(got)}"


def gathered(events: list[Any]) -> list[Any]:
    """Events of which those that follow each other with data of one stream are one: how many
    pieces an output comes in depends on the machine."""
    out: list[Any] = []
    for event in events:
        last = out[-1] if out else {}
        if (
            isinstance(last.get("data"), str)
            and isinstance(event.get("data"), str)
            and last.get("stream") == event.get("stream")
        ):
            out[-1] = {**last, **event, "data": last["data"] + event["data"]}
        else:
            out.append(event)
    return out


def match_stream(want: list[Any], got: list[Any], whole: bool) -> str:
    """Looks for events in their order, with others between them unless they are the whole."""
    if whole:
        want, got = gathered(want), gathered(got)
    if whole and len(want) != len(got):
        return f"want {len(want)} events, got {len(got)}: {short(got)}"
    at = 0
    for wanted in want:
        why = "there are no more events"
        while at < len(got):
            why = match(wanted, got[at])
            at += 1
            if not why:
                break
            if whole:
                return f"event {at - 1}: {why}"
        else:
            return f"no event is {short(wanted)} ({why}), in {short(got)}"
    return ""


def reach(value: Any, path: str) -> Any:
    """The value at a path such as events.0.x."""
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def fill(value: Any, saved: dict[str, Any]) -> Any:
    """Puts saved values in place of ${name}."""
    if isinstance(value, dict):
        return {name: fill(one, saved) for name, one in value.items()}
    if isinstance(value, list):
        return [fill(one, saved) for one in value]
    if isinstance(value, str):
        whole = re.fullmatch(r"\$\{([^}]+)\}", value)
        if whole:
            return saved[whole[1]]
        return re.sub(r"\$\{([^}]+)\}", lambda found: str(saved[found[1]]), value)
    return value
