-- Jobs whose place in the queue is long past have lost it: their entry was deleted there, or failed by itself.
WITH lost AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s AND (status = 'QUEUED' AND due_at IS NOT NULL) IS TRUE
        AND due_at < now() - make_interval(secs => %(age)s)
    ORDER BY due_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {schema}.jobs j SET due_at = NULL WHERE j.id = ANY(ARRAY(SELECT id FROM lost))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
