-- Warns that a sandbox runs another version of the image than the caller requested.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN image_warning TEXT COLLATE "C" NOT NULL DEFAULT '';
