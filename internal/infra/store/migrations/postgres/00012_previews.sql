-- Previews: open ports of named sandboxes.

-- +goose Up
CREATE TABLE previews (
    sandbox    TEXT COLLATE "C" NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    port       INTEGER          NOT NULL,
    seed       BYTEA            NOT NULL, -- gives the name, with the installation's secret key
    hash       BYTEA            NOT NULL, -- of the name
    created_at BIGINT           NOT NULL,
    PRIMARY KEY (sandbox, port)
);
CREATE UNIQUE INDEX previews_hash ON previews (hash);
