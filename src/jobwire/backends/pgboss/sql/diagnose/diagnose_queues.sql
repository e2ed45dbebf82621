-- Returns each queue with its table, its policy, whether it has jobs, and the age of its last monitoring.
SELECT q.name, q.table_name, q.policy, q.partition, EXISTS (SELECT FROM {schema}.job j WHERE j.name = q.name),
    extract(epoch FROM {now} - q.monitor_on)::float8 --? queue.monitor_on
    NULL::float8 --! queue.monitor_on
FROM {schema}.queue q ORDER BY q.name LIMIT 1000
