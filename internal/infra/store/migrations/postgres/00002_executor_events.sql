-- Executors without a database report changes of their sandboxes as numbered events.

-- +goose Up
-- Increases with each change that an executor reports; an older version never replaces a newer one.
ALTER TABLE sandboxes ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;

-- The last event of each executor that was applied.
CREATE TABLE executor_events (
    executor TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    journal  TEXT NOT NULL, -- the executor's journal that numbered the event
    seq      BIGINT NOT NULL
);
