-- What an environment lets its programs reach and do, as JSON; '' is what there
-- was before: no network, nothing else restricted. profile is the set of rules it
-- began with, base_template what its image was asked for as, timeout the longest
-- run in microseconds, 0 for the plan's. A tenant has a network only where its
-- policy says so.

-- +goose Up
ALTER TABLE environments ADD COLUMN permissions TEXT NOT NULL DEFAULT '';
ALTER TABLE environments ADD COLUMN profile TEXT NOT NULL DEFAULT '';
ALTER TABLE environments ADD COLUMN base_template TEXT NOT NULL DEFAULT '';
ALTER TABLE environments ADD COLUMN timeout BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN network_enabled BOOLEAN NOT NULL DEFAULT FALSE;
