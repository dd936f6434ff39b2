-- A role is a name, whose rights the configuration has: no longer one of four. SQLite cannot drop a
-- CHECK, and drops that of a column with the column.
ALTER TABLE users ADD COLUMN held TEXT NOT NULL DEFAULT '';
UPDATE users SET held = role;
ALTER TABLE users DROP COLUMN role;
ALTER TABLE users RENAME COLUMN held TO role;

-- Who somebody is at an identity provider: what it calls them there never changes, and is theirs alone.
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id UUID NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);
