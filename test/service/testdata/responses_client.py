"""Drives responses by the clients that OpenAI and Perplexity publish. The model answers by
the script of the test: it runs what follows "run ", repeats what follows "say ", speaks
slowly after "slow", and calls get_weather after "weather"."""

import asyncio
import os

import openai
import perplexity

URL, KEY = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"]
SANDBOX = [{"type": "sandbox"}]


def item(response, kind):
    return next(i for i in response.output if i.type == kind)


def created(client):
    r = client.responses.create(model="scripted", input="say hello", instructions="be brief", metadata={"a": "b"}, temperature=0.5)
    assert r.status == "completed" and r.output_text == "hello", r
    assert r.usage.total_tokens == 15 and r.metadata == {"a": "b"} and r.temperature == 0.5 and r.instructions == "be brief", r
    r = client.responses.create(model="scripted", input="run open('f', 'w').write('kept'); print(6 * 7)", tools=SANDBOX)
    ran = item(r, "sandbox_results").model_dump()
    assert ran["language"] == "python" and ran["code"] == "open('f', 'w').write('kept'); print(6 * 7)", ran
    assert ran["results"][0]["stdout"] == "42\n" and ran["results"][0]["exit_code"] == 0, ran
    assert "42" in r.output_text and r.usage.model_dump()["tool_calls_details"] == {"sandbox": {"invocation": 1}}, r
    chained = client.responses.create(model="scripted", input="run print(open('f').read())", tools=SANDBOX, previous_response_id=r.id)
    assert "kept" in chained.output_text and chained.previous_response_id == r.id, chained
    got = client.responses.retrieve(r.id)
    assert got.output_text == r.output_text, got
    items = client.responses.input_items.list(chained.id)
    assert items.data[0].content[0].text == "run print(open('f').read())", items


def streamed(client):
    events, text = [], ""
    with client.responses.stream(model="scripted", input="run print(6 * 7)", tools=SANDBOX) as stream:
        for event in stream:
            events.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                text += event.delta
        final = stream.get_final_response()
    assert events == list(range(len(events))) and text == final.output_text and "42" in text, (events, text)
    assert item(final, "sandbox_results").results[0]["stdout"] == "42\n", final


def background(client):
    r = client.responses.create(model="scripted", input="slow", background=True)
    assert r.status == "in_progress" and r.background, r
    first = []
    with client.responses.retrieve(r.id, stream=True) as stream:
        for event in stream:
            first.append(event)
            if event.type == "response.output_text.delta":
                break
    cancelled = client.responses.cancel(r.id)
    assert cancelled.status == "cancelled" and client.responses.retrieve(r.id).status == "cancelled", cancelled
    rest = list(client.responses.retrieve(r.id, stream=True, starting_after=first[-1].sequence_number))
    assert rest[0].sequence_number == first[-1].sequence_number + 1 and rest[-1].type == "response.cancelled", rest
    try:
        client.responses.cancel(r.id)
        raise AssertionError("cancelled twice")
    except openai.BadRequestError as e:
        assert "ended" in e.message, e
    client.responses.delete(r.id)
    try:
        client.responses.retrieve(r.id)
        raise AssertionError("it is still there")
    except openai.NotFoundError as e:
        assert e.code == "not_found", e
    unkept = client.responses.create(model="scripted", input="say x", store=False)
    try:
        client.responses.retrieve(unkept.id)
        raise AssertionError("it was kept")
    except openai.NotFoundError:
        pass


def functions(client):
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}, "strict": False}
    r = client.responses.create(model="scripted", input="weather", tools=[tool])
    call = item(r, "function_call")
    assert call.name == "get_weather" and call.arguments == '{"city": "Oslo"}', call
    output = [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
    assert "rain" in client.responses.create(model="scripted", input=output, tools=[tool], previous_response_id=r.id).output_text
    # The same without the server's memory.
    whole = [{"role": "user", "content": "weather"}, call.model_dump(exclude_none=True), *output]
    assert "rain" in client.responses.create(model="scripted", input=whole, tools=[tool], store=False).output_text


def refused(client):
    for request, words in [
        ({"model": "none", "input": "x"}, 'there is no model "none"'),
        ({"model": "scripted", "input": "x", "tools": [{"type": "file_search"}]}, "file_search"),
        ({"model": "scripted", "input": "x", "top_logprobs": 2}, "top_logprobs"),
    ]:
        try:
            client.responses.create(**request)
            raise AssertionError(request)
        except (openai.BadRequestError, openai.NotFoundError) as e:
            assert words in e.message, e.message
    try:
        client.with_options(api_key="sk-atoll-wrong").responses.create(model="scripted", input="x")
        raise AssertionError("a wrong key")
    except openai.AuthenticationError:
        pass


async def asynchronous():
    async with openai.AsyncOpenAI(base_url=URL + "/v1", api_key=KEY) as client:
        r = await client.responses.create(model="scripted", input="run print(6 * 7)", tools=SANDBOX, background=True)
        while r.status in ("queued", "in_progress"):
            await asyncio.sleep(0.05)
            r = await client.responses.retrieve(r.id)
        assert r.status == "completed" and "42" in r.output_text, r


def perplexity_client():
    with perplexity.Perplexity(base_url=URL, api_key=KEY) as client:
        r = client.responses.create(model="scripted", input="run print(6 * 7)", tools=SANDBOX)
        ran = item(r, "sandbox_results")
        assert ran.results[0].stdout == "42\n" and ran.results[0].exit_code == 0 and ran.status == "completed" and ran.container_id, ran
        assert r.usage.cost.total_cost > 0 and r.usage.tool_calls_details["sandbox"].invocation == 1 and "42" in r.output_text, r
        kinds = [e.type for e in client.responses.create(model="scripted", input="say hello", stream=True)]
        assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
        slow = client.responses.create(model="scripted", input="slow", background=True)
        assert client.responses.cancel(slow.id).response_id == slow.id
        assert client.responses.retrieve(slow.id).status == "cancelled"
        try:
            client.responses.cancel(slow.id)
            raise AssertionError("cancelled twice")
        except perplexity.BadRequestError:
            pass


with openai.OpenAI(base_url=URL + "/v1", api_key=KEY) as client:
    for part in (created, streamed, background, functions, refused):
        part(client)
        print(part.__name__)
asyncio.run(asynchronous())
print("asynchronous")
perplexity_client()
print("perplexity")
