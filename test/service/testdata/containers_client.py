"""Drives containers and code_interpreter by the client that OpenAI publishes. The model
answers by the script of the test: it runs what follows "compute " with code_interpreter."""

import base64
import os
import time

import openai

URL, KEY, OTHER = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"], os.environ["ATOLL_OTHER_KEY"]
client = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0)
other = openai.OpenAI(base_url=URL + "/v1", api_key=OTHER, max_retries=0)
OUTPUTS = ["code_interpreter_call.outputs"]
AUTO = {"type": "code_interpreter", "container": {"type": "auto"}}


def refused(kind, text, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as e:
        assert text in e.message, e.message
        return
    raise AssertionError(f"{call} was not refused with {text}")


def until(holds, what):
    for _ in range(300):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(what)


def compute(code, tool, **kwargs):
    r = client.responses.create(model="scripted", input="compute " + code, tools=[tool], include=OUTPUTS, **kwargs)
    assert r.status == "completed", r
    return r, next(i for i in r.output if i.type == "code_interpreter_call")


def text(call):
    return "".join(o.logs for o in call.outputs if o.type == "logs")


def containers():
    c = client.containers.create(name="sums", expires_after={"anchor": "last_active_at", "minutes": 5})
    assert c.object == "container" and c.status == "running" and c.name == "sums" and c.expires_after.minutes == 5, c
    assert client.containers.retrieve(c.id).id == c.id and c.id.startswith("cntr_"), c
    second = client.containers.create(name="sums")
    listed = [x.id for x in client.containers.list(limit=1)]  # over all pages
    assert listed == [second.id, c.id], listed
    assert [x.id for x in client.containers.list(order="asc")] == [c.id, second.id]
    client.containers.delete(second.id)
    assert client.containers.retrieve(second.id).status == "expired"
    refused(openai.NotFoundError, "container", client.responses.create, model="scripted", input="x", tools=[{"type": "code_interpreter", "container": second.id}])
    refused(openai.BadRequestError, "file_ids", client.containers.create, name="x", file_ids=["file-1"])
    refused(openai.BadRequestError, "memory_limit", client.containers.create, name="x", memory_limit="64g")
    refused(openai.BadRequestError, "minutes", client.containers.create, name="x", expires_after={"anchor": "last_active_at", "minutes": 0})
    refused(openai.BadRequestError, "no network", client.containers.create, name="x", network_policy={"type": "allowlist", "allowed_domains": ["example.com"]})
    for call in (lambda: other.containers.retrieve(c.id), lambda: other.containers.delete(c.id), lambda: other.containers.files.list(c.id),
                 lambda: other.containers.files.create(c.id, file=("a", b"a")),
                 lambda: other.responses.create(model="scripted", input="x", tools=[{"type": "code_interpreter", "container": c.id}])):
        refused(openai.NotFoundError, "container", call)
    assert list(other.containers.list()) == []
    print("containers", flush=True)
    return c


def files(c):
    csv = client.containers.files.create(c.id, file=("data.csv", b"x,y\n1,2\n3,4\n"))
    assert csv.path == "/home/user/data.csv" and csv.bytes == 12 and csv.source == "user" and csv.container_id == c.id, csv
    tool = {"type": "code_interpreter", "container": c.id}
    r, call = compute("""import pandas as pd, matplotlib.pyplot as plt
frame = pd.read_csv('data.csv')
frame.plot(x='x', y='y')
plt.savefig('plot.png')
import os; os.makedirs('out/deep'); open('out/deep/sums.txt', 'w').write(str(frame.y.sum()))
print('sum', frame.y.sum())
frame.shape""", tool)
    assert call.container_id == c.id and call.code.startswith("import pandas") and call.status == "completed", call
    assert text(call) == "sum 6\n(2, 2)\n", text(call)
    image, = [o for o in call.outputs if o.type == "image"]
    assert base64.b64decode(image.url.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG"), image.url[:60]
    assert "sum 6" in r.output_text and "images shown to the user: 1" in r.output_text, r.output_text
    found = {f.path: f for f in client.containers.files.list(c.id, limit=1)}
    assert set(found) == {"/home/user/data.csv", "/home/user/plot.png", "/home/user/out/deep/sums.txt"}, found
    assert found["/home/user/data.csv"].id == csv.id and found["/home/user/plot.png"].source == "assistant", found
    plot, sums = found["/home/user/plot.png"], found["/home/user/out/deep/sums.txt"]
    assert client.containers.files.content.retrieve(plot.id, container_id=c.id).read().startswith(b"\x89PNG")
    assert client.containers.files.content.retrieve(sums.id, container_id=c.id).text == "6"
    assert client.containers.files.retrieve(sums.id, container_id=c.id).bytes == 1
    client.containers.files.delete(sums.id, container_id=c.id)
    refused(openai.NotFoundError, "file not found", client.containers.files.retrieve, sums.id, container_id=c.id)
    refused(openai.NotFoundError, "container", other.containers.files.content.retrieve, plot.id, container_id=c.id)
    refused(openai.BadRequestError, "file_id", client.containers.files.create, c.id, extra_body={"file_id": "file-1"})
    refused(openai.BadRequestError, "dot", client.containers.files.create, c.id, file=(".hidden", b"a"))
    client.containers.delete(c.id)
    refused(openai.NotFoundError, "", client.containers.files.list, c.id)
    print("files", flush=True)


def automatic():
    quiet = client.responses.create(model="scripted", input="say hello", tools=[AUTO])
    assert list(client.containers.list()) == [], "a container was made that no code ran in"
    r, call = compute("x = 41; open('kept', 'w').write('kept')\nprint('set')", AUTO, previous_response_id=quiet.id)
    follow, again = compute("print(x + 1, open('kept').read())", AUTO, previous_response_id=r.id, tool_choice={"type": "code_interpreter"})
    assert text(again) == "42 kept\n" and again.container_id == call.container_id, again
    hidden = client.responses.retrieve(follow.id)
    assert [i.outputs for i in hidden.output if i.type == "code_interpreter_call"] != [None], hidden
    plain = client.responses.create(model="scripted", input="compute print(1)", tools=[AUTO], previous_response_id=r.id)
    assert [i.outputs for i in plain.output if i.type == "code_interpreter_call"] == [None], plain
    shown = client.responses.retrieve(plain.id, include=OUTPUTS)
    assert [text(i) for i in shown.output if i.type == "code_interpreter_call"] == ["1\n"], shown
    alone, own = compute("print('x' in dir())", AUTO)
    assert text(own) == "False\n" and own.container_id != call.container_id, own
    failed, broken = compute("1 / 0", AUTO, previous_response_id=r.id)
    assert "ZeroDivisionError" in text(broken) and broken.status == "completed", broken
    ended, exits = compute("import os; print('bye', flush=True); os._exit(3)", AUTO, previous_response_id=r.id)
    assert exits.status == "failed" and "bye" in text(exits), exits
    anew, fresh = compute("print('x' in dir(), open('kept').read())", AUTO, previous_response_id=r.id)
    assert text(fresh) == "False kept\n" and "started again" in anew.output_text, anew
    client.containers.delete(call.container_id)
    gone, new = compute("import os; print(os.path.exists('kept'))", AUTO, previous_response_id=r.id)
    assert text(new) == "False\n" and new.container_id != call.container_id, new
    before = len(list(client.containers.list()))
    assert "1" in compute("print(1)", AUTO, store=False)[0].output_text
    until(lambda: len(list(client.containers.list())) == before, "the container of a response that is not kept goes with it")
    with client.responses.create(model="scripted", input="compute import time; time.sleep(60)", tools=[AUTO], store=False, stream=True) as leaving:
        for event in leaving:
            if event.type == "response.code_interpreter_call.interpreting":
                break
        until(lambda: len(list(client.containers.list())) == before + 1, "the code runs in a container")
    until(lambda: len(list(client.containers.list())) == before, "the container goes with the client")
    carried = client.responses.create(model="scripted", input=[*[i.model_dump() for i in alone.output], {"role": "user", "content": "say carried"}])
    assert carried.output_text == "carried", carried
    refused(openai.BadRequestError, "file_ids", client.responses.create, model="scripted", input="x", tools=[{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}])
    for c in client.containers.list():
        client.containers.delete(c.id)
    print("automatic", flush=True)


def streamed():
    events = []
    with client.responses.create(model="scripted", input="compute print(6 * 7)", tools=[AUTO], include=OUTPUTS, stream=True) as stream:
        for event in stream:
            events.append(event)
    assert [e.sequence_number for e in events] == list(range(len(events)))
    kinds = [e.type for e in events if "code_interpreter" in e.type or "output_item" in e.type and e.item.type == "code_interpreter_call"]
    deltas = [e.delta for e in events if e.type == "response.code_interpreter_call_code.delta"]
    assert kinds == ["response.output_item.added", "response.code_interpreter_call.in_progress",
                     *["response.code_interpreter_call_code.delta"] * len(deltas),
                     "response.code_interpreter_call_code.done", "response.code_interpreter_call.interpreting",
                     "response.code_interpreter_call.completed", "response.output_item.done"], kinds
    code = next(e for e in events if e.type == "response.code_interpreter_call_code.done")
    assert code.code == "".join(deltas) == "print(6 * 7)" and len(deltas) > 1, (code, deltas)
    done = next(e for e in events if e.type == "response.output_item.done")
    assert text(done.item) == "42\n" and done.item.container_id.startswith("cntr_"), done
    again = list(client.responses.retrieve(events[0].response.id, stream=True))
    assert [e.model_dump() for e in again] == [e.model_dump() for e in events], again
    with client.responses.stream(model="scripted", input="compute print(6 * 7)", tools=[AUTO], include=OUTPUTS) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    assert "42" in final.output_text, final
    print("streamed", flush=True)


def cancelled():
    r = client.responses.create(model="scripted", input="compute print('on', flush=True)\nwhile True: pass", tools=[AUTO], background=True)
    for event in client.responses.retrieve(r.id, stream=True):
        if event.type == "response.code_interpreter_call.interpreting":
            break
    got = client.responses.cancel(r.id)
    assert got.status == "cancelled", got
    for c in client.containers.list():
        client.containers.delete(c.id)
    print("cancelled", flush=True)


files(containers())
automatic()
streamed()
cancelled()
