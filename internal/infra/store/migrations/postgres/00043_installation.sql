-- The id that separates this installation from others on a NATS account or in a bucket, and
-- the servers that share these records.

-- +goose Up
CREATE TABLE installation (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    id       TEXT COLLATE "C" NOT NULL
);
CREATE TABLE servers (
    executor TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    host     TEXT COLLATE "C" NOT NULL,
    bus      TEXT COLLATE "C" NOT NULL, -- which one; '' for one that no other server reaches
    blobs    TEXT COLLATE "C" NOT NULL, -- likewise
    volumes  TEXT COLLATE "C" NOT NULL, -- likewise
    seen_at  BIGINT NOT NULL
);
