-- Threads of sessions that clients put aside, and what those go on with that wait for the client.

-- +goose Up
ALTER TABLE session_threads ADD COLUMN archived_at INTEGER NULL;
ALTER TABLE session_threads ADD COLUMN kept BLOB NULL; -- encrypted with the tenant's key
