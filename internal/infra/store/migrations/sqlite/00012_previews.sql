-- Previews: open ports of named sandboxes.

-- +goose Up
CREATE TABLE previews (
    sandbox    TEXT    NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    port       INTEGER NOT NULL,
    seed       BLOB    NOT NULL, -- gives the name, with the installation's secret key
    hash       BLOB    NOT NULL, -- of the name
    created_at INTEGER NOT NULL,
    PRIMARY KEY (sandbox, port)
);
CREATE UNIQUE INDEX previews_hash ON previews (hash);
