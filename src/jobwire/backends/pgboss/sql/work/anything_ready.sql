-- Returns a row if a queue has a job that is ready.
SELECT 1 FROM {job} j
WHERE j.name = :queue AND j.state < 'active' AND j.start_after <= {now}
    AND NOT j.blocked --? blocked
    AND NOT EXISTS (SELECT FROM {side}.held h WHERE h.name = :queue) --? side
LIMIT 1
