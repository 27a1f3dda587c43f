-- The size that the caller requested for the sandbox of a snapshot; 0 selects the environment's
-- limit. A sandbox restored from the snapshot keeps it when it restarts.

-- +goose Up
ALTER TABLE snapshots ADD COLUMN own_cpu DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN own_memory BIGINT NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN own_disk BIGINT NOT NULL DEFAULT 0;
