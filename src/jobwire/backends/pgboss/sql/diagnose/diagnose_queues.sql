-- Returns each queue with its table, its policy, whether it has work for the maintenance (unfinished jobs, or finished
-- ones whose time is over), and the age of its last monitoring.
SELECT q.name, q.table_name, q.policy, q.partition,
    EXISTS (SELECT FROM {schema}.job j WHERE j.name = q.name AND j.state IN ('created', 'retry', 'active'))
    OR (SELECT j.completed_on + j.deletion_seconds * interval '1 s' < {now} --? deletion_seconds
        FROM {schema}.job j WHERE j.name = q.name AND j.completed_on IS NOT NULL --? deletion_seconds
        ORDER BY j.completed_on LIMIT 1) IS TRUE --? deletion_seconds
    ,
    extract(epoch FROM {now} - q.monitor_on)::float8 --? queue.monitor_on
    NULL::float8 --! queue.monitor_on
FROM {schema}.queue q ORDER BY q.name LIMIT 1000
