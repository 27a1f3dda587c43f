-- Skills: a row for each, and one for each version with its files, which do not change.

-- +goose Up
CREATE TABLE skills (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    title       BLOB NOT NULL, -- encrypted with the tenant's key
    versions    INTEGER NOT NULL, -- made so far, also those that are deleted
    created_at  INTEGER NOT NULL,
    archived_at INTEGER NULL,
    UNIQUE (tenant, name)
);
CREATE INDEX skills_tenant ON skills (tenant, seq);

CREATE TABLE skill_versions (
    id         TEXT NOT NULL PRIMARY KEY,
    skill      TEXT NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL, -- from 1; that of one that is deleted is not used again
    about      BLOB NOT NULL, -- front matter and names of files, encrypted with the tenant's key
    content    BLOB NOT NULL, -- a zip archive of the files, likewise
    bytes      INTEGER NOT NULL, -- of content
    created_at INTEGER NOT NULL,
    UNIQUE (skill, number)
);
