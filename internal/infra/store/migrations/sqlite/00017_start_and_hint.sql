-- Whether the sandbox of an execution was ready before the request came: 'warm', 'cold',
-- and '' while it runs, when nothing was run, and when that was not seen. Servers of
-- the version before read and write warm, which goes with the next version.
--
-- hint is what the caller of a failed execution can do about the failure; '' for none.
--
-- schema_compat has the oldest schema version whose programs can use this database. A
-- migration that those cannot live with raises it.

-- +goose Up
ALTER TABLE executions ADD COLUMN start TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN hint TEXT NOT NULL DEFAULT '';
UPDATE executions SET start = CASE WHEN warm THEN 'warm' ELSE 'cold' END WHERE status <> 'running' AND NOT not_started;

CREATE TABLE schema_compat (oldest BIGINT NOT NULL);
INSERT INTO schema_compat (oldest) VALUES (16);
