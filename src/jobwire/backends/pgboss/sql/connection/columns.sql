-- The columns of a job for `get` and `page`. The last one is a JSON object of all columns but data and output.
j.id, j.state, {now}, j.data, j.priority, j.retry_count, j.retry_limit, j.start_after, j.created_on, j.started_on,
j.completed_on, j.output,
j.blocked, --? blocked
false, --! blocked
(SELECT p.value FROM {side}.progress p WHERE p.name = j.name AND p.id = j.id), --? side
NULL::text, --! side
to_jsonb(j) - ARRAY['data', 'output']
