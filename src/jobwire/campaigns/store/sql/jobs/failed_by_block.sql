-- Ends the claimed job and every other job of the channel that waits, except those of campaigns that have ended. IS TRUE keeps the planner from the index of
-- statuses, and the array from a join with the whole table, when there are no statistics.
WITH claimed AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE id = %(id)s AND (status = 'SENDING') IS TRUE AND attempts = %(attempt)s AND started_at = %(started_at)s::timestamptz
    FOR NO KEY UPDATE),
ending AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE channel_id = %(channel_id)s AND (status = 'QUEUED') IS TRUE AND EXISTS (SELECT 1 FROM claimed)
        AND (SELECT c.status FROM {schema}.campaigns c WHERE c.id = jobs.campaign_id) IN ('QUEUED', 'RUNNING', 'PAUSED')
    ORDER BY id FOR NO KEY UPDATE),
every AS (SELECT * FROM claimed UNION ALL SELECT * FROM ending)
UPDATE {schema}.jobs j
SET status = 'FAILED', failed_at = now(), sent_at = NULL, error_message = %(error)s, due_at = NULL
WHERE j.id = ANY(ARRAY(SELECT id FROM every))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
