-- Claims the turn to monitor the queues that are due. Returns their names and tables. Where a Node supervisor stores the history of the queues,
-- the turn is left to it: if we took each turn at the right moment, it would never write an entry. Such a supervisor is recognised by its last
-- entries and, before the first of them, by its row among the instances.
WITH turn AS (
    SELECT q.name FROM {schema}.queue q
    WHERE NOT EXISTS (SELECT FROM {schema}.queue_stats s WHERE s.captured_on > {now} - interval '10 minutes') --? queue_stats
        AND NOT EXISTS ( --? queue_stats instance
            SELECT FROM {schema}.instance i WHERE i.supervise AND i.persist_queue_stats AND i.stopped_on IS NULL --? queue_stats instance
                AND i.heartbeat_on >= {now} - i.heartbeat_seconds * interval '3 seconds' --? queue_stats instance
        ) --? queue_stats instance
        AND coalesce(q.monitor_claim_on, q.monitor_on, '-infinity') <= {now} - :every::float8 * interval '1 second' --? queue.monitor_claim_on
    WHERE coalesce(q.monitor_on, '-infinity') <= {now} - :every::float8 * interval '1 second' --! queue_stats
        AND coalesce(q.monitor_on, '-infinity') <= {now} - :every::float8 * interval '1 second' --! queue.monitor_claim_on
    ORDER BY q.name
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {schema}.queue q
SET monitor_claim_on = {now} --? queue.monitor_claim_on
SET monitor_on = {now} --! queue.monitor_claim_on
FROM turn
WHERE q.name = turn.name
RETURNING q.name, q.table_name
