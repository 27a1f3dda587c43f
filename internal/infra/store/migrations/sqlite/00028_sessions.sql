-- Sessions: conversations with agents. A turn is a run, which begins with what its session's
-- events say and leaves events of its own with each step.

-- +goose Up
CREATE TABLE sessions (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    key_id        TEXT NOT NULL,
    environment   TEXT NOT NULL,
    agent         TEXT NOT NULL,
    agent_version INTEGER NOT NULL,
    sandbox       TEXT NOT NULL,
    about         BLOB NOT NULL, -- title and metadata, encrypted with the tenant's key
    run           TEXT NOT NULL, -- the turn under way; '' for none
    events        INTEGER NOT NULL, -- seq of the last one
    waits         INTEGER NOT NULL, -- calls that wait for the client
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    archived_at   INTEGER NULL
);
CREATE INDEX sessions_tenant ON sessions (tenant, seq);
CREATE INDEX sessions_agent ON sessions (tenant, agent, seq);

CREATE TABLE session_events (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    run     TEXT NOT NULL,
    type    TEXT NOT NULL,
    talk    INTEGER NOT NULL, -- 0 for what is no part of the conversation, 2 for what it may begin with
    at      INTEGER NOT NULL,
    event   BLOB NOT NULL, -- encrypted with the tenant's key
    PRIMARY KEY (session, seq)
);
CREATE INDEX session_events_type ON session_events (session, type, seq);

-- Calls of the last turn that wait for the client, and those that it has approved since.
CREATE TABLE session_calls (
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq      INTEGER NOT NULL, -- of the event of the call
    call     TEXT NOT NULL,
    tool     TEXT NOT NULL,
    approve  INTEGER NOT NULL, -- 1 for one that waits for a decision, 0 for its result
    answered INTEGER NOT NULL, -- 1 for one that is approved
    PRIMARY KEY (session, seq)
);

-- Turns that begin when those before them have ended.
CREATE TABLE session_queue (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run     TEXT NOT NULL UNIQUE,
    turn    BLOB NOT NULL -- encrypted with the tenant's key
);
CREATE INDEX session_queue_session ON session_queue (session, seq);

ALTER TABLE runs ADD COLUMN session TEXT NOT NULL DEFAULT ''; -- '' for none
CREATE INDEX runs_session ON runs (session) WHERE session <> '';
