-- What a sandbox was asked to have of its machine; 0 for what its environment has. A restart
-- keeps it.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN own_cpu DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_memory BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_disk BIGINT NOT NULL DEFAULT 0;
