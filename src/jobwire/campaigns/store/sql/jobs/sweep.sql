-- Looks at the jobs that have a mark, campaign by campaign: for all at once the planner may read the whole table. Rows
-- that are being settled at this moment are left out. A worker may need longer than the one that sweeps: its claims have
-- their own time, which those of other programs don't.
WITH marked AS MATERIALIZED (
    SELECT j.id FROM {schema}.campaigns c CROSS JOIN LATERAL (
        SELECT id FROM {schema}.jobs
        WHERE campaign_id = c.id AND due_at IS NOT NULL AND status = 'SENDING'
            AND coalesce(started_at, created_at, '-infinity') < now() - make_interval(secs => %(age)s)
            AND coalesce(claimed_until, '-infinity') < now() OFFSET 0) j
    LIMIT %(limit)s),
stale AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE id = ANY(ARRAY(SELECT id FROM marked)) AND status = 'SENDING'
        AND coalesce(started_at, created_at, '-infinity') < now() - make_interval(secs => %(age)s)
        AND coalesce(claimed_until, '-infinity') < now()
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {schema}.jobs j
SET (status, failed_at, error_message) = (
        SELECT CASE WHEN j.attempts <= c.retry_limit THEN 'QUEUED' ELSE 'FAILED' END,
            CASE WHEN j.attempts <= c.retry_limit THEN NULL ELSE now() END,
            CASE WHEN j.attempts <= c.retry_limit THEN j.error_message ELSE %(error)s END
        FROM {schema}.campaigns c WHERE c.id = j.campaign_id),
    sent_at = NULL, due_at = NULL
WHERE j.id = ANY(ARRAY(SELECT id FROM stale))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
