-- Recovers jobs of a queue whose heartbeats have expired. They are not charged: what their claim had added to `retry_limit` stays. A
-- heartbeat that is as long as our lease was set by a claim of ours, so the queue's own is restored. Jobs that were recovered too often are
-- returned without being changed, for the caller to fail.
WITH x AS MATERIALIZED (
    SELECT j.id, coalesce(t.times, 0) + 1 AS times
    FROM {job} j LEFT JOIN {side}.stall t ON t.name = j.name AND t.id = j.id
    WHERE j.name = :queue AND j.state = 'active'
        AND j.heartbeat_on < {now} - j.heartbeat_seconds * interval '1 second'
    LIMIT 1000
    FOR UPDATE OF j SKIP LOCKED
), counted AS (
    INSERT INTO {side}.stall AS t (name, id, times) SELECT :queue, x.id, x.times FROM x
    ON CONFLICT (name, id) DO UPDATE SET times = excluded.times
), back AS (
    UPDATE {job} j
    SET state = 'retry',
        retry_limit = greatest(j.retry_limit, least(j.retry_count, 2147483646) + 1),
        heartbeat_seconds = CASE WHEN j.heartbeat_seconds = :lease::integer THEN q.heartbeat_seconds ELSE j.heartbeat_seconds END,
        heartbeat_on = NULL
    FROM x, {schema}.queue q
    WHERE q.name = :queue AND j.name = :queue AND j.id = x.id AND x.times <= :most::integer
        AND NOT (j.policy IS NOT DISTINCT FROM 'stately' AND EXISTS (
            SELECT FROM {job} o WHERE o.name = :queue AND o.state = 'retry' AND o.policy = 'stately'
                AND coalesce(o.singleton_key, '') = coalesce(j.singleton_key, '')
        ))
    RETURNING j.id
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, :queue) FROM back HAVING count(*) > 0
)
SELECT x.id, b.id IS NOT NULL, j.retry_count, j.started_on::text, {now}::text, (SELECT count(*) FROM notified)
FROM x JOIN {job} j ON j.name = :queue AND j.id = x.id LEFT JOIN back b ON b.id = x.id
