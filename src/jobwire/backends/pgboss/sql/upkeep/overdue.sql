-- Returns active jobs of queues that have run for longer than they may, or whose heartbeats have expired. Intervals are subtracted from the
-- present time and not added to a stored one, since that sum may be beyond the last time that PostgreSQL can hold.
SELECT j.name, j.id, j.retry_count, j.started_on::text,
    CASE WHEN j.heartbeat_seconds = :lease::integer THEN q.heartbeat_seconds ELSE j.heartbeat_seconds END, --? heartbeat_seconds
    NULL::integer, --! heartbeat_seconds
    CASE WHEN j.heartbeat_seconds IS NULL THEN 0 ELSE 1 END, --? heartbeat_seconds
    0, --! heartbeat_seconds
    coalesce(j.heartbeat_on < {now} - j.heartbeat_seconds * interval '1 second', false) --? heartbeat_seconds
    false --! heartbeat_seconds
FROM {job} j JOIN {schema}.queue q ON q.name = j.name
WHERE j.name = ANY (:names::text[]) AND j.state = 'active' AND (
    j.started_on < {now} - j.expire_seconds * interval '1 second'
    OR j.heartbeat_on < {now} - j.heartbeat_seconds * interval '1 second' --? heartbeat_seconds
)
LIMIT 1000
