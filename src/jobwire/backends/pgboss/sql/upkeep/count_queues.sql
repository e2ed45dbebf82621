-- Counts the jobs of queues that share a table, and stores the counts where every client reads them. Does nothing while counting is suspended
-- because it was slow, or while another client counts.
WITH may AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(:lock::bigint)
        AND NOT EXISTS (SELECT FROM {schema}.version v WHERE v.monitor_backoff_on > {now}) --? version.monitor_backoff_on
        AS count
), n AS (
    SELECT q.name,
        count(j.id) FILTER (WHERE j.state < 'active')::integer AS queued,
        count(j.id) FILTER (WHERE j.state < 'active' AND j.blocked)::integer AS blocked, --? blocked
        count(j.id) FILTER (WHERE j.state < 'active' AND NOT j.blocked AND j.start_after > {now})::integer AS deferred, --? blocked
        count(j.id) FILTER (WHERE j.state < 'active' AND NOT j.blocked AND j.start_after <= {now})::integer AS ready, --? blocked
        count(j.id) FILTER (WHERE j.state < 'active' AND j.start_after > {now})::integer AS deferred, --! blocked
        count(j.id) FILTER (WHERE j.state < 'active' AND j.start_after <= {now})::integer AS ready, --! blocked
        count(j.id) FILTER (WHERE j.state = 'active')::integer AS active,
        count(j.id) FILTER (WHERE j.state = 'failed')::integer AS failed,
        array_agg(j.singleton_key) FILTER (WHERE j.state = 'active' AND j.policy IN ('singleton', 'stately')) AS singletons
    FROM {schema}.queue q
    LEFT JOIN {job} j ON j.name = q.name AND j.state IN ('created', 'retry', 'active', 'failed')
    WHERE q.name = ANY (:names::text[]) AND (SELECT count FROM may)
    GROUP BY q.name
)
UPDATE {schema}.queue q
SET deferred_count = n.deferred,
    queued_count = n.queued,
    active_count = n.active,
    blocked_count = n.blocked, --? queue.blocked_count
    ready_count = n.ready, --? queue.ready_count
    failed_count = n.failed, --? queue.failed_count
    ready_history = (n.ready || q.ready_history)[1:60], --? queue.ready_history
    total_count = n.queued + n.active + n.failed
        + coalesce(q.retained_count, 0) + ( --? queue.retained_count
            SELECT count(*) FROM {job} f --? queue.retained_count
            WHERE f.name = q.name AND f.state IN ('completed', 'cancelled') --? queue.retained_count
                AND f.completed_on > coalesce(q.retained_on, '-infinity') --? queue.retained_count
        )::integer --? queue.retained_count
    ,
    singletons_active = n.singletons,
    monitor_on = {now}
FROM n
WHERE q.name = n.name
RETURNING q.name, n.queued, q.warning_queued
