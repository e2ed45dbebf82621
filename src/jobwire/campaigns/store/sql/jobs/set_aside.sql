-- A job that could not be claimed gives up its place in the queue, and is fed again when its campaign runs. One without
-- an attempt left has failed.
WITH waiting AS MATERIALIZED (
    SELECT id FROM {schema}.jobs WHERE id = ANY(%(ids)s) AND (status = 'QUEUED') IS TRUE ORDER BY id FOR NO KEY UPDATE)
UPDATE {schema}.jobs j
SET (status, failed_at, error_message, due_at) = (
    SELECT CASE WHEN j.attempts <= c.retry_limit THEN 'QUEUED' ELSE 'FAILED' END,
        CASE WHEN j.attempts <= c.retry_limit THEN NULL ELSE now() END,
        CASE WHEN j.attempts <= c.retry_limit THEN j.error_message ELSE coalesce(j.error_message, %(error)s) END,
        NULL::timestamptz
    FROM {schema}.campaigns c WHERE c.id = j.campaign_id)
WHERE j.id = ANY(ARRAY(SELECT id FROM waiting))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
