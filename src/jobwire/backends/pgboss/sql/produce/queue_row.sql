-- Returns the settings of a queue on which statements depend.
SELECT policy, table_name, partition,
    notify, --? queue.notify
    false, --! queue.notify
    expire_seconds, dead_letter
FROM {schema}.queue WHERE name = :queue
