-- Remembers attempts that the statement before this one, in the same transaction, has failed and given a next attempt. A claim that was
-- lost has another start, or another state.
INSERT INTO {side}.attempt (name, id, run, started_on, ended_on, due_on, keep_until, worker, kind, error)
SELECT j.name, j.id, j.retry_count, j.started_on, {now}, j.start_after, {now} + :keep::float8 * interval '1 second', :worker::text,
    (:kinds::text[])[array_position(:ids, j.id)], left(j.output ->> 'message', 1000)
FROM {job} j
WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) AND j.state::text = 'retry'
    AND j.retry_count = (:attempts::integer[])[array_position(:ids, j.id)]
    AND j.started_on = (:starts::timestamptz[])[array_position(:ids, j.id)]
ON CONFLICT DO NOTHING
