# Code generated from api/openapi.json by tools/generate.py. DO NOT EDIT.
"""The operations that are sent with an Idempotency-Key."""

OPERATIONS = frozenset(
    {
        ("POST", "/default/v1/agents"),
        ("POST", "/default/v1/agents/{}/copy"),
        ("POST", "/default/v1/sessions"),
        ("POST", "/default/v1/sessions/{}/events"),
        ("POST", "/v1/agents"),
        ("POST", "/v1/agents/{}/copy"),
        ("POST", "/v1/containers"),
        ("POST", "/v1/sandbox/execute"),
        ("POST", "/v1/sandboxes"),
        ("POST", "/v1/sandboxes/{}/contexts"),
        ("POST", "/v1/sandboxes/{}/fork"),
        ("POST", "/v1/sandboxes/{}/processes"),
        ("POST", "/v1/sandboxes/{}/snapshots"),
        ("POST", "/v1/sessions"),
        ("POST", "/v1/sessions/{}/events"),
        ("POST", "/v1/vaults"),
        ("POST", "/v1/vaults/{}/credentials"),
    }
)
