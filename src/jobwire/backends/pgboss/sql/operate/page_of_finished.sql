-- Returns completed or cancelled jobs, newest first, after the one that a cursor names. Backward: oldest first. A foreign client's row
-- without a time, or with the time -infinity, counts as the oldest. No index finds those rows, so they are searched for only when a page
-- reaches the end where they are.
WITH timed AS MATERIALIZED (
    SELECT j.id, j.completed_on FROM {job} j
    WHERE j.name = :queue AND j.completed_on > '-infinity'
        AND j.state = 'completed' --? page_completed
        AND j.state = 'cancelled' --? page_cancelled
        AND (j.completed_on, j.id) < (:moment::timestamptz, :id::uuid) --? after forward
        AND (j.completed_on, j.id) > (:moment::timestamptz, :id::uuid) --? after backward
    ORDER BY
        j.completed_on DESC, j.id DESC --? forward
        j.completed_on, j.id --? backward
    LIMIT :limit::bigint
        + :skip::bigint --? skip
), untimed AS MATERIALIZED (
    SELECT j.id, timestamptz '-infinity' AS completed_on FROM {job} j
    WHERE j.name = :queue AND coalesce(j.completed_on, '-infinity') = '-infinity'
        AND j.state = 'completed' --? page_completed
        AND j.state = 'cancelled' --? page_cancelled
        AND (timestamptz '-infinity', j.id) < (:moment::timestamptz, :id::uuid) --? after forward
        AND :moment::timestamptz = '-infinity' AND j.id > :id::uuid --? after backward
        AND (SELECT count(*) FROM timed) < :limit::bigint --? forward
            + :skip::bigint --? forward skip
), chosen AS MATERIALIZED (
    SELECT * FROM timed UNION ALL SELECT * FROM untimed
    ORDER BY
        completed_on DESC, id DESC --? forward
        completed_on, id --? backward
    LIMIT :limit
    OFFSET :skip --? skip
)
SELECT
{columns}
FROM chosen c JOIN {job} j ON j.name = :queue AND j.id = c.id
ORDER BY
    c.completed_on DESC, c.id DESC --? forward
    c.completed_on, c.id --? backward
