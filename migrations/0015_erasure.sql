-- Keys of operations that were erased for a subject, as digests under the secret key: the same
-- submission that comes again is still recognised, and nobody reads a personal fact in a key.
CREATE TABLE erased_keys (
    digest BYTEA PRIMARY KEY,
    operation_id UUID NOT NULL
);
CREATE INDEX search_subject ON search (name, value, operation_id);
