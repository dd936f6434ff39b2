-- Secrets that the configuration names, in envelopes: domain::envelope says what the columns hold.
-- An envelope belongs to "secrets/<name>/<version>".
CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    -- Counts how often it was set, from 1.
    version BIGINT NOT NULL,
    -- The secret key that opens it.
    key_id TEXT NOT NULL,
    wrapped BYTEA NOT NULL,
    sealed BYTEA NOT NULL,
    set_at BIGINT NOT NULL,
    set_by TEXT NOT NULL
);

-- Until when a session is shown an operation's private values. Goes with the session.
CREATE TABLE shown (
    session BYTEA NOT NULL REFERENCES sessions (hash) ON DELETE CASCADE,
    operation_id UUID NOT NULL,
    ends_at BIGINT NOT NULL,
    PRIMARY KEY (session, operation_id)
);
