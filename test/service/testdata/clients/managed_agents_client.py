"""Drives agents by Anthropic's client for Python, as it is published."""

import asyncio
import os

import anthropic

URL, KEY = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"]
SCHEMA = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
TOOLS = [
    {
        "type": "agent_toolset_20260401",
        "default_config": {"enabled": True, "permission_policy": {"type": "always_allow"}},
        "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}, {"name": "web_search", "enabled": False}],
    },
    {"type": "mcp_toolset", "mcp_server_name": "orders", "default_config": {"enabled": False}, "configs": [{"name": "find", "enabled": True}]},
    {"type": "custom", "name": "ask", "description": "Asks the customer.", "input_schema": SCHEMA},
]
SERVERS = [{"type": "url", "name": "orders", "url": "https://mcp.example.com/orders"}]


def create(client):
    a = client.beta.agents.create(
        name="Support", description="Helps.", system="Be kind.", model={"id": "managed", "effort": "high"}, tools=TOOLS, mcp_servers=SERVERS, metadata={"team": "a"},
    )
    assert a.id.startswith("agt_") and a.type == "agent" and a.version == 1 and a.archived_at is None and a.created_at == a.updated_at, a
    assert a.model.id == "managed" and a.model.effort.type == "high" and a.model.speed == "standard", a
    assert a.metadata == {"team": "a"} and a.skills == [] and a.multiagent is None and a.execution_identity.type == "service_account", a
    builtin, orders, ask = a.tools
    assert builtin.default_config.enabled and builtin.default_config.permission_policy.type == "always_allow", builtin
    configs = {c.name: (c.type, c.enabled, c.permission_policy.type) for c in builtin.configs}
    assert configs == {"bash": ("bash", True, "always_ask"), "web_search": ("web_search", False, "always_allow")}, configs
    assert not orders.default_config.enabled and [(c.name, c.enabled) for c in orders.configs] == [("find", True)], orders
    assert ask.input_schema.required == ["question"] and ask.description == "Asks the customer.", ask
    assert a.mcp_servers[0].url == "https://mcp.example.com/orders" and a.warnings == [], a
    plain = client.beta.agents.create(name="Plain", model="managed")
    assert plain.model.id == "managed" and plain.tools == [] and plain.system is None, plain
    return a


def update(client, a):
    b = client.beta.agents.update(a.id, version=1, system="Be kinder.", metadata={"team": None, "region": "eu"})
    assert b.version == 2 and b.system == "Be kinder." and b.metadata == {"region": "eu"} and len(b.tools) == 3, b
    same = client.beta.agents.update(a.id, tools=TOOLS, mcp_servers=SERVERS)
    assert same.version == 2, same
    c = client.beta.agents.update(a.id, description=None, tools=[])
    assert c.version == 3 and c.description is None and c.tools == [], c
    try:
        client.beta.agents.update(a.id, version=1, name="Late")
        raise AssertionError("a late change was made")
    except anthropic.ConflictError as e:
        assert "version 3" in str(e) and e.body["error"]["type"] == "conflict_error", e


def read(client, a):
    now = client.beta.agents.retrieve(a.id)
    first = client.beta.agents.retrieve(a.id, version=1)
    assert now.version == 3 and first.version == 1 and first.system == "Be kind." and len(first.tools) == 3, (now, first)
    assert [v.version for v in client.beta.agents.versions.list(a.id, limit=2)] == [3, 2, 1]
    ids = [x.id for x in client.beta.agents.list(limit=1)]
    assert a.id in ids and len(ids) == 2, ids
    assert [x.id for x in client.beta.agents.list(created_at_lte=a.created_at)] == [a.id]


def archive(client, a):
    gone = client.beta.agents.archive(a.id)
    assert gone.archived_at is not None, gone
    assert a.id not in [x.id for x in client.beta.agents.list()]
    assert a.id in [x.id for x in client.beta.agents.list(include_archived=True)]


def refused(client, a):
    for error, call in (
        (anthropic.NotFoundError, lambda: client.beta.agents.retrieve("agt_" + "0" * 32)),
        (anthropic.BadRequestError, lambda: client.beta.agents.create(name="x", model="none")),
        (anthropic.BadRequestError, lambda: client.beta.agents.create(name="x", model="managed", skills=[{"type": "anthropic", "skill_id": "xlsx"}])),
        (anthropic.BadRequestError, lambda: client.beta.deployments.list()),
        (anthropic.AuthenticationError, lambda: client.with_options(api_key="sk-atoll-wrong").beta.agents.list()),
    ):
        try:
            call()
            raise AssertionError(f"no {error}")
        except error as e:
            assert e.body["type"] == "error" and e.request_id is None and e.body["request_id"].startswith("trc_"), e.body


async def asynchronous():
    async with anthropic.AsyncAnthropic(auth_token=KEY, base_url=URL, max_retries=0) as client:
        assert len([x async for x in client.beta.agents.list(include_archived=True, limit=1)]) == 2


client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
agent = create(client)
print("create")
for step in (update, read, archive, refused):
    step(client, agent)
    print(step.__name__)
asyncio.run(asynchronous())
print("async")
