-- Changes queued jobs, chosen by id or by key, and notifies workers if one is ready. Changes only what the JSON object names. If only the start
-- moves, the time until which a job is kept moves by as much.
WITH o AS (
    SELECT r.*, t.start_after
    FROM json_to_record(:options::json) AS r (
        priority integer, delay float8, after interval, run_at timestamptz, retry_limit integer, retry_delay integer,
        retry_backoff boolean, retry_delay_max integer, expire_seconds integer, deletion_seconds integer,
        retention_seconds integer, dead_letter text, group_id text, group_tier text, heartbeat_seconds integer
    ), LATERAL (
        SELECT coalesce(
            r.run_at, {now} + coalesce(r.after, r.delay * interval '1 second')
        ) AS start_after
    ) t
), chosen AS MATERIALIZED (
    SELECT j.id FROM {job} j
    WHERE j.name = :queue AND j.state < 'active'
        AND j.id = :id::uuid --? by_id
        AND j.singleton_key = :key --? by_key
    ORDER BY j.created_on DESC, j.id DESC LIMIT 1 --? newest
    ORDER BY j.created_on, j.id LIMIT 1 --? oldest
    FOR UPDATE
), changed AS (
    UPDATE {job} j SET
        data = :data::jsonb, --? with_data
        priority = coalesce(o.priority, j.priority),
        start_after = coalesce(o.start_after, j.start_after),
        keep_until = CASE
            WHEN o.retention_seconds IS NOT NULL
                THEN coalesce(o.start_after, j.start_after) + o.retention_seconds * interval '1 second'
            WHEN o.start_after IS NOT NULL AND isfinite(j.start_after) AND isfinite(j.keep_until) THEN j.keep_until + (o.start_after - j.start_after)
            ELSE j.keep_until
        END,
        retry_limit = coalesce(o.retry_limit, j.retry_limit),
        retry_delay = coalesce(o.retry_delay, j.retry_delay),
        retry_backoff = coalesce(o.retry_backoff, j.retry_backoff),
        retry_delay_max = coalesce(o.retry_delay_max, j.retry_delay_max),
        expire_seconds = coalesce(o.expire_seconds, j.expire_seconds),
        deletion_seconds = coalesce(o.deletion_seconds, j.deletion_seconds),
        group_id = coalesce(o.group_id, j.group_id), --? group_id
        group_tier = coalesce(o.group_tier, j.group_tier), --? group_id
        heartbeat_seconds = coalesce(o.heartbeat_seconds, j.heartbeat_seconds), --? heartbeat_seconds
        dead_letter = coalesce(o.dead_letter, j.dead_letter)
    FROM chosen c, o
    WHERE j.name = :queue AND j.id = c.id AND j.state < 'active'
    RETURNING j.id, j.start_after
), notified AS MATERIALIZED (
    SELECT pg_notify(CASE WHEN bool_or(c.start_after <= {now}) THEN :channel ELSE :own_channel END, :queue)
    FROM changed c
    WHERE (SELECT q.notify FROM {schema}.queue q WHERE q.name = :queue) --? queue.notify
    HAVING count(*) > 0
)
SELECT c.id, (SELECT count(*) FROM notified) FROM changed c
