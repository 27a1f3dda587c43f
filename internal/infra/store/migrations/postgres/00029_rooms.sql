-- What a session owns: an environment of its own, whose rules hold for the server too, and a
-- budget. What turns used before this is not counted.

-- +goose Up
ALTER TABLE environments ADD COLUMN allow_mcp BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE sessions ADD COLUMN budget_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN budget_cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN used_input BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN used_output BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN used_cost BIGINT NOT NULL DEFAULT 0;
-- How long calls wait for the client.
ALTER TABLE sessions ADD COLUMN waits_until BIGINT NULL;
CREATE INDEX sessions_waits ON sessions (waits_until) WHERE waits_until IS NOT NULL;
ALTER TABLE sessions ADD COLUMN webhook BYTEA NULL; -- encrypted with the tenant's key
