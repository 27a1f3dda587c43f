"""The calls of scenarios, as the public methods of this library. The methods of Atoll and of
AsyncAtoll have the same names, so one table is for both."""

from __future__ import annotations

import base64
import dataclasses
import io
from collections.abc import Callable
from typing import Any

from atoll import webhooks

Args = dict[str, Any]


@dataclasses.dataclass
class Typed:
    """A terminal that is to be opened, and what is typed."""

    opening: Any
    text: str


class Zeros(io.RawIOBase):
    """So many zero bytes, as a stream."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self.left)
        buffer[:size] = bytes(size)
        self.left -= size
        return size


def content(a: Args) -> Any:
    if "zeros" in a:
        return io.BufferedReader(Zeros(a.pop("zeros")))
    if "content_base64" in a:
        return base64.b64decode(a.pop("content_base64"))
    return a.pop("content").encode()


def box(c: Any, a: Args) -> Any:
    return c.sandbox(a.pop("sandbox"), session=a.pop("session", None))


def process(c: Any, a: Args) -> Any:
    return box(c, a).processes(a.pop("process"))


def seconds(a: Args, *names: str) -> Args:
    """The arguments with these times, in milliseconds on the wire, in seconds."""
    for name in names:
        if f"{name}_ms" in a:
            a[name] = a.pop(f"{name}_ms") / 1000
    return a


def command(a: Args) -> Any:
    return a.pop("argv", None) or a.pop("command")


def renamed(a: Args, **names: str) -> Args:
    for old, new in names.items():
        if old in a:
            a[new] = a.pop(old)
    return a


def session_event(c: Any, a: Args, **more: Any) -> Any:
    return c.sessions.send(a.pop("session_id"), **more, **a)


def tool(name: str) -> Callable[[Any, Args], Any]:
    return lambda c, a: getattr(c.tools(a.pop("session")), name)(**a)


def simple(path: str, *names: str, **rename: str) -> Callable[[Any, Args], Any]:
    """A method that takes these arguments by position, and the others by name."""

    def call(c: Any, a: Args) -> Any:
        target = c
        for part in path.split("."):
            target = getattr(target, part)
        first = [a.pop(name) for name in names]
        return target(*first, **renamed(a, **rename))

    return call


CALLS: dict[str, Callable[[Any, Args], Any]] = {
    "executions.run": simple("executions.create", "code"),
    "executions.start": simple("executions.start", "code"),
    "executions.stream": simple("executions.stream", "code"),
    "executions.list": simple("executions.list"),
    "executions.get": simple("executions.get", "trace_id"),
    "executions.cancel": simple("executions.cancel", "trace_id"),
    "executions.delete": simple("executions.delete", "trace_id"),
    "executions.follow": simple("executions.follow", "trace_id"),
    "executions.output": simple("executions.output", "trace_id", "stream"),
    "executions.file": simple("executions.file", "trace_id", "path"),
    "executions.wait": simple("executions.wait", "trace_id"),
    "threads.list": simple("threads.list"),
    "threads.get": simple("threads.get", "thread_id"),
    "threads.change": simple("threads.update", "thread_id"),
    "threads.delete": simple("threads.delete", "thread_id"),
    "threads.export": simple("threads.export", "thread_id"),
    "threads.import": lambda c, a: c.threads.import_(a.pop("thread_id"), content(a), **a),
    "threads.files.list": simple("threads.files.list", "thread_id"),
    "threads.files.read": simple("threads.files.read", "thread_id", "path"),
    "threads.files.write": lambda c, a: c.threads.files.write(a.pop("thread_id"), a.pop("path"), content(a), **a),
    "threads.files.delete": simple("threads.files.delete", "thread_id", "path"),
    "threads.files.sign": simple("threads.files.sign", "thread_id", "path"),
    "storage.list": simple("storage.list", "source", "id"),
    "storage.upload_url": simple("storage.upload_url", "source", "id", "path"),
    "storage.download_url": simple("storage.download_url", "source", "id", "path"),
    "files.upload": lambda c, a: c.files.upload(content(a), **a),
    "files.list": simple("files.list"),
    "files.get": simple("files.get", "file_id"),
    "files.content": simple("files.content", "file_id"),
    "files.delete": simple("files.delete", "file_id"),
    "sandboxes.create": lambda c, a: c.sandboxes.create(a.pop("name"), **seconds(a, "timeout", "sleep_after")),
    "sandboxes.list": simple("sandboxes.list"),
    "sandboxes.get": lambda c, a: box(c, a).refresh(**a),
    "sandboxes.delete": lambda c, a: box(c, a).delete(**a),
    "sandboxes.sleep": lambda c, a: box(c, a).sleep(**a),
    "sandboxes.restart": lambda c, a: box(c, a).restart(**a),
    "sandboxes.fork": lambda c, a: box(c, a).fork(**a),
    "sandboxes.snapshot": lambda c, a: box(c, a).snapshot(**seconds(a, "keep")),
    "sandboxes.set_network": lambda c, a: box(c, a).set_network(**a),
    "sandboxes.set_timeout": lambda c, a: box(c, a).set_timeout(**seconds(a, "timeout", "sleep_after")),
    "sandboxes.metrics": lambda c, a: box(c, a).metrics(**a),
    "sandboxes.ports": lambda c, a: box(c, a).ports(**a),
    "sandboxes.exec": lambda c, a: box(c, a).run(command(a), **seconds(a, "timeout")),
    "sandboxes.exec_stream": lambda c, a: box(c, a).processes.stream(command(a), **seconds(a, "timeout")),
    "sandboxes.terminal": lambda c, a: Typed(
        box(c, a).terminal(**{k: a.pop(k) for k in ("rows", "columns", "command") if k in a}), a.pop("input")
    ),
    "sandboxes.terminal_ticket": lambda c, a: box(c, a).terminal_ticket(**a),
    "sandboxes.files.read": lambda c, a: box(c, a).files.open(**a),
    "sandboxes.files.write": lambda c, a: box(c, a).files.write(
        a.pop("path"), content(a), **(a | ({"mode": int(a["mode"], 8)} if "mode" in a else {}))
    ),
    "sandboxes.files.delete": lambda c, a: box(c, a).files.delete(**a),
    "sandboxes.files.list": lambda c, a: box(c, a).files.list(**a),
    "sandboxes.files.stat": lambda c, a: box(c, a).files.stat(**a),
    "sandboxes.files.make_directory": lambda c, a: box(c, a).files.make_folder(**a),
    "sandboxes.files.move": lambda c, a: box(c, a).files.move(a.pop("from"), a.pop("to"), **a),
    "sandboxes.files.watch": lambda c, a: box(c, a).files.watch(**a),
    "sandboxes.files.pack": lambda c, a: box(c, a).files.pack(**a),
    "sandboxes.files.unpack": lambda c, a: box(c, a).files.unpack(a.pop("path"), content(a), **a),
    "sandboxes.processes.start": lambda c, a: box(c, a).processes.start(command(a), **seconds(a, "timeout")),
    "sandboxes.processes.list": lambda c, a: box(c, a).processes.list(**a),
    "sandboxes.processes.get": lambda c, a: process(c, a).refresh(**a),
    "sandboxes.processes.wait": lambda c, a: process(c, a).wait(**seconds(a, "timeout")),
    "sandboxes.processes.follow": lambda c, a: process(c, a).output(**a),
    "sandboxes.processes.signal": lambda c, a: process(c, a).signal(a.pop("signal"), **a),
    "sandboxes.processes.write": lambda c, a: process(c, a).write(content(a), **a),
    "sandboxes.processes.delete": lambda c, a: process(c, a).kill(**a),
    "sandboxes.processes.kill_all": lambda c, a: box(c, a).processes.kill_all(**a),
    "sandboxes.previews.list": lambda c, a: box(c, a).previews(**a),
    "sandboxes.previews.open": lambda c, a: box(c, a).open_preview(**a),
    "sandboxes.previews.close": lambda c, a: box(c, a).close_preview(**a),
    "snapshots.list": simple("snapshots.list"),
    "snapshots.get": simple("snapshots.get", "snapshot"),
    "snapshots.delete": simple("snapshots.delete", "snapshot"),
    "contexts.create": lambda c, a: box(c, a).contexts.create(**a),
    "contexts.list": lambda c, a: box(c, a).contexts.list(**a),
    "contexts.get": lambda c, a: box(c, a).contexts.get(**a),
    "contexts.run": lambda c, a: box(c, a).contexts.run(**seconds(a, "timeout")),
    "contexts.stream": lambda c, a: box(c, a).contexts.stream(**seconds(a, "timeout")),
    "contexts.interrupt": lambda c, a: box(c, a).contexts.interrupt(**a),
    "contexts.restart": lambda c, a: box(c, a).contexts.restart(**a),
    "contexts.delete": lambda c, a: box(c, a).contexts.delete(**a),
    "tools.list": simple("tools.list"),
    **{
        f"tools.{name}": tool(name)
        for name in (
            "browse",
            "execute_code",
            "glob",
            "read_file",
            "sandbox_create",
            "sandbox_list",
            "shell",
            "transfer",
            "write_file",
        )
    },
    "tools.run_code": simple("tools.execute_code"),
    "tools.end_turn": simple("tools.end_turn", "turn"),
    "responses.create": simple("responses.create"),
    "responses.stream": simple("responses.stream"),
    "responses.get": simple("responses.get", "response_id"),
    "responses.follow": simple("responses.follow", "response_id"),
    "responses.cancel": simple("responses.cancel", "response_id"),
    "responses.delete": simple("responses.delete", "response_id"),
    "responses.inputs": simple("responses.input_items", "response_id"),
    "responses.files": simple("responses.files", "response_id"),
    "responses.file": simple("responses.file", "response_id", "file_id"),
    "agents.create": simple("agents.create"),
    "agents.list": simple("agents.list"),
    "agents.get": simple("agents.get", "agent"),
    "agents.change": simple("agents.update", "agent"),
    "agents.archive": simple("agents.archive", "agent"),
    "agents.delete": simple("agents.delete", "agent"),
    "agents.copy": simple("agents.copy", "agent"),
    "agents.versions": simple("agents.versions", "agent"),
    "agents.version": simple("agents.get", "agent"),
    "sessions.create": simple("sessions.create"),
    "sessions.list": simple("sessions.list"),
    "sessions.get": simple("sessions.get", "session_id"),
    "sessions.change": simple("sessions.update", "session_id"),
    "sessions.delete": simple("sessions.delete", "session_id"),
    "sessions.archive": simple("sessions.archive", "session_id"),
    "sessions.context": simple("sessions.context", "session_id"),
    "sessions.interrupt": simple("sessions.interrupt", "session_id"),
    "sessions.send": session_event,
    "sessions.start": lambda c, a: session_event(c, a, wait=False),
    "sessions.stream": simple("sessions.stream", "session_id"),
    "sessions.follow": simple("sessions.follow", "session_id"),
    "sessions.events": simple("sessions.events", "session_id", types="types_"),
    "sessions.files": simple("sessions.files", "session_id"),
    "sessions.file": simple("sessions.file", "session_id", "file_id"),
    "sessions.threads": simple("sessions.threads", "session_id"),
    "sessions.thread": simple("sessions.thread", "session_id", "thread_id"),
    "sessions.thread_events": simple("sessions.thread_events", "session_id", "thread_id", types="types_"),
    "sessions.thread_follow": simple("sessions.follow_thread", "session_id", "thread_id"),
    "skills.create": simple("skills.create", "skill_files"),
    "skills.list": simple("skills.list"),
    "skills.get": simple("skills.get", "skill_id"),
    "skills.archive": simple("skills.archive", "skill_id"),
    "skills.delete": simple("skills.delete", "skill_id"),
    "skills.versions.create": simple("skills.create_version", "skill_id", "skill_files"),
    "skills.versions.list": simple("skills.versions", "skill_id"),
    "skills.versions.get": simple("skills.version", "skill_id", "version"),
    "skills.versions.content": simple("skills.content", "skill_id", "version"),
    "skills.versions.delete": simple("skills.delete_version", "skill_id", "version"),
    "vaults.create": simple("vaults.create"),
    "vaults.list": simple("vaults.list"),
    "vaults.get": simple("vaults.get", "vault_id"),
    "vaults.change": simple("vaults.update", "vault_id"),
    "vaults.archive": simple("vaults.archive", "vault_id"),
    "vaults.delete": simple("vaults.delete", "vault_id"),
    "vaults.credentials.create": simple("vaults.create_credential", "vault_id"),
    "vaults.credentials.list": simple("vaults.credentials", "vault_id"),
    "vaults.credentials.get": simple("vaults.credential", "vault_id", "credential_id"),
    "vaults.credentials.change": simple("vaults.update_credential", "vault_id", "credential_id"),
    "vaults.credentials.archive": simple("vaults.archive_credential", "vault_id", "credential_id"),
    "vaults.credentials.delete": simple("vaults.delete_credential", "vault_id", "credential_id"),
    "containers.create": simple("containers.create"),
    "containers.list": simple("containers.list"),
    "containers.get": simple("containers.get", "container_id"),
    "containers.delete": simple("containers.delete", "container_id"),
    "containers.files.create": lambda c, a: c.containers.files.create(a.pop("container_id"), content(a), **a),
    "containers.files.list": simple("containers.files.list", "container_id"),
    "containers.files.get": simple("containers.files.get", "container_id", "file_id"),
    "containers.files.content": simple("containers.files.content", "container_id", "file_id"),
    "containers.files.delete": simple("containers.files.delete", "container_id", "file_id"),
    "tokens.create": simple("tokens.create"),
    "tokens.list": simple("tokens.list"),
    "tokens.delete": simple("tokens.delete", "token_id"),
    "environments.create": simple("environments.create"),
    "environments.list": simple("environments.list"),
    "environments.get": simple("environments.get", "environment"),
    "environments.change": simple("environments.update", "environment"),
    "environments.delete": simple("environments.delete", "environment"),
    "models.list": simple("models.list"),
    "models.get": simple("models.get", "model"),
    "model_keys.list": simple("models.keys"),
    "model_keys.put": simple("models.set_key", "model"),
    "model_keys.delete": simple("models.delete_key", "model"),
    "usage.get": simple("usage.get"),
    "approvals.list": simple("approvals.list"),
    "approvals.get": simple("approvals.get", "approval_id"),
    "approvals.decide": simple("approvals.decide", "approval_id"),
    "activity.list": simple("activity.list"),
    "admin.tenants.create": simple("admin.tenants.create"),
    "admin.tenants.list": simple("admin.tenants.list"),
    "admin.tenants.get": simple("admin.tenants.get", "tenant"),
    "admin.tenants.change": simple("admin.tenants.update", "tenant"),
    "admin.tenants.delete": simple("admin.tenants.delete", "tenant"),
    "admin.environments.create": simple("admin.environments.create", "tenant"),
    "admin.environments.list": simple("admin.environments.list", "tenant"),
    "admin.environments.get": simple("admin.environments.get", "tenant", "environment"),
    "admin.environments.change": simple("admin.environments.update", "tenant", "environment"),
    "admin.environments.delete": simple("admin.environments.delete", "tenant", "environment"),
    "admin.keys.create": simple("admin.keys.create", "tenant"),
    "admin.keys.list": simple("admin.keys.list", "tenant"),
    "admin.keys.get": simple("admin.keys.get", "tenant", "key"),
    "admin.keys.change": simple("admin.keys.update", "tenant", "key"),
    "admin.keys.revoke": simple("admin.keys.revoke", "tenant", "key"),
    "admin.connections.create": simple("admin.storage.create", "tenant"),
    "admin.connections.list": simple("admin.storage.list", "tenant"),
    "admin.connections.get": simple("admin.storage.get", "tenant", "connection"),
    "admin.connections.change": simple("admin.storage.update", "tenant", "connection"),
    "admin.connections.delete": simple("admin.storage.delete", "tenant", "connection"),
    "admin.grants.create": simple("admin.storage.grant", "tenant", "connection"),
    "admin.grants.list": simple("admin.storage.grants", "tenant", "connection"),
    "admin.grants.delete": simple("admin.storage.revoke", "tenant", "connection", "grant"),
    "admin.templates.put": simple("admin.templates.put", "tenant", "template"),
    "admin.templates.list": simple("admin.templates.list", "tenant"),
    "admin.templates.get": simple("admin.templates.get", "tenant", "template"),
    "admin.templates.delete": simple("admin.templates.delete", "tenant", "template"),
    "admin.model_keys.put": simple("admin.models.set_key", "tenant", "model"),
    "admin.model_keys.list": simple("admin.models.keys", "tenant"),
    "admin.model_keys.delete": simple("admin.models.delete_key", "tenant", "model"),
    "admin.policy_events.list": simple("admin.tenants.policy_events", "tenant"),
    "admin.usage.get": simple("admin.tenants.usage", "tenant"),
    "admin.activity.list": simple("admin.tenants.activity", "tenant"),
    "admin.webhooks.redeliver": simple("admin.tenants.redeliver", "tenant", "trace_id"),
    "admin.plans.put": lambda c, a: c.admin.plans.put(a.pop("plan"), a),
    "admin.plans.list": simple("admin.plans.list"),
    "admin.plans.get": simple("admin.plans.get", "plan"),
    "admin.plans.delete": simple("admin.plans.delete", "plan"),
    "admin.caps.get": simple("admin.caps"),
    "admin.caps.change": simple("admin.update_caps"),
    "admin.models.create": simple("admin.models.create"),
    "admin.models.list": simple("admin.models.list"),
    "admin.models.get": simple("admin.models.get", "model"),
    "admin.models.change": simple("admin.models.update", "model"),
    "admin.models.delete": simple("admin.models.delete", "model"),
    "admin.models.test": simple("admin.models.test", "model"),
    "admin.orphans.list": simple("admin.orphans"),
    "admin.orphans.reap": simple("admin.reap_orphans"),
    "admin.audit.list": simple("admin.audit.list", "tenant"),
    "admin.audit.export": simple("admin.audit.export", "tenant"),
    "admin.audit.verify": simple("admin.audit.verify", "tenant"),
    "admin.audit.trails": simple("admin.audit.trails"),
    "web.search": simple("web.search"),
    "web.fetch": simple("web.fetch"),
    "webhooks.verify": lambda c, a: webhooks.verify(**a),
}
