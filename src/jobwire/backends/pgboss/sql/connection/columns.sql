-- What a reader of jobs is given of each, everything else as one JSON object at the end.
j.id, j.state, {now}, j.data, j.priority, j.retry_count, j.retry_limit, j.start_after, j.created_on, j.started_on,
j.completed_on, j.output,
j.blocked, --? blocked
false, --! blocked
(SELECT p.value FROM {side}.progress p WHERE p.name = j.name AND p.id = j.id), --? side
NULL::text, --! side
to_jsonb(j) - ARRAY['data', 'output']
