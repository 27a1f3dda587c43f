-- What runs cost: a line for each answer of a model, call of a tool and window of a
-- sandbox, its sums by day, a tenant's budget in money, and a plan's rates of responses.
-- Tenants of before have no budget in money; the built-in plans are made what this
-- version says at its start, those of an operator have no such rates.

-- +goose Up
CREATE TABLE charges (
    tenant      TEXT COLLATE "C"  NOT NULL,
    at          BIGINT NOT NULL,
    id          TEXT COLLATE "C"  NOT NULL, -- the run, the entry of its log, and a number
    key_id      TEXT COLLATE "C"  NOT NULL,
    kind        TEXT COLLATE "C"  NOT NULL,
    name        TEXT COLLATE "C"  NOT NULL, -- of the model or tool
    calls       BIGINT NOT NULL,
    input       BIGINT NOT NULL, -- tokens, as the next four
    cache_read  BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    output      BIGINT NOT NULL,
    reasoning   BIGINT NOT NULL,
    cost        BIGINT NOT NULL, -- millionths of a millionth of a US dollar
    PRIMARY KEY (tenant, at, id)
);

CREATE TABLE charge_days (
    tenant      TEXT COLLATE "C"  NOT NULL,
    day         BIGINT NOT NULL, -- its first moment
    kind        TEXT COLLATE "C"  NOT NULL,
    name        TEXT COLLATE "C"  NOT NULL,
    entries     BIGINT NOT NULL,
    calls       BIGINT NOT NULL,
    input       BIGINT NOT NULL,
    cache_read  BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    output      BIGINT NOT NULL,
    reasoning   BIGINT NOT NULL,
    cost        BIGINT NOT NULL,
    PRIMARY KEY (tenant, day, kind, name)
);

ALTER TABLE tenants ADD COLUMN monthly_cost DOUBLE PRECISION NOT NULL DEFAULT 0; -- US dollars
ALTER TABLE plans ADD COLUMN max_response_rate BIGINT NOT NULL DEFAULT 0; -- responses a minute, for each model
ALTER TABLE plans ADD COLUMN max_key_response_rate BIGINT NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN max_token_rate BIGINT NOT NULL DEFAULT 0; -- tokens a minute, for each model
ALTER TABLE plans ADD COLUMN max_key_token_rate BIGINT NOT NULL DEFAULT 0;
