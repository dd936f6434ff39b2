-- Erasing and forgetting what is old.

-- One node tidies up at a time, whoever comes first once it is due.
CREATE TABLE upkeep (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    due_at BIGINT NOT NULL
);
INSERT INTO upkeep (one, due_at) VALUES (1, 0);

-- How far a task has come in the order in which operations were received: what stands before this
-- place is done, or is in upkeep_later. So the cost of going on does not grow with what was done.
CREATE TABLE upkeep_places (
    -- "forget", or "erase:" and an operation type.
    task TEXT PRIMARY KEY,
    received_at BIGINT NOT NULL,
    operation_id UUID NOT NULL
);

-- Operations whose time came while something was still to be done with them.
CREATE TABLE upkeep_later (
    task TEXT NOT NULL CHECK (task IN ('erase', 'forget')),
    operation_id UUID NOT NULL,
    PRIMARY KEY (task, operation_id)
);

-- The operation that a person's action was about: its answer may quote what is to be erased.
ALTER TABLE actions ADD COLUMN operation_id UUID;
CREATE INDEX actions_operation ON actions (operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX actions_at ON actions (at);
