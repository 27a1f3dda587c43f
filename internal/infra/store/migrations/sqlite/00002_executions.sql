-- The records of executions. Indexes carry created_at and trace_id because
-- lists are newest first and go on from a place in that order.

-- +goose Up
CREATE TABLE executions (
    seq              INTEGER PRIMARY KEY,
    trace_id         TEXT    NOT NULL UNIQUE,
    tenant           TEXT    NOT NULL,
    key_id           TEXT    NOT NULL,
    environment      TEXT    NOT NULL,
    source           TEXT    NOT NULL,
    delivery         TEXT    NOT NULL,
    agent            TEXT    NOT NULL,
    turn             TEXT    NOT NULL,
    language         TEXT    NOT NULL,
    timeout          INTEGER NOT NULL, -- microseconds
    metadata         TEXT    NOT NULL, -- JSON; '' for none
    code_sha256      BLOB    NOT NULL,
    cpu              REAL    NOT NULL,
    memory           INTEGER NOT NULL,
    webhook_url      TEXT    NOT NULL,
    webhook_secret   BLOB    NULL, -- sealed
    webhook_status   TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    stdout_bytes     INTEGER NOT NULL DEFAULT 0,
    stderr_bytes     INTEGER NOT NULL DEFAULT 0,
    stdout_truncated INTEGER NOT NULL DEFAULT 0,
    stderr_truncated INTEGER NOT NULL DEFAULT 0,
    stored           INTEGER NOT NULL DEFAULT 0,
    output_truncated INTEGER NOT NULL DEFAULT 0,
    last_seq         INTEGER NOT NULL DEFAULT 0,
    exit_code        INTEGER NOT NULL DEFAULT 0,
    error            TEXT    NOT NULL DEFAULT '',
    not_started      INTEGER NOT NULL DEFAULT 0,
    peak_memory      INTEGER NOT NULL DEFAULT 0,
    warm             INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    completed_at     INTEGER NULL,
    CHECK ((status = 'running') = (completed_at IS NULL))
);
CREATE INDEX executions_newest ON executions (tenant, created_at DESC, trace_id DESC);
CREATE INDEX executions_key ON executions (tenant, key_id, created_at DESC, trace_id DESC);
-- What is running is counted at every admission.
CREATE INDEX executions_running ON executions (tenant, created_at DESC, trace_id DESC) WHERE status = 'running';
-- The usual end and language are found in the list itself; the others may be rare.
CREATE INDEX executions_status ON executions (tenant, status, created_at DESC, trace_id DESC)
    WHERE status IN ('failed', 'timeout', 'oom', 'blocked', 'cancelled');
CREATE INDEX executions_language ON executions (tenant, language, created_at DESC, trace_id DESC)
    WHERE language IN ('node', 'bash');
CREATE INDEX executions_ended ON executions (completed_at) WHERE completed_at IS NOT NULL;

CREATE TABLE execution_metadata (
    tenant     TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    trace_id   TEXT    NOT NULL,
    PRIMARY KEY (tenant, key, value, created_at DESC, trace_id DESC)
) WITHOUT ROWID;

CREATE TABLE execution_outputs (
    seq    INTEGER PRIMARY KEY, -- of the execution
    stdout BLOB NOT NULL,
    stderr BLOB NOT NULL
);

CREATE TABLE idempotency_keys (
    tenant     TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    trace_id   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_trace ON idempotency_keys (trace_id);
