-- The disk limit of the sandbox that a snapshot came from. Sandboxes restored from the snapshot
-- keep it. 0 means no limit, as in older snapshots.

-- +goose Up
ALTER TABLE snapshots ADD COLUMN disk_limit INTEGER NOT NULL DEFAULT 0;
