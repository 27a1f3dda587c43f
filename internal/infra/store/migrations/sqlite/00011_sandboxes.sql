-- Named sandboxes: long-lived ones that are found by a name of a session. What
-- is in them is on the machine of their executor; a name is free again when its
-- sandbox is destroyed.

-- +goose Up
CREATE TABLE sandboxes (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    tenant      TEXT    NOT NULL,
    environment TEXT    NOT NULL,
    session     TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    key_id      TEXT    NOT NULL,
    executor    TEXT    NOT NULL,
    image       TEXT    NOT NULL,
    asked       TEXT    NOT NULL, -- what image was asked for as; '' for the environment's
    limits      TEXT    NOT NULL,
    memory      INTEGER NOT NULL, -- of the limits, for sums
    disk        INTEGER NOT NULL,
    permissions TEXT    NOT NULL,
    connected   INTEGER NOT NULL,
    env         BLOB    NULL, -- sealed
    state       TEXT    NOT NULL CHECK (state IN ('creating', 'running', 'sleeping', 'lost', 'destroyed')),
    sleep       TEXT    NOT NULL CHECK (sleep IN ('', 'frozen', 'disk', 'stored')),
    detail      TEXT    NOT NULL,
    sleep_after INTEGER NOT NULL, -- microseconds; negative for never
    created_at  INTEGER NOT NULL,
    used_at     INTEGER NOT NULL,
    expires_at  INTEGER NULL,
    metered_at  INTEGER NOT NULL, -- up to when its time is in the ledger
    ended_at    INTEGER NULL      -- when it was destroyed
);
CREATE UNIQUE INDEX sandboxes_name ON sandboxes (tenant, environment, session, name) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_tenant ON sandboxes (tenant) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_executor ON sandboxes (executor, seq) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_ended ON sandboxes (ended_at) WHERE ended_at IS NOT NULL;

ALTER TABLE plans ADD COLUMN max_sandboxes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN max_sandbox_memory INTEGER NOT NULL DEFAULT 0; -- bytes
ALTER TABLE plans ADD COLUMN max_sandbox_disk INTEGER NOT NULL DEFAULT 0; -- bytes
ALTER TABLE plans ADD COLUMN max_sandbox_life INTEGER NOT NULL DEFAULT 0; -- microseconds

-- The time that a sandbox runs is in the ledger without being a call.
ALTER TABLE usage_entries ADD COLUMN calls INTEGER NOT NULL DEFAULT 1;
ALTER TABLE usage_days ADD COLUMN entries INTEGER NOT NULL DEFAULT 0;
UPDATE usage_days SET entries = calls;
