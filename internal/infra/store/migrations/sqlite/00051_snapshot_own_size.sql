-- The size that the caller requested for the sandbox of a snapshot; 0 selects the environment's
-- limit. A sandbox restored from the snapshot keeps it when it restarts.

-- +goose Up
ALTER TABLE snapshots ADD COLUMN own_cpu REAL NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN own_memory INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN own_disk INTEGER NOT NULL DEFAULT 0;
