# Code generated from api/openapi.json by datamodel-code-generator 0.89.0; tools/generate.py runs it. DO NOT EDIT.
from __future__ import annotations

from datetime import date as date_aliased
from datetime import datetime
from typing import Any, Literal, ClassVar

from ._record import Record


class AcceptedResponse(Record):
    """
    AcceptedResponse says that an execution continues without its caller.
    """

    __slots__ = ()
    status: Literal["running", "success", "failed", "timeout", "oom", "blocked", "cancelled"]
    """
    running, unless the request repeats an earlier one whose execution has ended.
    """
    trace_id: str
    """
    Names the execution, for GET /v1/executions/{trace_id}.
    """


class Activity(Record):
    """
    Activity is a call that ended, runs, or was rejected.
    """

    __slots__ = ()
    agent_id: str
    """
    The agent that made the call; for execute_code, the caller's name for it. Empty without an agent.
    """
    at: datetime
    """
    When the call ended; while it runs, when it began.
    """
    cost_usd: float
    """
    Cost of the model in US dollars. Usage also counts the prices of tools and windows.
    """
    credits: float
    """
    Credits charged for the call.
    """
    duration_ms: int
    """
    Duration in milliseconds.
    """
    environment_id: str
    """
    The environment of the call.
    """
    environment_name: str
    """
    The environment's name; empty once it is deleted.
    """
    executed_code_hash: str
    """
    SHA-256 of the code, command, path or model request, in hexadecimal digits.
    """
    exit_code: int
    """
    The exit code of the program; 128+n when signal n ended it. 0 while it runs.
    """
    failure_reason: str
    """
    Why the call failed or was rejected; empty if it succeeded.
    """
    key_id: str
    """
    The key or token of the caller; for an agent's call, the one that began the turn.
    """
    key_name: str
    """
    The name of the key, or of the key that created the token; empty once the key is deleted.
    """
    kind: Literal["code", "command", "file", "sandbox", "model", "web", "mcp", "confirmation", "other"]
    """
    The kind of call.
    """
    language: str
    """
    The language of the code.
    """
    metadata: dict[str, str]
    """
    Other details of the call.
    """
    outbound_hosts: list[str]
    """
    Hosts that the call contacted, and hosts that the network policy rejected.
    """
    sandbox_id: str
    """
    The named sandbox; empty if the call used none.
    """
    session_id: str
    """
    The agent's session; for a response, its container; for other calls, the session or turn that they name.
    """
    source: str
    """
    The interface or tool that the caller used, as in the audit trail: execute, a tool such as shell, or an operation of a named sandbox such as process.
    """
    status: Literal["running", "ok", "error", "timeout", "oom", "cap_exceeded", "provisioning", "cancelled"]
    """
    The result of the call; running while it runs.
    """
    text: str | None
    """
    The first 4 KiB of the code or command, redacted. null unless the tenant keeps texts (audit_text).
    """
    thread_id: str
    """
    The thread whose home directory the call used; empty if it used none.
    """
    tool: str
    """
    The tool that a model called; empty if the call did not come from a model.
    """
    trace_id: str
    """
    The trace id of the request or execution.
    """
    turn_id: str
    """
    The turn of the agent's session, or the response; empty if the call did not come from a model.
    """


class AgentCompaction(Record):
    """
    AgentCompaction says when a conversation is summarized.
    """

    __slots__ = ()
    mode: Literal["auto", "off"]
    """
    auto: before a conversation is longer than the model reads, the model summarizes its beginning. off: its beginning is omitted.
    """
    at_tokens: int | None
    """
    Of auto: summarize from this size on, if the model reads more.
    """


class AgentHandoff(Record):
    """
    AgentHandoff is an agent that another one may hand work to.
    """

    __slots__ = ()
    agent_id: str
    """
    Id or slug of an agent of the tenant.
    """
    agent_version: int | None
    """
    The version that is kept: the current one if omitted.
    """
    description: str | None
    """
    Strengths of the agent; its description if omitted.
    """
    name: str | None
    """
    Name that the model sees, from which the name of its tool derives; the agent's name if omitted.
    """
    trigger: str | None
    """
    When to hand on.
    """


class AgentModel(Record):
    """
    AgentModel says which model an agent asks, and how.
    """

    __slots__ = ()
    name: str
    """
    GET /v1/models lists what there is.
    """
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None
    """
    How much the model thinks before it answers.
    """
    max_tokens: int | None
    """
    Of all answers of a turn together.
    """
    stop: list[str] | None
    """
    Up to 16 texts before the first of which an answer ends.
    """
    temperature: float | None
    """
    How freely the model chooses words, 0 to 2.
    """
    top_p: float | None
    """
    From how much of the likely words the model chooses, 0 to 1.
    """


class AgentMultiagent(Record):
    """
    AgentMultiagent says how an agent hands on.
    """

    __slots__ = ()
    context_sharing: Literal["full", "summary"] | None
    """
    The conversation that the other agent sees: all of it (full), or a summary by the model (summary). summary if omitted; always full in a swarm.
    """
    max_delegations: int | None
    """
    Hand-offs of a turn, with those of the agents that it handed on to; 10 if omitted.
    """
    mode: Literal["orchestrator", "swarm"] | None
    """
    orchestrator, if omitted: the other agent works in a thread of its own, and its answer comes back. swarm: the conversation moves to the other agent.
    """
    parallel: bool | None
    """
    Of orchestrator: up to 8 of them work side by side. false if omitted.
    """
    sandbox: Literal["shared", "own"] | None
    """
    Of orchestrator: whether the tool sandbox of the other agent is that of this one, or one of its own that ends with its work. shared if omitted.
    """
    timeout_per_handoff_ms: int | None
    """
    Of orchestrator: 60000 if omitted.
    """


class AgentServer(Record):
    """
    AgentServer is an MCP server that an agent may use.
    """

    __slots__ = ()
    name: str
    """
    Its name.
    """
    allowed_tools: list[str] | None
    """
    Omitted, all of them; empty, none.
    """
    args: list[str] | None
    """
    Of stdio, shown as they are given.
    """
    command: str | None
    """
    Of stdio: a program, by its name or path in the sandbox.
    """
    description: str | None
    """
    Purpose, in words.
    """
    env: dict[str, str] | None
    """
    Of stdio: variables of the program. Stored encrypted and never shown. Omitted in a change, they stay while name and command do.
    """
    headers: dict[str, str] | None
    """
    Stored encrypted and never shown. Omitted in a change, they stay while name and url do.
    """
    type: Literal["url", "stdio"] | None
    """
    url: a server at url; stdio: a program in the session's sandbox default. Omitted, what url or command says.
    """
    url: str | None
    """
    It is shown as it is given: keys belong in headers.
    """


class AgentSkill(Record):
    """
    AgentSkill is a skill of an agent.
    """

    __slots__ = ()
    name: str
    """
    Its name.
    """
    type: Literal["built_in", "custom"]
    """
    built_in: one of the server's own; custom: one of the tenant's.
    """
    config: Any | None
    """
    Of built_in, as it was given.
    """
    skill_id: str | None
    """
    Of custom.
    """
    version: str | None
    """
    Of custom: the id of the version that the agent keeps.
    """


class AgentTool(Record):
    """
    AgentTool is a tool of an agent.
    """

    __slots__ = ()
    type: Literal["mcp", "custom", "sandbox", "sandboxes", "web_search", "fetch_url"]
    """
    Type, which decides the other fields.
    """
    description: str | None
    """
    Of custom.
    """
    input_schema: Any | None
    """
    Of custom: JSON Schema.
    """
    name: str | None
    """
    Of custom.
    """
    server: str | None
    """
    Of mcp: the name of one of mcp_servers, or web-search, fetch-url or sandbox for the server's own.
    """


class AnthropicTool(Record):
    """
    AnthropicTool is a tool as the Messages API takes it.
    """

    __slots__ = ()
    description: str
    """
    Purpose, in words.
    """
    input_schema: Any
    """
    JSON Schema of the arguments.
    """
    name: str
    """
    Its name.
    """


class Approval(Record):
    """
    Approval is a tool call with its decision, or without one while it waits.
    """

    __slots__ = ()
    agent_id: str | None
    """
    The agent that wants to make the call; null for a response.
    """
    approval_request_id: str | None
    """
    The item mcp_approval_request of the response; null for a session.
    """
    arguments: str
    """
    The arguments of the call as JSON, redacted.
    """
    continued_by: str | None
    """
    The turn or response that continues after the decision; null while other calls of the same answer wait, or while a limit delays the response.
    """
    created_at: datetime
    """
    When the call began to wait.
    """
    decided_at: datetime | None
    """
    When the call was decided; null while it waits.
    """
    decided_by: str | None
    """
    The key or token that decided; null while the call waits, and after its deadline.
    """
    environment_id: str
    """
    The environment in which Atoll would run the call.
    """
    expires_at: datetime | None
    """
    The deadline, at which Atoll denies the call; null without a deadline.
    """
    id: str
    """
    apr_ and 32 hexadecimal digits.
    """
    key_id: str
    """
    The key that began the turn or response.
    """
    reason: str | None
    """
    The reason of the decision; null without one.
    """
    response_id: str | None
    """
    The response that requested the call; null for a session.
    """
    server: str | None
    """
    The MCP server of the tool; null for other tools.
    """
    session_id: str | None
    """
    The agent's session; null for a response.
    """
    session_thread_id: str | None
    """
    The thread of the session that made the call; null for the session itself.
    """
    status: Literal["pending", "approved", "denied", "expired", "cancelled"]
    """
    expired: Atoll denied the call at its deadline. cancelled: a client interrupted or archived the session.
    """
    tool: str
    """
    The name of the tool.
    """
    tool_use_id: str | None
    """
    The event of the call in the session; null for a response.
    """
    turn_id: str | None
    """
    The turn that requested the call; null for a response.
    """
    type: str
    """
    approval
    """


class AuditMark(Record):
    """
    AuditMark names a seal of a tenant's chain.
    """

    __slots__ = ()
    hash: str
    """
    64 hexadecimal digits.
    """
    number: int
    """
    1 for the first.
    """


class AuditProblem(Record):
    """
    AuditProblem is something that should not be.
    """

    __slots__ = ()
    detail: str
    """
    Description of the problem.
    """
    kind: Literal["changed", "missing", "chain", "order", "known", "unsealed", "backdated", "unprotected", "tenant"]
    """
    Kind of the problem: a changed or missing row, a broken chain of hashes, a wrong order, a trail that does not lead to the known mark, or rows without a seal.
    """
    seal: int
    """
    The seal that it is about; 0 if none.
    """
    row_id: int | None
    """
    The row that it is about; 0 if none.
    """


class AuditReport(Record):
    """
    AuditReport says what a verification found.
    """

    __slots__ = ()
    expired: int
    """
    Rows that were deleted after their retention.
    """
    head: AuditMark | None
    """
    The last seal: keep it elsewhere, and a chain that was cut short shows. null for no seals.
    """
    ok: bool
    """
    Whether nothing was found.
    """
    problems: list[AuditProblem]
    """
    At most 1,000.
    """
    rows: int
    """
    Rows that are there and match their seals.
    """
    seals: int
    """
    How many seals the trail has.
    """


class AuditRow(Record):
    """
    AuditRow is one call in the audit trail.
    """

    __slots__ = ()
    agent_id: str
    """
    The agent that made the call; for execute_code, the caller's name for it. Empty without an agent.
    """
    cost_usd: float
    """
    Cost of the model in US dollars.
    """
    created_at: datetime
    """
    When the row was written.
    """
    credits: float
    """
    Credits charged for the call.
    """
    duration_ms: int
    """
    How long it took, in milliseconds.
    """
    environment_id: str
    """
    The environment that it runs in.
    """
    executed_code_hash: str
    """
    SHA-256 of the code, in hexadecimal.
    """
    exit_code: int
    """
    The exit code of the program; 128+n when signal n ended it.
    """
    exit_status: Literal["ok", "error", "timeout", "oom", "cap_exceeded", "provisioning", "cancelled"]
    """
    How it ended.
    """
    failure_reason: str
    """
    Why it failed or was refused; empty if it did not.
    """
    id: int
    """
    The row's number, which grows with each row.
    """
    key_id: str
    """
    The key or token that called.
    """
    language: str
    """
    The language of the code.
    """
    metadata: dict[str, str]
    """
    Other details of the call, such as the sandbox.
    """
    mounts: list[str]
    """
    Mounted connections: slug/path, then :ro or :rw.
    """
    outbound_hosts: list[str]
    """
    Hosts that were contacted over the network.
    """
    peak_memory_bytes: int
    """
    Bytes of memory that it used at most at one time.
    """
    retention_days: int
    """
    How many days the row is kept.
    """
    sandbox_id: str
    """
    The named sandbox; empty if the call used none.
    """
    session_id: str
    """
    The agent's session; for a response, its container; for execute_code, the turn; for other calls, the session that they name.
    """
    source: str
    """
    The interface or tool that the caller used: execute, execute_code, a tool, or an operation of a named sandbox.
    """
    stderr_bytes: int
    """
    Bytes that were written to standard error.
    """
    stderr_truncated: bool
    """
    Whether standard error had more than is kept.
    """
    stdout_bytes: int
    """
    Before redaction and truncation.
    """
    stdout_truncated: bool
    """
    Whether standard output had more than is kept.
    """
    tenant_id: str
    """
    The id of the tenant.
    """
    thread_id: str
    """
    The thread whose home directory the call used; empty if it used none.
    """
    trace_id: str
    """
    Names the request or execution in records and logs.
    """
    turn_id: str
    """
    The turn of an agent's session, or the response; empty if the call did not come from a model.
    """


class AuditTrail(Record):
    """
    AuditTrail is a tenant that has audit rows or seals.
    """

    __slots__ = ()
    tenant: str | None
    """
    Its name; null if no tenant with this id is on record.
    """
    tenant_id: str
    """
    The id of the tenant.
    """


class BrowseOutput(Record):
    """
    BrowseOutput is what browse returns.
    """

    __slots__ = ()
    url: str
    """
    The URL.
    """


class CapOverrides(Record):
    """
    CapOverrides are a tenant's own caps.
    """

    __slots__ = ()
    agent_hourly: int | None
    """
    Calls of one agent per UTC hour; 0 stops every call, null is the server's.
    """
    tenant_daily: int | None
    """
    Calls per UTC day; 0 stops every call, null is the server's.
    """


class Caps(Record):
    """
    Caps are the installation's caps of execute_code.
    """

    __slots__ = ()
    agent_hourly: int
    """
    Calls of an agent per UTC hour; 0 stops every call.
    """
    tenant_daily: int
    """
    Calls of a tenant per UTC day; 0 stops every call.
    """


class CodeContext(Record):
    """
    CodeContext is an interpreter that stays.
    """

    __slots__ = ()
    context_id: str
    """
    Its id, by which runs name it.
    """
    created_at: datetime
    """
    When it was made.
    """
    exit_code: int | None
    """
    Of an interpreter that has ended.
    """
    language: Literal["python", "node", "bash"]
    """
    The language of the code.
    """
    status: Literal["idle", "running", "ended"]
    """
    An ended context must be restarted.
    """
    working_dir: str
    """
    The folder that it works in.
    """


class CodeContexts(Record):
    """
    CodeContexts lists the contexts of a sandbox.
    """

    __slots__ = ()
    data: list[CodeContext]
    """
    The list itself.
    """


class CodeError(Record):
    """
    CodeError is an error that code ended with.
    """

    __slots__ = ()
    name: str
    """
    The kind of the error, such as ValueError.
    """
    traceback: list[str]
    """
    The lines of the traceback, from the outermost call on.
    """
    value: str
    """
    Error message.
    """


class CodeOutput(Record):
    """
    CodeOutput is what execute_code returns.
    """

    __slots__ = ()
    dimension: str | None
    """
    With SandboxCapExceeded: which cap, such as tenant_daily or agent_hourly.
    """
    duration_ms: int
    """
    How long it took, in milliseconds.
    """
    error: Literal["SandboxProvisioning", "SandboxCapExceeded", "SandboxTimeout", "SandboxOutOfMemory", "SandboxCancelled", "SandboxFailed"] | None
    """
    null when Atoll did not stop the program. After SandboxProvisioning and SandboxCapExceeded no code was run.
    """
    error_message: str | None
    """
    Why ok is false; null otherwise.
    """
    exit_code: int
    """
    -1 when none was seen.
    """
    exit_status: Literal["ok", "error", "timeout", "oom", "cap_exceeded", "provisioning", "cancelled"]
    """
    How it ended.
    """
    ok: bool
    """
    True if the program ended with exit code 0.
    """
    resets_at: datetime | None
    """
    With SandboxCapExceeded: when it resets, if it does.
    """
    stderr: str
    """
    The first 32 KB.
    """
    stderr_truncated: bool
    """
    Whether standard error had more than is kept.
    """
    stdout: str
    """
    The first 256 KB.
    """
    stdout_truncated: bool
    """
    Whether standard output had more than is kept.
    """
    trace_id: str
    """
    Names the execution, if there was one, and its audit row.
    """


class CodeValue(Record):
    """
    CodeValue is a value in the forms there are of it.
    """

    __slots__ = ()
    data: dict[str, Any]
    """
    By media type: text as it is, binary forms in base64, JSON as JSON.
    """
    metadata: Any
    """
    An object: dropped or shortened forms, and the program's metadata of the forms.
    """
    result: bool
    """
    It is the value of the last expression; the others were displayed.
    """


class Connection(Record):
    """
    Connection is a connection as the admin API shows it: without its credentials.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it was made.
    """
    id: str
    """
    con_ and 16 hexadecimal digits.
    """
    kind: Literal["s3", "gcs", "azure", "volume"]
    """
    Kind of the storage.
    """
    prefix: str
    """
    All that anything sees of it; empty for the whole.
    """
    read_only: bool
    """
    Whether programs can only read it.
    """
    slug: str
    """
    Sandboxes mount it at /data/{slug}.
    """
    tenant: str
    """
    The tenant's id.
    """
    account: str | None
    """
    Of azure: the storage account.
    """
    bucket: str | None
    """
    The bucket; of azure the container.
    """
    endpoint: str | None
    """
    URL of the service, of s3 and azure; the provider's own if omitted.
    """
    path_style: bool | None
    """
    Of s3: the bucket is in the path and not in the host's name.
    """
    region: str | None
    """
    Of s3; required without an endpoint.
    """


class ContainerFile(Record):
    """
    ContainerFile is a file of a container.
    """

    __slots__ = ()
    bytes: int
    """
    Size in bytes.
    """
    container_id: str
    """
    The container that it is in.
    """
    created_at: int
    """
    When it was last written: seconds since 1970.
    """
    id: str
    """
    Its id, which does not change.
    """
    object: Literal["container.file"]
    """
    Kind of the object, as OpenAI's clients read it.
    """
    path: str
    """
    Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    source: Literal["user", "assistant"]
    """
    user for a file with the permissions of an upload, 0664; assistant for others.
    """


class ContainerFileList(Record):
    """
    ContainerFileList is a page of files.
    """

    __slots__ = ()
    data: list[ContainerFile]
    """
    The list itself.
    """
    first_id: str | None
    """
    The id of the first item of this page; null if it is empty.
    """
    has_more: bool
    """
    Whether another page follows; give last_id as after to get it.
    """
    last_id: str | None
    """
    The id of the last item of this page; null if it is empty.
    """
    object: Literal["list"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class ContainerNetworkPolicy(Record):
    """
    ContainerNetworkPolicy is what a container may reach.
    """

    __slots__ = ()
    type: Literal["disabled", "allowlist"]
    """
    Type, which decides the other fields.
    """
    allowed_domains: list[str] | None
    """
    Hosts that it may reach.
    """


class ContextTool(Record):
    """
    ContextTool is a tool as the model sees it.
    """

    __slots__ = ()
    answered_by_client: bool
    """
    Its calls wait for a tool_result.
    """
    description: str
    """
    Purpose, in words.
    """
    input_schema: Any
    """
    JSON Schema of the arguments.
    """
    name: str
    """
    Its name.
    """
    needs_approval: bool
    """
    Its calls wait for a tool_confirmation.
    """


class DeletedAgent(Record):
    """
    DeletedAgent says that an agent is gone.
    """

    __slots__ = ()
    id: str
    """
    Its id, which does not change.
    """
    type: Literal["agent_deleted"]
    """
    Type, which decides the other fields.
    """


class DeletedContainer(Record):
    """
    DeletedContainer says that a container was deleted.
    """

    __slots__ = ()
    deleted: bool
    """
    Always true.
    """
    id: str
    """
    Its id, which does not change.
    """
    object: Literal["container.deleted"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class DeletedContainerFile(Record):
    """
    DeletedContainerFile says that a file was deleted.
    """

    __slots__ = ()
    deleted: bool
    """
    Always true.
    """
    id: str
    """
    Its id, which does not change.
    """
    object: Literal["container.file.deleted"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class DeletedCredential(Record):
    """
    DeletedCredential says that a credential is gone.
    """

    __slots__ = ()
    id: str
    """
    Its id, which does not change.
    """
    type: Literal["vault_credential_deleted"]
    """
    Type, which decides the other fields.
    """


class DeletedFile(Record):
    """
    DeletedFile says that a file is gone.
    """

    __slots__ = ()
    id: str
    """
    Its id, which does not change.
    """
    type: Literal["file_deleted"]
    """
    Type, which decides the other fields.
    """


class DeletedResponse(Record):
    """
    DeletedResponse says that a response was deleted.
    """

    __slots__ = ()
    deleted: bool
    """
    Always true.
    """
    id: str
    """
    Its id, which does not change.
    """
    object: Literal["response.deleted"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class DeletedSkill(Record):
    """
    DeletedSkill says that a skill is gone.
    """

    __slots__ = ()
    id: str
    """
    Its id, which does not change.
    """
    type: Literal["skill_deleted"]
    """
    Type, which decides the other fields.
    """


class DeletedSkillVersion(Record):
    """
    DeletedSkillVersion says that a version of a skill is gone.
    """

    __slots__ = ()
    id: str
    """
    Its id, which does not change.
    """
    type: Literal["skill_version_deleted"]
    """
    Type, which decides the other fields.
    """


class DeletedVault(Record):
    """
    DeletedVault says that a vault is gone.
    """

    __slots__ = ()
    id: str
    """
    Its id, which does not change.
    """
    type: Literal["vault_deleted"]
    """
    Type, which decides the other fields.
    """


class EndpointAuth(Record):
    """
    EndpointAuth says how the client shows who it is.
    """

    __slots__ = ()
    type: Literal["none", "client_secret_basic", "client_secret_post"]
    """
    Type, which decides the other fields.
    """


class ErrorResponse(Record):
    """
    ErrorResponse is the body of every refusal and failure.
    """

    __slots__ = ()
    error: str
    """
    A code for programs, such as validation_error.
    """
    message: str
    """
    A sentence for people.
    """
    dimension: str | None
    """
    With rate_limited: which limit it is, such as concurrency, timeout or credits.
    """
    resets_at: datetime | None
    """
    With rate_limited: when the limit starts again, if it does.
    """


class EventThread(Record):
    """
    EventThread describes the thread in an event of a hand-off.
    """

    __slots__ = ()
    agent_id: str
    """
    The id of the agent.
    """
    agent_version: int
    """
    The version of the agent.
    """
    name: str
    """
    Its name.
    """
    thread_id: str | None
    """
    The id of the thread.
    """


class ExpiresAfter(Record):
    """
    ExpiresAfter says how long a container lives without use.
    """

    __slots__ = ()
    anchor: Literal["last_active_at"]
    """
    From when minutes count: its last use.
    """
    minutes: int
    """
    Minutes without a use after which it is deleted, 1 to 43200.
    """


class FetchedPage(Record):
    """
    FetchedPage is a page, or the reason why it was not fetched.
    """

    __slots__ = ()
    date: str | None
    """
    When it was published, as in 2026-03-01; null where that is not known.
    """
    error: str | None
    """
    Why there is no page; null for none.
    """
    final_url: str | None
    """
    Where it was, after redirects; null with error.
    """
    last_updated: str | None
    """
    When it was changed, as in 2026-03-01; null where that is not known.
    """
    media_type: str
    """
    Such as text/html.
    """
    text: str
    """
    The text.
    """
    title: str
    """
    Its title, for people.
    """
    truncated: bool
    """
    It continues beyond text.
    """
    url: str
    """
    As it was given.
    """


class FileEntry(Record):
    """
    FileEntry is a file or a folder.
    """

    __slots__ = ()
    is_directory: bool
    """
    Whether it is a folder.
    """
    modified: datetime | None
    """
    null where that is not kept, as of a bucket's folders.
    """
    name: str
    """
    Its name.
    """
    path: str
    """
    From the home, or the connection's root.
    """
    size: int
    """
    Bytes; 0 of a folder.
    """


class FileHeader(Record):
    """
    FileHeader is a header that a request to a FileURL has to have.
    """

    __slots__ = ()
    name: str
    """
    The header's name.
    """
    value: str
    """
    The value.
    """


class FileScope(Record):
    """
    FileScope is the session whose agent has shared a file.
    """

    __slots__ = ()
    id: str
    """
    Its id, which does not change.
    """
    type: Literal["session"]
    """
    Type, which decides the other fields.
    """


class FileURL(Record):
    """
    FileURL reads or writes one file without a key.
    """

    __slots__ = ()
    expires_at: datetime
    """
    When it stops being valid.
    """
    headers: list[FileHeader]
    """
    To be sent with the request; none so far.
    """
    method: Literal["GET", "PUT"]
    """
    The method of HTTP that the URL is for.
    """
    url: str
    """
    Absolute, with the host that the request was sent to.
    """


class FilesListResponse(Record):
    """
    FilesListResponse is what a folder holds.
    """

    __slots__ = ()
    files: list[FileEntry]
    """
    Entries of the folder, by name.
    """


class FilesystemPermissions(Record):
    """
    FilesystemPermissions are what programs may read and write.
    """

    __slots__ = ()
    blocked_paths: list[str]
    """
    Files and folders that programs cannot see.
    """
    read_only_paths: list[str]
    """
    Files and folders that programs can read and not change.
    """
    writable_paths: list[str]
    """
    Where programs may write as far as their user may; / is everywhere.
    """


class FirstEnvironment(Record):
    """
    FirstEnvironment is the environment that was made with a tenant.
    """

    __slots__ = ()
    id: str
    """
    env_ and 16 hexadecimal digits.
    """
    name: str
    """
    Its name.
    """


class GlobOutput(Record):
    """
    GlobOutput is what glob returns.
    """

    __slots__ = ()
    files: list[str]
    """
    By name, as the pattern is: relative to cwd unless it begins with a slash.
    """
    quoted: list[str] | None
    """
    Those of files that are not UTF-8, in the same order, as bash reads them: $'caf\\\\351'.
    """
    truncated: bool | None
    """
    More files match than are listed.
    """


class Grant(Record):
    """
    Grant has an environment or a key mount a connection.
    """

    __slots__ = ()
    connection: str
    """
    The connection's id.
    """
    created_at: datetime
    """
    When it was made.
    """
    environment: str | None
    """
    Id of the environment that mounts it; null for a key's.
    """
    id: str
    """
    grt_ and 16 hexadecimal digits.
    """
    key: str | None
    """
    Id of the key that mounts it; null for an environment's.
    """
    prefix: str
    """
    Mounted folder, from the connection's root; empty for the connection's whole prefix.
    """
    read_only: bool
    """
    Whether programs can only read it.
    """


class Key(Record):
    """
    Key is an API key as the admin API shows it.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it was made.
    """
    env_vars: dict[str, str]
    """
    Variables of its executions, over those of the environment.
    """
    environment: str | None
    """
    Id of the environment that its executions run in; null for a key that only administers.
    """
    expires_at: datetime | None
    """
    null for never.
    """
    hint: str
    """
    The key's last four characters.
    """
    id: str
    """
    key_ and 16 hexadecimal digits.
    """
    name: str
    """
    Its name.
    """
    revoked_at: datetime | None
    """
    When it was revoked; null while it is valid.
    """
    scopes: list[str]
    """
    Scopes: the operations that the key may call.
    """
    secret_hosts: dict[str, list[str]]
    """
    Of secrets that programs do not get, the hosts whose requests they are put into.
    """
    secrets: list[str]
    """
    Names of the secret ones. Their values are never shown.
    """
    tenant: str
    """
    The tenant's id.
    """
    webhook_signed: bool
    """
    Whether it has a secret that signs webhooks.
    """
    webhook_url: str | None
    """
    URL that Atoll notifies about asynchronous executions; null for none.
    """
    key: str | None
    """
    The key itself: only in the answer that made it.
    """


class Limits(Record):
    """
    Limits bound what one sandbox may use. Sizes are in bytes.
    """

    __slots__ = ()
    cpu: float
    """
    Cores.
    """
    inodes: int
    """
    Files and folders together that it may make.
    """
    memory: int
    """
    Bytes of memory.
    """
    open_files: int
    """
    Files that one program may have open.
    """
    processes: int
    """
    Processes and threads at the same time.
    """
    root_size: int
    """
    Bytes that may be written to the root file system, which is in memory.
    """
    shm_size: int
    """
    Bytes of /dev/shm, which is in memory.
    """
    tmp_size: int
    """
    Bytes that may be written to /tmp, which is in memory.
    """


class ListModel(Record):
    """
    ListModel is a model as OpenAI's clients read it.
    """

    __slots__ = ()
    created: int
    """
    Unix seconds.
    """
    id: str
    """
    The name that requests give as model.
    """
    object: Literal["model"]
    """
    Kind of the object, as OpenAI's clients read it.
    """
    owned_by: str
    """
    The part of the name before its first slash, or the wire protocol of the provider.
    """


class ListedSandbox(Record):
    """
    ListedSandbox is a sandbox of the session.
    """

    __slots__ = ()
    image: str
    """
    The image that it runs.
    """
    name: str
    """
    Its name.
    """
    status: Literal["running", "sleeping"]
    """
    In which state it is.
    """
    warning: str | None
    """
    The version that runs instead of the one that image requests, and how to get the requested one.
    """


class MCPAnnotations(Record):
    """
    MCPAnnotations are MCP's hints of what a tool does.
    """

    __slots__ = ()
    destructiveHint: bool
    """
    Whether it may destroy something.
    """
    idempotentHint: bool
    """
    Whether a second call with the same arguments changes nothing more.
    """
    openWorldHint: bool
    """
    Whether it reaches what is outside of the sandbox.
    """
    readOnlyHint: bool
    """
    Whether it changes nothing.
    """


class MCPErrorObject(Record):
    """
    MCPErrorObject says what is wrong.
    """

    __slots__ = ()
    code: int
    """
    The JSON-RPC error code; -32000 for errors of the key, a limit or the server's state, -32001 for an unknown session.
    """
    message: str
    """
    A sentence for people.
    """
    data: ErrorResponse | None
    """
    Error code, as on other paths.
    """


class MCPTool(Record):
    """
    MCPTool is a tool as the Model Context Protocol lists it.
    """

    __slots__ = ()
    annotations: MCPAnnotations
    """
    Hints at what the tool does.
    """
    description: str
    """
    Purpose, in words.
    """
    inputSchema: Any
    """
    JSON Schema of the arguments.
    """
    name: str
    """
    Its name.
    """
    outputSchema: Any
    """
    JSON Schema of the result.
    """
    title: str
    """
    Its title, for people.
    """


class ModelCost(Record):
    """
    ModelCost is the price of an answer.
    """

    __slots__ = ()
    cache_creation_cost: float
    """
    US dollars for input that was written to the provider's cache.
    """
    cache_read_cost: float
    """
    US dollars for input that was read from the provider's cache.
    """
    currency: Literal["USD"]
    """
    The currency of all amounts.
    """
    input_cost: float
    """
    US dollars for input.
    """
    output_cost: float
    """
    US dollars for output.
    """
    total_cost: float
    """
    US dollars for all of it.
    """


class ModelError(Record):
    """
    ModelError is why a model did not answer.
    """

    __slots__ = ()
    failure: Literal["transient", "rate_limited", "context_too_long", "rejected", "unauthorized", "broken"]
    """
    transient and rate_limited may be gone later.
    """
    message: str
    """
    A sentence for people.
    """
    retry_after_ms: int | None
    """
    Wait that the provider asks for.
    """
    status: int | None
    """
    Of the provider's answer; omitted if there was none.
    """


class ModelKey(Record):
    """
    ModelKey is a tenant's own key for a model: all but the key.
    """

    __slots__ = ()
    base_url: str
    """
    The provider's API that the key was given for; it is sent to no other.
    """
    created_at: datetime
    """
    When it was made.
    """
    in_use: bool
    """
    false if the model's base URL has changed, in which case Atoll rejects requests until you set or remove the key, or if the tenant may no longer use the model.
    """
    model: str
    """
    The model's name; its id if the model was deleted.
    """


class ModelList(Record):
    """
    ModelList is models as OpenAI's clients read them: all at once.
    """

    __slots__ = ()
    data: list[ListModel]
    """
    The list itself.
    """
    object: Literal["list"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class ModelPrices(Record):
    """
    ModelPrices are in US dollars for a million tokens. Omitted fields are 0.
    """

    __slots__ = ()
    cache_read: str | None
    """
    For input that the provider reads from its cache.
    """
    cache_write: str | None
    """
    For input that the provider writes to its cache.
    """
    input: str | None
    """
    A decimal number, such as 2.50, with at most 6 digits after the point.
    """
    output: str | None
    """
    US dollars for a million tokens of output, a decimal number as text.
    """


class ModelUsage(Record):
    """
    ModelUsage is tokens of an answer, as the provider counts them.
    """

    __slots__ = ()
    cache_creation_input_tokens: int
    """
    Of these, written to it.
    """
    cache_read_input_tokens: int
    """
    Of these, read from the provider's cache.
    """
    input_tokens: int
    """
    All of the request's.
    """
    output_tokens: int
    """
    All of the answer's.
    """
    reasoning_tokens: int
    """
    Of these, thought.
    """


class Mount(Record):
    """
    Mount is a mount as it is shown.
    """

    __slots__ = ()
    path: str
    """
    Where it is in the sandbox.
    """
    type: Literal["file", "git_repository", "volume"]
    """
    Type, which decides the other fields.
    """
    file_id: str | None
    """
    The file's id.
    """
    ref: str | None
    """
    Of git_repository: the branch, tag or commit.
    """
    size: int | None
    """
    Of file with content, in bytes.
    """
    token: str | None
    """
    Of git_repository: the variable with the secret that the host is sent.
    """
    url: str | None
    """
    Of git_repository: the URL that is cloned.
    """


class NetworkPermissions(Record):
    """
    NetworkPermissions are what programs may connect to.
    """

    __slots__ = ()
    allowed_cidrs: list[str]
    """
    Addresses that may be connected to without a name.
    """
    allowed_hosts: list[str]
    """
    Names; *.example.com is every name below it, * every name. An empty list allows none.
    """
    blocked_ports: list[int]
    """
    Ports that cannot be reached.
    """
    enabled: bool
    """
    Whether there is a network at all.
    """
    unrestricted: bool
    """
    Addresses may be connected to without a name having been looked up.
    """


class OpenAIFunction(Record):
    """
    OpenAIFunction is the function of an OpenAITool.
    """

    __slots__ = ()
    description: str
    """
    Purpose, in words.
    """
    name: str
    """
    Its name.
    """
    parameters: Any
    """
    JSON Schema of the arguments.
    """
    strict: bool | None
    """
    The model keeps to parameters.
    """


class OpenAIResponsesTool(Record):
    """
    OpenAIResponsesTool is a tool as the Responses API takes it.
    """

    __slots__ = ()
    description: str
    """
    Purpose, in words.
    """
    name: str
    """
    Its name.
    """
    parameters: Any
    """
    JSON Schema of the arguments.
    """
    strict: bool
    """
    The model keeps to parameters.
    """
    type: Literal["function"]
    """
    Type, which decides the other fields.
    """


class OpenAITool(Record):
    """
    OpenAITool is a tool as the Chat Completions API takes it.
    """

    __slots__ = ()
    function: OpenAIFunction
    """
    Description of the function for the model.
    """
    type: Literal["function"]
    """
    Type, which decides the other fields.
    """


class Orphans(Record):
    """
    Orphans are what there is of sandboxes that no record knows.
    """

    __slots__ = ()
    data: list[str]
    """
    Their ids.
    """


class OutcomeCheck(Record):
    """
    OutcomeCheck is a command that checks an outcome in the session's sandbox.
    """

    __slots__ = ()
    command: str
    """
    Run by bash; the check passes with the exit code 0.
    """
    timeout_ms: int | None
    """
    As long as code runs by default if omitted, at most as long as the plan allows.
    """


class OutcomeEvaluation(Record):
    """
    OutcomeEvaluation is an evaluation of an outcome.
    """

    __slots__ = ()
    explanation: str | None
    """
    Reason: the grader's explanation, or the output of the check.
    """
    iteration: int
    """
    From 0.
    """
    outcome_id: str
    """
    The outcome that was evaluated.
    """
    result: Literal["satisfied", "needs_revision", "max_iterations_reached", "failed", "interrupted"] | None
    """
    null while it is in progress.
    """
    start_id: str | None
    """
    The id of the event outcome_evaluation_start; omitted where the outcome ended before an evaluation.
    """


class OutputFile(Record):
    """
    OutputFile is a file that a program gave back.
    """

    __slots__ = ()
    path: str
    """
    Relative to the working folder. The contents are at GET /v1/executions/{trace_id}/file?path=
    """
    size: int
    """
    Bytes.
    """


class PackageBuild(Record):
    """
    PackageBuild is how far packages are installed, or a variant of the default image is made.
    """

    __slots__ = ()
    log: list[str]
    """
    The last lines of the installers, or the steps of a variant; of a build that failed the last says why.
    """
    state: Literal["building", "ready", "failed"]
    """
    building: sandboxes wait for it, and return 503 if it takes long. failed: they return 409. Atoll tries a failed variant again later.
    """
    updated_at: datetime | None
    """
    null before it has begun.
    """


class Packages(Record):
    """
    Packages are packages by what installs them.
    """

    __slots__ = ()
    apt: list[str]
    """
    Packages of Debian.
    """
    npm: list[str]
    """
    Packages of npm.
    """
    pip: list[str]
    """
    Packages of Python.
    """


class PageActivity(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Activity]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageApproval(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Approval]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageAuditRow(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[AuditRow]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageAuditTrail(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[AuditTrail]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageConnection(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Connection]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageGrant(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Grant]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageKey(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Key]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageModelKey(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[ModelKey]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class Plan(Record):
    """
    Plan is a plan.
    """

    __slots__ = ()
    _renamed: ClassVar[dict[str, str]] = {"async_": "async"}
    async_: bool
    """
    Webhook delivery.
    """
    built_in: bool
    """
    One of those every installation has; it can be neither changed nor removed.
    """
    concurrency: int
    """
    Executions at the same time; 0 for no bound.
    """
    key_isolation: bool
    """
    Whether environments may have isolation key.
    """
    max_cpu: float
    """
    Cores of a sandbox; 0 for no bound.
    """
    max_key_request_rate: int
    """
    Requests per second of each key; 0 for no bound.
    """
    max_key_response_rate: int
    """
    Responses per minute of each key, for each model; 0 for no bound.
    """
    max_key_token_rate: int
    """
    Tokens of responses per minute of each key, for each model; 0 for no bound.
    """
    max_key_upload_rate: int
    """
    Bytes of request bodies per second of each key; 0 for no bound.
    """
    max_memory: int
    """
    Bytes of a sandbox; 0 for no bound.
    """
    max_output: int
    """
    Bytes of each stream that are kept whole.
    """
    max_outputs: int
    """
    Bytes that ended executions keep together: outputs and the files they gave back; 0 for no bound.
    """
    max_request_rate: int
    """
    Requests per second of all keys of a tenant together, on average over 10 s; 0 for no bound.
    """
    max_response_rate: int
    """
    Responses per minute of all keys of a tenant together, for each model; 0 for no bound.
    """
    max_sandbox_disk: int
    """
    Bytes of the files of a named sandbox; 0 for the server's own bound.
    """
    max_sandbox_life: int
    """
    Seconds that a named sandbox may be there; 0 for no bound.
    """
    max_sandbox_memory: int
    """
    Bytes of memory of named sandboxes together, except those asleep on disk; 0 for no bound.
    """
    max_sandboxes: int
    """
    Named sandboxes at the same time, sleeping ones too; 0 for no bound.
    """
    max_snapshot_size: int
    """
    Bytes of all snapshots together, before they are compressed; 0 for no bound.
    """
    max_snapshots: int
    """
    Snapshots that the tenant may have; 0 for no bound.
    """
    max_thread_size: int
    """
    Bytes of a thread's files; 0 for no bound.
    """
    max_threads: int
    """
    Threads that the tenant may have; 0 for no bound.
    """
    max_timeout: int
    """
    Seconds; 0 for the server's own bound.
    """
    max_token_rate: int
    """
    Tokens of responses per minute of all keys of a tenant together, for each model; 0 for no bound.
    """
    max_upload_rate: int
    """
    Bytes of request bodies per second of all keys of a tenant together; 0 for no bound.
    """
    name: str
    """
    Its name.
    """
    streaming: bool
    """
    Whether executions may be streamed.
    """


class PlanStep(Record):
    """
    PlanStep is a step of a plan.
    """

    __slots__ = ()
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    """
    In which state it is.
    """
    step: str
    """
    The task, in words.
    """


class PolicyEvent(Record):
    """
    PolicyEvent notes a change to what a tenant may do.
    """

    __slots__ = ()
    actor: str
    """
    Id of the key that made it.
    """
    created_at: datetime
    """
    When the change was made.
    """
    field: str
    """
    Such as sandbox_enabled, or template/support.
    """
    id: int
    """
    The event's number, which grows with each event.
    """
    new: str
    """
    The value after the change, as JSON; empty if it was removed.
    """
    old: str
    """
    The value before the change, as JSON; empty if it was made.
    """


class Preview(Record):
    """
    Preview is an open port.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it was made.
    """
    port: int
    """
    The TCP port.
    """
    url: str
    """
    Any client that has the URL reaches the port. It stays the same until the preview is closed.
    """


class PreviewList(Record):
    """
    PreviewList lists the previews of a sandbox.
    """

    __slots__ = ()
    data: list[Preview]
    """
    The list itself.
    """


class ProcessEvent(Record):
    """
    ProcessEvent is one line of a process's output.
    """

    __slots__ = ()
    cursor: int
    """
    Give it as after to continue behind this event. Of several events with one cursor those come again.
    """
    type: Literal["output", "keepalive", "exit", "stopped"]
    """
    stopped is the last one where the conversation with the sandbox ended for a bound of it.
    """
    blocked: str | None
    """
    On exit: the permission that ended it.
    """
    data: str | None
    """
    On output: text, in which bytes that are not UTF-8 are U+FFFD; or base64, with encoding=base64.
    """
    dropped: int | None
    """
    On output: bytes before it that were not kept.
    """
    exit_code: int | None
    """
    On exit.
    """
    hint: str | None
    """
    On exit: how to fix a failure that the network policy may have caused.
    """
    reason: str | None
    """
    On stopped: why. On exit: why it was ended, where that was for a bound of the sandbox.
    """
    signal: str | None
    """
    On exit.
    """
    stream: Literal["stdout", "stderr", "terminal"] | None
    """
    On output.
    """
    timed_out: bool | None
    """
    On exit.
    """


class ProcessPermissions(Record):
    """
    ProcessPermissions are what programs may start.
    """

    __slots__ = ()
    allow_exec: bool
    """
    Whether programs may start other programs.
    """
    blocked_commands: list[str]
    """
    Names of programs that cannot be started.
    """
    max_processes: int
    """
    Processes, not threads, at the same time; 0 for no bound but limits.processes.
    """
    root: bool
    """
    Programs run as uid 0 of the sandbox, with the capabilities that a package manager needs.
    """


class ProcessWritten(Record):
    """
    ProcessWritten says how much of what was sent a process has got.
    """

    __slots__ = ()
    bytes: int
    """
    Bytes that the process's pipe has taken.
    """


class ReadFileOutput(Record):
    """
    ReadFileOutput is what read_file returns.
    """

    __slots__ = ()
    content: str
    """
    The content of the file.
    """
    size: int
    """
    Bytes of the whole file.
    """
    encoding: Literal["base64"] | None
    """
    base64 when content is not the text itself.
    """
    truncated: bool | None
    """
    No limit was given, and the file continues after content.
    """


class Redelivery(Record):
    """
    Redelivery answers a request to deliver a webhook again.
    """

    __slots__ = ()
    trace_id: str
    """
    Names the request or execution in records and logs.
    """
    webhook_delivery_status: Literal["pending"]
    """
    The state of the delivery.
    """


class Resources(Record):
    """
    Resources are what a sandbox of an environment may use.
    """

    __slots__ = ()
    cpu: float
    """
    Cores.
    """
    memory_mb: int
    """
    MiB.
    """
    timeout: int | None
    """
    Longest run in seconds, and that of a request which names none; null for the plan's.
    """


class ResponseActionSource(Record):
    """
    ResponseActionSource is a page that a search found.
    """

    __slots__ = ()
    type: Literal["url"]
    """
    Type, which decides the other fields.
    """
    url: str
    """
    The URL.
    """


class ResponseAnnotation(Record):
    """
    ResponseAnnotation says which page a part of a text goes back to, as the model's provider has it.
    """

    __slots__ = ()
    end_index: int
    """
    The character after the last one.
    """
    start_index: int
    """
    The first character of the text that is cited.
    """
    title: str
    """
    Its title, for people.
    """
    type: Literal["url_citation"]
    """
    Type, which decides the other fields.
    """
    url: str
    """
    The URL.
    """


class ResponseCost(Record):
    """
    ResponseCost is what the tokens cost by the price list of the models, and the tool calls and windows of the sandbox by that of the server.
    """

    __slots__ = ()
    cache_creation_cost: float
    """
    US dollars for input that was written to the provider's cache.
    """
    cache_read_cost: float
    """
    US dollars for input that was read from the provider's cache.
    """
    currency: Literal["USD"]
    """
    The currency of all amounts.
    """
    input_cost: float
    """
    US dollars for input.
    """
    output_cost: float
    """
    US dollars for output.
    """
    tool_calls_cost: float
    """
    Of tool calls and of the sandbox's windows of 20 minutes.
    """
    total_cost: float
    """
    US dollars for all of it.
    """


class ResponseError(Record):
    """
    ResponseError is why a response failed.
    """

    __slots__ = ()
    code: str
    """
    Error code for programs.
    """
    message: str
    """
    A sentence for people.
    """
    type: str
    """
    Type, which decides the other fields.
    """


class ResponseFile(Record):
    """
    ResponseFile is a file that a model shared.
    """

    __slots__ = ()
    bytes: int
    """
    Size in bytes.
    """
    created_at: int
    """
    Seconds since 1970.
    """
    filename: str
    """
    The file's name, without its folder.
    """
    id: str
    """
    Its id, which does not change.
    """
    object: Literal["file"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class ResponseFiles(Record):
    """
    ResponseFiles are the files of a response.
    """

    __slots__ = ()
    data: list[ResponseFile]
    """
    The list itself.
    """
    object: Literal["list"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class ResponseIncomplete(Record):
    """
    ResponseIncomplete say which limit ended a response.
    """

    __slots__ = ()
    message: str
    """
    A sentence for people.
    """
    reason: str
    """
    Why, as a word or in words.
    """


class ResponseInputDetails(Record):
    """
    ResponseInputDetails are the input's tokens by where they came from.
    """

    __slots__ = ()
    cache_creation_input_tokens: int
    """
    Tokens that were written to the provider's cache.
    """
    cache_read_input_tokens: int
    """
    Tokens that were read from the provider's cache.
    """
    cache_write_tokens: int
    """
    Tokens that were written to the provider's cache, as OpenAI's clients read them.
    """
    cached_tokens: int
    """
    Tokens that were read from the provider's cache, as OpenAI's clients read them.
    """


class ResponseInvoked(Record):
    """
    ResponseInvoked counts the calls of a tool.
    """

    __slots__ = ()
    invocation: int
    """
    How many calls there were.
    """


class ResponseOutputDetails(Record):
    """
    ResponseOutputDetails are the output's tokens by what they are.
    """

    __slots__ = ()
    reasoning_tokens: int
    """
    Tokens of reasoning.
    """


class ResponsePage(Record):
    """
    ResponsePage is a page that was read.
    """

    __slots__ = ()
    snippet: str
    """
    A piece of the page's text.
    """
    title: str
    """
    Its title, for people.
    """
    url: str
    """
    The URL.
    """
    error: str | None
    """
    Why there is no page.
    """


class ResponsePart(Record):
    """
    ResponsePart is a part of a message or of reasoning.
    """

    __slots__ = ()
    type: str
    """
    Type, which decides the other fields.
    """
    annotations: list[ResponseAnnotation] | None
    """
    References of the text, such as pages.
    """
    detail: str | None
    """
    Of an image: how closely the model looks at it.
    """
    file_url: str | None
    """
    Of a file: where the provider reads it.
    """
    filename: str | None
    """
    The file's name, without its folder.
    """
    image_url: str | None
    """
    Of an image: its URL, or its bytes as a data URL.
    """
    logprobs: list[Any] | None
    """
    Always empty: they are not supported.
    """
    refusal: str | None
    """
    The model's refusal.
    """
    text: str | None
    """
    The text.
    """


class ResponseReasoning(Record):
    """
    ResponseReasoning is how long the model was to think, and what of it is shown.
    """

    __slots__ = ()
    effort: str | None
    """
    How much the model thinks before it answers.
    """
    summary: str | None
    """
    How the model's thinking is summarized.
    """


class ResponseRefusalDetail(Record):
    """
    ResponseRefusalDetail describes the error.
    """

    __slots__ = ()
    code: str
    """
    Error code for programs.
    """
    message: str
    """
    A sentence for people.
    """
    param: str | None
    """
    The field that is wrong; null where it is none.
    """
    type: str
    """
    Type, which decides the other fields.
    """


class ResponseText(Record):
    """
    ResponseText is the form of the answer.
    """

    __slots__ = ()
    format: Any
    """
    The form of the text: plain, or JSON by a schema.
    """
    verbosity: str
    """
    How long answers are: medium alone is supported.
    """


class ResponseToolOfOther(Record):
    """
    ResponseToolOfOther is a tool of an MCP server, as that describes it.
    """

    __slots__ = ()
    description: str | None
    """
    Purpose, in words.
    """
    input_schema: Any
    """
    JSON Schema of the arguments.
    """
    name: str
    """
    Its name.
    """
    annotations: Any | None
    """
    Annotations of the tool by the server, such as readOnlyHint. They may be wrong.
    """


class ResponseUsage(Record):
    """
    ResponseUsage is what a response used.
    """

    __slots__ = ()
    cost: ResponseCost
    """
    Cost in US dollars.
    """
    input_tokens: int
    """
    Tokens of the input, cached ones too.
    """
    input_tokens_details: ResponseInputDetails
    """
    How many of them were read from a cache or written to it.
    """
    output_tokens: int
    """
    Tokens of the output, reasoning included.
    """
    output_tokens_details: ResponseOutputDetails
    """
    How many of them were reasoning.
    """
    total_tokens: int
    """
    Tokens of input and output together.
    """
    estimated_tokens: int | None
    """
    The part of total_tokens that Atoll estimated from the text, because an answer was cut before its provider counted them, or its provider counts none. Atoll charges them like the others.
    """
    sandbox_windows: int | None
    """
    Windows of 20 minutes of the sandbox that began with this response.
    """
    tool_calls_details: dict[str, ResponseInvoked] | None
    """
    How many calls each tool had.
    """


class Review(Record):
    """
    Review is what a review says of an answer.
    """

    __slots__ = ()
    feedback: str
    """
    Required improvements, in words.
    """
    iteration: int
    """
    Of the turn, from 1.
    """
    passed: bool
    """
    Whether the answer reached the threshold.
    """
    score: float
    """
    0 to 1.
    """
    threshold: float
    """
    The quality_threshold of the skill.
    """
    error: str | None
    """
    Why there is no review: the answer stays as it is then.
    """


class Sandbox(Record):
    """
    Sandbox is a named sandbox.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it was made.
    """
    disk_size: int
    """
    Bytes that /home/user, /tmp and /var/tmp may have together; 0 for no bound.
    """
    expires_at: datetime | None
    """
    When it is destroyed; null for never.
    """
    image: str
    """
    The image that it runs.
    """
    limits: Limits
    mounts: list[str]
    """
    Connections mounted below /data: slug/path, then :ro or :rw.
    """
    name: str
    """
    Its name.
    """
    network: NetworkPermissions
    """
    Network access of programs.
    """
    sandbox_id: str
    """
    sb- and 16 hexadecimal digits.
    """
    session: str
    """
    The session that it is in.
    """
    sleep_after_ms: int | None
    """
    Without use; null for never.
    """
    status: Literal["running", "sleeping", "lost", "destroyed"]
    """
    In which state it is.
    """
    unused_until: datetime | None
    """
    When it is destroyed unless it is used before, because it sleeps or is lost; null for never.
    """
    used_at: datetime
    """
    When it was used last.
    """
    detail: str | None
    """
    More of the status: why it is lost, why it cannot sleep.
    """
    image_alias: str | None
    """
    Requested name of that image, such as node:22; absent for the environment's image.
    """
    image_warning: str | None
    """
    The version that runs instead of the one that image_alias requests, and how to get the requested one; omitted if the sandbox runs that version.
    """
    kept: Literal["frozen", "disk", "stored"] | None
    """
    Of one that sleeps: where its memory is.
    """


class SandboxChange(Record):
    """
    SandboxChange is one line of a watch.
    """

    __slots__ = ()
    type: Literal["created", "modified", "removed", "lost", "keepalive"]
    """
    lost: events are missing, look anew.
    """
    is_directory: bool | None
    """
    Whether it is a folder.
    """
    path: str | None
    """
    The path that changed.
    """
    path_base64: str | None
    """
    Of a path that is not UTF-8.
    """


class SandboxCreateOutput(Record):
    """
    SandboxCreateOutput is what sandbox_create returns.
    """

    __slots__ = ()
    created: bool
    """
    False if a sandbox of that name existed; the call does not change it.
    """
    sandbox: str
    """
    The name of the sandbox.
    """
    warning: str | None
    """
    The image that runs instead of the requested one, and how to get the requested one.
    """


class SandboxFile(Record):
    """
    SandboxFile is what stands at a path in a sandbox.
    """

    __slots__ = ()
    gid: int
    """
    The group that owns it, as programs see it.
    """
    kind: Literal["file", "directory", "symlink", "other"]
    """
    Kind of the entry.
    """
    mode: str
    """
    Permissions, octal, such as 0644.
    """
    modified: datetime
    """
    When its content was last changed.
    """
    name: str
    """
    Its name.
    """
    path: str
    """
    Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    size: int
    """
    Size in bytes.
    """
    uid: int
    """
    The user that owns it, as programs see it.
    """
    path_base64: str | None
    """
    Of a path that is not UTF-8.
    """
    target: str | None
    """
    Of a symlink.
    """


class SandboxFiles(Record):
    """
    SandboxFiles is what a folder has, by path.
    """

    __slots__ = ()
    data: list[SandboxFile]
    """
    The list itself.
    """
    truncated: bool
    """
    There are more.
    """


class SandboxList(Record):
    """
    SandboxList is a list of sandboxes, by session and name.
    """

    __slots__ = ()
    data: list[Sandbox]
    """
    The list itself.
    """


class SandboxListOutput(Record):
    """
    SandboxListOutput is what sandbox_list returns.
    """

    __slots__ = ()
    sandboxes: list[ListedSandbox]
    """
    The sandboxes of the session, by name.
    """


class SandboxMetrics(Record):
    """
    SandboxMetrics are what a sandbox uses. All is 0 for one that sleeps on disk.
    """

    __slots__ = ()
    cpu_seconds: float
    """
    Seconds of processor time since it started.
    """
    disk_bytes: int
    """
    Of /home/user, /tmp and /var/tmp.
    """
    memory_bytes: int
    """
    Bytes of memory that it uses now.
    """
    oom_kills: int
    """
    Programs that were ended because memory ran out.
    """
    peak_memory_bytes: int
    """
    Bytes of memory that it used at most at one time.
    """


class SandboxPort(Record):
    """
    SandboxPort is a port that something in a sandbox listens on.
    """

    __slots__ = ()
    address: str
    """
    0.0.0.0 and :: are every address.
    """
    port: int
    """
    The TCP port.
    """


class SandboxPorts(Record):
    """
    SandboxPorts are the ports that something listens on, by number.
    """

    __slots__ = ()
    data: list[SandboxPort]
    """
    The list itself.
    """


class SandboxProcess(Record):
    """
    SandboxProcess is a process that was started in a sandbox.
    """

    __slots__ = ()
    argv: list[str]
    """
    The program and its arguments.
    """
    ended_at: datetime | None
    """
    When it ended; null until then.
    """
    exit_code: int | None
    """
    128+n when signal n ended it; null while it runs.
    """
    first_cursor: int
    """
    Output from here on is kept.
    """
    last_cursor: int
    """
    Where its output ends so far.
    """
    pid: int
    """
    Inside the sandbox.
    """
    process_id: str
    """
    Its id, by which other calls name it.
    """
    started_at: datetime
    """
    When it started.
    """
    state: Literal["running", "exited"]
    """
    Whether it runs.
    """
    stderr_bytes: int
    """
    Bytes that were written to standard error.
    """
    stdin: bool
    """
    Whether it can be written to.
    """
    stdout_bytes: int
    """
    Bytes that were written to standard output.
    """
    terminal: bool
    """
    Whether it has a terminal.
    """
    working_dir: str
    """
    The folder that it works in.
    """
    blocked: str | None
    """
    The permission that ended it.
    """
    reason: str | None
    """
    Why it was ended, where that was for a bound of the sandbox; a server that has started since does not know.
    """
    signal: str | None
    """
    That ended it, such as SIGKILL.
    """
    timed_out: bool | None
    """
    Whether it timed out.
    """


class SandboxProcesses(Record):
    """
    SandboxProcesses are the processes that are known, oldest first.
    """

    __slots__ = ()
    data: list[SandboxProcess]
    """
    The list itself.
    """


class SandboxUnpacked(Record):
    """
    SandboxUnpacked says what an archive had.
    """

    __slots__ = ()
    bytes: int
    """
    Of the files' content.
    """
    files: int
    """
    Entries of all kinds.
    """


class SandboxWritten(Record):
    """
    SandboxWritten says how large a file is that was written.
    """

    __slots__ = ()
    size: int
    """
    Size in bytes.
    """


class SearchResult(Record):
    """
    SearchResult is a page that was found.
    """

    __slots__ = ()
    date: str | None
    """
    When it was published, as in 2026-03-01; null where that is not known.
    """
    last_updated: str | None
    """
    When it was changed, as in 2026-03-01; null where that is not known.
    """
    snippet: str
    """
    The provider's extract of the page's text.
    """
    title: str
    """
    Its title, for people.
    """
    url: str
    """
    The URL.
    """


class SessionBudget(Record):
    """
    SessionBudget bounds what the turns of a session use together.
    """

    __slots__ = ()
    cost_usd: float | None
    """
    US dollars, at least 0.000001: of models, tools and the sandbox.
    """
    tokens: int | None
    """
    Of all requests to models and of their answers.
    """


class SessionDelta(Record):
    """
    SessionDelta is a piece of an event that is to come.
    """

    __slots__ = ()
    item_id: str
    """
    Id of the event that the pieces form.
    """
    of: Literal["message", "thinking", "tool_use"]
    """
    Type of the event that the piece belongs to.
    """
    text: str
    """
    The text.
    """
    turn_id: str
    """
    The turn that it belongs to.
    """
    type: Literal["delta"]
    """
    Type, which decides the other fields.
    """


class SessionFile(Record):
    """
    SessionFile is a file that an agent has shared.
    """

    __slots__ = ()
    bytes: int
    """
    Size in bytes.
    """
    created_at: datetime
    """
    When it was made.
    """
    filename: str
    """
    The file's name, without its folder.
    """
    id: str
    """
    Its id, which does not change.
    """
    thread_id: str | None
    """
    In a list: the thread in which it was shared, if it was in one.
    """


class SessionOutcome(Record):
    """
    SessionOutcome is what a turn is to come to.
    """

    __slots__ = ()
    check: OutcomeCheck | None
    """
    A command of the sandbox that has to succeed.
    """
    description: str
    """
    Goal of the work.
    """
    id: str
    """
    outc_ and 32 hexadecimal digits.
    """
    max_iterations: int
    """
    How often the work is evaluated at most.
    """
    model: str | None
    """
    That grades; null for that of the agent.
    """
    rubric: str | None
    """
    Criteria for the work, in words; null if only the check decides.
    """


class SessionPlan(Record):
    """
    SessionPlan is the agent's plan, as it is from then on.
    """

    __slots__ = ()
    steps: list[PlanStep]
    """
    The steps in their order.
    """
    why_open: str | None
    """
    Why steps stay open at the end of the turn.
    """


class SessionSpeaker(Record):
    """
    SessionSpeaker is an agent that speaks for a session.
    """

    __slots__ = ()
    agent_id: str
    """
    The id of the agent.
    """
    agent_version: int
    """
    The version of the agent.
    """


class ShellOutput(Record):
    """
    ShellOutput is what shell returns.
    """

    __slots__ = ()
    exit_code: int
    """
    128+n when signal n ended the command; 124 when timeout_ms was over.
    """
    stderr: str
    """
    The first 262,144 bytes. Invalid UTF-8 becomes U+FFFD.
    """
    stdout: str
    """
    The first 262,144 bytes. Invalid UTF-8 becomes U+FFFD.
    """
    blocked: str | None
    """
    The permission of the environment that stopped the command, such as blocked_commands: shutdown.
    """
    hint: str | None
    """
    How to fix a failure that the network policy may have caused.
    """
    stderr_truncated: bool | None
    """
    There was more than stderr has.
    """
    stdout_truncated: bool | None
    """
    There was more than stdout has.
    """
    timed_out: bool | None
    """
    The command and all that it had started were ended because timeout_ms was over.
    """


class SignedURL(Record):
    """
    SignedURL reads or writes one file without a key.
    """

    __slots__ = ()
    expires_at: datetime
    """
    When it stops being valid.
    """
    method: Literal["GET", "PUT"]
    """
    The method of HTTP that the URL is for.
    """
    url: str
    """
    Relative to the server: put the address of the server before it.
    """


class SkillFile(Record):
    """
    SkillFile is a file of a skill.
    """

    __slots__ = ()
    executable: bool
    """
    Whether it may be run.
    """
    path: str
    """
    In the skill's folder.
    """
    size: int
    """
    Bytes.
    """


class SkillSource(Record):
    """
    SkillSource says where a skill comes from.
    """

    __slots__ = ()
    type: Literal["custom"]
    """
    Type, which decides the other fields.
    """


class SkillVersion(Record):
    """
    SkillVersion is a version of a skill. It does not change.
    """

    __slots__ = ()
    allowed_tools: list[str]
    """
    As SKILL.md has them. They grant nothing: the agent's policy decides.
    """
    compatibility: str | None
    """
    Requirements of the skill, in its author's words; null if SKILL.md names none.
    """
    created_at: datetime
    """
    When it was made.
    """
    description: str
    """
    Purpose, in words.
    """
    files: list[SkillFile]
    """
    The files, by path.
    """
    id: str
    """
    skillver_ and 32 hexadecimal digits.
    """
    license: str | None
    """
    The license that SKILL.md names; null if it names none.
    """
    metadata: dict[str, str]
    """
    As SKILL.md has them.
    """
    name: str
    """
    Its name.
    """
    skill_id: str
    """
    The skill that it is a version of.
    """
    type: Literal["skill_version"]
    """
    Type, which decides the other fields.
    """
    version: int
    """
    Its number, from 1.
    """


class Snapshot(Record):
    """
    Snapshot is a sandbox as it was at one moment.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it was made.
    """
    disk_bytes: int
    """
    Size of its files on disk.
    """
    expires_at: datetime | None
    """
    When it is deleted; null for never.
    """
    image: str
    """
    As it was asked for.
    """
    limits: Limits
    memory: bool
    """
    Whether it has processes and memory; otherwise it has files alone.
    """
    name: str
    """
    The name of that sandbox.
    """
    sandbox_id: str
    """
    The sandbox of the snapshot, which may no longer exist.
    """
    session: str
    """
    The session of that sandbox.
    """
    size_bytes: int
    """
    Of all that is kept, before it is compressed.
    """
    snapshot_id: str
    """
    snap- and 16 hexadecimal digits.
    """
    detail: str | None
    """
    Why it has no memory.
    """


class SnapshotPage(Record):
    """
    SnapshotPage is a part of a list, newest first.
    """

    __slots__ = ()
    data: list[Snapshot]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class TemplateSandbox(Record):
    """
    TemplateSandbox is a template's opting in.
    """

    __slots__ = ()
    environment: Literal["default-public", "internal-only"]
    """
    Network of its sandboxes. internal-only: no network. default-public: the network of the key's environment, or all public addresses if that has none; where the tenant's policy allows no network, every call fails as SandboxProvisioning.
    """


class Tenant(Record):
    """
    Tenant is a tenant as the admin API shows it.
    """

    __slots__ = ()
    audit_days: int
    """
    Days that audit rows are kept.
    """
    audit_text: bool
    """
    Whether the activity shows the beginning of code and commands, redacted. While this is false, it has their hashes alone.
    """
    caps: CapOverrides
    """
    Caps of execute_code; null for the server's.
    """
    created_at: datetime
    """
    When it was made.
    """
    deleted_at: datetime | None
    """
    When its deletion was asked for; null if it was not. The tenant is answered as unknown once nothing of it is left.
    """
    disabled_at: datetime | None
    """
    Since when its keys are refused; null if they are not.
    """
    id: str
    """
    ten_ and 16 hexadecimal digits.
    """
    key_isolation_enabled: bool
    """
    Whether its environments may have isolation key. While this is false, each of their executions has a kernel of its own.
    """
    monthly_cost: float
    """
    Budget of a calendar month (UTC) for what responses cost, in US dollars; 0 for none.
    """
    monthly_credits: float
    """
    Budget of a calendar month (UTC) in credits; 0 for none.
    """
    name: str
    """
    Its name.
    """
    network_enabled: bool
    """
    Whether its environments may have a network. While this is false, they have none.
    """
    plan: str
    """
    The plan that bounds what it may use.
    """
    redaction_off: list[str]
    """
    Redaction rules that do not apply.
    """
    root_enabled: bool
    """
    Whether its environments may run programs as root of their sandbox. While this is false, those that do run them as the ordinary user, in sandboxes that are made from then on.
    """
    sandbox_enabled: bool
    """
    Whether agents may use execute_code. Always false in the regulated tier.
    """
    tier: Literal["standard", "regulated"]
    """
    standard, or regulated, whose agents may do less.
    """
    environment: FirstEnvironment | None
    """
    Only in the answer to creating it: the environment that was created with it.
    """


class TerminalMessage(Record):
    """
    TerminalMessage is a text message of a terminal's WebSocket; binary ones are what is typed and what is shown.
    """

    __slots__ = ()
    type: Literal["resize", "started", "cursor", "exit"]
    """
    resize comes from the client, the others from the server.
    """
    columns: int | None
    """
    On resize.
    """
    cursor: int | None
    """
    On cursor: the client has everything up to here. Give it as after to continue behind it.
    """
    exit_code: int | None
    """
    On exit.
    """
    process_id: str | None
    """
    On started: give it as process to come back to the terminal.
    """
    reason: str | None
    """
    On exit: why it was ended, where that was for a bound of the sandbox.
    """
    rows: int | None
    """
    On resize.
    """


class TerminalTicket(Record):
    """
    TerminalTicket opens one WebSocket to a terminal.
    """

    __slots__ = ()
    expires_at: datetime
    """
    In 30 seconds. A connection that is open then stays.
    """
    ticket: str
    """
    Give it as ticket in the query of the WebSocket's URL. It works once.
    """


class Thread(Record):
    """
    Thread is a thread's record.
    """

    __slots__ = ()
    bytes: int
    """
    Of its files.
    """
    created_at: datetime
    """
    When it was made.
    """
    expires_at: datetime | None
    """
    When it is deleted; null for when the server's rule for idle threads says so.
    """
    files: int
    """
    How many files, folders and links it has.
    """
    thread_id: str
    """
    The id of the thread.
    """
    updated_at: datetime
    """
    When it was saved last.
    """


class ThreadPage(Record):
    """
    ThreadPage is a part of a list, by thread_id.
    """

    __slots__ = ()
    data: list[Thread]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class TimeoutResponse(Record):
    """
    TimeoutResponse is an ExecuteResponse with status 504. It also has the fields of an error, so that clients which look at the status alone find one.
    """

    __slots__ = ()
    code: Literal["gateway_timeout"]
    """
    The error's code.
    """
    error: str | None
    """
    Why Atoll stopped the run, such as a limit, as a sentence; null if Atoll did not stop it. A client whose X-Client-Id begins with baponi- gets timeout, memory_limit_exceeded or security_policy_violation if one of these applies.
    """
    exit_code: int
    """
    The program's exit code, 128+n when signal n ended it, -1 when none was seen.
    """
    message: str
    """
    The same text as error.
    """
    stderr: str
    """
    Standard error. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stderr_truncated: bool
    """
    True if the program wrote more to stderr than is returned.
    """
    stdout: str
    """
    Standard output. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stdout_truncated: bool
    """
    True if the program wrote more to stdout than is returned.
    """
    success: bool
    """
    True if exit_code is 0.
    """
    error_message: str | None
    """
    The sentence, where error has the code. Not in the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; omitted without outputs in the request. Not in the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Not in the original contract.
    """
    hint: str | None
    """
    How to fix a failure, such as a command that allows a host. Absent if Atoll has no suggestion. Not in the original contract.
    """
    start: Literal["warm", "cold"] | None
    """
    warm: the sandbox was ready before the request came; cold: it was made for the request. Omitted when nothing was run, or when the start was not seen. Not in the original contract.
    """


class TokenSandbox(Record):
    """
    TokenSandbox is the sandbox that a token reaches.
    """

    __slots__ = ()
    name: str
    """
    Its name.
    """
    sandbox_id: str
    """
    The id of the sandbox.
    """
    session: str
    """
    The session that it is in.
    """


class ToolPolicy(Record):
    """
    ToolPolicy says which tools an agent may call.
    """

    __slots__ = ()
    allow_list: list[str] | None
    """
    Tools that the agent may call, by tool, kind, class, MCP server or server/tool; a bare name never admits a tool of an MCP server. Omitted, all; empty, none.
    """
    confirm_within: int | None
    """
    Seconds that calls of a session wait for the client, and then expire; confirmation_time of the server if omitted.
    """
    deny_list: list[str] | None
    """
    Tools that the agent may not call, by any of these names; wins over allow_list.
    """
    require_confirmation: list[str] | None
    """
    Tools whose calls wait until a client confirms them.
    """


class TransferOutput(Record):
    """
    TransferOutput is what transfer returns.
    """

    __slots__ = ()
    bytes: int
    """
    Of the files' content.
    """
    ok: bool
    """
    Always true.
    """


class TurnError(Record):
    """
    TurnError says why a turn did not complete.
    """

    __slots__ = ()
    code: str
    """
    Error code for programs.
    """
    message: str
    """
    A sentence for people.
    """


class TurnUsage(Record):
    """
    TurnUsage is what a turn has used, or all turns of a session.
    """

    __slots__ = ()
    cost_usd: float
    """
    Of models, tools and the sandbox.
    """
    input_tokens: int
    """
    Tokens of the input, cached ones too.
    """
    output_tokens: int
    """
    Tokens of the output, reasoning included.
    """
    estimated_tokens: int | None
    """
    Tokens of both that Atoll estimated from the text, because an answer was cut before its provider counted them, or its provider counts none. They are charged like the others.
    """


class TurnWarning(Record):
    """
    TurnWarning reports a problem in a turn that continues.
    """

    __slots__ = ()
    code: Literal["model_retry", "mcp_unavailable", "tool_unavailable", "compaction_failed", "image_building"]
    """
    image_building: the server is making programs that the agent's skills need, and calls that need them wait. compaction_failed: the beginning of the conversation could not be summarized, and is omitted. model_retry: the model's provider failed and is asked again. mcp_unavailable: an MCP server cannot be reached, and the turn continues without its tools. tool_unavailable: this server has a built-in tool turned off.
    """
    message: str
    """
    Error message.
    """
    retry_at: datetime | None
    """
    When Atoll tries again. Omitted where the next turn does.
    """
    server: str | None
    """
    Of mcp_unavailable: the server's name.
    """


class UploadedFile(Record):
    """
    UploadedFile is what is recorded of a file.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it was made.
    """
    downloadable: bool
    """
    Always true.
    """
    expires_at: datetime | None
    """
    null for one that stays until it is deleted.
    """
    filename: str
    """
    The file's name, without its folder.
    """
    id: str
    """
    file_ and hexadecimal digits: 32 of one that was uploaded, more of one that an agent has shared.
    """
    mime_type: str
    """
    Its media type.
    """
    scope: FileScope | None
    """
    Where an agent has shared it; null for one that was uploaded.
    """
    size_bytes: int
    """
    Size in bytes.
    """
    type: Literal["file"]
    """
    Type, which decides the other fields.
    """


class UsageAmounts(Record):
    """
    UsageAmounts are amounts of use.
    """

    __slots__ = ()
    bytes_out: int
    """
    To the network.
    """
    cache_read_tokens: int
    """
    Of the input: read from the provider's cache.
    """
    cache_write_tokens: int
    """
    Of the input: written to it.
    """
    calls: int
    """
    How many calls were made.
    """
    cost: float
    """
    US dollars.
    """
    cpu_seconds: float
    """
    Seconds times the cores that the sandbox had.
    """
    credits: float
    """
    Charge in credits.
    """
    estimated_tokens: int
    """
    The part of the input and output that Atoll estimated, because the provider did not report it.
    """
    gib_seconds: float
    """
    Seconds times the GiB of memory that it had.
    """
    input_tokens: int
    """
    With those of the caches.
    """
    output_tokens: int
    """
    With those of reasoning.
    """
    reasoning_tokens: int
    """
    Of the output.
    """
    seconds: float
    """
    Wall clock, in a sandbox.
    """
    sessions: int
    """
    Sandboxes that were started.
    """


class UsageDay(Record):
    """
    UsageDay is what was used on one day by one interface, of one model or of one tool.
    """

    __slots__ = ()
    bytes_out: int
    """
    To the network.
    """
    cache_read_tokens: int
    """
    Of the input: read from the provider's cache.
    """
    cache_write_tokens: int
    """
    Of the input: written to it.
    """
    calls: int
    """
    How many calls were made.
    """
    cost: float
    """
    US dollars.
    """
    cpu_seconds: float
    """
    Seconds times the cores that the sandbox had.
    """
    credits: float
    """
    Charge in credits.
    """
    date: date_aliased
    """
    In UTC.
    """
    estimated_tokens: int
    """
    The part of the input and output that Atoll estimated, because the provider did not report it.
    """
    gib_seconds: float
    """
    Seconds times the GiB of memory that it had.
    """
    input_tokens: int
    """
    With those of the caches.
    """
    name: str
    """
    Of the model or tool; empty for other sources.
    """
    output_tokens: int
    """
    With those of reasoning.
    """
    reasoning_tokens: int
    """
    Of the output.
    """
    seconds: float
    """
    Wall clock, in a sandbox.
    """
    sessions: int
    """
    Sandboxes that were started.
    """
    source: str
    """
    The interface: execute, execute_code, sandbox for the time that named sandboxes ran, or what audit rows call a use of one, such as shell. Of responses: model, tool, or sandbox_window for windows of 20 minutes; the executions of their sandbox are response.
    """


class UsageGroup(Record):
    """
    UsageGroup is the usage of an agent or one of its sessions.
    """

    __slots__ = ()
    agent_id: str
    """
    The id of the agent; for execute_code, the caller's name for it.
    """
    bytes_out: int
    """
    To the network.
    """
    cache_read_tokens: int
    """
    Of the input: read from the provider's cache.
    """
    cache_write_tokens: int
    """
    Of the input: written to it.
    """
    calls: int
    """
    How many calls were made.
    """
    cost: float
    """
    US dollars.
    """
    cpu_seconds: float
    """
    Seconds times the cores that the sandbox had.
    """
    credits: float
    """
    Charge in credits.
    """
    estimated_tokens: int
    """
    The part of the input and output that Atoll estimated, because the provider did not report it.
    """
    gib_seconds: float
    """
    Seconds times the GiB of memory that it had.
    """
    input_tokens: int
    """
    With those of the caches.
    """
    output_tokens: int
    """
    With those of reasoning.
    """
    reasoning_tokens: int
    """
    Of the output.
    """
    seconds: float
    """
    Wall clock, in a sandbox.
    """
    session_id: str
    """
    The id of the session; empty with group_by agent, and for usage outside sessions.
    """
    sessions: int
    """
    Sandboxes that were started.
    """


class UsageMonth(Record):
    """
    UsageMonth is the state of a tenant's budgets.
    """

    __slots__ = ()
    budget: float | None
    """
    In credits; null for none.
    """
    cost: float
    """
    Cost of responses so far, in US dollars.
    """
    cost_budget: float | None
    """
    In US dollars; null for none.
    """
    credits: float
    """
    Used so far.
    """
    resets_at: datetime
    """
    When the month ends.
    """


class UsageOutputs(Record):
    """
    UsageOutputs is what a tenant's ended executions and responses keep.
    """

    __slots__ = ()
    bytes: int
    """
    Of their output, of the files they gave back, and of what responses said.
    """
    limit: int | None
    """
    max_outputs of the plan; null for none.
    """
    resets_at: datetime | None
    """
    When a part of it will have expired; null while nothing is kept. Deleting executions and responses makes room at once.
    """


class UsedSkill(Record):
    """
    UsedSkill is a skill of a session's agent.
    """

    __slots__ = ()
    folder: str | None
    """
    Where it is in the sandbox; null for one of the server's own.
    """
    name: str
    """
    Its name.
    """
    version: str | None
    """
    Id of the version; null for one of the server's own.
    """


class Vault(Record):
    """
    Vault is a group of credentials, such as those of one user of yours.
    """

    __slots__ = ()
    archived_at: datetime | None
    """
    When it was archived; null while it is in use.
    """
    created_at: datetime
    """
    When it was made.
    """
    display_name: str
    """
    A name for people.
    """
    id: str
    """
    vlt_ and 32 hexadecimal digits.
    """
    metadata: dict[str, str]
    """
    Metadata that the client has stored.
    """
    type: Literal["vault"]
    """
    Type, which decides the other fields.
    """
    updated_at: datetime
    """
    When it was changed last.
    """


class WaitingCall(Record):
    """
    WaitingCall is a call that waits for the client.
    """

    __slots__ = ()
    name: str
    """
    Its name.
    """
    needs: Literal["tool_confirmation", "tool_result"]
    """
    The type of the event that answers it.
    """
    tool_use_id: str
    """
    The id of the event tool_use.
    """
    arguments: str | None
    """
    The arguments of the call, a JSON object as text.
    """
    thread_id: str | None
    """
    The thread that made the call, if it is of work that was handed on.
    """


class Warning(Record):
    """
    Warning is about a part of an agent.
    """

    __slots__ = ()
    message: str
    """
    A sentence for people.
    """
    path: str
    """
    Where it stands in the body.
    """


class WriteFileOutput(Record):
    """
    WriteFileOutput is what write_file returns.
    """

    __slots__ = ()
    ok: bool
    """
    Always true.
    """
    size: int
    """
    Bytes of the file as it is now.
    """


class Agent(Record):
    """
    Agent is a version of an agent.
    """

    __slots__ = ()
    archived_at: datetime | None
    """
    When it was archived; null while it is in use.
    """
    compaction: AgentCompaction | None
    """
    When a long conversation is summarized; null for auto.
    """
    created_at: datetime
    """
    When it was made.
    """
    description: str | None
    """
    Purpose, in words.
    """
    handoffs: list[AgentHandoff]
    """
    With the versions that are kept.
    """
    id: str
    """
    agt_ and 32 hexadecimal digits.
    """
    max_steps: int | None
    """
    How many times a turn may ask the model; null for 100.
    """
    mcp_servers: list[AgentServer]
    """
    Without their headers and variables.
    """
    metadata: dict[str, Any]
    """
    Metadata that the client has stored.
    """
    model: AgentModel
    multiagent: AgentMultiagent | None
    """
    null where it was not given.
    """
    name: str
    """
    Its name.
    """
    retry_for_ms: int | None
    """
    How long Atoll asks the model again after its provider failed; null for the server's setting.
    """
    skills: list[AgentSkill]
    """
    Skills that it works with.
    """
    slug: str | None
    """
    A name for URLs, the only one of its kind in the tenant.
    """
    system: str | None
    """
    System prompt.
    """
    tool_policy: ToolPolicy
    """
    Which tools are allowed, denied, or wait for a confirmation.
    """
    tools: list[AgentTool]
    """
    Tools that the model may call.
    """
    type: Literal["agent"]
    """
    Type, which decides the other fields.
    """
    updated_at: datetime
    """
    When this version was made.
    """
    version: int
    """
    Its number, from 1.
    """
    visibility: str
    """
    private, or template for one that other tenants may see and copy by its id.
    """
    warnings: list[Warning]
    """
    Stored fields that have no effect.
    """


class CodeResult(Record):
    """
    CodeResult is what came of code.
    """

    __slots__ = ()
    duration_ms: int
    """
    How long it took, in milliseconds.
    """
    error: CodeError | None
    """
    Why it failed; null if it did not.
    """
    exit_code: int | None
    """
    Of Bash, or of an interpreter that ended.
    """
    status: Literal["ok", "error", "interrupted", "timeout", "ended"]
    """
    ended: the interpreter did, so that the context has to be restarted.
    """
    stderr: str
    """
    Standard error. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stderr_truncated: bool
    """
    Whether standard error had more than is kept.
    """
    stdout: str
    """
    Standard output. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stdout_truncated: bool
    """
    Whether standard output had more than is kept.
    """
    values: list[CodeValue]
    """
    Displayed values, in order, and the value of the last expression.
    """
    values_truncated: bool
    """
    Whether more was displayed than is kept.
    """
    hint: str | None
    """
    How to fix a failure that the network policy may have caused.
    """


class Container(Record):
    """
    Container is a sandbox of code_interpreter.
    """

    __slots__ = ()
    created_at: int
    """
    Seconds since 1970.
    """
    expires_after: ExpiresAfter
    """
    When it is deleted without a use.
    """
    id: str
    """
    Its id, which does not change.
    """
    last_active_at: int
    """
    When it was last used, in seconds since 1970.
    """
    memory_limit: str | None
    """
    null where it is none of OpenAI's sizes.
    """
    name: str
    """
    Its name.
    """
    network_policy: ContainerNetworkPolicy | None
    """
    null where every host may be reached.
    """
    object: Literal["container"]
    """
    Kind of the object, as OpenAI's clients read it.
    """
    status: Literal["running", "expired"]
    """
    running also while it sleeps: a use wakes it.
    """


class ContainerList(Record):
    """
    ContainerList is a page of containers.
    """

    __slots__ = ()
    data: list[Container]
    """
    The list itself.
    """
    first_id: str | None
    """
    The id of the first item of this page; null if it is empty.
    """
    has_more: bool
    """
    Whether another page follows; give last_id as after to get it.
    """
    last_id: str | None
    """
    The id of the last item of this page; null if it is empty.
    """
    object: Literal["list"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class CredentialRefresh(Record):
    """
    CredentialRefresh says how an access token is refreshed.
    """

    __slots__ = ()
    client_id: str
    """
    The client that the token endpoint knows.
    """
    resource: str | None
    """
    The resource that the token is for, if the endpoint wants one.
    """
    scope: str | None
    """
    Scope to request for the token, if the endpoint requires one.
    """
    token_endpoint: str
    """
    The URL that gives access tokens.
    """
    token_endpoint_auth: EndpointAuth
    """
    How the client shows the token endpoint who it is.
    """


class ExecuteResponse(Record):
    """
    ExecuteResponse is how an execution ended.
    """

    __slots__ = ()
    error: str | None
    """
    Why Atoll stopped the run, such as a limit, as a sentence; null if Atoll did not stop it. A client whose X-Client-Id begins with baponi- gets timeout, memory_limit_exceeded or security_policy_violation if one of these applies.
    """
    exit_code: int
    """
    The program's exit code, 128+n when signal n ended it, -1 when none was seen.
    """
    stderr: str
    """
    Standard error. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stderr_truncated: bool
    """
    True if the program wrote more to stderr than is returned.
    """
    stdout: str
    """
    Standard output. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stdout_truncated: bool
    """
    True if the program wrote more to stdout than is returned.
    """
    success: bool
    """
    True if exit_code is 0.
    """
    error_message: str | None
    """
    The sentence, where error has the code. Not in the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; omitted without outputs in the request. Not in the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Not in the original contract.
    """
    hint: str | None
    """
    How to fix a failure, such as a command that allows a host. Absent if Atoll has no suggestion. Not in the original contract.
    """
    start: Literal["warm", "cold"] | None
    """
    warm: the sandbox was ready before the request came; cold: it was made for the request. Omitted when nothing was run, or when the start was not seen. Not in the original contract.
    """


class Execution(Record):
    """
    Execution is the record of an execution with its output.
    """

    __slots__ = ()
    completed_at: datetime | None
    """
    When it ended; null until then.
    """
    created_at: datetime
    """
    When it was made.
    """
    delivery_mode: Literal["inline", "streaming", "webhook"]
    """
    How its caller asked for the result.
    """
    duration_ms: int
    """
    From admission to completion, or so far while it runs.
    """
    error: str | None
    """
    Why Atoll stopped the run, such as a limit, as a sentence; null if Atoll did not stop it. A client whose X-Client-Id begins with baponi- gets timeout, memory_limit_exceeded or security_policy_violation if one of these applies.
    """
    exit_code: int | None
    """
    The program's exit code, 128+n when signal n ended it, -1 when none was seen.
    """
    isolation: Literal["run", "key"] | None
    """
    run: it had a kernel of its own; key: others of its key had the kernel before, or after it; null when nothing was run, or when that was not noted.
    """
    key: str
    """
    Id of the key that asked for it.
    """
    language: Literal["python", "node", "bash"]
    """
    The language of the code.
    """
    metadata: dict[str, str]
    """
    As given with the request.
    """
    output_truncated: bool | None
    """
    True if events have left the reconnect buffer.
    """
    start: Literal["warm", "cold"] | None
    """
    warm: the sandbox was ready before the request came; cold: it was made for the request; null when nothing was run, or when the start was not seen.
    """
    status: Literal["running", "success", "failed", "timeout", "oom", "blocked", "cancelled"]
    """
    blocked: the platform did not let it run.
    """
    stderr: str | None
    """
    Standard error. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stderr_truncated: bool | None
    """
    Likewise for stderr.
    """
    stdout: str | None
    """
    Standard output. Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    stdout_truncated: bool | None
    """
    True if the program wrote more to stdout than is returned here.
    """
    thread_id: str | None
    """
    The thread whose home it had; null for none.
    """
    trace_id: str
    """
    trc_ and 20 letters and digits, of older records 32 hexadecimal digits.
    """
    webhook_delivery_status: Literal["pending", "delivered", "failed"] | None
    """
    null when there is no webhook.
    """
    error_message: str | None
    """
    The sentence, where error has the code. Not in the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; omitted without outputs in the request. Not in the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Not in the original contract.
    """
    hint: str | None
    """
    How to fix a failure, such as a command that allows a host; absent if Atoll has no suggestion.
    """


class ExecutionSummary(Record):
    """
    ExecutionSummary is the record of an execution without its output. Fields that are known at its end are null while it runs.
    """

    __slots__ = ()
    completed_at: datetime | None
    """
    When it ended; null until then.
    """
    created_at: datetime
    """
    When it was made.
    """
    delivery_mode: Literal["inline", "streaming", "webhook"]
    """
    How its caller asked for the result.
    """
    duration_ms: int
    """
    From admission to completion, or so far while it runs.
    """
    error: str | None
    """
    Why Atoll stopped the run, such as a limit, as a sentence; null if Atoll did not stop it. A client whose X-Client-Id begins with baponi- gets timeout, memory_limit_exceeded or security_policy_violation if one of these applies.
    """
    exit_code: int | None
    """
    The program's exit code, 128+n when signal n ended it, -1 when none was seen.
    """
    isolation: Literal["run", "key"] | None
    """
    run: it had a kernel of its own; key: others of its key had the kernel before, or after it; null when nothing was run, or when that was not noted.
    """
    key: str
    """
    Id of the key that asked for it.
    """
    language: Literal["python", "node", "bash"]
    """
    The language of the code.
    """
    metadata: dict[str, str]
    """
    As given with the request.
    """
    output_truncated: bool | None
    """
    True if events have left the reconnect buffer.
    """
    start: Literal["warm", "cold"] | None
    """
    warm: the sandbox was ready before the request came; cold: it was made for the request; null when nothing was run, or when the start was not seen.
    """
    status: Literal["running", "success", "failed", "timeout", "oom", "blocked", "cancelled"]
    """
    blocked: the platform did not let it run.
    """
    stderr_truncated: bool | None
    """
    Likewise for stderr.
    """
    stdout_truncated: bool | None
    """
    True if the program wrote more to stdout than is returned here.
    """
    thread_id: str | None
    """
    The thread whose home it had; null for none.
    """
    trace_id: str
    """
    trc_ and 20 letters and digits, of older records 32 hexadecimal digits.
    """
    webhook_delivery_status: Literal["pending", "delivered", "failed"] | None
    """
    null when there is no webhook.
    """
    error_message: str | None
    """
    The sentence, where error has the code. Not in the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; omitted without outputs in the request. Not in the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Not in the original contract.
    """
    hint: str | None
    """
    How to fix a failure, such as a command that allows a host; absent if Atoll has no suggestion.
    """


class FetchAnswer(Record):
    """
    FetchAnswer is pages.
    """

    __slots__ = ()
    contents: list[FetchedPage]
    """
    In the order of the URLs.
    """
    id: str
    """
    The call, as the audit trail names it.
    """


class MCPError(Record):
    """
    MCPError is a refusal of the endpoint of the Model Context Protocol: an error of JSON-RPC.
    """

    __slots__ = ()
    error: MCPErrorObject
    """
    Why the request was refused.
    """
    id: Any
    """
    Id of the message; null if it has none or could not be read.
    """
    jsonrpc: Literal["2.0"]
    """
    The version of JSON-RPC.
    """


class Model(Record):
    """
    Model is a model of a provider as the admin API shows it: without its key.
    """

    __slots__ = ()
    all_tenants: bool
    """
    Whether every tenant may use it.
    """
    base_url: str
    """
    Of the provider's API.
    """
    capabilities: list[str]
    """
    Capabilities. Atoll rejects requests for any other capability before it calls the provider.
    """
    context: int
    """
    Tokens of input and output together; 0 for unknown.
    """
    created_at: datetime
    """
    Of one that a file declares: when the file changed.
    """
    has_key: bool
    """
    Whether there is a key for the provider; it is never shown.
    """
    id: str
    """
    mdl_ and 16 hexadecimal digits.
    """
    max_output: int
    """
    Tokens of an answer; 0 for unknown.
    """
    name: str
    """
    Name that requests use as model.
    """
    plans: list[str]
    """
    Names of the plans whose tenants may, too.
    """
    prices: ModelPrices
    """
    US dollars for a million tokens.
    """
    provider: Literal["openai", "openai-chat", "anthropic"]
    """
    The wire protocol: OpenAI's Responses, Chat Completions, which many servers speak, or Anthropic's Messages.
    """
    source: Literal["api", "file"]
    """
    Where it was made. One of a file is changed there alone.
    """
    tenants: list[str]
    """
    Tenants that may use it, if not all: their ids, or names if a file lists names.
    """
    updated_at: datetime
    """
    When it was changed last.
    """
    upstream: str
    """
    Name at the provider.
    """
    file: str | None
    """
    Path on the server of the file that declares it.
    """
    overridden: bool | None
    """
    A file declares a model of the same name, which is used in its place; this one can be changed and deleted by its id.
    """


class ModelTrial(Record):
    """
    ModelTrial is what came of it.
    """

    __slots__ = ()
    answer: str
    """
    The text that the model said.
    """
    cost: ModelCost | None
    """
    By the prices of the record; null if the provider did not tell the tokens.
    """
    duration_ms: int
    """
    How long it took, in milliseconds.
    """
    error: ModelError | None
    """
    Why there is no answer, or not all of it; null if there is.
    """
    first_token_ms: int
    """
    Milliseconds until the answer began.
    """
    ok: bool
    """
    Whether the model answered.
    """
    usage: ModelUsage | None
    """
    null if the provider did not tell.
    """
    reasoning: str | None
    """
    The part of its reasoning that the provider shows.
    """
    request_id: str | None
    """
    The provider's name for the request.
    """
    stop: str | None
    """
    Why the answer ended: end, max_output_tokens, content_filter or refusal.
    """


class PageAgent(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Agent]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageModel(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Model]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PagePlan(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Plan]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PagePolicyEvent(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[PolicyEvent]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSessionFile(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[SessionFile]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSkillVersion(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[SkillVersion]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageTenant(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Tenant]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageUploadedFile(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[UploadedFile]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageVault(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Vault]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class Permissions(Record):
    """
    Permissions say what the programs of an environment may reach and do.
    """

    __slots__ = ()
    allow_mcp_servers: bool
    """
    In sessions: MCP servers of the agent are asked also where network does not allow their hosts.
    """
    filesystem: FilesystemPermissions
    """
    Which files programs may see and change.
    """
    network: NetworkPermissions
    """
    Network access of programs.
    """
    process: ProcessPermissions
    """
    Programs and processes that may run.
    """


class ResponseAction(Record):
    """
    ResponseAction is what an item web_search_call did, or will do.
    """

    __slots__ = ()
    queries: list[str]
    """
    Search queries.
    """
    query: str
    """
    Search query.
    """
    type: Literal["search"]
    """
    Type, which decides the other fields.
    """
    sources: list[ResponseActionSource] | None
    """
    Pages that were found.
    """


class ResponseItem(Record):
    """
    ResponseItem is an item of the output; which fields it has depends on its type.
    """

    __slots__ = ()
    type: Literal["message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "sandbox_results", "sandbox_write_file", "sandbox_read_file", "sandbox_edit_file", "sandbox_grep", "sandbox_glob", "sandbox_apply_patch", "share_file", "code_interpreter_call", "search_results", "fetch_url_results", "web_search_call", "mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response"]
    """
    Type, which decides the other fields.
    """
    action: ResponseAction | None
    """
    Action of a web search.
    """
    added: list[str] | None
    """
    Paths of files that were made.
    """
    approval_request_id: str | None
    """
    The request that is answered.
    """
    approve: bool | None
    """
    Whether the call may be made.
    """
    arguments: str | None
    """
    The arguments of the call, a JSON object as text.
    """
    call_id: str | None
    """
    The id by which a call and its output belong together.
    """
    code: str | None
    """
    The code that is run.
    """
    container_id: str | None
    """
    The container that it is in.
    """
    content: Any | None
    """
    Content: a text, or parts.
    """
    contents: list[ResponsePage] | None
    """
    Pages that were read.
    """
    count: int | None
    """
    How many matches there are.
    """
    deleted: list[str] | None
    """
    Paths of files that were deleted.
    """
    encrypted_content: str | None
    """
    The reasoning in the provider's encrypted form, which it takes back.
    """
    error: str | None
    """
    Why the tool failed.
    """
    file_id: str | None
    """
    The file's id.
    """
    file_path: str | None
    """
    The path that was asked for.
    """
    filename: str | None
    """
    The file's name, without its folder.
    """
    files: list[str] | None
    """
    Paths that were found.
    """
    id: str | None
    """
    Its id, which does not change.
    """
    input: str | None
    """
    Of custom_tool_call: the text that the model gives the tool.
    """
    language: str | None
    """
    The language of the code.
    """
    message: str | None
    """
    A sentence for people.
    """
    modified: list[str] | None
    """
    Paths of files that were changed.
    """
    name: str | None
    """
    Its name.
    """
    output: Any | None
    """
    Result of the call.
    """
    outputs: Any | None
    """
    Of code_interpreter_call: output of its code (logs) and its images (image, with a data URL as url); null unless include requests it.
    """
    queries: list[str] | None
    """
    Search queries.
    """
    reason: str | None
    """
    Why, as a word or in words.
    """
    results: Any | None
    """
    Of sandbox_results: stdout, stderr, exit_code, duration_ms and status of each run. Of search_results: id, title, url, snippet, date and last_updated of each page.
    """
    role: str | None
    """
    Role of the speaker.
    """
    server_label: str | None
    """
    The MCP server, by its label in the request.
    """
    size_bytes: int | None
    """
    Size in bytes.
    """
    start_line: int | None
    """
    The first line that was returned, from 1.
    """
    status: str | None
    """
    In which state it is.
    """
    summary: list[ResponsePart] | None
    """
    The part of its reasoning that the model shows.
    """
    tools: list[ResponseToolOfOther] | None
    """
    Tools that the MCP server has.
    """
    total_lines: int | None
    """
    Lines that the file has.
    """
    truncated: bool | None
    """
    Whether there is more than is shown.
    """


class ResponseRefusal(Record):
    """
    ResponseRefusal is the body of a refusal, as the clients of this API read it.
    """

    __slots__ = ()
    error: ResponseRefusalDetail
    """
    The same in the form that OpenAI's clients read.
    """
    message: str
    """
    The same message.
    """
    dimension: str | None
    """
    With rate_limited: which limit it is, such as outputs or responses.
    """
    resets_at: datetime | None
    """
    With rate_limited: when the limit starts again, if it does.
    """


class SearchAnswer(Record):
    """
    SearchAnswer is what was found.
    """

    __slots__ = ()
    id: str
    """
    The call, as the audit trail names it.
    """
    results: list[SearchResult]
    """
    Best first.
    """
    server_time: datetime | None
    """
    Time at the server, if requested.
    """


class Session(Record):
    """
    Session is a conversation with an agent.
    """

    __slots__ = ()
    agent_id: str
    """
    The id of the agent.
    """
    agent_version: int
    """
    The version of the agent.
    """
    archived_at: datetime | None
    """
    When it was archived; null while it is in use.
    """
    budget: SessionBudget | None
    """
    null for none.
    """
    created_at: datetime
    """
    When it was made.
    """
    environment_id: str
    """
    The environment that it runs in.
    """
    events: int
    """
    Number of the last one. Some are for other forms alone.
    """
    id: str
    """
    sess_ and 32 hexadecimal digits.
    """
    metadata: dict[str, Any]
    """
    Metadata that the client has stored.
    """
    mounts: list[Mount]
    """
    Files that its sandbox has at its first use.
    """
    queued_turns: int
    """
    Turns that wait for those before them.
    """
    speaker: SessionSpeaker
    """
    The agent that answers messages: another one than the session's once a swarm has handed the conversation on.
    """
    status: Literal["idle", "running", "requires_action", "archived"]
    """
    In which state it is.
    """
    title: str | None
    """
    Its title, for people.
    """
    type: Literal["session"]
    """
    Type, which decides the other fields.
    """
    updated_at: datetime
    """
    When it was changed last.
    """
    usage: TurnUsage
    """
    Of all turns that have ended.
    """
    vault_ids: list[str]
    """
    The vaults whose credentials it uses.
    """
    webhook_url: str | None
    """
    The URL that Atoll notifies of its state; null if none.
    """


class SessionContext(Record):
    """
    SessionContext is what the model is told before the conversation.
    """

    __slots__ = ()
    instructions: str
    """
    Those of the agent, and after them those of its skills.
    """
    model: str
    """
    The model that is asked.
    """
    skills: list[UsedSkill]
    """
    Skills that it works with.
    """
    tools: list[ContextTool]
    """
    Tools that the model may call.
    """
    type: Literal["session_context"]
    """
    Type, which decides the other fields.
    """


class SessionStop(Record):
    """
    SessionStop is why a turn stopped.
    """

    __slots__ = ()
    requires_action: list[WaitingCall]
    """
    Calls that wait for the client.
    """
    type: Literal["end_turn", "requires_action", "interrupted", "expired", "limit", "error"]
    """
    Type, which decides the other fields.
    """
    expires_at: datetime | None
    """
    Until when the calls wait.
    """


class SessionThread(Record):
    """
    SessionThread is work that an agent has handed to another one: a conversation of its own.
    """

    __slots__ = ()
    agent_id: str
    """
    The id of the agent.
    """
    agent_version: int
    """
    The version of the agent.
    """
    archived_at: datetime | None
    """
    When a client of the other form put it aside.
    """
    created_at: datetime
    """
    When it was made.
    """
    ended_at: datetime | None
    """
    When it ended; null until then.
    """
    events: int
    """
    Number of the last one.
    """
    id: str
    """
    sthr_ and 32 hexadecimal digits.
    """
    name: str
    """
    Of the hand-off.
    """
    parent_thread_id: str | None
    """
    The thread that handed it on; null for the session's own conversation.
    """
    session_id: str
    """
    The session that it belongs to.
    """
    status: Literal["running", "requires_action", "idle", "terminated"]
    """
    requires_action: calls of it, or of a thread below it, wait for the client. idle: it came to its end. terminated: it was ended, or has failed.
    """
    turn_id: str
    """
    The turn that it belongs to.
    """
    type: Literal["session_thread"]
    """
    Type, which decides the other fields.
    """
    usage: TurnUsage
    """
    Once it has ended, with that of threads below it.
    """


class SessionTurn(Record):
    """
    SessionTurn is the agent's answer.
    """

    __slots__ = ()
    content: str
    """
    The agent's last message.
    """
    error: TurnError | None
    """
    Why the turn did not complete.
    """
    id: str | None
    """
    Of the turn: turn_ and 32 hexadecimal digits. null when none began, since other calls wait for answers, too.
    """
    requires_action: list[WaitingCall]
    """
    Calls that wait for the client.
    """
    role: Literal["assistant"]
    """
    Role of the speaker.
    """
    session_id: str
    """
    The session that it belongs to.
    """
    status: Literal["queued", "in_progress", "completed", "requires_action", "incomplete", "failed", "cancelled"]
    """
    In which state it is.
    """
    type: Literal["message"]
    """
    Type, which decides the other fields.
    """
    usage: TurnUsage
    """
    Tokens that it used, and their price.
    """
    evaluation: OutcomeEvaluation | None
    """
    Of the turn's outcome: the last one.
    """


class Skill(Record):
    """
    Skill is a folder of instructions and files that agents may use.
    """

    __slots__ = ()
    archived_at: datetime | None
    """
    When it was archived; null while it is in use.
    """
    created_at: datetime
    """
    When it was made.
    """
    description: str
    """
    Description of the latest version.
    """
    display_name: str
    """
    A name for people.
    """
    id: str
    """
    skill_ and 32 hexadecimal digits.
    """
    latest_version: int
    """
    Its number.
    """
    latest_version_id: str
    """
    The id of its newest version.
    """
    name: str
    """
    The name in SKILL.md, which is also the folder's name in sandboxes.
    """
    source: SkillSource
    """
    Where it comes from.
    """
    type: Literal["skill"]
    """
    Type, which decides the other fields.
    """
    updated_at: datetime
    """
    When the latest version was made.
    """


class Template(Record):
    """
    Template is an agent template.
    """

    __slots__ = ()
    name: str
    """
    Its name.
    """
    sandbox: TemplateSandbox | None
    """
    null for a template that has not opted in.
    """


class Token(Record):
    """
    Token is a token as the API shows it.
    """

    __slots__ = ()
    cost: float
    """
    US dollars that were charged to it.
    """
    created_at: datetime
    """
    When it was made.
    """
    executions: int
    """
    That it has begun.
    """
    expires_at: datetime
    """
    When it stops being valid.
    """
    id: str
    """
    tok_, the digits of its key's id, and 16 hexadecimal digits. Records and the audit trail name it in place of a key.
    """
    key_id: str
    """
    The key that made it.
    """
    max_cost: float | None
    """
    null for no bound.
    """
    max_executions: int | None
    """
    null for no bound.
    """
    operations: list[str]
    """
    Empty for all that are open to tokens.
    """
    origins: list[str]
    """
    Empty for any.
    """
    rights: list[str]
    """
    Rights in sessions beyond sending messages: confirm, outcomes.
    """
    sandbox: TokenSandbox | None
    """
    null for any.
    """
    scopes: list[str]
    """
    Scopes: the operations that the token may call.
    """
    session: str | None
    """
    null for any.
    """
    token: str | None
    """
    The token itself: only in the answer that made it.
    """


class Usage(Record):
    """
    Usage is what a tenant has used.
    """

    __slots__ = ()
    before: datetime
    """
    The end of the time that is shown, which is not in it.
    """
    days: list[UsageDay]
    """
    One entry for each day with use, in UTC.
    """
    month: UsageMonth
    """
    The current calendar month in UTC.
    """
    outputs: UsageOutputs
    """
    Storage that ended executions and responses use now.
    """
    since: datetime
    """
    The beginning of the time that is shown.
    """
    totals: UsageAmounts
    """
    Totals of the days above; calls counts only calls of interfaces.
    """
    groups: list[UsageGroup] | None
    """
    With group_by: the usage of each agent or session, the most expensive first; at most 1,000. Includes whole days.
    """


class CancelledResponse(Record):
    """
    CancelledResponse is a response that was cancelled. The open specification has the response, another vendor's client reads response_id.
    """

    __slots__ = ()
    background: bool
    """
    Whether it was started in the background.
    """
    completed_at: int | None
    """
    When it ended, in seconds since 1970; null until then.
    """
    created_at: int
    """
    Seconds since 1970.
    """
    error: ResponseError | None
    """
    Why it failed; null if it did not.
    """
    frequency_penalty: float
    """
    Always 0: it is not supported.
    """
    id: str
    """
    Its id, which does not change.
    """
    incomplete_details: ResponseIncomplete | None
    """
    Why the response is incomplete; null if it is not.
    """
    instructions: str | None
    """
    System prompt; null if none.
    """
    max_output_tokens: int | None
    """
    Tokens that all answers together may have, reasoning included.
    """
    max_tool_calls: int | None
    """
    Calls of tools that the response may make.
    """
    metadata: dict[str, str]
    """
    Metadata that the client has stored.
    """
    model: str
    """
    The model that is asked.
    """
    object: Literal["response"]
    """
    Kind of the object, as OpenAI's clients read it.
    """
    output: list[ResponseItem]
    """
    Output items of the model, in order.
    """
    parallel_tool_calls: bool
    """
    Whether the model may make several calls at once.
    """
    presence_penalty: float
    """
    Always 0: it is not supported.
    """
    previous_response_id: str | None
    """
    The response that it continues; null if none.
    """
    prompt_cache_key: str | None
    """
    Which requests share the provider's cache.
    """
    reasoning: ResponseReasoning | None
    """
    How the model thinks before it answers.
    """
    response_id: str
    """
    The same as id.
    """
    safety_identifier: str | None
    """
    As the request has it; null if it has none.
    """
    service_tier: str
    """
    Which tier of the provider is used: there is one.
    """
    status: Literal["queued", "in_progress", "completed", "requires_action", "incomplete", "failed", "cancelled"]
    """
    In which state it is.
    """
    store: bool
    """
    Whether the response is kept.
    """
    temperature: float
    """
    How freely the model chooses words, 0 to 2.
    """
    text: ResponseText
    """
    The form of the answer's text.
    """
    tool_choice: Any
    """
    Whether the model has to call a tool, and which.
    """
    tools: list[Any]
    """
    Tools that the model may call.
    """
    top_logprobs: int
    """
    Always 0: they are not supported.
    """
    top_p: float
    """
    From how much of the likely words the model chooses, 0 to 1.
    """
    truncation: Literal["auto", "disabled"]
    """
    Handling of input beyond the model's context: auto drops the beginning, disabled returns an error.
    """
    usage: ResponseUsage | None
    """
    Tokens that it used, and their price.
    """


class CodeEvent(Record):
    """
    CodeEvent is a line of a streamed run. It has the field that its type names; the type "result" has a CodeResult without output and values.
    """

    __slots__ = ()
    type: Literal["output", "value", "result", "keepalive"]
    """
    Type, which decides the other fields.
    """
    data: str | None
    """
    Of output: the text.
    """
    error: str | None
    """
    With message, instead of result: why the run is not known to have ended.
    """
    message: str | None
    """
    With error: a sentence for people.
    """
    result: CodeResult | None
    """
    Of result: the outcome of the code.
    """
    stream: Literal["stdout", "stderr"] | None
    """
    Of output: the stream that it was written to.
    """
    value: CodeValue | None
    """
    Of value: a displayed value, or the value of the last expression.
    """


class CredentialAuth(Record):
    """
    CredentialAuth is what a credential is for.
    """

    __slots__ = ()
    type: Literal["static_bearer", "mcp_oauth", "host_secret"]
    """
    Type, which decides the other fields.
    """
    expires_at: datetime | None
    """
    Of mcp_oauth: when the access token expires; null where that is not known.
    """
    hosts: list[str] | None
    """
    Of host_secret: the hosts that the secret is sent to.
    """
    mcp_server_url: str | None
    """
    Of static_bearer and mcp_oauth: the MCP server that the token is for.
    """
    refresh: CredentialRefresh | None
    """
    Of mcp_oauth: how another access token is had.
    """
    secret_name: str | None
    """
    Of host_secret: the variable of programs, which holds a placeholder.
    """


class Environment(Record):
    """
    Environment is an environment as the admin API shows it.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it was made.
    """
    env_vars: dict[str, str]
    """
    Variables of programs by name.
    """
    id: str
    """
    env_ and 16 hexadecimal digits.
    """
    image: str
    """
    The image that it runs.
    """
    isolation: Literal["run", "key"]
    """
    Whether each execution has its own kernel (run), or the executions of a key share one (key).
    """
    limits: Limits
    name: str
    """
    Its name.
    """
    package_build: PackageBuild | None
    """
    How far the image of the environment is: its packages, or a variant of the default image such as default+browser. null without both, and in lists.
    """
    packages: Packages
    """
    Packages that are installed in the image.
    """
    permissions: Permissions
    """
    Permissions of programs: network, files and processes.
    """
    secret_hosts: dict[str, list[str]]
    """
    Of secrets that programs do not get, the hosts whose requests they are put into.
    """
    secrets: list[str]
    """
    Names of the secret variables. Their values are never shown.
    """
    tenant: str
    """
    The tenant's id.
    """
    sandboxes_to_restart: int | None
    """
    In the answer to a change of permissions: the number of named sandboxes that POST /v1/sandboxes/{sandbox}/restart would give more of the network.
    """


class EnvironmentConfig(Record):
    """
    EnvironmentConfig is what programs of an environment get and may do.
    """

    __slots__ = ()
    base_template: str | None
    """
    null for an image that the operator chose.
    """
    isolation: Literal["run", "key"]
    """
    Whether each execution has its own kernel (run), or the executions of a key share one (key).
    """
    packages: Packages
    """
    Packages that are installed in the image.
    """
    permission_profile: str | None
    """
    The profile that permissions started from; null for none.
    """
    permissions: Permissions
    """
    Permissions of programs: network, files and processes.
    """
    resources: Resources
    """
    Processor, memory and time.
    """
    type: Literal["cloud"]
    """
    Type, which decides the other fields.
    """


class Event(Record):
    """
    Event is one line of an NDJSON stream. Seq grows with every event; Type decides which of the other fields are there.
    """

    __slots__ = ()
    seq: int
    """
    Position in the stream.
    """
    type: Literal["status", "output", "keepalive", "result"]
    """
    status comes first, result last.
    """
    data: str | None
    """
    On output: a line with its newline, or a piece of one that is longer than 64 KiB. With partial also a piece that the program paused behind.
    """
    output_truncated: bool | None
    """
    On result: true if output events are missing that had left the reconnect buffer. The result's own output is complete.
    """
    result: ExecuteResponse | None
    """
    On result: the fields of an inline response.
    """
    status: Literal["running", "success", "failed", "timeout", "cancelled"] | None
    """
    On status and result.
    """
    stream: Literal["stdout", "stderr"] | None
    """
    On output.
    """
    trace_id: str | None
    """
    On status and result.
    """


class ExecutionPage(Record):
    """
    ExecutionPage is a part of a list, newest first.
    """

    __slots__ = ()
    data: list[ExecutionSummary]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class OwnEnvironment(Record):
    """
    OwnEnvironment is an environment as its tenant sees it.
    """

    __slots__ = ()
    config: EnvironmentConfig
    """
    Its resources and permissions.
    """
    created_at: datetime
    """
    When it was made.
    """
    id: str
    """
    env_ and 16 hexadecimal digits.
    """
    name: str
    """
    Its name.
    """
    package_build: PackageBuild | None
    """
    How far the image of the environment is: config.packages, or a variant of the default image such as default+browser; null without both.
    """


class PageEnvironment(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Environment]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageOwnEnvironment(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[OwnEnvironment]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSession(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Session]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSessionThread(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[SessionThread]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSkill(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Skill]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageTemplate(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Template]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageToken(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Token]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class Response(Record):
    """
    Response is a response, by the open Responses specification and with what our contract adds.
    """

    __slots__ = ()
    background: bool
    """
    Whether it was started in the background.
    """
    completed_at: int | None
    """
    When it ended, in seconds since 1970; null until then.
    """
    created_at: int
    """
    Seconds since 1970.
    """
    error: ResponseError | None
    """
    Why it failed; null if it did not.
    """
    frequency_penalty: float
    """
    Always 0: it is not supported.
    """
    id: str
    """
    Its id, which does not change.
    """
    incomplete_details: ResponseIncomplete | None
    """
    Why the response is incomplete; null if it is not.
    """
    instructions: str | None
    """
    System prompt; null if none.
    """
    max_output_tokens: int | None
    """
    Tokens that all answers together may have, reasoning included.
    """
    max_tool_calls: int | None
    """
    Calls of tools that the response may make.
    """
    metadata: dict[str, str]
    """
    Metadata that the client has stored.
    """
    model: str
    """
    The model that is asked.
    """
    object: Literal["response"]
    """
    Kind of the object, as OpenAI's clients read it.
    """
    output: list[ResponseItem]
    """
    Output items of the model, in order.
    """
    parallel_tool_calls: bool
    """
    Whether the model may make several calls at once.
    """
    presence_penalty: float
    """
    Always 0: it is not supported.
    """
    previous_response_id: str | None
    """
    The response that it continues; null if none.
    """
    prompt_cache_key: str | None
    """
    Which requests share the provider's cache.
    """
    reasoning: ResponseReasoning | None
    """
    How the model thinks before it answers.
    """
    safety_identifier: str | None
    """
    As the request has it; null if it has none.
    """
    service_tier: str
    """
    Which tier of the provider is used: there is one.
    """
    status: Literal["queued", "in_progress", "completed", "requires_action", "incomplete", "failed", "cancelled"]
    """
    In which state it is.
    """
    store: bool
    """
    Whether the response is kept.
    """
    temperature: float
    """
    How freely the model chooses words, 0 to 2.
    """
    text: ResponseText
    """
    The form of the answer's text.
    """
    tool_choice: Any
    """
    Whether the model has to call a tool, and which.
    """
    tools: list[Any]
    """
    Tools that the model may call.
    """
    top_logprobs: int
    """
    Always 0: they are not supported.
    """
    top_p: float
    """
    From how much of the likely words the model chooses, 0 to 1.
    """
    truncation: Literal["auto", "disabled"]
    """
    Handling of input beyond the model's context: auto drops the beginning, disabled returns an error.
    """
    usage: ResponseUsage | None
    """
    Tokens that it used, and their price.
    """


class ResponseEvent(Record):
    """
    ResponseEvent is an event of a stream; which fields it has depends on its type.
    """

    __slots__ = ()
    sequence_number: int
    """
    Which event of the response it is, from 0, without gaps.
    """
    type: str
    """
    Type, which decides the other fields.
    """
    annotation: ResponseAnnotation | None
    """
    The annotation that was added.
    """
    annotation_index: int | None
    """
    Which annotation of the part it is, from 0.
    """
    arguments: str | None
    """
    The arguments of the call, a JSON object as text.
    """
    code: str | None
    """
    The code that the model has written, or what went wrong.
    """
    content_index: int | None
    """
    Which part of the item's content it is, from 0.
    """
    contents: list[ResponsePage] | None
    """
    Pages that were read.
    """
    delta: str | None
    """
    The next piece of a text.
    """
    error: ResponseError | None
    """
    Why it failed; null if it did not.
    """
    input: str | None
    """
    The text that the model gives a custom tool.
    """
    item: ResponseItem | None
    """
    The item that was added or is done.
    """
    item_id: str | None
    """
    The item that the event is about.
    """
    logprobs: list[Any] | None
    """
    Always empty: they are not supported.
    """
    output_index: int | None
    """
    Which item of the output it is, from 0.
    """
    part: ResponsePart | None
    """
    The part that was added or is done.
    """
    queries: list[str] | None
    """
    Search queries.
    """
    refusal: str | None
    """
    The model's refusal.
    """
    response: Response | None
    """
    The response as it is now.
    """
    results: Any | None
    """
    Results of the tool.
    """
    summary_index: int | None
    """
    Which part of the summary it is, from 0.
    """
    text: str | None
    """
    The text.
    """
    urls: list[str] | None
    """
    Pages that are read.
    """


class ResponseInput(Record):
    """
    ResponseInput is a page of the input of a response.
    """

    __slots__ = ()
    data: list[ResponseItem]
    """
    The list itself.
    """
    first_id: str | None
    """
    The id of the first item of this page; null if it is empty.
    """
    has_more: bool
    """
    Whether another page follows; give last_id as after to get it.
    """
    last_id: str | None
    """
    The id of the last item of this page; null if it is empty.
    """
    object: Literal["list"]
    """
    Kind of the object, as OpenAI's clients read it.
    """


class SessionEvent(Record):
    """
    SessionEvent is something that happened in a session. It does not change.
    """

    __slots__ = ()
    created_at: datetime
    """
    When it happened.
    """
    id: str
    """
    sevt_, the session's digits and the number of the event.
    """
    turn_id: str | None
    """
    null for answers after which no turn began.
    """
    type: Literal["message", "thinking", "tool_use", "tool_result", "tool_confirmation", "error", "warning", "usage", "status", "file", "plan", "review", "state", "reminder", "user.define_outcome", "outcome_evaluation_start", "outcome_evaluation_ongoing", "outcome_evaluation_end", "thread_created", "thread_message_sent", "thread_message_received", "thread_idle", "thread_terminated", "context_summary", "context_compacted", "speaker"]
    """
    Type, which decides the other fields.
    """
    approve: bool | None
    """
    Of tool_confirmation.
    """
    arguments: str | None
    """
    Of tool_use: the arguments that the model wrote, usually valid JSON.
    """
    content: str | None
    """
    Of message, thinking and tool_result; of reminder, what the model was told; of state, the document; of user.define_outcome, what the model was told; of thread_message_sent and thread_message_received, of context_summary and context_compacted, the text.
    """
    error: TurnError | None
    """
    Of error, and of thread_terminated where there is something to say.
    """
    evaluation: OutcomeEvaluation | None
    """
    Of outcome_evaluation_start, _ongoing and _end.
    """
    file: SessionFile | None
    """
    Of file: the shared file.
    """
    files: list[str] | None
    """
    Of message and user.define_outcome: the names of the files that came with it.
    """
    incomplete: bool | None
    """
    Of message and thinking: it broke off, and is no part of the conversation.
    """
    is_error: bool | None
    """
    Of tool_result.
    """
    item_id: str | None
    """
    Of message and thinking: the id that their deltas have.
    """
    key_id: str | None
    """
    Of tool_confirmation: of the key that gave it; omitted where the call has expired.
    """
    name: str | None
    """
    Of tool_use.
    """
    outcome: SessionOutcome | None
    """
    Of user.define_outcome.
    """
    plan: SessionPlan | None
    """
    Of plan.
    """
    reason: str | None
    """
    Of tool_confirmation.
    """
    review: Review | None
    """
    Of review.
    """
    role: Literal["user", "assistant", "system"] | None
    """
    Of message and user.define_outcome.
    """
    skill: str | None
    """
    Of plan, review, state and reminder: the skill that it is of.
    """
    speaker: EventThread | None
    """
    Of speaker: the agent that speaks from then on.
    """
    status: Literal["running", "idle", "requires_action"] | None
    """
    Of status: the new status of the session.
    """
    stop_reason: SessionStop | None
    """
    Of status, but for running.
    """
    thread: EventThread | None
    """
    Of events of threads: the thread, with the agent that works in it.
    """
    tool_use_id: str | None
    """
    Of tool_result and tool_confirmation, and of events of threads and speaker: the id of the event tool_use.
    """
    usage: TurnUsage | None
    """
    Of usage: of the whole turn. Of outcome_evaluation_end: of the models that graded.
    """
    warning: TurnWarning | None
    """
    Of warning.
    """


class Credential(Record):
    """
    Credential is a credential, without its secrets.
    """

    __slots__ = ()
    archived_at: datetime | None
    """
    When it was archived; null while it is in use.
    """
    auth: CredentialAuth
    """
    Purpose of the credential, with its type.
    """
    created_at: datetime
    """
    When it was made.
    """
    display_name: str | None
    """
    A name for people.
    """
    id: str
    """
    vcrd_ and 32 hexadecimal digits.
    """
    metadata: dict[str, str]
    """
    Metadata that the client has stored.
    """
    type: Literal["vault_credential"]
    """
    Type, which decides the other fields.
    """
    updated_at: datetime
    """
    When it was changed last.
    """
    vault_id: str
    """
    The vault that it is in.
    """


class PageCredential(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[Credential]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSessionEvent(Record):
    """
    Page is a part of a list.
    """

    __slots__ = ()
    data: list[SessionEvent]
    """
    The list itself.
    """
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """
