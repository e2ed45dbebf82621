-- Claim the next jobs of a queue. They are locked first and updated where they lie, by no index; one that another
-- transaction had just moved is left for the next call. The lease becomes the heartbeat of jobs that have none, so that any supervisor, Node's
-- too, takes them back from a worker that died. A job that is claimed again counts one attempt more. While it is claimed it may be tried
-- once more than it says, which is undone when it is settled: so a supervisor that takes it back lets it run again.
WITH next AS MATERIALIZED (
    SELECT j.id, j.ctid AS tid
        , j.heartbeat_seconds IS NULL OR j.heartbeat_seconds < 1 AS leased --? heartbeat_seconds
    FROM {job} j
    WHERE j.name = :queue
        AND j.state < 'active'
        AND NOT j.blocked --? blocked
        AND j.start_after <= {now}
        AND j.priority >= :min_priority --? min_priority
        AND j.priority <= :max_priority --? max_priority
        AND NOT EXISTS (SELECT FROM {side}.held h WHERE h.name = :queue) --? side
    ORDER BY j.priority DESC, j.created_on
    LIMIT :count
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE {job} j
SET state = 'active',
    started_on = {now},
    heartbeat_on = {now}, --? heartbeat_on
    heartbeat_seconds = CASE WHEN j.heartbeat_seconds >= 1 THEN j.heartbeat_seconds ELSE :lease END, --? heartbeat_seconds
    retry_limit = least(j.retry_limit, 2147483646) + 1, --? heartbeat_seconds
    retry_count = CASE WHEN j.started_on IS NULL OR j.retry_count = 2147483647 THEN j.retry_count ELSE j.retry_count + 1 END
WHERE j.ctid = ANY (ARRAY(SELECT n.tid FROM next n))
RETURNING
    j.id, j.data, j.priority, j.retry_count,
    j.retry_limit, --? heartbeat_seconds
    least(j.retry_limit, 2147483646) + 1, --! heartbeat_seconds
    j.expire_seconds, j.created_on, j.start_after,
    j.started_on::text, j.singleton_key,
    CASE WHEN j.id <> ALL (ARRAY(SELECT n.id FROM next n WHERE n.leased)) THEN j.heartbeat_seconds END, --? heartbeat_seconds
    NULL::integer, --! heartbeat_seconds
    j.group_id, --? group_id
    NULL::text, --! group_id
    coalesce(j.output -> 'value' ->> 'message' = 'job heartbeat timeout', false)
