-- What a sandbox runs instead of the version of the image that was asked for.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN image_warning TEXT NOT NULL DEFAULT '';
