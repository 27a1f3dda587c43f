-- Hand-offs: threads of sessions with their events, who speaks in a swarm, and the runs that do
-- the work, by the run at the top.

-- +goose Up
CREATE TABLE session_threads (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    session       TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn          TEXT NOT NULL, -- the run at the top
    parent        TEXT NOT NULL, -- the thread that handed it on; '' for the session's own conversation
    agent         TEXT NOT NULL,
    agent_version INTEGER NOT NULL,
    name          BLOB NOT NULL, -- encrypted with the tenant's key
    status        TEXT NOT NULL, -- running, idle, terminated
    events        INTEGER NOT NULL, -- seq of the last one
    used_input    INTEGER NOT NULL,
    used_output   INTEGER NOT NULL,
    used_cost     INTEGER NOT NULL, -- all three with those of threads below it
    created_at    INTEGER NOT NULL,
    ended_at      INTEGER NULL
);
CREATE INDEX session_threads_session ON session_threads (session, seq);
CREATE INDEX session_threads_turn ON session_threads (turn);

CREATE TABLE session_thread_events (
    thread TEXT NOT NULL REFERENCES session_threads (id) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    run    TEXT NOT NULL,
    type   TEXT NOT NULL,
    at     INTEGER NOT NULL,
    event  BLOB NOT NULL, -- encrypted with the tenant's key
    PRIMARY KEY (thread, seq)
);

ALTER TABLE sessions ADD COLUMN speaker TEXT NOT NULL DEFAULT ''; -- '' for the agent itself
ALTER TABLE sessions ADD COLUMN speaker_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN top TEXT NOT NULL DEFAULT ''; -- '' for one that no other run has begun
CREATE INDEX runs_top ON runs (top) WHERE top <> '';
