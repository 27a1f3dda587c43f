-- What kept answers are about, so that they go when it is deleted.

-- +goose Up
CREATE TABLE idempotent_objects (
    tenant TEXT COLLATE "C" NOT NULL,
    object TEXT COLLATE "C" NOT NULL, -- an id, or a name within its kind
    caller TEXT COLLATE "C" NOT NULL,
    key    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, object, caller, key),
    FOREIGN KEY (tenant, caller, key) REFERENCES idempotent_requests (tenant, caller, key) ON DELETE CASCADE
);
CREATE INDEX idempotent_objects_request ON idempotent_objects (tenant, caller, key);
