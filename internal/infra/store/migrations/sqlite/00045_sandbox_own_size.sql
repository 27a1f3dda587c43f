-- What a sandbox was asked to have of its machine; 0 for what its environment has. A restart
-- keeps it.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN own_cpu REAL NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_memory INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_disk INTEGER NOT NULL DEFAULT 0;
