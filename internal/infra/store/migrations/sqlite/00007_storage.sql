-- Connections, and which environments and keys mount them. What of them an
-- execution saw is in its record, and in its audit row.

-- +goose Up
CREATE TABLE connections (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    tenant      TEXT    NOT NULL REFERENCES tenants (id),
    slug        TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('s3', 'gcs', 'azure', 'volume')),
    prefix      TEXT    NOT NULL,
    read_only   INTEGER NOT NULL,
    target      TEXT    NOT NULL, -- JSON
    credentials BLOB    NULL,     -- sealed
    created_at  INTEGER NOT NULL,
    UNIQUE (tenant, slug)
);

CREATE TABLE grants (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    tenant      TEXT    NOT NULL REFERENCES tenants (id),
    connection  TEXT    NOT NULL REFERENCES connections (id),
    environment TEXT    NULL REFERENCES environments (id) ON DELETE CASCADE,
    key_id      TEXT    NULL REFERENCES keys (id) ON DELETE CASCADE,
    prefix      TEXT    NOT NULL,
    read_only   INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    CHECK ((environment IS NULL) <> (key_id IS NULL)),
    UNIQUE (environment, connection),
    UNIQUE (key_id, connection)
);
CREATE INDEX grants_connection ON grants (connection);

ALTER TABLE executions ADD COLUMN mounts TEXT NOT NULL DEFAULT ''; -- JSON; '' for none
ALTER TABLE audit_rows ADD COLUMN mounts TEXT NOT NULL DEFAULT '';
