-- Chance and triggers are written differently on each database.
INSERT INTO audit_words (audit_id, salt, reason, detail)
SELECT id, uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), reason, detail FROM audit;
ALTER TABLE audit DROP COLUMN reason, DROP COLUMN detail;

CREATE FUNCTION audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'rows of % are only ever added', TG_TABLE_NAME; END $$;
CREATE FUNCTION audit_words_are_kept() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'words of the audit are erased or stay as they are'; END $$;

CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_kept();
CREATE TRIGGER audit_chain_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_chain
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_kept();
CREATE TRIGGER audit_erasures_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_erasures
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_kept();
CREATE TRIGGER audit_words_kept BEFORE UPDATE OR TRUNCATE ON audit_words
FOR EACH STATEMENT EXECUTE FUNCTION audit_words_are_kept();
