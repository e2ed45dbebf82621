-- Jobs whose place in the queue is long past have lost it: their entry was deleted there, or failed by itself. Looks at
-- the marks campaign by campaign, as `sweep` does.
WITH marked AS MATERIALIZED (
    SELECT j.id FROM {schema}.campaigns c CROSS JOIN LATERAL (
        SELECT id FROM {schema}.jobs
        WHERE campaign_id = c.id AND due_at < now() - make_interval(secs => %(age)s) AND status = 'QUEUED' OFFSET 0) j
    LIMIT %(limit)s),
lost AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE id = ANY(ARRAY(SELECT id FROM marked)) AND status = 'QUEUED'
        AND due_at < now() - make_interval(secs => %(age)s)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {schema}.jobs j SET due_at = NULL, returned_at = now() WHERE j.id = ANY(ARRAY(SELECT id FROM lost))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
