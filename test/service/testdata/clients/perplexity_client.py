"""Drives responses by Perplexity's client for Python. The model answers by the script of
the test: see obedient and clever there."""

import asyncio
import os
import time

import perplexity

URL, KEY = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"]
SANDBOX = [{"type": "sandbox"}]
WEATHER = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


def item(response, kind):
    return next(i for i in response.output if i.type == kind)


def ended(client, r):
    while r.status in ("queued", "in_progress"):
        time.sleep(0.05)
        r = client.responses.retrieve(r.id)
    return r


def create(client):
    r = client.responses.create(model="clever", input="run print(6 * 7)", tools=SANDBOX, instructions="be brief", max_steps=5, max_output_tokens=1000)
    ran = item(r, "sandbox_results")
    assert ran.results[0].stdout == "42\n" and ran.results[0].exit_code == 0 and ran.status == "completed" and ran.container_id, ran
    assert ran.language == "python" and ran.code == "print(6 * 7)" and ran.call_id and ran.results[0].duration_ms >= 0, ran
    assert r.usage.cost.total_cost > 0 and r.usage.cost.currency == "USD" and r.usage.tool_calls_details["sandbox"].invocation == 1 and "42" in r.output_text, r
    failed = item(client.responses.create(models=["clever"], input="run raise SystemExit(3)", tools=SANDBOX), "sandbox_results")
    assert failed.results[0].exit_code == 3 and failed.status == "completed", failed
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "celsius": {"type": "integer"}}}
    r = client.responses.create(model="clever", input="json", response_format={"type": "json_schema", "json_schema": {"name": "weather", "schema": schema}})
    assert r.output_text == '{"city": "Oslo", "celsius": 7}', r


def stream(client):
    events = list(client.responses.create(model="clever", input="run print(6 * 7)", tools=SANDBOX, stream=True))
    assert events[0].type == "response.created" and events[-1].type == "response.completed", events
    assert [e.sequence_number for e in events] == list(range(len(events))), events
    said = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert "42" in said and events[-1].response.output_text == said, said
    done = [e.item.type for e in events if e.type == "response.output_item.done"]
    assert done == ["sandbox_results", "message"], done


def background(client):
    r = ended(client, client.responses.create(model="clever", input="run print(6 * 7)", tools=SANDBOX, background=True))
    assert r.status == "completed" and "42" in r.output_text, r
    slow = client.responses.create(model="clever", input="slow", background=True)
    assert slow.status == "in_progress", slow
    assert client.responses.cancel(slow.id).response_id == slow.id
    assert ended(client, slow).status == "cancelled"
    try:
        client.responses.cancel(slow.id)
        raise AssertionError("cancelled twice")
    except perplexity.BadRequestError:
        pass


def functions(client):
    r = client.responses.create(model="clever", input="weather", tools=[WEATHER])
    call = item(r, "function_call")
    assert call.name == "get_weather" and call.arguments == '{"city": "Oslo"}', r
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    assert "rain" in client.responses.create(model="clever", input=[output], tools=[WEATHER], previous_response_id=r.id).output_text
    whole = [{"type": "message", "role": "user", "content": "weather"}, {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}, output]
    assert "rain" in client.responses.create(model="clever", input=whole, tools=[WEATHER]).output_text


def conversation(client):
    first = client.responses.create(model="clever", input="run open('f', 'w').write('kept')", tools=SANDBOX)
    second = client.responses.create(model="clever", input="run print(open('f').read())", tools=SANDBOX, previous_response_id=first.id)
    assert "kept" in second.output_text and second.previous_response_id == first.id, second


def files(client):
    r = client.responses.create(model="clever", input="share", tools=SANDBOX)
    shared = item(r, "share_file")
    assert shared.filename == "made.csv" and shared.size_bytes == 4 and shared.file_id and not shared.error, shared
    listed = client.responses.files.list(r.id)
    assert [(f.id, f.filename, f.bytes, f.object) for f in listed.data] == [(shared.file_id, "made.csv", 4, "file")], listed
    content = client.responses.files.content(shared.file_id, response_id=r.id)
    assert content.read() == b"a,b\n" and "made.csv" in content.headers["content-disposition"], content.headers
    try:
        client.responses.files.content("file_" + "0" * 36, response_id=r.id)
        raise AssertionError("a file that there is not")
    except perplexity.NotFoundError:
        pass


def refused(client):
    for request, kind in [
        ({"model": "none", "input": "x"}, perplexity.NotFoundError), ({"model": "clever", "input": []}, perplexity.BadRequestError),
        ({"model": "clever", "input": "x", "tools": [{"type": "finance_search"}]}, perplexity.BadRequestError),
    ]:
        try:
            client.responses.create(**request)
            raise AssertionError(request)
        except kind as e:
            assert e.body["error"]["message"], e
    try:
        client.with_options(api_key="sk-atoll-wrong").responses.create(model="clever", input="x")
        raise AssertionError("a wrong key")
    except perplexity.AuthenticationError:
        pass


async def asynchronous():
    async with perplexity.AsyncPerplexity(base_url=URL, api_key=KEY) as client:
        r = await client.responses.create(model="clever", input="run print(6 * 7)", tools=SANDBOX, background=True)
        while r.status in ("queued", "in_progress"):
            await asyncio.sleep(0.05)
            r = await client.responses.retrieve(r.id)
        assert r.status == "completed" and "42" in r.output_text, r
        events = [e async for e in await client.responses.create(model="clever", input="say two words", stream=True)]
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "two words", events


with perplexity.Perplexity(base_url=URL, api_key=KEY) as client:
    for part in (create, stream, background, functions, conversation, files, refused):
        part(client)
        print(part.__name__)
asyncio.run(asynchronous())
print("async")
