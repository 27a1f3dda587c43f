"""Drives the tools of responses by the clients that OpenAI and Perplexity publish. The model
calls what the text says, a tool and its arguments a line, and ends with their results."""

import os

import openai
import perplexity

URL, KEY, SHOP, TOKEN, PAGE = (os.environ[name] for name in ("ATOLL_URL", "ATOLL_KEY", "SHOP_URL", "SHOP_TOKEN", "PAGE_URL"))


def shop(**more):
    return {"type": "mcp", "server_label": "shop", "server_url": SHOP, "authorization": TOKEN, **more}


def item(response, kind):
    return next(i for i in response.output if i.type == kind)


def called(client):
    with client.responses.stream(model="scripted", input='shop__add {"a": 2, "b": 3}', tools=[shop(require_approval="never", allowed_tools=["add"])]) as stream:
        events = list(stream)
        r = stream.get_final_response()
    kinds = [type(e).__name__ for e in events]
    for kind in ("ResponseMcpListToolsInProgressEvent", "ResponseMcpListToolsCompletedEvent", "ResponseMcpCallInProgressEvent",
                 "ResponseMcpCallArgumentsDeltaEvent", "ResponseMcpCallArgumentsDoneEvent", "ResponseMcpCallCompletedEvent"):
        assert kind in kinds, (kind, kinds)
    assert [e.sequence_number for e in events] == list(range(len(events))), events
    listed, call = item(r, "mcp_list_tools"), item(r, "mcp_call")
    assert [t.name for t in listed.tools] == ["add"] and listed.tools[0].input_schema["required"] == ["a", "b"], listed
    assert type(call).__name__ == "McpCall" and call.server_label == "shop" and call.name == "add" and "5" in call.output and call.error is None, call
    assert "5" in r.output_text and TOKEN not in r.model_dump_json() and r.usage.model_dump()["tool_calls_details"] == {"mcp": {"invocation": 1}}, r
    again = client.responses.create(model="scripted", input='shop__add {"a": 1, "b": 1}', tools=[shop(require_approval="never", allowed_tools=["add"])], previous_response_id=r.id)
    assert not [i for i in again.output if i.type == "mcp_list_tools"] and "2" in item(again, "mcp_call").output, again


def approved(client):
    tools = [shop(require_approval={"never": {"tool_names": ["add"]}})]
    r = client.responses.create(model="scripted", input='shop__order {"item": "tea"}\nshop__order {"item": "arsenic"}', tools=tools)
    asked = [i for i in r.output if i.type == "mcp_approval_request"]
    assert [a.arguments for a in asked] == ['{"item": "tea"}', '{"item": "arsenic"}'] and asked[0].name == "order" and asked[0].server_label == "shop", r
    answers = [
        {"type": "mcp_approval_response", "approval_request_id": asked[0].id, "approve": True},
        {"type": "mcp_approval_response", "approval_request_id": asked[1].id, "approve": False, "reason": "it is poison"},
    ]
    done = client.responses.create(model="scripted", input=answers, tools=tools, previous_response_id=r.id)
    call = item(done, "mcp_call")
    assert call.output == "tea is on its way" and call.approval_request_id == asked[0].id and "it is poison" in done.output_text, done
    # A client that keeps the conversation itself, as it is.
    whole = [{"role": "user", "content": 'shop__order {"item": "nothing"}'}]
    r = client.responses.create(model="scripted", input=whole, tools=tools, store=False)
    whole += [i.model_dump(exclude_none=True) for i in r.output]
    whole.append({"type": "mcp_approval_response", "approval_request_id": item(r, "mcp_approval_request").id, "approve": True})
    r = client.responses.create(model="scripted", input=whole, tools=tools, store=False)
    call = item(r, "mcp_call")
    assert call.status == "failed" and "order" in call.error and not [i for i in r.output if i.type == "mcp_list_tools"], r
    whole += [*(i.model_dump(exclude_none=True) for i in r.output), {"role": "user", "content": 'shop__add {"a": 2, "b": 2}'}]
    r = client.responses.create(model="scripted", input=whole, tools=tools, store=False)
    assert [i.name for i in r.output if i.type == "mcp_call"] == ["add"] and "4" in r.output_text, r


def refused(client):
    for tool, status, words in [
        (shop(authorization="wrong-token"), 424, 'MCP server "shop"'),
        (shop(server_url="http://127.0.0.1:9/mcp"), 424, "cannot be reached"),
        (shop(server_url="http://169.254.169.254/latest"), 400, "server_url"),
        (shop(defer_loading=True), 400, "defer_loading"),
        ({"type": "web_search", "external_web_access": False}, 400, "external_web_access"),
        ({"type": "file_search", "vector_store_ids": ["x"]}, 400, "file_search"),
    ]:
        try:
            client.responses.create(model="scripted", input="x", tools=[tool])
            raise AssertionError(tool)
        except openai.APIStatusError as e:
            assert e.status_code == status and words in e.message and "wrong-token" not in e.message, e.message
            assert status == 400 or e.type == "external_connector_error", e.type


def searched(client):
    tool = {"type": "web_search", "search_context_size": "low", "user_location": {"type": "approximate", "city": "Oslo", "country": "NO"}}
    with client.responses.stream(model="scripted", input='web_search {"queries": ["atolls"]}', tools=[tool], include=["web_search_call.action.sources"]) as stream:
        kinds = [type(e).__name__ for e in stream]
        r = stream.get_final_response()
    for kind in ("ResponseWebSearchCallInProgressEvent", "ResponseWebSearchCallSearchingEvent", "ResponseWebSearchCallCompletedEvent"):
        assert kind in kinds, (kind, kinds)
    call = item(r, "web_search_call")
    assert type(call).__name__ == "ResponseFunctionWebSearch" and call.status == "completed" and call.action.queries == ["atolls"], call
    assert call.action.sources[0].url == "https://example.org/atolls" and "About atolls" in r.output_text, call
    preview = client.responses.create(model="scripted", input='web_search {"queries": ["reefs"]}', tools=[{"type": "web_search_preview"}], tool_choice={"type": "web_search_preview"})
    assert item(preview, "web_search_call").action.query == "reefs", preview


def perplexity_client():
    with perplexity.Perplexity(base_url=URL, api_key=KEY) as client:
        text = f'web_search {{"queries": ["atolls"]}}\npeople_search {{"queries": ["who"]}}\nfetch_url {{"urls": ["{PAGE}"]}}\nshop__add {{"a": 20, "b": 3}}'
        tools = [{"type": "web_search"}, {"type": "people_search"}, {"type": "fetch_url", "max_urls": 2}, shop(require_approval="never")]
        r = client.responses.create(model="scripted", input=text, tools=tools)
        found = [i for i in r.output if i.type == "search_results"]
        assert found[0].results[0].title == "About atolls" and found[0].results[0].id == 1 and found[0].queries == ["atolls"], r
        assert found[1].results[0].url == "https://example.org/person", r
        page = item(r, "fetch_url_results").contents[0]
        assert page.title == "Atolls" and page.snippet == "Rings of coral.", page
        assert "23" in item(r, "mcp_call").output and item(r, "mcp_list_tools").tools[0].name == "add", r
        details = {name: d.invocation for name, d in r.usage.tool_calls_details.items()}
        assert details == {"web_search": 1, "people_search": 1, "fetch_url": 1, "mcp": 1}, details


with openai.OpenAI(base_url=URL + "/v1", api_key=KEY) as client:
    for part in (called, approved, refused, searched):
        part(client)
        print(part.__name__)
perplexity_client()
print("perplexity")
