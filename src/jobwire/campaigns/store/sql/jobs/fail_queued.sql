-- Ends jobs that wait and can never be sent.
WITH ending AS MATERIALIZED (
    SELECT id FROM {schema}.jobs WHERE id = ANY(%(ids)s) AND (status = 'QUEUED') IS TRUE ORDER BY id FOR NO KEY UPDATE)
UPDATE {schema}.jobs j
SET status = 'FAILED', failed_at = now(), error_message = %(error)s, due_at = NULL, returned_at = NULL
WHERE j.id = ANY(ARRAY(SELECT id FROM ending))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
