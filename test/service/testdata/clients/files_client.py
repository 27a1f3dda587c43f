"""Drives files by Anthropic's client for Python, as it is published."""

import datetime
import io
import json
import os

import anthropic

URL, KEY = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"]
DATA = os.urandom(700_000) + b"the end"
CSV = b"name,amount\nada,3\ngrace,4\n"
client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
files, sessions = client.beta.files, client.beta.sessions

f = files.upload(file=("dir/data.bin", io.BytesIO(DATA), "application/octet-stream"))
assert f.id.startswith("file_") and f.filename == "data.bin" and f.size_bytes == len(DATA) and f.type == "file" and f.downloadable and f.expires_at is None, f
assert files.retrieve_metadata(f.id) == f
assert files.download(f.id).read() == DATA
print("upload")
csv = files.upload(file=("sums.csv", CSV, "text/csv"), expires_in_seconds=3600)
assert csv.expires_at - csv.created_at == datetime.timedelta(hours=1) and csv.mime_type == "text/csv", csv
assert [x.id for x in files.list(limit=1)] == [csv.id, f.id]
assert [x.id for x in files.list(ids=[f.id, "file_x"])] == [f.id]
print("list")


def turn(session, *blocks):
    with sessions.events.stream(session) as stream:
        sessions.events.send(session, events=[{"type": "user.message", "content": list(blocks)}])
        said = ""
        for e in stream:
            if e.type == "agent.message":
                said += "".join(b.text for b in e.content)
            if e.type == "session.status_idle":
                return said


def plan(*code):
    return {"type": "text", "text": json.dumps([{"tool": "run_code", "args": {"language": "bash", "code": c}} for c in code])}


a = client.beta.agents.create(name="Analyst", model="filed", tools=[{"type": "agent_toolset_20260401"}])
s = sessions.create(agent=a.id, environment_id="main", resources=[{"type": "file", "file_id": csv.id}, {"type": "file", "file_id": f.id, "mount_path": "/mnt/session/in/data.bin"}])
assert [(r.type, r.file_id, r.mount_path) for r in s.resources] == [("file", csv.id, "/mnt/session/uploads/" + csv.id), ("file", f.id, "/mnt/session/in/data.bin")], s
assert s.resources[0].id != s.resources[1].id and s.warnings == [], s
said = turn(s.id, plan("cat /mnt/session/uploads/%s; wc -c /mnt/session/in/data.bin; tail -c 7 /mnt/session/in/data.bin; "
                       "echo x 2>/dev/null >/mnt/session/in/data.bin || echo kept; rm -f /mnt/session/in/data.bin 2>/dev/null || echo stays" % csv.id))
for want in ("grace,4", "%d /mnt/session/in/data.bin" % len(DATA), "the end", "kept", "stays"):
    assert want in said, (want, said)
print("resources")
said = turn(s.id, plan("ls; cat sums.csv"), {"type": "document", "source": {"type": "file", "file_id": csv.id}})
assert "grace,4" in said, said
print("message")
said = turn(s.id, {"type": "text", "text": json.dumps([
    {"tool": "run_code", "args": {"language": "bash", "code": "tr a-z A-Z <sums.csv >made.csv"}}, {"tool": "share_file", "args": {"file_path": "made.csv"}}])})
shared = list(files.list(scope_id=s.id))
assert len(shared) == 1 and shared[0].scope.id == s.id and shared[0].scope.type == "session" and shared[0].filename == "made.csv", shared
assert files.download(shared[0].id).read() == CSV.upper() and files.retrieve_metadata(shared[0].id).size_bytes == len(CSV)
print("shared")
gone = files.delete(f.id)
assert gone.id == f.id and gone.type == "file_deleted", gone
for error, call in (
    (anthropic.NotFoundError, lambda: files.retrieve_metadata(f.id)),
    (anthropic.NotFoundError, lambda: files.download(f.id)),
    (anthropic.NotFoundError, lambda: files.delete(f.id)),
    (anthropic.NotFoundError, lambda: files.delete(shared[0].id)),
    (anthropic.NotFoundError, lambda: files.list(scope_id="sess_x")),
    (anthropic.BadRequestError, lambda: files.upload(file=("a", b"x"), expires_in_seconds=1)),
    (anthropic.BadRequestError, lambda: sessions.create(agent=a.id, environment_id="main", resources=[{"type": "file", "file_id": f.id}])),
    (anthropic.BadRequestError, lambda: sessions.create(agent=a.id, environment_id="main", resources=[{"type": "file", "file_id": csv.id, "mount_path": "/etc/passwd"}])),
    (anthropic.BadRequestError, lambda: turn(s.id, {"type": "document", "source": {"type": "file", "file_id": f.id}})),
    (anthropic.BadRequestError, lambda: turn(s.id, {"type": "image", "source": {"type": "file", "file_id": csv.id}})),
    (anthropic.AuthenticationError, lambda: client.with_options(api_key="sk-atoll-wrong").beta.files.list()),
):
    try:
        call()
        raise AssertionError(f"no {error}")
    except error as e:
        assert e.body["type"] == "error", e.body
print("refused")
