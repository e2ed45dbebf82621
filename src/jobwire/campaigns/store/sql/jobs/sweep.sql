-- Rows that are being settled at this moment are left out.
WITH stale AS MATERIALIZED (
    SELECT j.id FROM {schema}.jobs j
    WHERE j.status = 'SENDING'
        AND coalesce(j.started_at, j.created_at, '-infinity') < now() - make_interval(secs => %(age)s)
    ORDER BY j.id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {schema}.jobs j
SET (status, failed_at, error_message) = (
        SELECT CASE WHEN j.attempts <= c.retry_limit THEN 'QUEUED' ELSE 'FAILED' END,
            CASE WHEN j.attempts <= c.retry_limit THEN NULL ELSE now() END,
            CASE WHEN j.attempts <= c.retry_limit THEN j.error_message ELSE %(error)s END
        FROM {schema}.campaigns c WHERE c.id = j.campaign_id),
    sent_at = NULL, due_at = NULL
WHERE j.id = ANY(ARRAY(SELECT id FROM stale))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
