-- Adds jobs that have nothing but data to a standard queue, and notifies workers of them. Returns the number of jobs. No unique index can
-- refuse such a job, so there is no ON CONFLICT, which would be a fifth of the whole cost. The data are JSON texts with a character between
-- them that JSON never holds.
WITH q AS (
    SELECT * FROM {schema}.queue WHERE name = :queue
), added AS (
    INSERT INTO {job} (
        id, name, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, deletion_seconds,
        start_after, created_on, keep_until, dead_letter, policy
        , heartbeat_seconds --? heartbeat_seconds
    )
    SELECT
        r.id, q.name, nullif(r.data, 'null')::jsonb, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max,
        q.expire_seconds, q.deletion_seconds, {now}, {now} + (r.nth - 1) * interval '1 microsecond',
        {now} + q.retention_seconds * interval '1 second', q.dead_letter, q.policy
        , q.heartbeat_seconds --? heartbeat_seconds
    FROM q, unnest(:ids::uuid[], string_to_array(:data, chr(31))) WITH ORDINALITY AS r (id, data, nth)
    RETURNING 1
), notified AS MATERIALIZED (
    SELECT pg_notify(:channel, :queue)
    FROM added
    WHERE (SELECT notify FROM q) --? queue.notify
    HAVING count(*) > 0
)
SELECT (SELECT count(*) FROM added), (SELECT count(*) FROM notified)
