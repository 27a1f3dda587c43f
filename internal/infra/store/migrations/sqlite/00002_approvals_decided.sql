-- Finds the responses whose calls are decided and that no response continues yet.

-- +goose Up
CREATE INDEX approvals_decided ON approvals (decided_at) WHERE session = '' AND next = '' AND status IN ('approved', 'denied');
