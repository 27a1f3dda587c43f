-- Whether executions of an environment may have a kernel that others of their key had
-- before ('' is run: they may not), whether plan and tenant allow it, and which it was.
-- Tenants and plans from before this do not, but for the built-in plans, which are put anew.

-- +goose Up
ALTER TABLE environments ADD COLUMN isolation TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN isolation TEXT NOT NULL DEFAULT '';
ALTER TABLE tenants ADD COLUMN key_isolation_enabled BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE plans ADD COLUMN key_isolation BOOLEAN NOT NULL DEFAULT FALSE;
