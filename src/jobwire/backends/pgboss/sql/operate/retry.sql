-- Runs finished jobs again. Failed and completed ones get one attempt more, cancelled ones start from the beginning. Returns for each job
-- the state that it had, and whether it was changed.
WITH was AS (
    SELECT j.id, j.state FROM {job} j WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) FOR UPDATE
), again AS (
    UPDATE {job} j
    SET state = CASE WHEN w.state = 'cancelled' THEN 'created' ELSE 'retry' END::{schema}.job_state,
        retry_limit = CASE WHEN w.state = 'cancelled' THEN j.retry_limit ELSE least(j.retry_limit, 2147483646) + 1 END,
        completed_on = NULL,
        upsert_by_key = CASE WHEN w.state = 'cancelled' THEN NULL ELSE j.upsert_by_key END, --? upsert_by_key
        start_after = greatest(j.start_after, {now})
    FROM was w
    WHERE j.name = :queue AND j.id = w.id AND w.state > 'active'
    RETURNING j.id
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, :queue) FROM again HAVING count(*) > 0
)
SELECT w.id, w.state, a.id IS NOT NULL, (SELECT count(*) FROM notified)
FROM was w LEFT JOIN again a ON a.id = w.id
