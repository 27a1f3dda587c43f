-- Vaults: a row for each, and one for each credential; and which vaults a session has.

-- +goose Up
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
    identity    BLOB NOT NULL, -- a keyed sum of what it is for
    about       BLOB NOT NULL, -- what is shown of it, encrypted with the tenant's key
    secret      BLOB NULL, -- likewise; NULL for one that is archived
    version     INTEGER NOT NULL,
    leased      INTEGER NOT NULL DEFAULT 0, -- until when a server refreshes it
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    archived_at INTEGER NULL
);
CREATE INDEX vault_credentials_vault ON vault_credentials (vault, seq);
CREATE UNIQUE INDEX vault_credentials_identity ON vault_credentials (vault, identity) WHERE archived_at IS NULL;

ALTER TABLE sessions ADD COLUMN vaults TEXT NOT NULL DEFAULT ''; -- JSON, ids
