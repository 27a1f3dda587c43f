"""Checks that a message comes from the server."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from ._errors import SignatureError

TOLERANCE = 300  # seconds


def verify(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> dict[str, Any]:
    """Returns the message of a webhook, if webhook-signature is genuine and not too old;
    raises SignatureError otherwise. body is the request's body as it came."""
    raw = body.encode() if isinstance(body, str) else body
    told = {name.lower(): value for name, value in headers.items()}
    identity, sent_at, signatures = (told.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not identity or not signatures:
        raise SignatureError("the message has no webhook-id or webhook-signature")
    if not (sent_at.isascii() and sent_at.isdigit()):
        raise SignatureError("webhook-timestamp is no time")
    if abs((time.time() if now is None else now) - int(sent_at)) > tolerance:
        raise SignatureError(f"the message is more than {tolerance:g} s old, or from the future")
    try:
        key = (
            base64.b64decode(secret.removeprefix("whsec_"), validate=True)
            if secret.startswith("whsec_")
            else secret.encode()
        )
    except binascii.Error as error:
        raise SignatureError("the secret begins with whsec_, and what follows is no base64") from error
    want = (
        "v1,"
        + base64.b64encode(hmac.new(key, f"{identity}.{sent_at}.".encode() + raw, hashlib.sha256).digest()).decode()
    )
    if not any(hmac.compare_digest(want.encode(), one.encode()) for one in signatures.split(" ")):
        raise SignatureError("the message was not signed with this secret")
    message: dict[str, Any] = json.loads(raw)
    return message
