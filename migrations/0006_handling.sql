-- Overrides that wait for a second person's word, and what became of them.

CREATE TABLE override_requests (
    id UUID PRIMARY KEY,
    operation_id UUID NOT NULL,
    dead_letter_id UUID NOT NULL,
    mode TEXT NOT NULL,
    reason TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at BIGINT NOT NULL,
    -- What they had before them when they asked. Once it is otherwise, the request is out of date.
    facts TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'approved', 'refused', 'withdrawn', 'stale')),
    decided_by TEXT,
    decided_at BIGINT,
    word TEXT,
    CHECK ((state = 'waiting') = (decided_at IS NULL))
);
-- One question at a time about a dead letter.
CREATE UNIQUE INDEX override_requests_waiting ON override_requests (dead_letter_id) WHERE state = 'waiting';
CREATE INDEX override_requests_state ON override_requests (state, requested_at, id);
CREATE INDEX override_requests_operation ON override_requests (operation_id, requested_at);
