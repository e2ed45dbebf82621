-- Completes jobs whose claims are valid. The outputs are a JSON array, the other values arrays of the same length. States are compared as
-- text, so that the planner uses the primary key and no index on states.
UPDATE {job} j
SET state = 'completed',
    completed_on = {now},
    heartbeat_seconds = (:heartbeats::integer[])[array_position(:ids, j.id)], --? heartbeat_seconds
    retry_limit = j.retry_limit - CASE WHEN j.retry_limit < 2147483647 THEN 1 ELSE 0 END, --? heartbeat_seconds
    output = nullif(:outputs::jsonb -> (array_position(:ids, j.id) - 1), 'null')
WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) AND j.state::text = 'active'
    AND j.retry_count = (:attempts::integer[])[array_position(:ids, j.id)]
    AND j.started_on = (:starts::timestamptz[])[array_position(:ids, j.id)]
RETURNING
    j.id
    , j.blocking --? blocking
    , false --! blocking
