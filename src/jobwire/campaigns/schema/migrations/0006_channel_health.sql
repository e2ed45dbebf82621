-- Channels in trouble are few among all. Operators look at those that changed last.
CREATE INDEX channels_troubled ON channels (is_active, updated_at DESC NULLS LAST)
    WHERE error_count > 0 OR NOT is_active;
