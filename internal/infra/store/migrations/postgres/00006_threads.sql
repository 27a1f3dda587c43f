-- Threads: homes that outlive their executions. What is in them is in the blob
-- store; the record says which saved state counts.

-- +goose Up
ALTER TABLE executions ADD COLUMN thread TEXT COLLATE "C" NOT NULL DEFAULT '';
-- One execution of a thread at a time, whoever admits it.
CREATE UNIQUE INDEX executions_thread_running ON executions (tenant, thread) WHERE thread <> '' AND status = 'running';
CREATE INDEX executions_thread ON executions (tenant, thread, created_at DESC, trace_id DESC) WHERE thread <> '';

ALTER TABLE plans ADD COLUMN max_threads BIGINT NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN max_thread_size BIGINT NOT NULL DEFAULT 0; -- bytes
UPDATE plans SET max_threads = 100, max_thread_size = 1073741824 WHERE name = 'free' AND built_in;
UPDATE plans SET max_threads = 10000, max_thread_size = 10737418240 WHERE name = 'pro' AND built_in;

CREATE TABLE threads (
    tenant      TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    state       TEXT             NOT NULL, -- '' for nothing saved
    bytes       BIGINT           NOT NULL,
    files       BIGINT           NOT NULL,
    created_at  BIGINT           NOT NULL,
    updated_at  BIGINT           NULL, -- NULL until it is saved for the first time
    expires_at  BIGINT           NULL,
    lease       TEXT             NOT NULL, -- who edits it; '' for nobody
    lease_until BIGINT           NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX threads_expiry ON threads (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX threads_idle ON threads (updated_at) WHERE expires_at IS NULL;

-- Tenants with saved states that no thread has any more.
CREATE TABLE thread_litter (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    last   BIGINT           NOT NULL
);
