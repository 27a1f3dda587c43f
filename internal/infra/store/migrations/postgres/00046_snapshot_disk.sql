-- How much disk the sandbox of a snapshot could have, which sandboxes that go on from it keep.
-- 0 is no bound of its own: that of snapshots from before.

-- +goose Up
ALTER TABLE snapshots ADD COLUMN disk_limit BIGINT NOT NULL DEFAULT 0;
