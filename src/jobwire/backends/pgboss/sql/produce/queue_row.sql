-- The settings of a queue that decide how to speak to it.
SELECT policy, table_name, partition,
    notify, --? queue.notify
    false, --! queue.notify
    expire_seconds, dead_letter
FROM {schema}.queue WHERE name = :queue
