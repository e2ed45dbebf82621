-- Extends the leases of jobs whose claims are valid.
UPDATE {job} j
SET heartbeat_on = {now} --? heartbeat_on
SET retry_count = j.retry_count --! heartbeat_on
WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) AND j.state::text = 'active'
    AND j.retry_count = (:attempts::integer[])[array_position(:ids, j.id)]
    AND j.started_on = (:starts::timestamptz[])[array_position(:ids, j.id)]
RETURNING j.id
