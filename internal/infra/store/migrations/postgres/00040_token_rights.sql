-- What a token may do in a session beside sending messages. Tokens from before have no rights.

-- +goose Up
ALTER TABLE tokens ADD COLUMN rights TEXT COLLATE "C" NOT NULL DEFAULT '';
