-- Who calls and what they may use. Times are microseconds since 1970 in UTC,
-- so that both engines keep the same value. seq is the order of creation.

-- +goose Up
CREATE TABLE plans (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL UNIQUE,
    max_cpu     REAL    NOT NULL,
    max_memory  INTEGER NOT NULL,
    concurrency INTEGER NOT NULL,
    max_timeout INTEGER NOT NULL, -- microseconds
    streaming   INTEGER NOT NULL,
    async       INTEGER NOT NULL,
    max_output  INTEGER NOT NULL,
    built_in    INTEGER NOT NULL
);

CREATE TABLE tenants (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    name            TEXT    NOT NULL UNIQUE,
    plan            TEXT    NOT NULL REFERENCES plans (name),
    sandbox_enabled INTEGER NOT NULL,
    tier            TEXT    NOT NULL CHECK (tier IN ('standard', 'regulated')),
    monthly_credits REAL    NOT NULL,
    redaction_off   TEXT    NOT NULL, -- JSON, as every list and map here
    audit_days      INTEGER NOT NULL CHECK (audit_days BETWEEN 1 AND 180),
    daily_cap       INTEGER NULL,
    hourly_cap      INTEGER NULL,
    created_at      INTEGER NOT NULL,
    disabled_at     INTEGER NULL,
    CHECK (tier <> 'regulated' OR NOT sandbox_enabled)
);
CREATE INDEX tenants_plan ON tenants (plan);

CREATE TABLE environments (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,
    tenant     TEXT    NOT NULL REFERENCES tenants (id),
    name       TEXT    NOT NULL,
    image      TEXT    NOT NULL,
    limits     TEXT    NOT NULL,
    env        TEXT    NOT NULL,
    secrets    BLOB    NULL, -- sealed
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE keys (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    tenant         TEXT    NOT NULL REFERENCES tenants (id),
    environment    TEXT    NULL REFERENCES environments (id) ON DELETE SET NULL,
    name           TEXT    NOT NULL,
    hash           BLOB    NOT NULL UNIQUE,
    hint           TEXT    NOT NULL,
    scopes         TEXT    NOT NULL,
    webhook_url    TEXT    NOT NULL,
    webhook_secret BLOB    NULL, -- sealed
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NULL,
    revoked_at     INTEGER NULL,
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
    tenant     TEXT    NOT NULL REFERENCES tenants (id),
    actor      TEXT    NOT NULL,
    field      TEXT    NOT NULL,
    old_value  TEXT    NOT NULL,
    new_value  TEXT    NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX policy_events_tenant ON policy_events (tenant);

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
-- INSERT OR REPLACE deletes without asking the trigger above.
-- +goose StatementBegin
CREATE TRIGGER policy_events_replace BEFORE INSERT ON policy_events
WHEN EXISTS (SELECT 1 FROM policy_events WHERE id = NEW.id) BEGIN
    SELECT RAISE(ABORT, 'policy events are append-only');
END;
-- +goose StatementEnd
