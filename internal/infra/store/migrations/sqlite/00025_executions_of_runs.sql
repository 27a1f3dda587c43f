-- Executions that are tool calls of runs go with their run; those with files that a
-- response gives stay as long as it does.

-- +goose Up
ALTER TABLE executions ADD COLUMN run TEXT NOT NULL DEFAULT ''; -- '' for none
ALTER TABLE executions ADD COLUMN windows INTEGER NOT NULL DEFAULT 0; -- of its turn's sandbox that began with it
CREATE INDEX executions_run ON executions (run) WHERE run <> '';
