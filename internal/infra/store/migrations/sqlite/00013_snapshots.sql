-- Snapshots: sandboxes as they were at one moment, in the blob store. Sandboxes
-- that sleep there.

-- +goose Up
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
    kept        TEXT NOT NULL, -- where the blob store has it; '' while it is being made
    bytes       INTEGER NOT NULL, -- of what is kept, for sums
    detail      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NULL
);
CREATE INDEX snapshots_tenant ON snapshots (tenant, environment, created_at, id);
CREATE INDEX snapshots_expires ON snapshots (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX snapshots_making ON snapshots (executor) WHERE kept = '';

-- Tenants of whom something is in the blob store that nothing refers to.
CREATE TABLE snapshot_litter (
    tenant TEXT NOT NULL PRIMARY KEY,
    last   INTEGER NOT NULL
);

ALTER TABLE sandboxes ADD COLUMN kept TEXT NOT NULL DEFAULT ''; -- where the blob store has it; '' for nowhere
ALTER TABLE sandboxes ADD COLUMN bereft INTEGER NOT NULL DEFAULT 0; -- its environment was deleted

ALTER TABLE plans ADD COLUMN max_snapshots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN max_snapshot_size INTEGER NOT NULL DEFAULT 0; -- bytes of all, together
