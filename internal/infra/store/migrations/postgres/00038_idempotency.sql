-- Requests with an Idempotency-Key and what they were answered; those of executions are in
-- idempotency_keys.

-- +goose Up
CREATE TABLE idempotent_requests (
    tenant      TEXT COLLATE "C" NOT NULL,
    caller      TEXT COLLATE "C" NOT NULL, -- id of the API key or token
    key         TEXT COLLATE "C" NOT NULL,
    body        BYTEA NOT NULL, -- keyed digest of what the key stands for
    state       TEXT COLLATE "C" NOT NULL, -- begun, done, toolong, unknown
    lease_until BIGINT NOT NULL, -- of the server that works on it
    answer      BYTEA NULL, -- encrypted with the tenant's key
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, caller, key)
);
CREATE INDEX idempotent_requests_age ON idempotent_requests (created_at);
