-- The size that the caller requested for a sandbox; 0 selects the environment's limit. A restart
-- keeps the size.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN own_cpu DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_memory BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN own_disk BIGINT NOT NULL DEFAULT 0;
