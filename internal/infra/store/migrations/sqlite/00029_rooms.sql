-- What a session owns: an environment of its own, whose rules hold for the server too, and a
-- budget. What turns used before this is not counted.

-- +goose Up
ALTER TABLE environments ADD COLUMN allow_mcp INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN budget_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN budget_cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN used_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN used_output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN used_cost INTEGER NOT NULL DEFAULT 0;
-- How long calls wait for the client.
ALTER TABLE sessions ADD COLUMN waits_until INTEGER NULL;
CREATE INDEX sessions_waits ON sessions (waits_until) WHERE waits_until IS NOT NULL;
ALTER TABLE sessions ADD COLUMN webhook BLOB NULL; -- encrypted with the tenant's key
