-- Activity: the attribution and cost of each call and, if the tenant keeps texts, the start of the
-- code or command. Daily sums of the usage of agents and their sessions.

-- +goose Up
ALTER TABLE audit_rows ADD COLUMN turn TEXT COLLATE "C" NOT NULL DEFAULT ''; -- '' unless a model made the call
ALTER TABLE audit_rows ADD COLUMN sandbox TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE audit_rows ADD COLUMN thread TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE audit_rows ADD COLUMN credits DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE audit_rows ADD COLUMN cost BIGINT NOT NULL DEFAULT 0; -- millionths of a millionth of a US dollar
CREATE INDEX audit_rows_key ON audit_rows (tenant, key_id, created_at DESC, id DESC);
CREATE INDEX audit_rows_turn ON audit_rows (tenant, turn, created_at DESC, id DESC) WHERE turn <> '';
CREATE INDEX audit_rows_sandbox ON audit_rows (tenant, sandbox, created_at DESC, id DESC) WHERE sandbox <> '';
CREATE INDEX audit_rows_thread ON audit_rows (tenant, thread, created_at DESC, id DESC) WHERE thread <> '';

ALTER TABLE executions ADD COLUMN by_agent TEXT NOT NULL DEFAULT ''; -- '' unless an agent made the call
ALTER TABLE executions ADD COLUMN by_session TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN by_turn TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN by_tool TEXT NOT NULL DEFAULT '';

ALTER TABLE tenants ADD COLUMN audit_text BOOLEAN NOT NULL DEFAULT FALSE;

CREATE TABLE activity_texts (
    tenant     TEXT COLLATE "C" NOT NULL,
    trace_id   TEXT COLLATE "C" NOT NULL,
    text       BYTEA            NOT NULL, -- encrypted with the tenant's key
    expires_at BIGINT           NOT NULL, -- when the audit row expires
    PRIMARY KEY (tenant, trace_id)
);
CREATE INDEX activity_texts_expires ON activity_texts (expires_at);

ALTER TABLE charges ADD COLUMN agent TEXT COLLATE "C" NOT NULL DEFAULT ''; -- '' for a response
ALTER TABLE charges ADD COLUMN session TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE charges ADD COLUMN estimated BIGINT NOT NULL DEFAULT 0; -- tokens of input and output
ALTER TABLE charge_days ADD COLUMN estimated BIGINT NOT NULL DEFAULT 0;

CREATE TABLE agent_days (
    tenant      TEXT COLLATE "C" NOT NULL,
    day         BIGINT           NOT NULL, -- start of the day
    agent       TEXT COLLATE "C" NOT NULL,
    session     TEXT COLLATE "C" NOT NULL, -- '' for none
    calls       BIGINT           NOT NULL,
    sessions    BIGINT           NOT NULL,
    seconds     DOUBLE PRECISION NOT NULL,
    cpu_seconds DOUBLE PRECISION NOT NULL,
    gib_seconds DOUBLE PRECISION NOT NULL,
    bytes_out   BIGINT           NOT NULL,
    credits     DOUBLE PRECISION NOT NULL,
    input       BIGINT           NOT NULL, -- tokens, as the next five
    cache_read  BIGINT           NOT NULL,
    cache_write BIGINT           NOT NULL,
    output      BIGINT           NOT NULL,
    reasoning   BIGINT           NOT NULL,
    estimated   BIGINT           NOT NULL,
    cost        BIGINT           NOT NULL,
    PRIMARY KEY (tenant, day, agent, session)
);
