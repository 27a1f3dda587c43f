-- Which key the secrets in these records are sealed with, so that a process with
-- another one is refused. The fingerprint, in hexadecimal, says nothing else
-- about the key.

-- +goose Up
CREATE TABLE secret_key (
    only_row    INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    fingerprint TEXT    NOT NULL
);
