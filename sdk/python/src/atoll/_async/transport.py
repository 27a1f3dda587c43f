"""Requests, their retries, and their errors."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _errors
from .._body import Body, async_content
from .._clock import async_deadline, async_sleep, least, pause
from .._record import Record
from .._request import (
    BYTES,
    CALL_TIMEOUT,
    CONNECT_TIMEOUT,
    JSON,
    STREAM_TIMEOUT,
    Options,
    Query,
    encode_query,
    fill,
    may_retry,
    new_key,
    takes_key,
)

if TYPE_CHECKING:
    import httpx

M = TypeVar("M", bound=Record)


class AsyncTransport:
    """Sends requests with the options of a client."""

    __slots__ = ("http", "options", "owned")

    def __init__(self, options: Options, http: httpx.AsyncClient, owned: bool) -> None:
        self.options = options
        self.http = http
        self.owned = owned

    async def send(
        self,
        method: str,
        template: str,
        *names: str,
        query: Query | None = None,
        body: Any = None,
        upload: Body | None = None,
        form: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: str = JSON,
        key: str | None = None,
        timeout: float = CALL_TIMEOUT,
        safe: bool | None = None,
        stream: bool = False,
    ) -> httpx.Response:
        """Returns an answer that is a success. With stream, its body is still to be read."""
        import httpx

        options = self.options
        url = options.base_url + fill(template, names) + encode_query(query)
        sent = options.all_headers()
        sent["Accept"] = accept
        content: Any = None
        if body is not None:
            content = json.dumps(body).encode()
            sent["Content-Type"] = JSON
        if key is None and not stream and takes_key(method, template):
            key = new_key()
        if key is not None:
            sent["Idempotency-Key"] = key
        if upload is not None:
            sent["Content-Type"] = BYTES
            sent.update(upload.headers())
        if headers:
            sent.update(headers)
        if safe is None:
            safe = method in ("GET", "HEAD", "PUT", "DELETE") or key is not None
        repeatable = form is None and (upload is None or upload.repeatable)
        long = stream or upload is not None or form is not None
        total = options.timeout(STREAM_TIMEOUT if long else timeout)
        if total is not None:
            total = max(total, least.get())
        until = None if total is None else time.monotonic() + total
        attempt = 0
        while True:
            left = total if long or until is None else max(until - time.monotonic(), 0.001)
            if upload is not None:
                content = async_content(upload)
            wait: float | None = None
            try:
                try:
                    request = self.http.build_request(
                        method,
                        url,
                        headers=sent,
                        content=content,
                        data=form.get("data") if form else None,
                        files=form.get("files") if form else None,
                        timeout=httpx.Timeout(
                            left, connect=CONNECT_TIMEOUT if left is None else min(left, CONNECT_TIMEOUT)
                        ),
                    )
                    async with async_deadline(None if long else left):
                        response = await self.http.send(request, stream=stream, follow_redirects=False)
                        if response.status_code < 300:
                            return response
                        refused = _errors.refusal(response.status_code, response.headers, await response.aread())
                        if stream:
                            await response.aclose()
                except (httpx.TimeoutException, TimeoutError) as error:
                    if isinstance(error, httpx.ConnectTimeout) and (left is None or left > CONNECT_TIMEOUT):
                        raise httpx.ConnectError(str(error)) from error
                    raise _errors.RequestTimeout(f"{method} {url} took longer than {total:g} s") from error
                if attempt > 0 and method == "DELETE" and refused.status == 404:
                    return response  # an earlier attempt has done it
                if not (repeatable and may_retry(refused, safe)):
                    raise refused
                failure: Exception = refused
                wait = refused.retry_after
            except httpx.TransportError as error:
                failure = _errors.ConnectionFailed(f"{method} {url}: {type(error).__name__}: {error}")
                failure.__cause__ = error
                if not (repeatable and (safe or isinstance(error, httpx.ConnectError))):
                    raise failure from error
            seconds = pause(attempt, wait)
            attempt += 1
            if attempt > options.max_retries or (until is not None and not long and time.monotonic() + seconds > until):
                raise failure
            await async_sleep(seconds)
            if upload is not None:
                upload.rewind()

    async def one(self, kind: type[M], method: str, template: str, *names: str, **how: Any) -> M:
        """Makes a call whose answer is one JSON object."""
        response = await self.send(method, template, *names, **how)
        return kind(decode(response))


def decode(response: httpx.Response) -> dict[str, Any]:
    try:
        value = json.loads(response.content)
    except ValueError as error:
        raise _errors.ConnectionFailed(f"the answer of {response.request.url} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise _errors.ConnectionFailed(f"the answer of {response.request.url} is no JSON object")
    return value
