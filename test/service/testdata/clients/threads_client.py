"""Drives a coordinator and the threads of its session by Anthropic's client for Python, as it is published."""

import os
import time

import anthropic

client = anthropic.Anthropic(api_key=os.environ["ATOLL_KEY"], base_url=os.environ["ATOLL_URL"], max_retries=0)
MODEL = os.environ["ATOLL_MODEL"]
agents, sessions = client.beta.agents, client.beta.sessions
threads = sessions.threads


def says(text):
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def said(event):
    return "".join(block.text for block in event.content)


def types(seen):
    return [e.type for e in seen]


research = agents.create(name="Research", description="Finds facts.", model=MODEL)
writer = agents.create(name="Writer", model=MODEL)
roster = [research.id, {"type": "agent", "id": writer.id, "version": 1}]
lead = agents.create(name="Lead", model=MODEL, system="You coordinate.", multiagent={"type": "coordinator", "agents": roster})
shown = [(a.type, a.id, a.version) for a in lead.multiagent.agents]
assert lead.multiagent.type == "coordinator" and shown == [("agent", research.id, 1), ("agent", writer.id, 1)] and lead.warnings == [], lead
assert agents.update(lead.id, version=1, multiagent={"type": "coordinator", "agents": roster}).version == 1
changed = agents.update(lead.id, version=1, multiagent=None)
assert changed.version == 2 and changed.multiagent is None and agents.retrieve(lead.id, version=1).multiagent == lead.multiagent, changed
lead = agents.update(lead.id, version=2, multiagent={"type": "coordinator", "agents": roster})
print("coordinator")

session = sessions.create(agent=lead.id, environment_id="main")
assert [(a.name, a.description) for a in session.agent.multiagent.agents] == [("Research", "Finds facts."), ("Writer", None)], session.agent
seen, theirs = [], []
with sessions.events.stream(session.id) as stream:
    sessions.events.send(session.id, events=[says("both")])
    for e in stream:
        seen.append(e)
        if e.type == "agent.thread_message_sent" and e.to_agent_name == "Writer":
            # The stream of a thread ends when the thread does.
            while (first := next(iter(threads.events.list(e.to_session_thread_id, session_id=session.id)), None)) is None:
                time.sleep(0.02)
            after = {"extra_query": {"cursor": first.id}}
            with threads.events.stream(e.to_session_thread_id, session_id=session.id, event_deltas=["agent.message"], **after) as one:
                theirs = [first] + list(one)
        if e.type == "session.status_idle":
            break
assert said([e for e in seen if e.type == "agent.message"][-1]) == "The result is facts" + "a word " * 20, seen
for kind in ("session.thread_created", "agent.thread_message_sent", "agent.thread_message_received", "session.thread_status_idle"):
    assert types(seen).count(kind) == 2, types(seen)
print("session")

primary, *others = list(threads.list(session.id, limit=1))
assert primary.type == "session_thread" and primary.parent_thread_id is None and primary.agent.name == "Lead" and primary.status == "idle", primary
assert {t.agent.name: (t.parent_thread_id, t.session_id, t.status, t.archived_at) for t in others} == {n: (primary.id, session.id, "idle", None) for n in ("Research", "Writer")}, others
assert all(t.usage.output_tokens > 0 and t.stats.duration_seconds >= 0 for t in others), others
assert [t.id for t in threads.list(session.id, statuses=["idle"])] == [primary.id] + [t.id for t in others]
assert list(threads.list(session.id, statuses=["running", "terminated"])) == []
(mine,) = [t for t in others if t.agent.name == "Writer"]
assert threads.retrieve(mine.id, session_id=session.id) == mine
print("threads")

listed = list(threads.events.list(mine.id, session_id=session.id, limit=2))
assert [e for e in theirs if e.type not in ("event_start", "event_delta")] == listed, (types(theirs), types(listed))
task, running, *_, idle = [e for e in listed if e.type != "atoll.context_summary"]
assert task.type == "agent.thread_message_received" and task.from_session_thread_id == primary.id and task.from_agent_name is None and said(task) == "words", task
assert running.type == "session.thread_status_running" and running.session_thread_id == mine.id and running.agent_name == "Writer", running
assert idle.type == "session.thread_status_idle" and idle.stop_reason.type == "end_turn", idle
(answer,) = [e for e in listed if e.type == "agent.message"]
pieces = [e for e in theirs if e.type == "event_delta"]
assert {e.event_id for e in pieces} == {answer.id} and "".join(e.delta.content.text for e in pieces) == said(answer), pieces
for i, e in enumerate(listed):
    with threads.events.stream(mine.id, session_id=session.id, extra_headers={"Last-Event-ID": e.id}) as stream:
        assert list(stream) == listed[i + 1 :], e
assert types(threads.events.list(primary.id, session_id=session.id)) == types(sessions.events.list(session.id))
print("events")

gone = threads.archive(mine.id, session_id=session.id)
assert gone.archived_at is not None and gone.status == "idle" and len(list(threads.list(session.id))) == 3, gone
for error, says_so, call in (
    (anthropic.ConflictError, "archive the session", lambda: threads.archive(primary.id, session_id=session.id)),
    (anthropic.NotFoundError, "thread", lambda: threads.retrieve("sthr_" + "0" * 32, session_id=session.id)),
    (anthropic.BadRequestError, "multiagent.type", lambda: agents.create(name="x", model=MODEL, multiagent={"type": "multiagent_20261001"})),
    (anthropic.BadRequestError, "multiagent.agents[0].type", lambda: agents.create(name="x", model=MODEL, multiagent={"type": "coordinator", "agents": [{"type": "self"}]})),
    (anthropic.NotFoundError, "multiagent.agents[0]", lambda: agents.create(name="x", model=MODEL, multiagent={"type": "coordinator", "agents": ["agt_" + "0" * 32]})),
):
    try:
        call()
        raise AssertionError(f"no {error}: {says_so}")
    except error as e:
        assert says_so in str(e), e
print("refused")

# A call of an agent that work was handed to waits for the client, in the primary thread, too.
WEATHER = {"type": "custom", "name": "get_weather", "description": "Tells the weather.", "input_schema": {"type": "object", "properties": {}}}
asker = agents.create(name="Asker", model=MODEL, tools=[WEATHER])
lead = agents.create(name="Second", model=MODEL, multiagent={"type": "coordinator", "agents": [asker.id]})
session = sessions.create(agent=lead.id, environment_id="main")
with sessions.events.stream(session.id) as stream:
    sessions.events.send(session.id, events=[says("ask")])
    for e in stream:
        if e.type == "agent.custom_tool_use":
            use = e
        elif e.type == "session.status_idle" and e.stop_reason.type == "requires_action":
            assert e.stop_reason.event_ids == [use.id] and use.session_thread_id and use.name == "get_weather", (e, use)
            (waiting,) = [t for t in threads.list(session.id) if t.parent_thread_id]
            assert waiting.id == use.session_thread_id and waiting.status == "idle" and waiting.usage is None, waiting
            result = {"type": "user.custom_tool_result", "custom_tool_use_id": use.id, "content": [{"type": "text", "text": "snow"}]}
            (sent,) = sessions.events.send(session.id, events=[result]).data
            assert sent.session_thread_id == use.session_thread_id, sent
        elif e.type == "session.status_idle":
            break
assert said(list(sessions.events.list(session.id, types=["agent.message"]))[-1]) == "The result is The result is snow"
assert [t.status for t in threads.list(session.id)] == ["idle", "idle"]
print("waits")
