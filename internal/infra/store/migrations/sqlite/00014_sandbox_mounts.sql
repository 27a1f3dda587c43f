-- What of its tenant's storage a named sandbox has mounted, and a snapshot's memory
-- knows of.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN mounts TEXT NOT NULL DEFAULT ''; -- a list, without credentials; '' for none
ALTER TABLE snapshots ADD COLUMN mounts TEXT NOT NULL DEFAULT '';
