-- How far the log of calls, a file beside this one, has been put in here. The
-- name is that of what stands in the file; it tells it from another database's.

-- +goose Up
CREATE TABLE call_log (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    name     BLOB    NOT NULL CHECK (length(name) = 16),
    place    INTEGER NOT NULL -- bytes from the file's beginning
);
INSERT INTO call_log (only_row, name, place) VALUES (1, randomblob(16), 0);
