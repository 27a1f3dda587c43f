# Code generated from api/openapi.json by datamodel-code-generator 0.89.0; tools/generate.py runs it. DO NOT EDIT.
from __future__ import annotations

from datetime import date as date_aliased
from datetime import datetime
from typing import Any, Literal, ClassVar

from ._record import Record


class AcceptedResponse(Record):
    __slots__ = ()
    status: Literal["running", "success", "failed", "timeout", "oom", "blocked", "cancelled"]
    """
    running, unless the request repeats an earlier one whose execution has ended.
    """
    trace_id: str
    """
    Names the execution, for GET /v1/executions/{trace_id}.
    """


class AgentHandoff(Record):
    __slots__ = ()
    agent_id: str
    """
    Id or slug of an agent of the tenant.
    """
    agent_version: int | None
    """
    The version that is kept: the current one if left out.
    """
    description: str | None
    """
    What it is good at; the agent's description if left out.
    """
    name: str | None
    """
    What the model knows it by, and what its tool is called after; the agent's name if left out.
    """
    trigger: str | None
    """
    When to hand on.
    """


class AgentModel(Record):
    __slots__ = ()
    name: str
    """
    GET /v1/models lists what there is.
    """
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None
    max_tokens: int | None
    """
    Of one answer.
    """
    stop: list[str] | None
    temperature: float | None
    top_p: float | None


class AgentMultiagent(Record):
    __slots__ = ()
    context_sharing: Literal["full", "summary"] | None
    """
    What the other agent is told of the conversation: all of it, or a summary by the model. summary if left out; in a swarm full, and no other.
    """
    max_delegations: int | None
    """
    Hand-offs of a turn, with those of the agents that it handed on to; 10 if left out.
    """
    mode: Literal["orchestrator", "swarm"] | None
    """
    orchestrator, if left out: the other agent works in a thread of its own, and its answer comes back. swarm: the conversation moves to the other agent.
    """
    parallel: bool | None
    """
    Of orchestrator: up to 8 of them work side by side. false if left out.
    """
    sandbox: Literal["shared", "own"] | None
    """
    Of orchestrator: whether the tool sandbox of the other agent is that of this one, or one of its own that ends with its work. shared if left out.
    """
    timeout_per_handoff_ms: int | None
    """
    Of orchestrator: 60000 if left out.
    """


class AgentServer(Record):
    __slots__ = ()
    name: str
    allowed_tools: list[str] | None
    """
    Left out, all of them; empty, none.
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
    env: dict[str, str] | None
    """
    Of stdio: variables of the program. Stored encrypted and never shown. Left out in a change, they stay while name and command do.
    """
    headers: dict[str, str] | None
    """
    Stored encrypted and never shown. Left out in a change, they stay while name and url do.
    """
    type: Literal["url", "stdio"] | None
    """
    url: a server at url; stdio: a program in the session's sandbox default. Left out, what url or command says.
    """
    url: str | None
    """
    It is shown as it is given: keys belong in headers.
    """


class AgentSkill(Record):
    __slots__ = ()
    name: str
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
    __slots__ = ()
    type: Literal["mcp", "custom", "sandbox", "sandboxes", "web_search", "fetch_url"]
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
    __slots__ = ()
    description: str
    input_schema: Any
    name: str


class AuditMark(Record):
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
    __slots__ = ()
    detail: str
    kind: Literal["changed", "missing", "chain", "order", "known", "unsealed", "backdated", "unprotected", "tenant"]
    seal: int
    row_id: int | None


class AuditReport(Record):
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
    problems: list[AuditProblem]
    """
    At most 1,000.
    """
    rows: int
    """
    Rows that are there and match their seals.
    """
    seals: int


class AuditRow(Record):
    __slots__ = ()
    agent_id: str
    created_at: datetime
    duration_ms: int
    environment_id: str
    executed_code_hash: str
    """
    SHA-256 of the code, in hexadecimal.
    """
    exit_code: int
    exit_status: Literal["ok", "error", "timeout", "oom", "cap_exceeded", "provisioning", "cancelled"]
    failure_reason: str
    id: int
    key_id: str
    language: str
    metadata: dict[str, str]
    mounts: list[str]
    """
    What it saw of which connection: slug/path, then :ro or :rw.
    """
    outbound_hosts: list[str]
    peak_memory_bytes: int
    retention_days: int
    session_id: str
    """
    The turn that it belonged to.
    """
    source: str
    """
    What was called: execute, execute_code, a tool, or what was done with a named sandbox.
    """
    stderr_bytes: int
    stderr_truncated: bool
    stdout_bytes: int
    """
    Before redaction and truncation.
    """
    stdout_truncated: bool
    tenant_id: str
    trace_id: str


class AuditTrail(Record):
    __slots__ = ()
    tenant: str | None
    """
    Its name; null if no tenant with this id is on record.
    """
    tenant_id: str


class BrowseOutput(Record):
    __slots__ = ()
    url: str


class CapOverrides(Record):
    __slots__ = ()
    agent_hourly: int | None
    """
    Calls of one agent a UTC hour; likewise.
    """
    tenant_daily: int | None
    """
    Calls a UTC day; 0 stops every call, null is the server's.
    """


class Caps(Record):
    __slots__ = ()
    agent_hourly: int
    """
    Calls of an agent a UTC hour; likewise.
    """
    tenant_daily: int
    """
    Calls of a tenant a UTC day; 0 stops every call.
    """


class CodeContext(Record):
    __slots__ = ()
    context_id: str
    created_at: datetime
    exit_code: int | None
    """
    Of an interpreter that has ended.
    """
    language: Literal["python", "node", "bash"]
    status: Literal["idle", "running", "ended"]
    """
    One that has ended has to be restarted.
    """
    working_dir: str


class CodeContexts(Record):
    __slots__ = ()
    data: list[CodeContext]


class CodeError(Record):
    __slots__ = ()
    name: str
    traceback: list[str]
    value: str


class CodeOutput(Record):
    __slots__ = ()
    dimension: str | None
    """
    With SandboxCapExceeded: which cap, such as tenant_daily or agent_hourly.
    """
    duration_ms: int
    error: Literal["SandboxProvisioning", "SandboxCapExceeded", "SandboxTimeout", "SandboxOutOfMemory", "SandboxCancelled", "SandboxFailed"] | None
    """
    null when the program ended by itself. After SandboxProvisioning and SandboxCapExceeded no code was run.
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
    ok: bool
    """
    True if the program ended with exit code 0.
    """
    resets_at: datetime | None
    """
    With SandboxCapExceeded: when it starts anew, if it does.
    """
    stderr: str
    """
    The first 32 KB.
    """
    stderr_truncated: bool
    stdout: str
    """
    The first 256 KB.
    """
    stdout_truncated: bool
    trace_id: str
    """
    Names the execution, if there was one, and its audit row.
    """


class CodeValue(Record):
    __slots__ = ()
    data: dict[str, Any]
    """
    By media type: text as it is, binary forms in base64, JSON as JSON.
    """
    metadata: Any
    """
    An object: what was left away or cut, and what the program says of the forms.
    """
    result: bool
    """
    It is the value of the last expression; the others were displayed.
    """


class Connection(Record):
    __slots__ = ()
    created_at: datetime
    id: str
    """
    con_ and 16 hexadecimal digits.
    """
    kind: Literal["s3", "gcs", "azure", "volume"]
    prefix: str
    """
    All that anything sees of it; empty for the whole.
    """
    read_only: bool
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
    URL of the service, of s3 and azure; the provider's own if left out.
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
    __slots__ = ()
    bytes: int
    container_id: str
    created_at: int
    """
    When it was last written: seconds since 1970.
    """
    id: str
    object: Literal["container.file"]
    path: str
    """
    Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    source: Literal["user", "assistant"]
    """
    user for a file with the permissions of an upload, 0664; assistant for others.
    """


class ContainerFileList(Record):
    __slots__ = ()
    data: list[ContainerFile]
    first_id: str | None
    has_more: bool
    last_id: str | None
    object: Literal["list"]


class ContainerNetworkPolicy(Record):
    __slots__ = ()
    type: Literal["disabled", "allowlist"]
    allowed_domains: list[str] | None


class ContextTool(Record):
    __slots__ = ()
    answered_by_client: bool
    """
    Its calls wait for a tool_result.
    """
    description: str
    input_schema: Any
    name: str
    needs_approval: bool
    """
    Its calls wait for a tool_confirmation.
    """


class DeletedContainer(Record):
    __slots__ = ()
    deleted: bool
    id: str
    object: Literal["container.deleted"]


class DeletedContainerFile(Record):
    __slots__ = ()
    deleted: bool
    id: str
    object: Literal["container.file.deleted"]


class DeletedCredential(Record):
    __slots__ = ()
    id: str
    type: Literal["vault_credential_deleted"]


class DeletedFile(Record):
    __slots__ = ()
    id: str
    type: Literal["file_deleted"]


class DeletedResponse(Record):
    __slots__ = ()
    deleted: bool
    id: str
    object: Literal["response.deleted"]


class DeletedSkill(Record):
    __slots__ = ()
    id: str
    type: Literal["skill_deleted"]


class DeletedSkillVersion(Record):
    __slots__ = ()
    id: str
    type: Literal["skill_version_deleted"]


class DeletedVault(Record):
    __slots__ = ()
    id: str
    type: Literal["vault_deleted"]


class EndpointAuth(Record):
    __slots__ = ()
    type: Literal["none", "client_secret_basic", "client_secret_post"]


class ErrorResponse(Record):
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
    __slots__ = ()
    agent_id: str
    agent_version: int
    name: str
    thread_id: str | None


class ExpiresAfter(Record):
    __slots__ = ()
    anchor: Literal["last_active_at"]
    minutes: int


class FetchedPage(Record):
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
    When it was changed, likewise.
    """
    media_type: str
    """
    Such as text/html.
    """
    text: str
    title: str
    truncated: bool
    """
    It goes on beyond text.
    """
    url: str
    """
    As it was given.
    """


class FileEntry(Record):
    __slots__ = ()
    is_directory: bool
    modified: datetime | None
    """
    null where that is not kept, as of a bucket's folders.
    """
    name: str
    path: str
    """
    From the home, or the connection's root.
    """
    size: int
    """
    Bytes; 0 of a folder.
    """


class FileHeader(Record):
    __slots__ = ()
    name: str
    value: str


class FileScope(Record):
    __slots__ = ()
    id: str
    type: Literal["session"]


class FileURL(Record):
    __slots__ = ()
    expires_at: datetime
    headers: list[FileHeader]
    """
    To be sent with the request; none so far.
    """
    method: Literal["GET", "PUT"]
    url: str
    """
    Absolute, with the host that the request was sent to.
    """


class FilesListResponse(Record):
    __slots__ = ()
    files: list[FileEntry]


class FilesystemPermissions(Record):
    __slots__ = ()
    blocked_paths: list[str]
    read_only_paths: list[str]
    writable_paths: list[str]
    """
    Where programs may write as far as their user may; / is everywhere.
    """


class GlobOutput(Record):
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
    __slots__ = ()
    connection: str
    """
    The connection's id.
    """
    created_at: datetime
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
    What is mounted, from the connection's root; empty for all that the connection's prefix leaves.
    """
    read_only: bool


class Key(Record):
    __slots__ = ()
    created_at: datetime
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
    revoked_at: datetime | None
    scopes: list[str]
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
    Where asynchronous executions are told of; null for nowhere.
    """
    key: str | None
    """
    The key itself: only in the answer that made it.
    """


class Limits(Record):
    __slots__ = ()
    cpu: float
    """
    Cores.
    """
    inodes: int
    memory: int
    open_files: int
    processes: int
    root_size: int
    shm_size: int
    tmp_size: int


class ListModel(Record):
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
    owned_by: str
    """
    The part of the name before its first slash, or the wire protocol of the provider.
    """


class ListedSandbox(Record):
    __slots__ = ()
    image: str
    name: str
    status: Literal["running", "sleeping"]


class MCPAnnotations(Record):
    __slots__ = ()
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool
    readOnlyHint: bool


class MCPErrorObject(Record):
    __slots__ = ()
    code: int
    """
    As JSON-RPC has it; -32000 for what concerns the key, a limit or the server's state, -32001 for a session that there is not.
    """
    message: str
    """
    A sentence for people.
    """
    data: ErrorResponse | None
    """
    What other paths answer with.
    """


class MCPTool(Record):
    __slots__ = ()
    annotations: MCPAnnotations
    description: str
    inputSchema: Any
    name: str
    outputSchema: Any
    title: str


class ModelCost(Record):
    __slots__ = ()
    cache_creation_cost: float
    cache_read_cost: float
    currency: Literal["USD"]
    input_cost: float
    output_cost: float
    total_cost: float


class ModelError(Record):
    __slots__ = ()
    failure: Literal["transient", "rate_limited", "context_too_long", "rejected", "unauthorized", "broken"]
    """
    transient and rate_limited may be gone later.
    """
    message: str
    retry_after_ms: int | None
    """
    What the provider asks to wait.
    """
    status: int | None
    """
    Of the provider's answer; left out if there was none.
    """


class ModelKey(Record):
    __slots__ = ()
    base_url: str
    """
    The provider's API that the key was given for; it is sent to no other.
    """
    created_at: datetime
    in_use: bool
    """
    false if the model is at another base URL by now, where requests are refused until the key is given again or removed, or if the tenant may not use the model any more.
    """
    model: str
    """
    The model's name; its id if there is no such model any more.
    """


class ModelList(Record):
    __slots__ = ()
    data: list[ListModel]
    object: Literal["list"]


class ModelPrices(Record):
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


class ModelUsage(Record):
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
    __slots__ = ()
    path: str
    type: Literal["file", "git_repository", "volume"]
    file_id: str | None
    ref: str | None
    size: int | None
    """
    Of file with content, in bytes.
    """
    token: str | None
    url: str | None


class NetworkPermissions(Record):
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
    enabled: bool
    unrestricted: bool
    """
    Addresses may be connected to without a name having been looked up.
    """


class OpenAIFunction(Record):
    __slots__ = ()
    description: str
    name: str
    parameters: Any
    strict: bool | None
    """
    The model keeps to parameters.
    """


class OpenAIResponsesTool(Record):
    __slots__ = ()
    description: str
    name: str
    parameters: Any
    strict: bool
    """
    The model keeps to parameters.
    """
    type: Literal["function"]


class OpenAITool(Record):
    __slots__ = ()
    function: OpenAIFunction
    type: Literal["function"]


class Orphans(Record):
    __slots__ = ()
    data: list[str]
    """
    Their ids.
    """


class OutcomeCheck(Record):
    __slots__ = ()
    command: str
    """
    Run by bash; the check passes with the exit code 0.
    """
    timeout_ms: int | None
    """
    As long as code runs by default if left out, at most as long as the plan allows.
    """


class OutcomeEvaluation(Record):
    __slots__ = ()
    explanation: str | None
    """
    Why: what the grader says, or what the check wrote.
    """
    iteration: int
    """
    From 0.
    """
    outcome_id: str
    result: Literal["satisfied", "needs_revision", "max_iterations_reached", "failed", "interrupted"] | None
    """
    null while it is under way.
    """
    start_id: str | None
    """
    The id of the event outcome_evaluation_start; left out where the outcome ended before an evaluation.
    """


class OutputFile(Record):
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
    __slots__ = ()
    log: list[str]
    """
    The last lines that the installers wrote; of a build that failed the last says why.
    """
    state: Literal["building", "ready", "failed"]
    """
    building: sandboxes wait for it, and are refused with 503 if it takes long. failed: they are refused with 409.
    """
    updated_at: datetime | None
    """
    null before it has begun.
    """


class Packages(Record):
    __slots__ = ()
    apt: list[str]
    npm: list[str]
    pip: list[str]


class PageAuditRow(Record):
    __slots__ = ()
    data: list[AuditRow]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageAuditTrail(Record):
    __slots__ = ()
    data: list[AuditTrail]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageConnection(Record):
    __slots__ = ()
    data: list[Connection]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageGrant(Record):
    __slots__ = ()
    data: list[Grant]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageKey(Record):
    __slots__ = ()
    data: list[Key]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageModelKey(Record):
    __slots__ = ()
    data: list[ModelKey]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class Plan(Record):
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
    Requests a second of each key; 0 for no bound.
    """
    max_key_response_rate: int
    """
    Responses a minute of each key, for each model; 0 for no bound.
    """
    max_key_token_rate: int
    """
    Tokens of responses a minute of each key, for each model; 0 for no bound.
    """
    max_key_upload_rate: int
    """
    Bytes of request bodies a second of each key; 0 for no bound.
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
    Requests a second of all keys of a tenant together, on average over 10 s; 0 for no bound.
    """
    max_response_rate: int
    """
    Responses a minute of all keys of a tenant together, for each model; 0 for no bound.
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
    Bytes of memory of named sandboxes together, those asleep on disk left out; 0 for no bound.
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
    Tokens of responses a minute of all keys of a tenant together, for each model; 0 for no bound.
    """
    max_upload_rate: int
    """
    Bytes of request bodies a second of all keys of a tenant together; 0 for no bound.
    """
    name: str
    streaming: bool


class PlanStep(Record):
    __slots__ = ()
    status: Literal["pending", "in_progress", "completed", "cancelled"]
    step: str


class PolicyEvent(Record):
    __slots__ = ()
    actor: str
    """
    Id of the key that made it.
    """
    created_at: datetime
    field: str
    """
    Such as sandbox_enabled, or template/support.
    """
    id: int
    new: str
    old: str


class Preview(Record):
    __slots__ = ()
    created_at: datetime
    port: int
    url: str
    """
    Any client that has the URL reaches the port. It stays the same until the preview is closed.
    """


class PreviewList(Record):
    __slots__ = ()
    data: list[Preview]


class ProcessEvent(Record):
    __slots__ = ()
    cursor: int
    """
    Give it as after to go on behind this event.
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
    __slots__ = ()
    allow_exec: bool
    blocked_commands: list[str]
    max_processes: int
    """
    Processes, not threads, at the same time; 0 for no bound but limits.processes.
    """
    root: bool
    """
    Programs run as uid 0 of the sandbox, with the capabilities that a package manager needs.
    """


class ProcessWritten(Record):
    __slots__ = ()
    bytes: int


class ReadFileOutput(Record):
    __slots__ = ()
    content: str
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
    No limit was given, and the file goes on after content.
    """


class Redelivery(Record):
    __slots__ = ()
    trace_id: str
    webhook_delivery_status: Literal["pending"]


class Resources(Record):
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
    __slots__ = ()
    type: Literal["url"]
    url: str


class ResponseAnnotation(Record):
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
    type: Literal["url_citation"]
    url: str


class ResponseCost(Record):
    __slots__ = ()
    cache_creation_cost: float
    cache_read_cost: float
    currency: Literal["USD"]
    input_cost: float
    output_cost: float
    tool_calls_cost: float
    """
    Of tool calls and of the sandbox's windows of 20 minutes.
    """
    total_cost: float


class ResponseError(Record):
    __slots__ = ()
    code: str
    message: str
    type: str


class ResponseFile(Record):
    __slots__ = ()
    bytes: int
    created_at: int
    """
    Seconds since 1970.
    """
    filename: str
    id: str
    object: Literal["file"]


class ResponseFiles(Record):
    __slots__ = ()
    data: list[ResponseFile]
    object: Literal["list"]


class ResponseIncomplete(Record):
    __slots__ = ()
    message: str
    reason: str


class ResponseInputDetails(Record):
    __slots__ = ()
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cached_tokens: int


class ResponseInvoked(Record):
    __slots__ = ()
    invocation: int


class ResponseOutputDetails(Record):
    __slots__ = ()
    reasoning_tokens: int


class ResponsePage(Record):
    __slots__ = ()
    snippet: str
    title: str
    url: str
    error: str | None
    """
    Why there is no page.
    """


class ResponsePart(Record):
    __slots__ = ()
    type: str
    annotations: list[ResponseAnnotation] | None
    detail: str | None
    file_url: str | None
    filename: str | None
    image_url: str | None
    logprobs: list[Any] | None
    refusal: str | None
    text: str | None


class ResponseReasoning(Record):
    __slots__ = ()
    effort: str | None
    summary: str | None


class ResponseRefusalDetail(Record):
    __slots__ = ()
    code: str
    message: str
    param: str | None
    type: str


class ResponseText(Record):
    __slots__ = ()
    format: Any
    verbosity: str


class ResponseToolOfOther(Record):
    __slots__ = ()
    description: str | None
    input_schema: Any
    name: str
    annotations: Any | None
    """
    What the server says of the tool, such as readOnlyHint. It may not be true.
    """


class ResponseUsage(Record):
    __slots__ = ()
    cost: ResponseCost
    input_tokens: int
    input_tokens_details: ResponseInputDetails
    output_tokens: int
    output_tokens_details: ResponseOutputDetails
    total_tokens: int
    sandbox_windows: int | None
    """
    Windows of 20 minutes of the sandbox that began with this response.
    """
    tool_calls_details: dict[str, ResponseInvoked] | None


class Review(Record):
    __slots__ = ()
    feedback: str
    iteration: int
    """
    Of the turn, from 1.
    """
    passed: bool
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
    __slots__ = ()
    created_at: datetime
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
    What it has mounted below /data of which connection: slug/path, then :ro or :rw.
    """
    name: str
    network: NetworkPermissions
    sandbox_id: str
    """
    sb- and 16 hexadecimal digits.
    """
    session: str
    sleep_after_ms: int | None
    """
    Without use; null for never.
    """
    status: Literal["running", "sleeping", "lost", "destroyed"]
    unused_until: datetime | None
    """
    When it is destroyed unless it is used before, because it sleeps or is lost; null for never.
    """
    used_at: datetime
    detail: str | None
    """
    More of the status: why it is lost, why it cannot sleep.
    """
    image_alias: str | None
    """
    What that image was asked for as, such as node:22; left out for the environment's image.
    """
    kept: Literal["frozen", "disk", "stored"] | None
    """
    Of one that sleeps: where its memory is.
    """


class SandboxChange(Record):
    __slots__ = ()
    type: Literal["created", "modified", "removed", "lost", "keepalive"]
    """
    lost: events are missing, look anew.
    """
    is_directory: bool | None
    path: str | None
    path_base64: str | None
    """
    Of a path that is not UTF-8.
    """


class SandboxCreateOutput(Record):
    __slots__ = ()
    created: bool
    """
    False when there was one of that name, which is as it was.
    """
    sandbox: str


class SandboxFile(Record):
    __slots__ = ()
    gid: int
    kind: Literal["file", "directory", "symlink", "other"]
    mode: str
    """
    Permissions, octal, such as 0644.
    """
    modified: datetime
    name: str
    path: str
    """
    Bytes that are not UTF-8 are replaced by U+FFFD.
    """
    size: int
    uid: int
    path_base64: str | None
    """
    Of a path that is not UTF-8.
    """
    target: str | None
    """
    Of a symlink.
    """


class SandboxFiles(Record):
    __slots__ = ()
    data: list[SandboxFile]
    truncated: bool
    """
    There are more.
    """


class SandboxList(Record):
    __slots__ = ()
    data: list[Sandbox]


class SandboxListOutput(Record):
    __slots__ = ()
    sandboxes: list[ListedSandbox]


class SandboxMetrics(Record):
    __slots__ = ()
    cpu_seconds: float
    disk_bytes: int
    """
    Of /home/user, /tmp and /var/tmp.
    """
    memory_bytes: int
    oom_kills: int
    """
    Programs that were ended because memory ran out.
    """
    peak_memory_bytes: int


class SandboxPort(Record):
    __slots__ = ()
    address: str
    """
    0.0.0.0 and :: are every address.
    """
    port: int


class SandboxPorts(Record):
    __slots__ = ()
    data: list[SandboxPort]


class SandboxProcess(Record):
    __slots__ = ()
    argv: list[str]
    ended_at: datetime | None
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
    started_at: datetime
    state: Literal["running", "exited"]
    stderr_bytes: int
    stdin: bool
    """
    Whether it can be written to.
    """
    stdout_bytes: int
    terminal: bool
    working_dir: str
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


class SandboxProcesses(Record):
    __slots__ = ()
    data: list[SandboxProcess]


class SandboxUnpacked(Record):
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
    __slots__ = ()
    size: int


class SearchResult(Record):
    __slots__ = ()
    date: str | None
    """
    When it was published, as in 2026-03-01; null where that is not known.
    """
    last_updated: str | None
    """
    When it was changed, likewise.
    """
    snippet: str
    """
    What the provider has of the page's text.
    """
    title: str
    url: str


class SessionBudget(Record):
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
    __slots__ = ()
    item_id: str
    """
    That of the event which the pieces make.
    """
    of: Literal["message", "thinking", "tool_use"]
    text: str
    turn_id: str
    type: Literal["delta"]


class SessionFile(Record):
    __slots__ = ()
    bytes: int
    created_at: datetime
    filename: str
    id: str
    thread_id: str | None
    """
    In a list: the thread in which it was shared, if it was in one.
    """


class SessionOutcome(Record):
    __slots__ = ()
    check: OutcomeCheck | None
    description: str
    id: str
    """
    outc_ and 32 hexadecimal digits.
    """
    max_iterations: int
    model: str | None
    """
    That grades; null for that of the agent.
    """
    rubric: str | None


class SessionPlan(Record):
    __slots__ = ()
    steps: list[PlanStep]
    why_open: str | None
    """
    Why steps stay open at the end of the turn.
    """


class SessionSpeaker(Record):
    __slots__ = ()
    agent_id: str
    agent_version: int


class ShellOutput(Record):
    __slots__ = ()
    exit_code: int
    """
    128+n when signal n ended the command; 124 when timeout_ms was over.
    """
    stderr: str
    """
    Likewise.
    """
    stdout: str
    """
    The first 262,144 bytes. What is not UTF-8 becomes U+FFFD.
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
    __slots__ = ()
    expires_at: datetime
    method: Literal["GET", "PUT"]
    url: str
    """
    Relative to the server: put the address of the server before it.
    """


class SkillFile(Record):
    __slots__ = ()
    executable: bool
    path: str
    """
    In the skill's folder.
    """
    size: int
    """
    Bytes.
    """


class SkillSource(Record):
    __slots__ = ()
    type: Literal["custom"]


class SkillVersion(Record):
    __slots__ = ()
    allowed_tools: list[str]
    """
    As SKILL.md has them. They grant nothing: the agent's policy decides.
    """
    compatibility: str | None
    created_at: datetime
    description: str
    files: list[SkillFile]
    id: str
    """
    skillver_ and 32 hexadecimal digits.
    """
    license: str | None
    metadata: dict[str, str]
    """
    As SKILL.md has them.
    """
    name: str
    skill_id: str
    type: Literal["skill_version"]
    version: int
    """
    Its number, from 1.
    """


class Snapshot(Record):
    __slots__ = ()
    created_at: datetime
    disk_bytes: int
    """
    What its files take on disk.
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
    Of that sandbox.
    """
    sandbox_id: str
    """
    The sandbox that it is of, which may be gone.
    """
    session: str
    """
    Likewise.
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
    __slots__ = ()
    data: list[Snapshot]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class TemplateSandbox(Record):
    __slots__ = ()
    environment: Literal["default-public", "internal-only"]
    """
    What its sandboxes may reach. internal-only: no network. default-public: the network of the key's environment, or all public addresses if that has none; where the tenant's policy allows no network, every call fails as SandboxProvisioning.
    """


class Tenant(Record):
    __slots__ = ()
    audit_days: int
    """
    Days that audit rows are kept.
    """
    caps: CapOverrides
    """
    Caps of execute_code; null for the server's.
    """
    created_at: datetime
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
    network_enabled: bool
    """
    Whether its environments may have a network. Those that have one lose it while this is false.
    """
    plan: str
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


class TerminalMessage(Record):
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
    On cursor: the client has everything up to here. Give it as after to go on behind it.
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
    __slots__ = ()
    bytes: int
    """
    Of its files.
    """
    created_at: datetime
    expires_at: datetime | None
    """
    When it is deleted; null for when the server's rule for idle threads says so.
    """
    files: int
    """
    How many files, folders and links it has.
    """
    thread_id: str
    updated_at: datetime
    """
    When it was saved last.
    """


class ThreadPage(Record):
    __slots__ = ()
    data: list[Thread]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class TimeoutResponse(Record):
    __slots__ = ()
    code: Literal["gateway_timeout"]
    """
    The error's code.
    """
    error: str | None
    """
    What ended the run when it was not the program itself, such as a limit; null otherwise. A sentence; a client whose X-Client-Id begins with baponi- is given timeout, memory_limit_exceeded or security_policy_violation where it is one of these.
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
    Standard error, likewise.
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
    The sentence, where error has the code. Beyond the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; left out without outputs in the request. Beyond the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Beyond the original contract.
    """
    hint: str | None
    """
    What can be done about a failure, such as a command that opens the network. Left out when nothing is known. Beyond the original contract.
    """
    start: Literal["warm", "cold"] | None
    """
    warm: the sandbox was ready before the request came; cold: it was made for the request. Left out when nothing was run, or when the start was not seen. Beyond the original contract.
    """


class TokenSandbox(Record):
    __slots__ = ()
    name: str
    sandbox_id: str
    session: str


class ToolPolicy(Record):
    __slots__ = ()
    allow_list: list[str] | None
    """
    Left out, all tools may be called; empty, none.
    """
    confirm_within: int | None
    """
    Seconds that calls of a session wait for the client, and then expire; confirmation_time of the server if left out.
    """
    deny_list: list[str] | None
    """
    Wins over allow_list.
    """
    require_confirmation: list[str] | None


class TransferOutput(Record):
    __slots__ = ()
    bytes: int
    """
    Of the files' content.
    """
    ok: bool


class TurnError(Record):
    __slots__ = ()
    code: str
    message: str


class TurnUsage(Record):
    __slots__ = ()
    cost_usd: float
    """
    Of models, tools and the sandbox.
    """
    input_tokens: int
    output_tokens: int


class UploadedFile(Record):
    __slots__ = ()
    created_at: datetime
    downloadable: bool
    """
    Always true.
    """
    expires_at: datetime | None
    """
    null for one that stays until it is deleted.
    """
    filename: str
    id: str
    """
    file_ and hexadecimal digits: 32 of one that was uploaded, more of one that an agent has shared.
    """
    mime_type: str
    scope: FileScope | None
    """
    Where an agent has shared it; null for one that was uploaded.
    """
    size_bytes: int
    type: Literal["file"]


class UsageAmounts(Record):
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
    cost: float
    """
    US dollars.
    """
    cpu_seconds: float
    """
    Seconds times the cores that the sandbox had.
    """
    credits: float
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
    cost: float
    """
    US dollars.
    """
    cpu_seconds: float
    """
    Seconds times the cores that the sandbox had.
    """
    credits: float
    date: date_aliased
    """
    In UTC.
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


class UsageMonth(Record):
    __slots__ = ()
    budget: float | None
    """
    In credits; null for none.
    """
    cost: float
    """
    What responses have cost so far, in US dollars.
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


class UsageOutputs(Record):
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
    __slots__ = ()
    folder: str | None
    """
    Where it is in the sandbox; null for one of the server's own.
    """
    name: str
    version: str | None
    """
    Id of the version; null for one of the server's own.
    """


class Vault(Record):
    __slots__ = ()
    archived_at: datetime | None
    created_at: datetime
    display_name: str
    id: str
    """
    vlt_ and 32 hexadecimal digits.
    """
    metadata: dict[str, str]
    type: Literal["vault"]
    updated_at: datetime


class WaitingCall(Record):
    __slots__ = ()
    name: str
    needs: Literal["tool_confirmation", "tool_result"]
    """
    The type of the event that answers it.
    """
    tool_use_id: str
    """
    The id of the event tool_use.
    """
    arguments: str | None
    thread_id: str | None
    """
    The thread that made the call, if it is of work that was handed on.
    """


class Warning(Record):
    __slots__ = ()
    message: str
    path: str


class WriteFileOutput(Record):
    __slots__ = ()
    ok: bool
    size: int
    """
    Bytes of the file as it is now.
    """


class Agent(Record):
    __slots__ = ()
    archived_at: datetime | None
    created_at: datetime
    description: str | None
    handoffs: list[AgentHandoff]
    """
    With the versions that are kept.
    """
    id: str
    """
    agt_ and 32 hexadecimal digits.
    """
    mcp_servers: list[AgentServer]
    """
    Without their headers and variables.
    """
    metadata: dict[str, Any]
    model: AgentModel
    multiagent: AgentMultiagent | None
    """
    null where it was not given.
    """
    name: str
    skills: list[AgentSkill]
    slug: str | None
    system: str | None
    tool_policy: ToolPolicy
    tools: list[AgentTool]
    type: Literal["agent"]
    updated_at: datetime
    """
    When this version was made.
    """
    version: int
    visibility: str
    warnings: list[Warning]
    """
    What is stored and has no effect as it is.
    """


class CodeResult(Record):
    __slots__ = ()
    duration_ms: int
    error: CodeError | None
    exit_code: int | None
    """
    Of Bash, or of an interpreter that ended.
    """
    status: Literal["ok", "error", "interrupted", "timeout", "ended"]
    """
    ended: the interpreter did, so that the context has to be restarted.
    """
    stderr: str
    stderr_truncated: bool
    stdout: str
    stdout_truncated: bool
    values: list[CodeValue]
    """
    What was displayed, in order, and the value of the last expression.
    """
    values_truncated: bool


class Container(Record):
    __slots__ = ()
    created_at: int
    """
    Seconds since 1970.
    """
    expires_after: ExpiresAfter
    id: str
    last_active_at: int
    memory_limit: str | None
    """
    null where it is none of OpenAI's sizes.
    """
    name: str
    network_policy: ContainerNetworkPolicy | None
    """
    null where every host may be reached.
    """
    object: Literal["container"]
    status: Literal["running", "expired"]
    """
    running also while it sleeps: a use wakes it.
    """


class ContainerList(Record):
    __slots__ = ()
    data: list[Container]
    first_id: str | None
    has_more: bool
    last_id: str | None
    object: Literal["list"]


class CredentialRefresh(Record):
    __slots__ = ()
    client_id: str
    resource: str | None
    scope: str | None
    token_endpoint: str
    token_endpoint_auth: EndpointAuth


class ExecuteResponse(Record):
    __slots__ = ()
    error: str | None
    """
    What ended the run when it was not the program itself, such as a limit; null otherwise. A sentence; a client whose X-Client-Id begins with baponi- is given timeout, memory_limit_exceeded or security_policy_violation where it is one of these.
    """
    exit_code: int
    """
    The program's exit code, 128+n when signal n ended it, -1 when none was seen.
    """
    stderr: str
    """
    Standard error, likewise.
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
    The sentence, where error has the code. Beyond the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; left out without outputs in the request. Beyond the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Beyond the original contract.
    """
    hint: str | None
    """
    What can be done about a failure, such as a command that opens the network. Left out when nothing is known. Beyond the original contract.
    """
    start: Literal["warm", "cold"] | None
    """
    warm: the sandbox was ready before the request came; cold: it was made for the request. Left out when nothing was run, or when the start was not seen. Beyond the original contract.
    """


class Execution(Record):
    __slots__ = ()
    completed_at: datetime | None
    created_at: datetime
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
    What ended the run when it was not the program itself, such as a limit; null otherwise. A sentence; a client whose X-Client-Id begins with baponi- is given timeout, memory_limit_exceeded or security_policy_violation where it is one of these.
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
    Standard error, likewise.
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
    The sentence, where error has the code. Beyond the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; left out without outputs in the request. Beyond the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Beyond the original contract.
    """
    hint: str | None
    """
    What can be done about a failure, such as a command that opens the network; not there when nothing is known.
    """


class ExecutionSummary(Record):
    __slots__ = ()
    completed_at: datetime | None
    created_at: datetime
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
    What ended the run when it was not the program itself, such as a limit; null otherwise. A sentence; a client whose X-Client-Id begins with baponi- is given timeout, memory_limit_exceeded or security_policy_violation where it is one of these.
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
    The sentence, where error has the code. Beyond the original contract.
    """
    files: list[OutputFile] | None
    """
    Files that the program gave back; left out without outputs in the request. Beyond the original contract.
    """
    files_truncated: bool | None
    """
    True if there were more or larger files than are kept. Beyond the original contract.
    """
    hint: str | None
    """
    What can be done about a failure, such as a command that opens the network; not there when nothing is known.
    """


class FetchAnswer(Record):
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
    __slots__ = ()
    error: MCPErrorObject
    id: Any
    """
    That of the message; null if it has none or could not be read.
    """
    jsonrpc: Literal["2.0"]


class Model(Record):
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
    What of it can be asked for; anything else is refused before the provider is asked.
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
    What requests give as model.
    """
    plans: list[str]
    """
    Names of the plans whose tenants may, too.
    """
    prices: ModelPrices
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
    Those that may, if not all: their ids, and names where a file has them.
    """
    updated_at: datetime
    upstream: str
    """
    What the provider calls it.
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
    __slots__ = ()
    answer: str
    cost: ModelCost | None
    """
    By the prices of the record; null if the provider did not tell the tokens.
    """
    duration_ms: int
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
    What the provider shows of it.
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
    __slots__ = ()
    data: list[Agent]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageModel(Record):
    __slots__ = ()
    data: list[Model]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PagePlan(Record):
    __slots__ = ()
    data: list[Plan]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PagePolicyEvent(Record):
    __slots__ = ()
    data: list[PolicyEvent]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSessionFile(Record):
    __slots__ = ()
    data: list[SessionFile]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSkillVersion(Record):
    __slots__ = ()
    data: list[SkillVersion]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageTenant(Record):
    __slots__ = ()
    data: list[Tenant]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageUploadedFile(Record):
    __slots__ = ()
    data: list[UploadedFile]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageVault(Record):
    __slots__ = ()
    data: list[Vault]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class Permissions(Record):
    __slots__ = ()
    allow_mcp_servers: bool
    """
    In sessions: MCP servers of the agent are asked also where network does not allow their hosts.
    """
    filesystem: FilesystemPermissions
    network: NetworkPermissions
    process: ProcessPermissions


class ResponseAction(Record):
    __slots__ = ()
    queries: list[str]
    query: str
    type: Literal["search"]
    sources: list[ResponseActionSource] | None


class ResponseItem(Record):
    __slots__ = ()
    type: Literal["message", "reasoning", "function_call", "function_call_output", "sandbox_results", "sandbox_write_file", "sandbox_read_file", "sandbox_edit_file", "sandbox_grep", "sandbox_glob", "sandbox_apply_patch", "share_file", "code_interpreter_call", "search_results", "fetch_url_results", "web_search_call", "mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response"]
    action: ResponseAction | None
    added: list[str] | None
    approval_request_id: str | None
    approve: bool | None
    arguments: str | None
    call_id: str | None
    code: str | None
    container_id: str | None
    content: Any | None
    """
    A list of parts; of sandbox_read_file a text.
    """
    contents: list[ResponsePage] | None
    count: int | None
    deleted: list[str] | None
    encrypted_content: str | None
    error: str | None
    """
    Why the tool failed.
    """
    file_id: str | None
    file_path: str | None
    filename: str | None
    files: list[str] | None
    id: str | None
    language: str | None
    message: str | None
    modified: list[str] | None
    name: str | None
    output: Any | None
    outputs: Any | None
    """
    Of code_interpreter_call: what its code has written (logs) and shown (image, with a data URL as url); null unless include asks for it.
    """
    queries: list[str] | None
    reason: str | None
    results: Any | None
    """
    Of sandbox_results: stdout, stderr, exit_code, duration_ms and status of each run. Of search_results: id, title, url, snippet, date and last_updated of each page.
    """
    role: str | None
    server_label: str | None
    size_bytes: int | None
    start_line: int | None
    status: str | None
    summary: list[ResponsePart] | None
    tools: list[ResponseToolOfOther] | None
    total_lines: int | None
    truncated: bool | None


class ResponseRefusal(Record):
    __slots__ = ()
    error: ResponseRefusalDetail
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


class Session(Record):
    __slots__ = ()
    agent_id: str
    agent_version: int
    archived_at: datetime | None
    budget: SessionBudget | None
    """
    null for none.
    """
    created_at: datetime
    environment_id: str
    events: int
    """
    Number of the last one. Some are for other forms alone.
    """
    id: str
    """
    sess_ and 32 hexadecimal digits.
    """
    metadata: dict[str, Any]
    mounts: list[Mount]
    queued_turns: int
    """
    Turns that wait for those before them.
    """
    speaker: SessionSpeaker
    """
    The agent that answers messages: another one than the session's once a swarm has handed the conversation on.
    """
    status: Literal["idle", "running", "requires_action", "archived"]
    title: str | None
    type: Literal["session"]
    updated_at: datetime
    usage: TurnUsage
    """
    Of all turns that have ended.
    """
    vault_ids: list[str]
    webhook_url: str | None


class SessionContext(Record):
    __slots__ = ()
    instructions: str
    """
    Those of the agent, and after them those of its skills.
    """
    model: str
    skills: list[UsedSkill]
    tools: list[ContextTool]
    type: Literal["session_context"]


class SessionStop(Record):
    __slots__ = ()
    requires_action: list[WaitingCall]
    """
    Calls that wait for the client.
    """
    type: Literal["end_turn", "requires_action", "interrupted", "expired", "limit", "error"]
    expires_at: datetime | None
    """
    Until when the calls wait.
    """


class SessionThread(Record):
    __slots__ = ()
    agent_id: str
    agent_version: int
    archived_at: datetime | None
    """
    When a client of the other form put it aside.
    """
    created_at: datetime
    ended_at: datetime | None
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
    status: Literal["running", "requires_action", "idle", "terminated"]
    """
    requires_action: calls of it, or of a thread below it, wait for the client. idle: it came to its end. terminated: it was ended, or has failed.
    """
    turn_id: str
    type: Literal["session_thread"]
    usage: TurnUsage
    """
    Once it has ended, with that of threads below it.
    """


class SessionTurn(Record):
    __slots__ = ()
    content: str
    """
    What the agent said last.
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
    session_id: str
    status: Literal["queued", "in_progress", "completed", "requires_action", "incomplete", "failed", "cancelled"]
    type: Literal["message"]
    usage: TurnUsage
    evaluation: OutcomeEvaluation | None
    """
    Of the turn's outcome: the last one.
    """


class Skill(Record):
    __slots__ = ()
    archived_at: datetime | None
    created_at: datetime
    description: str
    """
    That of the latest version.
    """
    display_name: str
    id: str
    """
    skill_ and 32 hexadecimal digits.
    """
    latest_version: int
    """
    Its number.
    """
    latest_version_id: str
    name: str
    """
    That of SKILL.md; the folder's name in sandboxes.
    """
    source: SkillSource
    type: Literal["skill"]
    updated_at: datetime
    """
    When the latest version was made.
    """


class Template(Record):
    __slots__ = ()
    name: str
    sandbox: TemplateSandbox | None
    """
    null for a template that has not opted in.
    """


class Token(Record):
    __slots__ = ()
    cost: float
    """
    US dollars that were charged to it.
    """
    created_at: datetime
    executions: int
    """
    That it has begun.
    """
    expires_at: datetime
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
    sandbox: TokenSandbox | None
    """
    null for any.
    """
    scopes: list[str]
    session: str | None
    """
    null for any.
    """
    token: str | None
    """
    The token itself: only in the answer that made it.
    """


class Usage(Record):
    __slots__ = ()
    before: datetime
    days: list[UsageDay]
    month: UsageMonth
    """
    The current calendar month in UTC.
    """
    outputs: UsageOutputs
    """
    What ended executions and responses keep now.
    """
    since: datetime
    totals: UsageAmounts
    """
    Of the days above; calls are those of interfaces alone.
    """


class CancelledResponse(Record):
    __slots__ = ()
    background: bool
    completed_at: int | None
    created_at: int
    """
    Seconds since 1970.
    """
    error: ResponseError | None
    frequency_penalty: float
    id: str
    incomplete_details: ResponseIncomplete | None
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    metadata: dict[str, str]
    model: str
    object: Literal["response"]
    output: list[ResponseItem]
    parallel_tool_calls: bool
    presence_penalty: float
    previous_response_id: str | None
    prompt_cache_key: str | None
    reasoning: ResponseReasoning | None
    response_id: str
    """
    The same as id.
    """
    safety_identifier: str | None
    service_tier: str
    status: Literal["queued", "in_progress", "completed", "requires_action", "incomplete", "failed", "cancelled"]
    store: bool
    temperature: float
    text: ResponseText
    tool_choice: Any
    tools: list[Any]
    top_logprobs: int
    top_p: float
    truncation: Literal["auto", "disabled"]
    usage: ResponseUsage | None


class CodeEvent(Record):
    __slots__ = ()
    type: Literal["output", "value", "result", "keepalive"]
    data: str | None
    error: str | None
    """
    With message, instead of result: why the run is not known to have ended.
    """
    message: str | None
    result: CodeResult | None
    stream: Literal["stdout", "stderr"] | None
    value: CodeValue | None


class CredentialAuth(Record):
    __slots__ = ()
    type: Literal["static_bearer", "mcp_oauth", "host_secret"]
    expires_at: datetime | None
    hosts: list[str] | None
    mcp_server_url: str | None
    refresh: CredentialRefresh | None
    secret_name: str | None


class Environment(Record):
    __slots__ = ()
    created_at: datetime
    env_vars: dict[str, str]
    id: str
    """
    env_ and 16 hexadecimal digits.
    """
    image: str
    isolation: Literal["run", "key"]
    """
    What executions share: nothing, or with others of their key a kernel.
    """
    limits: Limits
    name: str
    package_build: PackageBuild | None
    """
    How far packages are installed; null without packages, and in lists.
    """
    packages: Packages
    """
    Packages that are installed in the image.
    """
    permissions: Permissions
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


class EnvironmentConfig(Record):
    __slots__ = ()
    base_template: str | None
    """
    null for an image that the operator chose.
    """
    isolation: Literal["run", "key"]
    """
    What executions share: nothing, or with others of their key a kernel.
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
    resources: Resources
    type: Literal["cloud"]


class Event(Record):
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
    On output: a line with its newline, or a piece of one that is longer than 64 KiB.
    """
    output_truncated: bool | None
    """
    On result: true if output events are missing that had left the reconnect buffer. The result's own output is complete.
    """
    result: ExecuteResponse | None
    """
    On result: what an inline response holds.
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
    __slots__ = ()
    data: list[ExecutionSummary]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class OwnEnvironment(Record):
    __slots__ = ()
    config: EnvironmentConfig
    created_at: datetime
    id: str
    """
    env_ and 16 hexadecimal digits.
    """
    name: str
    package_build: PackageBuild | None
    """
    How far config.packages are installed; null without packages.
    """


class PageEnvironment(Record):
    __slots__ = ()
    data: list[Environment]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageOwnEnvironment(Record):
    __slots__ = ()
    data: list[OwnEnvironment]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSession(Record):
    __slots__ = ()
    data: list[Session]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSessionThread(Record):
    __slots__ = ()
    data: list[SessionThread]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSkill(Record):
    __slots__ = ()
    data: list[Skill]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageTemplate(Record):
    __slots__ = ()
    data: list[Template]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageToken(Record):
    __slots__ = ()
    data: list[Token]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class Response(Record):
    __slots__ = ()
    background: bool
    completed_at: int | None
    created_at: int
    """
    Seconds since 1970.
    """
    error: ResponseError | None
    frequency_penalty: float
    id: str
    incomplete_details: ResponseIncomplete | None
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    metadata: dict[str, str]
    model: str
    object: Literal["response"]
    output: list[ResponseItem]
    parallel_tool_calls: bool
    presence_penalty: float
    previous_response_id: str | None
    prompt_cache_key: str | None
    reasoning: ResponseReasoning | None
    safety_identifier: str | None
    service_tier: str
    status: Literal["queued", "in_progress", "completed", "requires_action", "incomplete", "failed", "cancelled"]
    store: bool
    temperature: float
    text: ResponseText
    tool_choice: Any
    tools: list[Any]
    top_logprobs: int
    top_p: float
    truncation: Literal["auto", "disabled"]
    usage: ResponseUsage | None


class ResponseEvent(Record):
    __slots__ = ()
    sequence_number: int
    type: str
    annotation: ResponseAnnotation | None
    annotation_index: int | None
    arguments: str | None
    code: str | None
    content_index: int | None
    contents: list[ResponsePage] | None
    delta: str | None
    error: ResponseError | None
    item: ResponseItem | None
    item_id: str | None
    logprobs: list[Any] | None
    output_index: int | None
    part: ResponsePart | None
    queries: list[str] | None
    refusal: str | None
    response: Response | None
    results: Any | None
    summary_index: int | None
    text: str | None
    urls: list[str] | None


class ResponseInput(Record):
    __slots__ = ()
    data: list[ResponseItem]
    first_id: str | None
    has_more: bool
    last_id: str | None
    object: Literal["list"]


class SessionEvent(Record):
    __slots__ = ()
    created_at: datetime
    id: str
    """
    sevt_, the session's digits and the number of the event.
    """
    turn_id: str | None
    """
    null for answers after which no turn began.
    """
    type: Literal["message", "thinking", "tool_use", "tool_result", "tool_confirmation", "error", "usage", "status", "file", "plan", "review", "state", "reminder", "user.define_outcome", "outcome_evaluation_start", "outcome_evaluation_ongoing", "outcome_evaluation_end", "thread_created", "thread_message_sent", "thread_message_received", "thread_idle", "thread_terminated", "context_summary", "speaker"]
    approve: bool | None
    """
    Of tool_confirmation.
    """
    arguments: str | None
    """
    Of tool_use: what the model wrote, JSON if it did as it was told.
    """
    content: str | None
    """
    Of message, thinking and tool_result; of reminder, what the model was told; of state, the document; of user.define_outcome, what the model was told; of thread_message_sent and thread_message_received, and of context_summary, the text.
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
    Of file: what the agent has shared.
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
    Of message and thinking: what their deltas have.
    """
    key_id: str | None
    """
    Of tool_confirmation: of the key that gave it; left out where the call has expired.
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
    Of status: that of the session from then on.
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


class Credential(Record):
    __slots__ = ()
    archived_at: datetime | None
    auth: CredentialAuth
    created_at: datetime
    display_name: str | None
    id: str
    """
    vcrd_ and 32 hexadecimal digits.
    """
    metadata: dict[str, str]
    type: Literal["vault_credential"]
    updated_at: datetime
    vault_id: str


class PageCredential(Record):
    __slots__ = ()
    data: list[Credential]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """


class PageSessionEvent(Record):
    __slots__ = ()
    data: list[SessionEvent]
    next_page: str | None
    """
    Give it as page to get the next part; null at the end.
    """
