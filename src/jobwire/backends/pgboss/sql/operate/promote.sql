-- Makes delayed jobs ready now. The time until which they are kept moves by as much.
WITH was AS (
    SELECT j.id, j.state FROM {job} j WHERE j.name = :queue AND j.id = ANY (:ids::uuid[]) FOR UPDATE
), moved AS (
    UPDATE {job} j
    SET start_after = {now}, keep_until = CASE WHEN isfinite(j.start_after) AND isfinite(j.keep_until)
        THEN j.keep_until - (j.start_after - {now}) ELSE j.keep_until END
    FROM was w
    WHERE j.name = :queue AND j.id = w.id AND w.state < 'active' AND j.start_after > {now}
    RETURNING j.id
), notified AS MATERIALIZED (
    SELECT pg_notify(:own_channel, :queue) FROM moved HAVING count(*) > 0
)
SELECT w.id, w.state, m.id IS NOT NULL, (SELECT count(*) FROM notified)
FROM was w LEFT JOIN moved m ON m.id = w.id
