-- The audit as a chain. What a person wrote stands apart from the fact that they acted: words can be
-- erased, facts cannot. Each of these tables is only ever added to; of audit_words rows may go, and
-- the entry that says so is named in audit_erasures.
CREATE TABLE audit_words (
    audit_id UUID PRIMARY KEY,
    -- Drawn for each entry, and gone with its words: the digest alone lets nobody try guesses out.
    salt BYTEA NOT NULL,
    reason TEXT,
    detail TEXT NOT NULL
);
CREATE TABLE audit_erasures (
    audit_id UUID PRIMARY KEY,
    by_id UUID NOT NULL
);
CREATE INDEX audit_erasures_by ON audit_erasures (by_id, audit_id);

-- Which entry follows which. `words` is the keyed digest of the entry's words, `erased` the digest of
-- the ids of those whose words it erased, and `mac` covers the entry's facts, both digests and the
-- link before, with a key outside the database.
CREATE TABLE audit_chain (
    seq BIGINT PRIMARY KEY,
    audit_id UUID NOT NULL UNIQUE,
    words BYTEA NOT NULL,
    erased BYTEA,
    mac BYTEA NOT NULL,
    key_id TEXT NOT NULL
);

-- What was done with the chain's head lately: told to a place, or verified.
CREATE TABLE audit_checks (
    name TEXT PRIMARY KEY,
    at BIGINT,
    seq BIGINT,
    failed_at BIGINT,
    failure TEXT
);

-- The settings that a start was seen with, as keyed digests: a change is named and not shown.
CREATE TABLE settings_seen (
    name TEXT PRIMARY KEY,
    digest BYTEA NOT NULL,
    key_id TEXT NOT NULL
);
