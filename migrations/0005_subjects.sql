-- What an audit entry is about where it is no operation: "cause:<fingerprint>", "destination:<name>",
-- "bulk:<id>" and the like, so that each has a history of its own.
ALTER TABLE audit ADD COLUMN subject TEXT;
CREATE INDEX audit_subject ON audit (subject, at, id) WHERE subject IS NOT NULL;
UPDATE audit SET subject = 'destination:' || substr(detail, 13) WHERE detail LIKE 'destination %';
