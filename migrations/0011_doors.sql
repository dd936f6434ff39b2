-- A session says whose it is, since when, from where and how they came in, so that people can see
-- and end theirs. Those that are under way say none of it: everybody signs in once more.
DROP TABLE sessions;
CREATE TABLE sessions (
    hash BYTEA PRIMARY KEY,
    data TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- Absent while it is nobody's yet; what stands below it, also while it is only half somebody's.
    user_id UUID,
    -- What it is called in lists: not what the browser holds, which is stored nowhere.
    id UUID UNIQUE,
    began_at BIGINT,
    seen_at BIGINT,
    address TEXT,
    agent TEXT,
    signed_in_by TEXT
);
CREATE INDEX sessions_user ON sessions (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX sessions_expires ON sessions (expires_at);

-- How often somebody tried a password or a code lately, under a keyed hash of the name or of the
-- address: what was typed as a name may be a password.
CREATE TABLE tries (
    key BYTEA PRIMARY KEY,
    count BIGINT NOT NULL,
    last_at BIGINT NOT NULL
);
CREATE INDEX tries_last ON tries (last_at);
