-- When all programs of a named sandbox were ended, and why: those that ended so are
-- asked about later, also by way of another server.

-- +goose Up
ALTER TABLE sandboxes ADD COLUMN endings TEXT NOT NULL DEFAULT ''; -- a list, oldest first; '' for none
