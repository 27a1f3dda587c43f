-- Variables of a key: set for its executions, over those of the environment.

-- +goose Up
ALTER TABLE keys ADD COLUMN env TEXT NOT NULL DEFAULT ''; -- JSON; '' for none
ALTER TABLE keys ADD COLUMN secrets BLOB NULL; -- sealed
