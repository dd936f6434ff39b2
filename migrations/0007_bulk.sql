-- Acting on many dead letters at once: what is to be done, and to which of them, frozen when a
-- person looked.

CREATE TABLE bulks (
    id UUID PRIMARY KEY,
    name TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('replay', 'resolve', 'assign', 'lookup')),
    -- How they are closed; to whom they are handed, where that is anybody.
    resolution TEXT,
    assignee TEXT,
    reason TEXT NOT NULL,
    -- The filter as a query string; absent where members were chosen one by one.
    filter TEXT,
    -- The bulk action whose refused and failed members these are.
    follows UUID,
    members BIGINT NOT NULL,
    -- So many go first, and a person confirms before the others do; 0 when nobody waits for that.
    canary BIGINT NOT NULL,
    per_minute BIGINT,
    state TEXT NOT NULL CHECK (state IN ('preview', 'canary', 'confirm', 'running', 'ended', 'cancelled')),
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    started_at BIGINT,
    -- In whose name members are acted on.
    acts_as TEXT,
    ended_at BIGINT,
    paused_at BIGINT,
    paused_by TEXT,
    pause_reason TEXT,
    -- There is something to do or to hear for it.
    watched BOOLEAN NOT NULL DEFAULT FALSE,
    -- When its speed allows the next member.
    next_at BIGINT NOT NULL DEFAULT 0,
    -- One node at a time acts on its members; the fence counts them.
    leased_until BIGINT,
    fence BIGINT NOT NULL DEFAULT 0,
    -- Which of the members under way were looked after, by place.
    followed BIGINT NOT NULL DEFAULT 0,
    CHECK ((action = 'resolve') = (resolution IS NOT NULL)),
    CHECK ((state IN ('ended', 'cancelled')) = (ended_at IS NOT NULL)),
    CHECK ((paused_at IS NULL) = (paused_by IS NULL))
);
CREATE INDEX bulks_created ON bulks (created_at, id);
CREATE INDEX bulks_watched ON bulks (created_at) WHERE watched;

CREATE TABLE bulk_members (
    bulk_id UUID NOT NULL,
    -- From 1, oldest dead letter first.
    position BIGINT NOT NULL,
    dead_letter_id UUID NOT NULL,
    operation_id UUID NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'confirmed', 'failed', 'closed', 'done',
        'already_done', 'refused')),
    -- What was answered, in words. It may quote, so it goes when its operation is erased.
    answer TEXT,
    at BIGINT,
    PRIMARY KEY (bulk_id, position)
);
CREATE INDEX bulk_members_state ON bulk_members (bulk_id, state, position);
CREATE INDEX bulk_members_operation ON bulk_members (operation_id);
