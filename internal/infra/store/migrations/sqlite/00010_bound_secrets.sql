-- Secrets that are bound to hosts: their hosts and placeholders.

-- +goose Up
ALTER TABLE environments ADD COLUMN bound BLOB NULL; -- sealed JSON; NULL for none
ALTER TABLE keys ADD COLUMN bound BLOB NULL; -- likewise
