-- What a session owns: an environment of its own, whose rules hold for the server too.

-- +goose Up
ALTER TABLE environments ADD COLUMN allow_mcp BOOLEAN NOT NULL DEFAULT FALSE;
