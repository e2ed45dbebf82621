-- Gives the next jobs their places in the queue: the first at a time, each further one a step later. Walks the index of
-- jobs without a place, however many have been sent. The jobs are found again by an array of ids, and the channels by a
-- subquery with OFFSET 0: for a join the planner may read the whole table.
WITH found AS MATERIALIZED (
    SELECT id FROM {schema}.jobs
    WHERE campaign_id = %(campaign_id)s AND (status = 'QUEUED' AND due_at IS NULL) IS TRUE
    ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED),
listed AS MATERIALIZED (SELECT ARRAY(SELECT id FROM found ORDER BY id) AS ids),
fed AS (
    UPDATE {schema}.jobs j SET due_at = %(first)s::timestamptz
        + make_interval(secs => (array_position((SELECT ids FROM listed), j.id) - 1) * %(step)s::float8)
    WHERE j.id = ANY((SELECT ids FROM listed)::text[])
    RETURNING j.id, j.channel_id, j.attempts, j.due_at)
SELECT fed.id AS job_id, fed.channel_id, c.username, c.category, fed.attempts, fed.due_at
FROM fed CROSS JOIN LATERAL (
    SELECT username, category FROM {schema}.channels WHERE channels.id = fed.channel_id OFFSET 0) c
ORDER BY fed.due_at, fed.id
