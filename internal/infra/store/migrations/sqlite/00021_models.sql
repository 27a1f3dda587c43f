-- Models of providers, which tenants' requests can name.

-- +goose Up
CREATE TABLE models (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    name         TEXT    NOT NULL UNIQUE,
    provider     TEXT    NOT NULL,
    upstream     TEXT    NOT NULL,
    base_url     TEXT    NOT NULL,
    api_key      BLOB    NULL,     -- sealed
    prices       TEXT    NOT NULL, -- JSON, in millionths of a US dollar for a million tokens
    context      INTEGER NOT NULL, -- tokens; 0 for unknown
    max_output   INTEGER NOT NULL,
    capabilities TEXT    NOT NULL, -- JSON
    all_tenants  INTEGER NOT NULL,
    tenants      TEXT    NOT NULL, -- JSON, ids
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
);
