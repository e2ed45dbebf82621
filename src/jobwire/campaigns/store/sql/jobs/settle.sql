-- Settles claims, and records the outcomes with their channels. A claim that is lost, since its attempt or its start is
-- not that of the row any more, changes nothing. A job to be retried is QUEUED if its campaign allows another attempt.
-- Rows are found by arrays of ids: for a join the planner may read the whole table when there are no statistics. The
-- last join is safe: its left side is always expected to be one row.
WITH held AS MATERIALIZED (
    SELECT id, campaign_id, attempts, started_at FROM {schema}.jobs
    WHERE id = ANY(%(ids)s::text[]) AND (status = 'SENDING') IS TRUE ORDER BY id FOR NO KEY UPDATE),
given AS MATERIALIZED (  -- without a list of outcomes, all were sent
    SELECT id, attempt, started_at, coalesce(outcome, 'SENT') AS outcome, error, delay
    FROM unnest(%(ids)s::text[], %(attempts)s::integer[], %(starts)s::timestamptz[], %(outcomes)s::text[],
        %(errors)s::text[], %(delays)s::float8[]) AS g (id, attempt, started_at, outcome, error, delay)),
settled AS MATERIALIZED (
    SELECT h.id, g.error, g.delay, (g.outcome = 'RELEASED')::integer AS uncounted,
        CASE WHEN g.outcome IN ('SENT', 'FAILED') THEN g.outcome
            WHEN g.outcome = 'RELEASED' THEN 'QUEUED'
            WHEN h.attempts <= (SELECT c.retry_limit FROM {schema}.campaigns c WHERE c.id = h.campaign_id) THEN 'QUEUED'
            ELSE 'FAILED' END AS status
    FROM held h JOIN given g ON g.id = h.id AND g.attempt = h.attempts AND g.started_at = h.started_at),
done AS (
    UPDATE {schema}.jobs j
    SET status = s.status, attempts = j.attempts - s.uncounted,
        sent_at = CASE WHEN s.status = 'SENT' THEN now() END,
        failed_at = CASE WHEN s.status = 'FAILED' THEN now() END,
        error_message = CASE WHEN s.status <> 'SENT' THEN coalesce(s.error, j.error_message) END,
        due_at = CASE WHEN s.status = 'QUEUED' THEN now() + make_interval(secs => s.delay) END
    FROM settled s WHERE s.id = j.id
    RETURNING j.id AS job_id, j.status, j.campaign_id, j.channel_id, j.error_message),
-- SENT resets the errors of the channel, FAILED counts one. Most successes follow a success and write nothing. In mode
-- TEST nothing was sent to the channel.
outcomes AS MATERIALIZED (
    SELECT channel_id AS id, bool_or(status = 'SENT') AS sent, (count(*) FILTER (WHERE status = 'FAILED'))::integer
        AS errors, max(error_message) FILTER (WHERE status = 'FAILED') AS error
    FROM done WHERE status IN ('SENT', 'FAILED') AND NOT job_id = ANY(%(tested)s::text[]) GROUP BY channel_id),
changing AS MATERIALIZED (  -- locked in the order of their ids, so that two statements never wait for each other
    SELECT id FROM {schema}.channels
    WHERE id = ANY(ARRAY(SELECT id FROM outcomes))
        AND (error_count > 0 OR id = ANY(ARRAY(SELECT id FROM outcomes WHERE errors > 0)))
    ORDER BY id FOR NO KEY UPDATE),
recorded AS (
    UPDATE {schema}.channels c
    SET error_count = CASE WHEN o.sent THEN 0 ELSE c.error_count END + o.errors,
        last_error = coalesce(o.error, c.last_error),
        is_active = c.is_active AND CASE WHEN o.sent THEN 0 ELSE c.error_count END + o.errors < %(most_errors)s,
        updated_at = now()
    FROM outcomes o WHERE o.id = c.id AND c.id = ANY(ARRAY(SELECT id FROM changing)))
SELECT job_id, status, campaign_id, channel_id FROM done
