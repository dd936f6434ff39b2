-- Chance and triggers are written differently on each database.
INSERT INTO audit_words (audit_id, salt, reason, detail) SELECT id, randomblob(32), reason, detail FROM audit;
ALTER TABLE audit DROP COLUMN reason;
ALTER TABLE audit DROP COLUMN detail;

CREATE TRIGGER audit_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'entries of the audit are only ever added'); END;
CREATE TRIGGER audit_dropped BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'entries of the audit are only ever added'); END;
CREATE TRIGGER audit_chain_changed BEFORE UPDATE ON audit_chain
BEGIN SELECT RAISE(ABORT, 'links of the audit are only ever added'); END;
CREATE TRIGGER audit_chain_dropped BEFORE DELETE ON audit_chain
BEGIN SELECT RAISE(ABORT, 'links of the audit are only ever added'); END;
CREATE TRIGGER audit_erasures_changed BEFORE UPDATE ON audit_erasures
BEGIN SELECT RAISE(ABORT, 'erasures are only ever added'); END;
CREATE TRIGGER audit_erasures_dropped BEFORE DELETE ON audit_erasures
BEGIN SELECT RAISE(ABORT, 'erasures are only ever added'); END;
CREATE TRIGGER audit_words_changed BEFORE UPDATE ON audit_words
BEGIN SELECT RAISE(ABORT, 'words of the audit are erased or stay as they are'); END;
