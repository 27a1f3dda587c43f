-- Files that tenants upload: a row for each. Their bytes are in the store of blobs.

-- +goose Up
CREATE TABLE files (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    about      BLOB NOT NULL, -- name and media type, encrypted with the tenant's key
    bytes      INTEGER NOT NULL, -- while it is uploaded: as far as they are known
    state      TEXT NOT NULL, -- uploading, there or deleted: its bytes may be there still
    created_at INTEGER NOT NULL,
    expires_at INTEGER NULL
);
CREATE INDEX files_tenant ON files (tenant, seq);
CREATE INDEX files_gone ON files (state, created_at) WHERE state <> 'there';
CREATE INDEX files_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;
