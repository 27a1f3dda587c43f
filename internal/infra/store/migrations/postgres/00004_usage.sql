-- The ledger, its sums by day, which budgets are checked against, and the
-- counters of circuit breakers.

-- +goose Up
CREATE TABLE usage_entries (
    trace_id  TEXT COLLATE "C" NOT NULL,
    tenant    TEXT COLLATE "C" NOT NULL,
    key_id    TEXT COLLATE "C" NOT NULL,
    source    TEXT             NOT NULL,
    seconds   DOUBLE PRECISION NOT NULL,
    cpu       DOUBLE PRECISION NOT NULL,
    memory    BIGINT           NOT NULL,
    bytes_out BIGINT           NOT NULL,
    sessions  BIGINT           NOT NULL,
    credits   DOUBLE PRECISION NOT NULL,
    at        BIGINT           NOT NULL,
    PRIMARY KEY (tenant, at, trace_id)
);

CREATE TABLE usage_days (
    tenant      TEXT COLLATE "C" NOT NULL,
    day         BIGINT           NOT NULL, -- its first moment
    source      TEXT COLLATE "C" NOT NULL,
    calls       BIGINT           NOT NULL,
    sessions    BIGINT           NOT NULL,
    seconds     DOUBLE PRECISION NOT NULL,
    cpu_seconds DOUBLE PRECISION NOT NULL,
    gib_seconds DOUBLE PRECISION NOT NULL,
    bytes_out   BIGINT           NOT NULL,
    credits     DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, day, source)
);

CREATE TABLE breaker_counts (
    tenant    TEXT COLLATE "C" NOT NULL,
    dimension TEXT COLLATE "C" NOT NULL,
    agent     TEXT COLLATE "C" NOT NULL, -- '' for the tenant's own
    starts_at BIGINT           NOT NULL, -- of the window
    calls     BIGINT           NOT NULL,
    PRIMARY KEY (tenant, dimension, agent, starts_at)
);

CREATE TABLE breaker_caps (
    only_row     BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    tenant_daily BIGINT NOT NULL,
    agent_hourly BIGINT NOT NULL
);
