-- Settings that an operator changed for all servers of an installation while they run.

-- +goose Up
CREATE TABLE settings (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value      TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL
);
