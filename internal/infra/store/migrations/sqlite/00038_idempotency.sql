-- Requests with an Idempotency-Key and what they were answered; those of executions are in
-- idempotency_keys.

-- +goose Up
CREATE TABLE idempotent_requests (
    tenant      TEXT    NOT NULL,
    caller      TEXT    NOT NULL, -- id of the API key or token
    key         TEXT    NOT NULL,
    body        BLOB    NOT NULL, -- keyed digest of what the key stands for
    state       TEXT    NOT NULL, -- begun, done, toolong, unknown
    lease_until INTEGER NOT NULL, -- of the server that works on it
    answer      BLOB    NULL, -- encrypted with the tenant's key
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, caller, key)
);
CREATE INDEX idempotent_requests_age ON idempotent_requests (created_at);
