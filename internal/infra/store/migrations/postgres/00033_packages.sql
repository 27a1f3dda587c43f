-- Packages of environments, and how far each executor is with installing them.

-- +goose Up
ALTER TABLE environments ADD COLUMN packages TEXT NOT NULL DEFAULT ''; -- JSON; '' for none
CREATE INDEX environments_packages ON environments (id) WHERE packages <> '';

CREATE TABLE package_builds (
    ref        TEXT COLLATE "C" NOT NULL, -- of the image with the packages
    executor   TEXT COLLATE "C" NOT NULL,
    image      TEXT COLLATE "C" NOT NULL, -- its name in the executor's image store
    state      TEXT NOT NULL,
    log        TEXT NOT NULL, -- JSON: the last lines
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (ref, executor)
);
