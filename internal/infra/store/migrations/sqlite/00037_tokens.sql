-- Tokens: short-lived and narrower than the key that made them. What they have used is counted
-- here, so that their bounds hold.

-- +goose Up
CREATE TABLE tokens (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    tenant          TEXT    NOT NULL,
    key_id          TEXT    NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    hash            BLOB    NOT NULL UNIQUE,
    scopes          TEXT    NOT NULL,
    operations      TEXT    NOT NULL, -- '' for all that are open to tokens
    session         TEXT    NOT NULL, -- '' for any
    sandbox         TEXT    NOT NULL, -- id; '' for any
    sandbox_session TEXT    NOT NULL,
    sandbox_name    TEXT    NOT NULL,
    origins         TEXT    NOT NULL, -- '' for any
    max_cost        INTEGER NOT NULL, -- millionths of a millionth of a US dollar; 0 for no bound
    cost            INTEGER NOT NULL,
    max_executions  INTEGER NOT NULL, -- 0 for no bound
    executions      INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER NULL
);
CREATE INDEX tokens_key ON tokens (key_id, seq);
CREATE INDEX tokens_expiry ON tokens (expires_at);
