-- Tool calls of sessions and responses that wait for a decision or received one.

-- +goose Up
CREATE TABLE approvals (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    tenant      TEXT    NOT NULL,
    key_id      TEXT    NOT NULL,
    environment TEXT    NOT NULL,
    session     TEXT    NOT NULL, -- '' for a response
    run         TEXT    NOT NULL, -- the turn or response that asked
    event       INTEGER NOT NULL, -- of the call in the session; 0 for a response
    item        TEXT    NOT NULL, -- '' for a session
    thread      TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    tool        TEXT    NOT NULL,
    server      TEXT    NOT NULL,
    arguments   BLOB    NOT NULL, -- encrypted with the tenant's key
    status      TEXT    NOT NULL CHECK (status IN ('pending', 'approved', 'denied', 'expired', 'cancelled')),
    reason      BLOB    NULL,     -- encrypted likewise
    decided_by  TEXT    NOT NULL DEFAULT '',
    next        TEXT    NOT NULL DEFAULT '', -- the run that continues with the decision
    created_at  INTEGER NOT NULL,
    deadline    INTEGER NULL,
    decided_at  INTEGER NULL
);
CREATE INDEX approvals_newest ON approvals (tenant, seq);
CREATE INDEX approvals_pending ON approvals (tenant, seq) WHERE status = 'pending';
CREATE INDEX approvals_session ON approvals (session, event) WHERE session <> '';
CREATE INDEX approvals_run ON approvals (run);
CREATE INDEX approvals_item ON approvals (tenant, item) WHERE item <> '';
CREATE INDEX approvals_deadline ON approvals (deadline) WHERE status = 'pending' AND session = '';

-- Calls that wait as this version begins. Their arguments are in the session's events.
INSERT INTO approvals (id, tenant, key_id, environment, session, run, event, item, thread, agent, tool, server, arguments, status, created_at, deadline)
    SELECT 'apr_' || lower(hex(randomblob(16))), s.tenant, s.key_id, s.environment, c.session, e.run, c.seq, '', '', s.agent, c.tool, '', x'', 'pending', e.at, s.waits_until
    FROM session_calls c JOIN sessions s ON s.id = c.session JOIN session_events e ON e.session = c.session AND e.seq = c.seq
    WHERE c.approve = 1 AND c.answered = 0 AND s.archived_at IS NULL;
