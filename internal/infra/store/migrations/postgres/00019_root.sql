-- Whether the tenant's environments may run programs as root of their sandbox.
-- Tenants from before this may not.

-- +goose Up
ALTER TABLE tenants ADD COLUMN root_enabled BOOLEAN NOT NULL DEFAULT FALSE;
