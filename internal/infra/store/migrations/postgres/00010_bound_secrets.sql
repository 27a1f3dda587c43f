-- Secrets that are bound to hosts: their hosts and placeholders.

-- +goose Up
ALTER TABLE environments ADD COLUMN bound BYTEA NULL; -- sealed JSON; NULL for none
ALTER TABLE keys ADD COLUMN bound BYTEA NULL; -- likewise
