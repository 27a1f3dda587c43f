-- Models that are given to plans, and keys of tenants' own for models.

-- +goose Up
ALTER TABLE models ADD COLUMN plans TEXT NOT NULL DEFAULT ''; -- JSON, names

CREATE TABLE model_keys (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,
    tenant     TEXT    NOT NULL REFERENCES tenants (id),
    model      TEXT    NOT NULL, -- id; models that a file declares have no row
    base_url   TEXT    NOT NULL, -- the only one that the key is sent to
    api_key    BLOB    NOT NULL, -- sealed
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, model)
);
