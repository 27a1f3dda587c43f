-- Threads of sessions that clients put aside.

-- +goose Up
ALTER TABLE session_threads ADD COLUMN archived_at INTEGER NULL;
