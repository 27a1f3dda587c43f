"""Has LangChain's ChatOpenAI ask our models. The model answers by the script of the test:
see obedient and clever there."""

import asyncio
import os
import time

import httpx
import pydantic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

COMMON = dict(model="clever", use_responses_api=True, base_url=os.environ["ATOLL_URL"] + "/v1", api_key=os.environ["ATOLL_KEY"])
MODEL = ChatOpenAI(**COMMON)


class Weather(pydantic.BaseModel):
    """The weather of a city."""

    city: str
    celsius: int


@tool
def get_weather(city: str) -> str:
    """Tells the weather."""
    return f"rain in {city}"


def invoke():
    said = MODEL.invoke([SystemMessage("be brief"), HumanMessage("recall")])
    assert said.text == "system: be brief; user: recall", said
    assert said.usage_metadata["total_tokens"] == 15 and said.response_metadata["status"] == "completed", said
    picture = HumanMessage([
        {"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "file", "base64": "YSxiCg==", "mime_type": "text/csv", "filename": "a.csv"},
    ])
    said = MODEL.invoke([picture])
    assert "input_image" in said.text and "input_file" in said.text, said


def stream():
    chunks = list(MODEL.stream("say several words here"))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert whole.text == "several words here" and whole.usage_metadata["total_tokens"] == 15, whole
    asked = None
    for chunk in MODEL.bind_tools([get_weather]).stream("both"):
        asked = chunk if asked is None else asked + chunk
    assert [c["args"] for c in asked.tool_calls] == [{"city": "Oslo"}, {"city": "Rome"}], asked


def tools():
    bound = MODEL.bind_tools([get_weather], parallel_tool_calls=True)
    asked = bound.invoke("weather")
    assert asked.tool_calls[0]["name"] == "get_weather" and asked.tool_calls[0]["args"] == {"city": "Oslo"}, asked
    results = [ToolMessage(get_weather.invoke(c["args"]), tool_call_id=c["id"]) for c in asked.tool_calls]
    assert "rain in Oslo" in bound.invoke([HumanMessage("weather"), asked, *results]).text
    forced = MODEL.bind_tools([get_weather], tool_choice="get_weather").invoke("weather")
    assert forced.tool_calls, forced


def conversation():
    first = MODEL.invoke("say my name is Ada")
    told = MODEL.invoke("recall", previous_response_id=first.response_metadata["id"])
    assert told.text == "user: say my name is Ada; assistant: my name is Ada; user: recall", told
    linked = ChatOpenAI(**COMMON, use_previous_response_id=True)
    asked = linked.bind_tools([get_weather]).invoke("weather")
    result = ToolMessage("sun", tool_call_id=asked.tool_calls[0]["id"])
    assert "sun" in linked.bind_tools([get_weather]).invoke([HumanMessage("weather"), asked, result]).text
    # A conversation whose memory is the client's, with what the model thought.
    thinking = ChatOpenAI(**COMMON, reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"], store=False)
    thought = thinking.invoke("think reefs")
    assert thought.text == "I thought about reefs", thought
    assert "reasoning: state" in thinking.invoke([HumanMessage("think reefs"), thought, HumanMessage("recall")]).text
    again = MODEL.invoke([HumanMessage("say hi"), AIMessage("hi"), HumanMessage("recall")])
    assert again.text == "user: say hi; assistant: hi; user: recall", again


def files():
    """Files of the input go into the sandbox; those that are shared come by the framework's client."""
    coder, client = MODEL.bind(tools=[{"type": "sandbox"}]), MODEL.root_client
    given = {"type": "file", "base64": "YSxiCg==", "mime_type": "text/csv", "filename": "a.csv"}
    assert "a,b" in coder.invoke([HumanMessage([{"type": "text", "text": "run print(open('a.csv').read())"}, given])]).text
    shared = coder.invoke("share").response_metadata["id"]
    listed = client.get(f"/responses/{shared}/files", cast_to=object)
    assert [f["filename"] for f in listed["data"]] == ["made.csv"], listed
    content = client.get(f"/responses/{shared}/files/{listed['data'][0]['id']}/content", cast_to=httpx.Response)
    assert content.content == b"a,b\n", content
    assert "42" in "".join(chunk.text for chunk in coder.stream("run print(6 * 7)"))


def hosted():
    bound = MODEL.bind_tools([{"type": "code_interpreter", "container": {"type": "auto"}}, {"type": "web_search", "search_context_size": "low"}])
    ran = bound.invoke("compute print(6 * 7)")
    assert "42" in ran.text and "code_interpreter_call" in [b["type"] for b in ran.content], ran
    asked = [HumanMessage("compute print(6 * 7)"), ran, HumanMessage("search atolls")]
    found = None
    for chunk in bound.stream(asked):
        found = chunk if found is None else found + chunk
    assert "About atolls" in found.text, found
    told = bound.invoke([*asked, found, HumanMessage("recall")]).text
    assert "call: code_interpreter" in told and "call: web_search" in told and "Rings of coral" in told, told


def structured():
    assert MODEL.with_structured_output(Weather, method="json_schema").invoke("json") == Weather(city="Oslo", celsius=7)


def background():
    """In the background by an argument of the model. Its client polls and cancels, as the framework has no calls for that."""
    behind, client = ChatOpenAI(**COMMON, model_kwargs={"background": True}), MODEL.root_client
    begun = behind.invoke("say later")
    assert begun.response_metadata["status"] in ("queued", "in_progress") and begun.text == "", begun
    while (now := client.responses.retrieve(begun.response_metadata["id"])).status in ("queued", "in_progress"):
        time.sleep(0.05)
    assert now.status == "completed" and now.output_text == "later" and now.background is True, now
    # What began behind is gone on with, and a stream has the whole answer.
    assert "assistant: later" in MODEL.invoke("recall", previous_response_id=now.id).text
    assert "".join(chunk.text for chunk in behind.stream("say two words")) == "two words"
    long = behind.bind(tools=[{"type": "sandbox"}]).invoke("run import time; time.sleep(60)").response_metadata["id"]
    assert client.responses.cancel(long).status == "cancelled" and client.responses.retrieve(long).status == "cancelled"


async def asynchronous():
    assert (await MODEL.ainvoke("say hello")).text == "hello"
    assert "".join([chunk.text async for chunk in MODEL.astream("say two words")]) == "two words"


for part in (invoke, stream, tools, conversation, files, hosted, structured, background):
    part()
    print(part.__name__)
asyncio.run(asynchronous())
print("async")
