-- What ended executions keep: their output, and the files they gave back. Those of
-- before count nothing. The built-in plans are made what this version says at its
-- start; those of an operator have no bound.

-- +goose Up
ALTER TABLE executions ADD COLUMN kept INTEGER NOT NULL DEFAULT 0; -- bytes
ALTER TABLE usage_days ADD COLUMN kept INTEGER NOT NULL DEFAULT 0; -- bytes, of the executions that are still there
ALTER TABLE plans ADD COLUMN max_outputs INTEGER NOT NULL DEFAULT 0; -- bytes
