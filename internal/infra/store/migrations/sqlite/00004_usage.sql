-- The ledger, its sums by day, which budgets are checked against, and the
-- counters of circuit breakers.

-- +goose Up
CREATE TABLE usage_entries (
    trace_id  TEXT    NOT NULL,
    tenant    TEXT    NOT NULL,
    key_id    TEXT    NOT NULL,
    source    TEXT    NOT NULL,
    seconds   REAL    NOT NULL,
    cpu       REAL    NOT NULL,
    memory    INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    sessions  INTEGER NOT NULL,
    credits   REAL    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (tenant, at, trace_id)
) WITHOUT ROWID;

CREATE TABLE usage_days (
    tenant      TEXT    NOT NULL,
    day         INTEGER NOT NULL, -- its first moment
    source      TEXT    NOT NULL,
    calls       INTEGER NOT NULL,
    sessions    INTEGER NOT NULL,
    seconds     REAL    NOT NULL,
    cpu_seconds REAL    NOT NULL,
    gib_seconds REAL    NOT NULL,
    bytes_out   INTEGER NOT NULL,
    credits     REAL    NOT NULL,
    PRIMARY KEY (tenant, day, source)
) WITHOUT ROWID;

CREATE TABLE breaker_counts (
    tenant    TEXT    NOT NULL,
    dimension TEXT    NOT NULL,
    agent     TEXT    NOT NULL, -- '' for the tenant's own
    starts_at INTEGER NOT NULL, -- of the window
    calls     INTEGER NOT NULL,
    PRIMARY KEY (tenant, dimension, agent, starts_at)
) WITHOUT ROWID;

CREATE TABLE breaker_caps (
    only_row     INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    tenant_daily INTEGER NOT NULL,
    agent_hourly INTEGER NOT NULL
);
