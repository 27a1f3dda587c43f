-- Activity: the attribution and cost of each call and, if the tenant keeps texts, the start of the
-- code or command. Daily sums of the usage of agents and their sessions.

-- +goose Up
ALTER TABLE audit_rows ADD COLUMN turn TEXT NOT NULL DEFAULT ''; -- '' unless a model made the call
ALTER TABLE audit_rows ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_rows ADD COLUMN thread TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_rows ADD COLUMN credits REAL NOT NULL DEFAULT 0;
ALTER TABLE audit_rows ADD COLUMN cost INTEGER NOT NULL DEFAULT 0; -- millionths of a millionth of a US dollar
CREATE INDEX audit_rows_key ON audit_rows (tenant, key_id, created_at DESC, id DESC);
CREATE INDEX audit_rows_turn ON audit_rows (tenant, turn, created_at DESC, id DESC) WHERE turn <> '';
CREATE INDEX audit_rows_sandbox ON audit_rows (tenant, sandbox, created_at DESC, id DESC) WHERE sandbox <> '';
CREATE INDEX audit_rows_thread ON audit_rows (tenant, thread, created_at DESC, id DESC) WHERE thread <> '';

ALTER TABLE executions ADD COLUMN by_agent TEXT NOT NULL DEFAULT ''; -- '' unless an agent made the call
ALTER TABLE executions ADD COLUMN by_session TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN by_turn TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN by_tool TEXT NOT NULL DEFAULT '';

ALTER TABLE tenants ADD COLUMN audit_text INTEGER NOT NULL DEFAULT 0;

CREATE TABLE activity_texts (
    tenant     TEXT    NOT NULL,
    trace_id   TEXT    NOT NULL,
    text       BLOB    NOT NULL, -- encrypted with the tenant's key
    expires_at INTEGER NOT NULL, -- when the audit row expires
    PRIMARY KEY (tenant, trace_id)
) WITHOUT ROWID;
CREATE INDEX activity_texts_expires ON activity_texts (expires_at);

ALTER TABLE charges ADD COLUMN agent TEXT NOT NULL DEFAULT ''; -- '' for a response
ALTER TABLE charges ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE charges ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0; -- tokens of input and output
ALTER TABLE charge_days ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;

CREATE TABLE agent_days (
    tenant      TEXT    NOT NULL,
    day         INTEGER NOT NULL, -- start of the day
    agent       TEXT    NOT NULL,
    session     TEXT    NOT NULL, -- '' for none
    calls       INTEGER NOT NULL,
    sessions    INTEGER NOT NULL,
    seconds     REAL    NOT NULL,
    cpu_seconds REAL    NOT NULL,
    gib_seconds REAL    NOT NULL,
    bytes_out   INTEGER NOT NULL,
    credits     REAL    NOT NULL,
    input       INTEGER NOT NULL, -- tokens, as the next five
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    estimated   INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, agent, session)
) WITHOUT ROWID;
