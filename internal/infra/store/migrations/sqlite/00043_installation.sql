-- The id that separates this installation from others on a NATS account or in a bucket, and
-- the servers that share these records.

-- +goose Up
CREATE TABLE installation (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    id       TEXT NOT NULL
);
CREATE TABLE servers (
    executor TEXT NOT NULL PRIMARY KEY,
    host     TEXT NOT NULL,
    bus      TEXT NOT NULL, -- which one; '' for one that no other server reaches
    blobs    TEXT NOT NULL, -- likewise
    volumes  TEXT NOT NULL, -- likewise
    seen_at  INTEGER NOT NULL
);
