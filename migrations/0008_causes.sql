-- What people say of a cause of dead letters, under its fingerprint.
CREATE TABLE causes (
    cause TEXT PRIMARY KEY,
    assignee TEXT,
    note TEXT,
    -- When a dead letter of this cause was last sent again at a person's word: what came after it
    -- says whether the cause is gone.
    last_replay_at BIGINT,
    updated_at BIGINT NOT NULL
);

-- Filters of the list of dead letters that people keep. The query is the address's, so that a view
-- is a link.
CREATE TABLE views (
    id UUID PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    shared BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (owner, name)
);
