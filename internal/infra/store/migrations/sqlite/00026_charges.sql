-- What runs cost: a line for each answer of a model, call of a tool and window of a
-- sandbox, its sums by day, a tenant's budget in money, and a plan's rates of responses.
-- Tenants of before have no budget in money; the built-in plans are made what this
-- version says at its start, those of an operator have no such rates.

-- +goose Up
CREATE TABLE charges (
    tenant      TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    id          TEXT    NOT NULL, -- the run, the entry of its log, and a number
    key_id      TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL, -- of the model or tool
    calls       INTEGER NOT NULL,
    input       INTEGER NOT NULL, -- tokens, as the next four
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost        INTEGER NOT NULL, -- millionths of a millionth of a US dollar
    PRIMARY KEY (tenant, at, id)
) WITHOUT ROWID;

CREATE TABLE charge_days (
    tenant      TEXT    NOT NULL,
    day         INTEGER NOT NULL, -- its first moment
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    entries     INTEGER NOT NULL,
    calls       INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, kind, name)
) WITHOUT ROWID;

ALTER TABLE tenants ADD COLUMN monthly_cost REAL NOT NULL DEFAULT 0; -- US dollars
ALTER TABLE plans ADD COLUMN max_response_rate INTEGER NOT NULL DEFAULT 0; -- responses a minute, for each model
ALTER TABLE plans ADD COLUMN max_key_response_rate INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN max_token_rate INTEGER NOT NULL DEFAULT 0; -- tokens a minute, for each model
ALTER TABLE plans ADD COLUMN max_key_token_rate INTEGER NOT NULL DEFAULT 0;
