-- The audit's chain is walked by one node at a time, whoever comes first once it is due.
ALTER TABLE upkeep ADD COLUMN verify_due_at BIGINT NOT NULL DEFAULT 0;
