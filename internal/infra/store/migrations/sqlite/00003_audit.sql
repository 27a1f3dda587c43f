-- The audit trail. What may be done to it is decided here and not by the
-- program: rows are added, never changed, and go only when a seal covers them
-- and their time has passed by this database's clock.

-- +goose Up
CREATE TABLE audit_rows (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    trace_id         TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,
    key_id           TEXT    NOT NULL,
    environment      TEXT    NOT NULL,
    source           TEXT    NOT NULL,
    agent            TEXT    NOT NULL,
    session_id       TEXT    NOT NULL,
    language         TEXT    NOT NULL,
    code_sha256      BLOB    NOT NULL,
    exit_status      TEXT    NOT NULL CHECK (exit_status IN ('ok', 'error', 'timeout', 'oom', 'cap_exceeded', 'provisioning', 'cancelled')),
    exit_code        INTEGER NOT NULL,
    failure_reason   TEXT    NOT NULL,
    duration_ms      INTEGER NOT NULL,
    stdout_bytes     INTEGER NOT NULL,
    stderr_bytes     INTEGER NOT NULL,
    stdout_truncated INTEGER NOT NULL,
    stderr_truncated INTEGER NOT NULL,
    peak_memory      INTEGER NOT NULL,
    outbound_hosts   TEXT    NOT NULL, -- JSON; '' for none
    metadata         TEXT    NOT NULL, -- JSON; '' for none
    retention_days   INTEGER NOT NULL CHECK (retention_days BETWEEN 1 AND 180),
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL GENERATED ALWAYS AS (created_at + retention_days * 86400000000) STORED
);
CREATE INDEX audit_rows_newest ON audit_rows (tenant, created_at DESC, id DESC);
CREATE INDEX audit_rows_trace ON audit_rows (trace_id);
CREATE INDEX audit_rows_agent ON audit_rows (tenant, agent, created_at DESC, id DESC) WHERE agent <> '';
CREATE INDEX audit_rows_session ON audit_rows (tenant, session_id, created_at DESC, id DESC) WHERE session_id <> '';

CREATE TABLE audit_seals (
    tenant     TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    row_count  INTEGER NOT NULL,
    previous   BLOB    NOT NULL,
    digests    BLOB    NOT NULL,
    expires    BLOB    NOT NULL,
    hash       BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, number)
) WITHOUT ROWID;

-- Which seal covers a row, and as which of its rows. A row's time is repeated
-- here, where an index on it costs an append nothing.
CREATE TABLE audit_members (
    id         INTEGER NOT NULL PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    place      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    FOREIGN KEY (tenant, number) REFERENCES audit_seals (tenant, number)
);
CREATE UNIQUE INDEX audit_members_place ON audit_members (tenant, number, place);
CREATE INDEX audit_members_expires ON audit_members (expires_at);

-- The rows that no seal covers yet.
CREATE TABLE audit_unsealed (
    tenant TEXT    NOT NULL,
    id     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

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
-- Any program may have opened this file, with a SQLite of whatever version: the
-- time, in whole milliseconds, comes from a function that all of them have, and
-- a row stays when it does not come at all.
-- +goose StatementBegin
CREATE TRIGGER audit_rows_delete BEFORE DELETE ON audit_rows
WHEN NOT EXISTS (SELECT 1 FROM audit_members WHERE id = OLD.id)
    OR coalesce(OLD.expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 1) BEGIN
    SELECT RAISE(ABORT, 'audit rows are kept until they are sealed and their retention has passed');
END;
-- +goose StatementEnd
-- INSERT OR REPLACE deletes without asking the trigger above; likewise below.
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
