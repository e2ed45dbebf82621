-- Claims the next jobs of a queue. They are locked first and then updated by their row addresses, without an index. A row that another
-- transaction has just moved is left for the next call. The lease becomes the heartbeat of jobs that have none, so that any supervisor, Node's
-- too, recovers them from a worker that died. A job that is claimed again is charged one attempt. While a claim lasts, `retry_limit` is one
-- higher than the job's own, which settling undoes: so a supervisor that recovers the job lets it run again.
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
{claim}
