# Code generated from api/openapi.json by datamodel-code-generator 0.89.0; tools/generate.py runs it. DO NOT EDIT.
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Optional

if TYPE_CHECKING:
    from typing_extensions import NotRequired
else:
    NotRequired = Optional


class AgentCompaction(TypedDict):
    """
    AgentCompaction says when a conversation is summarized.
    """

    at_tokens: NotRequired[int | None]
    """
    Of auto: summarize from this size on, if the model reads more.
    """
    mode: Literal["auto", "off"]
    """
    auto: before a conversation is longer than the model reads, the model summarizes its beginning. off: its beginning is omitted.
    """


class AgentHandoff(TypedDict):
    """
    AgentHandoff is an agent that another one may hand work to.
    """

    agent_id: str
    """
    Id or slug of an agent of the tenant.
    """
    agent_version: NotRequired[int | None]
    """
    The version that is kept: the current one if omitted.
    """
    description: NotRequired[str | None]
    """
    Strengths of the agent; its description if omitted.
    """
    name: NotRequired[str | None]
    """
    Name that the model sees, from which the name of its tool derives; the agent's name if omitted.
    """
    trigger: NotRequired[str | None]
    """
    When to hand on.
    """


class AgentModel(TypedDict):
    """
    AgentModel says which model an agent asks, and how.
    """

    effort: NotRequired[Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None]
    """
    How much the model thinks before it answers.
    """
    max_tokens: NotRequired[int | None]
    """
    Of all answers of a turn together.
    """
    name: str
    """
    GET /v1/models lists what there is.
    """
    stop: NotRequired[list[str]]
    """
    Up to 16 texts before the first of which an answer ends.
    """
    temperature: NotRequired[float | None]
    """
    How freely the model chooses words, 0 to 2.
    """
    top_p: NotRequired[float | None]
    """
    From how much of the likely words the model chooses, 0 to 1.
    """


class AgentMultiagent(TypedDict):
    """
    AgentMultiagent says how an agent hands on.
    """

    context_sharing: NotRequired[Literal["full", "summary"] | None]
    """
    The conversation that the other agent sees: all of it (full), or a summary by the model (summary). summary if omitted; always full in a swarm.
    """
    max_delegations: NotRequired[int | None]
    """
    Hand-offs of a turn, with those of the agents that it handed on to; 10 if omitted.
    """
    mode: NotRequired[Literal["orchestrator", "swarm"] | None]
    """
    orchestrator, if omitted: the other agent works in a thread of its own, and its answer comes back. swarm: the conversation moves to the other agent.
    """
    parallel: NotRequired[bool | None]
    """
    Of orchestrator: up to 8 of them work side by side. false if omitted.
    """
    sandbox: NotRequired[Literal["shared", "own"] | None]
    """
    Of orchestrator: whether the tool sandbox of the other agent is that of this one, or one of its own that ends with its work. shared if omitted.
    """
    timeout_per_handoff_ms: NotRequired[int | None]
    """
    Of orchestrator: 60000 if omitted.
    """


class AgentServer(TypedDict):
    """
    AgentServer is an MCP server that an agent may use.
    """

    allowed_tools: NotRequired[list[str]]
    """
    Omitted, all of them; empty, none.
    """
    args: NotRequired[list[str]]
    """
    Of stdio, shown as they are given.
    """
    command: NotRequired[str | None]
    """
    Of stdio: a program, by its name or path in the sandbox.
    """
    description: NotRequired[str | None]
    """
    Purpose, in words.
    """
    env: NotRequired[dict[str, str]]
    """
    Of stdio: variables of the program. Stored encrypted and never shown. Omitted in a change, they stay while name and command do.
    """
    headers: NotRequired[dict[str, str]]
    """
    Stored encrypted and never shown. Omitted in a change, they stay while name and url do.
    """
    name: str
    """
    Its name.
    """
    type: NotRequired[Literal["url", "stdio"] | None]
    """
    url: a server at url; stdio: a program in the session's sandbox default. Omitted, what url or command says.
    """
    url: NotRequired[str | None]
    """
    It is shown as it is given: keys belong in headers.
    """


class AgentTool(TypedDict):
    """
    AgentTool is a tool of an agent.
    """

    description: NotRequired[str | None]
    """
    Of custom.
    """
    input_schema: NotRequired[Any]
    """
    Of custom: JSON Schema.
    """
    name: NotRequired[str | None]
    """
    Of custom.
    """
    server: NotRequired[str | None]
    """
    Of mcp: the name of one of mcp_servers, or web-search, fetch-url or sandbox for the server's own.
    """
    type: Literal["mcp", "custom", "sandbox", "sandboxes", "web_search", "fetch_url"]
    """
    Type, which decides the other fields.
    """


class AuditMark(TypedDict):
    """
    AuditMark names a seal of a tenant's chain.
    """

    hash: str
    """
    64 hexadecimal digits.
    """
    number: int
    """
    1 for the first.
    """


class BrowseInput(TypedDict):
    """
    BrowseInput is the input of browse.
    """

    port: int
    """
    The TCP port.
    """
    sandbox: NotRequired[str | None]
    """
    The name of the sandbox; default if omitted.
    """


class CapOverrides(TypedDict):
    """
    CapOverrides are a tenant's own caps.
    """

    agent_hourly: int | None
    """
    Calls of one agent per UTC hour; 0 stops every call, null is the server's.
    """
    tenant_daily: int | None
    """
    Calls per UTC day; 0 stops every call, null is the server's.
    """


class CapsChange(TypedDict):
    """
    CapsChange is what PATCH can change of them; omitted fields stay unchanged.
    """

    agent_hourly: NotRequired[int | None]
    """
    Calls of execute_code that one agent may make in an hour; 0 stops every call.
    """
    tenant_daily: NotRequired[int | None]
    """
    Calls of execute_code that a tenant may make in a day; 0 stops every call.
    """


class CodeInput(TypedDict):
    """
    CodeInput is the input of execute_code.
    """

    code: str
    """
    The code to run.
    """
    language: NotRequired[Literal["python", "node", "bash"] | None]
    """
    The language of the code; python if omitted.
    """
    timeout: NotRequired[int | None]
    """
    Most seconds that the code may run; 60 if omitted.
    """


class ContainerAccess(TypedDict):
    """
    ContainerAccess narrows what the environment's network policy allows.
    """

    allowed_domains: NotRequired[list[str]]
    """
    With allowlist: names of hosts, or *.example.com.
    """
    domain_secrets: NotRequired[list[Any]]
    """
    Refused: an environment's bound secrets do this.
    """
    type: Literal["disabled", "allowlist"]
    """
    Type, which decides the other fields.
    """


class ContextManagement(TypedDict):
    """
    ContextManagement is a way to keep a conversation within what the model reads.
    """

    compact_threshold: NotRequired[int | None]
    """
    Summarize from this many tokens on, if the model reads more. If omitted, before the conversation is longer than the model reads.
    """
    type: Literal["compaction"]
    """
    compaction: the model summarizes the beginning of the conversation.
    """


class Credentials(TypedDict):
    """
    Credentials of a bucket. They are stored encrypted and never shown.
    """

    access_key_id: NotRequired[str]
    """
    Of s3.
    """
    account_key: NotRequired[str]
    """
    Of azure.
    """
    secret_access_key: NotRequired[str]
    """
    Of s3.
    """
    service_account: NotRequired[str]
    """
    Of gcs: the JSON of a service account's key file.
    """


class Decision(TypedDict):
    """
    Decision approves or denies a tool call.
    """

    approve: bool
    """
    true approves the call, false denies it.
    """
    reason: NotRequired[str | None]
    """
    Why, at most 4 KiB. The model reads the reason of a denial.
    """


class DownloadRequest(TypedDict):
    """
    DownloadRequest is the body of POST /v1/files/download_url.
    """

    id: str
    """
    A thread_id.
    """
    path: str
    """
    The file, from the home.
    """
    source: Literal["thread", "volume"]
    """
    Kind of the object that id names. Files of a volume have no URLs here: executions that mount it reach them.
    """


class ExecuteCodeRequest(TypedDict):
    """
    ExecuteCodeRequest is the body of POST /v1/tools/execute_code.
    """

    agent: str
    """
    Which agent calls. Its hourly cap counts the call.
    """
    code: str
    """
    Code to execute: 1 byte to 1 MB (1,048,576 bytes of UTF-8).
    """
    language: NotRequired[Literal["python", "node", "bash"] | None]
    """
    Language of the code.
    """
    metadata: NotRequired[dict[str, Any] | None]
    """
    Kept with the execution's record and the audit row, never shown to the program.
    """
    template: str
    """
    The agent's template, which must have opted in to the sandbox.
    """
    timeout: NotRequired[int | None]
    """
    Most seconds the program may run.
    """
    turn: str
    """
    Which of its turns this is. Calls of one turn share a sandbox that is fresh for it.
    """


class ExecuteRequest(TypedDict):
    """
    ExecuteRequest is the body of POST /v1/sandbox/execute. Optional fields may be null, which is the same as leaving them out.
    """

    args: NotRequired[list[str] | None]
    """
    Arguments of the program: sys.argv[1:], process.argv.slice(2), $1 and so on. At most 64 KiB together. Not in the original contract.
    """
    code: str
    """
    Code to execute: 1 byte to 1 MB (1,048,576 bytes of UTF-8).
    """
    env_vars: NotRequired[dict[str, Any] | None]
    """
    Environment variables for this execution: at most 50 and 64 KB together with those of the environment. Names: an uppercase letter, then uppercase letters, digits and underscores, at most 128 characters, none of the reserved names. Values: at most 4,096 characters.
    """
    files: NotRequired[dict[str, Any] | None]
    """
    Files that are put into the working folder before the program starts: text by name, such as data/in.csv. At most 100 files with files_base64, and 4 MiB with stdin. Not in the original contract.
    """
    files_base64: NotRequired[dict[str, Any] | None]
    """
    Like files, with the contents in base64. Not in the original contract.
    """
    language: NotRequired[Literal["python", "node", "bash"] | None]
    """
    Language of the code.
    """
    metadata: NotRequired[dict[str, Any] | None]
    """
    Kept with the execution's record, never shown to the program. At most 10 keys of 1 to 40 characters with values of at most 256.
    """
    outputs: NotRequired[list[str] | None]
    """
    Files and folders of the working folder that are kept when the program has ended: see files of the answer. A path that ends with a slash is a folder that is made before the program starts. At most 100 files and 32 MiB are kept. Not in the original contract.
    """
    partial: NotRequired[bool | None]
    """
    In streams, sends the beginning of a line once the program has been silent for 100 ms, as progress bars and prompts need. Without it an output event is a whole line.
    """
    stdin: NotRequired[str | None]
    """
    Standard input of the program; empty if omitted. Not in the original contract.
    """
    stdin_base64: NotRequired[str | None]
    """
    Instead of stdin: any bytes, in base64. Not in the original contract.
    """
    sub_paths: NotRequired[list[str] | None]
    """
    Narrows mounted connections for this execution: /data/{slug}/{path}, at most 512 characters, one entry for each connection. Paths lie within the prefixes of the connection and of the key.
    """
    thread_id: NotRequired[str | None]
    """
    Names a thread: the home directory is what the thread's last execution left, and is saved for the next. One execution of a thread at a time; another returns 409.
    """
    timeout: NotRequired[int | None]
    """
    Most seconds the program may run. Above the plan's maximum the request returns 429.
    """
    webhook_url: NotRequired[str | None]
    """
    Where the result is sent, with Prefer: respond-async only; HTTPS, and no private address. Without it the key's own URL is used, if it has one.
    """


class ExpiresAfter(TypedDict):
    """
    ExpiresAfter says how long a container lives without use.
    """

    anchor: Literal["last_active_at"]
    """
    From when minutes count: its last use.
    """
    minutes: int
    """
    Minutes without a use after which it is deleted, 1 to 43200.
    """


class FetchRequest(TypedDict):
    """
    FetchRequest names pages.
    """

    max_tokens_per_page: NotRequired[int | None]
    """
    Of each page; 4 characters count as a token.
    """
    url: str | list[str]
    """
    An http or https URL of at most 4096 bytes, or a list of 1 to 10.
    """


class FilesListRequest(TypedDict):
    """
    FilesListRequest is the body of POST /v1/files/list.
    """

    id: str
    """
    A thread_id; or slug or id of a connection that this key mounts.
    """
    path: NotRequired[str | None]
    """
    Folder to list: of a thread, from its home; of a connection, from its root as in sub_paths. If omitted, the home, or the whole of what this key may see.
    """
    source: Literal["thread", "volume"]
    """
    Kind of the object that id names.
    """


class FilesystemChange(TypedDict):
    """
    FilesystemChange changes FilesystemPermissions.
    """

    blocked_paths: NotRequired[list[str] | None]
    """
    Replaces the list.
    """
    read_only_paths: NotRequired[list[str] | None]
    """
    Replaces the list.
    """
    writable_paths: NotRequired[list[str] | None]
    """
    Replaces the list; all else is read-only. / is everywhere.
    """


class GlobInput(TypedDict):
    """
    GlobInput is the input of glob.
    """

    cwd: NotRequired[str | None]
    """
    The folder to begin in; the home if omitted.
    """
    pattern: str
    """
    A pattern such as **/*.py.
    """
    sandbox: NotRequired[str | None]
    """
    The name of the sandbox; default if omitted.
    """


class JSONSchema(TypedDict):
    """
    JSONSchema is a named schema.
    """

    description: NotRequired[str | None]
    """
    Purpose, in words.
    """
    name: NotRequired[str | None]
    """
    Its name.
    """
    schema: Any
    """
    JSON Schema of the answer.
    """
    strict: NotRequired[bool | None]
    """
    Whether the answer must fit the schema exactly.
    """


class KeyChange(TypedDict):
    """
    KeyChange is what PATCH can change of a key; omitted fields stay unchanged.
    """

    env_vars: NotRequired[dict[str, Any] | None]
    """
    Variables to set; others stay. They win over those of the environment; the request's own win over them. Rules as in an execution's env_vars.
    """
    expires_at: NotRequired[str | None]
    """
    A time in RFC 3339, or never.
    """
    name: NotRequired[str | None]
    """
    Its name.
    """
    scopes: NotRequired[list[str] | None]
    """
    Of execute, read, tools, sandboxes, environments, admin. Replaces the list. admin is only for keys of the tenant operator.
    """
    secret_hosts: NotRequired[dict[str, Any] | None]
    """
    Binds secrets to hosts; others stay as they are. The program gets a placeholder, which the network replaces in requests by HTTPS to these hosts alone. Names such as api.example.com, or *.example.com for all below one; an empty list has programs get the secret itself.
    """
    secrets: NotRequired[dict[str, Any] | None]
    """
    Secret variables to set; others stay. At least 8 characters each. They are stored encrypted, kept out of output and never shown.
    """
    unset: NotRequired[list[str] | None]
    """
    Names of variables and secrets to take away.
    """
    webhook_secret: NotRequired[str | None]
    """
    At least 16 printable characters; empty for unsigned webhooks. Never shown.
    """
    webhook_url: NotRequired[str | None]
    """
    HTTPS only; empty for nowhere.
    """


class LimitsChange(TypedDict):
    """
    LimitsChange is a change of limits. Omitted fields stay unchanged, or get the server's default in a new environment.
    """

    cpu: NotRequired[float | None]
    """
    Cores, above 0.
    """
    inodes: NotRequired[int | None]
    """
    Files and folders together that it may make.
    """
    memory: NotRequired[int | None]
    """
    Bytes. The three sizes live in it.
    """
    open_files: NotRequired[int | None]
    """
    Files that one program may have open.
    """
    processes: NotRequired[int | None]
    """
    Processes and threads at the same time.
    """
    root_size: NotRequired[int | None]
    """
    Bytes that may be written to the root file system, which is in memory.
    """
    shm_size: NotRequired[int | None]
    """
    Bytes of /dev/shm, which is in memory.
    """
    tmp_size: NotRequired[int | None]
    """
    Bytes that may be written to /tmp, which is in memory.
    """


class ModelPrices(TypedDict):
    """
    ModelPrices are in US dollars for a million tokens. Omitted fields are 0.
    """

    cache_read: NotRequired[str]
    """
    For input that the provider reads from its cache.
    """
    cache_write: NotRequired[str]
    """
    For input that the provider writes to its cache.
    """
    input: NotRequired[str]
    """
    A decimal number, such as 2.50, with at most 6 digits after the point.
    """
    output: NotRequired[str]
    """
    US dollars for a million tokens of output, a decimal number as text.
    """


class ModelTest(TypedDict):
    """
    ModelTest is what a model is asked.
    """

    max_output_tokens: NotRequired[int | None]
    """
    Tokens that all answers together may have, reasoning included.
    """
    prompt: NotRequired[str | None]
    """
    Prompt; a short question if omitted.
    """


BlockedPort: TypeAlias = int


class NetworkChange(TypedDict):
    """
    NetworkChange changes NetworkPermissions.
    """

    allowed_cidrs: NotRequired[list[str] | None]
    """
    Replaces the list.
    """
    allowed_hosts: NotRequired[list[str] | None]
    """
    Replaces the list. * if there was no network and nothing is named.
    """
    blocked_ports: NotRequired[list[BlockedPort] | None]
    """
    Replaces the list; 1 to 65535.
    """
    enabled: NotRequired[bool | None]
    """
    Refused with 403 where the tenant's policy allows no network.
    """
    unrestricted: NotRequired[bool | None]
    """
    Addresses may be connected to without a name having been looked up.
    """


class NewConnection(TypedDict):
    """
    NewConnection is the body that makes a connection.
    """

    account: NotRequired[str]
    """
    Of azure: the storage account.
    """
    bucket: NotRequired[str]
    """
    The bucket; of azure the container.
    """
    credentials: NotRequired[Credentials]
    """
    Replaces them all.
    """
    endpoint: NotRequired[str]
    """
    URL of the service, of s3 and azure; the provider's own if omitted.
    """
    kind: Literal["s3", "gcs", "azure", "volume"]
    """
    Kind of the storage.
    """
    path_style: NotRequired[bool]
    """
    Of s3: the bucket is in the path and not in the host's name.
    """
    prefix: NotRequired[str | None]
    """
    The part of the storage that is mounted: a folder, without a slash at the ends.
    """
    read_only: NotRequired[bool | None]
    """
    Whether programs can only read it.
    """
    region: NotRequired[str]
    """
    Of s3; required without an endpoint.
    """
    slug: str
    """
    Name in paths: sandboxes mount it at /data/{slug}.
    """


class NewContainer(TypedDict):
    """
    NewContainer is the body that makes a container.
    """

    expires_after: NotRequired[ExpiresAfter]
    """
    When it is deleted without a use.
    """
    file_ids: NotRequired[list[str]]
    """
    Refused: there are no files to copy by id. Upload them to the container.
    """
    memory_limit: NotRequired[Literal["1g", "4g", "16g", "64g"] | None]
    """
    At most what sandboxes of the key's environment have, which is what it has if omitted.
    """
    name: str
    """
    A name, which need not be the only one.
    """
    network_policy: NotRequired[ContainerAccess]
    """
    Part of the environment's network that the container may use.
    """
    skills: NotRequired[list[Any]]
    """
    Refused: there are no skills.
    """


class NewContext(TypedDict):
    """
    NewContext is the body that starts a code context.
    """

    language: Literal["python", "node", "bash"]
    """
    The language of the code.
    """
    working_dir: NotRequired[str | None]
    """
    The folder to begin in.
    """


class NewEndpointAuth(TypedDict):
    """
    NewEndpointAuth says how the client shows who it is.
    """

    client_secret: NotRequired[str | None]
    """
    Of client_secret_basic and client_secret_post: the client's secret, which is never shown.
    """
    type: Literal["none", "client_secret_basic", "client_secret_post"]
    """
    Type, which decides the other fields.
    """


class NewGrant(TypedDict):
    """
    NewGrant is the body that makes a grant.
    """

    environment: NotRequired[str | None]
    """
    Name or id; either this or key.
    """
    key: NotRequired[str | None]
    """
    Name or id.
    """
    prefix: NotRequired[str | None]
    """
    Within the connection's prefix and, for a key, that of its environment's grant; like them from the connection's root.
    """
    read_only: NotRequired[bool | None]
    """
    Whether programs can only read it.
    """


class NewKey(TypedDict):
    """
    NewKey is the body that makes a key.
    """

    env_vars: NotRequired[dict[str, Any] | None]
    """
    Variables of its executions, over those of the environment. Rules as in an execution's env_vars.
    """
    environment: NotRequired[str | None]
    """
    Id or name of the environment that its executions run in. Required, unless the key only administers.
    """
    expires_at: NotRequired[str | None]
    """
    A time in RFC 3339, or never, which is the default.
    """
    expires_in: NotRequired[int | None]
    """
    Seconds until it expires; instead of expires_at.
    """
    name: str
    """
    A name for the key, 1 to 64 letters, digits, dots, underscores and hyphens.
    """
    scopes: NotRequired[list[str] | None]
    """
    Of execute, read, tools, sandboxes, environments, admin; execute, read, sandboxes and tools if omitted. admin is only for keys of the tenant operator.
    """
    secret_hosts: NotRequired[dict[str, Any] | None]
    """
    Binds secrets to hosts: the program gets a placeholder, which the network replaces in requests by HTTPS to these hosts alone. Names such as api.example.com, or *.example.com for all below one.
    """
    secrets: NotRequired[dict[str, Any] | None]
    """
    Secret variables. At least 8 characters each. They are stored encrypted, kept out of output and never shown.
    """
    webhook_secret: NotRequired[str | None]
    """
    At least 16 printable characters. Never shown.
    """
    webhook_url: NotRequired[str | None]
    """
    HTTPS only.
    """


class NewModel(TypedDict):
    """
    NewModel is the body that makes a model.
    """

    all_tenants: NotRequired[bool | None]
    """
    true if neither this nor tenants nor plans is there at first.
    """
    base_url: NotRequired[str | None]
    """
    Base URL of the API. Default of a new model: the provider's; openai-chat has no default. A change needs the key again.
    """
    capabilities: NotRequired[list[str] | None]
    """
    vision, files, tools, parallel_tools, reasoning, structured_output, custom_tools. Default of a new model: tools, parallel_tools and structured_output.
    """
    context: NotRequired[int | None]
    """
    Tokens that a request and its answer may have together, if known.
    """
    key: NotRequired[str | None]
    """
    For the provider; stored encrypted. Empty for none.
    """
    max_output: NotRequired[int | None]
    """
    Tokens that an answer may have, if known.
    """
    name: str
    """
    Name that requests use: letters, digits, dots, underscores, hyphens, colons and slashes.
    """
    plans: NotRequired[list[str] | None]
    """
    Names of the plans whose tenants may use it, too; then all_tenants is false.
    """
    prices: NotRequired[ModelPrices]
    """
    Replaces them all.
    """
    provider: Literal["openai", "openai-chat", "anthropic"]
    """
    The protocol that it is asked by.
    """
    tenants: NotRequired[list[str] | None]
    """
    Ids or names of the tenants that may use it; then all_tenants is false.
    """
    upstream: NotRequired[str | None]
    """
    Name at the provider. Default of a new model: name.
    """


class NewModelKey(TypedDict):
    """
    NewModelKey is the body that gives a key.
    """

    key: str
    """
    The tenant's own, for the model's provider. It is stored encrypted and never shown.
    """


class NewMount(TypedDict):
    """
    NewMount is something that the sandboxes of a session have from the beginning.
    """

    content: NotRequired[str | None]
    """
    Of file: up to 128 KiB, of all files together.
    """
    encoding: NotRequired[Literal["utf-8", "base64"] | None]
    """
    Of file: how content is given.
    """
    file_id: NotRequired[str | None]
    """
    Of file: an uploaded file that it is a copy of, instead of content. For an agent without the tool sandboxes 8 MiB of all together.
    """
    path: NotRequired[str | None]
    """
    Below /home/user of the sandbox default; of a volume /data/{slug}/{path}, for all sandboxes of the session. With file_id it may be omitted, and for an agent without the tool sandboxes be below /mnt/session, where programs cannot change it: /mnt/session/uploads/{file_id} if omitted, or /home/user/uploads/{file_id} for one with that tool.
    """
    ref: NotRequired[str | None]
    """
    Of git_repository: a branch, tag or commit.
    """
    token: NotRequired[str | None]
    """
    Of git_repository: the variable of a secret that is bound to the URL's host, which is its password.
    """
    type: Literal["file", "git_repository", "volume"]
    """
    Type, which decides the other fields.
    """
    url: NotRequired[str | None]
    """
    Of git_repository: an https URL, which the environment's network has to allow.
    """


class NewRefresh(TypedDict):
    """
    NewRefresh says how an access token is refreshed.
    """

    client_id: str
    """
    The client that the token endpoint knows.
    """
    refresh_token: str
    """
    Refresh token, which the token endpoint exchanges for access tokens; never shown.
    """
    resource: NotRequired[str | None]
    """
    The resource that the token is for, if the endpoint wants one.
    """
    scope: NotRequired[str | None]
    """
    Scope to request for the token, if the endpoint requires one.
    """
    token_endpoint: str
    """
    The URL that gives access tokens.
    """
    token_endpoint_auth: NewEndpointAuth
    """
    How the client shows the token endpoint who it is.
    """


class NewTenant(TypedDict):
    """
    NewTenant is the body that makes a tenant.
    """

    audit_days: NotRequired[int | None]
    """
    How many days audit rows are kept, 1 to 180; rows that exist keep theirs.
    """
    audit_text: NotRequired[bool | None]
    """
    Whether the activity shows the beginning of code and commands, redacted; from the next call on.
    """
    caps: NotRequired[CapOverrides]
    """
    Replaces both; if you omit one, the server's applies.
    """
    disabled: NotRequired[bool | None]
    """
    Whether its keys are refused.
    """
    environment: NotRequired[str | None]
    """
    Name of an environment to make with it, with the image named default and the server's limits as far as the plan allows them. None is made if it is omitted.
    """
    key_isolation_enabled: NotRequired[bool | None]
    """
    Whether its environments may have isolation key.
    """
    monthly_cost: NotRequired[float | None]
    """
    US dollars; 0 for no budget.
    """
    monthly_credits: NotRequired[float | None]
    """
    0 for no budget.
    """
    name: str
    """
    1 to 64 letters, digits, dots, underscores and hyphens, beginning with a letter or digit.
    """
    network_enabled: NotRequired[bool | None]
    """
    Whether its environments may have a network.
    """
    plan: NotRequired[str | None]
    """
    Name of a plan. Refused with 429 while an environment is above it.
    """
    redaction_off: NotRequired[list[str] | None]
    """
    Replaces the list.
    """
    root_enabled: NotRequired[bool | None]
    """
    Whether its environments may run programs as root of their sandbox.
    """
    sandbox_enabled: NotRequired[bool | None]
    """
    Refused with 409 in the regulated tier.
    """
    tier: NotRequired[Literal["standard", "regulated"] | None]
    """
    regulated turns the sandbox off.
    """


class NewToken(TypedDict):
    """
    NewToken is the body that makes a token.
    """

    expires_in: NotRequired[int | None]
    """
    Seconds until it expires.
    """
    max_cost: NotRequired[float | None]
    """
    US dollars that it may be charged: models, tools and sandboxes of responses and of turns of sessions. No model is asked once that is reached.
    """
    max_executions: NotRequired[int | None]
    """
    Executions that it may begin, those of its responses and turns among them.
    """
    operations: NotRequired[list[str] | None]
    """
    The operations that it is for, by their ids in this document. If omitted, all that are open to tokens.
    """
    origins: NotRequired[list[str] | None]
    """
    Web origins, such as https://app.example.com, whose pages may use it: at most 16. A request with another Origin, or none, is refused. If omitted, any.
    """
    rights: NotRequired[list[str] | None]
    """
    Rights in sessions beyond sending messages: confirm approves or denies tool calls that wait, outcomes defines outcomes that have no check. None if omitted.
    """
    sandbox: NotRequired[str | None]
    """
    Name or sandbox_id of the named sandbox that it reaches, and no other.
    """
    sandbox_session: NotRequired[str | None]
    """
    The session that has the sandbox; default if omitted.
    """
    scopes: NotRequired[list[str] | None]
    """
    Scopes of the token, from execute, read, sandboxes and tools; the key must have them too. If omitted, the scopes that operations need; with session or sandbox, all of these that the key has.
    """
    session: NotRequired[str | None]
    """
    Id of the session of an agent that it reaches, and no other.
    """


class NewVault(TypedDict):
    """
    NewVault is the body that makes a vault.
    """

    display_name: str
    """
    1 to 255 characters.
    """
    metadata: NotRequired[dict[str, str]]
    """
    Up to 16 pairs; keys of up to 64 characters, values of up to 512.
    """


class OutcomeCheck(TypedDict):
    """
    OutcomeCheck is a command that checks an outcome in the session's sandbox.
    """

    command: str
    """
    Run by bash; the check passes with the exit code 0.
    """
    timeout_ms: NotRequired[int | None]
    """
    As long as code runs by default if omitted, at most as long as the plan allows.
    """


class PackagesChange(TypedDict):
    """
    PackagesChange is what can be changed of Packages; omitted fields stay unchanged.
    """

    apt: NotRequired[list[str] | None]
    """
    Replaces the list. Names of Debian's, such as jq, or with a version jq=1.7.1-3.
    """
    npm: NotRequired[list[str] | None]
    """
    Replaces the list. Names of npm packages, such as left-pad or @scope/name, or with a version left-pad@1.3.0.
    """
    pip: NotRequired[list[str] | None]
    """
    Replaces the list. Names of Python packages, such as six, or with a version six==1.17.0 or bounds six>=1.16,<2.
    """


PlanBounds = TypedDict(
    "PlanBounds",
    {
        "async": NotRequired[bool | None],
        "concurrency": NotRequired[int | None],
        "key_isolation": NotRequired[bool | None],
        "max_cpu": NotRequired[float | None],
        "max_key_request_rate": NotRequired[int | None],
        "max_key_response_rate": NotRequired[int | None],
        "max_key_token_rate": NotRequired[int | None],
        "max_key_upload_rate": NotRequired[int | None],
        "max_memory": NotRequired[int | None],
        "max_output": NotRequired[int | None],
        "max_outputs": NotRequired[int | None],
        "max_request_rate": NotRequired[int | None],
        "max_response_rate": NotRequired[int | None],
        "max_sandbox_disk": NotRequired[int | None],
        "max_sandbox_life": NotRequired[int | None],
        "max_sandbox_memory": NotRequired[int | None],
        "max_sandboxes": NotRequired[int | None],
        "max_snapshot_size": NotRequired[int | None],
        "max_snapshots": NotRequired[int | None],
        "max_thread_size": NotRequired[int | None],
        "max_threads": NotRequired[int | None],
        "max_timeout": NotRequired[int | None],
        "max_token_rate": NotRequired[int | None],
        "max_upload_rate": NotRequired[int | None],
        "streaming": NotRequired[bool | None],
    },
)


class ProcessChange(TypedDict):
    """
    ProcessChange changes ProcessPermissions.
    """

    allow_exec: NotRequired[bool | None]
    """
    false forbids fork and exec; threads still work.
    """
    blocked_commands: NotRequired[list[str] | None]
    """
    Replaces the list. A program's name, or a name with the arguments it begins with.
    """
    max_processes: NotRequired[int | None]
    """
    Processes, not threads, at the same time; 0 for no bound but limits.processes.
    """
    root: NotRequired[bool | None]
    """
    Programs run as uid 0 of the sandbox. Refused with 403 where the tenant's policy does not allow it.
    """


class ProcessSignal(TypedDict):
    """
    ProcessSignal is the body that sends a signal.
    """

    group: NotRequired[bool | None]
    """
    To its whole process group.
    """
    signal: str
    """
    Such as TERM, SIGTERM or 15.
    """


class ReadFileInput(TypedDict):
    """
    ReadFileInput is the input of read_file.
    """

    encoding: NotRequired[Literal["utf-8", "base64"] | None]
    """
    How content is given. By default utf-8 for text, and base64 for other content.
    """
    limit: NotRequired[int | None]
    """
    Max bytes to read
    """
    offset: NotRequired[int | None]
    """
    Byte offset
    """
    path: str
    """
    The file's path.
    """
    sandbox: NotRequired[str | None]
    """
    The name of the sandbox; default if omitted.
    """


class ReasoningSettings(TypedDict):
    """
    ReasoningSettings say how long a model thinks and what of it is shown.
    """

    effort: NotRequired[Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None]
    """
    How much the model thinks before it answers.
    """
    summary: NotRequired[Literal["auto", "concise", "detailed"] | None]
    """
    How the model's thinking is summarized.
    """


class RefreshChange(TypedDict):
    """
    RefreshChange changes how an access token is refreshed.
    """

    refresh_token: NotRequired[str | None]
    """
    Refresh token, which the token endpoint exchanges for access tokens; never shown.
    """
    scope: NotRequired[str | None]
    """
    Empty for none.
    """
    token_endpoint_auth: NotRequired[NewEndpointAuth]
    """
    Another client_secret. The type stays what it is.
    """


class ResourcesChange(TypedDict):
    """
    ResourcesChange changes Resources.
    """

    cpu: NotRequired[float | None]
    """
    Cores, such as 0.5.
    """
    memory_mb: NotRequired[int | None]
    """
    MiB of memory.
    """
    timeout: NotRequired[int | None]
    """
    Seconds that a program may run.
    """


class ResponseFormat(TypedDict):
    """
    ResponseFormat is the form of an answer as Chat Completions has it.
    """

    json_schema: NotRequired[JSONSchema]
    """
    Of json_schema: the schema and its name.
    """
    type: Literal["text", "json_schema"]
    """
    Type, which decides the other fields.
    """


class RunCode(TypedDict):
    """
    RunCode is the body that runs code in a context.
    """

    code: str
    """
    The code to run in the context.
    """
    timeout_ms: NotRequired[int | None]
    """
    Then the code is interrupted.
    """


class SandboxCreateInput(TypedDict):
    """
    SandboxCreateInput is the input of sandbox_create.
    """

    image: NotRequired[str | None]
    """
    The image to begin with; the environment's if omitted.
    """
    sandbox: str
    """
    The name of the sandbox to make, or of one that is there.
    """
    sleep_after_ms: NotRequired[int | None]
    """
    Milliseconds without a use after which it sleeps.
    """


class SandboxListInput(TypedDict):
    """
    SandboxListInput is the input of sandbox_list.
    """


class SandboxTimeout(TypedDict):
    """
    SandboxTimeout is the body that says when a sandbox is destroyed.
    """

    sleep_after_ms: NotRequired[int | None]
    """
    Without use; -1 for never, 0 for the server's.
    """
    timeout_ms: NotRequired[int | None]
    """
    From now; 0 for as long as the plan allows.
    """


class SearchRequest(TypedDict):
    """
    SearchRequest is a search, as clients of the contract send it.
    """

    country: NotRequired[str | None]
    """
    A code of ISO 3166-1, such as US.
    """
    display_server_time: NotRequired[bool | None]
    """
    Whether the answer says what time it is.
    """
    last_updated_after_filter: NotRequired[str | None]
    """
    Changed on this day or later.
    """
    last_updated_before_filter: NotRequired[str | None]
    """
    Changed on this day or earlier.
    """
    max_results: NotRequired[int | None]
    """
    At most 20 of pages and 100 of people. A provider may have fewer.
    """
    max_tokens: NotRequired[int | None]
    """
    Of all snippets together; 4 characters count as a token.
    """
    max_tokens_per_page: NotRequired[int | None]
    """
    Of each snippet.
    """
    query: str | list[str]
    """
    Search query of 1 to 2000 characters, or a list of 1 to 5 queries, whose results are merged.
    """
    search_after_date_filter: NotRequired[str | None]
    """
    Published on this day, MM/DD/YYYY, or later.
    """
    search_before_date_filter: NotRequired[str | None]
    """
    Published on this day or earlier.
    """
    search_context_size: NotRequired[Literal["low", "medium", "high"] | None]
    """
    Instead of the two bounds in tokens: 256, 1024 or 4096 tokens of each page.
    """
    search_domain_filter: NotRequired[list[str] | None]
    """
    Domains to search, with those below them; each with a leading - to leave them out.
    """
    search_language_filter: NotRequired[list[str] | None]
    """
    Codes of ISO 639-1.
    """
    search_mode: NotRequired[Literal["web"] | None]
    """
    Scope of the search.
    """
    search_recency_filter: NotRequired[Literal["hour", "day", "week", "month", "year"] | None]
    """
    How long ago a page was published at most.
    """
    search_type: NotRequired[Literal["web", "fast", "people"] | None]
    """
    web for pages, of which fast is another name; people for people.
    """


class SessionBudget(TypedDict):
    """
    SessionBudget bounds what the turns of a session use together.
    """

    cost_usd: NotRequired[float | None]
    """
    US dollars, at least 0.000001: of models, tools and the sandbox.
    """
    tokens: NotRequired[int | None]
    """
    Of all requests to models and of their answers.
    """


class SessionChange(TypedDict):
    """
    SessionChange changes the description of a session; omitted fields stay unchanged.
    """

    budget: NotRequired[SessionBudget]
    """
    Raises it; the turn in progress has what it began with.
    """
    metadata: NotRequired[dict[str, Any]]
    """
    Replaces it.
    """
    title: NotRequired[str | None]
    """
    Its title, for people.
    """


class ShellInput(TypedDict):
    """
    ShellInput is the input of shell.
    """

    command: str
    """
    A command for the shell.
    """
    sandbox: NotRequired[str | None]
    """
    The name of the sandbox; default if omitted.
    """
    timeout_ms: NotRequired[int | None]
    """
    Milliseconds that the command may take.
    """
    working_dir: NotRequired[str | None]
    """
    The folder that it works in.
    """


class SignRequest(TypedDict):
    """
    SignRequest is the body that asks for a signed URL.
    """

    expires_in: NotRequired[int | None]
    """
    Seconds.
    """
    method: NotRequired[Literal["GET", "PUT"]]
    """
    The method of HTTP that the URL is for.
    """
    path: str
    """
    The file, from the home.
    """


class SizeLimits(TypedDict):
    """
    SizeLimits are the limits that a client can set for one sandbox.
    """

    cpu: NotRequired[float | None]
    """
    Cores, above 0.
    """
    memory: NotRequired[int | None]
    """
    Bytes. Atoll reduces the limits of in-memory files to fit.
    """


class StreamOptions(TypedDict):
    """
    StreamOptions say what a stream has beside its events.
    """

    include_obfuscation: NotRequired[bool | None]
    """
    Only false: nothing is added.
    """
    include_usage: NotRequired[bool | None]
    """
    The last event has it in any case.
    """


class TemplateSandbox(TypedDict):
    """
    TemplateSandbox is a template's opting in.
    """

    environment: Literal["default-public", "internal-only"]
    """
    Network of its sandboxes. internal-only: no network. default-public: the network of the key's environment, or all public addresses if that has none; where the tenant's policy allows no network, every call fails as SandboxProvisioning.
    """


class TenantChange(TypedDict):
    """
    TenantChange is what PATCH can change of a tenant; omitted fields stay unchanged.
    """

    audit_days: NotRequired[int | None]
    """
    How many days audit rows are kept, 1 to 180; rows that exist keep theirs.
    """
    audit_text: NotRequired[bool | None]
    """
    Whether the activity shows the beginning of code and commands, redacted; from the next call on.
    """
    caps: NotRequired[CapOverrides]
    """
    Replaces both; if you omit one, the server's applies.
    """
    disabled: NotRequired[bool | None]
    """
    Whether its keys are refused.
    """
    key_isolation_enabled: NotRequired[bool | None]
    """
    Whether its environments may have isolation key.
    """
    monthly_cost: NotRequired[float | None]
    """
    US dollars; 0 for no budget.
    """
    monthly_credits: NotRequired[float | None]
    """
    0 for no budget.
    """
    network_enabled: NotRequired[bool | None]
    """
    Whether its environments may have a network.
    """
    plan: NotRequired[str | None]
    """
    Name of a plan. Refused with 429 while an environment is above it.
    """
    redaction_off: NotRequired[list[str] | None]
    """
    Replaces the list.
    """
    root_enabled: NotRequired[bool | None]
    """
    Whether its environments may run programs as root of their sandbox.
    """
    sandbox_enabled: NotRequired[bool | None]
    """
    Refused with 409 in the regulated tier.
    """
    tier: NotRequired[Literal["standard", "regulated"] | None]
    """
    regulated turns the sandbox off.
    """


class TerminalSize(TypedDict):
    """
    TerminalSize is the size of a terminal.
    """

    columns: int
    """
    Width in characters, at least 1.
    """
    rows: int
    """
    Height in lines, at least 1.
    """


class TextFormat(TypedDict):
    """
    TextFormat is the form of an answer.
    """

    description: NotRequired[str | None]
    """
    Purpose, in words.
    """
    name: NotRequired[str | None]
    """
    Its name.
    """
    schema: NotRequired[Any]
    """
    JSON Schema of the answer.
    """
    strict: NotRequired[bool | None]
    """
    Whether the answer must fit the schema exactly.
    """
    type: Literal["text", "json_schema"]
    """
    Type, which decides the other fields.
    """


class TextSettings(TypedDict):
    """
    TextSettings say what form the answer has.
    """

    format: NotRequired[TextFormat]
    """
    The form of the text: plain, or JSON by a schema.
    """
    verbosity: NotRequired[Literal["medium"] | None]
    """
    How long answers are: medium alone is supported.
    """


class ThreadChange(TypedDict):
    """
    ThreadChange is the body that changes a thread's record.
    """

    expires_at: str | None
    """
    When it is deleted; null for the server's rule.
    """


class ToolPolicy(TypedDict):
    """
    ToolPolicy says which tools an agent may call.
    """

    allow_list: NotRequired[list[str]]
    """
    Tools that the agent may call, by tool, kind, class, MCP server or server/tool; a bare name never admits a tool of an MCP server. Omitted, all; empty, none.
    """
    confirm_within: NotRequired[int | None]
    """
    Seconds that calls of a session wait for the client, and then expire; confirmation_time of the server if omitted.
    """
    deny_list: NotRequired[list[str]]
    """
    Tools that the agent may not call, by any of these names; wins over allow_list.
    """
    require_confirmation: NotRequired[list[str]]
    """
    Tools whose calls wait until a client confirms them.
    """


class TransferInput(TypedDict):
    """
    TransferInput is the input of transfer.
    """

    from_path: str
    """
    The file or folder to copy.
    """
    from_sandbox: str
    """
    The sandbox to copy from.
    """
    recursive: NotRequired[bool | None]
    """
    Copy a folder with all that is in it.
    """
    to_path: str
    """
    Where to copy it.
    """
    to_sandbox: str
    """
    The sandbox to copy to.
    """


class UploadRequest(TypedDict):
    """
    UploadRequest is the body of POST /v1/files/upload_url.
    """

    content_length: int
    """
    Bytes of the file. A longer one is written, too.
    """
    content_type: NotRequired[str | None]
    """
    Media type of the file; not stored.
    """
    id: str
    """
    A thread_id.
    """
    path: str
    """
    The file, from the home.
    """
    source: Literal["thread", "volume"]
    """
    Kind of the object that id names. Files of a volume have no URLs here: executions that mount it reach them.
    """


class VaultChange(TypedDict):
    """
    VaultChange changes the description of a vault; omitted fields stay unchanged.
    """

    display_name: NotRequired[str | None]
    """
    A name for people.
    """
    metadata: NotRequired[dict[str, str]]
    """
    Replaces it.
    """


class WriteFileInput(TypedDict):
    """
    WriteFileInput is the input of write_file.
    """

    append: NotRequired[bool | None]
    """
    Add to the file instead of replacing it; false if omitted.
    """
    content: str
    """
    The content of the file.
    """
    encoding: NotRequired[Literal["utf-8", "base64"] | None]
    """
    How content is given.
    """
    path: str
    """
    The file's path.
    """
    sandbox: NotRequired[str | None]
    """
    The name of the sandbox; default if omitted.
    """


class AgentChange(TypedDict):
    """
    AgentChange makes another version; omitted fields stay unchanged.
    """

    compaction: NotRequired[AgentCompaction]
    """
    Replaces it.
    """
    description: NotRequired[str | None]
    """
    Description of the agent's purpose; null removes it.
    """
    handoffs: NotRequired[list[AgentHandoff] | None]
    """
    Replaces the list.
    """
    max_steps: NotRequired[int | None]
    """
    How many times a turn may ask the model.
    """
    mcp_servers: NotRequired[list[AgentServer] | None]
    """
    Replaces the list.
    """
    metadata: NotRequired[dict[str, Any]]
    """
    Replaces it.
    """
    model: NotRequired[AgentModel]
    """
    Replaces it.
    """
    multiagent: NotRequired[AgentMultiagent]
    """
    Replaces it; {} for what holds by itself.
    """
    name: NotRequired[str | None]
    """
    Its name.
    """
    retry_for_ms: NotRequired[int | None]
    """
    How long Atoll asks the model again after its provider failed.
    """
    skills: NotRequired[list[Any] | None]
    """
    Replaces the list.
    """
    slug: NotRequired[str | None]
    """
    A name for URLs, the only one of its kind in the tenant.
    """
    system: NotRequired[str | None]
    """
    System prompt.
    """
    tool_policy: NotRequired[ToolPolicy]
    """
    Replaces it.
    """
    tools: NotRequired[list[AgentTool] | None]
    """
    Replaces the list.
    """
    version: int
    """
    The current version: a change that was made for another one returns 409.
    """
    visibility: NotRequired[Literal["private", "template"] | None]
    """
    private, or template for one that other tenants may see and copy by its id.
    """


class AgentCopy(TypedDict):
    """
    AgentCopy says in what a copy differs; the body may be omitted.
    """

    model: NotRequired[AgentModel]
    """
    The agent's if omitted.
    """
    name: NotRequired[str | None]
    """
    The agent's if omitted.
    """
    slug: NotRequired[str | None]
    """
    A name for URLs, the only one of its kind in the tenant.
    """


class AuditCheck(TypedDict):
    """
    AuditCheck is the body of a verification.
    """

    known: NotRequired[AuditMark]
    """
    The head of an earlier report: the chain must still hold it.
    """


class AuthChange(TypedDict):
    """
    AuthChange changes the secrets of a credential, but not its purpose.
    """

    access_token: NotRequired[str | None]
    """
    Of mcp_oauth: another access token. If omitted, it stays.
    """
    expires_at: NotRequired[str | None]
    """
    Of mcp_oauth: when access_token expires, in RFC 3339.
    """
    hosts: NotRequired[list[str] | None]
    """
    Replaces them.
    """
    refresh: NotRequired[RefreshChange]
    """
    Of mcp_oauth: how another access token is had.
    """
    secret_value: NotRequired[str | None]
    """
    Of host_secret: another value. If omitted, it stays.
    """
    token: NotRequired[str | None]
    """
    Of static_bearer: another token. If omitted, it stays.
    """
    type: Literal["static_bearer", "mcp_oauth", "host_secret"]
    """
    Type of the credential.
    """


class ConnectionChange(TypedDict):
    """
    ConnectionChange is what PATCH can change of a connection; omitted fields stay unchanged.
    """

    credentials: NotRequired[Credentials]
    """
    Replaces them all.
    """
    prefix: NotRequired[str | None]
    """
    The part of the storage that is mounted: a folder, without a slash at the ends.
    """
    read_only: NotRequired[bool | None]
    """
    Whether programs can only read it.
    """


class CreateResponse(TypedDict):
    """
    CreateResponse is the body of POST /v1/responses. A field that the open specification has and that is not here is refused by name.
    """

    background: NotRequired[bool | None]
    """
    Answer at once; the response is made in the background.
    """
    client_metadata: NotRequired[dict[str, str]]
    """
    Accepted for clients that send it, such as Codex. Atoll neither stores it nor sends it to the provider.
    """
    context_management: NotRequired[list[ContextManagement]]
    """
    How a long conversation is kept within what the model reads.
    """
    include: NotRequired[list[str]]
    """
    Fields of output items to send that are omitted otherwise.
    """
    input: NotRequired[Any]
    """
    A text, or a list of items.
    """
    instructions: NotRequired[str | None]
    """
    System prompt.
    """
    max_cost: NotRequired[float | None]
    """
    US dollars that the response may cost: models, tools and the sandbox. No model is asked once that is reached.
    """
    max_output_tokens: NotRequired[int | None]
    """
    Tokens that all answers together may have, reasoning included.
    """
    max_steps: NotRequired[int | None]
    """
    How many times a model may be asked; 100 if omitted.
    """
    max_tool_calls: NotRequired[int | None]
    """
    Calls of tools that the response may make.
    """
    max_total_tokens: NotRequired[int | None]
    """
    Tokens of all requests to models and of their answers. No model is asked once that is reached.
    """
    metadata: NotRequired[dict[str, str]]
    """
    Up to 16 pairs: keys of up to 64, values of up to 512 characters.
    """
    model: NotRequired[str | None]
    """
    The name of a model; GET /v1/models lists them.
    """
    models: NotRequired[list[str]]
    """
    Up to 5 names of models: the next one is asked when one fails. It takes precedence over model.
    """
    parallel_tool_calls: NotRequired[bool | None]
    """
    Whether the model may make several calls at once.
    """
    previous_response_id: NotRequired[str | None]
    """
    The id of a completed response that this one continues.
    """
    prompt_cache_key: NotRequired[str | None]
    """
    Which requests share the provider's cache.
    """
    reasoning: NotRequired[ReasoningSettings]
    """
    How the model thinks before it answers.
    """
    response_format: NotRequired[ResponseFormat]
    """
    In place of text.format.
    """
    safety_identifier: NotRequired[str | None]
    """
    Shown in the response; the provider does not get it.
    """
    service_tier: NotRequired[Literal["auto", "default"] | None]
    """
    Which tier of the provider is used: there is one.
    """
    store: NotRequired[bool | None]
    """
    Keep the response, to be read or continued later.
    """
    stream: NotRequired[bool | None]
    """
    Answer with server-sent events.
    """
    stream_options: NotRequired[StreamOptions]
    """
    Settings of a stream.
    """
    temperature: NotRequired[float | None]
    """
    How freely the model chooses words, 0 to 2.
    """
    text: NotRequired[TextSettings]
    """
    The form of the answer's text.
    """
    tool_choice: NotRequired[Any]
    """
    auto, none, required, or an object that names a function.
    """
    tools: NotRequired[list[Any]]
    """
    Tools that the model may call: sandbox, code_interpreter, and your functions.
    """
    top_p: NotRequired[float | None]
    """
    From how much of the likely words the model chooses, 0 to 1.
    """
    truncation: NotRequired[Literal["auto", "disabled"] | None]
    """
    Handling of input beyond the model's context: auto drops the beginning, disabled returns an error.
    """
    user: NotRequired[str | None]
    """
    Taken for clients that send it, and not used.
    """


class CredentialChange(TypedDict):
    """
    CredentialChange changes a credential; omitted fields stay unchanged.
    """

    auth: NotRequired[AuthChange]
    """
    Purpose of the credential, with its type.
    """
    display_name: NotRequired[str | None]
    """
    A name for people.
    """
    metadata: NotRequired[dict[str, str]]
    """
    Replaces it.
    """


class ModelChange(TypedDict):
    """
    ModelChange is what PATCH can change of a model; omitted fields stay unchanged.
    """

    all_tenants: NotRequired[bool | None]
    """
    true if neither this nor tenants nor plans is there at first.
    """
    base_url: NotRequired[str | None]
    """
    Base URL of the API. Default of a new model: the provider's; openai-chat has no default. A change needs the key again.
    """
    capabilities: NotRequired[list[str] | None]
    """
    vision, files, tools, parallel_tools, reasoning, structured_output, custom_tools. Default of a new model: tools, parallel_tools and structured_output.
    """
    context: NotRequired[int | None]
    """
    Tokens that a request and its answer may have together, if known.
    """
    key: NotRequired[str | None]
    """
    For the provider; stored encrypted. Empty for none.
    """
    max_output: NotRequired[int | None]
    """
    Tokens that an answer may have, if known.
    """
    plans: NotRequired[list[str] | None]
    """
    Names of the plans whose tenants may use it, too; then all_tenants is false.
    """
    prices: NotRequired[ModelPrices]
    """
    Replaces them all.
    """
    tenants: NotRequired[list[str] | None]
    """
    Ids or names of the tenants that may use it; then all_tenants is false.
    """
    upstream: NotRequired[str | None]
    """
    Name at the provider. Default of a new model: name.
    """


class NewAgent(TypedDict):
    """
    NewAgent is the body that makes an agent.
    """

    compaction: NotRequired[AgentCompaction]
    """
    When a long conversation is summarized; auto if omitted.
    """
    description: NotRequired[str | None]
    """
    Purpose, in words.
    """
    handoffs: NotRequired[list[AgentHandoff]]
    """
    Agents that it may hand work to: each is a tool of the model's.
    """
    max_steps: NotRequired[int | None]
    """
    How many times a turn may ask the model; 100 if omitted.
    """
    mcp_servers: NotRequired[list[AgentServer]]
    """
    MCP servers that tools name.
    """
    metadata: NotRequired[dict[str, Any]]
    """
    Metadata: an object of your own.
    """
    model: AgentModel
    multiagent: NotRequired[AgentMultiagent]
    """
    How work is handed on to other agents.
    """
    name: str
    """
    Its name.
    """
    retry_for_ms: NotRequired[int | None]
    """
    How long Atoll asks the model again after its provider answered 429, 529 or 5xx or broke off; the setting model_retry_for, 2 minutes, if omitted. 0 ends the turn at the first failure.
    """
    skills: NotRequired[list[Any]]
    """
    Names of skills; or objects with name and config of one of the server's own, or skill_id (or name) and version of one of the tenant's.
    """
    slug: NotRequired[str | None]
    """
    Unique among the tenant's agents; taken wherever an id is.
    """
    system: NotRequired[str | None]
    """
    System prompt.
    """
    tool_policy: NotRequired[ToolPolicy]
    """
    metadata.tool_policy says the same.
    """
    tools: NotRequired[list[AgentTool]]
    """
    Tools that the model may call.
    """
    visibility: NotRequired[Literal["private", "template"] | None]
    """
    private, or template for one that other tenants may see and copy by its id, without headers, queries of URLs, metadata and hand-offs.
    """


class NewAuth(TypedDict):
    """
    NewAuth is what a credential is for, with its secrets, which are never shown.
    """

    access_token: NotRequired[str | None]
    """
    Of mcp_oauth.
    """
    expires_at: NotRequired[str | None]
    """
    Of mcp_oauth: when access_token expires, in RFC 3339.
    """
    hosts: NotRequired[list[str] | None]
    """
    Of host_secret: names of hosts, and *.example.com for all below one.
    """
    mcp_server_url: NotRequired[str | None]
    """
    Of static_bearer and mcp_oauth: the MCP server that the token is for.
    """
    refresh: NotRequired[NewRefresh]
    """
    Of mcp_oauth: how another access token is had.
    """
    secret_name: NotRequired[str | None]
    """
    Of host_secret: the variable of programs, which holds a placeholder.
    """
    secret_value: NotRequired[str | None]
    """
    Of host_secret: the value that Atoll sends to the hosts.
    """
    token: NotRequired[str | None]
    """
    Of static_bearer.
    """
    type: Literal["static_bearer", "mcp_oauth", "host_secret"]
    """
    Type, which decides the other fields.
    """


class NewCredential(TypedDict):
    """
    NewCredential is the body that adds a credential.
    """

    auth: NewAuth
    """
    Purpose of the credential, with its type.
    """
    display_name: NotRequired[str | None]
    """
    A name for people.
    """
    metadata: NotRequired[dict[str, str]]
    """
    Up to 16 pairs; keys of up to 64 characters, values of up to 512.
    """


class NewProcess(TypedDict):
    """
    NewProcess is the body that starts a process.
    """

    argv: NotRequired[list[str] | None]
    """
    A program and its arguments. Instead of command.
    """
    command: NotRequired[str | None]
    """
    Command for bash, or for sh if the image has no bash. Use either command or argv.
    """
    env_vars: NotRequired[dict[str, Any] | None]
    """
    Variables that override those of the sandbox. The rules of an execution's env_vars apply, except that names may contain lowercase letters and start with an underscore.
    """
    stdin: NotRequired[bool | None]
    """
    Whether it can be written to.
    """
    terminal: NotRequired[TerminalSize]
    """
    Gives it a terminal.
    """
    timeout_ms: NotRequired[int | None]
    """
    Ends the process and everything that it started after this time; no limit if omitted.
    """
    wait_for_reader: NotRequired[bool | None]
    """
    Whether it waits when 1 MiB of its output has not been read, instead of losing the oldest.
    """
    working_dir: NotRequired[str | None]
    """
    The folder to start it in; the home if omitted.
    """


class NewSandbox(TypedDict):
    """
    NewSandbox is the body that makes a named sandbox.
    """

    disk_size: NotRequired[int | None]
    """
    Bytes that /home/user, /tmp and /var/tmp may use together. The maximum that plan and server allow is the default.
    """
    env_vars: NotRequired[dict[str, Any] | None]
    """
    Variables of its programs, which override those of environment and key. The rules of an execution's env_vars apply, except that names may contain lowercase letters and start with an underscore.
    """
    environment: NotRequired[str | None]
    """
    The environment of the key, which is the only one that it may use.
    """
    files_only: NotRequired[bool | None]
    """
    It begins with the snapshot's files, in a new sandbox of the key's environment: also where the memory cannot be used.
    """
    image: NotRequired[str | None]
    """
    Image, such as node:22; the image of the key's environment if omitted.
    """
    limits: NotRequired[SizeLimits]
    """
    At most the limits of the key's environment, which are the default.
    """
    name: str
    """
    1 to 64 letters, digits, dots, underscores and hyphens, beginning with a letter or digit. It is the only one of its session.
    """
    network: NotRequired[NetworkChange]
    """
    Narrows what its environment's network allows.
    """
    session: NotRequired[str | None]
    """
    The pool that it belongs to.
    """
    sleep_after_ms: NotRequired[int | None]
    """
    Without use; -1 for never, the server's if omitted.
    """
    snapshot: NotRequired[str | None]
    """
    The snapshot that it begins with, processes and all.
    """
    sub_paths: NotRequired[list[str] | None]
    """
    Narrows mounted connections for as long as it lives. Rules as in an execution's sub_paths.
    """
    timeout_ms: NotRequired[int | None]
    """
    Until it is destroyed; as long as the plan allows if omitted.
    """


class NewSession(TypedDict):
    """
    NewSession is the body that makes a session.
    """

    agent_id: str
    """
    Id or slug of an agent. The session keeps its current version.
    """
    agent_version: NotRequired[int | None]
    """
    Another version than the current one.
    """
    budget: NotRequired[SessionBudget]
    """
    Limit for all turns together.
    """
    environment_id: NotRequired[str | None]
    """
    Id or name of the agent's environment; the key's if omitted. Another one needs the scope environments.
    """
    metadata: NotRequired[dict[str, Any]]
    """
    Metadata: an object of your own.
    """
    mounts: NotRequired[list[NewMount]]
    """
    Up to 20, for an agent with the tool sandboxes.
    """
    title: NotRequired[str | None]
    """
    Its title, for people.
    """
    vault_ids: NotRequired[list[str]]
    """
    Up to 10 vaults, whose credentials the session uses: of the first one that has one for a server, or of a name.
    """
    webhook_url: NotRequired[str | None]
    """
    An https URL that Atoll notifies when the session's state changes, signed with the key's webhook secret.
    """


class NewSessionEvent(TypedDict):
    """
    NewSessionEvent is something that the client says: a message, an outcome to work for, or an answer to a call that waits for it.
    """

    approve: NotRequired[bool | None]
    """
    Of tool_confirmation: whether the call may be made.
    """
    check: NotRequired[OutcomeCheck]
    """
    Of user.define_outcome: a command that has to succeed, before a model grades if there is a rubric, too.
    """
    content: NotRequired[str | None]
    """
    Of message and tool_result: a text of up to 1 MiB.
    """
    description: NotRequired[str | None]
    """
    Of user.define_outcome: the agent's task, a text of up to 1 MiB.
    """
    files: NotRequired[dict[str, str]]
    """
    Of message and user.define_outcome: files that the agent's tools find in the working folder: text by name, such as data/in.csv. At most 100 files with files_base64, and 1 MiB.
    """
    files_base64: NotRequired[dict[str, str]]
    """
    Like files, with the contents in base64.
    """
    is_error: NotRequired[bool | None]
    """
    Of tool_result: the call has failed.
    """
    max_iterations: NotRequired[int | None]
    """
    Of user.define_outcome: the most evaluations.
    """
    model: NotRequired[str | None]
    """
    Of user.define_outcome: the model that grades; the agent's if omitted.
    """
    queue: NotRequired[bool | None]
    """
    Of message and user.define_outcome: while a turn is in progress, have this one begin after it; the answer is 202 then.
    """
    reason: NotRequired[str | None]
    """
    Of tool_confirmation: why not, which the model is told.
    """
    role: NotRequired[Literal["user"] | None]
    """
    Of message.
    """
    rubric: NotRequired[str | None]
    """
    Of user.define_outcome: the criteria by which a model grades, a text of up to 262144 characters. Either this or check is required.
    """
    tool_use_id: NotRequired[str | None]
    """
    Of tool_confirmation and tool_result: the id of the event tool_use.
    """
    type: Literal["message", "tool_confirmation", "tool_result", "user.define_outcome"]
    """
    Type, which decides the other fields.
    """


class PermissionsChange(TypedDict):
    """
    PermissionsChange changes permissions; omitted fields stay unchanged.
    """

    allow_mcp_servers: NotRequired[bool | None]
    """
    In sessions: MCP servers of the agent are asked also where network does not allow their hosts.
    """
    filesystem: NotRequired[FilesystemChange]
    """
    Which files programs may see and change.
    """
    network: NotRequired[NetworkChange]
    """
    Network access of programs.
    """
    process: NotRequired[ProcessChange]
    """
    Programs and processes that may run.
    """


class TemplateChange(TypedDict):
    """
    TemplateChange is the body that makes or replaces a template.
    """

    sandbox: NotRequired[TemplateSandbox]
    """
    If omitted, the template has not opted in.
    """


class ConfigChange(TypedDict):
    """
    ConfigChange changes an EnvironmentConfig.
    """

    base_template: NotRequired[str | None]
    """
    One of the operator's templates; the default image if omitted.
    """
    isolation: NotRequired[Literal["run", "key"] | None]
    """
    run: each execution has its own kernel. key: executions of one key use the same kernel one after another, each with separate processes, files, memory and sockets that Atoll deletes afterwards; docs/concepts/security.md lists what they share. key requires permissions without network and rules.
    """
    packages: NotRequired[PackagesChange]
    """
    Packages to install in the image, once, from the registries that the operator has configured. Setting them again has what failed tried again.
    """
    permission_profile: NotRequired[Literal["unrestricted", "standard", "restricted", "isolated"] | None]
    """
    Starts again from the rules of a profile, which permissions then change. A new environment starts from standard.
    """
    permissions: NotRequired[PermissionsChange]
    """
    Permissions of programs: network, files and processes.
    """
    resources: NotRequired[ResourcesChange]
    """
    Processor, memory and time.
    """
    type: NotRequired[Literal["cloud"] | None]
    """
    Type, which decides the other fields.
    """


class EnvironmentChange(TypedDict):
    """
    EnvironmentChange is what PATCH can change of an environment; omitted fields stay unchanged.
    """

    env_vars: NotRequired[dict[str, Any] | None]
    """
    Variables to set; others stay. Rules as in an execution's env_vars.
    """
    image: NotRequired[str | None]
    """
    A name from atoll image list.
    """
    isolation: NotRequired[Literal["run", "key"] | None]
    """
    run: each execution has its own kernel. key: executions of one key use the same kernel one after another, each with separate processes, files, memory and sockets that Atoll deletes afterwards; docs/concepts/security.md lists what they share. key requires permissions without network and rules.
    """
    limits: NotRequired[LimitsChange]
    name: NotRequired[str | None]
    """
    Its name.
    """
    packages: NotRequired[PackagesChange]
    """
    Packages to install in the image, once, from the registries that the operator has configured. Setting them again has what failed tried again.
    """
    permission_profile: NotRequired[Literal["unrestricted", "standard", "restricted", "isolated"] | None]
    """
    Begins anew with the rules of a profile, which permissions then change.
    """
    permissions: NotRequired[PermissionsChange]
    """
    Rules of network, file system and processes. A new environment has no network, and nothing else restricted.
    """
    secret_hosts: NotRequired[dict[str, Any] | None]
    """
    Binds secrets to hosts; others stay as they are. The program gets a placeholder, which the network replaces in requests by HTTPS to these hosts alone. Names such as api.example.com, or *.example.com for all below one; an empty list has programs get the secret itself.
    """
    secrets: NotRequired[dict[str, Any] | None]
    """
    Secret variables to set; others stay. At least 8 characters each. They are stored encrypted, kept out of output and never shown.
    """
    unset: NotRequired[list[str] | None]
    """
    Names of variables and secrets to take away.
    """


class NewOwnEnvironment(TypedDict):
    """
    NewOwnEnvironment is the body that makes an environment.
    """

    config: NotRequired[ConfigChange]
    """
    Its resources and permissions.
    """
    name: str
    """
    Its name.
    """


class OwnEnvironmentChange(TypedDict):
    """
    OwnEnvironmentChange is what PATCH can change of one; omitted fields stay unchanged.
    """

    config: NotRequired[ConfigChange]
    """
    Its resources and permissions.
    """
    name: NotRequired[str | None]
    """
    Its name.
    """
