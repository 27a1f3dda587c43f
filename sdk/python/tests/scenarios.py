"""Runs the scenarios of sdk/scenarios with Atoll and with AsyncAtoll.

    ATOLL_BASE_URL=… ATOLL_API_KEY=… python tests/scenarios.py [--kind sync|async] [--only TEXT] FOLDER

It prints a line of JSON for each scenario and kind, and exits with 0 when all are ok. The
environment and the format are described in the folder's README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import hashlib
import json
import os
import random
import signal
import string
import sys
import threading
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_calls import CALLS, Typed
from scenario_match import fill, match, match_stream, reach, short

import atoll
from atoll._async.resource import AsyncPager
from atoll._async.stream import AsyncDownload, AsyncEvents
from atoll._record import Record
from atoll._results import CommandResult
from atoll._sync.resource import Pager
from atoll._sync.stream import Download, Events

PATIENCE = 30.0  # seconds that a step with until may take
INLINE = 1 << 20  # bytes that an answer has as text, too


class Cancelled(KeyboardInterrupt):
    """What a synchronous call is interrupted with."""


class Failed(Exception):
    """A step is not as expected."""


def wire(value: Any) -> Any:
    """A result as the interface has it."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, CommandResult):
        return {
            "exit_code": value.exit_code,
            "stdout": value.stdout,
            "stderr": value.stderr,
            "timed_out": value.timed_out,
        }
    if isinstance(value, list):
        items = [wire(one) for one in value]
        return items
    if hasattr(value, "info"):
        return wire(value.info)
    return value


def told(error: BaseException) -> dict[str, Any]:
    """What a scenario may expect of an error."""
    if isinstance(error, atoll.APIError):
        found = {"status": error.status, "code": error.code, "message": error.message}
        if isinstance(error, atoll.ExecutionTimeout):
            found["result"] = error.result.to_dict()
        return found
    if isinstance(error, atoll.AtollError):
        return {"code": error.code, "message": str(error)}
    if isinstance(error, (Cancelled, asyncio.CancelledError)):
        return {"code": "cancelled"}
    return {"code": type(error).__name__, "message": str(error)}


def as_bytes(data: bytes, size: int, digest: str) -> dict[str, Any]:
    found: dict[str, Any] = {"bytes": size, "sha256": digest}
    if size <= INLINE:
        import base64

        found["content_base64"] = base64.b64encode(data).decode()
        try:
            found["content"] = data.decode()
        except UnicodeDecodeError:
            pass
    return found


class Gathered:
    """Bytes as they come: their number and digest, and the first of them."""

    def __init__(self) -> None:
        self.size, self.first, self.digest = 0, bytearray(), hashlib.sha256()

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.digest.update(chunk)
        if self.size <= INLINE:
            self.first += chunk

    def answer(self) -> dict[str, Any]:
        return as_bytes(bytes(self.first), self.size, self.digest.hexdigest())


class Run:
    """One run of one scenario: what both kinds share."""

    def __init__(self, scenario: dict[str, Any], answers: dict[str, Any]) -> None:
        self.scenario, self.answers = scenario, answers
        word = "".join(random.choices(string.ascii_lowercase + string.digits, k=8))
        self.saved: dict[str, Any] = {"unique": word, **os.environ}
        self.events: list[Any] = []

    def client(self, step: dict[str, Any], arguments: dict[str, Any], kind: Any) -> Any:
        base = os.environ["ATOLL_BASE_URL"]
        if "through" in step:
            base = f"{os.environ['ATOLL_TROUBLE_URL']}/{step['through']}"
        names = {"default": "ATOLL_API_KEY", "admin": "ATOLL_ADMIN_KEY", "other": "ATOLL_OTHER_KEY"}
        who = step.get("as", "default")
        timeout = step.get("timeout_ms")
        return kind(
            "" if who == "none" else os.environ[names[who]],
            base_url=base,
            request_timeout=None if timeout is None else timeout / 1000,
            max_retries=arguments.pop("max_retries", 2),
            reconnect=arguments.pop("reconnect", True),
        )

    def judge(self, step: dict[str, Any], result: Any, error: BaseException | None, events: list[Any]) -> None:
        cancels = "cancel_after_events" in step or "cancel_after_ms" in step
        if cancels:
            if error is None or told(error)["code"] != "cancelled":
                raise Failed(f"the call was cancelled, and ended otherwise: {error!r}, {short(result)}")
        elif "error" in step:
            if error is None:
                raise Failed(f"want an error, got {short(result)}")
            if why := match(fill(step["error"], self.saved), told(error)):
                raise Failed(f"error: {why}") from error
        elif error is not None:
            raise error
        if "stream" in step and (
            why := match_stream(fill(step["stream"], self.saved), events, step.get("whole", False))
        ):
            raise Failed(why)
        if "expect" in step and not cancels:
            if self.answers.get(step.get("call", ""), {}).get("answer") == "none":
                result = None
            if why := match(fill(step["expect"], self.saved), result):
                raise Failed(why)
        for name, path in step.get("save", {}).items():
            self.saved[name] = reach({"events": events} if path.startswith("events.") else result, path)

    def shaped(self, call: str, result: Any) -> Any:
        if isinstance(result, list) and self.answers[call]["answer"] in ("list", "json") and call != "tools.list":
            return {"data": result}
        return result

    def prepared(self, step: dict[str, Any], kind: Any) -> tuple[Any, Any]:
        name = step["call"]
        if name not in CALLS:
            raise Failed(f"the library has no call {name}")
        arguments = fill(step.get("with") or {}, self.saved)
        client = self.client(step, arguments, kind)
        return client, lambda: CALLS[name](client, arguments)


class SyncRun(Run):
    def call(self, step: dict[str, Any], events: list[Any], main: bool) -> Any:
        client, begin = self.prepared(step, atoll.Atoll)
        with client:
            if "cancel_after_ms" in step:
                assert main, "a call that is cancelled after a time cannot be in the background"
                signal.setitimer(signal.ITIMER_REAL, step["cancel_after_ms"] / 1000)
            try:
                return self.settle(begin(), step, events)
            finally:
                if "cancel_after_ms" in step:
                    signal.setitimer(signal.ITIMER_REAL, 0)

    def settle(self, result: Any, step: dict[str, Any], events: list[Any]) -> Any:
        if isinstance(result, Events):
            with result as stream:
                for event in stream:
                    events.append(event.to_dict())
                    if len(events) == step.get("cancel_after_events"):
                        raise Cancelled
            return None
        if isinstance(result, Pager):
            return self.shaped(step["call"], wire(result.all()))
        if isinstance(result, Download):
            gathered = Gathered()
            for chunk in result:
                gathered.add(chunk)
            return gathered.answer()
        if isinstance(result, Typed):
            with result.opening as terminal:
                terminal.write(result.text)
                shown = b"".join(terminal)
            return {"output": shown.decode("utf-8", "replace"), "exit_code": terminal.exit_code}
        return self.shaped(step["call"], wire(result))

    def run(self) -> None:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting: dict[str, Any] = {}
            for number, step in enumerate(self.scenario["steps"]):
                try:
                    if "background" in step:
                        events: list[Any] = []
                        waiting[step["background"]] = (pool.submit(self.call, step, events, False), events)
                    else:
                        self.repeat(step, waiting)
                except BaseException as error:
                    raise Failed(f"step {number} ({step.get('call') or 'join'}): {error!r}") from error

    def repeat(self, step: dict[str, Any], waiting: dict[str, Any]) -> None:
        until = time.monotonic() + (PATIENCE if step.get("until") else 0)
        while True:
            try:
                self.once(step, waiting)
                return
            except Exception:
                if time.monotonic() >= until:
                    raise
            time.sleep(0.1)

    def once(self, step: dict[str, Any], waiting: dict[str, Any]) -> None:
        result, error, events = None, None, []
        try:
            if "join" in step:
                future, events = waiting.pop(step["join"])
                result = future.result()
            else:
                result = self.call(step, events, True)
        except (Exception, Cancelled) as caught:
            if isinstance(caught, Failed):
                raise
            error = caught
        self.judge(step, result, error, events)


class AsyncRun(Run):
    async def call(self, step: dict[str, Any], events: list[Any]) -> Any:
        client, begin = self.prepared(step, atoll.AsyncAtoll)
        async with client:
            task = asyncio.current_task()
            assert task is not None
            timer = None
            if "cancel_after_ms" in step:
                timer = asyncio.get_running_loop().call_later(step["cancel_after_ms"] / 1000, task.cancel)
            try:
                return await self.settle(begin(), step, events)
            finally:
                if timer:
                    timer.cancel()

    async def settle(self, result: Any, step: dict[str, Any], events: list[Any]) -> Any:
        if isinstance(result, AsyncEvents):
            async with result as stream:
                async for event in stream:
                    events.append(event.to_dict())
                    if len(events) == step.get("cancel_after_events"):
                        task = asyncio.current_task()
                        assert task is not None
                        task.cancel()
                        await asyncio.sleep(0)
            return None
        if isinstance(result, AsyncPager):
            return self.shaped(step["call"], wire(await result.all()))
        if isinstance(result, AsyncDownload):
            gathered = Gathered()
            async for chunk in result:
                gathered.add(chunk)
            return gathered.answer()
        if isinstance(result, Typed):
            async with await result.opening as terminal:
                await terminal.write(result.text)
                shown = b"".join([chunk async for chunk in terminal])
            return {"output": shown.decode("utf-8", "replace"), "exit_code": terminal.exit_code}
        return self.shaped(step["call"], wire(await result if isinstance(result, Awaitable) else result))

    async def run(self) -> None:
        waiting: dict[str, Any] = {}
        for number, step in enumerate(self.scenario["steps"]):
            try:
                if "background" in step:
                    events: list[Any] = []
                    waiting[step["background"]] = (asyncio.create_task(self.call(step, events)), events)
                else:
                    await self.repeat(step, waiting)
            except BaseException as error:
                raise Failed(f"step {number} ({step.get('call') or 'join'}): {error!r}") from error

    async def repeat(self, step: dict[str, Any], waiting: dict[str, Any]) -> None:
        until = time.monotonic() + (PATIENCE if step.get("until") else 0)
        while True:
            try:
                await self.once(step, waiting)
                return
            except Exception:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(0.1)

    async def once(self, step: dict[str, Any], waiting: dict[str, Any]) -> None:
        result, error, events = None, None, []
        if "join" in step:
            task, events = waiting.pop(step["join"])
        else:
            task = asyncio.create_task(self.call(step, events))
        try:
            result = await task
        except (Exception, asyncio.CancelledError) as caught:
            if isinstance(caught, Failed):
                raise
            error = caught
        self.judge(step, result, error, events)


lock = threading.Lock()
failures = 0


def report(name: str, started: float, error: BaseException | None) -> None:
    global failures
    with lock:
        failures += error is not None
        why = "" if error is None else str(error)
        print(
            json.dumps(
                {"name": name, "ok": error is None, "why": why, "ms": round((time.monotonic() - started) * 1000)},
                ensure_ascii=False,
            ),
            flush=True,
        )


def run_sync(scenarios: list[tuple[str, Any]], answers: dict[str, Any], suffix: str, width: int) -> None:
    """Runs scenarios side by side; those with calls that a signal interrupts, in this thread."""

    def interrupt(number: int, frame: Any) -> None:
        raise Cancelled

    def one(name: str, scenario: Any) -> None:
        started, error = time.monotonic(), None
        try:
            SyncRun(scenario, answers).run()
        except Failed as caught:
            error = caught
        report(name + suffix, started, error)

    signal.signal(signal.SIGALRM, interrupt)
    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        here = [one_of for one_of in scenarios if any("cancel_after_ms" in step for step in one_of[1]["steps"])]
        waiting = [pool.submit(one, *one_of) for one_of in scenarios if one_of not in here]
        for name, scenario in here:
            one(name, scenario)
        for future in waiting:
            future.result()


async def run_async(scenarios: list[tuple[str, Any]], answers: dict[str, Any], suffix: str, width: int) -> None:
    room = asyncio.Semaphore(width)

    async def one(name: str, scenario: Any) -> None:
        async with room:
            started, error = time.monotonic(), None
            try:
                await AsyncRun(scenario, answers).run()
            except Failed as caught:
                error = caught
            report(name + suffix, started, error)

    await asyncio.gather(*(one(name, scenario) for name, scenario in scenarios))


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the scenarios of a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=["sync", "async", "both"], default="both")
    parser.add_argument("--only", default="", help="a part of the names of those that are run")
    parser.add_argument("--width", type=int, default=2, help="scenarios at a time")
    options = parser.parse_args()
    scenarios = []
    for path in sorted(options.folder.glob("*.json")):
        area = json.loads(path.read_text())
        if path.name != "calls.json":
            scenarios += [(f"{area['area']}/{one['name']}", one) for one in area["scenarios"]]
    scenarios = [one for one in scenarios if options.only in one[0]]
    answers = json.loads((options.folder / "calls.json").read_text())["calls"]
    missing = sorted(set(answers) - set(CALLS))
    if missing:
        report("calls", time.monotonic(), Failed(f"the library lacks {', '.join(missing)}"))
    if options.kind == "both":
        other = threading.Thread(target=lambda: asyncio.run(run_async(scenarios, answers, " (async)", options.width)))
        other.start()
        run_sync(scenarios, answers, " (sync)", options.width)
        other.join()
    elif options.kind == "sync":
        run_sync(scenarios, answers, "", options.width)
    else:
        asyncio.run(run_async(scenarios, answers, "", options.width))
    return 1 if failures or not scenarios else 0


if __name__ == "__main__":
    sys.exit(main())
