-- The jobs in the queue: those with a place of their own, and among the last ones before the cursor those that wait.
SELECT least(%(limit)s, (
    SELECT count(*) FROM (
        SELECT status, due_at, returned_at FROM {schema}.jobs
        WHERE campaign_id = %(campaign_id)s
            AND id <= (SELECT fed_id FROM {schema}.campaign_feeding WHERE campaign_id = %(campaign_id)s)
        ORDER BY id DESC LIMIT %(limit)s) recent
    WHERE status = 'QUEUED' AND due_at IS NULL AND returned_at IS NULL
) + (
    SELECT count(*) FROM (
        SELECT 1 FROM {schema}.jobs
        WHERE campaign_id = %(campaign_id)s AND due_at IS NOT NULL AND status = 'QUEUED' LIMIT %(limit)s) placed))
