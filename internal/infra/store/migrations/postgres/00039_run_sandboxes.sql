-- Deleting a response asks whether another one continues its conversation.

-- +goose Up
CREATE INDEX runs_sandbox ON runs (sandbox);
