-- Ends `fetch` and `fetch_keyed`: claims the rows of `next` and returns what a worker needs of them.
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
    j.trace_context, --? trace_context
    NULL::jsonb, --! trace_context
    coalesce(j.output -> 'value' ->> 'message' = 'job heartbeat timeout', false)
