"""Drives vaults by Anthropic's client for Python, as it is published."""

import asyncio
import os
from datetime import datetime, timedelta, timezone

import anthropic

URL, KEY, SERVER, MODEL = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"], os.environ["ATOLL_MCP"], os.environ["ATOLL_MODEL"]
client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
vaults, credentials = client.beta.vaults, client.beta.vaults.credentials

v = vaults.create(display_name="Alice", metadata={"user": "u-1", "old": "x"})
assert v.id.startswith("vlt_") and v.type == "vault" and v.display_name == "Alice" and v.metadata == {"user": "u-1", "old": "x"} and v.archived_at is None, v
assert vaults.retrieve(v.id) == v
v = vaults.update(v.id, display_name="Alice B", metadata={"old": None, "new": "y"})
assert v.display_name == "Alice B" and v.metadata == {"user": "u-1", "new": "y"}, v
other = vaults.create(display_name="Bob")
assert [x.id for x in vaults.list(limit=1)] == [other.id, v.id]
assert vaults.archive(other.id).archived_at is not None
assert [x.id for x in vaults.list()] == [v.id] and len(list(vaults.list(include_archived=True))) == 2
gone = vaults.delete(other.id)
assert gone.id == other.id and gone.type == "vault_deleted", gone
print("vaults")

bearer = credentials.create(v.id, display_name="Shop", auth={"type": "static_bearer", "mcp_server_url": SERVER, "token": "bearer-of-alice"})
assert bearer.id.startswith("vcrd_") and bearer.type == "vault_credential" and bearer.vault_id == v.id and bearer.display_name == "Shop", bearer
assert bearer.auth.type == "static_bearer" and bearer.auth.mcp_server_url == SERVER and "bearer-of-alice" not in bearer.to_json(), bearer
later = datetime.now(timezone.utc) + timedelta(hours=1)
oauth = credentials.create(
    v.id,
    auth={
        "type": "mcp_oauth", "mcp_server_url": "https://mcp.example.com/", "access_token": "access-of-alice", "expires_at": later,
        "refresh": {
            "client_id": "client", "refresh_token": "refresh-of-alice", "token_endpoint": "https://mcp.example.com/token", "scope": "a b",
            "token_endpoint_auth": {"type": "client_secret_post", "client_secret": "secret-of-client"},
        },
    },
)
assert oauth.auth.type == "mcp_oauth" and abs(oauth.auth.expires_at - later) < timedelta(seconds=1) and oauth.auth.refresh.client_id == "client", oauth
assert oauth.auth.refresh.token_endpoint_auth.type == "client_secret_post" and oauth.auth.refresh.scope == "a b" and oauth.auth.refresh.resource is None, oauth
oauth = credentials.update(oauth.id, vault_id=v.id, auth={"type": "mcp_oauth", "access_token": "other-of-alice", "refresh": {"scope": "", "refresh_token": None}})
assert oauth.auth.refresh.scope is None, oauth
variable = credentials.create(
    v.id,
    auth={
        "type": "environment_variable", "secret_name": "SHOP_TOKEN", "secret_value": "variable-of-alice",
        "networking": {"type": "limited", "allowed_hosts": ["api.example.com", "*.example.net"]}, "injection_location": {"header": True},
    },
)
assert variable.auth.type == "environment_variable" and variable.auth.secret_name == "SHOP_TOKEN", variable
assert variable.auth.networking.type == "limited" and variable.auth.networking.allowed_hosts == ["api.example.com", "*.example.net"], variable
assert variable.auth.injection_location.header and not variable.auth.injection_location.body, variable
assert [x.id for x in credentials.list(v.id, limit=2)] == [variable.id, oauth.id, bearer.id]
assert credentials.retrieve(bearer.id, vault_id=v.id) == bearer
named = credentials.update(variable.id, vault_id=v.id, display_name="of the shop", metadata={"a": "b"}, auth={"type": "environment_variable", "secret_value": "another-of-alice"})
assert named.display_name == "of the shop" and named.metadata == {"a": "b"} and named.auth == variable.auth, named
print("credentials")

agent = client.beta.agents.create(
    name="Shopper", model=MODEL, mcp_servers=[{"type": "url", "name": "shop", "url": SERVER}], tools=[{"type": "mcp_toolset", "mcp_server_name": "shop", "default_config": {"permission_policy": {"type": "always_allow"}}}],
)
session = client.beta.sessions.create(agent=agent.id, environment_id="main", vault_ids=[v.id])
assert session.vault_ids == [v.id] and client.beta.sessions.retrieve(session.id).vault_ids == [v.id], session


def say(text):
    with client.beta.sessions.events.stream(session.id) as stream:
        client.beta.sessions.events.send(session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": text}]}])
        return [e for e in until_idle(stream)]


def until_idle(stream):
    for e in stream:
        yield e
        if e.type == "session.status_idle":
            return


seen = say('[{"tool": "shop__order", "args": {}}]')
assert "agent.mcp_tool_use" in [e.type for e in seen], seen
assert any("it is ordered" in e.to_json() for e in seen if e.type == "agent.message") and not any("bearer-of-alice" in e.to_json() for e in seen), seen
print("session")

for error, says_so, call in (
    (anthropic.ConflictError, "credential", lambda: credentials.create(v.id, auth={"type": "static_bearer", "mcp_server_url": SERVER + "/", "token": "long-enough"})),
    (anthropic.BadRequestError, "auth.networking", lambda: credentials.create(v.id, auth={"type": "environment_variable", "secret_name": "A", "secret_value": "long-enough", "networking": {"type": "unrestricted"}})),
    (anthropic.BadRequestError, "auth.injection_location.body", lambda: credentials.update(variable.id, vault_id=v.id, auth={"type": "environment_variable", "injection_location": {"body": True}})),
    (anthropic.BadRequestError, "auth.type", lambda: credentials.update(variable.id, vault_id=v.id, auth={"type": "static_bearer", "token": "long-enough"})),
    (anthropic.BadRequestError, "display_name", lambda: vaults.create(display_name=" ")),
    (anthropic.BadRequestError, "mcp_oauth_validate", lambda: credentials.mcp_oauth_validate(oauth.id, vault_id=v.id)),
    (anthropic.NotFoundError, "vault", lambda: vaults.retrieve("vlt_" + "0" * 32)),
    (anthropic.NotFoundError, "credential", lambda: credentials.retrieve("vcrd_" + "0" * 32, vault_id=v.id)),
    (anthropic.NotFoundError, "vault_ids[0]", lambda: client.beta.sessions.create(agent=agent.id, environment_id="main", vault_ids=["vlt_" + "0" * 32])),
):
    try:
        call()
        raise AssertionError(f"no {error}: {says_so}")
    except error as e:
        assert says_so in str(e) and e.body["type"] == "error", e
print("refused")

assert credentials.archive(bearer.id, vault_id=v.id).archived_at is not None
assert credentials.delete(oauth.id, vault_id=v.id).type == "vault_credential_deleted"
assert [x.id for x in credentials.list(v.id)] == [variable.id]


async def asynchronous():
    async with anthropic.AsyncAnthropic(api_key=KEY, base_url=URL, max_retries=0) as other:
        assert [x.id async for x in other.beta.vaults.credentials.list(v.id, include_archived=True)] == [variable.id, bearer.id]
        await other.beta.vaults.delete(v.id)


asyncio.run(asynchronous())
print("async")
