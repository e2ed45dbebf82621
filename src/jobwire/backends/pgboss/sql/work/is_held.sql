-- Whether the queue is held.
SELECT 1 FROM {side}.held WHERE name = :queue
