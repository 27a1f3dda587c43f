# Code generated from api/openapi.json by tools/generate.py. DO NOT EDIT.
"""The operations that take an Idempotency-Key."""

OPERATIONS = frozenset(
    {
        ("POST", "/v1/sandbox/execute"),
    }
)
