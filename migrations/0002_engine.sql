-- Finding out, steps that are passed over, and what protects destinations.

-- A step's states gain "skipped"; neither database changes a CHECK in one text, so the table is made anew.
CREATE TABLE steps_now (
    operation_id UUID NOT NULL,
    position BIGINT NOT NULL,
    name TEXT NOT NULL,
    destination TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'uncertain', 'completed', 'failed', 'skipped')),
    -- The key the destination sees, and how many deliberate effects have been asked for.
    key UUID NOT NULL,
    generation BIGINT NOT NULL DEFAULT 1,
    attempts BIGINT NOT NULL DEFAULT 0,
    last_outcome TEXT,
    -- When the last send began that may have happened: an absence counts from a while after it.
    doubt_at BIGINT,
    saved TEXT,
    reference TEXT,
    completed_at BIGINT,
    PRIMARY KEY (operation_id, position),
    CHECK ((state IN ('completed', 'skipped')) = (completed_at IS NOT NULL))
);
INSERT INTO steps_now (operation_id, position, name, destination, state, key, generation, attempts,
    last_outcome, doubt_at, saved, reference, completed_at)
SELECT operation_id, position, name, destination, state, key, generation, attempts, last_outcome,
    (SELECT max(a.started_at) FROM attempts a WHERE a.operation_id = s.operation_id
        AND a.position = s.position AND a.outcome IN ('uncertain', 'running')),
    saved, reference, completed_at FROM steps s;
DROP TABLE steps;
ALTER TABLE steps_now RENAME TO steps;
CREATE INDEX steps_reference ON steps (reference) WHERE reference IS NOT NULL;
CREATE INDEX steps_destination ON steps (destination, operation_id);

-- The step that an event is about, where it is about one.
ALTER TABLE events ADD COLUMN position BIGINT;

-- What an attempt asked, where it was a question and no send.
ALTER TABLE attempts ADD COLUMN asked TEXT;

-- Who takes a row of work: a destination's name, or "worker:" and the operation's type for steps
-- that other programs carry out.
ALTER TABLE work ADD COLUMN lane TEXT NOT NULL DEFAULT '';
UPDATE work SET lane = destination;
-- What is to be done: a send, or a question and why it is asked.
ALTER TABLE work ADD COLUMN task TEXT NOT NULL DEFAULT 'send'
    CHECK (task IN ('send', 'find_out', 'ask', 'fetch_result'));
-- Questions asked in this round; who wants the next one; when the send is due that it came before.
ALTER TABLE work ADD COLUMN asks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE work ADD COLUMN asked_by TEXT;
ALTER TABLE work ADD COLUMN resume_at BIGINT;
-- The last try was cut off on our side: the next one is no burden that the destination brought about.
ALTER TABLE work ADD COLUMN lost BOOLEAN NOT NULL DEFAULT FALSE;
DROP INDEX work_due;
CREATE INDEX work_due ON work (lane, due_at, operation_id) WHERE leased_until IS NULL;
CREATE INDEX work_held ON work (lane) WHERE leased_until IS NOT NULL;

-- What all nodes know of a destination's health. A row exists once there is something to know.
CREATE TABLE destinations (
    name TEXT PRIMARY KEY,
    paused_at BIGINT,
    paused_by TEXT,
    pause_reason TEXT,
    -- Failures in a row; how often the circuit opened since it was last closed, and until when it is.
    failures BIGINT NOT NULL DEFAULT 0,
    opened BIGINT NOT NULL DEFAULT 0,
    open_until BIGINT,
    -- Its own word: nothing before this.
    held_until BIGINT,
    -- When the next request fits under its limit a second.
    next_at BIGINT NOT NULL DEFAULT 0,
    CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
    CHECK ((opened = 0) = (open_until IS NULL))
);

-- What somebody was told of: one open row a kind and subject, however often it happens.
CREATE TABLE alerts (
    id UUID PRIMARY KEY,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    closed_at BIGINT
);
CREATE UNIQUE INDEX alerts_open ON alerts (kind, subject) WHERE closed_at IS NULL;
CREATE INDEX alerts_at ON alerts (at, id);

-- API tokens gain the scope "work", for programs that carry steps out.
CREATE TABLE tokens_now (
    id UUID PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash BYTEA NOT NULL UNIQUE,
    scope TEXT NOT NULL CHECK (scope IN ('submit', 'read', 'operate', 'work')),
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);
INSERT INTO tokens_now SELECT * FROM tokens;
DROP TABLE tokens;
ALTER TABLE tokens_now RENAME TO tokens;
