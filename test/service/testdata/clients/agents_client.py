"""Has openai-agents run agents whose model is ours. The model answers by the script of the
test: see obedient and clever there."""

import asyncio
import os

import openai
import pydantic
from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool

MODEL = OpenAIResponsesModel("clever", openai.AsyncOpenAI(base_url=os.environ["ATOLL_URL"] + "/v1", api_key=os.environ["ATOLL_KEY"]))


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
    """Our own tool, which the framework does not know, by the request's body."""
    agent = Agent(name="coder", model=MODEL, model_settings=ModelSettings(extra_body={"tools": [{"type": "sandbox"}]}))
    assert "42" in (await Runner.run(agent, "run print(6 * 7)")).final_output


async def structured():
    agent = Agent(name="forecaster", model=MODEL, output_type=Weather)
    assert (await Runner.run(agent, "json")).final_output == Weather(city="Oslo", celsius=7)


async def main():
    for part in (run, stream, conversation, sandbox, structured):
        await part()
        print(part.__name__)


asyncio.run(main())
