-- When a tenant's deletion was requested, and when it finished: only the audit trail remains. The
-- row stays, because permanent policy events refer to it.

-- +goose Up
ALTER TABLE tenants ADD COLUMN deleted_at INTEGER NULL;
ALTER TABLE tenants ADD COLUMN erased_at INTEGER NULL;
CREATE INDEX tenants_deleted ON tenants (deleted_at) WHERE deleted_at IS NOT NULL AND erased_at IS NULL;
