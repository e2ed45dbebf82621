-- Adds jobs to a standard queue that have nothing but data, or also options that are the same for all and times of their own, and notifies
-- workers of them. Returns 1, or 0 without the queue. No unique index can refuse such a job, so there is no ON CONFLICT, which would be a fifth
-- of the whole cost. The data are JSON texts with a character between them that JSON never holds.
WITH q AS (
    SELECT * FROM {schema}.queue WHERE name = :queue
), o AS ( --? with_options
    SELECT * FROM json_to_record(:options::json) AS given ( --? with_options
        priority integer, retry_limit integer, retry_delay integer, retry_backoff boolean, retry_delay_max integer, --? with_options
        expire_seconds integer, retention_seconds integer --? with_options
    ) --? with_options
), added AS (
    INSERT INTO {job} (
        id, name, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, deletion_seconds,
        start_after, created_on, keep_until, dead_letter, policy
        , heartbeat_seconds --? heartbeat_seconds
        , priority --? with_options
    )
    SELECT
        r.id, q.name, nullif(r.data, 'null')::jsonb,
        q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.expire_seconds, --! with_options
        coalesce(o.retry_limit, q.retry_limit), coalesce(o.retry_delay, q.retry_delay), --? with_options
        coalesce(o.retry_backoff, q.retry_backoff), coalesce(o.retry_delay_max, q.retry_delay_max), --? with_options
        coalesce(o.expire_seconds, q.expire_seconds), --? with_options
        q.deletion_seconds,
        {now}, --! with_options
        coalesce(to_timestamp(r.start), {now}), --? with_options
        {now} + (r.nth - 1) * interval '1 microsecond',
        {now} + q.retention_seconds * interval '1 second', --! with_options
        coalesce(to_timestamp(r.start), {now}) --? with_options
            + coalesce(o.retention_seconds, q.retention_seconds) * interval '1 second', --? with_options
        q.dead_letter, q.policy
        , q.heartbeat_seconds --? heartbeat_seconds
        , coalesce(o.priority, 0) --? with_options
    FROM q, unnest(:ids::uuid[], string_to_array(:data, chr(31))) WITH ORDINALITY AS r (id, data, nth) --! with_options
    FROM q, o, unnest(:ids::uuid[], string_to_array(:data, chr(31)), :starts::float8[]) WITH ORDINALITY --? with_options
        AS r (id, data, start, nth) --? with_options
), notified AS MATERIALIZED (
    SELECT pg_notify(:channel, :queue) --! with_options
    SELECT pg_notify(CASE WHEN EXISTS ( --? with_options
        SELECT FROM unnest(:starts::float8[]) AS s (start) WHERE coalesce(to_timestamp(s.start), {now}) <= {now} --? with_options
    ) THEN :channel ELSE :own_channel END, :queue) --? with_options
    FROM q
    WHERE q.notify --? queue.notify
)
SELECT (SELECT count(*) FROM q), (SELECT count(*) FROM notified)
