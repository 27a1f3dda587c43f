-- Settings that an operator changed for all servers of an installation while they run.

-- +goose Up
CREATE TABLE settings (
    name       TEXT NOT NULL PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);
