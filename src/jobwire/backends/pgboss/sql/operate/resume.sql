-- Makes cancelled jobs wait again.
WITH was AS (
    SELECT j.id, j.state FROM {job} j WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) FOR UPDATE
), again AS (
    UPDATE {job} j
    SET state = 'created',
        completed_on = NULL,
        upsert_by_key = NULL, --? upsert_by_key
        start_after = greatest(j.start_after, {now})
    FROM was w
    WHERE j.name = :queue AND j.id = w.id AND w.state = 'cancelled'
    RETURNING j.id
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, :queue) FROM again HAVING count(*) > 0
)
SELECT w.id, w.state, a.id IS NOT NULL, (SELECT count(*) FROM notified)
FROM was w LEFT JOIN again a ON a.id = w.id
