-- Moves jobs from a dead letter queue back to the queues that they came from, as new jobs with the present settings of those queues. A job
-- that is refused there fails in the dead letter queue. Returns the number of jobs that were moved.
WITH dead AS MATERIALIZED (
    SELECT j.*, coalesce(:destination::text, j.source_name) AS destination, gen_random_uuid() AS new_id
    FROM {job} j
    WHERE j.name = :queue AND j.state < 'active' AND NOT j.blocked
        AND (:source::text IS NULL OR j.source_name = :source)
        AND (:data::jsonb IS NULL OR j.data @> :data)
        AND (:before::timestamptz IS NULL OR j.created_on < :before)
        AND (:ids::uuid[] IS NULL OR j.id = ANY (:ids))
        AND EXISTS (SELECT FROM {schema}.queue q WHERE q.name = coalesce(:destination::text, j.source_name))
    ORDER BY j.created_on
    LIMIT :limit
    FOR UPDATE OF j SKIP LOCKED
), moved AS (
    INSERT INTO {schema}.job (
        id, name, data, priority, singleton_key, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds,
        deletion_seconds, start_after, created_on, keep_until, dead_letter, policy, group_id, group_tier, heartbeat_seconds
        , source_root_id --? source_root_id
        , trace_context --? trace_context
    )
    SELECT
        d.new_id, q.name, d.data, d.priority, d.singleton_key, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max,
        q.expire_seconds, q.deletion_seconds, {now}, {now}, {now} + q.retention_seconds * interval '1 second',
        q.dead_letter, q.policy, d.group_id, d.group_tier, q.heartbeat_seconds
        , d.source_root_id --? source_root_id
        , d.trace_context --? trace_context
    FROM dead d JOIN {schema}.queue q ON q.name = d.destination
    ORDER BY d.created_on
    ON CONFLICT DO NOTHING
    RETURNING id, name
), gone AS (
    DELETE FROM {job} j USING dead d JOIN moved m ON m.id = d.new_id WHERE j.name = :queue AND j.id = d.id
), refused AS (
    UPDATE {job} j
    SET state = 'failed', completed_on = {now},
        source_output = coalesce(j.source_output, j.output), --? source_output
        output = jsonb_build_object(
            'message', format('could not be moved: the policy of queue %s (%s) has no room for it', q.name, q.policy),
            'reason', 'redrive_conflict', 'destination', q.name, 'policy', q.policy, 'singletonKey', j.singleton_key
        )
    FROM dead d JOIN {schema}.queue q ON q.name = d.destination
    WHERE j.name = :queue AND j.id = d.id AND NOT EXISTS (SELECT FROM moved m WHERE m.id = d.new_id)
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, m.name) FROM moved m GROUP BY m.name
)
SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM notified)
