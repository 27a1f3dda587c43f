-- The size that the caller requested for a sandbox; 0 selects the environment's limit. A restart
-- keeps the size.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN own_cpu REAL NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_memory INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_disk INTEGER NOT NULL DEFAULT 0;
