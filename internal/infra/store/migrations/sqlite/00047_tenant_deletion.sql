-- When a tenant's deletion was asked for, and when nothing of it was left but its audit trail. The
-- row stays: policy events, which nobody can delete, refer to it.

-- +goose Up
ALTER TABLE tenants ADD COLUMN deleted_at INTEGER NULL;
ALTER TABLE tenants ADD COLUMN erased_at INTEGER NULL;
CREATE INDEX tenants_deleted ON tenants (deleted_at) WHERE deleted_at IS NOT NULL AND erased_at IS NULL;
