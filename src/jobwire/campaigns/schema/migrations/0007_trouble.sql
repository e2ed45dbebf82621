-- Messages and channels in trouble are few among all, and operators look at them. A failed message has an error. No
-- column of these indexes changes on the usual way of a message, see 0006.
CREATE INDEX jobs_with_errors ON jobs (campaign_id, id) WHERE error_message IS NOT NULL;
CREATE INDEX channels_troubled ON channels (is_active, updated_at DESC NULLS LAST)
    WHERE error_count > 0 OR NOT is_active;
