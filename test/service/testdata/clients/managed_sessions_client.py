"""Drives sessions by Anthropic's client for Python, as it is published."""

import asyncio
import os

import anthropic

URL, KEY = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"]
WEATHER = {"type": "custom", "name": "get_weather", "description": "Tells the weather.", "input_schema": {"type": "object", "properties": {}}}
ASKING = {"type": "agent_toolset_20260401", "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}


def says(text):
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def said(event):
    return "".join(block.text for block in event.content)


def turn(events, session, *sent, until=lambda e: e.type == "session.status_idle", **options):
    """Opens a stream, sends events, and returns those that come up to one."""
    with events.stream(session.id, **options) as stream:
        events.send(session.id, events=sent)
        seen = []
        for e in stream:
            seen.append(e)
            if until(e):
                return seen


def types(seen):
    return [e.type for e in seen]


def resources(client, agent, environment):
    sessions = client.beta.sessions
    s = sessions.create(agent=agent.id, environment_id=environment, title="One", metadata={"user": "456", "team": "a"})
    assert s.type == "session" and s.status == "idle" and s.title == "One" and s.metadata == {"user": "456", "team": "a"} and s.environment_id == environment, s
    assert s.agent.id == agent.id and s.agent.version == 1 and s.agent.model.id == "scripted" and s.agent.tools[0].name == "get_weather", s.agent
    assert s.usage.input_tokens == 0 and s.stats.active_seconds == 0 and s.resources == [] and s.vault_ids == [] and s.archived_at is None and s.warnings == [], s
    client.beta.agents.update(agent.id, version=1, description="Changed.")
    other = sessions.create(agent={"type": "agent", "id": agent.id, "version": 1}, environment_id=environment)
    new = sessions.create(agent={"type": "agent", "id": agent.id}, environment_id=environment)
    assert (other.agent.version, new.agent.version, new.agent.description) == (1, 2, "Changed."), (other, new)
    s = sessions.update(s.id, title=None, metadata={"team": None, "region": "eu"})
    assert s.title is None and s.metadata == {"user": "456", "region": "eu"} and sessions.update(s.id).metadata == s.metadata, s
    mine = [x.id for x in sessions.list(agent_id=agent.id, limit=2)]
    assert mine == [new.id, other.id, s.id], mine
    assert [x.id for x in sessions.list(agent_id=agent.id, agent_version=1, order="asc", limit=1)] == [s.id, other.id]
    assert [x.id for x in sessions.list(agent_id=agent.id, created_at_gt=s.created_at, created_at_lte=other.created_at)] == [other.id]
    gone = sessions.archive(other.id)
    assert gone.status == "terminated" and gone.archived_at is not None, gone
    assert [x.id for x in sessions.list(agent_id=agent.id, statuses=["running", "idle"])] == [new.id, s.id]
    assert [x.id for x in sessions.list(agent_id=agent.id, statuses=["terminated"])] == [other.id]
    assert len(list(sessions.list(agent_id=agent.id, include_archived=True))) == 3
    with sessions.events.stream(new.id) as stream:
        deleted = sessions.delete(new.id)
        assert deleted.id == new.id and deleted.type == "session_deleted", deleted
        assert types(stream) == ["session.deleted"]
    return s


def environments(client):
    """An environment is made, changed step by step, listed and deleted."""
    envs = client.beta.environments
    e = envs.create(name="quick start", config={"type": "cloud", "networking": {"type": "unrestricted"}})
    assert e.type == "environment" and e.name == "quick-start" and e.config.networking.type == "unrestricted" and e.config.packages.pip == [] and e.archived_at is None, e

    def limited(hosts, registries, **networking):
        now = envs.update(e.id, config={"type": "cloud", "networking": {"type": "limited", **networking}})
        n = now.config.networking
        assert (n.type, n.allowed_hosts, n.allow_package_managers, n.allow_mcp_servers) == ("limited", hosts, registries, False) and now == envs.retrieve(e.id), now

    limited([], False)
    limited(["api.example.com"], False, allowed_hosts=["api.example.com"])
    limited(["api.example.com"], True, allow_package_managers=True)
    limited([], True, allowed_hosts=[])
    limited([], False, allow_package_managers=False)
    mcp = envs.update(e.id, config={"type": "cloud", "networking": {"type": "limited", "allow_mcp_servers": True}}).config.networking
    assert mcp.allow_mcp_servers and mcp.allowed_hosts == [], mcp
    limited([], False, allow_mcp_servers=False)
    assert envs.update(e.id, name="quicker", config=None, description=None, metadata={}).name == "quicker"
    assert envs.update(e.id, config={"type": "cloud", "networking": {"type": "unrestricted"}}).config.networking.type == "unrestricted"
    assert [x.name for x in envs.list(limit=1)] == ["main", "quicker"] and envs.retrieve("main").warnings is not None
    for says_so, call in (
        ("config.packages", lambda: envs.create(name="x", config={"type": "cloud", "packages": {"pip": ["x"]}})),
        ("config.type", lambda: envs.create(name="x", config={"type": "self_hosted"})),
        ("description", lambda: envs.update(e.id, description="x")),
        ("metadata", lambda: envs.update(e.id, metadata={"a": "b"})),
        ("no more than type", lambda: envs.update(e.id, config={"type": "cloud", "networking": {"type": "unrestricted", "allowed_hosts": []}})),
        ("archive is not served", lambda: envs.archive(e.id)),
    ):
        try:
            call()
            raise AssertionError(f"not refused: {says_so}")
        except anthropic.BadRequestError as err:
            assert says_so in str(err), err
    assert envs.delete(e.id).type == "environment_deleted"
    try:
        envs.retrieve(e.id)
        raise AssertionError("it is there")
    except anthropic.NotFoundError:
        pass


def events(client, session):
    """A turn is streamed, listed in pages, by types and by time, and taken up after each of its events."""
    calls = client.beta.sessions.events
    seen = turn(calls, session, says("say one two three"))
    assert types(seen) == ["user.message", "session.status_running", "span.model_request_start", "agent.message", "span.model_request_end", "session.usage", "session.status_idle"], seen
    message, running, start, answer, end, usage, idle = seen
    assert said(message) == "say one two three" and said(answer) == "one two three" and answer.processed_at is not None, seen
    assert end.model_request_start_id == start.id and not end.is_error and end.model_usage.input_tokens > 0, end
    assert idle.stop_reason.type == "end_turn" and usage.usage.output_tokens == end.model_usage.output_tokens and usage.usage.list_cost.currency == "USD", usage
    brief = {"type": "system.message", "content": [{"type": "text", "text": "Be brief."}]}
    assert types(turn(calls, session, says("say again"), says("say both"), brief))[:3] == ["user.message", "user.message", "system.message"]
    now = client.beta.sessions.retrieve(session.id)
    assert now.usage.input_tokens > usage.usage.input_tokens and now.stats.active_seconds > 0, now
    listed = list(calls.list(session.id, limit=3))
    assert listed[:7] == seen and len(listed) == 16, types(listed)
    assert [said(e) for e in calls.list(session.id, types=["user.message"], order="desc", limit=1)] == ["say both", "say again", "say one two three"]
    assert types(calls.list(session.id, types=["agent.message", "session.status_idle"], limit=1)) == ["agent.message", "session.status_idle"] * 2
    assert list(calls.list(session.id, types=["session.thread_created"])) == []
    assert types(calls.list(session.id, created_at_gte=idle.processed_at))[0] == listed[-len(list(calls.list(session.id, created_at_gte=idle.processed_at)))].type
    assert list(calls.list(session.id, created_at_lt=message.processed_at)) == []
    for i, e in enumerate(seen):
        with calls.stream(session.id, extra_headers={"Last-Event-ID": e.id}) as stream:
            assert next(stream) == listed[i + 1], e


def deltas(client, session):
    seen = turn(client.beta.sessions.events, session, says("say four five"), event_deltas=["agent.message", "agent.thinking"])
    pieces = [e for e in seen if e.type == "event_delta"]
    (start,) = [e for e in seen if e.type == "event_start"]
    (answer,) = [e for e in seen if e.type == "agent.message"]
    assert start.event.type == "agent.message" and start.event.id == answer.id and {e.event_id for e in pieces} == {answer.id}, seen
    assert "".join(e.delta.content.text for e in pieces) == said(answer) == "four five", pieces


def custom_tools(client, session):
    """The client answers as soon as it sees the call."""
    calls = client.beta.sessions.events
    with calls.stream(session.id) as stream:
        calls.send(session.id, events=[says("weather")])
        for e in stream:
            if e.type == "agent.custom_tool_use":
                assert e.name == "get_weather" and e.input == {"city": "Oslo"}, e
                (sent,) = calls.send(session.id, events=[{"type": "user.custom_tool_result", "custom_tool_use_id": e.id, "content": [{"type": "text", "text": "snow"}]}]).data
                use = e
            elif e.type == "session.status_idle" and e.stop_reason.type == "requires_action":
                assert e.stop_reason.event_ids == [use.id], e
            elif e.type == "user.custom_tool_result":
                assert e.custom_tool_use_id == use.id and said(e) == "snow" and e.id == sent.id, (e, sent)
            elif e.type == "agent.message":
                assert said(e) == "The result is snow", e
            elif e.type == "session.status_idle":
                break


def outcome(client, session):
    """The agent works until a grader is content, and each evaluation is an event."""
    rubric = client.beta.files.upload(file=("rubric.md", b"Is it better?", "text/markdown"))
    define = {"type": "user.define_outcome", "description": "say draft", "rubric": {"type": "file", "file_id": rubric.id}, "max_iterations": 2}
    seen = turn(client.beta.sessions.events, session, define)
    assert seen[0].type == "user.define_outcome" and seen[0].rubric.content == "Is it better?" and seen[0].max_iterations == 2, seen[0]
    spans = [e for e in seen if e.type.startswith("span.outcome")]
    assert types(spans) == ["span.outcome_evaluation_start", "span.outcome_evaluation_end"] * 2, spans
    assert {e.outcome_id for e in spans} == {seen[0].outcome_id} and [e.iteration for e in spans] == [0, 0, 1, 1], spans
    assert [e.result for e in spans[1::2]] == ["needs_revision", "satisfied"] and spans[3].explanation == "It is better.", spans
    assert [e.outcome_evaluation_start_id for e in spans[1::2]] == [e.id for e in spans[::2]] and spans[1].usage.output_tokens > 0, spans
    assert seen[-1].stop_reason.type == "end_turn" and [said(e) for e in seen if e.type == "agent.message"][-1] == "better", seen
    (now,) = client.beta.sessions.retrieve(session.id).outcome_evaluations
    assert (now.outcome_id, now.result, now.iteration, now.description) == (seen[0].outcome_id, "satisfied", 1, "say draft") and now.completed_at is not None, now


def budget(client, agent, environment):
    """What a session may cost is said in cents, and can be raised."""

    def cents(n):
        return {"type": "limit", "max_list_cost": {"amount": str(n), "currency": "USD"}}

    session = client.beta.sessions.create(agent=agent.id, environment_id=environment, budget=cents(1))
    assert session.budget.max_list_cost.amount == "1" and session.budget.type == "limit", session.budget
    assert client.beta.sessions.update(session.id, budget=cents(500)).budget.max_list_cost.amount == "500"
    assert turn(client.beta.sessions.events, session, says("say more"))[-1].stop_reason.type == "end_turn"
    for wrong in (cents(400), cents(0), None):
        try:
            client.beta.sessions.update(session.id, budget=wrong)
            raise AssertionError(f"a budget became {wrong}")
        except anthropic.BadRequestError:
            pass


def confirmation(client, environment):
    agent = client.beta.agents.create(name="Asking", model="scripted", tools=[ASKING])
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment, initial_events=[says("run print(6 * 7)")])
    assert session.status == "running", session
    calls = client.beta.sessions.events
    with calls.stream(session.id, extra_query={"cursor": next(iter(calls.list(session.id))).id}) as stream:
        idle = next(e for e in stream if e.type == "session.status_idle")
    (use,) = calls.list(session.id, types=["agent.tool_use"])
    assert idle.stop_reason.type == "requires_action" and idle.stop_reason.event_ids == [use.id] and use.evaluated_permission == "ask" and use.input["code"] == "print(6 * 7)", use
    try:
        calls.send(session.id, events=[says("say no")])
        raise AssertionError("a message was taken in place of an answer")
    except anthropic.ConflictError:
        pass
    seen = turn(calls, session, {"type": "user.tool_confirmation", "tool_use_id": use.id, "result": "allow"})
    assert types(seen)[:3] == ["user.tool_confirmation", "session.status_running", "agent.tool_result"] and "42" in said(seen[2]) and seen[2].tool_use_id == use.id, seen
    idle = turn(calls, session, says("run print(7)"))[-1]
    no = {"type": "user.tool_confirmation", "tool_use_id": idle.stop_reason.event_ids[0], "result": "deny", "deny_message": "not on Sundays"}
    seen = turn(calls, session, no, says("say so"))
    assert types(seen)[:3] == ["user.tool_confirmation", "agent.tool_result", "user.message"] and seen[0].result == "deny" and seen[0].deny_message == "not on Sundays", seen
    assert seen[1].is_error and said(seen[-4]) == "so", seen
    try:
        calls.send(session.id, events=[no])
        raise AssertionError("a call was answered twice")
    except anthropic.ConflictError:
        pass


def interrupt(client, session):
    calls = client.beta.sessions.events
    with calls.stream(session.id, event_deltas=["agent.message"]) as stream:
        calls.send(session.id, events=[says("slow")])
        next(e for e in stream if e.type == "event_delta")
        queued, stopped = calls.send(session.id, events=[says("say later")]).data[0], calls.send(session.id, events=[{"type": "user.interrupt"}, says("say instead")]).data
        assert queued.processed_at is None and types(stopped) == ["user.interrupt", "user.message"], (queued, stopped)
        seen = []
        for e in stream:
            if e.type not in ("event_start", "event_delta"):
                seen.append(e)
            if len([e for e in seen if e.type == "session.status_idle"]) == 3:
                break
    assert [said(e) for e in seen if e.type == "agent.message" and not getattr(e, "incomplete", False)] == ["later", "instead"], seen
    assert [e.id for e in seen if e.type == "user.interrupt"] == [stopped[0].id] and [e.id for e in seen if e.type == "user.message"] == [queued.id, stopped[1].id], seen
    assert {e.stop_reason.type for e in seen if e.type == "session.status_idle"} == {"end_turn"}, seen
    seen = turn(calls, session, {"type": "user.interrupt"})
    assert types(seen) == ["user.interrupt", "session.status_idle"], seen
    turn(calls, session, says("weather"))
    seen = turn(calls, session, {"type": "user.interrupt"}, says("say free"), until=lambda e: e.type == "agent.message")
    assert said(seen[-1]) == "free" and types(seen)[:3] == ["user.custom_tool_result", "user.interrupt", "session.status_idle"], seen


def refused(client, session):
    calls, agent = client.beta.sessions.events, session.agent.id
    before = len(list(calls.list(session.id)))
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": session.id.replace("sess", "sevt") + "_1", "content": []}
    for error, says_so, call in (
        (anthropic.NotFoundError, "session", lambda: client.beta.sessions.retrieve("sess_" + "0" * 32)),
        (anthropic.NotFoundError, "environment", lambda: client.beta.sessions.create(agent=agent, environment_id="env_none")),
        (anthropic.BadRequestError, "resources", lambda: client.beta.sessions.create(agent=agent, environment_id="main", resources=[{"type": "file", "file_id": "x"}])),
        (anthropic.NotFoundError, "vault_ids[0]", lambda: client.beta.sessions.create(agent=agent, environment_id="main", vault_ids=["vlt_1"])),
        (anthropic.BadRequestError, "agent.type", lambda: client.beta.sessions.create(agent={"type": "agent_with_overrides", "id": agent}, environment_id="main")),
        (anthropic.BadRequestError, "initial_events", lambda: client.beta.sessions.create(agent=agent, environment_id="main", initial_events=[{"type": "user.interrupt"}])),
        (anthropic.BadRequestError, "rubric.file_id", lambda: calls.send(session.id, events=[{"type": "user.define_outcome", "description": "x", "rubric": {"type": "file", "file_id": "file_1"}}])),
        (anthropic.BadRequestError, "session_thread_id", lambda: calls.send(session.id, events=[{"type": "user.interrupt", "session_thread_id": "sthr_1"}])),
        (anthropic.BadRequestError, "events[1]", lambda: calls.send(session.id, events=[says("say no"), {"type": "user.tool_result", "tool_use_id": "x"}])),
        (anthropic.NotFoundError, "call", lambda: calls.send(session.id, events=[result, says("say no")])),
        (anthropic.BadRequestError, "deployments", lambda: client.beta.deployments.list()),
    ):
        try:
            call()
            raise AssertionError(f"no {error}: {says_so}")
        except error as e:
            assert says_so in str(e) and e.body["type"] == "error", e
    assert len(list(calls.list(session.id))) == before


@anthropic.beta_async_tool
async def get_weather(city: str) -> str:
    """Tells the weather."""
    return "snow in " + city


async def asynchronous(agent, environment):
    """The client's own runner of tools answers calls, and a stream ends with its session."""
    async with anthropic.AsyncAnthropic(auth_token=KEY, base_url=URL, max_retries=0) as client:
        session = await client.beta.sessions.create(agent=agent, environment_id=environment)
        await client.beta.sessions.events.send(session.id, events=[says("weather")])
        calls = [c async for c in client.beta.sessions.events.tool_runner(session.id, tools=[get_weather], max_idle=0.1)]
        assert [(c.name, c.posted, c.is_error) for c in calls] == [("get_weather", True, False)], calls
        assert [said(e) async for e in client.beta.sessions.events.list(session.id, types=["agent.message"])] == ["The result is snow in Oslo"]
        async with await client.beta.sessions.events.stream(session.id) as stream:
            await client.beta.sessions.events.send(session.id, events=[says("say hi")])
            async for e in stream:
                if e.type == "session.status_idle":
                    await client.beta.sessions.archive(session.id)
        assert e.type == "session.status_terminated", e


client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
agent = client.beta.agents.create(name="Helper", model="scripted", tools=[WEATHER])
env = client.beta.sessions.create(agent=agent.id, environment_id="main").environment_id
client.beta.sessions.delete(next(iter(client.beta.sessions.list(agent_id=agent.id))).id)
session = resources(client, agent, env)
print("resources")
environments(client.with_options(api_key=os.environ["ATOLL_OWNER"]))
print("environments")
for step in (events, deltas, custom_tools, outcome):
    step(client, session)
    print(step.__name__)
budget(client, agent, env)
print("budget")
confirmation(client, env)
print("confirmation")
for step in (interrupt, refused):
    step(client, session)
    print(step.__name__)
asyncio.run(asynchronous(agent.id, env))
print("async")
