-- Agents: a row for each that says which version is current, and one for each version,
-- which does not change.

-- +goose Up
CREATE TABLE agents (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    slug        TEXT NOT NULL, -- '' for none; an archived agent keeps its own
    visibility  TEXT NOT NULL,
    version     INTEGER NOT NULL, -- the current one
    created_at  INTEGER NOT NULL,
    archived_at INTEGER NULL
);
CREATE UNIQUE INDEX agents_slug ON agents (tenant, slug) WHERE slug <> '';
CREATE INDEX agents_tenant ON agents (tenant, seq);

CREATE TABLE agent_versions (
    agent      TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    version    INTEGER NOT NULL,
    definition BLOB NOT NULL, -- encrypted with the tenant's key
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent, version)
);
