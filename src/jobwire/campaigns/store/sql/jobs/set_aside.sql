-- A job that could not be claimed gives up its place in the queue, and is fed again when its campaign runs. One without
-- an attempt left has failed. One that is SENDING may be that of a worker that died: the sweep has to look at it.
WITH refused AS MATERIALIZED (
    SELECT id FROM {schema}.jobs WHERE id = ANY(%(ids)s) AND (status IN ('QUEUED', 'SENDING')) IS TRUE
    ORDER BY id FOR NO KEY UPDATE)
UPDATE {schema}.jobs j
SET (status, failed_at, error_message, due_at, returned_at) = (
    SELECT CASE WHEN j.status = 'SENDING' OR j.attempts <= c.retry_limit THEN j.status ELSE 'FAILED' END,
        CASE WHEN j.status = 'SENDING' OR j.attempts <= c.retry_limit THEN NULL ELSE now() END,
        CASE WHEN j.status = 'SENDING' OR j.attempts <= c.retry_limit THEN j.error_message
            ELSE coalesce(j.error_message, %(error)s) END,
        CASE WHEN j.status = 'SENDING' THEN coalesce(j.due_at, j.started_at, now()) END,
        CASE WHEN j.status = 'QUEUED' AND j.attempts <= c.retry_limit THEN now() END
    FROM {schema}.campaigns c WHERE c.id = j.campaign_id)
WHERE j.id = ANY(ARRAY(SELECT id FROM refused))
RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id
