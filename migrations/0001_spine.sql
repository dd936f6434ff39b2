-- One text for SQLite and PostgreSQL. Ids are made by the program; times are microseconds since
-- 1970 in UTC. The rows that belong to one operation are written in one transaction and never
-- apart, so they carry no foreign keys: checking one costs an index read a row on the busiest path.

CREATE TABLE operations (
    id UUID PRIMARY KEY,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- "running" is not stored: an operation runs while its row of work is leased.
    state TEXT NOT NULL CHECK (state IN ('pending', 'uncertain', 'completed', 'failed')),
    digest BYTEA NOT NULL,
    correlation_id TEXT,
    source TEXT,
    severity TEXT NOT NULL,
    submitted_by TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    completed_at BIGINT,
    corrects UUID,
    corrected_by UUID,
    CHECK ((state = 'completed') = (completed_at IS NOT NULL))
);
-- Insert or nothing on this index is what makes a submission happen once.
CREATE UNIQUE INDEX operations_key ON operations (key);
CREATE INDEX operations_received ON operations (received_at, id);
CREATE INDEX operations_kind ON operations (kind, received_at, id);
CREATE INDEX operations_unsettled ON operations (state, received_at, id) WHERE state <> 'completed';
CREATE INDEX operations_correlation ON operations (correlation_id) WHERE correlation_id IS NOT NULL;

-- Apart from its operation, so that it can be erased and so that a change of state moves few bytes.
CREATE TABLE payloads (
    operation_id UUID PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE steps (
    operation_id UUID NOT NULL,
    position BIGINT NOT NULL,
    name TEXT NOT NULL,
    destination TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'uncertain', 'completed', 'failed')),
    -- The key the destination sees, and how many deliberate effects have been asked for.
    key UUID NOT NULL,
    generation BIGINT NOT NULL DEFAULT 1,
    attempts BIGINT NOT NULL DEFAULT 0,
    last_outcome TEXT,
    saved TEXT,
    reference TEXT,
    completed_at BIGINT,
    PRIMARY KEY (operation_id, position),
    CHECK ((state = 'completed') = (completed_at IS NOT NULL))
);
CREATE INDEX steps_reference ON steps (reference) WHERE reference IS NOT NULL;
CREATE INDEX steps_destination ON steps (destination, operation_id);

-- The bytes of a step's request, computed once a generation: every attempt sends these.
CREATE TABLE requests (
    operation_id UUID NOT NULL,
    position BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    key UUID NOT NULL,
    first_sent_at BIGINT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers TEXT NOT NULL,
    -- The body is the payload to the byte: not stored twice.
    body_is_payload BOOLEAN NOT NULL,
    body TEXT,
    PRIMARY KEY (operation_id, position, generation)
);

CREATE TABLE attempts (
    id UUID PRIMARY KEY,
    operation_id UUID NOT NULL,
    position BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    number BIGINT NOT NULL,
    cause TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    fence BIGINT NOT NULL,
    node TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    outcome TEXT NOT NULL CHECK (outcome IN ('running', 'done', 'not_sent', 'throttled', 'rejected',
        'uncertain', 'key_conflict', 'skipped')),
    symptom TEXT,
    status BIGINT,
    error TEXT,
    -- When the next try is due, and the destination's own word on it in microseconds.
    next_at BIGINT,
    retry_after BIGINT,
    reference TEXT,
    answer_headers TEXT,
    answer_body TEXT,
    answer_cut BOOLEAN NOT NULL DEFAULT FALSE,
    CHECK ((outcome = 'running') = (ended_at IS NULL))
);
-- The second wall behind the gate: one live attempt a step and generation.
CREATE UNIQUE INDEX attempts_live ON attempts (operation_id, position, generation) WHERE outcome = 'running';
CREATE INDEX attempts_operation ON attempts (operation_id, started_at, id);

-- What is to be done. One row at most an operation: whoever wants a send puts one here, and only
-- the engine takes it away. Finished operations have none, so its size is the backlog's.
CREATE TABLE work (
    operation_id UUID PRIMARY KEY,
    position BIGINT NOT NULL,
    destination TEXT NOT NULL,
    cause TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at BIGINT NOT NULL,
    -- Checks waived by an override, in words separated by spaces.
    waived TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    -- The round of tries: since when, sends used up, uncertain outcomes seen, times put off.
    since BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    doubts BIGINT NOT NULL,
    waits BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    leased_until BIGINT,
    attempt_id UUID,
    CHECK ((leased_until IS NULL) = (attempt_id IS NULL))
);
CREATE INDEX work_due ON work (due_at, operation_id) WHERE leased_until IS NULL;
CREATE INDEX work_leased ON work (leased_until) WHERE leased_until IS NOT NULL;

-- What people search by.
CREATE TABLE search (
    operation_id UUID NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (operation_id, name)
);
CREATE INDEX search_value ON search (value, operation_id);

-- What happened to an operation and is no attempt and no person's action.
CREATE TABLE events (
    id UUID PRIMARY KEY,
    operation_id UUID NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX events_operation ON events (operation_id, at, id);

CREATE TABLE dead_letters (
    id UUID PRIMARY KEY,
    operation_id UUID NOT NULL,
    position BIGINT NOT NULL,
    step TEXT NOT NULL,
    kind TEXT NOT NULL,
    destination TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'replaying', 'replayed', 'resolved', 'corrected')),
    certainty TEXT NOT NULL,
    why TEXT NOT NULL,
    outcome TEXT NOT NULL,
    symptom TEXT NOT NULL,
    answer_status BIGINT,
    error TEXT NOT NULL,
    cause TEXT NOT NULL,
    cause_text TEXT NOT NULL,
    next_action TEXT NOT NULL,
    severity TEXT NOT NULL,
    assignee TEXT,
    snoozed_until BIGINT,
    attempts BIGINT NOT NULL,
    first_failed_at BIGINT NOT NULL,
    last_failed_at BIGINT NOT NULL,
    opened_at BIGINT NOT NULL,
    closed_at BIGINT,
    closed_by TEXT,
    resolution TEXT,
    reason TEXT,
    reference TEXT,
    CHECK ((status IN ('open', 'replaying')) = (closed_at IS NULL)),
    CHECK ((status = 'resolved') = (resolution IS NOT NULL))
);
CREATE UNIQUE INDEX dead_letters_live ON dead_letters (operation_id) WHERE closed_at IS NULL;
CREATE INDEX dead_letters_operation ON dead_letters (operation_id, opened_at);
CREATE INDEX dead_letters_opened ON dead_letters (opened_at, id);
CREATE INDEX dead_letters_closed ON dead_letters (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX dead_letters_open ON dead_letters (status, opened_at, id);
CREATE INDEX dead_letters_cause ON dead_letters (cause, opened_at, id);

-- Who did what. Rows are only ever added.
CREATE TABLE audit (
    id UUID PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    operation_id UUID,
    dead_letter_id UUID,
    reason TEXT,
    result TEXT NOT NULL,
    detail TEXT NOT NULL,
    origin TEXT NOT NULL
);
CREATE INDEX audit_at ON audit (at, id);
CREATE INDEX audit_actor ON audit (actor, at, id);
CREATE INDEX audit_operation ON audit (operation_id, at, id) WHERE operation_id IS NOT NULL;

-- A person's action and its answer, so that the same form or request posted twice acts once.
CREATE TABLE actions (
    actor TEXT NOT NULL,
    action_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    subject TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (actor, action_id)
);

CREATE TABLE users (
    id UUID PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'admin')),
    password_hash TEXT,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);

-- One-time links: to make the first account, or to set a password anew.
CREATE TABLE setup_links (
    hash BYTEA PRIMARY KEY,
    user_id UUID,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);

CREATE TABLE tokens (
    id UUID PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash BYTEA NOT NULL UNIQUE,
    scope TEXT NOT NULL CHECK (scope IN ('submit', 'read', 'operate')),
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);

CREATE TABLE sessions (
    hash BYTEA PRIMARY KEY,
    user_id UUID,
    data TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX sessions_expires ON sessions (expires_at);
