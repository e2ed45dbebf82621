-- Take the turn to monitor queues whose last time is long enough ago; which queues are ours, and their tables.
-- Where somebody keeps the history of the queues, the turn is left to Node, which writes it.
WITH turn AS (
    SELECT q.name FROM {schema}.queue q
    WHERE NOT EXISTS (SELECT FROM {schema}.queue_stats s WHERE s.captured_on > {now} - interval '10 minutes') --? queue_stats
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
