-- Returns a row if the queue is paused.
SELECT 1 FROM {side}.held WHERE name = :queue
