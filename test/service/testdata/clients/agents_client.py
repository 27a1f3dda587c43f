"""Has openai-agents run agents whose model is ours. The model answers by the script of the
test: see obedient and clever there."""

import asyncio
import os

import httpx
import openai
import pydantic
from agents import Agent, CodeInterpreterTool, CustomTool, ModelBehaviorError, ModelSettings, ModelTracing, OpenAIResponsesModel, Runner, WebSearchTool, function_tool

CLIENT = openai.AsyncOpenAI(base_url=os.environ["ATOLL_URL"] + "/v1", api_key=os.environ["ATOLL_KEY"])
MODEL = OpenAIResponsesModel("clever", CLIENT)


class Weather(pydantic.BaseModel):
    city: str
    celsius: int


@function_tool
def get_weather(city: str) -> str:
    """Tells the weather.

    Args:
        city: The city.
    """
    return f"rain in {city}"


AGENT = Agent(name="forecaster", instructions="be brief", model=MODEL, tools=[get_weather])
# Our own tool, which the framework does not know, by the request's body.
CODER = Agent(name="coder", model=MODEL, model_settings=ModelSettings(extra_body={"tools": [{"type": "sandbox"}]}))


async def run():
    result = await Runner.run(AGENT, "weather")
    assert "rain in Oslo" in result.final_output, result
    assert "rain in Rome" in (await Runner.run(AGENT, "both")).final_output


async def stream():
    result = Runner.run_streamed(AGENT, "weather")
    kinds, said = [], ""
    async for event in result.stream_events():
        if event.type == "run_item_stream_event":
            kinds.append(event.item.type)
        elif event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            said += event.data.delta
    assert kinds == ["tool_call_item", "tool_call_output_item", "message_output_item"], kinds
    assert said == result.final_output and "rain in Oslo" in said, said


async def custom():
    """A tool with free text: the framework runs it, and sends its output back."""
    def apply(_context, text):
        return f"applied {text}"

    tool = CustomTool(name="apply_patch", description="Edits files.", on_invoke_tool=apply, format={"type": "grammar", "syntax": "regex", "definition": ".+"})
    agent = Agent(name="patcher", model=MODEL, tools=[tool])
    assert "applied +a<b>" in (await Runner.run(agent, "patch a<b>")).final_output
    streamed = Runner.run_streamed(agent, "patch a<b>")
    kinds = [e.item.type async for e in streamed.stream_events() if e.type == "run_item_stream_event"]
    assert kinds == ["tool_call_item", "tool_call_output_item", "message_output_item"] and "applied +a<b>" in streamed.final_output, kinds


async def conversation():
    first = await Runner.run(AGENT, "weather")
    again = await Runner.run(AGENT, first.to_input_list() + [{"role": "user", "content": "recall"}])
    assert "user: weather; call: get_weather; result: rain in Oslo" in again.final_output, again.final_output
    chained = await Runner.run(AGENT, "recall", previous_response_id=first.last_response_id)
    assert chained.final_output == again.final_output, chained.final_output
    helper = Agent(name="helper", instructions="You help.", model=MODEL)
    asked = Agent(name="asker", model=MODEL, tools=[helper.as_tool("get_weather", "Tells the weather.")])
    try:
        await Runner.run(asked, "weather", max_turns=1)
        raise AssertionError("one turn was enough")
    except Exception as e:
        assert type(e).__name__ == "MaxTurnsExceeded", e


async def sandbox():
    first = await Runner.run(CODER, "run open('f', 'w').write('kept'); print(6 * 7)")
    assert "42" in first.final_output, first
    again = await Runner.run(CODER, "run print(open('f').read())", previous_response_id=first.last_response_id)
    assert "kept" in again.final_output, again


async def files():
    """Files of the input go into the sandbox; those that are shared come by the framework's client."""
    given = {"type": "input_file", "filename": "a.csv", "file_data": "data:text/csv;base64,YSxiCg=="}
    result = await Runner.run(CODER, [{"role": "user", "content": [{"type": "input_text", "text": "run print(open('a.csv').read())"}, given]}])
    assert "a,b" in result.final_output, result
    result = await Runner.run(CODER, "share")
    shared = next(i for r in result.raw_responses for i in r.output if i.type == "share_file")
    listed = await CLIENT.get(f"/responses/{result.last_response_id}/files", cast_to=object)
    assert [f["id"] for f in listed["data"]] == [shared.file_id], listed
    content = await CLIENT.get(f"/responses/{result.last_response_id}/files/{shared.file_id}/content", cast_to=httpx.Response)
    assert content.content == b"a,b\n", content


async def hosted():
    agent = Agent(name="researcher", model=MODEL, tools=[CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}}), WebSearchTool()])
    ran = await Runner.run(agent, "compute print(6 * 7)")
    assert "42" in ran.final_output and [i.raw_item.type for i in ran.new_items] == ["code_interpreter_call", "message"], ran.new_items
    found = Runner.run_streamed(agent, ran.to_input_list() + [{"role": "user", "content": "search atolls"}])
    kinds = [e.data.type async for e in found.stream_events() if e.type == "raw_response_event"]
    assert "About atolls" in found.final_output and "response.web_search_call.completed" in kinds, kinds
    # What was found is not in the item, and known to the server.
    told = await Runner.run(agent, found.to_input_list() + [{"role": "user", "content": "recall"}])
    assert "call: code_interpreter" in told.final_output and "call: web_search" in told.final_output and "Rings of coral" in told.final_output, told.final_output


async def structured():
    agent = Agent(name="forecaster", model=MODEL, output_type=Weather)
    assert (await Runner.run(agent, "json")).final_output == Weather(city="Oslo", celsius=7)


async def background():
    """In the background by the settings of a model. The framework has no calls to poll and cancel with: its client has."""
    settings = ModelSettings(extra_args={"background": True})
    behind = Agent(name="behind", model=MODEL, tools=[get_weather], model_settings=settings)
    result = Runner.run_streamed(behind, "weather")
    kinds = [e.data.type async for e in result.stream_events() if e.type == "raw_response_event"]
    assert "rain in Oslo" in result.final_output and kinds.count("response.completed") == 2, (kinds, result.final_output)
    assert (await CLIENT.responses.retrieve(result.last_response_id)).background is True
    # Without a stream the framework gets the response before it has an answer.
    begun = await MODEL.get_response(None, "say later", settings, [], None, [], tracing=ModelTracing.DISABLED, previous_response_id=None, conversation_id=None, prompt=None)
    while (now := await CLIENT.responses.retrieve(begun.response_id)).status in ("queued", "in_progress"):
        await asyncio.sleep(0.05)
    assert now.status == "completed" and now.output_text == "later", now
    coder = Agent(name="coder", model=MODEL, model_settings=ModelSettings(extra_body={"tools": [{"type": "sandbox"}], "background": True}))
    long = Runner.run_streamed(coder, "run print('begun', flush=True); import time; time.sleep(60)")
    cancelled = None
    try:
        async for event in long.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_item.added" and event.data.item.type == "sandbox_results":
                cancelled = await CLIENT.responses.cancel(long_id)
            elif event.type == "raw_response_event" and event.data.type == "response.created":
                long_id = event.data.response.id
        raise AssertionError("a cancelled run has an answer")
    except ModelBehaviorError as e:
        assert "final response" in str(e), e
    assert cancelled.status == "cancelled" and (await CLIENT.responses.retrieve(long_id)).status == "cancelled", cancelled


async def main():
    for part in (run, stream, custom, conversation, sandbox, files, hosted, structured, background):
        await part()
        print(part.__name__)


asyncio.run(main())
