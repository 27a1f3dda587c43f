-- The schema of version 0.1.0. Times are microseconds since 1970 in UTC, so that both engines keep
-- the same values. seq is the order of creation.

-- +goose Up
-- Tenants, their plans, environments and keys.
CREATE TABLE plans (
    seq                   INTEGER PRIMARY KEY AUTOINCREMENT,
    name                  TEXT NOT NULL UNIQUE,
    max_cpu               REAL NOT NULL,
    max_memory            INTEGER NOT NULL,
    concurrency           INTEGER NOT NULL,
    max_timeout           INTEGER NOT NULL, -- microseconds
    streaming             INTEGER NOT NULL,
    async                 INTEGER NOT NULL,
    max_output            INTEGER NOT NULL,
    built_in              INTEGER NOT NULL,
    max_threads           INTEGER NOT NULL DEFAULT 0,
    max_thread_size       INTEGER NOT NULL DEFAULT 0, -- bytes
    max_sandboxes         INTEGER NOT NULL DEFAULT 0,
    max_sandbox_memory    INTEGER NOT NULL DEFAULT 0, -- bytes
    max_sandbox_disk      INTEGER NOT NULL DEFAULT 0, -- bytes
    max_sandbox_life      INTEGER NOT NULL DEFAULT 0, -- microseconds
    max_snapshots         INTEGER NOT NULL DEFAULT 0,
    max_snapshot_size     INTEGER NOT NULL DEFAULT 0, -- bytes of all snapshots together
    -- Rates of requests and uploads; 0 for no limit. The server writes the built-in plans when it starts.
    max_request_rate      INTEGER NOT NULL DEFAULT 0, -- requests a second
    max_key_request_rate  INTEGER NOT NULL DEFAULT 0,
    max_upload_rate       INTEGER NOT NULL DEFAULT 0, -- bytes a second
    max_key_upload_rate   INTEGER NOT NULL DEFAULT 0,
    -- Stored output and returned files of ended executions.
    max_outputs           INTEGER NOT NULL DEFAULT 0, -- bytes
    max_response_rate     INTEGER NOT NULL DEFAULT 0, -- responses a minute, for each model
    max_key_response_rate INTEGER NOT NULL DEFAULT 0,
    max_token_rate        INTEGER NOT NULL DEFAULT 0, -- tokens a minute, for each model
    max_key_token_rate    INTEGER NOT NULL DEFAULT 0,
    -- Isolation of kernels: 'key' lets executions of one key reuse a kernel, '' does not. Both plan and
    -- tenant must allow it.
    key_isolation         INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE tenants (
    seq                   INTEGER PRIMARY KEY AUTOINCREMENT,
    id                    TEXT NOT NULL UNIQUE,
    name                  TEXT NOT NULL UNIQUE,
    plan                  TEXT NOT NULL REFERENCES plans (name),
    sandbox_enabled       INTEGER NOT NULL,
    tier                  TEXT NOT NULL CHECK (tier IN ('standard', 'regulated')),
    monthly_credits       REAL NOT NULL,
    redaction_off         TEXT NOT NULL, -- JSON, like every list and map here
    audit_days            INTEGER NOT NULL CHECK (audit_days BETWEEN 1 AND 180),
    daily_cap             INTEGER NULL,
    hourly_cap            INTEGER NULL,
    created_at            INTEGER NOT NULL,
    disabled_at           INTEGER NULL,
    -- What programs may reach and do, as JSON; '' for no network and no other restriction. profile is
    -- the set of rules that the environment started with, base_template the requested name of its image,
    -- timeout the longest execution in microseconds (0 for the plan's). network_enabled permits networks
    -- for the whole tenant.
    network_enabled       INTEGER NOT NULL DEFAULT 0,
    -- Whether the tenant's environments may run programs as root of their sandbox.
    root_enabled          INTEGER NOT NULL DEFAULT 0,
    monthly_cost          REAL NOT NULL DEFAULT 0, -- US dollars
    -- Isolation of kernels: 'key' lets executions of one key reuse a kernel, '' does not. Both plan and
    -- tenant must allow it.
    key_isolation_enabled INTEGER NOT NULL DEFAULT 0,
    -- When a tenant's deletion was requested, and when it finished: only the audit trail remains. The
    -- row stays, because permanent policy events refer to it.
    deleted_at            INTEGER NULL,
    erased_at             INTEGER NULL,
    audit_text            INTEGER NOT NULL DEFAULT 0,
    CHECK (tier <> 'regulated' OR NOT sandbox_enabled)
);
CREATE INDEX tenants_plan ON tenants (plan);
CREATE INDEX tenants_deleted ON tenants (deleted_at) WHERE deleted_at IS NOT NULL AND erased_at IS NULL;

CREATE TABLE environments (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL REFERENCES tenants (id),
    name          TEXT NOT NULL,
    image         TEXT NOT NULL,
    limits        TEXT NOT NULL,
    env           TEXT NOT NULL,
    secrets       BLOB NULL, -- sealed
    created_at    INTEGER NOT NULL,
    -- What programs may reach and do, as JSON; '' for no network and no other restriction. profile is
    -- the set of rules that the environment started with, base_template the requested name of its image,
    -- timeout the longest execution in microseconds (0 for the plan's). network_enabled permits networks
    -- for the whole tenant.
    permissions   TEXT NOT NULL DEFAULT '',
    profile       TEXT NOT NULL DEFAULT '',
    base_template TEXT NOT NULL DEFAULT '',
    timeout       INTEGER NOT NULL DEFAULT 0,
    -- Secrets bound to hosts, with their hosts and placeholders.
    bound         BLOB NULL, -- sealed JSON; NULL for none
    -- Sessions have their own budget. allow_mcp lets the server call MCP servers for the environment's sessions.
    allow_mcp     INTEGER NOT NULL DEFAULT 0,
    packages      TEXT NOT NULL DEFAULT '', -- JSON; '' for none
    -- Isolation of kernels: 'key' lets executions of one key reuse a kernel, '' does not. Both plan and
    -- tenant must allow it.
    isolation     TEXT NOT NULL DEFAULT '',
    UNIQUE (tenant, name)
);
CREATE INDEX environments_packages ON environments (id) WHERE packages <> '';

CREATE TABLE keys (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT NOT NULL UNIQUE,
    tenant         TEXT NOT NULL REFERENCES tenants (id),
    environment    TEXT NULL REFERENCES environments (id) ON DELETE SET NULL,
    name           TEXT NOT NULL,
    hash           BLOB NOT NULL UNIQUE,
    hint           TEXT NOT NULL,
    scopes         TEXT NOT NULL,
    webhook_url    TEXT NOT NULL,
    webhook_secret BLOB NULL, -- sealed
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NULL,
    revoked_at     INTEGER NULL,
    -- Variables of a key override those of the environment.
    env            TEXT NOT NULL DEFAULT '', -- JSON; '' for none
    secrets        BLOB NULL, -- sealed
    -- Secrets bound to hosts, with their hosts and placeholders.
    bound          BLOB NULL, -- likewise
    UNIQUE (tenant, name)
);
CREATE INDEX keys_environment ON keys (environment);

CREATE TABLE templates (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant  TEXT NOT NULL REFERENCES tenants (id),
    name    TEXT NOT NULL,
    sandbox TEXT NOT NULL CHECK (sandbox IN ('', 'default-public', 'internal-only')),
    UNIQUE (tenant, name)
);

CREATE TABLE policy_events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT NOT NULL REFERENCES tenants (id),
    actor      TEXT NOT NULL,
    field      TEXT NOT NULL,
    old_value  TEXT NOT NULL,
    new_value  TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX policy_events_tenant ON policy_events (tenant);

-- Executions. Indexes include created_at and trace_id because lists are newest first and continue
-- from a position in that order.
CREATE TABLE executions (
    seq              INTEGER PRIMARY KEY,
    trace_id         TEXT NOT NULL UNIQUE,
    tenant           TEXT NOT NULL,
    key_id           TEXT NOT NULL,
    environment      TEXT NOT NULL,
    source           TEXT NOT NULL,
    delivery         TEXT NOT NULL,
    agent            TEXT NOT NULL,
    turn             TEXT NOT NULL,
    language         TEXT NOT NULL,
    timeout          INTEGER NOT NULL, -- microseconds
    metadata         TEXT NOT NULL, -- JSON; '' for none
    code_sha256      BLOB NOT NULL,
    cpu              REAL NOT NULL,
    memory           INTEGER NOT NULL,
    webhook_url      TEXT NOT NULL,
    webhook_secret   BLOB NULL, -- sealed
    webhook_status   TEXT NOT NULL,
    status           TEXT NOT NULL,
    stdout_bytes     INTEGER NOT NULL DEFAULT 0,
    stderr_bytes     INTEGER NOT NULL DEFAULT 0,
    stdout_truncated INTEGER NOT NULL DEFAULT 0,
    stderr_truncated INTEGER NOT NULL DEFAULT 0,
    stored           INTEGER NOT NULL DEFAULT 0,
    output_truncated INTEGER NOT NULL DEFAULT 0,
    last_seq         INTEGER NOT NULL DEFAULT 0,
    exit_code        INTEGER NOT NULL DEFAULT 0,
    error            TEXT NOT NULL DEFAULT '',
    not_started      INTEGER NOT NULL DEFAULT 0,
    peak_memory      INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    completed_at     INTEGER NULL,
    thread           TEXT NOT NULL DEFAULT '',
    mounts           TEXT NOT NULL DEFAULT '', -- JSON; '' for none
    start            TEXT NOT NULL DEFAULT '', -- warm or cold: whether a ready sandbox ran it; '' if unknown
    hint             TEXT NOT NULL DEFAULT '', -- the next step for the caller of a failed execution; '' for none
    -- The files that the execution returned, as JSON; '' for none. The blob store has their contents.
    files            TEXT NOT NULL DEFAULT '',
    -- Stored output and returned files of ended executions.
    kept             INTEGER NOT NULL DEFAULT 0, -- bytes
    -- The run whose tool call this is. Deleting the run deletes the execution.
    run              TEXT NOT NULL DEFAULT '', -- '' for none
    windows          INTEGER NOT NULL DEFAULT 0, -- sandboxes of the turn that started with this execution, for charges
    -- Isolation of kernels: 'key' lets executions of one key reuse a kernel, '' does not. Both plan and
    -- tenant must allow it.
    isolation        TEXT NOT NULL DEFAULT '',
    by_agent         TEXT NOT NULL DEFAULT '', -- '' unless an agent made the call
    by_session       TEXT NOT NULL DEFAULT '',
    by_turn          TEXT NOT NULL DEFAULT '',
    by_tool          TEXT NOT NULL DEFAULT '',
    CHECK ((status = 'running') = (completed_at IS NULL))
);
CREATE INDEX executions_newest ON executions (tenant, created_at DESC, trace_id DESC);
CREATE INDEX executions_key ON executions (tenant, key_id, created_at DESC, trace_id DESC);
-- Every admission counts the running executions.
CREATE INDEX executions_running ON executions (tenant, created_at DESC, trace_id DESC) WHERE status = 'running';
-- The common statuses and languages need no index; the rare ones do.
CREATE INDEX executions_status ON executions (tenant, status, created_at DESC, trace_id DESC)
    WHERE status IN ('failed', 'timeout', 'oom', 'blocked', 'cancelled');
CREATE INDEX executions_language ON executions (tenant, language, created_at DESC, trace_id DESC)
    WHERE language IN ('node', 'bash');
CREATE INDEX executions_ended ON executions (completed_at) WHERE completed_at IS NOT NULL;
-- A thread runs one execution at a time, whichever server admits it.
CREATE UNIQUE INDEX executions_thread_running ON executions (tenant, thread) WHERE thread <> '' AND status = 'running';
CREATE INDEX executions_thread ON executions (tenant, thread, created_at DESC, trace_id DESC) WHERE thread <> '';
CREATE INDEX executions_run ON executions (run) WHERE run <> '';

CREATE TABLE execution_metadata (
    tenant     TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    trace_id   TEXT NOT NULL,
    PRIMARY KEY (tenant, key, value, created_at DESC, trace_id DESC)
) WITHOUT ROWID;

CREATE TABLE execution_outputs (
    seq    INTEGER PRIMARY KEY, -- of the execution
    stdout BLOB NOT NULL,
    stderr BLOB NOT NULL
);

CREATE TABLE idempotency_keys (
    tenant     TEXT NOT NULL,
    key        TEXT NOT NULL,
    body       BLOB NOT NULL,
    trace_id   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_trace ON idempotency_keys (trace_id);

-- The audit trail. The database itself protects it: programs add rows and never change them. A row can
-- be deleted once a seal covers it and its retention has passed by the database's clock.
CREATE TABLE audit_rows (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    trace_id         TEXT NOT NULL,
    tenant           TEXT NOT NULL,
    key_id           TEXT NOT NULL,
    environment      TEXT NOT NULL,
    source           TEXT NOT NULL,
    agent            TEXT NOT NULL,
    session_id       TEXT NOT NULL,
    language         TEXT NOT NULL,
    code_sha256      BLOB NOT NULL,
    exit_status      TEXT NOT NULL CHECK (exit_status IN ('ok', 'error', 'timeout', 'oom', 'cap_exceeded', 'provisioning', 'cancelled')),
    exit_code        INTEGER NOT NULL,
    failure_reason   TEXT NOT NULL,
    duration_ms      INTEGER NOT NULL,
    stdout_bytes     INTEGER NOT NULL,
    stderr_bytes     INTEGER NOT NULL,
    stdout_truncated INTEGER NOT NULL,
    stderr_truncated INTEGER NOT NULL,
    peak_memory      INTEGER NOT NULL,
    outbound_hosts   TEXT NOT NULL, -- JSON; '' for none
    metadata         TEXT NOT NULL, -- JSON; '' for none
    retention_days   INTEGER NOT NULL CHECK (retention_days BETWEEN 1 AND 180),
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL GENERATED ALWAYS AS (created_at + retention_days * 86400000000) STORED,
    mounts           TEXT NOT NULL DEFAULT '',
    turn             TEXT NOT NULL DEFAULT '', -- '' unless a model made the call
    sandbox          TEXT NOT NULL DEFAULT '',
    thread           TEXT NOT NULL DEFAULT '',
    credits          REAL NOT NULL DEFAULT 0,
    cost             INTEGER NOT NULL DEFAULT 0 -- millionths of a millionth of a US dollar
);
CREATE INDEX audit_rows_newest ON audit_rows (tenant, created_at DESC, id DESC);
CREATE INDEX audit_rows_trace ON audit_rows (trace_id);
CREATE INDEX audit_rows_agent ON audit_rows (tenant, agent, created_at DESC, id DESC) WHERE agent <> '';
CREATE INDEX audit_rows_session ON audit_rows (tenant, session_id, created_at DESC, id DESC) WHERE session_id <> '';
CREATE INDEX audit_rows_key ON audit_rows (tenant, key_id, created_at DESC, id DESC);
CREATE INDEX audit_rows_turn ON audit_rows (tenant, turn, created_at DESC, id DESC) WHERE turn <> '';
CREATE INDEX audit_rows_sandbox ON audit_rows (tenant, sandbox, created_at DESC, id DESC) WHERE sandbox <> '';
CREATE INDEX audit_rows_thread ON audit_rows (tenant, thread, created_at DESC, id DESC) WHERE thread <> '';

CREATE TABLE audit_seals (
    tenant     TEXT NOT NULL,
    number     INTEGER NOT NULL,
    row_count  INTEGER NOT NULL,
    previous   BLOB NOT NULL,
    digests    BLOB NOT NULL,
    expires    BLOB NOT NULL,
    hash       BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, number)
) WITHOUT ROWID;

-- The seal that covers a row, and the row's position in it. expires_at is a copy, so that appending a
-- row does not update an index on it.
CREATE TABLE audit_members (
    id         INTEGER NOT NULL PRIMARY KEY,
    tenant     TEXT NOT NULL,
    number     INTEGER NOT NULL,
    place      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    FOREIGN KEY (tenant, number) REFERENCES audit_seals (tenant, number)
);
CREATE UNIQUE INDEX audit_members_place ON audit_members (tenant, number, place);
CREATE INDEX audit_members_expires ON audit_members (expires_at);

-- Rows that no seal covers yet.
CREATE TABLE audit_unsealed (
    tenant TEXT NOT NULL,
    id     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- The usage ledger, its daily sums, which budgets are checked against, and the counters of circuit breakers.
CREATE TABLE usage_entries (
    trace_id  TEXT NOT NULL,
    tenant    TEXT NOT NULL,
    key_id    TEXT NOT NULL,
    source    TEXT NOT NULL,
    seconds   REAL NOT NULL,
    cpu       REAL NOT NULL,
    memory    INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    sessions  INTEGER NOT NULL,
    credits   REAL NOT NULL,
    at        INTEGER NOT NULL,
    -- 0 for the running time of a sandbox, which is no call.
    calls     INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant, at, trace_id)
) WITHOUT ROWID;

CREATE TABLE usage_days (
    tenant      TEXT NOT NULL,
    day         INTEGER NOT NULL, -- start of the day
    source      TEXT NOT NULL,
    calls       INTEGER NOT NULL,
    sessions    INTEGER NOT NULL,
    seconds     REAL NOT NULL,
    cpu_seconds REAL NOT NULL,
    gib_seconds REAL NOT NULL,
    bytes_out   INTEGER NOT NULL,
    credits     REAL NOT NULL,
    entries     INTEGER NOT NULL DEFAULT 0,
    -- Stored output and returned files of ended executions.
    kept        INTEGER NOT NULL DEFAULT 0, -- bytes of executions that are not deleted
    PRIMARY KEY (tenant, day, source)
) WITHOUT ROWID;

CREATE TABLE breaker_counts (
    tenant    TEXT NOT NULL,
    dimension TEXT NOT NULL,
    agent     TEXT NOT NULL, -- '' for the tenant's own
    starts_at INTEGER NOT NULL, -- start of the window
    calls     INTEGER NOT NULL,
    PRIMARY KEY (tenant, dimension, agent, starts_at)
) WITHOUT ROWID;

CREATE TABLE breaker_caps (
    only_row     INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    tenant_daily INTEGER NOT NULL,
    agent_hourly INTEGER NOT NULL
);

-- The fingerprint of the key that seals the secrets in these records, in hexadecimal. A server with
-- another key does not start.
CREATE TABLE secret_key (
    only_row    INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    fingerprint TEXT NOT NULL
);

-- Threads: home directories that outlive their executions. The blob store has the files; state names
-- the current version.
CREATE TABLE threads (
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL,
    state       TEXT NOT NULL, -- '' before the first save
    bytes       INTEGER NOT NULL,
    files       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NULL, -- NULL before the first save
    expires_at  INTEGER NULL,
    lease       TEXT NOT NULL, -- the execution that uses the thread; '' for none
    lease_until INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX threads_expiry ON threads (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX threads_idle ON threads (updated_at) WHERE expires_at IS NULL;

-- Tenants with saved states that no thread refers to.
CREATE TABLE thread_litter (
    tenant TEXT NOT NULL PRIMARY KEY,
    last   INTEGER NOT NULL
);

-- Connections to storage, and grants that let environments and keys mount them.
CREATE TABLE connections (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL REFERENCES tenants (id),
    slug        TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('s3', 'gcs', 'azure', 'volume')),
    prefix      TEXT NOT NULL,
    read_only   INTEGER NOT NULL,
    target      TEXT NOT NULL, -- JSON
    credentials BLOB NULL, -- sealed
    created_at  INTEGER NOT NULL,
    UNIQUE (tenant, slug)
);

CREATE TABLE grants (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL REFERENCES tenants (id),
    connection  TEXT NOT NULL REFERENCES connections (id),
    environment TEXT NULL REFERENCES environments (id) ON DELETE CASCADE,
    key_id      TEXT NULL REFERENCES keys (id) ON DELETE CASCADE,
    prefix      TEXT NOT NULL,
    read_only   INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    CHECK ((environment IS NULL) <> (key_id IS NULL)),
    UNIQUE (environment, connection),
    UNIQUE (key_id, connection)
);
CREATE INDEX grants_connection ON grants (connection);

-- Named sandboxes. Their files and memory are on the executor's machine. A name is free again when its
-- sandbox is destroyed.
CREATE TABLE sandboxes (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    environment   TEXT NOT NULL,
    session       TEXT NOT NULL,
    name          TEXT NOT NULL,
    key_id        TEXT NOT NULL,
    executor      TEXT NOT NULL,
    image         TEXT NOT NULL,
    asked         TEXT NOT NULL, -- the requested image name; '' for the environment's
    limits        TEXT NOT NULL,
    memory        INTEGER NOT NULL, -- copy from limits, for sums
    disk          INTEGER NOT NULL,
    permissions   TEXT NOT NULL,
    connected     INTEGER NOT NULL,
    env           BLOB NULL, -- sealed
    state         TEXT NOT NULL CHECK (state IN ('creating', 'running', 'sleeping', 'lost', 'destroyed')),
    sleep         TEXT NOT NULL CHECK (sleep IN ('', 'frozen', 'disk', 'stored')),
    detail        TEXT NOT NULL,
    sleep_after   INTEGER NOT NULL, -- microseconds; negative for never
    created_at    INTEGER NOT NULL,
    used_at       INTEGER NOT NULL,
    expires_at    INTEGER NULL,
    metered_at    INTEGER NOT NULL, -- the ledger has its running time up to here
    ended_at      INTEGER NULL, -- when it was destroyed
    kept          TEXT NOT NULL DEFAULT '', -- its location in the blob store; '' for none
    bereft        INTEGER NOT NULL DEFAULT 0, -- its environment was deleted
    -- Mounted storage of the sandbox, or of the sandbox in the snapshot's memory.
    mounts        TEXT NOT NULL DEFAULT '', -- a list, without credentials; '' for none
    -- When and why Atoll ended all programs of the sandbox. Clients ask for it later, also through other servers.
    endings       TEXT NOT NULL DEFAULT '', -- a list, oldest first; '' for none
    -- Warns that a sandbox runs another version of the image than the caller requested.
    image_warning TEXT NOT NULL DEFAULT '',
    -- The size that the caller requested for a sandbox; 0 selects the environment's limit. A restart
    -- keeps the size.
    own_cpu       REAL NOT NULL DEFAULT 0,
    own_memory    INTEGER NOT NULL DEFAULT 0,
    own_disk      INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sandboxes_name ON sandboxes (tenant, environment, session, name) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_tenant ON sandboxes (tenant) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_executor ON sandboxes (executor, seq) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_ended ON sandboxes (ended_at) WHERE ended_at IS NOT NULL;

-- Previews: open ports of named sandboxes.
CREATE TABLE previews (
    sandbox    TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    port       INTEGER NOT NULL,
    seed       BLOB NOT NULL, -- with the installation's secret key, determines the name
    hash       BLOB NOT NULL, -- hash of the name
    created_at INTEGER NOT NULL,
    PRIMARY KEY (sandbox, port)
);
CREATE UNIQUE INDEX previews_hash ON previews (hash);

-- Snapshots of sandboxes. The blob store has their files and memory.
CREATE TABLE snapshots (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    environment TEXT NOT NULL,
    key_id      TEXT NOT NULL,
    executor    TEXT NOT NULL,
    sandbox     TEXT NOT NULL,
    session     TEXT NOT NULL,
    name        TEXT NOT NULL,
    image       TEXT NOT NULL,
    asked       TEXT NOT NULL,
    limits      TEXT NOT NULL,
    permissions TEXT NOT NULL,
    connected   INTEGER NOT NULL,
    env         BLOB NULL, -- sealed
    sleep_after INTEGER NOT NULL, -- microseconds; negative for never
    kept        TEXT NOT NULL, -- its location in the blob store; '' while the snapshot is being made
    bytes       INTEGER NOT NULL, -- stored bytes, for sums
    detail      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NULL,
    -- Mounted storage of the sandbox, or of the sandbox in the snapshot's memory.
    mounts      TEXT NOT NULL DEFAULT '',
    -- The disk limit of the sandbox that a snapshot came from; 0 for no limit. Sandboxes restored from the
    -- snapshot keep it.
    disk_limit  INTEGER NOT NULL DEFAULT 0,
    -- The size that the caller requested for the sandbox of a snapshot; 0 selects the environment's
    -- limit. A sandbox restored from the snapshot keeps it when it restarts.
    own_cpu     REAL NOT NULL DEFAULT 0,
    own_memory  INTEGER NOT NULL DEFAULT 0,
    own_disk    INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX snapshots_tenant ON snapshots (tenant, environment, created_at, id);
CREATE INDEX snapshots_expires ON snapshots (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX snapshots_making ON snapshots (executor) WHERE kept = '';

-- Tenants with stored sandboxes in the blob store that no record refers to.
CREATE TABLE snapshot_litter (
    tenant TEXT NOT NULL PRIMARY KEY,
    last   INTEGER NOT NULL
);

-- The oldest schema version whose programs can use this database. A migration that older programs cannot
-- use raises it.
CREATE TABLE schema_compat (
    oldest BIGINT NOT NULL
);

-- Models of providers that requests can name.
CREATE TABLE models (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL UNIQUE,
    provider     TEXT NOT NULL,
    upstream     TEXT NOT NULL,
    base_url     TEXT NOT NULL,
    api_key      BLOB NULL, -- sealed
    prices       TEXT NOT NULL, -- JSON, millionths of a US dollar for a million tokens
    context      INTEGER NOT NULL, -- tokens; 0 for unknown
    max_output   INTEGER NOT NULL,
    capabilities TEXT NOT NULL, -- JSON
    all_tenants  INTEGER NOT NULL,
    tenants      TEXT NOT NULL, -- JSON, ids
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    plans        TEXT NOT NULL DEFAULT '' -- JSON, names
);

-- Runs: turns of a model with tools. The run's log has its contents. The row says which process drives
-- the run, and until when.
CREATE TABLE runs (
    id          TEXT NOT NULL PRIMARY KEY,
    tenant      TEXT NOT NULL,
    key_id      TEXT NOT NULL,
    environment TEXT NOT NULL,
    sandbox     TEXT NOT NULL,
    keep        INTEGER NOT NULL, -- how long the sandbox lives after the run, in microseconds
    status      TEXT NOT NULL,
    seq         INTEGER NOT NULL, -- number of the last log entry
    holder      TEXT NOT NULL, -- the process that drives or drove it; '' for none
    epoch       INTEGER NOT NULL, -- number of the last lease
    due_at      INTEGER, -- when any process may take the run over; NULL after its end
    cancelled   INTEGER NOT NULL DEFAULT 0, -- whether a client cancelled the run
    created_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    expires_at  INTEGER, -- NULL while it runs
    session     TEXT NOT NULL DEFAULT '', -- '' for none
    top         TEXT NOT NULL DEFAULT '' -- the run that started the hand-off; '' for none
);
CREATE INDEX runs_due ON runs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_holder ON runs (holder) WHERE due_at IS NOT NULL;
CREATE INDEX runs_tenant ON runs (tenant) WHERE due_at IS NOT NULL;
CREATE INDEX runs_expiry ON runs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX runs_session ON runs (session) WHERE session <> '';
CREATE INDEX runs_top ON runs (top) WHERE top <> '';
CREATE INDEX runs_sandbox ON runs (sandbox);

CREATE TABLE run_entries (
    run   TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq   INTEGER NOT NULL,
    entry BLOB NOT NULL, -- encrypted
    PRIMARY KEY (run, seq)
);

-- Tenants' own keys for models.
CREATE TABLE model_keys (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL REFERENCES tenants (id),
    model      TEXT NOT NULL, -- id; models that a file declares have no row
    base_url   TEXT NOT NULL, -- Atoll sends the key to this URL only
    api_key    BLOB NOT NULL, -- sealed
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, model)
);

-- The cost of runs: a row for each answer of a model, call of a tool and period of a sandbox, and daily sums.
CREATE TABLE charges (
    tenant      TEXT NOT NULL,
    at          INTEGER NOT NULL,
    id          TEXT NOT NULL, -- the run, the log entry, and a number
    key_id      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL, -- of the model or tool
    calls       INTEGER NOT NULL,
    input       INTEGER NOT NULL, -- tokens, like the next four columns
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost        INTEGER NOT NULL, -- millionths of a millionth of a US dollar
    agent       TEXT NOT NULL DEFAULT '', -- '' for a response
    session     TEXT NOT NULL DEFAULT '',
    estimated   INTEGER NOT NULL DEFAULT 0, -- tokens of input and output
    PRIMARY KEY (tenant, at, id)
) WITHOUT ROWID;

CREATE TABLE charge_days (
    tenant      TEXT NOT NULL,
    day         INTEGER NOT NULL, -- start of the day
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    entries     INTEGER NOT NULL,
    calls       INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    estimated   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, day, kind, name)
) WITHOUT ROWID;

-- Agents, and their versions, which never change.
CREATE TABLE agents (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    slug        TEXT NOT NULL, -- '' for none
    visibility  TEXT NOT NULL,
    version     INTEGER NOT NULL, -- the current version
    created_at  INTEGER NOT NULL,
    archived_at INTEGER NULL
);
CREATE UNIQUE INDEX agents_slug ON agents (tenant, slug) WHERE slug <> '';
CREATE INDEX agents_tenant ON agents (tenant, seq);

CREATE TABLE agent_versions (
    agent      TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    version    INTEGER NOT NULL,
    definition BLOB NOT NULL, -- encrypted with the tenant's key
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent, version)
);

-- Sessions: conversations with agents. Each turn is a run, which adds events to its session.
CREATE TABLE sessions (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    tenant          TEXT NOT NULL,
    key_id          TEXT NOT NULL,
    environment     TEXT NOT NULL,
    agent           TEXT NOT NULL,
    agent_version   INTEGER NOT NULL,
    sandbox         TEXT NOT NULL,
    about           BLOB NOT NULL, -- title and metadata, encrypted with the tenant's key
    run             TEXT NOT NULL, -- the current turn; '' for none
    events          INTEGER NOT NULL, -- seq of the last event
    waits           INTEGER NOT NULL, -- number of calls that wait for the client
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    archived_at     INTEGER NULL,
    -- Sessions have their own budget. allow_mcp lets the server call MCP servers for the environment's sessions.
    budget_tokens   INTEGER NOT NULL DEFAULT 0,
    budget_cost     INTEGER NOT NULL DEFAULT 0,
    used_input      INTEGER NOT NULL DEFAULT 0,
    used_output     INTEGER NOT NULL DEFAULT 0,
    used_cost       INTEGER NOT NULL DEFAULT 0,
    -- When calls stop waiting for the client.
    waits_until     INTEGER NULL,
    webhook         BLOB NULL, -- encrypted with the tenant's key
    vaults          TEXT NOT NULL DEFAULT '', -- JSON, ids
    speaker         TEXT NOT NULL DEFAULT '', -- '' for the agent itself
    speaker_version INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_tenant ON sessions (tenant, seq);
CREATE INDEX sessions_agent ON sessions (tenant, agent, seq);
CREATE INDEX sessions_waits ON sessions (waits_until) WHERE waits_until IS NOT NULL;

CREATE TABLE session_events (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    run     TEXT NOT NULL,
    type    TEXT NOT NULL,
    talk    INTEGER NOT NULL, -- 0 if not part of the conversation, 2 if the conversation may start here
    at      INTEGER NOT NULL,
    event   BLOB NOT NULL, -- encrypted with the tenant's key
    PRIMARY KEY (session, seq)
);
CREATE INDEX session_events_type ON session_events (session, type, seq);

-- Calls of the last turn that wait for the client or were approved.
CREATE TABLE session_calls (
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq      INTEGER NOT NULL, -- seq of the call's event
    call     TEXT NOT NULL,
    tool     TEXT NOT NULL,
    approve  INTEGER NOT NULL, -- 1 if the call waits for a decision, 0 if it waits for a result
    answered INTEGER NOT NULL, -- 1 if approved
    PRIMARY KEY (session, seq)
);

-- Queued turns, which start when the turns before them end.
CREATE TABLE session_queue (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run     TEXT NOT NULL UNIQUE,
    turn    BLOB NOT NULL -- encrypted with the tenant's key
);
CREATE INDEX session_queue_session ON session_queue (session, seq);

-- Skills, and their versions with files, which never change.
CREATE TABLE skills (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    title       BLOB NOT NULL, -- encrypted with the tenant's key
    versions    INTEGER NOT NULL, -- number of versions ever created
    created_at  INTEGER NOT NULL,
    archived_at INTEGER NULL,
    UNIQUE (tenant, name)
);
CREATE INDEX skills_tenant ON skills (tenant, seq);

CREATE TABLE skill_versions (
    id         TEXT NOT NULL PRIMARY KEY,
    skill      TEXT NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL, -- from 1, never reused
    about      BLOB NOT NULL, -- front matter and names of files, encrypted with the tenant's key
    content    BLOB NOT NULL, -- a zip archive of the files, likewise
    bytes      INTEGER NOT NULL, -- size of content
    created_at INTEGER NOT NULL,
    UNIQUE (skill, number)
);

-- Vaults and their credentials.
CREATE TABLE vaults (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    about       BLOB NOT NULL, -- name and metadata, encrypted with the tenant's key
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER NULL
);
CREATE INDEX vaults_tenant ON vaults (tenant, seq);

CREATE TABLE vault_credentials (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    vault       TEXT NOT NULL REFERENCES vaults (id) ON DELETE CASCADE,
    kind        TEXT NOT NULL,
    identity    BLOB NOT NULL, -- keyed digest of the credential's target
    about       BLOB NOT NULL, -- the public part, encrypted with the tenant's key
    secret      BLOB NULL, -- likewise; NULL after archiving
    version     INTEGER NOT NULL,
    leased      INTEGER NOT NULL DEFAULT 0, -- a server refreshes it until then
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER NULL
);
CREATE INDEX vault_credentials_vault ON vault_credentials (vault, seq);
CREATE UNIQUE INDEX vault_credentials_identity ON vault_credentials (vault, identity) WHERE archived_at IS NULL;

-- Hand-offs: threads of sessions with their events.
CREATE TABLE session_threads (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    session       TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn          TEXT NOT NULL, -- the run of the session's turn
    parent        TEXT NOT NULL, -- the delegating thread; '' for the session's own conversation
    agent         TEXT NOT NULL,
    agent_version INTEGER NOT NULL,
    name          BLOB NOT NULL, -- encrypted with the tenant's key
    status        TEXT NOT NULL, -- running, idle, terminated
    events        INTEGER NOT NULL, -- seq of the last event
    used_input    INTEGER NOT NULL,
    used_output   INTEGER NOT NULL,
    used_cost     INTEGER NOT NULL, -- all three include the threads below
    created_at    INTEGER NOT NULL,
    ended_at      INTEGER NULL,
    -- kept has what a waiting thread continues with.
    archived_at   INTEGER NULL,
    kept          BLOB NULL -- encrypted with the tenant's key
);
CREATE INDEX session_threads_session ON session_threads (session, seq);
CREATE INDEX session_threads_turn ON session_threads (turn);

CREATE TABLE session_thread_events (
    thread TEXT NOT NULL REFERENCES session_threads (id) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    run    TEXT NOT NULL,
    type   TEXT NOT NULL,
    at     INTEGER NOT NULL,
    event  BLOB NOT NULL, -- encrypted with the tenant's key
    PRIMARY KEY (thread, seq)
);

-- Images with the packages of environments, and each executor's progress in building them.
CREATE TABLE package_builds (
    ref        TEXT NOT NULL, -- name of the image with the packages
    executor   TEXT NOT NULL,
    image      TEXT NOT NULL, -- its name in the executor's image store
    state      TEXT NOT NULL,
    log        TEXT NOT NULL, -- JSON: the last lines
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (ref, executor)
) WITHOUT ROWID;

-- Files that tenants uploaded. The blob store has their contents.
CREATE TABLE files (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    about      BLOB NOT NULL, -- name and media type, encrypted with the tenant's key
    bytes      INTEGER NOT NULL, -- during the upload, the bytes known so far
    state      TEXT NOT NULL, -- uploading, there or deleted (the blob store may still have its bytes)
    created_at INTEGER NOT NULL,
    expires_at INTEGER NULL
);
CREATE INDEX files_tenant ON files (tenant, seq);
CREATE INDEX files_gone ON files (state, created_at) WHERE state <> 'there';
CREATE INDEX files_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;

-- Tokens are short-lived and have fewer rights than the key that created them.
CREATE TABLE tokens (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    tenant          TEXT NOT NULL,
    key_id          TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    hash            BLOB NOT NULL UNIQUE,
    scopes          TEXT NOT NULL,
    operations      TEXT NOT NULL, -- '' for all operations that tokens may call
    session         TEXT NOT NULL, -- '' for any
    sandbox         TEXT NOT NULL, -- id; '' for any
    sandbox_session TEXT NOT NULL,
    sandbox_name    TEXT NOT NULL,
    origins         TEXT NOT NULL, -- '' for any
    max_cost        INTEGER NOT NULL, -- millionths of a millionth of a US dollar; 0 for no bound
    cost            INTEGER NOT NULL,
    max_executions  INTEGER NOT NULL, -- 0 for no bound
    executions      INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER NULL,
    -- What a token may do in a session besides sending messages.
    rights          TEXT NOT NULL DEFAULT ''
);
CREATE INDEX tokens_key ON tokens (key_id, seq);
CREATE INDEX tokens_expiry ON tokens (expires_at);

-- Requests with an Idempotency-Key and their answers. Executions use idempotency_keys.
CREATE TABLE idempotent_requests (
    tenant      TEXT NOT NULL,
    caller      TEXT NOT NULL, -- id of the API key or token
    key         TEXT NOT NULL,
    body        BLOB NOT NULL, -- keyed digest of the request
    state       TEXT NOT NULL, -- begun, done, toolong, unknown
    lease_until INTEGER NOT NULL, -- lease of the server that handles the request
    answer      BLOB NULL, -- encrypted with the tenant's key
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, caller, key)
);
CREATE INDEX idempotent_requests_age ON idempotent_requests (created_at);

-- Settings that an operator changed while the servers run.
CREATE TABLE settings (
    name       TEXT NOT NULL PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

-- The objects in stored answers. Deleting an object deletes these answers.
CREATE TABLE idempotent_objects (
    tenant TEXT NOT NULL,
    object TEXT NOT NULL, -- an id, or a kind and a name
    caller TEXT NOT NULL,
    key    TEXT NOT NULL,
    PRIMARY KEY (tenant, object, caller, key),
    FOREIGN KEY (tenant, caller, key) REFERENCES idempotent_requests (tenant, caller, key) ON DELETE CASCADE
);
CREATE INDEX idempotent_objects_request ON idempotent_objects (tenant, caller, key);

-- The id that separates this installation from others on a NATS account or in a bucket, and
-- the servers that share these records.
CREATE TABLE installation (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    id       TEXT NOT NULL
);

CREATE TABLE servers (
    executor TEXT NOT NULL PRIMARY KEY,
    host     TEXT NOT NULL,
    bus      TEXT NOT NULL, -- identity of the bus; '' if no other server can reach it
    blobs    TEXT NOT NULL, -- likewise
    volumes  TEXT NOT NULL, -- likewise
    seen_at  INTEGER NOT NULL
);

-- Activity: the attribution and cost of each call and, if the tenant keeps texts, the start of the
-- code or command. Daily sums of the usage of agents and their sessions.
CREATE TABLE activity_texts (
    tenant     TEXT NOT NULL,
    trace_id   TEXT NOT NULL,
    text       BLOB NOT NULL, -- encrypted with the tenant's key
    expires_at INTEGER NOT NULL, -- when the audit row expires
    PRIMARY KEY (tenant, trace_id)
) WITHOUT ROWID;
CREATE INDEX activity_texts_expires ON activity_texts (expires_at);

CREATE TABLE agent_days (
    tenant      TEXT NOT NULL,
    day         INTEGER NOT NULL, -- start of the day
    agent       TEXT NOT NULL,
    session     TEXT NOT NULL, -- '' for none
    calls       INTEGER NOT NULL,
    sessions    INTEGER NOT NULL,
    seconds     REAL NOT NULL,
    cpu_seconds REAL NOT NULL,
    gib_seconds REAL NOT NULL,
    bytes_out   INTEGER NOT NULL,
    credits     REAL NOT NULL,
    input       INTEGER NOT NULL, -- tokens, like the next five columns
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    estimated   INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, agent, session)
) WITHOUT ROWID;

-- Tool calls of sessions and responses that wait for a decision or have one.
CREATE TABLE approvals (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    key_id      TEXT NOT NULL,
    environment TEXT NOT NULL,
    session     TEXT NOT NULL, -- '' for a response
    run         TEXT NOT NULL, -- the turn or response of the call
    event       INTEGER NOT NULL, -- number of the call's event in the session; 0 for a response
    item        TEXT NOT NULL, -- '' for a session
    thread      TEXT NOT NULL,
    agent       TEXT NOT NULL,
    tool        TEXT NOT NULL,
    server      TEXT NOT NULL,
    arguments   BLOB NOT NULL, -- encrypted with the tenant's key
    status      TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'cancelled')),
    reason      BLOB NULL, -- encrypted likewise
    decided_by  TEXT NOT NULL DEFAULT '',
    next        TEXT NOT NULL DEFAULT '', -- the run that continues with the decision
    created_at  INTEGER NOT NULL,
    deadline    INTEGER NULL,
    decided_at  INTEGER NULL
);
CREATE INDEX approvals_newest ON approvals (tenant, seq);
CREATE INDEX approvals_pending ON approvals (tenant, seq) WHERE status = 'pending';
CREATE INDEX approvals_session ON approvals (session, event) WHERE session <> '';
CREATE INDEX approvals_run ON approvals (run);
CREATE INDEX approvals_item ON approvals (tenant, item) WHERE item <> '';
CREATE INDEX approvals_deadline ON approvals (deadline) WHERE status = 'pending' AND session = '';
-- Finds decided calls of responses that no response continues yet.
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE session = '' AND next = '' AND status IN ('approved', 'denied');

-- Triggers make the audit trail, its seals and policy events append-only.
-- +goose StatementBegin
CREATE TRIGGER policy_events_update BEFORE UPDATE ON policy_events BEGIN
    SELECT RAISE(ABORT, 'policy events are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER policy_events_delete BEFORE DELETE ON policy_events BEGIN
    SELECT RAISE(ABORT, 'policy events are append-only');
END;
-- +goose StatementEnd
-- INSERT OR REPLACE deletes rows without running the trigger above.
-- +goose StatementBegin
CREATE TRIGGER policy_events_replace BEFORE INSERT ON policy_events
WHEN EXISTS (SELECT 1 FROM policy_events WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'policy events are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_rows_insert AFTER INSERT ON audit_rows BEGIN
    INSERT INTO audit_unsealed (tenant, id) VALUES (NEW.tenant, NEW.id);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_rows_update BEFORE UPDATE ON audit_rows BEGIN
    SELECT RAISE(ABORT, 'audit rows are append-only');
END;
-- +goose StatementEnd
-- Programs with any version of SQLite can open this file. All versions have julianday; if it returns
-- NULL, the row stays.
-- +goose StatementBegin
CREATE TRIGGER audit_rows_delete BEFORE DELETE ON audit_rows
WHEN NOT EXISTS (SELECT 1 FROM audit_members WHERE id = OLD.id)
    OR coalesce(OLD.expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 1) BEGIN
    SELECT RAISE(ABORT, 'audit rows are kept until they are sealed and their retention has passed');
END;
-- +goose StatementEnd
-- INSERT OR REPLACE deletes rows without running the trigger above.
-- +goose StatementBegin
CREATE TRIGGER audit_rows_replace BEFORE INSERT ON audit_rows
WHEN EXISTS (SELECT 1 FROM audit_rows WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'audit rows are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_seals_update BEFORE UPDATE ON audit_seals BEGIN
    SELECT RAISE(ABORT, 'audit seals are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_seals_delete BEFORE DELETE ON audit_seals BEGIN
    SELECT RAISE(ABORT, 'audit seals are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_seals_replace BEFORE INSERT ON audit_seals
WHEN EXISTS (SELECT 1 FROM audit_seals WHERE tenant = NEW.tenant AND number = NEW.number) BEGIN
    SELECT RAISE(ABORT, 'audit seals are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_members_update BEFORE UPDATE ON audit_members BEGIN
    SELECT RAISE(ABORT, 'audit seals are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_members_delete BEFORE DELETE ON audit_members
WHEN EXISTS (SELECT 1 FROM audit_rows WHERE id = OLD.id) BEGIN
    SELECT RAISE(ABORT, 'audit seals are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_members_replace BEFORE INSERT ON audit_members
WHEN EXISTS (SELECT 1 FROM audit_members WHERE id = NEW.id OR (tenant = NEW.tenant AND number = NEW.number AND place = NEW.place)) BEGIN
    SELECT RAISE(ABORT, 'audit seals are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_unsealed_update BEFORE UPDATE ON audit_unsealed BEGIN
    SELECT RAISE(ABORT, 'audit rows are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_unsealed_delete BEFORE DELETE ON audit_unsealed
WHEN NOT EXISTS (SELECT 1 FROM audit_members WHERE id = OLD.id) BEGIN
    SELECT RAISE(ABORT, 'audit rows are kept until they are sealed and their retention has passed');
END;
-- +goose StatementEnd

INSERT INTO schema_compat (oldest) VALUES (1);
