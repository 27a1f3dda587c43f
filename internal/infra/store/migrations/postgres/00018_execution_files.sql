-- The files that an execution gave back, as JSON; '' for none. Their contents are in
-- the blob store, one after the other.

-- +goose Up
ALTER TABLE executions ADD COLUMN files TEXT NOT NULL DEFAULT '';
