"""Drives skills by Anthropic's client for Python, as it is published."""

import io
import os
import zipfile

import anthropic

URL, KEY = os.environ["ATOLL_URL"], os.environ["ATOLL_KEY"]
MAIN = b"---\nname: report\ndescription: Writes reports.\n---\nRead references/form.txt.\n"
FILES = [
    ("report/SKILL.md", io.BytesIO(MAIN), "text/markdown"),
    ("report/references/form.txt", io.BytesIO(b"Dear customer\n"), "text/plain"),
    ("report/scripts/run.sh", io.BytesIO(b"#!/bin/sh\necho ran\n"), "text/plain"),
]


def files(description=b"Writes reports."):
    out = []
    for name, data, kind in FILES:
        out.append((name, io.BytesIO(data.getvalue().replace(b"Writes reports.", description)), kind))
    return out


client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
s = client.beta.skills.create(display_name="Reports", files=files())
assert s.id.startswith("skill_") and s.display_name == "Reports" and s.source.type == "custom" and s.type == "skill", s
assert client.beta.skills.retrieve(s.id).latest_version_id == s.latest_version_id
print("create")
v = client.beta.skills.versions.create(s.id, files=files(b"Writes better reports."))
assert v.type == "skill_version" and v.skill_id == s.id and v.name == "report" and v.description == "Writes better reports.", v
assert [x.id for x in client.beta.skills.versions.list(s.id, limit=1)] == [v.id, s.latest_version_id]
assert client.beta.skills.versions.retrieve("latest", skill_id=s.id).id == v.id
archive = zipfile.ZipFile(io.BytesIO(client.beta.skills.versions.download(v.id, skill_id=s.id).read()))
assert sorted(archive.namelist()) == ["report/SKILL.md", "report/references/form.txt", "report/scripts/run.sh"], archive.namelist()
print("versions")
assert s.id in [x.id for x in client.beta.skills.list(limit=1)]
assert list(client.beta.skills.list(source="anthropic")) == []
other = client.beta.skills.create(files=[("SKILL.md", io.BytesIO(b"---\nname: other\ndescription: x\n---\n"), "text/markdown")])
gone = client.beta.skills.versions.create(other.id, files=[("SKILL.md", io.BytesIO(b"---\nname: other\ndescription: y\n---\n"), "text/markdown")])
assert client.beta.skills.versions.delete(gone.id, skill_id=other.id).type == "skill_version_deleted"
assert client.beta.skills.delete(other.id).type == "skill_deleted"
print("delete")
for error, call in (
    (anthropic.NotFoundError, lambda: client.beta.skills.retrieve(other.id)),
    (anthropic.ConflictError, lambda: client.beta.skills.create(files=files())),
    (anthropic.BadRequestError, lambda: client.beta.skills.create(files=[("a/x", io.BytesIO(b""), "text/plain")])),
    (anthropic.AuthenticationError, lambda: client.with_options(api_key="sk-atoll-wrong").beta.skills.list()),
):
    try:
        call()
        raise AssertionError(f"no {error}")
    except error as e:
        assert e.body["type"] == "error", e.body
print("refused")
a = client.beta.agents.create(name="Writer", model="skilled", tools=[{"type": "agent_toolset_20260401"}], skills=[{"type": "custom", "skill_id": s.id, "version": "latest"}])
assert [(k.type, k.skill_id, k.version) for k in a.skills] == [("custom", s.id, v.id)], a.skills
b = client.beta.agents.update(a.id, skills=[])
assert b.skills == [] and b.version == 2, b
print("agents")
