-- Rates of requests and uploads. The built-in plans
-- are made what this version says at its start; those of an operator have none.

-- +goose Up
ALTER TABLE plans ADD COLUMN max_request_rate INTEGER NOT NULL DEFAULT 0; -- requests a second
ALTER TABLE plans ADD COLUMN max_key_request_rate INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN max_upload_rate INTEGER NOT NULL DEFAULT 0; -- bytes a second
ALTER TABLE plans ADD COLUMN max_key_upload_rate INTEGER NOT NULL DEFAULT 0;
