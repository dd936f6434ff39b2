-- Which secret keys are still needed. The key that an erased key's digest was made with; unknown for
-- those from before this version.
ALTER TABLE erased_keys ADD COLUMN key_id TEXT;
-- Where in the chain each key begins and ends.
CREATE INDEX audit_chain_key ON audit_chain (key_id, seq);
