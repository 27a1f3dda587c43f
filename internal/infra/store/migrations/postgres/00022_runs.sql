-- Runs: turns of a model with tools. A run's log is all that there is of it; its row
-- says who drives it, and finds it.

-- +goose Up
CREATE TABLE runs (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant      TEXT COLLATE "C" NOT NULL,
    key_id      TEXT    NOT NULL,
    environment TEXT    NOT NULL,
    sandbox     TEXT    NOT NULL,
    keep        BIGINT NOT NULL, -- microseconds after its end; 0 for its caller's alone
    status      TEXT    NOT NULL,
    seq         BIGINT NOT NULL, -- of its last entry
    holder      TEXT COLLATE "C" NOT NULL, -- the process that drives it, or did; '' for none
    epoch       BIGINT NOT NULL, -- of its last lease
    due_at      BIGINT,          -- when any process may take it on; NULL once it has ended
    cancelled   BIGINT NOT NULL DEFAULT 0, -- its end is asked for
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    expires_at  BIGINT           -- NULL until it has ended
);
CREATE INDEX runs_due ON runs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_holder ON runs (holder) WHERE due_at IS NOT NULL;
CREATE INDEX runs_tenant ON runs (tenant) WHERE due_at IS NOT NULL;
CREATE INDEX runs_expiry ON runs (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE run_entries (
    run   TEXT COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq   BIGINT NOT NULL,
    entry BYTEA   NOT NULL, -- encrypted
    PRIMARY KEY (run, seq)
);
