"""Drives responses by OpenAI's client for Python. The model answers by the script of the
test: see obedient and clever there."""

import asyncio
import os

import httpx
import openai
import pydantic
from openai.lib._pydantic import to_strict_json_schema

URL, KEY = os.environ["ATOLL_URL"] + "/v1", os.environ["ATOLL_KEY"]
SANDBOX = [{"type": "sandbox"}]
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER = {
    "type": "function", "name": "get_weather", "description": "Tells the weather.", "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
}


class Weather(pydantic.BaseModel):
    city: str
    celsius: int


class GetWeather(pydantic.BaseModel):
    city: str


def item(response, kind):
    return next(i for i in response.output if i.type == kind)


def text(client):
    r = client.responses.create(model="clever", input="say hello", instructions="be brief", metadata={"a": "b"}, temperature=0.5, top_p=0.9, user="u")
    assert r.status == "completed" and r.output_text == "hello" and r.error is None and r.incomplete_details is None, r
    assert r.usage.total_tokens == 15 and r.usage.input_tokens_details.cached_tokens == 0 and r.usage.output_tokens_details.reasoning_tokens == 0, r
    assert r.metadata == {"a": "b"} and r.temperature == 0.5 and r.top_p == 0.9 and r.instructions == "be brief" and r.model == "clever", r
    assert item(r, "message").content[0].annotations == [], r
    raw = client.responses.with_raw_response.create(model="clever", input="say raw")
    assert raw.parse().output_text == "raw" and raw.headers["content-type"].startswith("application/json"), raw.headers
    assert [m.id for m in client.models.list()] == ["clever"] and client.models.retrieve("clever").id == "clever"


def create(client):
    r = client.responses.create(model="clever", input="run print(6 * 7)", tools=SANDBOX, max_tool_calls=3, max_output_tokens=1000, parallel_tool_calls=False)
    ran = item(r, "sandbox_results").model_dump()
    assert ran["results"][0]["stdout"] == "42\n" and "42" in r.output_text and r.max_tool_calls == 3, r
    got = client.responses.retrieve(r.id)
    assert got.to_dict() == r.to_dict(), got
    short = client.responses.create(model="clever", input="run print(1)", tools=SANDBOX, extra_body={"max_steps": 1})
    assert short.status == "incomplete" and short.incomplete_details.reason == "max_steps", short


def stream(client):
    events, said = [], ""
    with client.responses.stream(model="clever", input="run print(6 * 7)", tools=SANDBOX) as s:
        for event in s:
            events.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                said += event.delta
        final = s.get_final_response()
    assert events == list(range(len(events))) and said == final.output_text and "42" in said, (events, said)
    kinds = [e.type for e in client.responses.create(model="clever", input="weather", tools=[WEATHER], stream=True)]
    for kind in ("response.function_call_arguments.delta", "response.function_call_arguments.done", "response.output_item.done"):
        assert kind in kinds, kinds
    with client.responses.stream(model="clever", input="cite reefs") as s:
        cited = [e.annotation for e in s if e.type == "response.output_text.annotation.added"]
        part = s.get_final_response().output[0].content[0]
    assert part.text == "See reefs" and [(a.type, a.url, a.title, a.end_index) for a in part.annotations] == [("url_citation", "https://example.org/atolls", "Atolls", 9)], part
    assert len(cited) == 1 and dict(cited[0])["url"] == "https://example.org/atolls", cited
    with client.responses.create(model="clever", input="slow", stream=True) as s:
        for event in s:
            if event.type == "response.output_text.delta":
                break  # a client that goes away ends the response


def background(client):
    r = client.responses.create(model="clever", input="slow", background=True, stream=True)
    first = []
    for event in r:
        first.append(event)
        if event.type == "response.output_text.delta":
            break
    r.close()
    id = first[0].response.id
    assert client.responses.retrieve(id).status == "in_progress"
    assert client.responses.cancel(id).status == "cancelled" and client.responses.retrieve(id).status == "cancelled"
    rest = list(client.responses.retrieve(id, stream=True, starting_after=first[-1].sequence_number))
    assert rest[0].sequence_number == first[-1].sequence_number + 1 and rest[-1].type == "response.cancelled", rest
    with client.responses.stream(response_id=id, starting_after=1) as s:
        assert [e.sequence_number for e in s][0] == 2
    client.responses.delete(id)
    try:
        client.responses.retrieve(id)
        raise AssertionError("it is still there")
    except openai.NotFoundError as e:
        assert e.code == "not_found", e


def functions(client):
    r = client.responses.create(model="clever", input="both", tools=[WEATHER])
    calls = [i for i in r.output if i.type == "function_call"]
    assert [c.arguments for c in calls] == ['{"city": "Oslo"}', '{"city": "Rome"}'], r
    outputs = [{"type": "function_call_output", "call_id": c.call_id, "output": w} for c, w in zip(calls, ("rain", "sun"))]
    end = client.responses.create(model="clever", input=outputs, tools=[WEATHER], previous_response_id=r.id)
    assert "rain" in end.output_text and "sun" in end.output_text, end
    # Without the server's memory: what was put out goes in again, as it is.
    whole = [{"role": "user", "content": "both"}, *r.output, *outputs]
    end = client.responses.create(model="clever", input=whole, tools=[WEATHER], store=False)
    assert "rain" in end.output_text and "sun" in end.output_text, end
    # Or is referred to.
    whole = [{"role": "user", "content": "both"}, *[{"type": "item_reference", "id": i.id} for i in r.output], *outputs]
    end = client.responses.create(model="clever", input=whole, tools=[WEATHER])
    assert "rain" in end.output_text and "sun" in end.output_text, end
    named = client.responses.create(model="clever", input="weather", tools=[WEATHER], tool_choice={"type": "function", "name": "get_weather"})
    assert named.tool_choice.name == "get_weather", named
    only = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}
    allowed = client.responses.create(model="clever", input="weather", tools=[WEATHER], tool_choice=only)
    assert allowed.tool_choice.mode == "auto" and item(allowed, "function_call"), allowed
    # A tool of the server and one of the client, in one conversation.
    mixed = client.responses.create(model="clever", input="run print(6 * 7)", tools=[*SANDBOX, WEATHER])
    after = client.responses.create(model="clever", input="weather", tools=[*SANDBOX, WEATHER], previous_response_id=mixed.id)
    assert item(after, "function_call"), after
    again = client.responses.create(model="clever", input=[{"role": "user", "content": "run print(1)"}, *mixed.output, {"role": "user", "content": "say well"}])
    assert again.output_text == "well", again


def custom(client):
    """A tool whose input is free text, with a grammar."""
    tool = {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}
    r = client.responses.create(model="clever", input="patch a<b>", tools=[tool], extra_body={"client_metadata": {"x-codex-installation-id": "1"}})
    call = item(r, "custom_tool_call")
    assert call.input == "+a<b>" and call.name == "apply_patch" and r.tools[0].format.definition == "start: /.+/", r
    assert r.usage.input_tokens_details.cache_write_tokens == 3, r.usage
    output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "patched"}
    end = client.responses.create(model="clever", input=[output], tools=[tool], previous_response_id=r.id)
    assert "patched" in end.output_text, end
    whole = [{"role": "user", "content": "patch a<b>"}, *r.output, output]
    end = client.responses.create(model="clever", input=whole, tools=[tool], store=False)
    assert "patched" in end.output_text, end
    typed, done = "", ""
    for e in client.responses.create(model="clever", input="patch a<b>", tools=[tool], tool_choice={"type": "custom", "name": "apply_patch"}, stream=True):
        if e.type == "response.custom_tool_call_input.delta":
            typed += e.delta
        elif e.type == "response.custom_tool_call_input.done":
            done = e.input
    assert typed == done == "+a<b>", (typed, done)


def conversation(client):
    first = client.responses.create(model="clever", input="run open('f', 'w').write('kept')", tools=SANDBOX)
    second = client.responses.create(model="clever", input="run print(open('f').read())", tools=SANDBOX, previous_response_id=first.id)
    assert "kept" in second.output_text and second.previous_response_id == first.id, second
    third = client.responses.create(model="clever", input="recall", previous_response_id=second.id, instructions="new")
    said = third.output_text
    assert said.startswith("instructions: new; user: run open(") and "call: run_code" in said and said.endswith("user: recall"), said
    items = client.responses.input_items.list(second.id)
    assert [i.content[0].text for i in items] == ["run print(open('f').read())"], items
    many = client.responses.create(model="clever", input=[{"role": "user", "content": f"n{i}"} for i in range(5)] + [{"role": "user", "content": "say x"}])
    paged = [i.content[0].text for i in client.responses.input_items.list(many.id, limit=2, order="asc")]
    assert paged == ["n0", "n1", "n2", "n3", "n4", "say x"], paged


def structured(client):
    r = client.responses.parse(model="clever", input="json", text_format=Weather)
    assert r.output_parsed == Weather(city="Oslo", celsius=7), r
    with client.responses.stream(model="clever", input="json", text_format=Weather) as s:
        for _ in s:
            pass
        assert s.get_final_response().output_parsed.celsius == 7
    tool = {"type": "function", "name": "get_weather", "strict": True, "parameters": to_strict_json_schema(GetWeather)}
    call = item(client.responses.parse(model="clever", input="weather", tools=[tool]), "function_call")
    assert call.parsed_arguments == {"city": "Oslo"}, call


def parts(client):
    r = client.responses.create(model="clever", input=[{"role": "user", "content": [
        {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PIXEL, "detail": "low"},
        {"type": "input_file", "filename": "a.csv", "file_data": "data:text/csv;base64,YSxiCg=="},
    ]}])
    assert r.output_text == "input_image data:image/png;base64,, input_file data:text/csv;base64,Y"[:len(r.output_text)] and "input_file" in r.output_text, r.output_text
    message = client.responses.input_items.list(r.id).data[0]
    assert [p.type for p in message.content] == ["input_text", "input_image", "input_file"], message


def reasoning(client):
    r = client.responses.create(model="clever", input="think reefs", reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"], store=False)
    thought = item(r, "reasoning")
    assert thought.summary[0].text == "It is about reefs" and thought.encrypted_content and r.output_text == "I thought about reefs", r
    assert r.usage.output_tokens_details.reasoning_tokens == 2 and r.reasoning.effort == "low", r
    whole = [{"role": "user", "content": "think reefs"}, *r.output, {"role": "user", "content": "recall"}]
    said = client.responses.create(model="clever", input=whole, reasoning={"effort": "low"}, store=False).output_text
    assert "reasoning: state" in said, said
    kinds = [e.type for e in client.responses.create(model="clever", input="think reefs", reasoning={"effort": "low", "summary": "auto"}, stream=True)]
    for kind in ("response.reasoning_summary_part.added", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_summary_part.done"):
        assert kind in kinds, kinds


def files(client):
    """What the model shares; the client has no method for it, and gets it as it gets anything."""
    r = client.responses.create(model="clever", input="share", tools=SANDBOX)
    shared = item(r, "share_file")
    listed = client.get(f"/responses/{r.id}/files", cast_to=object)
    assert [f["filename"] for f in listed["data"]] == ["made.csv"], listed
    content = client.get(f"/responses/{r.id}/files/{shared.file_id}/content", cast_to=httpx.Response)
    assert content.content == b"a,b\n", content
    again = client.responses.create(model="clever", input=[{"role": "user", "content": "share"}, *r.output, {"role": "user", "content": "recall"}])
    assert "call: share_file" in again.output_text, again


def refused(client):
    def refuses(kind, words, call, *args, **kwargs):
        try:
            call(*args, **kwargs)
        except kind as e:
            assert words in e.message, e.message
            return
        raise AssertionError(words)

    create = client.responses.create
    refuses(openai.NotFoundError, 'there is no model "none"', create, model="none", input="x")
    refuses(openai.BadRequestError, "file_search", create, model="clever", input="x", tools=[{"type": "file_search", "vector_store_ids": ["v"]}])
    refuses(openai.BadRequestError, "top_logprobs", create, model="clever", input="x", top_logprobs=2)
    refuses(openai.AuthenticationError, "", client.with_options(api_key="sk-atoll-wrong").responses.create, model="clever", input="x")
    refuses(openai.NotFoundError, "", client.responses.retrieve, create(model="clever", input="say x", store=False).id)
    slow = create(model="clever", input="slow", background=True)
    client.responses.cancel(slow.id)
    refuses(openai.BadRequestError, "ended", client.responses.cancel, slow.id)


async def asynchronous():
    async with openai.AsyncOpenAI(base_url=URL, api_key=KEY) as client:
        r = await client.responses.create(model="clever", input="run print(6 * 7)", tools=SANDBOX, background=True)
        while r.status in ("queued", "in_progress"):
            await asyncio.sleep(0.05)
            r = await client.responses.retrieve(r.id)
        assert r.status == "completed" and "42" in r.output_text, r
        said = ""
        async with client.responses.stream(model="clever", input="say two words") as s:
            async for event in s:
                if event.type == "response.output_text.delta":
                    said += event.delta
        assert said == "two words", said
        parsed = await client.responses.parse(model="clever", input="json", text_format=Weather)
        assert parsed.output_parsed.city == "Oslo", parsed
        await client.responses.delete(r.id)


with openai.OpenAI(base_url=URL, api_key=KEY) as client:
    for part in (text, create, stream, background, functions, custom, conversation, structured, parts, reasoning, files, refused):
        part(client)
        print(part.__name__)
asyncio.run(asynchronous())
print("async")
