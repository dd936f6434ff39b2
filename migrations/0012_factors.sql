-- What people show beside their password.

-- The secret that somebody's authenticator app makes codes of, in an envelope that belongs to
-- "users.totp/<user id>". It counts for nothing until a first code was right.
CREATE TABLE totps (
    user_id UUID PRIMARY KEY,
    key_id TEXT NOT NULL,
    wrapped BYTEA NOT NULL,
    sealed BYTEA NOT NULL,
    made_at BIGINT NOT NULL,
    confirmed_at BIGINT,
    -- Of which half minute since 1970 a code was taken last: it and those before it are used up.
    last_step BIGINT NOT NULL
);

-- For the day on which a phone is lost: each works once, and only its hash is kept.
CREATE TABLE recovery_codes (
    user_id UUID NOT NULL,
    hash BYTEA NOT NULL,
    made_at BIGINT NOT NULL,
    used_at BIGINT,
    PRIMARY KEY (user_id, hash)
);

CREATE TABLE passkeys (
    id UUID PRIMARY KEY,
    user_id UUID NOT NULL,
    -- What the authenticator calls it.
    credential BYTEA NOT NULL UNIQUE,
    name TEXT NOT NULL,
    -- The public key and the counter, as JSON: nothing in it is secret.
    data TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX passkeys_user ON passkeys (user_id, made_at);
