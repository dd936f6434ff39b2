-- What became of webhook deliveries, counted by the hour: whoever sends junk adds to a number and
-- not to the database's size. Times are microseconds since 1970 in UTC.

CREATE TABLE hook_counts (
    source TEXT NOT NULL,
    outcome TEXT NOT NULL,
    -- The hour's first moment.
    hour BIGINT NOT NULL,
    count BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    -- From where the last one came.
    last_address TEXT NOT NULL,
    PRIMARY KEY (source, outcome, hour)
);
CREATE INDEX hook_counts_hour ON hook_counts (hour);
